//! A listener's key and certificate where the binary is to be small, as a router's: signed by Ed25519 (RFC 8032). Other
//! portals offer it; who does not, as some browsers, gets an alert.

use std::io;

use rcgen::{CertificateParams, PKCS_ED25519, PublicKeyData, SignatureAlgorithm};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use rustls::crypto::ring::sign;
use rustls::sign::CertifiedKey;

use super::tls::OWN_NAME;

/// A new key and a certificate signed with it.
pub(super) fn certified_key() -> io::Result<CertifiedKey> {
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(refused)?;
    let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).map_err(refused)?;
    let params = CertificateParams::new([OWN_NAME.to_owned()]).map_err(io::Error::other)?;
    let certificate = params.self_signed(&Signer(pair)).map_err(io::Error::other)?;
    let key = sign::any_eddsa_type(&pkcs8.as_ref().into()).map_err(io::Error::other)?;
    Ok(CertifiedKey::new(vec![certificate.der().clone()], key))
}

fn refused(reason: impl ToString) -> io::Error {
    io::Error::other(format!("make a TLS key: {}", reason.to_string()))
}

/// Signs a certificate. Begins with its key and never changes.
struct Signer(Ed25519KeyPair);

impl PublicKeyData for Signer {
    fn der_bytes(&self) -> &[u8] {
        self.0.public_key().as_ref()
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ED25519
    }
}

impl rcgen::SigningKey for Signer {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        Ok(self.0.sign(message).as_ref().to_vec())
    }
}
