//! What a routing daemon does, without one: a router's route to an address follows the member of a hub whose route to
//! it has the least metric, as BGP has it by MED, and zebra by netlink (crates/hawser-hub/README.md).
//!
//! 1. A thread looks at each member's main table every few milliseconds. 2. What changed moves the router's route.

use std::fs::File;
use std::io::{self, Seek};
use std::net::{IpAddr, Ipv4Addr};
use std::thread::sleep;
use std::time::Duration;

use hawser_wire::Namespace;
use ipnet::IpNet;

use crate::background::{Background, Stop};
use crate::error::LabError;

/// From one look at the tables to the next.
const LOOK: Duration = Duration::from_millis(2);

/// Begins to look at the members' routes to `address`; the router reaches each by its next hop, in their order. The
/// thread ends on drop.
pub(crate) fn follow(
    members: &[Namespace],
    router: &Namespace,
    address: Ipv4Addr,
    next_hops: Vec<Ipv4Addr>,
) -> Result<Background<()>, LabError> {
    // Whoever reads it, it shows the namespace that it was opened in.
    let open = || File::open("/proc/thread-self/net/route").map_err(|error| LabError::system("read routes", error));
    let tables = members.iter().map(|member| member.run(open)?).collect::<Result<Vec<_>, _>>()?;
    let (own, mut leads_to) = (router.clone(), None::<usize>);
    let look = move |mut stop: Stop| {
        while !stop.is_told() {
            let metric = |table| metric(&text(table).unwrap_or_default(), address);
            let announced = tables.iter().enumerate().filter_map(|(at, table)| Some((metric(table)?, at)));
            let best = announced.min().map(|(_, at)| at);
            // Where nobody has a route the old one stays: packets go nowhere either way.
            let by = best.filter(|_| best != leads_to).map(|at| next_hops[at].into());
            match by.map(|by| own.add_route(IpNet::from(IpAddr::from(address)), Some(by), None)) {
                Some(Err(error)) => tracing::warn!(%error, "router's route not set"),
                _ => leads_to = best,
            }
            sleep(LOOK);
        }
        Ok(())
    };
    Background::start(router, "follower", look)
}

/// A table from its beginning.
fn text(mut table: &File) -> io::Result<String> {
    table.rewind()?;
    io::read_to_string(table)
}

/// Step 1: the least metric of a route to an address, in a table as /proc/net/route has it (proc_net(5)).
fn metric(table: &str, address: Ipv4Addr) -> Option<u32> {
    let address = format!("{:08X}", u32::from_le_bytes(address.octets()));
    let columns = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let to_it = columns.filter(|columns| columns.get(1).is_some_and(|destination| *destination == address));
    to_it.filter_map(|columns| columns.get(6)?.parse().ok()).min()
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
