//! Routes and rules of the stage: every link has a way of its own to the remote end.
//!
//! 1. The local end reaches the remote one over each link, the least metric first; what has a link's address as its source
//!    leaves by that link (a table and a rule each), as MPTCP needs it.
//! 2. Routers know both ends' hosts.
//! 3. The core hands what came over a link to the remote end's interface for that link, and what came from there back to
//!    that link's router; what is addressed to one interface goes there.
//! 4. The remote end answers from its one address by the link that was asked over, and from an interface's own by that
//!    interface.

use std::net::IpAddr;

use super::build::{UPLINK, core_down, core_up};
use super::ip::batch;
use super::numbering::{END, FAMILIES, NEAR, Net, alone, endpoint};
use super::{Stage, number};
use crate::error::LabError;
use crate::scenario::Family;

/// The table of a link, and of what comes back over it, is this and its number.
const TABLE: u32 = 100;
const TABLE_BACK: u32 = 400;
/// Where rules stand: before the main table's, at 32766.
const RULE_PRIORITY: u32 = 1000;
/// Links of one metric are ordered by their numbers.
const METRIC_STEP: u32 = 256;

impl Stage {
    /// The routing table of a link at the local end: what looks there leaves by that link, or not at all.
    #[must_use]
    pub fn table(link: usize) -> u32 {
        TABLE + u32::from(number(link))
    }

    /// All of it, when the stage is built.
    pub(super) fn route_all(&self) -> Result<(), LabError> {
        for family in FAMILIES {
            let mut remote = Vec::new();
            for index in 0..self.links.len() {
                self.route_local(index, family)?;
                self.source_rule(index, family, "add")?;
                self.route_router(index, family)?;
                remote.extend(self.remote_routes(index, family));
            }
            batch(&self.remote, family, &remote)?;
            self.route_core(family)?;
        }
        Ok(())
    }

    /// Step 1: routes of a link, which go with its interface.
    pub(super) fn route_local(&self, index: usize, family: Family) -> Result<(), LabError> {
        let (name, number) = (&self.links[index].name, number(index));
        let net = Net::Access(number);
        let by = format!("via {} dev {name}", net.address(family, NEAR));
        let metric = u32::from(self.links[index].metric) * METRIC_STEP + u32::from(number);
        let table = TABLE + u32::from(number);
        let mut lines = vec![
            format!("route replace {} {by} metric {metric}", alone(endpoint(family))),
            format!("route replace {} dev {name} table {table}", net.prefix(family)),
            format!("route replace default {by} table {table}"),
        ];
        if self.layout.core.is_some() {
            lines.push(format!("route replace {} {by} metric {metric}", Net::Server(number).kind(family)));
        }
        batch(&self.local, family, &lines)
    }

    /// Step 1: the rule of a link's address, which stays with it. `verb` is `add` or `del`.
    pub(super) fn source_rule(&self, index: usize, family: Family, verb: &str) -> Result<(), LabError> {
        let host = self.state().links[index].host;
        let address = Net::Access(number(index)).address(family, host);
        batch(&self.local, family, &[source_rule(verb, address, index)])
    }

    /// Step 2.
    pub(super) fn route_router(&self, index: usize, family: Family) -> Result<(), LabError> {
        let number = number(index);
        let (home, on) = (self.state().links[index].host, Net::Uplink(number).address(family, END));
        let home = Net::Access(number).address(family, home);
        let mut lines = vec![
            format!("route replace {} via {on} dev {UPLINK}", alone(endpoint(family))),
            format!("route replace {} via {on} dev {UPLINK}", Net::ServerHosts.prefix(family)),
            format!("route replace {} via {home} dev {}", Net::ClientHosts.prefix(family), self.links[index].name),
        ];
        if self.layout.core.is_some() {
            lines.push(format!("route replace {} via {on} dev {UPLINK}", Net::Server(number).kind(family)));
        }
        batch(&self.links[index].router, family, &lines)
    }

    /// Step 3.
    fn route_core(&self, family: Family) -> Result<(), LabError> {
        let Some(core) = &self.layout.core else { return Ok(()) };
        // Bystanders ask here, and have no interface of the remote end's own.
        let first = Net::Server(number(0)).address(family, END);
        let hosts = [alone(endpoint(family)), Net::ServerHosts.prefix(family)];
        let mut lines: Vec<String> =
            hosts.iter().map(|hosts| format!("route replace {hosts} via {first} dev {}", core_down(0))).collect();
        for index in 0..self.links.len() {
            let number = number(index);
            let router = Net::Uplink(number).address(family, NEAR);
            let remote = Net::Server(number).address(family, END);
            let (up, down) = (core_up(index), core_down(index));
            let (on, back) = (TABLE + u32::from(number), TABLE_BACK + u32::from(number));
            lines.push(format!("route replace {} via {router} dev {up}", Net::Access(number).prefix(family)));
            for hosts in &hosts {
                lines.push(format!("route replace {hosts} via {remote} dev {down} table {on}"));
            }
            lines.push(format!("route replace {} via {router} dev {up} table {back}", Net::ClientHosts.prefix(family)));
            lines.push(format!("rule add iif {up} lookup {on} pref {RULE_PRIORITY}"));
            lines.push(format!("rule add iif {down} lookup {back} pref {RULE_PRIORITY}"));
        }
        batch(core, family, &lines)
    }

    /// Step 4.
    fn remote_routes(&self, index: usize, family: Family) -> Vec<String> {
        let (number, name) = (number(index), &self.links[index].far_interface);
        let from = format!("dev {name} src {}", endpoint(family));
        let by = format!("via {} {from}", self.far_gateway(index, family));
        let mut lines = vec![format!("route replace {} {by}", Net::Access(number).prefix(family))];
        let router = Net::Uplink(number).address(family, NEAR);
        match self.layout.core {
            // Where the router translates, it is who asks.
            None => lines.push(format!("route replace {} {from}", alone(router))),
            Some(_) => {
                let gateway = self.far_gateway(index, family);
                let table = TABLE + u32::from(number);
                lines.push(format!("route replace {} {by}", Net::Uplink(number).prefix(family)));
                lines.push(format!("route replace default via {gateway} dev {name} table {table}"));
                lines.push(source_rule("add", Net::Server(number).address(family, END), index));
            }
        }
        lines
    }

    /// Where the remote end sends what is for a link.
    pub(super) fn far_gateway(&self, index: usize, family: Family) -> IpAddr {
        let net = if self.layout.core.is_some() { Net::Server } else { Net::Uplink };
        net(number(index)).address(family, NEAR)
    }
}

fn source_rule(verb: &str, address: IpAddr, index: usize) -> String {
    format!("rule {verb} from {address} lookup {} pref {RULE_PRIORITY}", TABLE + u32::from(number(index)))
}
