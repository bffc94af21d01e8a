//! Applications' packets without a tunnel: forwarded as routers do, over one link or several.
//!
//! 1. [`Stage::forward_over`] says over which links; routes at both ends follow.
//! 2. A link that goes down or comes back changes the routes: the kernel sees its interface.
//! 3. [`Stage::stop_forwarding`] undoes it.

use super::ip::{batch, batch_where_there};
use super::numbering::{END, NEAR, Net};
use super::{Ends, Stage, number};
use crate::error::LabError;

/// How several links carry what is forwarded. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// The first of them that is up carries everything.
    First,
    /// Each flow keeps one of those that are up, chosen by its addresses and ports (RFC 2992).
    Flows,
}

/// What flows are told apart by, where a route has several ways: addresses and ports, or addresses alone.
/// Source: kernel documentation, networking/ip-sysctl, `fib_multipath_hash_policy`.
const BY_PORTS: &str = "1";
const BY_ADDRESSES: &str = "0";

impl Stage {
    /// Step 1. Gives the addresses between which to send: the hosts', or without a LAN and over one link that link's.
    ///
    /// # Errors
    /// Where the routes are refused.
    ///
    /// # Panics
    /// Where there is no such link, or none is named.
    pub fn forward_over(&self, links: &[usize], how: Forward) -> Result<Ends, LabError> {
        let is_there = |&link: &usize| link < self.links.len();
        assert!(!links.is_empty() && links.iter().all(is_there), "links of the stage: {links:?}");
        let _turn = self.turn();
        if let ([link], false) = (links, self.network.lan) {
            return Ok(self.ends_of(*link));
        }
        self.set_policy(if how == Forward::Flows { BY_PORTS } else { BY_ADDRESSES })?;
        self.state().forwarding = Some((links.to_vec(), how));
        self.route_forwarding()?;
        let of = |net: Net| net.address(self.inner, END);
        Ok(Ends { client: of(Net::ClientHosts), server: of(Net::ServerHosts) })
    }

    /// Step 3.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn stop_forwarding(&self) -> Result<(), LabError> {
        let _turn = self.turn();
        if self.state().forwarding.take().is_none() {
            return Ok(());
        }
        self.set_policy(BY_ADDRESSES)?;
        self.remove_forwarding()
    }

    /// Step 2: routes over the links that are up now.
    pub(super) fn route_forwarding(&self) -> Result<(), LabError> {
        let (links, how) = {
            let state = self.state();
            let Some((links, how)) = &state.forwarding else { return Ok(()) };
            (links.iter().copied().filter(|&link| state.links[link].up).collect::<Vec<_>>(), *how)
        };
        // Several routes in IPv6 are not replaced as one.
        self.remove_forwarding()?;
        let links = match how {
            Forward::First => links.get(..1).unwrap_or_default(),
            Forward::Flows => &links,
        };
        if links.is_empty() {
            return Ok(());
        }
        let family = self.inner;
        let (mut there, mut back) = (String::new(), String::new());
        for &link in links {
            let (gateway, interface) = (Net::Access(number(link)).address(family, NEAR), &self.links[link].name);
            there += &format!(" nexthop via {gateway} dev {interface}");
            let (gateway, interface) = (self.far_gateway(link, family), &self.links[link].far_interface);
            back += &format!(" nexthop via {gateway} dev {interface}");
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
}
