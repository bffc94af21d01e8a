//! Two hosts, and what lies between them.
//!
//! ```text
//!   within:   sender ── peer2 ──────── peer1 ── receiver       one AS, and nothing in between
//!   between:  sender ── router ── link ── router ── receiver   two core ASes of a localnet
//!   session:  either of them in a localnet, whose daemons the portals ask
//! ```
//!
//! 1. [`Network`], a localnet of two core ASes and one link, is kept for all runs of a scenario. It comes up without
//!    shims: candidates bring their own. The daemons are asked for the path, which programs are told.
//! 2. Routers of the reference implementation from v0.14.0 to v0.15.1 never send to the dispatchers' port, whatever the
//!    AS's dispatched ports are (`udpip.go` tests `port < start && port > end`). A rule of nftables in the receiver's
//!    AS does it in their place, behind the router, so that whatever bypasses the dispatcher sees what it is made for.
//! 3. The sender's AS has a second host. The two of [`Ground::within`] have no daemon: no program runs there.

use hawser_scion::conn::{END_HOST_PORT, PortRange};
use hawser_scion::{EndpointAddr, Path};

use super::end::HEADER;
use super::plan::{Place, Way};
use crate::error::LabError;
use crate::localnet::{DISPATCHED, Host, Localnet, ROUTER_PORT, Topology, UPLINK, bare_hosts};
use crate::stage::feed;

/// A localnet's topology that comes along, and what it is called here.
const TOPOLOGY: &str = "two-cores";
const NAME: &str = "bench";
/// Places of its hosts; the receiver is the sender's neighbour, or in the other AS.
const SENDER: usize = 0;
const NEIGHBOUR: usize = 1;
const FAR: usize = 2;
/// The interfaces between two hosts of an AS. Source: localnet.
const NEIGHBOURLY: [&str; 2] = ["peer2", "peer1"];
/// The first port of the sender, who is answered directly.
const SENDER_PORT: u16 = 31_500;
/// The first port of a receiver who gets packets directly, and of one who does not.
const DIRECT_PORT: u16 = 31_000;
const DISPATCHED_PORT: u16 = 33_000;
/// Bytes before a payload inside an AS: IPv4 20, UDP 8, and SCION's. Source: RFC 791, RFC 768.
const OVERHEAD: usize = 20 + 8 + HEADER;

/// Two hosts that reach each other. Removed on drop.
#[derive(Debug)]
pub(super) struct Ground {
    pub sender: Host,
    pub receiver: Host,
    /// By which interfaces the sender's packets leave, and come to the receiver.
    pub interfaces: [&'static str; 2],
    /// The sender's path and the receiver's; none within an AS.
    pub paths: Option<[Path; 2]>,
}

/// The running network of ASes. Removed on drop.
#[derive(Debug)]
pub(super) struct Network {
    localnet: Localnet,
    paths: [Path; 2],
}

impl Ground {
    /// Two hosts of one AS, and nothing else.
    pub fn within() -> Result<Self, LabError> {
        Ok(Self::of(&bare_hosts(&topology()?)?, None))
    }

    /// The sender and its neighbour; or the host of the other AS, where there are paths.
    fn of(hosts: &[Host], paths: Option<[Path; 2]>) -> Self {
        let (receiver, interfaces) = if paths.is_some() { (FAR, [UPLINK; 2]) } else { (NEIGHBOUR, NEIGHBOURLY) };
        Self { sender: hosts[SENDER].clone(), receiver: hosts[receiver].clone(), interfaces, paths }
    }

    /// The sender's first port.
    pub fn sender_end(&self) -> EndpointAddr {
        self.sender.endpoint(SENDER_PORT)
    }

    /// The receiver's first port: one that packets come to by this way.
    pub fn receiver_end(&self, way: Way) -> EndpointAddr {
        self.receiver.endpoint(if way == Way::Straight { DIRECT_PORT } else { DISPATCHED_PORT })
    }

    /// Bytes of a packet beside its payload, from the IP header on.
    pub fn overhead(&self) -> usize {
        OVERHEAD + self.paths.as_ref().map_or(0, |[there, _]| there.dataplane.len())
    }
}

impl Network {
    /// Steps 1 and 2.
    pub fn up() -> Result<Self, LabError> {
        let localnet = Localnet::up(&topology()?)?;
        let path = |from: usize, to: usize| {
            let known = localnet.hosts[from].paths(localnet.hosts[to].isd_as)?;
            let none = || LabError::Network { network: NAME.to_owned(), fault: "a daemon knows no path".to_owned() };
            known.into_iter().next().ok_or_else(none)
        };
        let paths = [path(SENDER, FAR)?, path(FAR, SENDER)?];
        redirect(&localnet)?;
        Ok(Self { localnet, paths })
    }

    /// The hosts, and the path between them, if they are of two ASes.
    pub fn ground(&self, place: Place) -> Ground {
        Ground::of(&self.localnet.hosts, (place == Place::Between).then(|| self.paths.clone()))
    }
}

/// Steps 1 and 3: two ASes, the sender's with two hosts.
fn topology() -> Result<Topology, LabError> {
    let mut topology = Topology::named(TOPOLOGY, Some(1))?;
    NAME.clone_into(&mut topology.name);
    topology.ases.iter_mut().for_each(|plan| plan.shim = false);
    topology.ases[0].hosts = 2;
    Ok(topology)
}

/// Step 2.
fn redirect(localnet: &Localnet) -> Result<(), LabError> {
    let PortRange { first, last } = DISPATCHED;
    let rules = format!(
        "table inet bench {{\nchain out {{\ntype filter hook postrouting priority 0;\n\
         oifname \"host1\" udp sport {ROUTER_PORT} udp dport != {first}-{last} udp dport set {END_HOST_PORT}\n}}\n}}\n"
    );
    let mut command = localnet.router(&localnet.hosts[FAR].isd_as.to_string())?.command("nft");
    command.args(["-f", "-"]);
    feed("send to the dispatchers' port", command, &rules)
}
