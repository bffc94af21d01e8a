//! What was set in a namespace, and how it is taken back.
//!
//! 1. Each step is done by `ip` or by writing a sysctl, and noted with its opposite.
//! 2. `undo` does the opposites, the last one first. What went by itself (an interface took its routes along) is no
//!    error.
//! 3. Dropped before that, after a step failed, it does the same and only warns.

use std::io::ErrorKind;

use hawser_wire::Namespace;

use crate::error::LabError;

/// What `ip` says of a thing that is not there. Source: rtnetlink(7), the kernel's ESRCH, ENODEV, ENOENT,
/// EADDRNOTAVAIL.
const GONE: [&str; 5] = [
    "No such process",
    "Cannot find device",
    "No such device",
    "No such file or directory",
    "Cannot assign requested address",
];

/// Steps to take back. Starts empty; one owner.
#[derive(Debug, Default)]
pub(super) struct Undo(Vec<Step>);

#[derive(Debug)]
enum Step {
    Ip(Namespace, Vec<String>),
    Sysctl(Namespace, String, String),
}

impl Undo {
    /// Step 1, with the same words but `add` for the opposite `del`.
    ///
    /// # Errors
    /// Where `ip` refuses, or is not there.
    pub(super) fn ip_add(&mut self, namespace: &Namespace, words: &str) -> Result<(), LabError> {
        ip(namespace, words)?;
        let opposite = words.split_whitespace().map(|word| if word == "add" { "del" } else { word });
        self.0.push(Step::Ip(namespace.clone(), opposite.map(str::to_owned).collect()));
        Ok(())
    }

    /// Step 1, for a sysctl below /proc/sys/net.
    ///
    /// # Errors
    /// Where there is no such sysctl, or it refuses the value.
    pub(super) fn sysctl(&mut self, namespace: &Namespace, key: &str, value: &str) -> Result<(), LabError> {
        let before = namespace.sysctl(key)?;
        namespace.set_sysctl(key, value)?;
        self.0.push(Step::Sysctl(namespace.clone(), key.to_owned(), before));
        Ok(())
    }

    /// Step 2.
    ///
    /// # Errors
    /// The first that failed, after all were tried.
    pub(super) fn undo(&mut self) -> Result<(), LabError> {
        let mut first = Ok(());
        while let Some(step) = self.0.pop() {
            let done = step.take_back();
            first = first.and(done);
        }
        first
    }
}

impl Step {
    fn take_back(&self) -> Result<(), LabError> {
        match self {
            Self::Sysctl(namespace, key, value) => Ok(namespace.set_sysctl(key, value)?),
            Self::Ip(namespace, words) => match ip(namespace, &words.join(" ")) {
                Err(LabError::Refused { said, .. }) if GONE.iter().any(|gone| said.contains(gone)) => Ok(()),
                done => done.map(|_| ()),
            },
        }
    }
}

/// Step 3.
impl Drop for Undo {
    fn drop(&mut self) {
        if let Err(error) = self.undo() {
            tracing::warn!(%error, "something that a contender set was left");
        }
    }
}

/// Runs `ip` with these words in a namespace, and gives its standard output.
///
/// # Errors
/// [`LabError::Refused`] with what it said.
pub(super) fn ip(namespace: &Namespace, words: &str) -> Result<String, LabError> {
    let action = || format!("ip {words} in {}", namespace.name());
    let output = namespace.command("ip").args(words.split_whitespace()).output();
    let output = output.map_err(|error| match error.kind() {
        ErrorKind::NotFound => LabError::Missing { what: "ip".to_owned(), hint: "apt-get install iproute2".to_owned() },
        _ => LabError::system(action(), error),
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(LabError::Refused { action: action(), said })
}
