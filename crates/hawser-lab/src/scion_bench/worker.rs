//! An end's process, and the file that it is given.
//!
//! The process says `ready`, does its work, and says in a line of JSON what that was. The file is in memory: others
//! open it by a path, and it goes with this process whatever ends it.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use hawser_wire::Namespace;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};
use ring::digest::{Context, SHA256};
use rustix::fs::{MemfdFlags, memfd_create};

use super::figures::Count;
use crate::cleanup::{Folder, GRACE};
use crate::error::LabError;
use crate::process::Process;
use crate::wait::until;

/// How often a process that is to end is looked at.
const GLANCE: Duration = Duration::from_millis(5);
/// How long an end may take to start, and to tell what it counted.
const PATIENCE: Duration = Duration::from_secs(15);
/// What an end says when its peer may start.
const READY: &str = "ready";
/// This executable's command for ends of our own.
pub(crate) const OWN: [&str; 2] = ["scion", "blast"];
/// Bytes that are made or read at once.
const CHUNK: usize = 1 << 20;
/// What random bytes come from.
const SEED: u64 = 1;

/// A running end. Ended on drop; one owner.
#[derive(Debug)]
pub(crate) struct Worker {
    process: Process,
    /// What it says, line by line; ends with it.
    lines: Receiver<String>,
}

impl Worker {
    /// Starts it in a namespace, and waits until its peer may start. Must be called from a thread that outlives it.
    pub fn start(
        name: &str,
        namespace: &Namespace,
        program: &Path,
        arguments: &[String],
        folder: &Folder,
    ) -> Result<Self, LabError> {
        let mut command = namespace.command(&program.to_string_lossy());
        command.args(arguments);
        let mut process = Process::launch(name, command, Stdio::piped(), folder)?;
        let (say, lines) = channel();
        let said = process.output().into_iter().flat_map(|output| BufReader::new(output).lines());
        thread::spawn(move || said.map_while(Result::ok).try_for_each(|line| say.send(line)));
        let mut worker = Self { process, lines };
        let said = worker.line(PATIENCE)?;
        if said == READY { Ok(worker) } else { Err(worker.process.fault(format!("it said {said:?}, not {READY:?}"))) }
    }

    /// Tells it to end.
    pub fn stop(&mut self) {
        self.process.tell_to_end();
    }

    /// Waits until it is done, which takes this long at most, and gives what it counted.
    pub fn finish(mut self, time: Duration) -> Result<Count, LabError> {
        let said = self.line(PATIENCE + time)?;
        let wrong = |error| self.process.fault(format!("it said {said:?}: {error}"));
        let count = serde_json::from_str(&said).map_err(wrong)?;
        self.process.finish(GRACE)?;
        Ok(count)
    }

    fn line(&mut self, patience: Duration) -> Result<String, LabError> {
        self.lines.recv_timeout(patience).or_else(|error| {
            if error == RecvTimeoutError::Disconnected {
                until(GRACE, GLANCE, || self.process.ended())?;
                self.process.check()?;
            }
            Err(self.process.fault(format!("it said nothing for {} s", patience.as_secs())))
        })
    }
}

/// A file in memory. Gone on drop; may be read from any process while it is there.
#[derive(Debug)]
pub(crate) struct MemoryFile(File);

impl MemoryFile {
    /// Of this many zero bytes.
    pub fn empty(bytes: u64) -> Result<Self, LabError> {
        let file = memfd_create("hawser-bench", MemfdFlags::CLOEXEC).map_err(failed)?;
        let file = File::from(file);
        file.set_len(bytes).map_err(failed)?;
        Ok(Self(file))
    }

    /// Of this many random bytes, always the same.
    pub fn random(bytes: u64) -> Result<Self, LabError> {
        let made = Self::empty(bytes)?;
        let mut random = ChaCha8Rng::seed_from_u64(SEED);
        let mut chunk = vec![0; CHUNK];
        for _ in 0..bytes.div_ceil(CHUNK as u64) {
            random.fill_bytes(&mut chunk);
            (&made.0).write_all(&chunk).map_err(failed)?;
        }
        made.0.set_len(bytes).map_err(failed)?;
        Ok(made)
    }

    /// Where others open it. Source: proc_pid_fd(5).
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()))
    }

    /// That what arrived is what was sent, by the SHA-256 of all of it.
    pub fn check(&self, sent: &Self) -> Result<(), LabError> {
        let reason = "another file arrived than was sent".to_owned();
        if self.hash()? == sent.hash()? { Ok(()) } else { Err(LabError::refused("measure file", reason)) }
    }

    fn hash(&self) -> Result<Vec<u8>, LabError> {
        let mut file = &self.0;
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
    fn a_file_is_had_by_its_path_and_known_by_its_bytes() {
        let (sent, arrived) = (MemoryFile::random(3_000_000), MemoryFile::empty(3_000_000));
        let (sent, arrived) = (sent.expect("there is memory"), arrived.expect("there is memory"));
        let read = std::fs::read(sent.path()).expect("it opens");
        assert_eq!(read.len(), 3_000_000);
        assert!(arrived.check(&sent).is_err(), "zeros");
        std::fs::write(arrived.path(), &read).expect("it opens");
        arrived.check(&sent).expect("what others write is in it");
    }
}
