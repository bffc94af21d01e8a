//! Who the receiver of a file is, in TLS: a key that both ends make from the same bytes. It protects nothing.

use quinn::{ClientConfig, ServerConfig};
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use super::{LabError, failed};
use crate::quic;

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

/// Of the receiver, and of the sender, which knows the receiver.
pub(super) fn configs() -> Result<(ServerConfig, ClientConfig), LabError> {
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
}
