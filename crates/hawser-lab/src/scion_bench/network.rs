//! Two core ASes, joined by one link: a localnet, kept for all runs of a scenario.
//!
//! 1. The network comes up, without shims: candidates bring their own. The sender's daemon is asked for the path, which
//!    programs are told.
//! 2. Routers of the reference implementation from v0.14.0 to v0.15.1 never send to the dispatchers' port, whatever the
//!    AS's dispatched ports are (`udpip.go` tests `port < start && port > end`). A rule of nftables in the receiver's
//!    AS does it in their place, behind the router, so that whatever bypasses the dispatcher sees what it is made for.
//! 3. The sender's AS has a second host, for portals: they ask a daemon, which the hosts of [`Ground::within`] do not
//!    have.

use std::net::SocketAddr;

use hawser_scion::daemon::{DaemonAddr, DaemonClient, Refresh};
use hawser_scion::{IsdAs, Path};

use super::ground::{FIRST_PORT, Ground, Host, LAST_PORT, Route};
use super::helpers::END_HOST_PORT;
use super::plan::Place;
use crate::error::LabError;
use crate::localnet::{self, Localnet, Topology};
use crate::stage::feed;

/// A localnet's topology that comes along, how many links of it, and what it is called here.
const TOPOLOGY: (&str, u8) = ("two-cores", 1);
const NAME: &str = "bench";
const SENDER: &str = "1-ff00:0:110";
const RECEIVER: &str = "1-ff00:0:120";
/// A router's own port in its AS. Source: localnet.
const ROUTER_PORT: u16 = 30_042;
/// Hosts of the sender's AS.
const NEIGHBOURS: u8 = 2;
/// A host's interface towards its router, and those between two hosts of an AS. Source: localnet.
const UPLINK: &str = "eth0";
const NEIGHBOURLY: [&str; 2] = ["peer2", "peer1"];

/// The running network. Removed on drop.
#[derive(Debug)]
pub(super) struct Network {
    _localnet: Localnet,
    sender: Host,
    /// Of the sender's AS.
    neighbour: Host,
    receiver: Host,
    route: Route,
    /// The sender's daemon, as seen from itself.
    pub daemon: SocketAddr,
}

impl Network {
    /// Steps 1 and 2.
    pub fn up() -> Result<Self, LabError> {
        let (name, links) = TOPOLOGY;
        let mut topology = Topology::named(name, Some(links)).map_err(failed)?;
        NAME.clone_into(&mut topology.name);
        for plan in &mut topology.ases {
            plan.shim = false;
            if plan.id.to_string() == SENDER {
                plan.hosts = NEIGHBOURS;
            }
        }
        let localnet = Localnet::up(&topology)?;
        let (sender, receiver) = (localnet.host(SENDER)?, localnet.host(RECEIVER)?);
        let neighbour = localnet.hosts.iter().find(|host| host.isd_as == sender.isd_as && host.number != sender.number);
        let neighbour = neighbour.ok_or_else(|| failed("the sender has no neighbour"))?;
        let ((path, there), (_, back)) = (ask(sender, receiver)?, ask(receiver, sender)?);
        let route = Route { dataplane: path.dataplane.as_bytes().to_vec(), routers: [there, back] };
        redirect(&localnet)?;
        let daemon = sender.daemon;
        let [sender, neighbour, receiver] = [sender, neighbour, receiver].map(|host| Host {
            namespace: host.namespace.clone(),
            isd_as: host.isd_as,
            address: host.address,
        });
        Ok(Self { _localnet: localnet, sender, neighbour, receiver, route, daemon })
    }

    /// The hosts, and the path between them, if they are of two ASes.
    pub fn ground(&self, place: Place) -> Ground {
        let (receiver, interfaces, route) = match place {
            Place::Within => (&self.neighbour, NEIGHBOURLY, None),
            Place::Between => (&self.receiver, [UPLINK; 2], Some(self.route.clone())),
        };
        Ground { sender: self.sender.clone(), receiver: receiver.clone(), interfaces, route }
    }
}

/// Step 1: a path, and the border router that its packets go to first.
fn ask(sender: &localnet::Host, receiver: &localnet::Host) -> Result<(Path, SocketAddr), LabError> {
    let path = paths(sender, receiver.isd_as)?.into_iter().next();
    let path = path.ok_or_else(|| failed("the daemon knows no path"))?;
    let router = path.next_hop.ok_or_else(|| failed("the path has no border router"))?;
    Ok((path, router))
}

/// All that a host's daemon knows to an AS.
pub(crate) fn paths(sender: &localnet::Host, destination: IsdAs) -> Result<Vec<Path>, LabError> {
    let address: DaemonAddr = sender.daemon.to_string().parse().map_err(failed)?;
    sender.namespace.run(move || -> Result<Vec<Path>, LabError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(failed)?.block_on(async {
            let client = DaemonClient::new(address).map_err(failed)?;
            let lookup = client.paths(destination, Refresh::No).await.map_err(failed)?;
            Ok(lookup.paths)
        })
    })?
}

/// Step 2.
fn redirect(localnet: &Localnet) -> Result<(), LabError> {
    let rules = format!(
        "table inet bench {{\nchain out {{\ntype filter hook postrouting priority 0;\noifname \"host1\" udp sport {ROUTER_PORT} \
         udp dport != {FIRST_PORT}-{LAST_PORT} udp dport set {END_HOST_PORT}\n}}\n}}\n"
    );
    let mut command = localnet.router(RECEIVER)?.command("nft");
    command.args(["-f", "-"]);
    feed("send to the dispatchers' port", command, &rules)
}

fn failed(fault: impl ToString) -> LabError {
    LabError::Network { network: NAME.to_owned(), fault: fault.to_string() }
}
