//! A listener's key and certificate: signed by ECDSA with P-256, which whoever speaks TLS 1.3 offers (RFC 8446
//! section 9.1). Nobody verifies it, and nobody else sees it.

use std::io;

use rustls::crypto::ring::sign;
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::CertifiedKey;

use super::tls::OWN_NAME;

/// A new key and a certificate signed with it.
pub(super) fn certified_key() -> io::Result<CertifiedKey> {
    let made = rcgen::generate_simple_self_signed([OWN_NAME.to_owned()]).map_err(io::Error::other)?;
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let key = sign::any_ecdsa_type(&key).map_err(io::Error::other)?;
    Ok(CertifiedKey::new(vec![made.cert.der().clone()], key))
}
