//! The shim, between hosts of SCION networks.
//!
//! 1. [`paths`]: four disjoint paths together; two that share a link, against two that do not.
//! 2. [`cut`]: one path of four cut under a stream; all of them, for ten seconds.
//! 3. [`wire`]: what a full segment costs on a path of three hops, by capture; in datagrams, and as SCION's layer 4.
//! 4. [`quic`]: the same file by quinn over the same path, in turns.
//! 5. [`churn`]: 500 connections a second. 6. [`hostile`]: a stream beside a stranger's datagrams.

pub(super) mod churn;
pub(super) mod cut;
pub(super) mod hostile;
pub(super) mod paths;
pub(super) mod quic;
pub(super) mod wire;

use std::time::Duration;

use hawser_scion::select::Criterion;
use hawser_wire::Direction;
use hawser_wire::traffic::Towards;

use super::{Asked, Figures};
use crate::error::LabError;
use crate::localnet::Localnet;
use crate::shim::{Carried, Place, ShimPair, ShimPlan};
use crate::topology::Flow;

/// Each link, in Mbit/s, one way and what waits before it at most.
const MBPS: f64 = 20.0;
const DELAY: Duration = Duration::from_millis(10);
const QUEUE: Duration = Duration::from_millis(100);
/// What of a stream's start is not counted.
const WARM: Duration = Duration::from_secs(3);
/// Bytes of an IP packet on a link, of IP and UDP in it, of SCION's headers but for the path and of UDP in SCION with
/// IPv4 hosts; of a path its meta, info and hop fields. Source: crates/hawser-shim/README.md, "What it costs".
const IP_PACKET: f64 = 1500.0;
const OUTER: f64 = 28.0;
const ADDRESSES: f64 = 36.0;
const INNER_UDP: f64 = 8.0;
const META: f64 = 4.0;
const INFO: f64 = 8.0;
const HOP: f64 = 12.0;
/// Before the TCP options of a compact datagram, with what is kept free; and MPTCP's options with timestamps. Source:
/// as above.
const COMPACT: f64 = 22.0;
const OPTIONS: f64 = 40.0;
/// TCP's header before its options, where TCP is SCION's layer 4. Source: RFC 9293 section 3.1.
const TCP: f64 = 20.0;
/// Bytes of a mebibyte.
const MEBIBYTE: f64 = 1_048_576.0;

/// A network with shims in it. The shims end before the network does.
struct Ground {
    pair: ShimPair,
    net: Localnet,
}

impl Ground {
    fn start(asked: &Asked, place: &Place, egress: u8, select: Criterion) -> Result<Self, LabError> {
        Self::told(asked, place, egress, select, "")
    }

    /// The same, with these lines more in the configuration of both shims.
    fn told(asked: &Asked, place: &Place, egress: u8, select: Criterion, more: &str) -> Result<Self, LabError> {
        let net = Localnet::up(&place.topology)?;
        let between = ShimPlan::between(place.ends, egress, select);
        let plan = ShimPlan { client: more.to_owned(), server: more.to_owned(), ..between };
        let pair = ShimPair::start(&asked.program, &net, &plan)?;
        Ok(Self { pair, net })
    }
}

fn shaped() -> Direction {
    Direction::shaped(MBPS, DELAY, QUEUE)
}

/// Which end sends: the client is the local one.
const fn towards(flow: Flow) -> Towards {
    match flow {
        Flow::Up => Towards::Server,
        Flow::Down => Towards::Client,
    }
}

/// TCP payload of a packet that fills a path, as a share of it.
fn share(segments: u8, hop_fields: u8, carried: Carried) -> f64 {
    let path = META + INFO * f64::from(segments) + HOP * f64::from(hop_fields);
    let headers = match carried {
        Carried::Udp => INNER_UDP + COMPACT,
        Carried::Tcp => TCP,
    };
    (IP_PACKET - OUTER - ADDRESSES - path - headers - OPTIONS) / IP_PACKET
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_path_carries_is_what_the_shims_documentation_says() {
        // crates/hawser-shim/README.md: 1298 bytes of data up and down over three hops.
        assert!((share(2, 4, Carried::Udp) * IP_PACKET - 1298.0).abs() < 1e-9);
        // And 1308 where TCP is SCION's layer 4.
        assert!((share(2, 4, Carried::Tcp) * IP_PACKET - 1308.0).abs() < 1e-9);
    }
}
