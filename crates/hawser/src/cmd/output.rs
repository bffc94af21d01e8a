//! Standard output, and what daemons say there.

use std::io::{self, Write};

use hawser_portal::api::ClientError;
use serde::Serialize;

use crate::failure::Failure;

/// Writes to standard output, at once.
pub(super) fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// Prints a command's result.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    match write(text) {
        // Whoever reads only the first lines (`| head`) has what they wanted.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::failed(format!("print: {error}"))),
        _ => Ok(()),
    }
}

/// What a daemon says of itself: as JSON, or as people read it.
pub(super) fn shown<S: Serialize>(status: &S, json: bool, table: fn(&S) -> String) -> Result<String, Failure> {
    if !json {
        return Ok(table(status));
    }
    let text = serde_json::to_string_pretty(status).map_err(Failure::failed)?;
    Ok(format!("{text}\n"))
}

/// A daemon did not answer: by which command it is started, and by which it was asked.
pub(super) fn unanswered(error: ClientError, start: &str, ask: &str) -> Failure {
    let hint = match &error {
        ClientError::NotRunning { .. } => {
            Some(format!("start one: hawser {start} -c FILE; if it has another socket: --socket PATH"))
        }
        ClientError::NotAllowed { .. } => Some(format!("ask as root or as the socket's group: sudo hawser {ask}")),
        _ => None,
    };
    Failure::hinted(hint, error)
}
