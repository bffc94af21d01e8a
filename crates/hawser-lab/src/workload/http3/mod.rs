//! A download over HTTP/3, by an independent QUIC (quinn) inside whatever carries it.
//!
//! 1. Server and client are threads of their own namespaces; they shake hands before anything is measured.
//! 2. From the start on the client gets one resource: of this many bytes, or one that does not end before the time
//!    does.
//! 3. Every part is noted as it comes. A connection that breaks is a finding.
//! 4. At the end the server tells what its QUIC lost; its congestion control is what was asked for, or nothing counts.

mod client;
mod server;
mod tls;

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use hawser_wire::Moment;
use hawser_wire::traffic::Congestion;
use quinn::congestion::{Bbr, BbrConfig, Cubic, CubicConfig, NewReno, NewRenoConfig};
use quinn::{TransportConfig, VarInt};
use rustix::net::sockopt::{set_socket_recv_buffer_size_force, set_socket_send_buffer_size_force};
use socket2::{Domain, Protocol, Socket, Type};

use self::client::{Client, Download};
use self::server::Server;
use super::figures::Span;
use super::options::Options;
use super::{Ground, Workload};
use crate::error::LabError;
use crate::experiment::Findings;

/// How much may be on the way: 1 Gbit/s at 250 ms.
const WINDOW_BYTES: u32 = 32 << 20;
/// What each socket holds, so that a thread that waits for a processor loses nothing.
const SOCKET_BYTES: usize = 8 << 20;
/// After so much silence a connection is over: longer than any cut of a scenario, so that a download outlasts it.
const IDLE_MS: u32 = 60_000;

/// A download. Starts unconnected; one owner.
pub(super) struct Http3 {
    congestion: Congestion,
    bytes: Option<u64>,
    ready: Option<(Server, Client)>,
}

impl Http3 {
    pub(super) fn parse(options: &mut Options) -> Result<Self, LabError> {
        Ok(Self { congestion: options.congestion()?, bytes: options.bytes("bytes")?, ready: None })
    }
}

impl Workload for Http3 {
    /// Step 1.
    fn prepare(&mut self, ground: &Ground) -> Result<(), LabError> {
        let identity = tls::identity()?;
        let server = Server::start(ground, &identity, self.congestion)?;
        let client = Client::start(ground, &identity, server.address, self.congestion)?;
        self.ready = Some((server, client));
        Ok(())
    }

    /// Steps 2 to 4.
    fn run(&mut self, ground: &Ground, start: Moment) -> Result<Findings, LabError> {
        let (server, client) = self.ready.take().ok_or_else(|| super::unprepared("http3"))?;
        let download = client.get(Download { start, end: start + ground.duration, bytes: self.bytes })?;
        let lost = server.end()?;
        let mut found = Findings::default();
        // A whole resource's goodput is over the time it took.
        let end = download.complete.unwrap_or(start + ground.duration);
        found.put_goodput(&download.got, Span { start, duration: end - start });
        if download.complete.is_some() {
            found.put("completion_ms", (end - start).as_secs_f64() * 1e3);
        }
        #[expect(clippy::cast_precision_loss, reason = "a count of one run")]
        found.put("retransmissions", lost as f64);
        found.put("broken_flows", f64::from(u8::from(download.broken.is_some())));
        Ok(found)
    }
}

/// How both ends' QUIC is set.
fn transport(congestion: Congestion) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    match congestion {
        Congestion::Cubic => transport.congestion_controller_factory(Arc::new(CubicConfig::default())),
        Congestion::Reno => transport.congestion_controller_factory(Arc::new(NewRenoConfig::default())),
        Congestion::Bbr => transport.congestion_controller_factory(Arc::new(BbrConfig::default())),
    };
    transport
        .stream_receive_window(VarInt::from_u32(WINDOW_BYTES))
        .receive_window(VarInt::from_u32(WINDOW_BYTES))
        .send_window(WINDOW_BYTES.into())
        .max_idle_timeout(Some(VarInt::from_u32(IDLE_MS).into()));
    Arc::new(transport)
}

/// Whether a connection has the congestion control that was asked for.
fn has_congestion(connection: &quinn::Connection, congestion: Congestion) -> bool {
    let state = connection.congestion_state().into_any();
    match congestion {
        Congestion::Cubic => state.is::<Cubic>(),
        Congestion::Reno => state.is::<NewReno>(),
        Congestion::Bbr => state.is::<Bbr>(),
    }
}

/// A socket in the calling thread's namespace, bound to an address.
fn socket(address: std::net::SocketAddr) -> std::io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    set_socket_recv_buffer_size_force(&socket, SOCKET_BYTES)?;
    set_socket_send_buffer_size_force(&socket, SOCKET_BYTES)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// How long shaking hands may take.
const HANDSHAKE: Duration = super::CONNECT_PATIENCE;
