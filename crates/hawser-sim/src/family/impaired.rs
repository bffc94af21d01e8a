//! Links with one trouble each: jitter, loss, a policer, bloat.

use super::{SECONDS, asymmetric, between, describe, random};
use crate::judge::Network;
use crate::net::spec::millis;
use crate::net::{LinkSpec, Loss};
use crate::random::Seeded;

/// What is drawn from: Mbit/s down and round trips in ms.
const RATES: (f64, f64) = (4.0, 60.0);
const ROUND_TRIPS: (f64, f64) = (15.0, 90.0);
/// Queues of those whose trouble is none of the queue, in bandwidth-delay products.
const QUEUES: (f64, f64) = (0.5, 2.0);
/// The most jitter, ms; the least and the most loss; a burst's beginning and end, per packet.
const JITTER: (f64, f64) = (3.0, 30.0);
const LOSS: (f64, f64) = (0.001, 0.02);
const BURST: (f64, f64) = (0.001, 0.2);
/// A policer's queue and a bloated one, ms.
const POLICER: f64 = 5.0;
const BLOAT: f64 = 1_000.0;

/// Two links of this seed, with a trouble each.
pub fn impaired(seed: u64) -> Network {
    let mut rng = random("impaired", seed);
    let (mut links, mut troubles) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let (link, trouble) = one(&mut rng);
        links.push(link);
        troubles.push(trouble);
    }
    let name = format!("impaired {seed}, {}: {}", troubles.join(" and "), describe(&links));
    Network { name, seed, links, seconds: SECONDS, ..Network::default() }
}

fn one(rng: &mut Seeded) -> (LinkSpec, &'static str) {
    let rate = rng.log_between(RATES.0, RATES.1);
    let trip = rng.log_between(ROUND_TRIPS.0, ROUND_TRIPS.1);
    let products = rng.log_between(QUEUES.0, QUEUES.1);
    let link = asymmetric(rng, rate, trip, products);
    let ms = between(rng, JITTER.0, JITTER.1);
    match rng.below(6) {
        0 => (link.jitter(ms), "jitter"),
        1 => (link.reordering(ms), "reordering"),
        2 => (link.loss(rng.log_between(LOSS.0, LOSS.1)), "loss"),
        3 => (link.both(|way| way.loss = Loss::Bursts { enter: BURST.0, leave: BURST.1 }), "bursts"),
        4 => (link.queue_ms(POLICER), "policer"),
        _ => (link.both(|way| way.queue = way.rate.bytes_in(millis(BLOAT))), "bloat"),
    }
}
