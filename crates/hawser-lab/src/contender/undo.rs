//! What was set in a namespace, and how it is taken back.
//!
//! 1. Each step is done, by `ip` or by writing a sysctl mostly, and noted with its opposite.
//! 2. `undo` does the opposites, the last one first. What went by itself (an interface took its routes along) is no
//!    error.
//! 3. Dropped before that, after a step failed, it does the same and only warns.

use hawser_wire::Namespace;

use super::LabError;

/// What `ip` says of a thing that is not there. Source: rtnetlink(7), the kernel's ESRCH, ENODEV, ENOENT,
/// EADDRNOTAVAIL.
const GONE: [&str; 5] = [
    "No such process",
    "Cannot find device",
    "No such device",
    "No such file or directory",
    "Cannot assign requested address",
];

/// Opposites of steps. Starts empty; one owner.
#[derive(Default)]
pub(super) struct Undo(Vec<Box<dyn FnOnce() -> Result<(), LabError> + Send>>);

impl Undo {
    /// Step 1, with the same words but `add` for the opposite `del`.
    pub(super) fn ip_add(&mut self, namespace: &Namespace, words: &str) -> Result<(), LabError> {
        ip(namespace, words)?;
        let opposite = words.split_whitespace().map(|word| if word == "add" { "del" } else { word });
        let (namespace, opposite) = (namespace.clone(), opposite.collect::<Vec<_>>().join(" "));
        self.push(move || match ip(&namespace, &opposite) {
            Err(LabError::Refused { said, .. }) if GONE.iter().any(|gone| said.contains(gone)) => Ok(()),
            done => done,
        });
        Ok(())
    }

    /// Step 1, for a sysctl below /proc/sys/net.
    pub(super) fn sysctl(&mut self, namespace: &Namespace, key: &str, value: &str) -> Result<(), LabError> {
        let before = namespace.sysctl(key)?;
        namespace.set_sysctl(key, value)?;
        let (namespace, key) = (namespace.clone(), key.to_owned());
        self.push(move || Ok(namespace.set_sysctl(&key, &before)?));
        Ok(())
    }

    /// Notes the opposite of a step that was done otherwise.
    pub(super) fn push(&mut self, opposite: impl FnOnce() -> Result<(), LabError> + Send + 'static) {
        self.0.push(Box::new(opposite));
    }

    /// Step 2; its error is the first that failed, after all were tried.
    pub(super) fn undo(&mut self) -> Result<(), LabError> {
        let mut first = Ok(());
        while let Some(opposite) = self.0.pop() {
            first = first.and(opposite());
        }
        first
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

/// Runs `ip` with these words in a namespace; [`LabError::Refused`] with what it said.
fn ip(namespace: &Namespace, words: &str) -> Result<(), LabError> {
    let action = format!("ip {words} in {}", namespace.name());
    let output = namespace.command("ip").args(words.split_whitespace()).output();
    let output = output.map_err(|error| LabError::program(&*action, error, ["ip", "apt-get install iproute2"]))?;
    if output.status.success() {
        return Ok(());
    }
    Err(LabError::Refused { action, said: String::from_utf8_lossy(&output.stderr).trim().to_owned() })
}
