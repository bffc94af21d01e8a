//! Who the receiver of a file is, in TLS: a key that both ends make from the same bytes. It protects nothing.

use std::sync::Arc;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, ServerConfig};
use rcgen::{CertificateParams, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use super::failed;
use crate::error::LabError;

/// The receiver's name.
pub(super) const NAME: &str = "receiver.bench";
/// What both ends speak.
const PROTOCOL: &[u8] = b"hawser-bench";
/// An Ed25519 key in PKCS #8 but for its 32 bytes. Source: RFC 8410, section 7.
const PREFIX: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
const KEY: [u8; 32] = *b"a key for measurements, not safe";

/// Key and certificate: the same at both ends.
fn identity() -> Result<(PrivatePkcs8KeyDer<'static>, CertificateDer<'static>), LabError> {
    let key = PrivatePkcs8KeyDer::from([&PREFIX[..], &KEY].concat());
    let wrong = |error: rcgen::Error| failed("make a certificate", error);
    let pair = KeyPair::try_from(&key).map_err(wrong)?;
    let certificate = CertificateParams::new([NAME.to_owned()]).and_then(|params| params.self_signed(&pair));
    Ok((key, certificate.map_err(wrong)?.der().clone()))
}

/// Of the receiver.
pub(super) fn server() -> Result<ServerConfig, LabError> {
    let wrong = |error| failed("set up tls", error);
    let (key, certificate) = identity()?;
    let mut tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .and_then(|tls| tls.with_no_client_auth().with_single_cert(vec![certificate], key.into()))
        .map_err(wrong)?;
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    let crypto = QuicServerConfig::try_from(tls).map_err(|error| failed("set up quic", error))?;
    Ok(ServerConfig::with_crypto(Arc::new(crypto)))
}

/// Of the sender, which knows the receiver.
pub(super) fn client() -> Result<ClientConfig, LabError> {
    let wrong = |error| failed("set up tls", error);
    let mut roots = RootCertStore::empty();
    roots.add(identity()?.1).map_err(wrong)?;
    let mut tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(wrong)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    let crypto = QuicClientConfig::try_from(tls).map_err(|error| failed("set up quic", error))?;
    Ok(ClientConfig::new(Arc::new(crypto)))
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_make_the_same_certificate() {
        assert_eq!(identity().expect("it is made").1, identity().expect("it is made").1);
        assert!(server().is_ok() && client().is_ok());
    }
}
