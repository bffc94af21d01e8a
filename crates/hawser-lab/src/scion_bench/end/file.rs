//! A file over QUIC: one piece of it for each connection.
//!
//! 1. The receiver opens a socket for each connection, and knows by it which piece comes. Who it is, in TLS, is a key
//!    that both ends make from the same bytes: it protects nothing.
//! 2. The sender connects, sends its piece on one stream, and waits until the receiver closes: it has all of it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Instant;

use hawser_scion::conn::ScionSocket;
use hawser_scion::conn::quic::QuicSocket;
use quinn::{ApplicationClose, ClientConfig, Connection, ConnectionError, Endpoint, ServerConfig, VarInt};
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio::task::JoinSet;

use super::{Begin, Count, LabError, Order, failed, ready};
use crate::quic;

/// Bytes that may be under way on a connection: what the programs over snet allow.
const WINDOW: u32 = 16 << 20;
/// Bytes handed on at once.
pub(super) const CHUNK: usize = 256 << 10;
/// The application's word for "all is there".
const DONE: VarInt = VarInt::from_u32(0);
/// The receiver's name.
const NAME: &str = "receiver.bench";
/// What both ends speak.
const PROTOCOL: &[u8] = b"hawser-bench";
/// An Ed25519 key in PKCS #8 but for its 32 bytes. Source: RFC 8410, section 7.
const PREFIX: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
pub(super) const KEY: [u8; 32] = *b"a key for measurements, not safe";

/// A part of the file. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub offset: u64,
    pub bytes: u64,
}

impl Piece {
    pub fn of(size: u64, connection: u16, connections: u16) -> Self {
        let begin = |piece: u16| size * u64::from(piece) / u64::from(connections);
        Self { offset: begin(connection), bytes: begin(connection + 1) - begin(connection) }
    }
}

pub(super) fn send(order: &Order) -> Result<Count, LabError> {
    runtime()?.block_on(async {
        let file = Arc::new(open(order, File::options().read(true))?);
        let size = file.metadata().map_err(|error| failed("look at the file", error))?.len();
        ready();
        let mut pieces = JoinSet::new();
        let begin = Begin::now()?;
        for connection in 0..order.connections {
            let piece = Piece::of(size, connection, order.connections);
            pieces.spawn(send_piece(order.clone(), connection, piece, Arc::clone(&file)));
        }
        count(pieces, begin).await
    })
}

async fn send_piece(order: Order, number: u16, piece: Piece, file: Arc<File>) -> Result<(u64, u64), LabError> {
    let socket = socket(&order, number)?;
    let name = socket.look_up(order.remote(number)?).await.map_err(|error| failed("find a way", error))?;
    let mut transport = quic::transport(WINDOW);
    socket.fit(order.remote(number)?, &mut transport).map_err(|error| failed("fit", error))?;
    let (_, mut config) = configs()?;
    config.transport_config(Arc::new(transport));
    let endpoint = socket.endpoint(None).map_err(|error| failed("make an endpoint", error))?;
    let connecting = endpoint.connect_with(config, name, NAME).map_err(|error| failed("connect", error))?;
    let connection = connecting.await.map_err(|error| failed("connect", error))?;

    let mut stream = connection.open_uni().await.map_err(|error| failed("open a stream", error))?;
    let mut chunk = vec![0; CHUNK];
    let mut done = 0;
    while done < piece.bytes {
        let some = &mut chunk[..usize::try_from(piece.bytes - done).unwrap_or(CHUNK).min(CHUNK)];
        file.read_exact_at(some, piece.offset + done).map_err(|error| failed("read the file", error))?;
        stream.write_all(some).await.map_err(|error| failed("send", error))?;
        done += some.len() as u64;
    }
    stream.finish().map_err(|error| failed("end the stream", error))?;
    match connection.closed().await {
        ConnectionError::ApplicationClosed(ApplicationClose { error_code: DONE, .. }) => {}
        other => return Err(failed("wait for the receiver", other)),
    }
    Ok((connection.stats().udp_tx.datagrams, done))
}

pub(super) fn receive(order: &Order) -> Result<Count, LabError> {
    runtime()?.block_on(async {
        let file = Arc::new(open(order, File::options().write(true))?);
        let (mut config, _) = configs()?;
        config.transport_config(Arc::new(quic::transport(WINDOW)));
        let mut pieces = JoinSet::new();
        let endpoint = |number| {
            let endpoint = socket(order, number)?.endpoint(Some(config.clone()));
            endpoint.map_err(|error| failed("make an endpoint", error))
        };
        let endpoints = (0..order.connections).map(endpoint).collect::<Result<Vec<Endpoint>, LabError>>()?;
        ready();
        let begin = Begin::now()?;
        for (number, endpoint) in (0..).zip(endpoints) {
            let piece = Piece::of(order.size, number, order.connections);
            pieces.spawn(receive_piece(endpoint, piece, Arc::clone(&file)));
        }
        count(pieces, begin).await
    })
}

async fn receive_piece(endpoint: Endpoint, piece: Piece, file: Arc<File>) -> Result<(u64, u64), LabError> {
    let incoming = endpoint.accept().await.ok_or_else(|| failed("accept a connection", "the endpoint is closed"))?;
    let connection: Connection = incoming.await.map_err(|error| failed("accept a connection", error))?;
    let mut stream = connection.accept_uni().await.map_err(|error| failed("accept a stream", error))?;
    let mut done = 0;
    while let Some(chunk) = stream.read_chunk(CHUNK, true).await.map_err(|error| failed("receive", error))? {
        file.write_all_at(&chunk.bytes, piece.offset + done).map_err(|error| failed("write the file", error))?;
        done += chunk.bytes.len() as u64;
    }
    if done != piece.bytes {
        return Err(failed("receive", format!("{done} bytes of {}", piece.bytes)));
    }
    let packets = connection.stats().udp_rx.datagrams;
    connection.close(DONE, b"");
    endpoint.wait_idle().await;
    Ok((packets, done))
}

/// Adds up what each piece's packets and bytes were.
async fn count(mut pieces: JoinSet<Result<(u64, u64), LabError>>, begin: Begin) -> Result<Count, LabError> {
    let mut done = (0, 0);
    while let Some(piece) = pieces.join_next().await {
        let (packets, bytes) = piece.map_err(|error| failed("carry a piece", error))??;
        done = (done.0 + packets, done.1 + bytes);
    }
    begin.count(Instant::now(), done.0, done.1)
}

fn runtime() -> Result<tokio::runtime::Runtime, LabError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| failed("start a runtime", error))
}

fn socket(order: &Order, number: u16) -> Result<Arc<QuicSocket>, LabError> {
    let socket = ScionSocket::bind(order.opts(number), order.paths()?).map_err(|e| failed("open a socket", e))?;
    QuicSocket::new(socket).map_err(|error| failed("open a socket", error))
}

pub(super) fn open(order: &Order, how: &std::fs::OpenOptions) -> Result<File, LabError> {
    let path = order.file.as_ref().ok_or_else(|| failed("read the order", "--file is needed"))?;
    how.open(path).map_err(LabError::file("open", path))
}

/// Key and certificate: the same at both ends.
fn identity() -> Result<(PrivatePkcs8KeyDer<'static>, CertificateDer<'static>), LabError> {
    let key = PrivatePkcs8KeyDer::from([&PREFIX[..], &KEY].concat());
    let wrong = |error: rcgen::Error| failed("make a certificate", error);
    let pair = KeyPair::try_from(&key).map_err(wrong)?;
    let certificate = CertificateParams::new([NAME.to_owned()]).and_then(|params| params.self_signed(&pair));
    Ok((key, certificate.map_err(wrong)?.der().clone()))
}

/// Of the receiver, and of the sender, which knows the receiver.
fn configs() -> Result<(ServerConfig, ClientConfig), LabError> {
    let (key, certificate) = identity()?;
    quic::configs(certificate, key, PROTOCOL).map_err(|error| failed("set up tls", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_make_the_same_certificate() {
        assert_eq!(identity().expect("it is made").1, identity().expect("it is made").1);
        assert!(configs().is_ok());
    }

    #[test]
    fn pieces_are_the_whole_file_and_no_byte_twice() {
        for (size, connections) in [(10, 3), (1_000_000_000, 12), (5, 1), (2, 4)] {
            let mut end = 0;
            for piece in (0..connections).map(|number| Piece::of(size, number, connections)) {
                assert_eq!(piece.offset, end);
                end += piece.bytes;
            }
            assert_eq!(end, size);
        }
    }
}
