//! Families of networks that nobody chose by hand: a seed draws each of them.
//!
//! | family | what it is |
//! | --- | --- |
//! | [`stationary`] | one to four links that stay as they are, with loss, jitter, far apart in delay |
//! | [`changing`] | steps down and back, slow decay, outages that keep or lose, one that fades while another returns |
//! | [`impaired`] | jitter in and out of order, loss, policers, bloat |
//! | [`generated`] | links of a car, generated as recorded ones are |
//! | [`recorded`] | stretches of drives, pairs of traces, each beside a steady link |
//!
//! A network of a seed stays the same only as long as this module does.

mod changing;
pub mod folder;
mod generated;
mod impaired;
pub mod recorded;
mod stationary;

pub use changing::changing;
pub use generated::generated;
pub use impaired::impaired;
pub use stationary::stationary;

use crate::judge::Network;
use crate::net::LinkSpec;
use crate::random::Seeded;
use hawser_core::units::ByteCount;

/// How long a drawn network is looked at, s.
pub const SECONDS: f64 = 40.0;
/// No queue is smaller, bytes: five packets.
const QUEUE_MIN: u64 = 7_500;

/// Each of `seeds` of a family.
pub fn draw(family: fn(u64) -> Network, seeds: std::ops::Range<u64>) -> Vec<Network> {
    seeds.map(family).collect()
}

/// A source of randomness of a family's seed: families share no network.
fn random(family: &str, seed: u64) -> Seeded {
    // FNV-1a (Fowler, Noll, Vo), 64 bits.
    let name = family
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    Seeded::new(name ^ seed)
}

/// Uniform between two numbers.
fn between(rng: &mut Seeded, least: f64, most: f64) -> f64 {
    least + rng.unit() * (most - least)
}

/// A link with an uplink of its own rate and queues of `products` bandwidth-delay products.
fn asymmetric(rng: &mut Seeded, down: f64, trip: f64, products: f64) -> LinkSpec {
    let up = down * rng.log_between(0.1, 1.0);
    let spec = crate::net::link(down, trip).up(|way| way.set_rate(up));
    spec.both(|way| {
        let product = way.rate.bytes_in(way.delay * 2);
        way.queue = product.scale(products).max(ByteCount(QUEUE_MIN));
    })
}

/// The rates of its downlinks, and the round trips, for its name.
fn describe(links: &[LinkSpec]) -> String {
    let one = |link: &LinkSpec| {
        let trip = (link.up.delay + link.down.delay).as_millis();
        format!("{:.1}/{trip}", link.down.rate.as_bits() as f64 / 1e6)
    };
    links.iter().map(one).collect::<Vec<_>>().join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Question;
    use crate::tcp::Congestion;

    #[test]
    fn a_seed_decides_a_network_and_every_network_carries_something() {
        let question = Question { congestion: Congestion::Cubic, down: true };
        // A car may be where no link has much.
        for (family, least) in [stationary, changing, impaired, generated].into_iter().zip([0.5, 0.5, 0.5, 0.1]) {
            let networks = draw(family, 0..200);
            for (one, again) in networks.iter().zip(draw(family, 0..200)) {
                assert_eq!(one.name, again.name);
                assert!((1..=4).contains(&one.links.len()), "{}", one.name);
                let capacity = one.capacity(question);
                assert!((least..401.0).contains(&capacity), "{}: {capacity}", one.name);
                assert!(one.acts.iter().all(|(at, _)| *at <= one.seconds), "{}", one.name);
            }
            let names: std::collections::BTreeSet<_> = networks.iter().map(|network| &network.name).collect();
            assert_eq!(names.len(), 200);
        }
    }
}
