//! Who the server is: a certificate made for one run, which the client of that run alone trusts.

use std::io;
use std::sync::Arc;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::error::LabError;

/// The server's name.
pub(super) const NAME: &str = "lab";
/// HTTP/3. Source: RFC 9114, section 3.1.
const ALPN: &[u8] = b"h3";

/// A certificate and its key. Plain data.
pub(super) struct Identity {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

/// A new one.
pub(super) fn identity() -> Result<Identity, LabError> {
    let made = generate_simple_self_signed([NAME.to_owned()]);
    let CertifiedKey { cert, signing_key } = made.map_err(|error| failed(io::Error::other(error)))?;
    Ok(Identity { certificate: cert.der().clone(), key: signing_key.serialize_der() })
}

fn failed(error: io::Error) -> LabError {
    LabError::system("make a certificate for http3", error)
}

impl Identity {
    pub(super) fn server(&self) -> Result<Arc<QuicServerConfig>, LabError> {
        let make = || {
            let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.key.clone()));
            let mut config = ServerConfig::builder_with_provider(default_provider().into())
                .with_protocol_versions(&[&TLS13])
                .map_err(io::Error::other)?
                .with_no_client_auth()
                .with_single_cert(vec![self.certificate.clone()], key)
                .map_err(io::Error::other)?;
            config.alpn_protocols = vec![ALPN.to_vec()];
            Ok(Arc::new(QuicServerConfig::try_from(config).map_err(io::Error::other)?))
        };
        make().map_err(failed)
    }

    pub(super) fn client(&self) -> Result<Arc<QuicClientConfig>, LabError> {
        let make = || {
            let mut roots = RootCertStore::empty();
            roots.add(self.certificate.clone()).map_err(io::Error::other)?;
            let mut config = ClientConfig::builder_with_provider(default_provider().into())
                .with_protocol_versions(&[&TLS13])
                .map_err(io::Error::other)?
                .with_root_certificates(roots)
                .with_no_client_auth();
            config.alpn_protocols = vec![ALPN.to_vec()];
            Ok(Arc::new(QuicClientConfig::try_from(config).map_err(io::Error::other)?))
        };
        make().map_err(failed)
    }
}
