//! Connections and sockets on tokio: the calls that wait give way to other tasks instead.

use std::future::Future;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use tokio::io::unix::AsyncFd;
use tokio::task::JoinError;

use super::connection::{ScionConn, receive_one};
use super::error::{OpenError, RecvError, RouteError, SendError};
use super::port::Port;
use super::receive::Datagram;
use super::send::{Batch, Sent, Wait};
use super::socket::ScionSocket;
use crate::addr::EndpointAddr;

/// A connection on a tokio runtime. Begins as the connection is. For several tasks, one of which receives.
#[derive(Debug)]
pub struct AsyncConn {
    conn: ScionConn,
    fd: AsyncFd<OwnedFd>,
}

/// A socket on a tokio runtime. Begins as the socket is. For several tasks, one of which receives.
#[derive(Debug)]
pub struct AsyncSocket {
    socket: Arc<ScionSocket>,
    fd: AsyncFd<OwnedFd>,
}

impl AsyncConn {
    /// Watches a connection. Call it on a runtime with its I/O driver on.
    ///
    /// # Errors
    /// [`OpenError::Watch`].
    pub fn new(conn: ScionConn) -> Result<AsyncConn, OpenError> {
        let fd = watch(&conn)?;
        Ok(AsyncConn { conn, fd })
    }

    /// The connection.
    pub fn get_ref(&self) -> &ScionConn {
        &self.conn
    }

    /// Sends a batch that `fill` writes, when the socket takes it.
    ///
    /// # Errors
    /// [`SendError`].
    pub async fn send_batch(&self, fill: impl FnOnce(&mut Batch<'_>)) -> Result<Sent, SendError> {
        let mut fill = Some(fill);
        let try_send = || {
            self.conn.try_send_batch(|batch| {
                if let Some(fill) = fill.take() {
                    fill(batch);
                }
            })
        };
        send(&self.fd, &self.conn.port, self.conn.destination(), try_send).await
    }

    /// Sends one packet.
    ///
    /// # Errors
    /// [`SendError`].
    pub async fn send(&self, payload: &[u8]) -> Result<(), SendError> {
        let mut added = Ok(());
        let _ = self.send_batch(|batch| added = batch.copy(payload)).await?;
        added.map_err(|error| error.for_destination(self.conn.destination()))
    }

    /// Hands each packet of a batch to `each`, when there is one.
    ///
    /// # Errors
    /// Only what makes the socket useless.
    pub async fn recv_batch(&self, mut each: impl FnMut(Datagram<'_>)) -> io::Result<usize> {
        let taken = || self.conn.try_recv_batch(&mut each).map(|taken| (taken > 0).then_some(taken));
        receive(&self.fd, taken).await
    }

    /// Receives one packet's payload, and returns its length.
    ///
    /// # Errors
    /// [`RecvError`].
    pub async fn recv(&self, payload: &mut [u8]) -> Result<usize, RecvError> {
        receive(&self.fd, || match self.conn.recv_now(payload) {
            Err(RecvError::TimedOut) => Ok(None),
            got => got.map(Some),
        })
        .await
    }
}

impl AsyncSocket {
    /// Watches a socket. Call it on a runtime with its I/O driver on.
    ///
    /// # Errors
    /// [`OpenError::Watch`].
    pub fn new(socket: ScionSocket) -> Result<AsyncSocket, OpenError> {
        let fd = watch(&socket)?;
        Ok(AsyncSocket { socket: Arc::new(socket), fd })
    }

    /// The socket.
    pub fn get_ref(&self) -> &ScionSocket {
        &self.socket
    }

    /// Finds a way to a destination; the look-up has a thread of its own.
    ///
    /// # Errors
    /// [`RouteError`].
    pub async fn look_up(&self, destination: EndpointAddr) -> Result<(), RouteError> {
        look_up(&self.socket, destination).await
    }

    /// Sends a batch that `fill` writes to one destination, when its way is known and the socket takes it.
    ///
    /// # Errors
    /// [`SendError`].
    pub async fn send_batch_to(
        &self,
        destination: EndpointAddr,
        fill: impl FnOnce(&mut Batch<'_>),
    ) -> Result<Sent, SendError> {
        self.look_up(destination).await?;
        let mut fill = Some(fill);
        let try_send = || {
            self.socket.try_send_batch_to(destination, |batch| {
                if let Some(fill) = fill.take() {
                    fill(batch);
                }
            })
        };
        send(&self.fd, &self.socket.port, destination, try_send).await
    }

    /// Sends one packet.
    ///
    /// # Errors
    /// [`SendError`].
    pub async fn send_to(&self, payload: &[u8], destination: EndpointAddr) -> Result<(), SendError> {
        let mut added = Ok(());
        let _ = self.send_batch_to(destination, |batch| added = batch.copy(payload)).await?;
        added.map_err(|error| error.for_destination(destination))
    }

    /// Hands each packet of a batch to `each`, when there is one.
    ///
    /// # Errors
    /// Only what makes the socket useless.
    pub async fn recv_batch(&self, mut each: impl FnMut(Datagram<'_>)) -> io::Result<usize> {
        let taken = || self.socket.try_recv_batch(&mut each).map(|taken| (taken > 0).then_some(taken));
        receive(&self.fd, taken).await
    }

    /// Receives one packet's payload; its length and who sent it.
    ///
    /// # Errors
    /// [`RecvError`].
    pub async fn recv_from(&self, payload: &mut [u8]) -> Result<(usize, EndpointAddr), RecvError> {
        receive(&self.fd, || match self.socket.recv_now(payload) {
            Err(RecvError::TimedOut) => Ok(None),
            got => got.map(Some),
        })
        .await
    }
}

impl ScionConn {
    fn recv_now(&self, payload: &mut [u8]) -> Result<usize, RecvError> {
        let wanted = |datagram: &Datagram<'_>| self.is_known(datagram);
        receive_one(&self.port, payload, Wait::Never, wanted).map(|(len, _)| len)
    }
}

impl ScionSocket {
    fn recv_now(&self, payload: &mut [u8]) -> Result<(usize, EndpointAddr), RecvError> {
        receive_one(&self.port, payload, Wait::Never, |datagram| {
            self.learn(datagram);
            true
        })
    }
}

/// A descriptor of the same socket, watched by the runtime.
pub(super) fn watch(socket: &impl AsFd) -> Result<AsyncFd<OwnedFd>, OpenError> {
    let fd = socket.as_fd().try_clone_to_owned().map_err(OpenError::Watch)?;
    // SAFETY: the descriptor is owned by the `AsyncFd`, which hands it out by no method that could close it.
    unsafe { AsyncFd::register(fd) }.map_err(|error| OpenError::Watch(error.into()))
}

/// Looks up paths on a thread that may wait; nothing to wait for if they are known.
pub(super) fn look_up(
    socket: &Arc<ScionSocket>,
    destination: EndpointAddr,
) -> impl Future<Output = Result<(), RouteError>> + use<> {
    let socket = Arc::clone(socket);
    async move {
        match socket.port.flow_to(destination, false) {
            Err(RouteError::NotLookedUp { .. }) => {}
            known => return known.map(drop),
        }
        let looked_up = tokio::task::spawn_blocking(move || socket.look_up(destination)).await;
        // It is never cancelled; a panic of who knows paths goes on here.
        looked_up.map_err(JoinError::into_panic).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Tries to send until the pace and the socket let it, then sends what is left over.
async fn send(
    fd: &AsyncFd<OwnedFd>,
    port: &Port,
    destination: EndpointAddr,
    mut try_send: impl FnMut() -> Result<Sent, SendError>,
) -> Result<Sent, SendError> {
    loop {
        let pause = port.sender().pause();
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        let mut ready = fd.writable().await?;
        match try_send() {
            // Left over, or the pace of another task's batch.
            Err(SendError::Full { .. }) if port.sender().is_empty() => {}
            Err(SendError::Full { .. }) => ready.clear_ready(),
            Ok(Sent { left_over: true, packets, bytes }) => {
                ready.clear_ready();
                while !port.sender().flush(port, destination, Wait::Never)? {
                    fd.writable().await?.clear_ready();
                }
                return Ok(Sent { left_over: false, packets, bytes });
            }
            other => return other,
        }
    }
}

/// Tries to receive whenever the socket has something.
async fn receive<T, E: From<io::Error>>(
    fd: &AsyncFd<OwnedFd>,
    mut try_receive: impl FnMut() -> Result<Option<T>, E>,
) -> Result<T, E> {
    // What was received before, and not handed out, is not the descriptor's to tell.
    let mut got = try_receive()?;
    loop {
        if let Some(got) = got {
            return Ok(got);
        }
        let mut ready = fd.readable().await?;
        got = try_receive()?;
        if got.is_none() {
            ready.clear_ready();
        }
    }
}
