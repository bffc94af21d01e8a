//! Certificates for tunnels that want one: self-signed, made anew each time.

use rcgen::{CertifiedKey, generate_simple_self_signed};
use ring::digest::{SHA256, digest};

use crate::error::LabError;

/// A certificate and its key. Plain data.
pub(super) struct Certificate {
    /// In PEM (RFC 7468).
    pub certificate: String,
    /// The same.
    pub key: String,
    /// SHA-256 of the certificate, bytes in hexadecimal with colons.
    pub fingerprint: String,
}

pub(super) fn made(name: &str) -> Result<Certificate, LabError> {
    let failed = |error| LabError::system("make a certificate", std::io::Error::other(error));
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed([name.to_owned()]).map_err(failed)?;
    let bytes = digest(&SHA256, cert.der());
    let fingerprint: Vec<_> = bytes.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
    Ok(Certificate { certificate: cert.pem(), key: signing_key.serialize_pem(), fingerprint: fingerprint.join(":") })
}
