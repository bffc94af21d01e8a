//! What a routing daemon does, without one: the router's route to the site follows the member whose route has the least
//! metric, as BGP has it by MED (crates/hawser-hub/README.md). A thread in each member looks at its table.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use hawser_wire::Namespace;
use ipnet::IpNet;

use super::network::{MEMBERS, Network, SITE, upward};
use crate::error::LabError;

/// From one look at a table to the next.
const LOOK: Duration = Duration::from_millis(2);

/// The threads; ended and joined on drop. One owner.
#[derive(Debug)]
pub struct Follower {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// Each member's metric, and the member that the router's route leads to.
#[derive(Debug, Default)]
struct Table {
    metrics: [Option<u32>; MEMBERS.len()],
    leads_to: Option<usize>,
}

impl Follower {
    /// Begins to look.
    pub fn start(network: &Network) -> Result<Self, LabError> {
        let table = Arc::new(Mutex::new(Table::default()));
        let mut follower = Self { over: Arc::default(), threads: Vec::new() };
        for (at, member) in network.members.iter().enumerate() {
            let (over, table, router) = (Arc::clone(&follower.over), Arc::clone(&table), network.router.clone());
            let look = move || {
                while !over.load(Ordering::Relaxed) {
                    let text = std::fs::read_to_string("/proc/thread-self/net/route").unwrap_or_default();
                    table.lock().unwrap_or_else(PoisonError::into_inner).learn(at, metric(&text), &router);
                    sleep(LOOK);
                }
            };
            follower.threads.push(member.spawn_thread("follower", look)?);
        }
        Ok(follower)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // One that panicked said so.
            let _ = thread.join();
        }
    }
}

/// The least metric of a route to the site, in a table as /proc/net/route has it (proc_net(5)).
fn metric(table: &str) -> Option<u32> {
    let site = format!("{:08X}", u32::from_le_bytes(SITE.octets()));
    let columns = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let of_site = columns.filter(|columns| columns.get(1).is_some_and(|destination| *destination == site));
    of_site.filter_map(|columns| columns.get(6)?.parse().ok()).min()
}

impl Table {
    fn learn(&mut self, member: usize, metric: Option<u32>, router: &Namespace) {
        self.metrics[member] = metric;
        let best = (0..MEMBERS.len()).filter(|at| self.metrics[*at].is_some()).min_by_key(|at| self.metrics[*at]);
        if best == self.leads_to {
            return;
        }
        let [own, _] = upward(best.unwrap_or_default());
        // Where nobody has a route the old one stays: packets go nowhere either way.
        let set = best.map(|_| router.add_route(IpNet::from(IpAddr::from(SITE)), Some(own.into()), None));
        if let Some(Err(error)) = set {
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
    fn the_least_metric_to_the_site_is_found() {
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
