//! A stream inside TLS 1.3 (RFC 8446), for networks that let nothing else pass: camouflage. Nothing is asked of the
//! certificate, which each listener makes for itself: what is inside is sealed, and its sender proven, by Hawser's own
//! handshake.
//!
//! 1. The side that calls asks for a name, or for none. 2. Both write records into the session, and what comes out of
//!    it to the socket; received bytes go the other way.

use std::io::{self, Read as _, Write as _};
use std::net::IpAddr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::TLS13;
use rustls::{
    ClientConfig, ClientConnection, Connection, DigitallySignedStruct, ServerConfig, ServerConnection, SignatureScheme,
};
use socket2::Socket;

use super::super::send_batch::Piece;
use super::records::length_of;
use super::{tls_certificate, tls_provider};

/// What both sides say they speak inside (RFC 9113, RFC 9112): what browsers and servers of the web do.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];
/// The name in a listener's certificate.
pub(super) const OWN_NAME: &str = "localhost";
/// The first byte of a stream inside TLS: a handshake record (RFC 8446 section 5.1). A plain record that began so would
/// be longer than any is.
pub(super) const FIRST_BYTE: u8 = 0x16;
/// A record of TLS is opened only when all of it came: short ones cost 22 bytes each and make a slow path wait less, in
/// bytes.
const RECORD_MOST: usize = 4096;
/// What rustls keeps of a record whose end has not come, at most, in bytes: it takes records as long as TLS 1.2 has
/// them (RFC 5246 section 6.2.3), and their headers.
pub(super) const PART_MOST: usize = 16_384 + 2_048 + 5;

/// What a link's streams begin TLS with. Made once for a link; shared by its streams.
#[derive(Debug, Clone)]
pub(super) enum Party {
    /// The side that calls, and the name that it asks for.
    Caller(Arc<ClientConfig>, Option<ServerName<'static>>),
    /// The side that listens.
    Listener(Arc<ServerConfig>),
}

/// A stream's TLS session. Begins before its handshake. Its stream owns it.
#[derive(Debug)]
pub(super) struct Tls(Connection);

impl Party {
    /// For a link that calls.
    pub(super) fn caller(name: Option<&str>) -> io::Result<Party> {
        let config = caller_of(tls_provider::of_caller()).map_err(io::Error::other)?;
        let name = name.map(|name| ServerName::try_from(name.to_owned()).map_err(io::Error::other)).transpose()?;
        Ok(Party::Caller(Arc::new(config), name))
    }

    /// For a link that listens, with a new key and certificate.
    pub(super) fn listener() -> io::Result<Party> {
        let own = tls_certificate::certified_key()?;
        let config = listener_of(tls_provider::of_listener(), own).map_err(io::Error::other)?;
        Ok(Party::Listener(Arc::new(config)))
    }

    /// A session to or from `remote`.
    pub(super) fn session(&self, remote: IpAddr) -> io::Result<Tls> {
        let connection = match self {
            Party::Caller(config, name) => {
                let name = name.clone().unwrap_or_else(|| ServerName::IpAddress(remote.into()));
                ClientConnection::new(Arc::clone(config), name).map(Connection::from)
            }
            Party::Listener(config) => ServerConnection::new(Arc::clone(config)).map(Connection::from),
        };
        let mut connection = connection.map_err(io::Error::other)?;
        // What may be written is bounded by whoever asks a stream for room.
        connection.set_buffer_limit(None);
        Ok(Tls(connection))
    }
}

pub(super) fn caller_of(provider: CryptoProvider) -> Result<ClientConfig, rustls::Error> {
    let config = ClientConfig::builder_with_provider(provider.into()).with_protocol_versions(&[&TLS13])?.dangerous();
    let mut config = config.with_custom_certificate_verifier(Arc::new(Anybody)).with_no_client_auth();
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    config.max_fragment_size = Some(RECORD_MOST);
    Ok(config)
}

pub(super) fn listener_of(provider: CryptoProvider, own: CertifiedKey) -> Result<ServerConfig, rustls::Error> {
    let config = ServerConfig::builder_with_provider(provider.into()).with_protocol_versions(&[&TLS13])?;
    let mut config = config.with_no_client_auth().with_cert_resolver(Arc::new(SingleCertAndKey::from(own)));
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    config.max_fragment_size = Some(RECORD_MOST);
    Ok(config)
}

impl Tls {
    /// Receives: what was inside, into `buffer`, which is longer than [`PART_MOST`]; 0 at the end of the stream.
    pub(super) fn read(&mut self, socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
        // What came along with the end of the handshake no descriptor tells of.
        let mut count = self.inside(buffer)?;
        // Nor of what is opened and finds no room: no more is received than has room when it is opened. It is received
        // bytes that count, as a stranger may send records with nothing inside for ever.
        let mut most = (buffer.len() - count).saturating_sub(PART_MOST) as u64;
        while most > 0 {
            match self.0.read_tls(&mut socket.take(most)) {
                Ok(0) if count == 0 => return Ok(0),
                Ok(0) => break,
                Ok(received) => {
                    most -= received as u64;
                    self.0.process_new_packets().map_err(io::Error::other)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && count > 0 => break,
                Err(error) => {
                    // What a handshake has to answer goes at once.
                    self.flush(socket)?;
                    return Err(error);
                }
            }
            count += self.inside(&mut buffer[count..])?;
        }
        self.flush(socket)?;
        if count > 0 { Ok(count) } else { Err(io::ErrorKind::WouldBlock.into()) }
    }

    /// What was received and opened; 0 where there is nothing.
    fn inside(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.reader().read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            read => read,
        }
    }

    /// A step of an accepted stream's handshake. Whether it is over.
    pub(super) fn handshake_step(&mut self, socket: &Socket) -> io::Result<bool> {
        match self.0.read_tls(&mut &*socket) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {
                self.0.process_new_packets().map_err(io::Error::other)?;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        self.flush(socket)?;
        Ok(!self.begins() && !self.waits())
    }

    /// Sends a piece's datagrams of `size` bytes, each as a record.
    pub(super) fn send(&mut self, socket: &Socket, piece: &Piece<'_>, size: usize) -> io::Result<()> {
        for datagram in piece.bytes.chunks(size) {
            let mut writer = self.0.writer();
            writer.write_all(&length_of(datagram))?;
            writer.write_all(datagram)?;
        }
        self.flush(socket)
    }

    /// Sends what waits to be sent, as far as the socket takes it.
    pub(super) fn flush(&mut self, socket: &Socket) -> io::Result<()> {
        while self.0.wants_write() {
            match self.0.write_tls(&mut &*socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether something waits to be sent.
    pub(super) fn waits(&self) -> bool {
        self.0.wants_write()
    }

    /// Whether the two are still agreeing on keys.
    pub(super) fn begins(&self) -> bool {
        self.0.is_handshaking()
    }
}

/// Takes any certificate, and any signature by it: a signature by nobody's key says nothing. Who the other side is,
/// Hawser's handshake inside tells. Has no state.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.2 was not offered".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        tls_provider::SCHEMES.to_vec()
    }
}

#[cfg(test)]
mod tests {
    use socket2::{Domain, Type};

    use super::*;

    /// Two sessions that agreed on keys, each with its end of a connection. The first writes records as long as any
    /// are.
    fn agreed() -> [(Tls, Socket); 2] {
        let mut config = caller_of(tls_provider::of_caller()).unwrap();
        config.max_fragment_size = None;
        let remote = IpAddr::from([127, 0, 0, 1]);
        let mut caller = Party::Caller(Arc::new(config), None).session(remote).unwrap();
        let mut listener = Party::listener().unwrap().session(remote).unwrap();
        let (one, two) = Socket::pair(Domain::UNIX, Type::STREAM.nonblocking(), None).unwrap();
        while !(caller.handshake_step(&one).unwrap() & listener.handshake_step(&two).unwrap()) {}
        [(caller, one), (listener, two)]
    }

    #[test]
    fn nothing_that_was_opened_is_left_behind() {
        let [(mut caller, one), (mut listener, two)] = agreed();
        let sent: Vec<u8> = (0..400_000).map(|at| (at / 100) as u8).collect();
        caller.0.writer().write_all(&sent).unwrap();
        // No number of whole records fills it.
        let (mut buffer, mut got) = (vec![0; 60_000], Vec::new());
        while got.len() < sent.len() {
            caller.flush(&one).unwrap();
            match listener.read(&two, &mut buffer) {
                Ok(count) => got.extend_from_slice(&buffer[..count]),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
            assert_eq!(listener.inside(&mut [0]).unwrap(), 0, "after {} bytes", got.len());
        }
        assert!(got == sent, "it is what was sent");
    }
}
