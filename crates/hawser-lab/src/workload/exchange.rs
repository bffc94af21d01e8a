//! Requests and answers over reliable streams: what request, web and connect are made of.
//!
//! 1. A server in its namespace accepts whoever comes, on one thread.
//! 2. A request says how many bytes it has, and how many it wants; the server answers this many.
//! 3. The client's side is a thread of its own; each stream is asked by a task.
//! 4. When a stream ends, its kernel is asked what it knew; streams of both ends count together.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use hawser_wire::traffic::{Congestion, Reliable, StreamInfo};
use hawser_wire::{Moment, Namespace};
use socket2::{SockRef, Socket};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::{Ground, stack};
use crate::background::{Background, Stop};
use crate::error::LabError;

/// The head of a request: bytes of all of it, and bytes wanted.
pub(super) const HEAD_BYTES: usize = 2 * size_of::<u64>();
/// Bytes written at once.
static CHUNK: [u8; 64 << 10] = [0; 64 << 10];
/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;

/// What the kernels knew of streams that are over, at either end. Shared; starts empty.
pub(super) type Streams = Arc<Mutex<Vec<StreamInfo>>>;

/// A server that answers. Ended on drop; one owner.
pub(super) struct Answers {
    pub(super) address: SocketAddr,
    serving: Background<()>,
}

/// How a ground's streams are made.
pub(super) fn kind(ground: &Ground, congestion: Congestion) -> Reliable {
    Reliable { stack: stack(ground.socket), congestion }
}

impl Answers {
    /// Step 1.
    pub(super) fn start(ground: &Ground, kind: Reliable, streams: &Streams) -> Result<Self, LabError> {
        let starting = |error| LabError::system("start a server that answers", error);
        let listener = ground.server.run(|| kind.listen((ground.ends.server, 0).into()))?.map_err(starting)?;
        let port = listener.local_addr().map_err(starting)?.as_socket().map_or(0, |address| address.port());
        let streams = Arc::clone(streams);
        let serving = serving(&ground.server, "answers", move |stop| async move {
            tokio::select! {
                ended = serve(listener, kind, streams) => ended,
                () = stop.told() => Ok(()),
            }
        })?;
        Ok(Self { address: SocketAddr::new(ground.ends.server, port), serving })
    }

    /// Ends it: after this all its streams have been counted.
    pub(super) fn end(self) -> Result<(), LabError> {
        self.serving.finish().map_err(|error| LabError::system("answer requests", error))
    }
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
    sleep_until(Instant::now() + (moment - Moment::now())).await;
}

async fn serve(listener: Socket, kind: Reliable, streams: Streams) -> io::Result<()> {
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
        kind.accepted(&SockRef::from(&stream))?;
        stream.set_nodelay(true)?;
        let stream = Counted { stream, kind, streams: Arc::clone(&streams) };
        // One whose client is gone ends with an error that nobody waits for.
        answering.spawn(answer(stream));
        while answering.try_join_next().is_some() {}
    }
}

/// Step 2, at the server, until the client has had enough.
async fn answer(mut counted: Counted) -> io::Result<()> {
    let mut bytes = vec![0; READ_BYTES];
    loop {
        let whole = counted.stream.read_u64().await?;
        let mut wanted = counted.stream.read_u64().await?;
        let mut coming = whole.saturating_sub(HEAD_BYTES as u64);
        while coming > 0 {
            let most = bytes.len().min(usize::try_from(coming).unwrap_or(usize::MAX));
            let got = counted.stream.read(&mut bytes[..most]).await?;
            if got == 0 {
                return Ok(());
            }
            coming -= got as u64;
        }
        while wanted > 0 {
            let most = CHUNK.len().min(usize::try_from(wanted).unwrap_or(usize::MAX));
            wanted -= counted.stream.write(&CHUNK[..most]).await? as u64;
        }
    }
}

/// A stream whose kernel is asked when it ends, however it does. One owner.
pub(super) struct Counted {
    stream: TcpStream,
    kind: Reliable,
    streams: Streams,
}

impl Counted {
    /// One that stands already. Within a runtime.
    pub(super) fn of(socket: Socket, kind: Reliable, streams: &Streams) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        Ok(Self { stream: TcpStream::from_std(socket.into())?, kind, streams: Arc::clone(streams) })
    }

    /// Connects, in the calling thread's namespace.
    pub(super) async fn dial(kind: Reliable, address: SocketAddr, streams: &Streams) -> io::Result<Self> {
        let stream = dial(kind, address).await?;
        Ok(Self { stream, kind, streams: Arc::clone(streams) })
    }

    /// Step 2, at the client.
    pub(super) async fn ask(&mut self, request: u64, answer: u64, got: impl FnMut(u64)) -> io::Result<()> {
        ask(&mut self.stream, request, answer, got).await
    }
}

/// Step 2, at the client: asks, and tells of each part of the answer how long it is.
pub(super) async fn ask(stream: &mut TcpStream, request: u64, answer: u64, mut got: impl FnMut(u64)) -> io::Result<()> {
    let whole = request.max(HEAD_BYTES as u64);
    stream.write_u64(whole).await?;
    stream.write_u64(answer).await?;
    let mut left = whole - HEAD_BYTES as u64;
    while left > 0 {
        let most = CHUNK.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        left -= stream.write(&CHUNK[..most]).await? as u64;
    }
    let mut bytes = vec![0; READ_BYTES];
    let mut coming = answer;
    while coming > 0 {
        let most = bytes.len().min(usize::try_from(coming).unwrap_or(usize::MAX));
        let length = stream.read(&mut bytes[..most]).await?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        got(length as u64);
        coming -= length as u64;
    }
    Ok(())
}

impl Drop for Counted {
    /// Step 4. A stream that the kernel knows nothing of any more is not counted.
    fn drop(&mut self) {
        if let Ok(info) = StreamInfo::of(&self.stream, self.kind.stack) {
            self.streams.lock().unwrap_or_else(PoisonError::into_inner).push(info);
        }
    }
}

/// A connected stream.
pub(super) async fn dial(kind: Reliable, address: SocketAddr) -> io::Result<TcpStream> {
    let socket = kind.socket(address)?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    let stream = TcpSocket::from_std_stream(socket.into()).connect(address).await?;
    kind.check(&SockRef::from(&stream))?;
    Ok(stream)
}
