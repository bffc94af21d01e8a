//! What TLS is made of here, where it is camouflage: few algorithms, so that a router's binary has no more than what is
//! used.
//!
//! 1. A hello names the groups and signatures that rustls names by itself, and looks like any other of rustls.
//! 2. Keys are agreed on by X25519 alone (RFC 7748), which each hello has a share for.

use std::sync::Arc;

use ring::rand::{SecureRandom as _, SystemRandom};
use rustls::crypto::ring::{cipher_suite, kx_group};
use rustls::crypto::{
    ActiveKeyExchange, CryptoProvider, GetRandomFailed, KeyProvider, SecureRandom, SupportedKxGroup,
    WebPkiSupportedAlgorithms,
};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::SigningKey;
use rustls::{NamedGroup, SignatureScheme};

/// The signatures that rustls with ring asks for by itself, in its order.
pub(super) const SCHEMES: [SignatureScheme; 9] = [
    SignatureScheme::ECDSA_NISTP384_SHA384,
    SignatureScheme::ECDSA_NISTP256_SHA256,
    SignatureScheme::ED25519,
    SignatureScheme::RSA_PSS_SHA512,
    SignatureScheme::RSA_PSS_SHA384,
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::RSA_PKCS1_SHA512,
    SignatureScheme::RSA_PKCS1_SHA384,
    SignatureScheme::RSA_PKCS1_SHA256,
];

/// Of the side that calls.
pub(super) fn of_caller() -> CryptoProvider {
    provider(vec![kx_group::X25519, &Named(NamedGroup::secp256r1), &Named(NamedGroup::secp384r1)])
}

/// Of the side that listens.
pub(super) fn of_listener() -> CryptoProvider {
    provider(vec![kx_group::X25519])
}

fn provider(kx_groups: Vec<&'static dyn SupportedKxGroup>) -> CryptoProvider {
    CryptoProvider {
        cipher_suites: vec![
            cipher_suite::TLS13_AES_256_GCM_SHA384,
            cipher_suite::TLS13_AES_128_GCM_SHA256,
            cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        ],
        kx_groups,
        signature_verification_algorithms: WebPkiSupportedAlgorithms { all: &[], mapping: &[] },
        secure_random: &Own,
        key_provider: &Own,
    }
}

/// Randomness for [`provider`], and no keys. Has no state.
#[derive(Debug)]
struct Own;

impl SecureRandom for Own {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), GetRandomFailed> {
        SystemRandom::new().fill(buffer).map_err(|_| GetRandomFailed)
    }
}

impl KeyProvider for Own {
    fn load_private_key(&self, _key: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, rustls::Error> {
        Err(rustls::Error::General("load key: none is read, as a listener makes its own".to_owned()))
    }
}

/// A group that a hello names and nobody begins: every listener takes the first.
#[derive(Debug)]
struct Named(NamedGroup);

impl SupportedKxGroup for Named {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, rustls::Error> {
        Err(rustls::Error::General(format!("agree on keys: by {:?}, which is only named", self.0)))
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rustls::crypto::ring::default_provider;
    use rustls::{ClientConnection, Connection, ServerConnection};

    use super::super::tls::{OWN_NAME, caller_of, listener_of};
    use super::super::tls_certificate::certified_key;
    use super::*;

    /// What a hello says, by extension (RFC 8446 section 4.1.2), whose order rustls shuffles; the share of a key is
    /// left out.
    fn hello(of: CryptoProvider) -> (Vec<u8>, BTreeMap<u16, Vec<u8>>) {
        const RECORD_AND_HANDSHAKE: usize = 5 + 4;
        const VERSION_AND_RANDOM: usize = 2 + 32;
        const KEY_SHARE: u16 = 51;
        let mut client = client(of);
        let mut sent = Vec::new();
        client.write_tls(&mut sent).unwrap();
        let body = &sent[RECORD_AND_HANDSHAKE + VERSION_AND_RANDOM..];
        let (_session, body) = body[1..].split_at(usize::from(body[0]));
        let suites = 2 + usize::from(u16::from_be_bytes([body[0], body[1]]));
        let compression = 1 + usize::from(body[suites]);
        let (suites, mut rest) = (body[..suites].to_vec(), &body[suites + compression + 2..]);
        let mut extensions = BTreeMap::new();
        while let [kind, kind_low, len, len_low, ..] = *rest {
            let (value, after) = rest[4..].split_at(usize::from(u16::from_be_bytes([len, len_low])));
            extensions.insert(u16::from_be_bytes([kind, kind_low]), value.to_vec());
            rest = after;
        }
        let share = extensions.get_mut(&KEY_SHARE).unwrap();
        share.truncate(share.len() - 32);
        (suites, extensions)
    }

    fn client(of: CryptoProvider) -> Connection {
        let name = OWN_NAME.try_into().unwrap();
        ClientConnection::new(Arc::new(caller_of(of).unwrap()), name).unwrap().into()
    }

    fn server(of: CryptoProvider) -> Connection {
        ServerConnection::new(Arc::new(listener_of(of, certified_key().unwrap()).unwrap())).unwrap().into()
    }

    fn agree(mut client: Connection, mut server: Connection) {
        while client.is_handshaking() || server.is_handshaking() {
            carry(&mut client, &mut server);
            carry(&mut server, &mut client);
        }
    }

    fn carry(from: &mut Connection, to: &mut Connection) {
        let mut flight = Vec::new();
        while from.wants_write() {
            from.write_tls(&mut flight).unwrap();
        }
        to.read_tls(&mut flight.as_slice()).unwrap();
        to.process_new_packets().unwrap();
    }

    #[test]
    fn a_hello_says_what_any_other_of_rustls_says() {
        // Where tonic is built beside, the default has what TLS 1.2 takes, too.
        let mut others = default_provider();
        others.cipher_suites.retain(|suite| suite.tls13().is_some());
        assert_eq!(hello(of_caller()), hello(others));
    }

    #[test]
    fn both_sides_agree_with_each_other_and_with_those_that_have_every_algorithm() {
        agree(client(of_caller()), server(of_listener()));
        agree(client(default_provider()), server(of_listener()));
        agree(client(of_caller()), server(default_provider()));
    }
}
