//! A download over HTTP/3, by an independent QUIC (quinn) inside whatever carries it.
//!
//! 1. Server and client are threads of their own namespaces; they shake hands before anything is measured. The server
//!    has a certificate made for one run, which the client of that run alone trusts.
//! 2. From the start on the client gets one resource: of this many bytes, or one that does not end before the time
//!    does. The server has one for each number of bytes, at the path of that number.
//! 3. Every part is noted as it comes. A connection that breaks is a finding.
//! 4. At the end the server tells what its QUIC lost; its congestion control is what was asked for, or nothing counts.

use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

use bytes::{Buf, Bytes};
use h3::client::SendRequest;
use h3::server::RequestResolver;
use h3_quinn::OpenStreams;
use hawser_wire::traffic::Timeline;
use http::{Request, Response};
use quinn::congestion::{Bbr, BbrConfig, Cubic, CubicConfig, NewReno, NewRenoConfig};
use quinn::{ClientConfig, Connection, Endpoint, EndpointConfig, Incoming, ServerConfig, TokioRuntime, VarInt};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustix::net::sockopt::{set_socket_recv_buffer_size_force, set_socket_send_buffer_size_force};
use rustls::pki_types::PrivatePkcs8KeyDer;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::runtime::Builder;
use tokio::time::timeout;

use super::exchange::{by, chunk, lock, until};
use super::{CONNECT_PATIENCE, Congestion, Findings, Ground, LabError, Moment, Options, Ready, When, Workload, millis};
use crate::background::{Background, runtime};
use crate::portals::any_of;
use crate::quic;

/// What each socket holds, so that a thread that waits for a processor loses nothing.
const SOCKET_BYTES: usize = 8 << 20;
/// Where browsers look, and what middleboxes and tunnels judge by. Source: RFC 9110, section 4.2.2.
const PORT: u16 = 443;
/// The server's name.
const NAME: &str = "lab";
/// HTTP/3. Source: RFC 9114, section 3.1.
const ALPN: &[u8] = b"h3";
/// How much may be on the way: 1 Gbit/s at 250 ms.
const WINDOW_BYTES: u32 = 32 << 20;
/// After so much silence a connection is over: longer than any cut of a scenario, so that a download outlasts it.
const IDLE_MS: u32 = 60_000;
/// What a resource has that is not to end before the time does.
const ENDLESS: u64 = u64::MAX;

type Sending = SendRequest<OpenStreams, Bytes>;
/// The connections that a server accepted.
type Connections = Arc<Mutex<Vec<Connection>>>;
/// What breaks a connection, whatever it is of.
type Broken = Box<dyn Error + Send + Sync>;

pub(super) fn parse(options: &mut Options) -> Result<Workload, LabError> {
    let (congestion, bytes) = (options.congestion()?, options.bytes("bytes")?);
    Ok(Box::new(move |ground| {
        let configs = configs(congestion);
        let (server, client) = configs.map_err(|error| LabError::system("make a certificate for http3", error))?;
        let (address, serving) = serve(ground, server, congestion)?;
        let download = connect(ground, client, address, congestion, bytes)?;
        Ok(Box::new(move |when: When| {
            let mut found = download(when)?;
            let lost = serving.finish().map_err(|error| LabError::system("serve http3", error))?;
            found.put("retransmissions", lost as f64);
            Ok(found)
        }))
    }))
}

/// Step 1, the server's: where it is; at its end it tells how many packets its QUIC lost.
fn serve(
    ground: Ground<'_>,
    config: ServerConfig,
    congestion: Congestion,
) -> Result<(SocketAddr, Background<u64>), LabError> {
    let starting = |error| LabError::system("start an http3 server", error);
    let at = |port| socket(SocketAddr::new(ground.ends.server, port));
    // A tunnel that listens there itself has it already.
    let socket = ground.server.run(|| at(PORT).or_else(|_| at(0)))?.map_err(starting)?;
    let address = socket.local_addr().map_err(starting)?;
    let serving = Background::start(ground.server, "http3-server", move |stop| {
        let connections = Connections::default();
        let runtime = runtime()?;
        runtime.block_on(async {
            let endpoint = Endpoint::new(EndpointConfig::default(), Some(config), socket, Arc::new(TokioRuntime))?;
            tokio::spawn(accept(endpoint, Arc::clone(&connections)));
            stop.told().await;
            io::Result::Ok(())
        })?;
        let connections = lock(&connections);
        connections.iter().try_for_each(|one| check_congestion(one, congestion, "the connection's"))?;
        Ok(connections.iter().map(|one| one.stats().path.lost_packets).sum::<u64>())
    })?;
    Ok((address, serving))
}

/// Step 1, the client's: returns when it is connected. Dropped, it ends.
fn connect(
    ground: Ground<'_>,
    config: ClientConfig,
    to: SocketAddr,
    congestion: Congestion,
    bytes: Option<u64>,
) -> Result<Ready<'static>, LabError> {
    let starting = |error| LabError::system("start an http3 client", error);
    let failed = |error| LabError::system("run the client's side", error);
    let made = || -> io::Result<_> {
        // Its thread works between the handshake and the start, too.
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("http3-client").enable_all().build()?;
        Ok((runtime, socket(SocketAddr::new(any_of(to.ip()), 0))?))
    };
    let (runtime, socket) = ground.client.run(made)?.map_err(starting)?;
    let connecting = runtime.spawn(async move {
        let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, Arc::new(TokioRuntime))?;
        let connection = endpoint.connect_with(config, to, NAME).map_err(io::Error::other)?.await?;
        check_congestion(&connection, congestion, "the")?;
        let http = h3_quinn::Connection::new(connection);
        let (mut driver, sending) = h3::client::new(http).await.map_err(io::Error::other)?;
        tokio::spawn(async move { poll_fn(|cx| driver.poll_close(cx)).await });
        io::Result::Ok(sending)
    });
    let stands = runtime.block_on(async { timeout(CONNECT_PATIENCE, connecting).await });
    let stands = stands.map_err(|_| starting(io::ErrorKind::TimedOut.into()))?;
    let sending = stands.map_err(io::Error::other).flatten().map_err(failed)?;
    Ok(Box::new(move |when: When| {
        let getting = runtime.spawn(get(sending, bytes, when));
        runtime.block_on(getting).map_err(|error| failed(io::Error::other(error)))
    }))
}

/// Of the server and of the client.
fn configs(congestion: Congestion) -> io::Result<(ServerConfig, ClientConfig)> {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed([NAME.to_owned()]).map_err(io::Error::other)?;
    let (certificate, key) = (cert.der().clone(), PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let (mut server, mut client) = quic::configs(certificate, key, ALPN)?;
    let mut transport = quic::transport(WINDOW_BYTES);
    match congestion {
        Congestion::Cubic => transport.congestion_controller_factory(Arc::new(CubicConfig::default())),
        Congestion::Reno => transport.congestion_controller_factory(Arc::new(NewRenoConfig::default())),
        Congestion::Bbr => transport.congestion_controller_factory(Arc::new(BbrConfig::default())),
    };
    transport.max_idle_timeout(Some(VarInt::from_u32(IDLE_MS).into()));
    let transport = Arc::new(transport);
    server.transport_config(Arc::clone(&transport));
    client.transport_config(transport);
    Ok((server, client))
}

/// That a connection has the congestion control that was asked for.
fn check_congestion(connection: &Connection, congestion: Congestion, whose: &str) -> io::Result<()> {
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

/// Steps 2 and 3.
async fn get(sending: Sending, bytes: Option<u64>, when: When) -> Findings {
    let mut got = Timeline::new(when.start);
    until(when.start).await;
    let ended = by(when.end(), receive(sending, bytes, &mut got)).await;
    let mut found = Findings::default();
    let mut duration = when.duration;
    if let Some(Ok(complete)) = ended {
        // A whole resource's goodput is over the time it took.
        duration = complete - when.start;
        found.put("completion_ms", millis(duration));
    }
    found.put_goodput(&got, When { duration, ..when });
    found.put("broken_flows", f64::from(matches!(ended, Some(Err(_)))));
    found
}

/// Gets this many bytes, or as many as come: when all of them were there.
async fn receive(mut sending: Sending, bytes: Option<u64>, got: &mut Timeline) -> Result<Moment, Broken> {
    let uri = format!("https://{NAME}/{}", bytes.unwrap_or(ENDLESS));
    let mut stream = sending.send_request(Request::get(uri).body(())?).await?;
    stream.finish().await?;
    stream.recv_response().await?;
    while let Some(part) = stream.recv_data().await? {
        got.add(Moment::now(), part.remaining() as u64);
    }
    Ok(Moment::now())
}

async fn accept(endpoint: Endpoint, connections: Connections) {
    while let Some(incoming) = endpoint.accept().await {
        // A connection that breaks ends with an error that nobody waits for: the client tells.
        tokio::spawn(shake_hands(incoming, Arc::clone(&connections)));
    }
}

async fn shake_hands(incoming: Incoming, connections: Connections) -> Result<(), Broken> {
    let connection = incoming.await?;
    lock(&connections).push(connection.clone());
    let mut http = h3::server::Connection::<_, Bytes>::new(h3_quinn::Connection::new(connection)).await?;
    while let Some(request) = http.accept().await? {
        tokio::spawn(answer(request));
    }
    Ok(())
}

async fn answer(request: RequestResolver<h3_quinn::Connection, Bytes>) -> Result<(), Broken> {
    let (request, mut stream) = request.resolve_request().await?;
    let mut left: u64 = request.uri().path().trim_start_matches('/').parse()?;
    stream.send_response(Response::new(())).await?;
    while left > 0 {
        let part = chunk(left);
        stream.send_data(Bytes::from_static(part)).await?;
        left -= part.len() as u64;
    }
    Ok(stream.finish().await?)
}
