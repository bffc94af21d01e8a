//! Programs at both ends, with what was written and set for them.
//!
//! 1. Files go to a folder that only root can read.
//! 2. A program starts in its end's namespace; its device is brought up once it is there.
//! 3. At the end programs are told to end, what was set is taken back, and the folder goes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hawser_wire::Namespace;
use rustix::process::Pid;

use crate::cleanup::{self, Folder};
use crate::contender::undo::Undo;
use crate::error::LabError;
use crate::portals::write_private;
use crate::process::Process;
use crate::wait::until;

/// How long a program may take to make its device or to end by itself, and how often we look.
const PATIENCE: Duration = Duration::from_secs(10);
const GLANCE: Duration = Duration::from_millis(10);

/// The programs of both ends. Starts empty; what it holds goes on drop. One owner.
pub(super) struct Pair {
    kind: &'static str,
    // Programs go before what was set for them, and that before their files.
    pub programs: Vec<(&'static str, Process)>,
    pub undo: Undo,
    pub folder: Folder,
}

impl Pair {
    pub(super) fn new(kind: &'static str) -> Result<Self, LabError> {
        let _making = cleanup::making();
        Ok(Self { kind, programs: Vec::new(), undo: Undo::default(), folder: Folder::new()? })
    }

    /// Step 1: a file of this text; its path.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf, LabError> {
        let path = self.folder.path().join(name);
        write_private(&path, text)
            .map_err(|error| LabError::system(format!("write {name} for {}", self.kind), error))?;
        Ok(path)
    }

    /// Step 2.
    pub(super) fn start<'a>(
        &mut self,
        role: &'static str,
        namespace: &Namespace,
        program: &Path,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), LabError> {
        let _making = cleanup::making();
        let arguments: Vec<_> = arguments.into_iter().collect();
        let file = program.file_name().unwrap_or_default().to_string_lossy();
        let process = Process::start(&format!("{role} {file}"), namespace, program, &arguments, &self.folder)?;
        self.programs.push((role, process));
        Ok(())
    }

    /// Runs a program to its end, seeing the same /run as the others.
    pub(super) fn run(&self, namespace: &Namespace, program: &Path, arguments: &[&str]) -> Result<(), LabError> {
        let making = cleanup::making();
        let name = format!("{} {}", self.kind, arguments.first().copied().unwrap_or_default());
        let mut process = Process::start(&name, namespace, program, arguments, &self.folder)?;
        drop(making);
        match until(PATIENCE, GLANCE, || process.ended())? {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(process.fault(format!("it ended: {status}"))),
            None => Err(process.fault("it did not end")),
        }
    }

    /// Step 2: waits for the device that an end's program makes.
    pub(super) fn bring_up(&mut self, role: &str, namespace: &Namespace, device: &str) -> Result<(), LabError> {
        let late = Instant::now() + PATIENCE;
        while let Err(error) = namespace.set_up(device) {
            self.check()?;
            if Instant::now() > late {
                return Err(self.fault(format!("its {role} end made no device {device}: {error}")));
            }
            std::thread::sleep(GLANCE);
        }
        Ok(())
    }

    /// Whether all still run.
    pub(super) fn check(&mut self) -> Result<(), LabError> {
        self.programs.iter_mut().try_for_each(|(_, process)| process.check())
    }

    /// An error that tells what all of them said.
    pub(super) fn fault(&self, fault: impl Into<String>) -> LabError {
        let logs = self.programs.iter().map(|(role, process)| format!("{role}:\n{}", process.log_end()));
        let log = logs.collect::<Vec<_>>().join("\n");
        LabError::Process { process: self.kind.to_owned(), fault: fault.into(), log }
    }

    /// Their roles and ids, with those of the processes that they started and that run still.
    pub(super) fn programs(&self) -> impl Iterator<Item = (&'static str, Pid)> {
        self.programs.iter().flat_map(|(role, process)| process.family().into_iter().map(|pid| (*role, pid)))
    }

    /// Step 3.
    pub(super) fn end(self) -> Result<(), LabError> {
        let Self { programs, mut undo, folder: _folder, .. } = self;
        drop(programs);
        undo.undo()
    }
}
