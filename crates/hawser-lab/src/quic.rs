//! QUIC between two ends of ours: the client trusts the server's certificate, and no other.

use std::io;
use std::sync::Arc;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, ServerConfig, TransportConfig, VarInt};
use rustls::RootCertStore;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::version::TLS13;

/// How both ends are set, where they speak this protocol (RFC 7301).
pub(crate) fn configs(
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
    protocol: &[u8],
) -> io::Result<(ServerConfig, ClientConfig)> {
    let mut server = rustls::ServerConfig::builder_with_provider(default_provider().into())
        .with_protocol_versions(&[&TLS13])
        .and_then(|tls| tls.with_no_client_auth().with_single_cert(vec![certificate.clone()], key.into()))
        .map_err(io::Error::other)?;
    server.alpn_protocols = vec![protocol.to_vec()];
    let server = QuicServerConfig::try_from(server).map_err(io::Error::other)?;

    let mut roots = RootCertStore::empty();
    roots.add(certificate).map_err(io::Error::other)?;
    let mut client = rustls::ClientConfig::builder_with_provider(default_provider().into())
        .with_protocol_versions(&[&TLS13])
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = vec![protocol.to_vec()];
    let client = QuicClientConfig::try_from(client).map_err(io::Error::other)?;
    Ok((ServerConfig::with_crypto(Arc::new(server)), ClientConfig::new(Arc::new(client))))
}

/// Transport with this many bytes under way at most, on a stream and on a connection.
pub(crate) fn transport(window: u32) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let most = VarInt::from_u32(window);
    transport.stream_receive_window(most).receive_window(most).send_window(window.into());
    transport
}
