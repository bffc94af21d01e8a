//! QUIC over SCION: a [`ScionSocket`] under quinn.
//!
//! 1. [`QuicSocket::new`] watches a socket on the runtime; [`QuicSocket::endpoint`] makes a quinn endpoint of it.
//! 2. quinn knows endpoints by socket addresses: [`QuicSocket::look_up`] finds a way to one and gives it a name to
//!    connect to (`names.rs`); peers that connect get names by themselves.
//! 3. [`QuicSocket::fit`] tells quinn how long its packets may be.
//! 4. quinn hands over several packets at a time, which leave as one train, and takes several that came as one.
//!
//! What cannot be sent (no path, too long, refused) is lost, as on any network: QUIC repairs it, or gives up.
//! Congestion marks stay off: border routers do not carry them from one AS to the next. quinn paces by itself, so
//! [`ConnOpts::pace`](super::ConnOpts::pace) is not looked at.

mod names;

use std::future::Future;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, Endpoint, EndpointConfig, MtuDiscoveryConfig, ServerConfig, TransportConfig, UdpPoller};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use self::names::Names;
use super::asynchronous::{look_up, watch};
use super::error::{OpenError, RouteError};
use super::receive::{Datagram, Take};
use super::socket::ScionSocket;
use crate::addr::EndpointAddr;

/// Packets quinn may hand over at once: a train of packets as long as Ethernet's stays below 65,000 bytes.
const SEND_SEGMENTS: usize = 40;

/// Packets handed to quinn at once: as many as a train has (Linux, `UDP_MAX_SEGMENTS`, before 6.9).
const RECEIVE_SEGMENTS: usize = 64;

/// Least length of QUIC's packets, in bytes (RFC 9000, section 14).
pub const LEAST_QUIC_MTU: u16 = 1200;

/// A path takes too short packets for QUIC.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// The way there is not known.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The way there takes less than QUIC needs.
    #[error("fit quic to {destination}: its path takes {max} bytes, QUIC needs {LEAST_QUIC_MTU}")]
    TooShort {
        /// Where to.
        destination: EndpointAddr,
        /// Bytes that a payload may have.
        max: usize,
    },
}

/// A SCION socket as quinn wants one. Begins as the socket is. For several threads.
#[derive(Debug)]
pub struct QuicSocket {
    socket: Arc<ScionSocket>,
    fd: Arc<AsyncFd<OwnedFd>>,
    names: Names,
    local: SocketAddr,
}

impl QuicSocket {
    /// Step 1: watches a socket. Call it on a tokio runtime with its I/O driver on.
    ///
    /// # Errors
    /// [`OpenError::Watch`].
    pub fn new(socket: ScionSocket) -> Result<Arc<QuicSocket>, OpenError> {
        let names = Names::default();
        let local = names.name(socket.local(), true);
        let fd = Arc::new(watch(&socket)?);
        Ok(Arc::new(QuicSocket { socket: Arc::new(socket), fd, names, local }))
    }

    /// Step 1: an endpoint of quinn's over it, which accepts connections if it has a server's configuration.
    ///
    /// # Errors
    /// When quinn refuses, as outside of a tokio runtime.
    pub fn endpoint(self: &Arc<QuicSocket>, server: Option<ServerConfig>) -> io::Result<Endpoint> {
        let mut config = EndpointConfig::default();
        let longest = self.socket.port.opts.mtu.max(LEAST_QUIC_MTU);
        config.max_udp_payload_size(longest).map_err(io::Error::other)?;
        let socket = Arc::clone(self) as Arc<dyn AsyncUdpSocket>;
        Endpoint::new_with_abstract_socket(config, server, socket, Arc::new(quinn::TokioRuntime))
    }

    /// The socket.
    pub fn get_ref(&self) -> &ScionSocket {
        &self.socket
    }

    /// Step 2: finds a way to an endpoint, and gives it the name that quinn connects to.
    ///
    /// # Errors
    /// [`RouteError`].
    pub async fn look_up(&self, destination: EndpointAddr) -> Result<SocketAddr, RouteError> {
        look_up(&self.socket, destination).await?;
        Ok(self.names.name(destination, true))
    }

    /// Step 2: who a name stands for.
    pub fn endpoint_of(&self, name: SocketAddr) -> Option<EndpointAddr> {
        self.names.endpoint(name)
    }

    /// Step 3: has quinn begin with the longest packets that the way to a known destination takes, and try no longer
    /// ones. When the way changes for one that takes less, quinn finds out by itself.
    ///
    /// # Errors
    /// [`FitError`].
    pub fn fit(&self, destination: EndpointAddr, config: &mut TransportConfig) -> Result<(), FitError> {
        let max = self.socket.max_payload(destination)?;
        let mtu = u16::try_from(max).unwrap_or(u16::MAX);
        if mtu < LEAST_QUIC_MTU {
            return Err(FitError::TooShort { destination, max });
        }
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(mtu);
        config.min_mtu(LEAST_QUIC_MTU).initial_mtu(mtu).mtu_discovery_config(Some(discovery));
        Ok(())
    }

    /// Step 4: takes out what was received, as many packets of one sender and length in a buffer as fit.
    fn take_out(&self, buffers: &mut [IoSliceMut<'_>], metas: &mut [RecvMeta]) -> io::Result<usize> {
        let most = buffers.len().min(metas.len());
        let mut used = 0_usize;
        let mut last: Option<(EndpointAddr, SocketAddr)> = None;
        let port = &self.socket.port;
        port.receiver().each(port, |datagram: Datagram<'_>| {
            let payload = datagram.payload;
            if payload.is_empty() {
                return Take::Not;
            }
            self.socket.learn(&datagram);
            let name = match last {
                Some((source, name)) if source == datagram.source => name,
                _ => self.names.name(datagram.source, false),
            };
            last = Some((datagram.source, name));
            if let Some(at) = used.checked_sub(1) {
                let meta: &mut RecvMeta = &mut metas[at];
                let joins = meta.addr == name && meta.len.is_multiple_of(meta.stride) && payload.len() <= meta.stride;
                let end = meta.len + payload.len();
                if joins && end <= buffers[at].len() {
                    buffers[at][meta.len..end].copy_from_slice(payload);
                    meta.len = end;
                    return Take::More;
                }
            }
            if used == most {
                return Take::Later;
            }
            let Some(room) = buffers[used].get_mut(..payload.len()) else { return Take::Not };
            room.copy_from_slice(payload);
            metas[used] = RecvMeta { addr: name, len: payload.len(), stride: payload.len(), ..RecvMeta::default() };
            used += 1;
            Take::More
        })?;
        Ok(used)
    }
}

impl AsyncUdpSocket for QuicSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Poller { fd: Arc::clone(&self.fd), waits: None })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let port = &self.socket.port;
        let flow = self.names.endpoint(transmit.destination).and_then(|to| port.flow_to(to, false).ok());
        let Some(flow) = flow else {
            port.counters.refused_packets.add(1);
            return Ok(());
        };
        let size = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
        let packets = transmit.contents.chunks(size);
        self.fd.try_io(Interest::WRITABLE, |_| port.sender().send_or_lose(port, &flow, packets))
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let port = &self.socket.port;
        // What was received before, and not handed out, is not the descriptor's to tell.
        if port.receiver().is_halfway() {
            let used = self.take_out(buffers, metas)?;
            if used > 0 {
                return Poll::Ready(Ok(used));
            }
        }
        loop {
            let mut readable = ready!(self.fd.poll_read_ready(cx))?;
            let used = self.take_out(buffers, metas)?;
            if used > 0 {
                return Poll::Ready(Ok(used));
            }
            port.receiver().tell_errors(port)?;
            readable.clear_ready();
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.local)
    }

    fn max_transmit_segments(&self) -> usize {
        if self.socket.port.sender().takes_trains() { SEND_SEGMENTS } else { 1 }
    }

    fn max_receive_segments(&self) -> usize {
        RECEIVE_SEGMENTS
    }

    fn may_fragment(&self) -> bool {
        false
    }
}

/// Waits until the socket takes more. Begins without waiting. For one task.
struct Poller {
    fd: Arc<AsyncFd<OwnedFd>>,
    waits: Option<Pin<Box<dyn Future<Output = io::Result<()>> + Send + Sync>>>,
}

impl UdpPoller for Poller {
    fn poll_writable(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let fd = Arc::clone(&self.fd);
        let waits = self.waits.get_or_insert_with(|| Box::pin(async move { fd.writable().await.map(|_| ()) }));
        let ready = waits.as_mut().poll(cx);
        if ready.is_ready() {
            self.waits = None;
        }
        ready
    }
}

impl std::fmt::Debug for Poller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Poller").finish_non_exhaustive()
    }
}
