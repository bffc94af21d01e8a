//! The map of ports that the bypass may take packets to.

use std::path::Path;

use aya::maps::{HashMap, Map, MapData, MapError};
use rustix::io::Errno;

use super::XdpError;
use super::error::{errno, io_error};
use super::layout::{Entry, Key};
use super::sockets::OpenSockets;

/// What is tried, for errors.
const READ: &str = "read the bypass's whitelist";
const CHANGE: &str = "change the bypass's whitelist";

/// The pinned map. What it holds is the kernel's: everybody who has it open sees the same. Freely sent.
#[derive(Debug)]
pub(super) struct Whitelist(HashMap<MapData, [u8; Key::BYTES], [u32; 2]>);

impl Whitelist {
    /// Opens it where it is pinned; `None` if it is not there.
    pub(super) fn open(path: &Path) -> Result<Option<Whitelist>, XdpError> {
        match open_map(path)? {
            Some(map) => match HashMap::try_from(map) {
                Ok(map) => Ok(Some(Whitelist(map))),
                Err(_) => Err(XdpError::OtherVersion { path: path.to_owned() }),
            },
            None => Ok(None),
        }
    }

    /// Puts a port there, or gives it to somebody else.
    pub(super) fn put(&mut self, key: Key, entry: Entry) -> Result<(), XdpError> {
        self.0.insert(key.to_map(), entry.to_map(), 0).map_err(|error| failed(CHANGE, &error))
    }

    /// Takes a port away, if it is there.
    pub(super) fn remove(&mut self, key: Key) -> Result<(), XdpError> {
        match self.0.remove(&key.to_map()) {
            Err(error) if errno(&error) == Some(Errno::NOENT) => Ok(()),
            result => result.map_err(|error| failed(CHANGE, &error)),
        }
    }

    /// Whose a port is.
    pub(super) fn owner(&self, key: Key) -> Result<Option<Entry>, XdpError> {
        match self.0.get(&key.to_map(), 0) {
            Ok(entry) => Ok(Some(Entry::from_map(entry))),
            Err(MapError::KeyNotFound) => Ok(None),
            Err(error) => Err(failed(READ, &error)),
        }
    }

    /// All ports, and whose they are.
    pub(super) fn entries(&self) -> Result<Vec<(Key, Entry)>, XdpError> {
        let entry = |(key, entry)| (Key::from_map(key), Entry::from_map(entry));
        let entries: Result<Vec<_>, MapError> = self.0.iter().map(|found| found.map(entry)).collect();
        entries.map_err(|error| failed(READ, &error))
    }

    /// Takes away the ports of leases whose socket is closed: their owner died, or forgot them.
    pub(super) fn sweep(&mut self, open: &OpenSockets) -> Result<(), XdpError> {
        for (key, entry) in self.entries()? {
            if entry.process != 0 && !open.has(&key) {
                self.remove(key)?;
            }
        }
        Ok(())
    }
}

/// Opens a pinned map; `None` if it is not there.
pub(super) fn open_map(path: &Path) -> Result<Option<Map>, XdpError> {
    match MapData::from_pin(path).and_then(Map::from_map_data) {
        Ok(map) => Ok(Some(map)),
        Err(error) if errno(&error) == Some(Errno::NOENT) => Ok(None),
        Err(error) => Err(XdpError::file("open", path, io_error(&error))),
    }
}

fn failed(operation: &'static str, error: &MapError) -> XdpError {
    let source = io_error(error);
    match Errno::from_io_error(&source) {
        Some(Errno::PERM | Errno::ACCESS) => XdpError::NotPermitted { operation, source },
        _ => XdpError::Whitelist { operation, source },
    }
}
