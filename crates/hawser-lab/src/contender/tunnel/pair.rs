//! Programs at both ends: where they are, with what was written and set for them.
//!
//! 1. Files go to a folder that only root can read.
//! 2. A program starts in its end's namespace; its device is brought up once it is there.
//! 3. At the end programs are told to end, what was set is taken back, and the folder goes.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_wire::Namespace;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use ring::digest::{SHA256, digest};

use crate::cleanup::Folder;
use crate::contender::Program;
use crate::contender::undo::Undo;
use crate::error::LabError;
use crate::portals::write_private;
use crate::process::Process;
use crate::wait::until;

/// How long a program may take to make its device or to end by itself, and how often we look.
const PATIENCE: Duration = Duration::from_secs(10);
const GLANCE: Duration = Duration::from_millis(10);

/// What the variable that names a program begins with.
const VARIABLE: &str = "HAWSER_LAB_";

/// The programs of both ends. Starts empty; what it holds goes on drop. One owner.
pub(super) struct Pair {
    kind: &'static str,
    // Programs go before what was set for them, and that before their files.
    pub programs: Vec<(&'static str, Process)>,
    pub undo: Undo,
    pub folder: Folder,
}

/// What an end shows the other. Plain data.
pub(super) struct Certificate {
    /// Files of the certificate and of its key, in PEM (RFC 7468).
    pub files: [String; 2],
    /// SHA-256 of the certificate, bytes in hexadecimal with colons.
    pub fingerprint: String,
}

impl Pair {
    pub(super) fn new(kind: &'static str) -> Result<Self, LabError> {
        Ok(Self { kind, programs: Vec::new(), undo: Undo::default(), folder: Folder::new()? })
    }

    /// Step 1: a file of this text; its path.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<String, LabError> {
        let path = self.folder.path().join(name);
        write_private(&path, text)
            .map_err(|error| LabError::system(format!("write {name} for {}", self.kind), error))?;
        Ok(path.to_string_lossy().into_owned())
    }

    /// Step 1: a certificate of an end's, self-signed and made anew each time.
    pub(super) fn certify(&self, role: &str) -> Result<Certificate, LabError> {
        let failed = |error| LabError::system("make a certificate", std::io::Error::other(error));
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed([role.to_owned()]).map_err(failed)?;
        let certificate = self.write(&format!("{role}.crt"), &cert.pem())?;
        let key = self.write(&format!("{role}.key"), &signing_key.serialize_pem())?;
        let bytes = digest(&SHA256, cert.der());
        let fingerprint: Vec<_> = bytes.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
        Ok(Certificate { files: [certificate, key], fingerprint: fingerprint.join(":") })
    }

    /// Step 2.
    pub(super) fn start<'a>(
        &mut self,
        role: &'static str,
        namespace: &Namespace,
        program: &Path,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), LabError> {
        let arguments: Vec<_> = arguments.into_iter().collect();
        let file = program.file_name().unwrap_or_default().to_string_lossy();
        let process = Process::start(&format!("{role} {file}"), namespace, program, &arguments, &self.folder)?;
        self.programs.push((role, process));
        Ok(())
    }

    /// Runs a program to its end, seeing the same /run as the others.
    pub(super) fn run(&self, namespace: &Namespace, program: &Path, arguments: &[&str]) -> Result<(), LabError> {
        let name = format!("{} {}", self.kind, arguments.first().copied().unwrap_or_default());
        Process::start(&name, namespace, program, arguments, &self.folder)?.finish(PATIENCE)
    }

    /// Step 2: waits for the device that an end's program makes.
    pub(super) fn bring_up(&mut self, role: &str, namespace: &Namespace, device: &str) -> Result<(), LabError> {
        let mut refusal = String::new();
        let up = until(PATIENCE, GLANCE, || {
            let up = namespace.set_up(device).inspect_err(|error| refusal = error.to_string());
            up.map_or_else(|_| self.check().map(|()| None), |()| Ok(Some(())))
        })?;
        up.ok_or_else(|| self.fault(format!("its {role} end made no device {device}: {refusal}")))
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

    /// All of them, with the processes that they started and that run still.
    pub(super) fn programs(&self) -> Vec<Program> {
        let pids = self.programs.iter().map(|(role, process)| (*role, process.family()));
        pids.flat_map(|(role, pids)| pids.into_iter().map(move |pid| Program { role, pid })).collect()
    }

    /// Step 3.
    pub(super) fn end(self) -> Result<(), LabError> {
        let Self { programs, mut undo, folder: _folder, .. } = self;
        drop(programs);
        undo.undo()
    }
}

/// The program of a contender: what an option names, or the variable for its kind, or that of this name on the PATH.
/// Where it is missing, the error says how it is named.
pub(super) fn find(kind: &str, (option, told): (&str, Option<&Path>), name: &str) -> Result<PathBuf, LabError> {
    let variable = VARIABLE.to_owned() + &kind.to_uppercase().replace('-', "_");
    let told = told.map(Path::to_owned).or_else(|| env::var_os(&variable).map(PathBuf::from));
    let found = match &told {
        Some(told) => told.is_file().then(|| told.clone()),
        None => on_path(name, &env::var_os("PATH").unwrap_or_default()),
    };
    found.ok_or_else(|| {
        let what = told.map_or_else(|| name.to_owned(), |told| told.display().to_string());
        let hint = format!("install {kind}, or name its program: option `{option}`, or {variable}");
        LabError::Missing { what, hint }
    })
}

fn on_path(name: &str, path: &std::ffi::OsStr) -> Option<PathBuf> {
    env::split_paths(path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_missing_by_name() {
        let error = find("mlvpn-rs", ("program", None), "a-program-nobody-has").expect_err("nobody has it");
        assert_eq!(error.to_string(), "a-program-nobody-has is missing");
        let hint = "install mlvpn-rs, or name its program: option `program`, or HAWSER_LAB_MLVPN_RS";
        assert_eq!(error.hint(), Some(hint));
        let told = find("mlvpn", ("program", Some(Path::new("/nowhere/mlvpn"))), "sh").expect_err("not there");
        assert_eq!(told.to_string(), "/nowhere/mlvpn is missing", "what was told goes before the PATH");
    }

    #[test]
    fn a_program_is_found_on_the_path_in_its_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let (first, second) = (folder.path().join("1"), folder.path().join("2"));
        for place in [&first, &second] {
            std::fs::create_dir(place).and_then(|()| std::fs::write(place.join("it"), "")).expect("written");
        }
        let path = env::join_paths([Path::new("/nowhere"), &second, &first]).expect("no colons");
        assert_eq!(on_path("it", &path), Some(second.join("it")));
        assert_eq!(on_path("another", &path), None);
    }
}
