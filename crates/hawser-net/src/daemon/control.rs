//! Answers on the control socket.
//!
//! 1. [`ControlSocket::bind`] takes the place of a dead process' socket, never of a live one's.
//! 2. [`ControlSocket::serve`] answers each connection in a task of its own, a bounded number of them.
//! 3. Dropping it removes the socket.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net as std_net;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Mode, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use serde::Serialize;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{Program, Refusal};

/// Owner and group may ask.
const SOCKET_MODE: u32 = 0o660;
/// Everybody may look into the folder made for the socket.
const FOLDER_MODE: u32 = 0o755;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 16;
/// Connections answered at a time; further ones wait.
const CONNECTIONS_MAX: usize = 16;
/// A connection without a question for this long is closed, so that idle ones do not keep others out.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause after a failed accept (out of file descriptors), so that it does not become a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Longest question, in bytes: far more than any question there is, so that memory stays bounded.
const REQUEST_LIMIT: u64 = 4096;

/// Who answers. Shared by the tasks of connections.
pub trait Answer: Send + Sync + 'static {
    /// A question, as it was read.
    type Request: Send;

    /// Reads a question, so that what is wrong with it is told.
    ///
    /// # Errors
    /// It is none.
    fn parse(line: &[u8]) -> Result<Self::Request, serde_json::Error>;

    /// The answer as JSON; or why there is none, in words.
    fn answer(&self, request: Self::Request) -> impl Future<Output = Result<Vec<u8>, String>> + Send;
}

/// The status that a function gives, and no other document. It must not block.
pub struct StatusAlone<F>(pub F);

impl<S: Serialize, F: Fn() -> S + Send + Sync + 'static> Answer for StatusAlone<F> {
    type Request = Value;

    fn parse(line: &[u8]) -> Result<Value, serde_json::Error> {
        serde_json::from_slice(line)
    }

    async fn answer(&self, request: Value) -> Result<Vec<u8>, String> {
        match request.get("get").and_then(Value::as_str) {
            Some("status") => serde_json::to_vec(&self.0()).map_err(|error| error.to_string()),
            None if request.get("do").is_some() => Err("nothing is done by this socket".to_owned()),
            _ => Err("it has a status and no other document".to_owned()),
        }
    }
}

/// Why the control socket is not there.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another one answers on it.
    #[error("open control socket {}: another {program} is running on it", path.display())]
    InUse {
        /// Who would have opened it.
        program: Program,
        /// The socket.
        path: PathBuf,
    },
    /// Something that is no socket has its name.
    #[error("open control socket {}: there is something else by that name", path.display())]
    NotASocket {
        /// The file.
        path: PathBuf,
    },
    /// The system refused.
    #[error("open control socket {}", path.display())]
    Open {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A control socket that is there and not yet, or no longer, answered. Removed when dropped; owned by one task.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode: another daemon's socket of the same name is not ours to remove.
    identity: (u64, u64),
}

impl ControlSocket {
    /// Makes the socket `path`, with mode 0660, and its folder. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// [`ServeError::InUse`] where a live process answers on it, [`ServeError::NotASocket`] where a file stands in the
    /// way, [`ServeError::Open`] for what the system refuses.
    pub fn bind(program: Program, path: &Path) -> Result<Self, ServeError> {
        remove_stale(program, path)?;
        let failed = |source| ServeError::Open { path: path.to_owned(), source };
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder).map_err(failed)?;
        }
        let listener = listen_on(path).map_err(failed)?;
        let listener = UnixListener::from_std(listener).map_err(failed)?;
        let meta = std::fs::symlink_metadata(path).map_err(failed)?;
        Ok(Self { listener, path: path.to_owned(), identity: (meta.dev(), meta.ino()) })
    }

    /// Answers until it is dropped.
    pub async fn serve(self, answers: impl Answer) {
        let (room, answers) = (Arc::new(Semaphore::new(CONNECTIONS_MAX)), Arc::new(answers));
        while let Ok(permit) = Arc::clone(&room).acquire_owned().await {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let answers = Arc::clone(&answers);
                    tokio::spawn(async move {
                        if let Err(error) = converse(stream, &*answers).await {
                            tracing::debug!(%error, "control connection ended");
                        }
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "accept on control socket failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let ours = std::fs::symlink_metadata(&self.path).is_ok_and(|m| (m.dev(), m.ino()) == self.identity);
        if ours && let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "control socket was not removed");
        }
    }
}

/// A socket is stale when nobody accepts on it: the kernel refuses a connection at once.
fn remove_stale(program: Program, path: &Path) -> Result<(), ServeError> {
    let failed = |source| ServeError::Open { path: path.to_owned(), source };
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(meta) if !meta.file_type().is_socket() => return Err(ServeError::NotASocket { path: path.to_owned() }),
        Ok(_) => {}
    }
    match std_net::UnixStream::connect(path) {
        Ok(_) => Err(ServeError::InUse { program, path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            tracing::info!(path = %path.display(), "replacing the control socket of a dead {program}");
            std::fs::remove_file(path).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}

/// The mode is set before the name exists (unix_bind_bsd of the kernel copies it, less the umask), so that there is no
/// moment in which others may connect; afterwards it is widened to what the umask took.
fn listen_on(path: &Path) -> io::Result<std_net::UnixListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    fchmod(&fd, Mode::from_raw_mode(SOCKET_MODE))?;
    bind(&fd, &SocketAddrUnix::new(path)?)?;
    listen(&fd, BACKLOG)?;
    std::fs::set_permissions(path, Permissions::from_mode(SOCKET_MODE))?;
    Ok(fd.into())
}

/// Answers one connection, line by line, until it ends.
async fn converse<A: Answer>(stream: UnixStream, answers: &A) -> io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut limited = (&mut reader).take(REQUEST_LIMIT);
        let read = limited.read_until(b'\n', &mut line);
        match timeout(IDLE_TIMEOUT, read).await {
            Err(_) | Ok(Ok(0)) => return Ok(()),
            Ok(read) => read?,
        };
        let whole = line.ends_with(b"\n");
        let answer = match A::parse(&line) {
            Ok(request) if whole => answers.answer(request).await,
            Ok(_) => Err("the request has no end of line".to_owned()),
            Err(error) => Err(format!("read request: {error}; ask {{\"get\":\"status\"}}")),
        };
        let mut answer = answer.or_else(|error| serde_json::to_vec(&Refusal { error }))?;
        answer.push(b'\n');
        match timeout(IDLE_TIMEOUT, writer.write_all(&answer)).await {
            Ok(written) => written?,
            Err(_) => return Ok(()),
        }
        if !whole {
            return Ok(());
        }
    }
}
