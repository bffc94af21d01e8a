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
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use super::{Deed, Document, Done, Flows, Program, REQUEST_LIMIT, Refusal, Request};

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

/// Who has the documents. Shared by the tasks that answer.
pub trait Answers: Send + Sync {
    /// The document as JSON, from memory; or why there is none.
    ///
    /// # Errors
    /// The reason, in words.
    fn get(&self, document: &Document) -> Result<Vec<u8>, String>;
}

/// The status, and no other document.
struct StatusAlone<F>(F);

impl<S: Serialize, F: Fn() -> S + Send + Sync> Answers for StatusAlone<F> {
    fn get(&self, document: &Document) -> Result<Vec<u8>, String> {
        match document {
            Document::Status => serde_json::to_vec(&self.0()).map_err(|error| error.to_string()),
            _ => Err("it has a status and no other document".to_owned()),
        }
    }
}

/// Something that was asked for, and who waits for what comes of it, or for why it was not done. Owned by who does it.
#[derive(Debug)]
pub struct Asked {
    /// What.
    pub deed: Deed,
    /// Who waits.
    pub answer: oneshot::Sender<Result<Option<serde_json::Value>, String>>,
}

/// Where orders are heard.
pub type Orders = UnboundedSender<Asked>;
/// Where those who ask for flows are heard: they are counted only while somebody does.
pub type FlowQuestions = UnboundedSender<oneshot::Sender<Flows>>;

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
    /// Device and inode: another portal's socket of the same name is not ours to remove.
    identity: (u64, u64),
    flows: Option<FlowQuestions>,
}

impl ControlSocket {
    /// Makes the socket `path`, with mode 0660, and its folder. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// [`ServeError::InUse`] where a live process answers on it, [`ServeError::NotASocket`] where a file stands in the
    /// way, [`ServeError::Open`] for what the system refuses.
    pub fn bind(path: &Path) -> Result<Self, ServeError> {
        Self::bind_for(Program::Portal, path)
    }

    /// The same for any program.
    ///
    /// # Errors
    /// As [`ControlSocket::bind`].
    pub fn bind_for(program: Program, path: &Path) -> Result<Self, ServeError> {
        remove_stale(program, path)?;
        let failed = |source| ServeError::Open { path: path.to_owned(), source };
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder).map_err(failed)?;
        }
        let listener = listen_on(path).map_err(failed)?;
        let listener = UnixListener::from_std(listener).map_err(failed)?;
        let meta = std::fs::symlink_metadata(path).map_err(failed)?;
        Ok(Self { listener, path: path.to_owned(), identity: (meta.dev(), meta.ino()), flows: None })
    }

    /// Has these asked for flows.
    pub fn with_flows(mut self, questions: FlowQuestions) -> Self {
        self.flows = Some(questions);
        self
    }

    /// Answers until it is dropped; `source` gives the status of the moment and must not block.
    pub async fn serve<S: Serialize + 'static>(self, source: impl Fn() -> S + Send + Sync + 'static) {
        self.serve_with(Arc::new(StatusAlone(source)), None).await;
    }

    /// The same by who has more documents, and does what it is asked to.
    pub async fn serve_with(self, answers: Arc<dyn Answers>, orders: Option<Orders>) {
        let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        while let Ok(permit) = Arc::clone(&room).acquire_owned().await {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let (answers, orders, flows) = (Arc::clone(&answers), orders.clone(), self.flows.clone());
                    tokio::spawn(async move {
                        if let Err(error) = converse(stream, &*answers, orders.as_ref(), flows.as_ref()).await {
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
async fn converse(
    stream: UnixStream,
    answers: &dyn Answers,
    orders: Option<&Orders>,
    flows: Option<&FlowQuestions>,
) -> io::Result<()> {
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
        let mut answer = match Request::parse(&line) {
            Ok(Request::Get(Document::Flows)) if whole => tell_flows(flows).await?,
            Ok(Request::Get(document)) if whole => answers.get(&document).or_else(|why| refusal(&why))?,
            Ok(Request::Do(deed)) if whole => obey(deed, orders).await?,
            Ok(_) => refusal("the request has no end of line")?,
            Err(error) => refusal(&format!("read request: {error}; ask {{\"get\":\"status\"}}"))?,
        };
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

/// Whoever does such things does this one, and says how that went.
async fn obey(deed: Deed, orders: Option<&Orders>) -> io::Result<Vec<u8>> {
    let Some(orders) = orders else { return refusal("nothing is done by this socket") };
    let word = deed.word();
    let (answer, answered) = oneshot::channel();
    // Fails where it is ending.
    let _ = orders.send(Asked { deed, answer });
    match answered.await {
        Ok(Ok(result)) => Ok(serde_json::to_vec(&Done { done: word.to_owned(), result })?),
        Ok(Err(reason)) => refusal(&reason),
        Err(_) => refusal("it is ending"),
    }
}

/// Whoever has them counted tells of the last second.
async fn tell_flows(questions: Option<&FlowQuestions>) -> io::Result<Vec<u8>> {
    let Some(questions) = questions else { return refusal("it counts no flows") };
    let (answer, answered) = oneshot::channel();
    // Fails where it is ending.
    let _ = questions.send(answer);
    match answered.await {
        Ok(flows) => Ok(serde_json::to_vec(&flows)?),
        Err(_) => refusal("it is ending"),
    }
}

fn refusal(reason: &str) -> io::Result<Vec<u8>> {
    Ok(serde_json::to_vec(&Refusal { error: reason.to_owned() })?)
}
