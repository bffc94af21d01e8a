//! Links that are drawn by seed, by the simulator's own generator: what is measured can be looked at there
//! (`cargo run --release -p hawser-sim --example random SEED SEED+1`).
//!
//! 1. Seed after seed gives a topology of one to four links. One whose links carry more together than is asked for is
//!    passed over: emulation, portals and hosts share the processors.
//! 2. A link of the simulator becomes one of the scenario's.

use std::fmt::Write as _;

use hawser_sim::net::{LinkSpec, Loss as Lost, Way};
use hawser_sim::topology::Topology;
use hawser_wire::{Access, Direction, Loss, Probability, QueueDepth, Rate};

use super::LinkPlan;
use super::profile::bursts;

/// Step 1: this many topologies, from a seed on, of at most this many Mbit/s each.
pub(super) fn topologies(count: usize, seed: u64, most_mbps: f64) -> Vec<Topology> {
    let carried = |topology: &Topology| topology.links.iter().map(|link| mbps(&link.up)).sum::<f64>() <= most_mbps;
    (seed..).map(Topology::random).filter(carried).take(count).collect()
}

/// Step 2.
pub(crate) fn plan(name: &str, link: &LinkSpec) -> LinkPlan {
    let [up, down] = [&link.up, &link.down].map(direction);
    LinkPlan { name: name.to_owned(), profile: None, up, down, medium: None, access: Access::turns(), metric: 0 }
}

fn direction(way: &Way) -> Direction {
    let share = |share| Probability::new(share).unwrap_or_default();
    let loss = match way.loss {
        Lost::None => Loss::None,
        Lost::Random(lost) => Loss::Random(share(lost)),
        Lost::Bursts { enter, leave } => bursts(share(enter), share(leave)),
    };
    let queue = QueueDepth::Bytes(way.queue.0);
    Direction { rate: Some(Rate::mbit(mbps(way))), queue, delay: way.delay, loss, ..Direction::default() }
}

fn mbps(way: &Way) -> f64 {
    way.rate.as_bits() as f64 / 1e6
}

/// A topology in a line: rate, round trip, loss and buffer of each link.
pub(super) fn words(topology: &Topology) -> String {
    let mut text = format!("seed {}:", topology.seed);
    for link in &topology.links {
        let (trip, buffer) = (link.up.delay + link.down.delay, link.up.rate.time_for(link.up.queue));
        let lost = match link.up.loss {
            Lost::Random(share) => share * 100.0,
            Lost::None | Lost::Bursts { .. } => 0.0,
        };
        let [trip, buffer] = [trip, buffer].map(|time| time.as_secs_f64() * 1e3);
        let mbps = mbps(&link.up);
        // Writing to a string does not fail.
        let _ = write!(text, " [{mbps:.1} Mbit/s {trip:.0} ms {lost:.1} % buffer {buffer:.0} ms]");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_simulators_links() {
        let topology = Topology::random(2);
        assert_eq!(topology.links.len(), 2, "{}", words(&topology));
        for link in &topology.links {
            let LinkPlan { up, down, .. } = plan("a", link);
            assert_eq!(up.rate.map(Rate::bits_per_second), Some(link.up.rate.as_bits()));
            assert_eq!([up.delay, down.delay], [link.up.delay, link.down.delay]);
            assert_eq!(up.queue, QueueDepth::Bytes(link.up.queue.0));
            let Lost::Random(share) = link.up.loss else { panic!("drawn as a share") };
            assert_eq!(Some(up.loss), Probability::new(share).map(Loss::Random));
        }
    }

    #[test]
    fn only_what_the_emulation_carries_is_drawn() {
        let seeds: Vec<u64> = topologies(5, 0, 250.0).iter().map(|topology| topology.seed).collect();
        assert_eq!(seeds, [0, 1, 2, 3, 6]);
    }
}
