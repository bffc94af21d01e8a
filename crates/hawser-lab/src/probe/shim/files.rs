//! A file through the shim.
//!
//! 1. [`wire`]: what passes the first link of a path of three hops for it, in the direction of the data: in datagrams,
//!    and where TCP is SCION's layer 4.
//! 2. [`against_quinn`]: the same file by quinn over the same path, in turns. By several paths, too, against quinn on
//!    one of them; without a rate as fast as the routers carry.

use hawser_scion::select::Criterion;
use hawser_wire::{Capture, Direction};

use super::{Asked, Figures, Ground, LabError};
use crate::probe::usable::shim_share;
use crate::probe::{DELAY, QUEUE};
use crate::shim::{Carried, Place, files, scion_flow};

/// The file of the first step, in bytes: thousands of full segments.
const FILE: u64 = 10_000_000;
/// The core AS between the leaves, whose router sees every packet.
const MIDDLE: &str = "1-ff00:0:110";

/// Step 1.
pub(crate) fn wire(asked: &Asked, carried: Carried) -> Result<Figures, LabError> {
    let told = match carried {
        Carried::Udp => String::new(),
        Carried::Tcp => format!("layer4 = \"tcp\"\nserver_ports = [{}]\n", files::TCP_PORT),
    };
    let ground = Ground::start(asked, &Place::three_hops()?, 1, Criterion::Length, &told)?;
    let [client, server] = [&ground.pair.client, &ground.pair.server].map(|shim| shim.host.address);
    let capture = Capture::start(ground.net.router(MIDDLE)?)?;
    let sent = files::through_shims(&asked.program, &ground.pair, FILE)?;
    let wire = scion_flow(&capture.finish()?, client, server, carried);
    if wire.packets == 0 {
        return Err(LabError::refused("measure wire_over_goodput", "no packet was captured".to_owned()));
    }
    Ok(Figures::from([
        ("wire_over_goodput", wire.ip_bytes as f64 / FILE as f64),
        ("full_segment_over_data", 1.0 / shim_share(2, 4, carried)),
        ("ip_bytes_per_packet", wire.ip_bytes as f64 / wire.packets as f64),
        ("goodput_mbps", sent.mbps()),
    ]))
}

/// Step 2. Who is first changes with each run.
pub(crate) fn against_quinn(asked: &Asked, links: u8, mbps: Option<f64>, bytes: u64) -> Result<Figures, LabError> {
    let way = mbps.map(|mbps| Direction::shaped(mbps, DELAY, QUEUE));
    let ground = Ground::start(asked, &Place::parallel(links, way.as_ref())?, links, Criterion::Length, "")?;
    let [client, server] = [&ground.pair.client, &ground.pair.server].map(|shim| &shim.host);
    let known = client.paths(server.isd_as)?;
    let quinn = || files::by_quinn(&asked.program, [client, server], &known, bytes);
    let shim = || files::through_shims(&asked.program, &ground.pair, bytes);
    let (quinn, shim) = if asked.run.is_multiple_of(2) {
        (quinn()?, shim()?)
    } else {
        let shim = shim()?;
        (quinn()?, shim)
    };
    Ok(Figures::from([
        ("goodput_mbps", shim.mbps()),
        ("quinn_mbps", quinn.mbps()),
        ("ratio", shim.mbps() / quinn.mbps()),
    ]))
}
