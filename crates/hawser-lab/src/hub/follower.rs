//! What a routing daemon does, without one: a router's route to an address follows the member of a hub whose route to it
//! has the least metric, as BGP has it by MED, and zebra by netlink (crates/hawser-hub/README.md).
//!
//! 1. A thread in each member looks at its main table every few milliseconds. 2. What changed moves the router's route.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use hawser_wire::Namespace;
use ipnet::IpNet;

use crate::background::{Background, Stop};
use crate::error::LabError;

/// From one look at a table to the next.
const LOOK: Duration = Duration::from_millis(2);

/// Each member's metric and next hop, and the member that the router's route to the address leads to.
#[derive(Debug)]
struct Table {
    router: Namespace,
    address: Ipv4Addr,
    next_hops: Vec<Ipv4Addr>,
    metrics: Vec<Option<u32>>,
    leads_to: Option<usize>,
}

/// Begins to look at the members' routes to `address`; the router reaches each by its next hop, in their order. The
/// threads end on drop.
///
/// # Errors
/// Where a thread cannot be had.
pub(crate) fn follow(
    members: &[Namespace],
    router: &Namespace,
    address: Ipv4Addr,
    next_hops: Vec<Ipv4Addr>,
) -> Result<Vec<Background<()>>, LabError> {
    let (router, metrics) = (router.clone(), vec![None; members.len()]);
    let table = Arc::new(Mutex::new(Table { router, address, next_hops, metrics, leads_to: None }));
    let look_at = |(at, member): (usize, &Namespace)| {
        let table = Arc::clone(&table);
        let look = move |mut stop: Stop| {
            while !stop.is_told() {
                let text = std::fs::read_to_string("/proc/thread-self/net/route").unwrap_or_default();
                table.lock().unwrap_or_else(PoisonError::into_inner).learn(at, metric(&text, address));
                sleep(LOOK);
            }
            Ok(())
        };
        Background::start(member, "follower", look)
    };
    members.iter().enumerate().map(look_at).collect()
}

/// Step 1: the least metric of a route to an address, in a table as /proc/net/route has it (proc_net(5)).
fn metric(table: &str, address: Ipv4Addr) -> Option<u32> {
    let address = format!("{:08X}", u32::from_le_bytes(address.octets()));
    let columns = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let to_it = columns.filter(|columns| columns.get(1).is_some_and(|destination| *destination == address));
    to_it.filter_map(|columns| columns.get(6)?.parse().ok()).min()
}

impl Table {
    /// Step 2.
    fn learn(&mut self, member: usize, metric: Option<u32>) {
        self.metrics[member] = metric;
        let announced = self.metrics.iter().enumerate().filter_map(|(at, metric)| metric.map(|metric| (metric, at)));
        let best = announced.min().map(|(_, at)| at);
        if best == self.leads_to {
            return;
        }
        // Where nobody has a route the old one stays: packets go nowhere either way.
        let (to, by) = (IpNet::from(IpAddr::from(self.address)), best.map(|at| self.next_hops[at].into()));
        if let Some(Err(error)) = by.map(|by| self.router.add_route(to, Some(by), None)) {
            tracing::warn!(%error, "router's route not set");
            return;
        }
        self.leads_to = best;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_metric_to_an_address_is_found() {
        let metric = |table: &str| metric(table, Ipv4Addr::new(203, 0, 113, 8));
        let title = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";
        let line =
            |to: &str, metric: u32| format!("hawser0\t{to}\t00000000\t0005\t0\t0\t{metric}\tFFFFFFFF\t0\t0\t0\n");
        assert_eq!(metric(title), None);
        assert_eq!(
            metric(&[title, &line("0A4D0001", 3), &line("087100CB", 9), &line("087100CB", 7)].concat()),
            Some(7)
        );
    }
}
