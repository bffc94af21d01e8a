//! Standard output.

use std::io::{self, Write};

use crate::failure::Failure;

/// Prints a command's result.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // Whoever reads only the first lines (`| head`) has what they wanted.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::failed(format!("print: {error}"))),
        _ => Ok(()),
    }
}
