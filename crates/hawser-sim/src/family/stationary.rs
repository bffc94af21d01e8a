//! Links that stay as they are.

use super::{SECONDS, asymmetric, between, describe, random};
use crate::judge::Network;
use crate::net::spec::millis;
use crate::net::{LinkSpec, Loss};
use crate::random::Seeded;

/// What is drawn from: Mbit/s down, the nearest link's round trip in ms, and how much longer the others' are.
const RATES: (f64, f64) = (1.0, 100.0);
const ROUND_TRIPS: (f64, f64) = (8.0, 80.0);
const FARTHER: (f64, f64) = (1.0, 200.0);
/// The greatest loss, and jitter in ms; each of half of the links.
const LOSS: f64 = 0.01;
const JITTER: f64 = 20.0;
const HALF: f64 = 0.5;
/// Of links with jitter, the share whose packets overtake each other.
const REORDERS: f64 = 0.25;
/// Queues, in bandwidth-delay products.
const QUEUES: (f64, f64) = (0.2, 4.0);

/// One to four links of this seed.
pub fn stationary(seed: u64) -> Network {
    let mut rng = random("stationary", seed);
    let nearest = rng.log_between(ROUND_TRIPS.0, ROUND_TRIPS.1);
    let count = 1 + rng.below(4);
    let links: Vec<LinkSpec> = (0..count).map(|index| one(&mut rng, nearest, index > 0)).collect();
    let name = format!("stationary {seed}: {}", describe(&links));
    Network { name, seed, links, seconds: SECONDS, ..Network::default() }
}

fn one(rng: &mut Seeded, nearest: f64, farther: bool) -> LinkSpec {
    let more = rng.log_between(FARTHER.0, FARTHER.1);
    let trip = nearest + if farther { more } else { 0.0 };
    let rate = rng.log_between(RATES.0, RATES.1);
    let products = rng.log_between(QUEUES.0, QUEUES.1);
    let loss = if rng.chance(HALF) { between(rng, 0.0, LOSS) } else { 0.0 };
    let jitter = if rng.chance(HALF) { between(rng, 0.0, JITTER) } else { 0.0 };
    let reorders = rng.chance(REORDERS);
    asymmetric(rng, rate, trip, products).both(|way| {
        way.loss = if loss > 0.0 { Loss::Random(loss) } else { Loss::None };
        (way.jitter, way.reorders) = (millis(jitter), reorders && jitter > 0.0);
    })
}
