//! The shim, between hosts of SCION networks: [`streams`] by several paths, which may be cut; what [`strain`]s it; and
//! a file.
//!
//! 1. [`wire`]: what passes the first link of a path of three hops for it, in the direction of the data: in datagrams,
//!    and where TCP is SCION's layer 4.
//! 2. [`against_quinn`]: the same file by quinn over the same path, in turns. By several paths, too, against quinn on
//!    one of them; without a rate as fast as the routers carry.

pub(super) mod strain;
pub(super) mod streams;

use std::time::Duration;

use hawser_scion::select::Criterion;
use hawser_shim::status::ConnectionStatus;
use hawser_wire::traffic::{RunningFlows, Towards};
use hawser_wire::{Capture, Direction, Moment};

use super::usable::shim_share;
use super::{Asked, DELAY, Findings, LabError, QUEUE};
use crate::localnet::Localnet;
use crate::shim::{Carried, Place, ShimPair, files, scion_flow};

/// The file of the first step, in bytes: thousands of full segments.
const WIRE_FILE: u64 = 10_000_000;
/// The core AS between the leaves, whose router sees every packet.
const MIDDLE: &str = "1-ff00:0:110";

/// A network with shims in it. The shims end before the network does.
struct Ground {
    pair: ShimPair,
    net: Localnet,
}

impl Ground {
    /// With these lines more in the configuration of both shims.
    fn start(asked: &Asked, place: &Place, egress: u8, select: Criterion, more: &str) -> Result<Self, LabError> {
        let net = Localnet::up(&place.topology)?;
        let pair = ShimPair::start(&asked.program, &net, place.ends, egress, select, [more; 2])?;
        Ok(Self { pair, net })
    }

    /// A stream for so long, once it has this many flows; and when it started.
    fn stream(
        &self,
        towards: Towards,
        flows: u8,
        duration: Duration,
    ) -> Result<(ConnectionStatus, Moment, RunningFlows), LabError> {
        let connected = self.pair.flows(towards, 1).connect()?;
        let connection = self.pair.wait_flows(usize::from(flows))?;
        let start = Moment::now();
        Ok((connection, start, connected.start(start, duration)?))
    }
}

/// Step 1.
pub(super) fn wire(asked: &Asked, carried: Carried) -> Result<Findings, LabError> {
    let told = match carried {
        Carried::Udp => String::new(),
        Carried::Tcp => format!("layer4 = \"tcp\"\nserver_ports = [{}]\n", files::TCP_PORT),
    };
    let ground = Ground::start(asked, &Place::three_hops()?, 1, Criterion::Length, &told)?;
    let [client, server] = [&ground.pair.client, &ground.pair.server].map(|shim| shim.host.address);
    let capture = Capture::start(ground.net.router(MIDDLE)?)?;
    let sent = files::through_shims(&asked.program, &ground.pair, WIRE_FILE)?;
    let wire = scion_flow(&capture.finish()?, client, server, carried);
    if wire.packets == 0 {
        return Err(LabError::refused("measure wire_over_goodput", "no packet was captured".to_owned()));
    }
    Ok(Findings::named([
        ("wire_over_goodput", wire.ip_bytes as f64 / WIRE_FILE as f64),
        ("full_segment_over_data", 1.0 / shim_share(2, 4, carried)),
        ("ip_bytes_per_packet", wire.ip_bytes as f64 / wire.packets as f64),
        ("goodput_mbps", sent.mbps()),
    ]))
}

/// Step 2. Who is first changes with each run.
pub(super) fn against_quinn(asked: &Asked, links: u8, mbps: Option<f64>, bytes: u64) -> Result<Findings, LabError> {
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
    Ok(Findings::named([
        ("goodput_mbps", shim.mbps()),
        ("quinn_mbps", quinn.mbps()),
        ("ratio", shim.mbps() / quinn.mbps()),
    ]))
}
