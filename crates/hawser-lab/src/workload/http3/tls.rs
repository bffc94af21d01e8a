//! How both ends' QUIC is set: with a certificate made for one run, which the client of that run alone trusts.

use std::io;
use std::sync::Arc;

use quinn::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
use quinn::{ClientConfig, ServerConfig, TransportConfig, VarInt};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivatePkcs8KeyDer;

use crate::quic;
use crate::workload::Congestion;

/// The server's name.
pub(super) const NAME: &str = "lab";
/// HTTP/3. Source: RFC 9114, section 3.1.
const ALPN: &[u8] = b"h3";
/// How much may be on the way: 1 Gbit/s at 250 ms.
const WINDOW_BYTES: u32 = 32 << 20;
/// After so much silence a connection is over: longer than any cut of a scenario, so that a download outlasts it.
const IDLE_MS: u32 = 60_000;

/// Of the server and of the client.
pub(super) fn configs(congestion: Congestion) -> io::Result<(ServerConfig, ClientConfig)> {
    let made = generate_simple_self_signed([NAME.to_owned()]).map_err(io::Error::other)?;
    let CertifiedKey { cert, signing_key } = made;
    let (certificate, key) = (cert.der().clone(), PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let (mut server, mut client) = quic::configs(certificate, key, ALPN)?;
    server.transport_config(transport(congestion));
    client.transport_config(transport(congestion));
    Ok((server, client))
}

fn transport(congestion: Congestion) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    match congestion {
        Congestion::Cubic => transport.congestion_controller_factory(Arc::new(CubicConfig::default())),
        Congestion::Reno => transport.congestion_controller_factory(Arc::new(NewRenoConfig::default())),
        Congestion::Bbr => transport.congestion_controller_factory(Arc::new(BbrConfig::default())),
    };
    transport
        .stream_receive_window(VarInt::from_u32(WINDOW_BYTES))
        .receive_window(VarInt::from_u32(WINDOW_BYTES))
        .send_window(WINDOW_BYTES.into())
        .max_idle_timeout(Some(VarInt::from_u32(IDLE_MS).into()));
    Arc::new(transport)
}
