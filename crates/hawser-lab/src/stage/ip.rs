//! Routes and rules, by iproute2: one process sets all of a namespace's.

use std::io::{self, Write as _};
use std::process::{Command, Stdio};

use hawser_wire::Namespace;

use crate::error::LabError;
use crate::scenario::Family;

/// Runs commands of `ip`, one a line, as `route replace 10.0.0.0/8 via 10.1.0.1`; stops at the first that fails. It
/// takes the family from the addresses.
pub(super) fn batch(namespace: &Namespace, lines: &[String]) -> Result<(), LabError> {
    run("set routes", &[], namespace, lines)
}

/// The same of rules, which do not tell their family.
pub(super) fn batch_of(family: Family, namespace: &Namespace, lines: &[String]) -> Result<(), LabError> {
    run("set rules", &[if family == Family::V4 { "-4" } else { "-6" }], namespace, lines)
}

/// The same, where some of it may be gone already: goes on after a line that fails.
pub(super) fn batch_where_there(namespace: &Namespace, lines: &[String]) -> Result<(), LabError> {
    match run("undo routes", &["-force"], namespace, lines) {
        Err(LabError::System { source, .. }) if source.kind() == io::ErrorKind::Other => Ok(()),
        other => other,
    }
}

fn run(action: &str, options: &[&str], namespace: &Namespace, lines: &[String]) -> Result<(), LabError> {
    if lines.is_empty() {
        return Ok(());
    }
    let mut command = namespace.command("ip");
    command.args(options).args(["-batch", "-"]);
    feed(&format!("{action} in {}", namespace.name()), command, &format!("{}\n", lines.join("\n")))
}

/// Runs a program that reads what to do from its standard input. Where it fails, the error's kind is `Other`, with what
/// it said.
pub(crate) fn feed(action: &str, mut command: Command, input: &str) -> Result<(), LabError> {
    let system = |error| LabError::system(action, error);
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = piped.spawn().map_err(system)?;
    // It is closed at the statement's end, and so the program ends. Where it does not read, it says why.
    let written = child.stdin.take().map_or(Ok(()), |mut pipe| pipe.write_all(input.as_bytes()));
    let output = child.wait_with_output().map_err(system)?;
    if output.status.success() {
        return written.map_err(system);
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(system(io::Error::other(said)))
}
