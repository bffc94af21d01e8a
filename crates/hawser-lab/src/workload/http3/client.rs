//! The client: connected before the start, then one request.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;

use bytes::{Buf, Bytes};
use h3::client::SendRequest;
use h3_quinn::OpenStreams;
use hawser_wire::Moment;
use hawser_wire::traffic::{Congestion, Timeline};
use http::Request;
use quinn::{ClientConfig, Endpoint, EndpointConfig, TokioRuntime};
use tokio::sync::oneshot;

use super::tls::{Identity, NAME};
use super::{HANDSHAKE, has_congestion, socket, transport};
use crate::error::LabError;
use crate::workload::Ground;
use crate::workload::exchange::{join, side, until};

/// What a resource has that is not to end before the time does.
const ENDLESS: u64 = u64::MAX;

/// What is to be got, and when. Plain data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Download {
    pub(super) start: Moment,
    pub(super) end: Moment,
    /// None: as much as comes.
    pub(super) bytes: Option<u64>,
}

/// What came. Plain data.
pub(super) struct Downloaded {
    pub(super) got: Timeline,
    /// When all of it was there.
    pub(super) complete: Option<Moment>,
    /// Why it ended before its time, where it did.
    pub(super) broken: Option<String>,
}

/// A client that is connected. Ends when dropped; one owner.
pub(super) struct Client {
    begin: oneshot::Sender<Download>,
    thread: JoinHandle<io::Result<Option<Downloaded>>>,
}

type Sending = SendRequest<OpenStreams, Bytes>;

impl Client {
    /// Returns when it is connected.
    pub(super) fn start(
        ground: &Ground,
        identity: &Identity,
        server: SocketAddr,
        congestion: Congestion,
    ) -> Result<Self, LabError> {
        let starting = |error| LabError::system("start an http3 client", error);
        let any = if server.is_ipv4() { IpAddr::from(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = ground.client.run(|| socket(SocketAddr::new(any, 0)))?.map_err(starting)?;
        let mut config = ClientConfig::new(identity.client()?);
        config.transport_config(transport(congestion));
        let (connected, stands) = sync_channel(1);
        let (begin, begun) = oneshot::channel();
        let thread = side(&ground.client, "http3-client", move || async move {
            let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, Arc::new(TokioRuntime))?;
            let connecting = endpoint.connect_with(config, server, NAME).map_err(io::Error::other)?;
            let connection = connecting.await?;
            if !has_congestion(&connection, congestion) {
                return Err(io::Error::other(format!("the congestion control is not {}", congestion.name())));
            }
            let http = h3_quinn::Connection::new(connection);
            let (mut driver, sending) = h3::client::new(http).await.map_err(io::Error::other)?;
            let driving = async move { poll_fn(|cx| driver.poll_close(cx)).await };
            tokio::spawn(driving);
            // Nobody waits where the start has failed meanwhile.
            let _ = connected.send(());
            match begun.await {
                Ok(download) => Ok(Some(get(sending, download).await)),
                Err(_) => Ok(None),
            }
        })?;
        match stands.recv_timeout(HANDSHAKE) {
            Ok(()) => Ok(Self { begin, thread }),
            Err(RecvTimeoutError::Timeout) => Err(starting(io::ErrorKind::TimedOut.into())),
            // The thread has ended: it says why.
            Err(RecvTimeoutError::Disconnected) => {
                join("client", thread)?;
                Err(starting(io::ErrorKind::NotConnected.into()))
            }
        }
    }

    /// Gets it; returns at the end.
    pub(super) fn get(self, download: Download) -> Result<Downloaded, LabError> {
        let gone = || LabError::system("get by http3", io::Error::from(io::ErrorKind::NotConnected));
        self.begin.send(download).map_err(|_| gone())?;
        join("client", self.thread)?.ok_or_else(gone)
    }
}

async fn get(sending: Sending, download: Download) -> Downloaded {
    let mut came = Downloaded { got: Timeline::new(download.start), complete: None, broken: None };
    until(download.start).await;
    tokio::select! {
        ended = receive(sending, download, &mut came) => came.broken = ended.err(),
        () = until(download.end) => {}
    }
    came
}

async fn receive(mut sending: Sending, download: Download, came: &mut Downloaded) -> Result<(), String> {
    let text = |error: h3::error::StreamError| error.to_string();
    let uri = format!("https://{NAME}/{}", download.bytes.unwrap_or(ENDLESS));
    let request = Request::get(uri).body(()).map_err(|error| error.to_string())?;
    let mut stream = sending.send_request(request).await.map_err(text)?;
    stream.finish().await.map_err(text)?;
    stream.recv_response().await.map_err(text)?;
    while let Some(part) = stream.recv_data().await.map_err(text)? {
        came.got.add(Moment::now(), part.remaining() as u64);
    }
    came.complete = Some(Moment::now());
    Ok(())
}
