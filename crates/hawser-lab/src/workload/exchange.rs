//! Requests and answers over reliable streams: what request, web and connect are made of.
//!
//! 1. A server in its namespace accepts whoever comes, on one thread.
//! 2. A request says how many bytes it has, and how many it wants; the server answers this many.
//! 3. The client's side is a thread of its own; each stream is asked by a task.
//! 4. When a stream ends, its kernel is asked what it knew; streams of both ends count together.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hawser_wire::traffic::{StreamInfo, Timeline};
use socket2::{SockRef, Socket};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{CONNECT_PATIENCE, Congestion, Findings, Ground, LabError, Moment, Reliable, When, millis};
use crate::background::{Background, runtime};

/// The head of a request: bytes of all of it, and bytes wanted.
const HEAD_BYTES: u64 = 2 * size_of::<u64>() as u64;
/// Bytes written or read at once.
static CHUNK: [u8; 64 << 10] = [0; 64 << 10];

/// Where requests go, and what came of them. Shared by both ends.
#[derive(Clone)]
pub(super) struct Target {
    kind: Reliable,
    address: SocketAddr,
    came: Arc<Mutex<Came>>,
}

/// Bytes of answers over time, how long each answer took, in milliseconds, and what the kernels knew of streams that
/// are over.
struct Came {
    line: Timeline,
    took_ms: Vec<f64>,
    streams: Vec<StreamInfo>,
}

impl Target {
    /// Step 2, at the client: asks over a stream, or over a fresh one, and notes each part of the answer as it comes.
    /// Gives the stream, and how long that took, in milliseconds.
    pub(super) async fn ask(&self, stream: Option<Counted>, request: u64, answer: u64) -> io::Result<(Counted, f64)> {
        let begin = Moment::now();
        let mut counted = if let Some(stream) = stream { stream } else { Counted::dial(self).await? };
        let (stream, whole) = (&mut counted.stream, request.max(HEAD_BYTES));
        stream.write_u64(whole).await?;
        stream.write_u64(answer).await?;
        send(stream, whole - HEAD_BYTES).await?;
        receive(stream, answer, |bytes| lock(&self.came).line.add(Moment::now(), bytes)).await?;
        let took = millis(Moment::now() - begin);
        lock(&self.came).took_ms.push(took);
        Ok((counted, took))
    }
}

/// A server that answers. Ended on drop; one owner.
pub(super) struct Answers {
    target: Target,
    serving: Background<()>,
}

impl Answers {
    /// Step 1.
    pub(super) fn start(ground: Ground<'_>, congestion: Congestion) -> Result<Self, LabError> {
        let kind = ground.kind(congestion);
        let starting = |error| LabError::system("start a server that answers", error);
        let listener = ground.server.run(|| kind.listen((ground.ends.server, 0).into()))?.map_err(starting)?;
        let port = listener.local_addr().map_err(starting)?.as_socket().map_or(0, |address| address.port());
        let came = Came { line: Timeline::new(Moment::now()), took_ms: Vec::new(), streams: Vec::new() };
        let address = SocketAddr::new(ground.ends.server, port);
        let target = Target { kind, address, came: Arc::new(Mutex::new(came)) };
        let own = target.clone();
        let serving = Background::serve(ground.server, "answers", move || serve(listener, own))?;
        Ok(Self { target, serving })
    }

    /// A stream to it, from the calling thread's namespace.
    pub(super) fn connect(&self) -> io::Result<Socket> {
        self.target.kind.connect(self.target.address, CONNECT_PATIENCE)
    }

    /// Step 3, to its end: what the client's side tells, how long each answer took, in milliseconds, and the figures of
    /// all streams together.
    pub(super) fn asked<T: Send>(
        self,
        ground: Ground<'_>,
        when: When,
        side: impl AsyncFnOnce(Target) -> io::Result<T> + Send,
    ) -> Result<(T, Vec<f64>, Findings), LabError> {
        lock(&self.target.came).line = Timeline::new(when.start);
        let target = self.target.clone();
        let told = ground.client.run(|| runtime()?.block_on(side(target)))?;
        let told = told.map_err(|error| LabError::system("run the client's side", error))?;
        self.serving.finish().map_err(|error| LabError::system("answer requests", error))?;
        let mut came = lock(&self.target.came);
        let mut found = Findings::default();
        found.put_goodput(&came.line, when);
        found.put_streams(ground.socket, &came.streams, &came.streams);
        Ok((told, std::mem::take(&mut came.took_ms), found))
    }
}

/// What is behind a lock, whoever panicked with it.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        let stream = accept(&listener).await?;
        target.kind.accepted(&SockRef::from(&stream))?;
        stream.set_nodelay(true)?;
        // One whose client is gone ends with an error that nobody waits for.
        answering.spawn(answer(Counted { stream, target: target.clone() }));
        while answering.try_join_next().is_some() {}
    }
}

/// The next stream that comes.
pub(crate) async fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    loop {
        match listener.accept().await {
            // One that was reset while it waited.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            accepted => return accepted.map(|(stream, _)| stream),
        }
    }
}

/// A stream of this kind, in the calling thread's namespace.
pub(crate) async fn dial(kind: Reliable, address: SocketAddr) -> io::Result<TcpStream> {
    let socket = kind.socket(address)?;
    socket.set_nonblocking(true)?;
    let stream = TcpSocket::from_std_stream(socket.into()).connect(address).await?;
    kind.check(&SockRef::from(&stream))?;
    Ok(stream)
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
        left -= stream.write(chunk(left)).await? as u64;
    }
    Ok(())
}

/// Tells of each part how long it is.
async fn receive(stream: &mut TcpStream, mut left: u64, mut got: impl FnMut(u64)) -> io::Result<()> {
    let mut bytes = chunk(left).to_vec();
    while left > 0 {
        let length = stream.read(&mut bytes[..chunk(left).len()]).await?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        got(length as u64);
        left -= length as u64;
    }
    Ok(())
}

/// What is written or read at once where this many bytes are left.
pub(super) fn chunk(left: u64) -> &'static [u8] {
    &CHUNK[..CHUNK.len().min(usize::try_from(left).unwrap_or(usize::MAX))]
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
        let stream = dial(target.kind, target.address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, target: target.clone() })
    }
}

impl Drop for Counted {
    /// Step 4. A stream that the kernel knows nothing of any more is not counted.
    fn drop(&mut self) {
        if let Ok(info) = StreamInfo::of(&self.stream, self.target.kind.stack) {
            lock(&self.target.came).streams.push(info);
        }
    }
}
