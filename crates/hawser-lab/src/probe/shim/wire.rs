//! What passes the first link of a path of three hops for a file, in the direction of the data: in datagrams, and where
//! TCP is SCION's layer 4.

use hawser_scion::select::Criterion;
use hawser_wire::Capture;

use super::{Asked, Figures, Ground, LabError};
use crate::probe::usable::shim_share;
use crate::shim::{Carried, Place, files, scion_flow};

/// The file, in bytes: thousands of full segments.
const FILE: u64 = 10_000_000;
/// The core AS between the leaves, whose router sees every packet.
const MIDDLE: &str = "1-ff00:0:110";

pub(in super::super) fn one(asked: &Asked, carried: Carried) -> Result<Figures, LabError> {
    let told = match carried {
        Carried::Udp => String::new(),
        Carried::Tcp => format!("layer4 = \"tcp\"\nserver_ports = [{}]\n", files::TCP_PORT),
    };
    let ground = Ground::start(asked, &Place::three_hops()?, 1, Criterion::Length, &told)?;
    let [client, server] = [&ground.pair.client, &ground.pair.server].map(|shim| shim.host.address);
    let capture = Capture::start(ground.net.router(MIDDLE)?)?;
    let sent = files::through_shims(&ground.pair, FILE)?;
    let wire = scion_flow(&capture.finish()?, client, server, carried);
    if wire.packets == 0 {
        return Err(LabError::NoFigure { figure: "wire_over_goodput", reason: "no packet was captured".to_owned() });
    }
    Ok(Figures::from([
        ("wire_over_goodput", wire.ip_bytes as f64 / FILE as f64),
        ("full_segment_over_data", 1.0 / shim_share(2, 4, carried)),
        ("ip_bytes_per_packet", wire.ip_bytes as f64 / wire.packets as f64),
        ("goodput_mbps", sent.mbps()),
    ]))
}
