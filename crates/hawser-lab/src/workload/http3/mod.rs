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

use std::io;
use std::net::{SocketAddr, UdpSocket};

use quinn::congestion::{Bbr, Cubic, NewReno};
use rustix::net::sockopt::{set_socket_recv_buffer_size_force, set_socket_send_buffer_size_force};
use socket2::{Domain, Protocol, Socket, Type};

use self::client::Client;
use self::server::Server;
use super::{Congestion, Findings, Ground, LabError, Moment, Options, Span, Workload};

/// What each socket holds, so that a thread that waits for a processor loses nothing.
const SOCKET_BYTES: usize = 8 << 20;

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
        let configs = tls::configs(self.congestion);
        let (server, client) = configs.map_err(|error| LabError::system("make a certificate for http3", error))?;
        let server = Server::start(ground, server, self.congestion)?;
        let client = Client::start(ground, client, server.address, self.congestion)?;
        self.ready = Some((server, client));
        Ok(())
    }

    /// Steps 2 to 4.
    fn run(&mut self, ground: &Ground, start: Moment) -> Result<Findings, LabError> {
        let (server, client) = self.ready.take().ok_or_else(|| super::unprepared("http3"))?;
        let download = client.get(Span { start, duration: ground.duration }, self.bytes)?;
        let lost = server.end()?;
        let mut found = Findings::default();
        // A whole resource's goodput is over the time it took.
        let end = download.complete.unwrap_or(start + ground.duration);
        found.put_goodput(&download.got, Span { start, duration: end - start });
        if download.complete.is_some() {
            found.put("completion_ms", (end - start).as_secs_f64() * 1e3);
        }
        found.put("retransmissions", lost as f64);
        found.put("broken_flows", f64::from(download.is_broken));
        Ok(found)
    }
}

/// That a connection has the congestion control that was asked for.
fn check_congestion(connection: &quinn::Connection, congestion: Congestion, whose: &str) -> io::Result<()> {
    let state = connection.congestion_state().into_any();
    let is_it = match congestion {
        Congestion::Cubic => state.is::<Cubic>(),
        Congestion::Reno => state.is::<NewReno>(),
        Congestion::Bbr => state.is::<Bbr>(),
    };
    let wrong = || io::Error::other(format!("{whose} congestion control is not {}", congestion.name()));
    is_it.then_some(()).ok_or_else(wrong)
}

/// A socket in the calling thread's namespace, bound to an address.
fn socket(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    set_socket_recv_buffer_size_force(&socket, SOCKET_BYTES)?;
    set_socket_send_buffer_size_force(&socket, SOCKET_BYTES)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}
