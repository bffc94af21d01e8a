//! The server: one resource for each number of bytes, at the path of that number.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use h3::server::RequestResolver;
use http::Response;
use quinn::{Connection, Endpoint, EndpointConfig, Incoming, ServerConfig, TokioRuntime};

use super::{Congestion, Ground, LabError, check_congestion, socket};
use crate::background::Background;
use crate::workload::exchange::{lock, serving};

/// Where browsers look, and what middleboxes and tunnels judge by. Source: RFC 9110, section 4.2.2.
const PORT: u16 = 443;
/// A part of a resource.
static PART: [u8; 64 << 10] = [0; 64 << 10];

/// The connections that were accepted. Shared; starts empty.
type Connections = Arc<Mutex<Vec<Connection>>>;

/// A server under way. Ended on drop; one owner.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    serving: Background<u64>,
}

impl Server {
    pub(super) fn start(ground: &Ground, config: ServerConfig, congestion: Congestion) -> Result<Self, LabError> {
        let starting = |error| LabError::system("start an http3 server", error);
        let at = |port| socket(SocketAddr::new(ground.ends.server, port));
        // A tunnel that listens there itself has it already.
        let socket = ground.server.run(|| at(PORT).or_else(|_| at(0)))?.map_err(starting)?;
        let address = socket.local_addr().map_err(starting)?;
        let serving = serving(&ground.server, "http3-server", move |stop| async move {
            let endpoint = Endpoint::new(EndpointConfig::default(), Some(config), socket, Arc::new(TokioRuntime))?;
            let connections = Connections::default();
            tokio::select! {
                () = accept(&endpoint, &connections) => {}
                () = stop.told() => {}
            }
            lost(&connections, congestion)
        })?;
        Ok(Self { address, serving })
    }

    /// Ends it: how many packets its QUIC lost.
    pub(super) fn end(self) -> Result<u64, LabError> {
        self.serving.finish().map_err(|error| LabError::system("serve http3", error))
    }
}

fn lost(connections: &Connections, congestion: Congestion) -> io::Result<u64> {
    let connections = lock(connections);
    connections.iter().try_for_each(|connection| check_congestion(connection, congestion, "the connection's"))?;
    Ok(connections.iter().map(|connection| connection.stats().path.lost_packets).sum())
}

async fn accept(endpoint: &Endpoint, connections: &Connections) {
    while let Some(incoming) = endpoint.accept().await {
        // A connection that breaks ends with an error that nobody waits for: the client tells.
        tokio::spawn(serve(incoming, Arc::clone(connections)));
    }
}

async fn serve(incoming: Incoming, connections: Connections) -> io::Result<()> {
    let connection = incoming.await?;
    lock(&connections).push(connection.clone());
    let mut http: h3::server::Connection<_, Bytes> =
        h3::server::Connection::new(h3_quinn::Connection::new(connection)).await.map_err(io::Error::other)?;
    while let Some(request) = http.accept().await.map_err(io::Error::other)? {
        tokio::spawn(answer(request));
    }
    Ok(())
}

async fn answer(request: RequestResolver<h3_quinn::Connection, Bytes>) -> io::Result<()> {
    let (request, mut stream) = request.resolve_request().await.map_err(io::Error::other)?;
    let wanted = request.uri().path().trim_start_matches('/').parse();
    let mut left: u64 = wanted.map_err(io::Error::other)?;
    stream.send_response(Response::new(())).await.map_err(io::Error::other)?;
    while left > 0 {
        let part = PART.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        stream.send_data(Bytes::from_static(&PART[..part])).await.map_err(io::Error::other)?;
        left -= part as u64;
    }
    stream.finish().await.map_err(io::Error::other)
}
