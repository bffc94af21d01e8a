//! Requests and answers over reliable streams: what request, web and connect are made of.
//!
//! 1. A server in its namespace accepts whoever comes, on one thread.
//! 2. A request says how many bytes it has, and how many it wants; the server answers this many.
//! 3. The client's side is a thread of its own; each stream is asked by a task.
//! 4. When a stream ends, its kernel is asked what it knew; streams of both ends count together.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use hawser_wire::Namespace;
use hawser_wire::traffic::StreamInfo;
use socket2::{SockRef, Socket};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{Congestion, Ground, LabError, Moment, Reliable};
use crate::background::{Background, Stop};

/// The head of a request: bytes of all of it, and bytes wanted.
const HEAD_BYTES: u64 = 2 * size_of::<u64>() as u64;
/// Bytes written or read at once.
static CHUNK: [u8; 64 << 10] = [0; 64 << 10];

/// Where requests go, and what the kernels knew of streams that are over, at either end. Starts without any; shared.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) kind: Reliable,
    pub(super) address: SocketAddr,
    streams: Arc<Mutex<Vec<StreamInfo>>>,
}

/// A server that answers. Ended on drop; one owner.
pub(super) struct Answers {
    pub(super) target: Target,
    serving: Background<()>,
}

impl Answers {
    /// Step 1.
    pub(super) fn start(ground: &Ground, congestion: Congestion) -> Result<Self, LabError> {
        let kind = ground.kind(congestion);
        let starting = |error| LabError::system("start a server that answers", error);
        let listener = ground.server.run(|| kind.listen((ground.ends.server, 0).into()))?.map_err(starting)?;
        let port = listener.local_addr().map_err(starting)?.as_socket().map_or(0, |address| address.port());
        let target = Target { kind, address: SocketAddr::new(ground.ends.server, port), streams: Arc::default() };
        let own = target.clone();
        let serving = serving(&ground.server, "answers", move |stop| async move {
            tokio::select! {
                ended = serve(listener, own) => ended,
                () = stop.told() => Ok(()),
            }
        })?;
        Ok(Self { target, serving })
    }

    /// Ends it: what was known of all streams.
    pub(super) fn end(self) -> Result<Vec<StreamInfo>, LabError> {
        self.serving.finish().map_err(|error| LabError::system("answer requests", error))?;
        Ok(std::mem::take(&mut *lock(&self.target.streams)))
    }
}

/// What is behind a lock, whoever panicked with it.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A server's side: asynchronous work until its owner wants no more of it.
pub(super) fn serving<T, F>(
    namespace: &Namespace,
    name: &str,
    work: impl FnOnce(Stop) -> F + Send + 'static,
) -> Result<Background<T>, LabError>
where
    T: Send + 'static,
    F: Future<Output = io::Result<T>>,
{
    Background::start(namespace, name, move |stop| runtime()?.block_on(work(stop)))
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Step 3: a thread in a namespace for asynchronous work, with a runtime of its own.
pub(super) fn side<T, F>(
    namespace: &Namespace,
    name: &str,
    work: impl FnOnce() -> F + Send + 'static,
) -> Result<JoinHandle<io::Result<T>>, LabError>
where
    T: Send + 'static,
    F: Future<Output = io::Result<T>>,
{
    Ok(namespace.spawn_thread(name, move || runtime()?.block_on(work()))?)
}

/// Waits for a side's end.
pub(super) fn join<T>(name: &str, thread: JoinHandle<io::Result<T>>) -> Result<T, LabError> {
    let ended = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    ended.map_err(|error| LabError::system(format!("run the {name}'s side"), error))
}

/// Sleeps until a moment, to the millisecond.
pub(super) async fn until(moment: Moment) {
    sleep(moment - Moment::now()).await;
}

/// What comes of work by a moment; none where it has not ended.
pub(super) async fn by<T>(moment: Moment, work: impl Future<Output = T>) -> Option<T> {
    timeout(moment - Moment::now(), work).await.ok()
}

async fn serve(listener: Socket, target: Target) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener.into())?;
    let mut answering = JoinSet::new();
    loop {
        let (stream, _) = match listener.accept().await {
            Ok(accepted) => accepted,
            // One that was reset while it waited.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(error) => return Err(error),
        };
        target.kind.accepted(&SockRef::from(&stream))?;
        stream.set_nodelay(true)?;
        // One whose client is gone ends with an error that nobody waits for.
        answering.spawn(answer(Counted { stream, target: target.clone() }));
        while answering.try_join_next().is_some() {}
    }
}

/// Step 2, at the server, until the client has had enough.
async fn answer(mut counted: Counted) -> io::Result<()> {
    loop {
        let whole = counted.stream.read_u64().await?;
        let wanted = counted.stream.read_u64().await?;
        receive(&mut counted.stream, whole.saturating_sub(HEAD_BYTES), |_| ()).await?;
        send(&mut counted.stream, wanted).await?;
    }
}

async fn send(stream: &mut TcpStream, mut left: u64) -> io::Result<()> {
    while left > 0 {
        left -= stream.write(&CHUNK[..at_once(left)]).await? as u64;
    }
    Ok(())
}

/// Tells of each part how long it is.
async fn receive(stream: &mut TcpStream, mut left: u64, mut got: impl FnMut(u64)) -> io::Result<()> {
    let mut bytes = vec![0; at_once(left)];
    while left > 0 {
        let length = stream.read(&mut bytes[..at_once(left)]).await?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        got(length as u64);
        left -= length as u64;
    }
    Ok(())
}

fn at_once(left: u64) -> usize {
    CHUNK.len().min(usize::try_from(left).unwrap_or(usize::MAX))
}

/// A stream whose kernel is asked when it ends, however it does. One owner.
pub(super) struct Counted {
    pub(super) stream: TcpStream,
    target: Target,
}

impl Counted {
    /// One that stands already. Within a runtime.
    pub(super) fn of(socket: Socket, target: &Target) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        Ok(Self { stream: TcpStream::from_std(socket.into())?, target: target.clone() })
    }

    /// Connects, in the calling thread's namespace.
    pub(super) async fn dial(target: &Target) -> io::Result<Self> {
        Ok(Self { stream: dial(target).await?, target: target.clone() })
    }
}

/// Step 2, at the client: asks, and tells of each part of the answer how long it is.
pub(super) async fn ask(stream: &mut TcpStream, request: u64, answer: u64, got: impl FnMut(u64)) -> io::Result<()> {
    let whole = request.max(HEAD_BYTES);
    stream.write_u64(whole).await?;
    stream.write_u64(answer).await?;
    send(stream, whole - HEAD_BYTES).await?;
    receive(stream, answer, got).await
}

impl Drop for Counted {
    /// Step 4. A stream that the kernel knows nothing of any more is not counted.
    fn drop(&mut self) {
        if let Ok(info) = StreamInfo::of(&self.stream, self.target.kind.stack) {
            lock(&self.target.streams).push(info);
        }
    }
}

/// A connected stream.
pub(super) async fn dial(target: &Target) -> io::Result<TcpStream> {
    let socket = target.kind.socket(target.address)?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    let stream = TcpSocket::from_std_stream(socket.into()).connect(target.address).await?;
    target.kind.check(&SockRef::from(&stream))?;
    Ok(stream)
}
