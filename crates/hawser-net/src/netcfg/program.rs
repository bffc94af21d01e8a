//! Programs of the system that configure it for us: where they are, and how one is run.
//!
//! 1. [`find`] looks where such programs belong. 2. [`run`] starts it in the calling thread's network namespace, with
//!    an environment of its own, and waits for its end.

use std::{
    io,
    path::PathBuf,
    process::{Output, Stdio},
    time::Duration,
};

use rustix::{fs::Mode, process::umask};
use tokio::{io::AsyncWriteExt, process::Command};

use crate::powers::lending;

/// Where programs are (hier(7); the last is NixOS's). PATH is not asked: what it names would get CAP_NET_ADMIN.
const PLACES: [&str; 5] = ["/usr/sbin", "/sbin", "/usr/bin", "/usr/local/sbin", "/run/current-system/sw/bin"];
/// All of its environment: its words are read here, in English, please.
const ENVIRONMENT: [(&str, &str); 2] = [("LC_ALL", "C"), ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")];
/// A portal's own umask keeps others out (contrib/systemd/hawser.service); what programs write for a name server on
/// this host, say, is for all.
const FOR_ALL_TO_READ: Mode = Mode::from_raw_mode(0o022);
/// It has this long: it takes milliseconds, and seconds with the rulesets of others in the thousands.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Why a program did not end by itself. There is no default. Owned data only.
#[derive(Debug)]
pub(super) enum ProgramError {
    /// It is not installed.
    Missing,
    /// It could not be run.
    NotRun(io::Error),
    /// It did not end.
    Silent,
}

/// Whether a program gets CAP_NET_ADMIN. Plain value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lent {
    /// It does.
    NetAdmin,
    /// It gets nothing: it runs what others put beside it.
    Nothing,
}

/// Step 1: none where it is not installed.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    PLACES.iter().map(|place| PathBuf::from(place).join(name)).find(|path| path.exists())
}

/// Step 2.
pub(super) async fn run(name: &str, arguments: &[&str], input: &str, lent: Lent) -> Result<Output, ProgramError> {
    let mut command = Command::new(find(name).ok_or(ProgramError::Missing)?);
    command.args(arguments).env_clear().envs(ENVIRONMENT).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let for_all_to_read = || {
        umask(FOR_ALL_TO_READ);
        Ok(())
    };
    // SAFETY: between fork and exec this makes one system call (umask), which cannot fail; it neither allocates nor
    // takes a lock.
    unsafe { command.pre_exec(for_all_to_read) };
    let spawned = match lent {
        Lent::NetAdmin => lending(|| command.spawn()),
        Lent::Nothing => command.spawn(),
    };
    let mut child = spawned.map_err(ProgramError::NotRun)?;
    let stdin = child.stdin.take().ok_or_else(|| ProgramError::NotRun(io::ErrorKind::BrokenPipe.into()));
    let mut stdin = stdin?;
    let whole = async {
        // A child that ends without reading says why on standard error.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        child.wait_with_output().await
    };
    let ended = tokio::time::timeout(PATIENCE, whole).await.map_err(|_| ProgramError::Silent)?;
    ended.map_err(ProgramError::NotRun)
}

/// The first line that it said.
pub(super) fn first_line(said: &str) -> &str {
    said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it does not say why")
}
