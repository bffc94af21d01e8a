//! The bypass of a network namespace: loaded once, put on interfaces, looked at, taken off.
//!
//! 1. [`Bypass::load`] opens the program that is pinned, or loads it and pins it with its maps.
//! 2. [`Bypass::attach`] puts it on an interface by a link, which is pinned too. The kernel lets no link replace what
//!    is there.
//! 3. [`Bypass::allow`] puts ports on the whitelist, for applications that know nothing of leases.
//! 4. [`status`] tells what there is. 5. [`detach`] takes the links away, and with the last of them everything else,
//!    unless an application still holds a lease: a bypass that is attached again serves it.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU16;
use std::path::Path;

use aya::maps::PerCpuArray;
use aya::programs::links::FdLink;
use aya::programs::xdp::XdpMode;
use aya::programs::{ProgramInfo, Xdp};
use aya::{Ebpf, EbpfError};
use aya_obj::programs::XdpAttachType;
use rustix::io::Errno;

use super::XdpError;
use super::error::{errno, io_error};
use super::interfaces::{self, Index, Interface, Mode, Program};
use super::layout::{self, Counters, Entry, Key};
use super::pins::{Lock, Pins};
use super::sockets::OpenSockets;
use super::whitelist::{Whitelist, open_map};

/// Which mode to attach in. `Auto` by default. Plain data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wanted {
    /// Native, and generic where the driver has no native mode.
    #[default]
    Auto,
    /// Native or not at all.
    Native,
    /// Generic.
    Generic,
}

/// The program, ready to be attached, and the lock on all there is. It begins loaded and pinned; dropped, it takes away
/// what is of no use to anybody. One owner.
#[derive(Debug)]
pub struct Bypass {
    pins: Pins,
    program: Xdp,
    id: u32,
    _lock: Lock,
}

/// How the program came to run on an interface. There is no default. Plain data.
#[derive(Debug)]
pub struct Attached {
    /// How it runs.
    pub mode: Mode,
    /// Why not in native mode, where that was tried first.
    pub fallback: Option<XdpError>,
}

/// What there is in a network namespace. Nothing by default. Plain data, as of the moment it was asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// The interfaces that the program runs on.
    pub interfaces: Vec<On>,
    /// The ports on the whitelist.
    pub ports: Vec<Allowed>,
    /// What the program counted.
    pub counters: Counters,
}

/// An interface that the program runs on. There is no default. Plain data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct On {
    /// Its name.
    pub interface: String,
    /// How it runs.
    pub mode: Mode,
}

/// A port on the whitelist. There is no default. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowed {
    /// The address; one of zeros is every one of its family.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
    /// The process with the lease; `None` for a port of `attach --port`.
    pub process: Option<u32>,
    /// Whether a socket is open there: without one nothing is forwarded.
    pub open: bool,
}

impl Bypass {
    /// Step 1, in the calling thread's network namespace.
    ///
    /// # Errors
    /// Where the kernel has no room for it, or a capability is missing.
    pub fn load() -> Result<Bypass, XdpError> {
        let (pins, lock) = Pins::make()?;
        pins.sweep(&lock)?;
        if !pins.program().exists() {
            // A load that was broken off left maps.
            for path in [pins.whitelist(), pins.counters()] {
                remove(&path)?;
            }
            if let Err(error) = load(&pins) {
                let _ = pins.remove();
                return Err(error);
            }
        }
        let program = open_program(&pins)?;
        let id = program_id(&pins.program())?.ok_or(XdpError::NotAttached)?;
        Ok(Bypass { pins, program, id, _lock: lock })
    }

    /// Step 2. Where the program is there already in a mode that fits, nothing changes.
    ///
    /// # Errors
    /// Where somebody else's program is there and `force` is not set, or the kernel refuses.
    pub fn attach(&mut self, interface: &str, wanted: Wanted, force: bool) -> Result<Attached, XdpError> {
        let all = interfaces::list()?;
        let found = all.into_iter().find(|known| known.name == interface);
        let found = found.ok_or_else(|| XdpError::NoInterface { name: interface.to_owned() })?;
        match found.program {
            Some(Program { id, mode }) if id == self.id && wanted.accepts(mode) => {
                return Ok(Attached { mode, fallback: None });
            }
            Some(Program { id, .. }) if id == self.id => {}
            Some(program) if force => take_off(&found, program)?,
            Some(Program { id, mode }) => {
                return Err(XdpError::Occupied { interface: found.name, program: id, mode });
            }
            None => {}
        }
        // Of an interface that is gone, or our own in another mode.
        self.pins.unlink(found.index)?;
        match wanted {
            Wanted::Native => self.link(&found, Mode::Native),
            Wanted::Generic => self.link(&found, Mode::Generic),
            Wanted::Auto => match self.link(&found, Mode::Native) {
                Err(reason @ XdpError::NotNative { .. }) => {
                    let attached = self.link(&found, Mode::Generic)?;
                    Ok(Attached { fallback: Some(reason), ..attached })
                }
                result => result,
            },
        }
    }

    /// Step 3: a port of every address of this host.
    ///
    /// # Errors
    /// Where the whitelist is full, or may not be changed.
    pub fn allow(&mut self, port: NonZeroU16) -> Result<(), XdpError> {
        let mut whitelist = Whitelist::open(&self.pins.whitelist())?.ok_or(XdpError::NotAttached)?;
        for address in [IpAddr::from(Ipv4Addr::UNSPECIFIED), IpAddr::from(Ipv6Addr::UNSPECIFIED)] {
            whitelist.put(Key::new(address, port.get()), Entry::default())?;
        }
        Ok(())
    }

    /// Step 2, for one mode.
    fn link(&mut self, interface: &Interface, mode: Mode) -> Result<Attached, XdpError> {
        let flag = if mode == Mode::Native { XdpMode::Driver } else { XdpMode::Skb };
        let refused = |source: io::Error| {
            let interface = interface.name.clone();
            match Errno::from_io_error(&source) {
                Some(Errno::PERM) => XdpError::NotPermitted { operation: "attach the bypass", source },
                Some(Errno::OPNOTSUPP | Errno::RANGE) if mode == Mode::Native => {
                    XdpError::NotNative { interface, source }
                }
                _ => XdpError::Attach { interface, mode, source },
            }
        };
        let link =
            self.program.attach_to_if_index(interface.index.0, flag).map_err(|error| refused(io_error(&error)))?;
        let link = self.program.take_link(link).map_err(|error| refused(io_error(&error)))?;
        let link = FdLink::try_from(link).map_err(|error| refused(io_error(&error)))?;
        let path = self.pins.link(interface.index);
        link.pin(&path).map_err(|error| XdpError::file("pin", path, io_error(&error)))?;
        Ok(Attached { mode, fallback: None })
    }
}

impl Drop for Bypass {
    fn drop(&mut self) {
        if let Err(error) = tidy(&self.pins) {
            tracing::warn!(%error, "tidy up the dispatcher bypass");
        }
    }
}

/// Step 4, for the calling thread's network namespace.
///
/// # Errors
/// Where what is there cannot be read.
pub fn status() -> Result<Status, XdpError> {
    let Some(pins) = Pins::find()? else { return Ok(Status::default()) };
    let Some(id) = program_id(&pins.program())? else { return Ok(Status::default()) };
    let on = interfaces::list()?.into_iter().filter_map(|interface| match interface.program {
        Some(program) if program.id == id => Some(On { interface: interface.name, mode: program.mode }),
        _ => None,
    });
    let open = OpenSockets::read()?;
    let mut ports = Vec::new();
    if let Some(mut whitelist) = Whitelist::open(&pins.whitelist())? {
        whitelist.sweep(&open)?;
        ports.extend(whitelist.entries()?.into_iter().map(|(key, entry)| Allowed {
            address: key.address(),
            port: key.port(),
            process: (entry.process != 0).then_some(entry.process),
            open: open.has(&key),
        }));
    }
    ports.sort_by_key(|allowed| (allowed.port, allowed.address));
    Ok(Status { interfaces: on.collect(), ports, counters: counters(&pins)? })
}

/// Step 5: from these interfaces, or from all. Returns those that it ran on.
///
/// # Errors
/// Where there is no such interface, or something cannot be removed.
pub fn detach(names: &[String]) -> Result<Vec<String>, XdpError> {
    let all = interfaces::list()?;
    if let Some(name) = names.iter().find(|name| !all.iter().any(|known| known.name == **name)) {
        return Err(XdpError::NoInterface { name: name.clone() });
    }
    let Some(pins) = Pins::find()? else { return Ok(Vec::new()) };
    let Some(id) = program_id(&pins.program())? else { return Ok(Vec::new()) };
    let lock = pins.lock()?;
    pins.sweep(&lock)?;
    let chosen = |interface: &&Interface| {
        interface.program.is_some_and(|program| program.id == id)
            && (names.is_empty() || names.contains(&interface.name))
    };
    let mut done = Vec::new();
    for interface in all.iter().filter(chosen) {
        pins.unlink(interface.index)?;
        done.push(interface.name.clone());
    }
    tidy(&pins)?;
    Ok(done)
}

/// Step 1: loads the program. It is pinned last: where it is, the maps are.
fn load(pins: &Pins) -> Result<(), XdpError> {
    let mut object = Ebpf::load(layout::OBJECT).map_err(XdpError::loading)?;
    let failed = |path: &Path, error: &aya::pin::PinError| XdpError::file("pin", path, io_error(error));
    for (name, path) in [(layout::WHITELIST, pins.whitelist()), (layout::COUNTERS, pins.counters())] {
        let map = object.map(name).ok_or_else(incomplete)?;
        map.pin(&path).map_err(|error| failed(&path, &error))?;
    }
    let program: &mut Xdp = object.program_mut(layout::PROGRAM).ok_or_else(incomplete)?.try_into().map_err(loading)?;
    program.load().map_err(loading)?;
    let path = pins.program();
    program.pin(&path).map_err(|error| failed(&path, &error))
}

/// Step 1: the program that is pinned.
pub(super) fn open_program(pins: &Pins) -> Result<Xdp, XdpError> {
    let path = pins.program();
    let program = Xdp::from_pin(&path, XdpAttachType::Interface);
    program.map_err(|error| XdpError::file("open", path, io_error(&error)))
}

fn loading(error: aya::programs::ProgramError) -> XdpError {
    XdpError::loading(EbpfError::from(error))
}

/// The object lacks what the tests find in it.
fn incomplete() -> XdpError {
    XdpError::loading(EbpfError::NoBTF)
}

/// Step 5: links of interfaces that are gone, and everything where nothing is attached or leased.
fn tidy(pins: &Pins) -> Result<(), XdpError> {
    let id = program_id(&pins.program())?;
    let all = interfaces::list()?;
    let runs = |index: &Index| all.iter().any(|known| known.index == *index && known.program.map(|it| it.id) == id);
    let (alive, dead): (Vec<Index>, Vec<Index>) = pins.links()?.into_iter().partition(runs);
    dead.into_iter().try_for_each(|index| pins.unlink(index))?;
    if !alive.is_empty() {
        return Ok(());
    }
    if let Some(mut whitelist) = Whitelist::open(&pins.whitelist())? {
        whitelist.sweep(&OpenSockets::read()?)?;
        if whitelist.entries()?.iter().any(|(_, entry)| entry.process != 0) {
            return Ok(());
        }
    }
    pins.remove()
}

/// Makes room where somebody else's program is.
fn take_off(interface: &Interface, program: Program) -> Result<(), XdpError> {
    match interfaces::take_off(interface, program) {
        Err(XdpError::Netlink { source, .. }) if Errno::from_io_error(&source) == Some(Errno::BUSY) => {
            Err(XdpError::Held { interface: interface.name.clone(), program: program.id, source })
        }
        result => result,
    }
}

/// The kernel's number for the pinned program; `None` if there is none.
fn program_id(path: &Path) -> Result<Option<u32>, XdpError> {
    match ProgramInfo::from_pin(path) {
        Ok(info) => Ok(Some(info.id())),
        Err(error) if errno(&error) == Some(Errno::NOENT) => Ok(None),
        Err(error) => Err(XdpError::file("open", path, io_error(&error))),
    }
}

/// The counters, over all processors.
pub(super) fn counters(pins: &Pins) -> Result<Counters, XdpError> {
    let path = pins.counters();
    let other_version = || XdpError::OtherVersion { path: path.clone() };
    let Some(map) = open_map(&path)? else { return Ok(Counters::default()) };
    let map: PerCpuArray<_, u64> = PerCpuArray::try_from(map).map_err(|_| other_version())?;
    let mut counted = [0; Counters::COUNT];
    if map.len() as usize != counted.len() {
        return Err(other_version());
    }
    for (index, count) in (0..).zip(&mut counted) {
        let source = |error: aya::maps::MapError| XdpError::file("read", &path, io_error(&error));
        *count = map.get(&index, 0).map_err(source)?.iter().sum();
    }
    Ok(Counters::from_map(counted))
}

/// Removes a pin, if it is there.
fn remove(path: &Path) -> Result<(), XdpError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(XdpError::file("remove", path, error)),
        _ => Ok(()),
    }
}

impl Wanted {
    fn accepts(self, mode: Mode) -> bool {
        match self {
            Wanted::Auto => true,
            Wanted::Native => mode == Mode::Native,
            Wanted::Generic => mode == Mode::Generic,
        }
    }
}
