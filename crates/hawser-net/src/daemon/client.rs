//! Asks a running daemon.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Program, Refusal};

/// How long a daemon may take to answer: it does so from memory, at once, but for what it has to count for a second
/// first.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest answer, in bytes: thousands of peers, and no flood from something that is no daemon.
const ANSWER_LIMIT: u64 = 16 << 20;

/// Why a daemon was not asked, or did not answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens on the socket.
    #[error("ask {program} at {}: no {program} is running there", path.display())]
    NotRunning {
        /// Who was asked.
        program: Program,
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The socket is not for this user.
    #[error("ask {program} at {}", path.display())]
    NotAllowed {
        /// Who was asked.
        program: Program,
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The exchange failed.
    #[error("ask {program} at {}", path.display())]
    Exchange {
        /// Who was asked.
        program: Program,
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It would not answer.
    #[error("ask {program} at {}: it refused: {reason}", path.display())]
    Refused {
        /// Who was asked.
        program: Program,
        /// The socket.
        path: PathBuf,
        /// In its words.
        reason: String,
    },
    /// The answer is not a status.
    #[error("ask {program} at {}: the answer is no status (is it another version?)", path.display())]
    Malformed {
        /// Who was asked.
        program: Program,
        /// The socket.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// Asks who answers at `path` one question. Blocks for at most some seconds.
///
/// # Errors
/// [`ClientError`] where nobody listens, this user may not ask, it refuses, or the answer is no `S`.
pub fn ask<S: DeserializeOwned>(program: Program, path: &Path, request: &impl Serialize) -> Result<S, ClientError> {
    let path = path.to_owned();
    let stream = match UnixStream::connect(&path) {
        Ok(stream) => stream,
        Err(source) => return Err(not_connected(program, path, source)),
    };
    let answer = match exchange(stream, request) {
        Ok(answer) => answer,
        Err(source) => return Err(ClientError::Exchange { program, path, source }),
    };
    if let Ok(Refusal { error }) = serde_json::from_str(&answer) {
        return Err(ClientError::Refused { program, path, reason: error });
    }
    serde_json::from_str(&answer).map_err(|source| ClientError::Malformed { program, path, source })
}

fn not_connected(program: Program, path: PathBuf, source: io::Error) -> ClientError {
    match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => ClientError::NotRunning { program, path, source },
        io::ErrorKind::PermissionDenied => ClientError::NotAllowed { program, path, source },
        _ => ClientError::Exchange { program, path, source },
    }
}

/// One question, one line of answer.
fn exchange(mut stream: UnixStream, request: &impl Serialize) -> io::Result<String> {
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    let mut line = serde_json::to_string(request)?;
    line.push('\n');
    stream.write_all(line.as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream.take(ANSWER_LIMIT)).read_line(&mut answer)?;
    if answer.is_empty() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it hung up"));
    }
    Ok(answer)
}
