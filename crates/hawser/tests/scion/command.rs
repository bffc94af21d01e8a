//! The command, and networks that it keeps.

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::traces::{Traces, wait};

/// How long what was told to end may take to be gone.
pub const CLEANUP: Duration = Duration::from_secs(20);

/// `hawser scion` with arguments.
pub fn scion(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hawser"));
    command.arg("scion").args(arguments).env("NO_COLOR", "1").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs it to its end: exit status, and all that it said.
pub fn done(arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = scion(arguments).output().expect("it starts");
    (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

/// A network that goes on in the background. Ended on drop, where the test has not ended it; one owner.
pub struct Kept {
    pub name: String,
    /// The process that keeps it.
    pub pid: u32,
}

impl Kept {
    /// Brings a topology up under a name of this test's own.
    pub fn up(topology: &str, name: &str, options: &[&str]) -> Self {
        let name = format!("{name}{}", std::process::id());
        let (status, said) = done(&[&["net", "up", topology, "--name", &name], options].concat());
        assert_eq!(status, Some(0), "(needs root, and go): {said}");
        let namespace = Self::json(&name)["ases"][0]["namespace"].as_str().expect("a name").to_owned();
        // As `hw-NAME.AS-PID-NUMBER`.
        let pid = namespace.rsplit('-').nth(1).and_then(|pid| pid.parse().ok());
        Self { name, pid: pid.unwrap_or_else(|| panic!("{namespace}")) }
    }

    /// Its status.
    pub fn status(&self) -> Value {
        Self::json(&self.name)
    }

    fn json(name: &str) -> Value {
        let (status, said) = done(&["net", "status", name, "--json"]);
        assert_eq!(status, Some(0), "{said}");
        serde_json::from_str(&said).expect("one JSON object")
    }

    /// Whether nothing of it is left, in time.
    pub fn is_gone(&self) -> bool {
        wait(CLEANUP, || Traces::of(self.pid) == Traces::default())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if Traces::of(self.pid) != Traces::default() {
            // After a panic it may have ended already.
            let _ = done(&["net", "down", &self.name]);
        }
    }
}
