//! A file in memory, which other processes open by a path, and which goes with this process whatever ends it.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};
use ring::digest::{Context, SHA256};
use rustix::fs::{MemfdFlags, memfd_create};

use crate::error::LabError;

/// Bytes that are made or read at once.
const CHUNK: usize = 1 << 20;

/// A file in memory. Gone on drop; may be read from any process while it is there.
#[derive(Debug)]
pub(crate) struct MemoryFile {
    file: File,
    bytes: u64,
}

impl MemoryFile {
    /// Of this many zero bytes.
    pub fn empty(bytes: u64) -> Result<Self, LabError> {
        let file = memfd_create("hawser-bench", MemfdFlags::CLOEXEC).map_err(failed)?;
        let file = File::from(file);
        file.set_len(bytes).map_err(failed)?;
        Ok(Self { file, bytes })
    }

    /// Of this many random bytes.
    pub fn random(bytes: u64, seed: u64) -> Result<Self, LabError> {
        let made = Self::empty(bytes)?;
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut chunk = vec![0; CHUNK];
        let mut left = bytes;
        while left > 0 {
            let some = &mut chunk[..usize::try_from(left).unwrap_or(CHUNK).min(CHUNK)];
            random.fill_bytes(some);
            (&made.file).write_all(some).map_err(failed)?;
            left -= some.len() as u64;
        }
        Ok(made)
    }

    /// How long it is.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where others open it. Source: proc_pid_fd(5).
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()))
    }

    /// That what arrived is what was sent.
    pub fn check(&self, sent: &Self) -> Result<(), LabError> {
        let reason = "another file arrived than was sent".to_owned();
        if self.hash()? == sent.hash()? { Ok(()) } else { Err(LabError::NoFigure { figure: "file", reason }) }
    }

    /// The SHA-256 of all of it.
    pub fn hash(&self) -> Result<Vec<u8>, LabError> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let mut context = Context::new(&SHA256);
        let mut chunk = vec![0; CHUNK];
        loop {
            match file.read(&mut chunk).map_err(failed)? {
                0 => return Ok(context.finish().as_ref().to_vec()),
                some => context.update(&chunk[..some]),
            }
        }
    }
}

fn failed(error: impl Into<io::Error>) -> LabError {
    LabError::system("keep a file in memory", error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_by_its_path_and_known_by_its_hash() {
        let [one, same, other] = [(3_000_000, 7), (3_000_000, 7), (3_000_000, 8)]
            .map(|(bytes, seed)| MemoryFile::random(bytes, seed).expect("there is memory"));
        let read = std::fs::read(one.path()).expect("it opens");
        assert_eq!(read.len(), 3_000_000);
        assert_eq!(one.hash().expect("it reads"), same.hash().expect("it reads"));
        assert_ne!(one.hash().expect("it reads"), other.hash().expect("it reads"));
    }

    #[test]
    fn what_others_write_is_in_it() {
        let file = MemoryFile::empty(5).expect("there is memory");
        std::fs::write(file.path(), b"hello").expect("it opens");
        assert_eq!(std::fs::read(file.path()).expect("it opens"), b"hello");
    }
}
