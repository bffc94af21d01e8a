//! Routes and rules of the stage: every link has a way of its own to the remote end.
//!
//! 1. The local end reaches the remote one over each link, the least metric first, or one link before all; what has a
//!    link's address as its source leaves by that link or not at all (a table and a rule each), as MPTCP needs it.
//! 2. Routers know both ends' hosts.
//! 3. The core hands what came over a link to the remote end's interface for that link, and what came from there back
//!    to that link's router; what is addressed to one interface goes there.
//! 4. The remote end answers from its one address by the link that was asked over, and from an interface's own by that
//!    interface.
//! 5. What is forwarded without a tunnel has a route over its links at both ends, which changes as they go down and come
//!    back.

use std::mem;
use std::net::IpAddr;

use super::build::{UPLINK, core_down, core_up};
use super::numbering::{END, FAMILIES, NEAR, Net, endpoint};
use super::programs::{batch, batch_of, batch_where_there};
use super::{Ends, Stage, number};
use crate::error::LabError;
use crate::scenario::Family;

/// The table of a link, and of what comes back over it, is this and its number.
const TABLE: u32 = 100;
const TABLE_BACK: u32 = 400;
/// Where rules stand: before the main table's, at 32766.
const RULE_PRIORITY: u32 = 1000;
/// Of a route after all others.
const LAST_METRIC: u32 = 100_000;
/// Links of one metric are ordered by their numbers; of the route before them all.
const METRIC_STEP: u32 = 256;
const FIRST_METRIC: u32 = 1;
/// What flows are told apart by, where a route has several ways: addresses and ports, or addresses alone.
/// Source: kernel documentation, networking/ip-sysctl, `fib_multipath_hash_policy`.
const BY_PORTS: &str = "1";
const BY_ADDRESSES: &str = "0";

impl Stage {
    /// The routing table of a link at the local end: what looks there leaves by that link, or not at all.
    pub(crate) fn table(link: usize) -> u32 {
        TABLE + u32::from(number(link))
    }

    /// Lets the local end reach an address by this link where nothing else says so, whenever the link is up.
    pub(crate) fn route_first(&self, link: usize, to: IpAddr) -> Result<(), LabError> {
        let _turn = self.turn();
        self.state().first = Some((link, to));
        if self.is_up(link) { batch(&self.local, &[self.first_route("replace", link, to)]) } else { Ok(()) }
    }

    /// Undoes that.
    pub(crate) fn stop_first(&self) -> Result<(), LabError> {
        let _turn = self.turn();
        let Some((link, to)) = self.state().first.take() else { return Ok(()) };
        // It has gone already where its interface did.
        batch_where_there(&self.local, &[self.first_route("del", link, to)])
    }

    fn first_route(&self, verb: &str, link: usize, to: IpAddr) -> String {
        let (name, gateway) = (&self.links[link].name, Net::Access(number(link)).address(family_of(to), NEAR));
        format!("route {verb} {to} via {gateway} dev {name} metric {FIRST_METRIC}")
    }

    /// Forwards applications' packets over these links, at least one, without a tunnel: each flow keeps one of those that
    /// are up, chosen by its addresses and ports (RFC 2992). Gives the addresses between which to send: the hosts', or
    /// without a LAN and over one link that link's.
    ///
    /// # Errors
    /// Where the routes are refused.
    pub fn forward_over(&self, links: &[usize]) -> Result<Ends, LabError> {
        let is_there = |&link: &usize| link < self.links.len();
        assert!(!links.is_empty() && links.iter().all(is_there), "links of the stage: {links:?}");
        let _turn = self.turn();
        if let ([link], false) = (links, self.network.lan) {
            return Ok(self.ends_of(*link));
        }
        self.set_policy(BY_PORTS)?;
        self.state().forwarding = links.to_vec();
        self.route_forwarding()?;
        let of = |net: Net| net.address(self.inner, END);
        Ok(Ends { client: of(Net::ClientHosts), server: of(Net::ServerHosts) })
    }

    /// Undoes that.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn stop_forwarding(&self) -> Result<(), LabError> {
        let _turn = self.turn();
        if mem::take(&mut self.state().forwarding).is_empty() {
            return Ok(());
        }
        self.set_policy(BY_ADDRESSES)?;
        self.remove_forwarding()
    }

    /// Forwards over the links that are up now.
    pub(super) fn route_forwarding(&self) -> Result<(), LabError> {
        let links: Vec<usize> = {
            let state = self.state();
            if state.forwarding.is_empty() {
                return Ok(());
            }
            state.forwarding.iter().copied().filter(|&link| state.links[link].up).collect()
        };
        // Several routes in IPv6 are not replaced as one.
        self.remove_forwarding()?;
        if links.is_empty() {
            return Ok(());
        }
        let family = self.inner;
        let (mut there, mut back) = (String::new(), String::new());
        for link in links {
            let name = &self.links[link].name;
            there += &format!(" nexthop via {} dev {name}", Net::Access(number(link)).address(family, NEAR));
            back += &format!(" nexthop via {} dev {name}", self.far_gateway(link, family));
        }
        let source = |net: Net| match self.network.lan {
            true => String::new(),
            false => format!(" src {}", net.address(family, END)),
        };
        let route = |to: Net, from: Net, ways: &str| format!("route add {}{}{ways}", to.prefix(family), source(from));
        batch(&self.local, &[route(Net::ServerHosts, Net::ClientHosts, &there)])?;
        batch(&self.remote, &[route(Net::ClientHosts, Net::ServerHosts, &back)])
    }

    fn remove_forwarding(&self) -> Result<(), LabError> {
        for (end, hosts) in [(&self.local, Net::ServerHosts), (&self.remote, Net::ClientHosts)] {
            // It has gone already where the last interface did.
            batch_where_there(end, &[format!("route del {}", hosts.prefix(self.inner))])?;
        }
        Ok(())
    }

    fn set_policy(&self, policy: &str) -> Result<(), LabError> {
        for end in [&self.local, &self.remote] {
            end.set_sysctl("ipv4/fib_multipath_hash_policy", policy)?;
            end.set_sysctl("ipv6/fib_multipath_hash_policy", policy)?;
        }
        Ok(())
    }

    /// All of it, when the stage is built.
    pub(super) fn route_all(&self) -> Result<(), LabError> {
        let links = 0..self.links.len();
        links.clone().try_for_each(|index| self.route_link(index))?;
        batch(&self.remote, &both(|family| self.remote_routes(family)))?;
        if let Some(core) = &self.core {
            batch(core, &both(|family| self.core_routes(family)))?;
        }
        for family in FAMILIES {
            let hosts = self.state().links.iter().map(|link| link.host).collect::<Vec<_>>();
            let ours = |index: usize| [source_rule("add", index, family, hosts[index]), nothing_else(index)];
            let rules: Vec<String> = links.clone().flat_map(ours).collect();
            batch_of(family, &self.local, &rules)?;
            if let Some(core) = &self.core {
                let far = |index| rule("add", Net::Server(number(index)).address(family, END), index);
                batch_of(family, &self.remote, &links.clone().map(far).collect::<Vec<_>>())?;
                batch_of(family, core, &links.clone().flat_map(core_rules).collect::<Vec<_>>())?;
            }
        }
        Ok(())
    }

    /// Steps 1 and 2: routes of a link, which go with its interfaces.
    pub(super) fn route_link(&self, index: usize) -> Result<(), LabError> {
        batch(&self.local, &both(|family| self.local_routes(index, family)))?;
        let routed = both(|family| if self.network.routers { self.router_routes(index, family) } else { vec![] });
        batch(&self.links[index].router, &routed)
    }

    /// Step 1.
    fn local_routes(&self, index: usize, family: Family) -> Vec<String> {
        let (name, number) = (&self.links[index].name, number(index));
        let net = Net::Access(number);
        let by = format!("via {} dev {name}", net.address(family, NEAR));
        let metric = (u32::from(self.links[index].metric) + 1) * METRIC_STEP + u32::from(number);
        let table = Self::table(index);
        let mut lines = vec![
            format!("route replace {} {by} metric {metric}", endpoint(family)),
            format!("route replace {} dev {name} table {table}", net.prefix(family)),
            format!("route replace default {by} table {table}"),
        ];
        if self.core.is_some() {
            lines.push(format!("route replace {} {by} metric {metric}", Net::Server(number).kind(family)));
        }
        let first = self.state().first.filter(|(link, to)| *link == index && family_of(*to) == family);
        lines.extend(first.map(|(link, to)| self.first_route("replace", link, to)));
        lines
    }

    /// Step 2.
    fn router_routes(&self, index: usize, family: Family) -> Vec<String> {
        let (number, host) = (number(index), self.state().links[index].host);
        let home = Net::Access(number).address(family, host);
        let on = format!("via {} dev {UPLINK}", Net::Uplink(number).address(family, END));
        let mut lines = vec![
            format!("route replace {} {on}", endpoint(family)),
            format!("route replace {} {on}", Net::ServerHosts.prefix(family)),
            format!("route replace {} via {home} dev {}", Net::ClientHosts.prefix(family), self.links[index].name),
        ];
        if self.core.is_some() {
            lines.push(format!("route replace {} {on}", Net::Server(number).kind(family)));
        }
        lines
    }

    /// Step 3.
    fn core_routes(&self, family: Family) -> Vec<String> {
        // Bystanders ask here, and have no interface of the remote end's own.
        let first = Net::Server(number(0)).address(family, END);
        let hosts = [endpoint(family).to_string(), Net::ServerHosts.prefix(family).to_string()];
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
        }
        lines
    }

    /// Step 4.
    fn remote_routes(&self, family: Family) -> Vec<String> {
        let mut lines = Vec::new();
        // Without routers, both ends of a link are in one network.
        for (index, link) in self.links.iter().enumerate().filter(|_| self.network.routers) {
            let (number, gateway) = (number(index), self.far_gateway(index, family));
            let from = format!("dev {} src {}", link.name, endpoint(family));
            lines.push(format!("route replace {} via {gateway} {from}", Net::Access(number).prefix(family)));
            if self.core.is_some() {
                let table = Self::table(index);
                lines.push(format!("route replace {} via {gateway} {from}", Net::Uplink(number).prefix(family)));
                lines.push(format!("route replace default via {gateway} dev {} table {table}", link.name));
            } else {
                // Where the router translates, it is who asks.
                lines.push(format!("route replace {gateway} {from}"));
            }
        }
        lines
    }

    /// Where the remote end sends what is for a link.
    pub(super) fn far_gateway(&self, index: usize, family: Family) -> IpAddr {
        match &self.core {
            Some(_) => Net::Server(number(index)).address(family, NEAR),
            None if self.network.routers => Net::Uplink(number(index)).address(family, NEAR),
            None => Net::Access(number(index)).address(family, END),
        }
    }
}

fn family_of(address: IpAddr) -> Family {
    if address.is_ipv4() { Family::V4 } else { Family::V6 }
}

/// What there is of both families.
fn both(lines: impl Fn(Family) -> Vec<String>) -> Vec<String> {
    FAMILIES.into_iter().flat_map(lines).collect()
}

/// The rule of a link's address, which stays with the address. `verb` is `add` or `del`.
pub(super) fn source_rule(verb: &str, index: usize, family: Family, host: u8) -> String {
    rule(verb, Net::Access(number(index)).address(family, host), index)
}

/// A link that is down carries nothing, and no other carries what has its address: a provider would not let that pass
/// either (RFC 2827).
fn nothing_else(index: usize) -> String {
    format!("route add unreachable default metric {LAST_METRIC} table {}", Stage::table(index))
}

fn rule(verb: &str, address: IpAddr, index: usize) -> String {
    format!("rule {verb} from {address} lookup {} pref {RULE_PRIORITY}", Stage::table(index))
}

/// Step 3, for a link: by what it came.
fn core_rules(index: usize) -> [String; 2] {
    let number = u32::from(number(index));
    [(core_up(index), TABLE), (core_down(index), TABLE_BACK)]
        .map(|(from, table)| format!("rule add iif {from} lookup {} pref {RULE_PRIORITY}", table + number))
}
