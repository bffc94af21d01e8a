//! Stands in for a SCION daemon: the server's side of its service, answering as a test says, wrongly too.
//!
//! gRPC's frames are written by hand over h2, so that they can be wrong, and the product needs no server's parts.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use bytes::{BufMut, Bytes, BytesMut};
use h2::RecvStream;
use h2::server::SendResponse;
use hawser_scion::IsdAs;
use hawser_scion::daemon::proto;
use http::{HeaderMap, HeaderValue, Response};
use prost::Message;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::sync::{Notify, oneshot};

/// gRPC: the flag and the length in front of a message.
const MESSAGE_HEAD: usize = 5;

/// What a daemon does when it is asked.
#[derive(Debug, Clone)]
pub enum Answer {
    /// A message.
    Message(Vec<u8>),
    /// An error: its code and its words.
    Error(u8, &'static str),
    /// Nothing, for ever.
    Silence,
    /// It goes away.
    HangUp,
}

/// What is answered, by the last part of a method's name and the message.
type Rule = Arc<dyn Fn(&str, &[u8]) -> Answer + Send + Sync>;

/// A daemon on a port of its own of 127.0.0.1, in a thread of its own until it is dropped.
pub struct StandIn {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl StandIn {
    /// Answers, by the last part of a method's name and the message.
    pub fn start(answer: impl Fn(&str, &[u8]) -> Answer + Send + Sync + 'static) -> StandIn {
        StandIn::start_at("127.0.0.1:0".parse().expect("an address"), answer)
    }

    /// The same, at an address.
    pub fn start_at(at: SocketAddr, answer: impl Fn(&str, &[u8]) -> Answer + Send + Sync + 'static) -> StandIn {
        let (stop, stopped) = oneshot::channel();
        let listener = std::net::TcpListener::bind(at).expect("it binds");
        listener.set_nonblocking(true).expect("it can be awaited");
        let address = listener.local_addr().expect("it has an address");
        let serve = async move {
            let listener = TcpListener::from_std(listener).expect("it is a listener");
            let answer: Rule = Arc::new(answer);
            loop {
                let (stream, _) = listener.accept().await.expect("it accepts");
                tokio::spawn(serve_connection(stream, answer.clone()));
            }
        };
        let thread = thread::spawn(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                tokio::select! {
                    () = serve => {}
                    _ = stopped => {}
                }
            });
        });
        StandIn { address, stop: Some(stop), thread: Some(thread) }
    }

    /// A daemon that answers by a table.
    pub fn with_table(table: Table) -> StandIn {
        StandIn::start(move |method, asked| table.answer(method, asked))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(!matches!(ended, Some(Err(_))) || thread::panicking(), "the stand-in panicked");
    }
}

async fn serve_connection(stream: TcpStream, answer: Rule) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    let hangs_up = Arc::new(Notify::new());
    loop {
        // Waiting for the next request also moves what the others send and receive.
        let next = tokio::select! {
            next = connection.accept() => next,
            () = hangs_up.notified() => return,
        };
        let Some(Ok((request, respond))) = next else { return };
        let (answer, hangs_up) = (answer.clone(), hangs_up.clone());
        tokio::spawn(async move {
            let method = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
            let asked = message(request.into_body()).await;
            let answer = answer(&method, &asked);
            if matches!(answer, Answer::HangUp) {
                hangs_up.notify_one();
            }
            tell(respond, answer).await;
        });
    }
}

async fn message(mut body: RecvStream) -> Vec<u8> {
    let mut framed = Vec::new();
    while let Some(Ok(data)) = body.data().await {
        let _ = body.flow_control().release_capacity(data.len());
        framed.extend_from_slice(&data);
    }
    framed.split_off(MESSAGE_HEAD.min(framed.len()))
}

async fn tell(mut respond: SendResponse<Bytes>, answer: Answer) {
    let head = || Response::builder().header("content-type", "application/grpc");
    match answer {
        Answer::Message(message) => {
            let mut framed = BytesMut::with_capacity(MESSAGE_HEAD + message.len());
            framed.put_u8(0);
            framed.put_u32(message.len().try_into().expect("it is short"));
            framed.extend_from_slice(&message);
            let Ok(mut body) = respond.send_response(head().body(()).expect("a response"), false) else { return };
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", HeaderValue::from_static("0"));
            let _ = body.send_data(framed.freeze(), false).and_then(|()| body.send_trailers(trailers));
        }
        Answer::Error(code, words) => {
            let error = head().header("grpc-status", code.to_string()).header("grpc-message", words);
            let _ = respond.send_response(error.body(()).expect("a response"), true);
        }
        Answer::Silence => std::future::pending().await,
        Answer::HangUp => std::future::pending().await,
    }
}

/// What a daemon knows. Plain data.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// The local AS.
    pub local: proto::AsResponse,
    /// The paths to each AS.
    pub paths: BTreeMap<IsdAs, Vec<proto::Path>>,
    /// Its border routers.
    pub interfaces: BTreeMap<u64, String>,
    /// Its dispatched ports.
    pub ports: (u32, u32),
}

impl Table {
    /// What it says to a request.
    pub fn answer(&self, method: &str, asked: &[u8]) -> Answer {
        let message = match method {
            "Paths" => {
                let asked = proto::PathsRequest::decode(asked).expect("a request");
                let destination = IsdAs::from_bits(asked.destination_isd_as);
                let Some(paths) = self.paths.get(&destination) else {
                    return Answer::Error(2, "no path found");
                };
                proto::PathsResponse { paths: paths.clone() }.encode_to_vec()
            }
            "AS" => self.local.encode_to_vec(),
            "Interfaces" => {
                let interfaces = self.interfaces.iter().map(|(&id, address)| (id, router(address))).collect();
                proto::InterfacesResponse { interfaces }.encode_to_vec()
            }
            "PortRange" => {
                let (dispatched_port_start, dispatched_port_end) = self.ports;
                proto::PortRangeResponse { dispatched_port_start, dispatched_port_end }.encode_to_vec()
            }
            "NotifyInterfaceDown" => proto::NotifyInterfaceDownResponse {}.encode_to_vec(),
            _ => return Answer::Error(12, "unknown method"),
        };
        Answer::Message(message)
    }
}

/// A border router's address, as a daemon tells it.
pub fn router(address: &str) -> proto::Interface {
    proto::Interface { address: Some(proto::Underlay { address: address.to_owned() }) }
}

/// A path as a daemon tells it: `1-1 4 5 1-2` leads from 1-1 by its interface 4 to interface 5 of 1-2; more may follow.
/// It has one segment, in which each AS has a hop field.
pub fn told(way: &str) -> proto::Path {
    let words: Vec<&str> = way.split(' ').collect();
    let interface = |isd_as: &str, id: &str| proto::PathInterface {
        isd_as: isd_as.parse::<IsdAs>().expect("an AS").to_bits(),
        id: id.parse().expect("an interface"),
    };
    let links = words.windows(4).step_by(3);
    let interfaces: Vec<_> =
        links.flat_map(|link| [interface(link[0], link[1]), interface(link[3], link[2])]).collect();
    let hops = interfaces.len() / 2 + 1;
    proto::Path {
        raw: raw(hops.try_into().expect("few")),
        interface: Some(router("10.0.0.1:30042")),
        interfaces,
        mtu: 1472,
        expiration: Some(prost_types::Timestamp { seconds: 1_900_000_000, nanos: 0 }),
        latency: Vec::new(),
        bandwidth: Vec::new(),
    }
}

/// A SCION path of one segment (scion-header.rst): meta header, info field, hop fields.
pub fn raw(hops: u8) -> Vec<u8> {
    const SEGMENT_SHIFT: u32 = 12;
    const INFO_LEN: usize = 8;
    const HOP_LEN: usize = 12;
    let mut raw = (u32::from(hops) << SEGMENT_SHIFT).to_be_bytes().to_vec();
    raw.resize(raw.len() + INFO_LEN + usize::from(hops) * HOP_LEN, 0);
    raw
}
