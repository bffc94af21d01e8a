//! The client: connected before the start, then one request.

use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;

use bytes::{Buf, Bytes};
use h3::client::SendRequest;
use h3_quinn::OpenStreams;
use hawser_wire::traffic::Timeline;
use http::Request;
use quinn::{ClientConfig, Endpoint, EndpointConfig, TokioRuntime};
use tokio::sync::oneshot;

use super::tls::NAME;
use super::{Congestion, Ground, LabError, Moment, Span, check_congestion, socket};
use crate::portals::any_of;
use crate::workload::CONNECT_PATIENCE;
use crate::workload::exchange::{by, join, side, until};

/// What a resource has that is not to end before the time does.
const ENDLESS: u64 = u64::MAX;

/// What came. Plain data.
pub(super) struct Downloaded {
    pub(super) got: Timeline,
    /// When all of it was there.
    pub(super) complete: Option<Moment>,
    /// Whether it ended before its time.
    pub(super) is_broken: bool,
}

/// A client that is connected. Ends when dropped; one owner.
pub(super) struct Client {
    begin: oneshot::Sender<(Span, Option<u64>)>,
    thread: JoinHandle<io::Result<Option<Downloaded>>>,
}

type Sending = SendRequest<OpenStreams, Bytes>;

impl Client {
    /// Returns when it is connected.
    pub(super) fn start(
        ground: &Ground,
        config: ClientConfig,
        server: SocketAddr,
        congestion: Congestion,
    ) -> Result<Self, LabError> {
        let starting = |error| LabError::system("start an http3 client", error);
        let socket = ground.client.run(|| socket(SocketAddr::new(any_of(server.ip()), 0)))?.map_err(starting)?;
        let (connected, stands) = sync_channel(1);
        let (begin, begun) = oneshot::channel();
        let thread = side(&ground.client, "http3-client", move || async move {
            let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, Arc::new(TokioRuntime))?;
            let connecting = endpoint.connect_with(config, server, NAME).map_err(io::Error::other)?;
            let connection = connecting.await?;
            check_congestion(&connection, congestion, "the")?;
            let http = h3_quinn::Connection::new(connection);
            let (mut driver, sending) = h3::client::new(http).await.map_err(io::Error::other)?;
            tokio::spawn(async move { poll_fn(|cx| driver.poll_close(cx)).await });
            // Nobody waits where the start has failed meanwhile.
            let _ = connected.send(());
            let Ok((span, bytes)) = begun.await else { return Ok(None) };
            Ok(Some(get(sending, span, bytes).await))
        })?;
        match stands.recv_timeout(CONNECT_PATIENCE) {
            Ok(()) => Ok(Self { begin, thread }),
            Err(RecvTimeoutError::Timeout) => Err(starting(io::ErrorKind::TimedOut.into())),
            // The thread has ended: it says why.
            Err(RecvTimeoutError::Disconnected) => {
                join("client", thread)?;
                Err(starting(io::ErrorKind::NotConnected.into()))
            }
        }
    }

    /// Gets this many bytes, or as many as come; returns at the end.
    pub(super) fn get(self, span: Span, bytes: Option<u64>) -> Result<Downloaded, LabError> {
        let gone = || LabError::system("get by http3", io::Error::from(io::ErrorKind::NotConnected));
        self.begin.send((span, bytes)).map_err(|_| gone())?;
        join("client", self.thread)?.ok_or_else(gone)
    }
}

async fn get(sending: Sending, span: Span, bytes: Option<u64>) -> Downloaded {
    let mut came = Downloaded { got: Timeline::new(span.start), complete: None, is_broken: false };
    until(span.start).await;
    let ended = by(span.end(), receive(sending, bytes, &mut came)).await;
    came.is_broken = matches!(ended, Some(Err(_)));
    came
}

async fn receive(mut sending: Sending, bytes: Option<u64>, came: &mut Downloaded) -> Result<(), Box<dyn Error>> {
    let uri = format!("https://{NAME}/{}", bytes.unwrap_or(ENDLESS));
    let mut stream = sending.send_request(Request::get(uri).body(())?).await?;
    stream.finish().await?;
    stream.recv_response().await?;
    while let Some(part) = stream.recv_data().await? {
        came.got.add(Moment::now(), part.remaining() as u64);
    }
    came.complete = Some(Moment::now());
    Ok(())
}
