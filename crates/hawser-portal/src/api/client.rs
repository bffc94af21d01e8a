//! Asks a running portal.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::{Deed, Document, Done, Events, Flows, History, HistoryQuestion, Program, Refusal, Request, Status};

/// How long a portal may take to answer: it does so from memory, at once, but for what it has to count for a second first.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest answer, in bytes: thousands of peers, and no flood from something that is no portal.
const ANSWER_LIMIT: u64 = 16 << 20;

/// Why a portal was not asked, or did not answer.
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
    /// The portal would not answer.
    #[error("ask {program} at {}: it refused: {reason}", path.display())]
    Refused {
        /// Who was asked.
        program: Program,
        /// The socket.
        path: PathBuf,
        /// In the portal's words.
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

/// Asks portals; has no state.
#[derive(Clone, Copy, Debug)]
pub struct Client;

impl Client {
    /// The status of the portal whose control socket is `path`. Blocks for at most some seconds.
    ///
    /// # Errors
    /// [`ClientError`] where nobody listens, this user may not ask, or the answer is no status.
    pub fn status(path: &Path) -> Result<Status, ClientError> {
        Self::status_of(Program::Portal, path)
    }

    /// The largest flows of the last second. Where nobody asked lately, the portal begins to count them, which takes a second.
    ///
    /// # Errors
    /// As [`Client::status`].
    pub fn flows(path: &Path) -> Result<Flows, ClientError> {
        Self::ask(Program::Portal, path, Request::Get(Document::Flows))
    }

    /// Has the portal read its configuration again. Blocks for at most some seconds.
    ///
    /// # Errors
    /// As [`Client::status`]; [`ClientError::Refused`] where the configuration has faults: the old one stays in force.
    pub fn reload(path: &Path) -> Result<(), ClientError> {
        Self::order(path, Deed::Reload).map(|_| ())
    }

    /// Has the portal do something; what came of it, where it is more than that it was done.
    ///
    /// # Errors
    /// As [`Client::reload`].
    pub fn order(path: &Path, deed: Deed) -> Result<Option<serde_json::Value>, ClientError> {
        Self::ask(Program::Portal, path, Request::Do(deed)).map(|Done { result, .. }| result)
    }

    /// The events with a larger number than `since`.
    ///
    /// # Errors
    /// As [`Client::status`].
    pub fn events(path: &Path, since: u64) -> Result<Events, ClientError> {
        Self::ask(Program::Portal, path, Request::Get(Document::Events { since }))
    }

    /// What paths did.
    ///
    /// # Errors
    /// As [`Client::status`].
    pub fn history(path: &Path, question: HistoryQuestion) -> Result<History, ClientError> {
        Self::ask(Program::Portal, path, Request::Get(Document::History(question)))
    }

    /// The same of any program, with its own document.
    ///
    /// # Errors
    /// As [`Client::status`].
    pub fn status_of<S: DeserializeOwned>(program: Program, path: &Path) -> Result<S, ClientError> {
        Self::ask(program, path, Request::Get(Document::Status))
    }

    fn ask<S: DeserializeOwned>(program: Program, path: &Path, request: Request) -> Result<S, ClientError> {
        let stream = UnixStream::connect(path).map_err(|source| not_connected(program, path, source))?;
        let answer = exchange(stream, request).map_err(|source| ClientError::Exchange {
            program,
            path: path.to_owned(),
            source,
        })?;
        if let Ok(Refusal { error }) = serde_json::from_str(&answer) {
            return Err(ClientError::Refused { program, path: path.to_owned(), reason: error });
        }
        serde_json::from_str(&answer).map_err(|source| ClientError::Malformed {
            program,
            path: path.to_owned(),
            source,
        })
    }
}

fn not_connected(program: Program, path: &Path, source: io::Error) -> ClientError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => ClientError::NotRunning { program, path, source },
        io::ErrorKind::PermissionDenied => ClientError::NotAllowed { program, path, source },
        _ => ClientError::Exchange { program, path, source },
    }
}

/// One question, one line of answer.
fn exchange(mut stream: UnixStream, request: Request) -> io::Result<String> {
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    let mut line = serde_json::to_string(&request)?;
    line.push('\n');
    stream.write_all(line.as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream.take(ANSWER_LIMIT)).read_line(&mut answer)?;
    if answer.is_empty() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it hung up"));
    }
    Ok(answer)
}
