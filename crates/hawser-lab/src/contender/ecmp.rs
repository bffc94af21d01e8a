//! Per-flow balancing in the kernel: a multipath route over all links that are up, at both ends.
//!
//! 1. Without a LAN client and server get an address of their own, which belongs to no link.
//! 2. Routers forward between both; the ends choose a link for each flow by its ports, too.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::links::{family, forward, has_lan, host, links_up};
use super::options::Options;
use super::undo::Undo;
use super::{Contender, Offer, Programs, Transport};
use crate::error::LabError;
use crate::scenario::ContenderPlan;
use crate::stage::{Ends, Stage};

/// Addresses of client and server that belong to no link.
const OWN_V4: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 79, 0, 2), Ipv4Addr::new(10, 79, 0, 1)];
const OWN_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd79, 0, 0, 0, 0, 0, 0, 2), Ipv6Addr::new(0xfd79, 0, 0, 0, 0, 0, 0, 1)];
/// A flow's link follows from addresses and ports. Source: kernel documentation, networking/ip-sysctl.
const HASH: [&str; 2] = ["ipv4/fib_multipath_hash_policy", "ipv6/fib_multipath_hash_policy"];
const BY_PORTS: &str = "1";

/// Balancing by flow. Down at first; one owner.
#[derive(Debug)]
struct Ecmp {
    undo: Undo,
}

pub(super) fn make(plan: &ContenderPlan, _: &Programs) -> Result<Box<dyn Contender>, LabError> {
    Options::new(plan).finish()?;
    Ok(Box::new(Ecmp { undo: Undo::default() }))
}

impl Contender for Ecmp {
    fn up(&mut self, stage: &Stage) -> Result<Offer, LabError> {
        let mut undo = Undo::default();
        for key in HASH {
            undo.sysctl(&stage.local, key, BY_PORTS)?;
            undo.sysctl(&stage.remote, key, BY_PORTS)?;
        }
        let ends = if has_lan(stage) { stage.hosts } else { own_addresses(stage, &mut undo)? };
        if ends.client.is_ipv4() != stage.endpoint.is_ipv4() {
            let what = "a tunnel (routes alone carry no IPv6 over IPv4, nor IPv4 over IPv6)".to_owned();
            return Err(LabError::Missing { what, hint: "let `inner` and `outer` be the same".to_owned() });
        }
        forward(stage, &links_up(stage)?, &ends, &mut undo)?;
        self.undo = undo;
        Ok(Offer { ends, socket: Transport::Tcp, programs: Vec::new() })
    }

    fn down(&mut self, _: &Stage) -> Result<(), LabError> {
        self.undo.undo()
    }
}

/// Step 1.
fn own_addresses(stage: &Stage, undo: &mut Undo) -> Result<Ends, LabError> {
    let [client, server]: [IpAddr; 2] =
        if stage.endpoint.is_ipv4() { OWN_V4.map(IpAddr::from) } else { OWN_V6.map(IpAddr::from) };
    for (namespace, address) in [(&stage.local, client), (&stage.remote, server)] {
        undo.ip_add(namespace, &format!("{} address add {} dev lo", family(address), host(address)))?;
    }
    Ok(Ends { client, server })
}
