//! quinn over SCION sockets: a file of 200 MB, and what its packets look like.

use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use hawser_scion::EndpointAddr;
use hawser_scion::conn::quic::QuicSocket;
use hawser_scion::conn::{ConnOpts, PathTable, ScionSocket, Stats};
use quinn::{ClientConfig, ServerConfig, TransportConfig};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::support::{Pair, SIX_HOURS, in_as, on, path};

/// What is transferred, in bytes.
const FILE: usize = 200_000_000;
/// What is written at once, in bytes.
const CHUNK: usize = 1 << 20;
/// How long a transfer may take on a busy machine.
const LONGEST: Duration = Duration::from_secs(120);

/// What the server certificate is for.
const NAME: &str = "scion.example";

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// A certificate, for both sides of a test.
fn certificate() -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).expect("a certificate");
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    (made.cert.der().clone(), key.into())
}

fn client_config(certificate: CertificateDer<'static>, transport: TransportConfig) -> ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).expect("a root");
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots)).expect("a configuration");
    config.transport_config(Arc::new(transport));
    config
}

/// The chunk of a file at a place: no two are alike.
fn chunk(at: usize) -> Vec<u8> {
    let mut state = at as u64 + 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(next).flatten().take(CHUNK.min(FILE - at)).collect()
}

/// Takes one stream and returns its hash and length.
async fn serve(socket: ScionSocket, config: ServerConfig) -> (u64, usize, Stats) {
    let quic = QuicSocket::new(socket).expect("a watched socket");
    let endpoint = quic.endpoint(Some(config)).expect("an endpoint");
    let connection = endpoint.accept().await.expect("a client").await.expect("a handshake");
    let (mut answer, mut stream) = connection.accept_bi().await.expect("a stream");
    let (mut hash, mut bytes) = (DefaultHasher::new(), 0);
    while let Some(chunk) = stream.read_chunk(CHUNK, true).await.expect("read") {
        hash.write(&chunk.bytes);
        bytes += chunk.bytes.len();
    }
    answer.write_all(b"done").await.expect("write");
    answer.finish().expect("finish");
    connection.closed().await;
    (hash.finish(), bytes, quic.get_ref().stats())
}

/// Sends the file and returns its hash.
async fn give(socket: ScionSocket, to: EndpointAddr, certificate: CertificateDer<'static>) -> (u64, Stats) {
    let quic = QuicSocket::new(socket).expect("a watched socket");
    let endpoint = quic.endpoint(None).expect("an endpoint");
    let name = quic.look_up(to).await.expect("a way");
    assert_eq!(quic.endpoint_of(name), Some(to));
    let mut transport = TransportConfig::default();
    quic.fit(to, &mut transport).expect("long enough packets");
    let config = client_config(certificate, transport);
    let connection = endpoint.connect_with(config, name, NAME).expect("a start").await.expect("a handshake");
    let (mut stream, mut answer) = connection.open_bi().await.expect("a stream");
    let mut hash = DefaultHasher::new();
    for at in (0..FILE).step_by(CHUNK) {
        let chunk = chunk(at);
        hash.write(&chunk);
        stream.write_all(&chunk).await.expect("write");
    }
    stream.finish().expect("finish");
    assert_eq!(answer.read_to_end(10).await.expect("an answer"), b"done");
    connection.close(0_u32.into(), b"");
    endpoint.wait_idle().await;
    (hash.finish(), quic.get_ref().stats())
}

/// Transfers the file from one namespace to the other.
fn transfer(pair: &Pair, client: ScionSocket, server: ScionSocket) -> (Stats, Stats) {
    let (certificate, key) = certificate();
    let config = ServerConfig::with_single_cert(vec![certificate.clone()], key).expect("a configuration");
    let to = server.local();
    let serving = pair.far.spawn_thread("server", move || {
        runtime().block_on(async { tokio::time::timeout(LONGEST, serve(server, config)).await.expect("in time") })
    });
    let giving = pair.near.spawn_thread("client", move || {
        runtime().block_on(async {
            let given = give(client, to, certificate);
            tokio::time::timeout(LONGEST, given).await.expect("in time")
        })
    });
    let (sent_hash, sent) = giving.expect("a thread").join().expect("no panic");
    let (hash, bytes, received) = serving.expect("a thread").join().expect("no panic");
    assert_eq!((hash, bytes), (sent_hash, FILE));
    (sent, received)
}

#[test]
fn two_hundred_megabytes_cross_inside_an_as() {
    let pair = Pair::new();
    let client = pair.socket(&pair.near, on("10.9.0.1:31000"));
    let server = pair.socket(&pair.far, on("10.9.0.2:31001"));
    let (sent, received) = transfer(&pair, client, server);
    // The way takes 1428 bytes, and quinn was told so.
    assert!(sent.sent_bytes / sent.sent_packets > 1200, "{sent:?}");
    assert_eq!((received.malformed, received.bad_checksum, received.misdirected), (0, 0, 0));
}

#[test]
fn quic_crosses_ases_and_the_server_answers_along_the_path() {
    let pair = Pair::new();
    let server = in_as("1-ff00:0:120", "[fd09::2]:31001");
    let table = PathTable::default();
    table.set(server.isd_as, vec![path(5, server.host, SIX_HOURS)]);
    let opts = ConnOpts { trains: false, ..on("[fd09::1]:31000") };
    let client = pair.socket_that_asks(&pair.near, opts, Arc::new(table));
    let server = pair.socket(&pair.far, ConnOpts { trains: false, ..ConnOpts::new(server) });
    let (sent, _) = transfer(&pair, client, server);
    assert!(sent.sent_packets > 100_000, "{sent:?}");
}
