//! Links that change: two or three, one of which does something; sometimes another answers it.

use super::{SECONDS, asymmetric, between, describe, random};
use crate::judge::Network;
use crate::net::LinkSpec;
use crate::random::Seeded;
use crate::world::Act;

/// What is drawn from: Mbit/s down and round trips in ms.
const RATES: (f64, f64) = (4.0, 60.0);
const ROUND_TRIPS: (f64, f64) = (15.0, 90.0);
/// Queues, in bandwidth-delay products: as radio links have them.
const QUEUES: (f64, f64) = (1.0, 8.0);
/// When it begins, s.
const BEGIN: (f64, f64) = (5.0, 14.0);
/// How long steps and outages last, s.
const STEP: (f64, f64) = (3.0, 12.0);
const OUTAGE: (f64, f64) = (0.3, 15.0);
/// A step goes down to this, a decay to a twentieth within these seconds, in steps of half a second.
const STEP_TO: f64 = 0.01;
const DECAY_TO: f64 = 0.05;
const DECAY: (f64, f64) = (5.0, 15.0);
const DECAY_STEP: f64 = 0.5;

type Acts = Vec<(f64, Act)>;

/// Two or three links of this seed, and what happens to the first of them.
pub fn changing(seed: u64) -> Network {
    let mut rng = random("changing", seed);
    let count = 2 + rng.below(2);
    let links: Vec<LinkSpec> = (0..count).map(|_| one(&mut rng)).collect();
    let begin = between(&mut rng, BEGIN.0, BEGIN.1);
    let (what, acts) = match rng.below(5) {
        0 => ("step", step(&mut rng, &links[0], begin)),
        1 => ("decay", decay(&mut rng, &links[0], 0, begin)),
        2 => ("keeps", outage(&mut rng, begin, Act::Stall(0), Act::Resume(0))),
        3 => ("loses", outage(&mut rng, begin, Act::Cut(0), Act::Heal(0))),
        _ => ("returns", returns(&mut rng, &links, begin)),
    };
    let name = format!("changing {seed}, {what} at {begin:.0}: {}", describe(&links));
    Network { name, seed, links, acts, seconds: SECONDS, ..Network::default() }
}

fn one(rng: &mut Seeded) -> LinkSpec {
    let rate = rng.log_between(RATES.0, RATES.1);
    let trip = rng.log_between(ROUND_TRIPS.0, ROUND_TRIPS.1);
    let products = rng.log_between(QUEUES.0, QUEUES.1);
    asymmetric(rng, rate, trip, products)
}

/// Both ways at a share of what they are.
fn at_share(link: &LinkSpec, number: usize, share: f64) -> [Act; 2] {
    let mbit = |bits: u64| bits as f64 / 1e6 * share;
    [Act::RateUp(number, mbit(link.up.rate.as_bits())), Act::RateDown(number, mbit(link.down.rate.as_bits()))]
}

fn both(at: f64, acts: [Act; 2]) -> Acts {
    acts.into_iter().map(|act| (at, act)).collect()
}

fn step(rng: &mut Seeded, link: &LinkSpec, begin: f64) -> Acts {
    let end = begin + between(rng, STEP.0, STEP.1);
    [both(begin, at_share(link, 0, STEP_TO)), both(end, at_share(link, 0, 1.0))].concat()
}

/// Slowly down, and back at once.
fn decay(rng: &mut Seeded, link: &LinkSpec, number: usize, begin: f64) -> Acts {
    let lasts = between(rng, DECAY.0, DECAY.1);
    let steps = (lasts / DECAY_STEP) as usize;
    let share = |step: usize| DECAY_TO.powf(step as f64 / steps as f64);
    let down = (1..=steps).flat_map(|step| both(begin + step as f64 * DECAY_STEP, at_share(link, number, share(step))));
    let back = (begin + lasts + between(rng, 0.0, STEP.0)).min(SECONDS);
    down.chain(both(back, at_share(link, number, 1.0))).collect()
}

fn outage(rng: &mut Seeded, begin: f64, goes: Act, comes: Act) -> Acts {
    let end = begin + rng.log_between(OUTAGE.0, OUTAGE.1);
    vec![(begin, goes), (end, comes)]
}

/// The first is away from the start, and returns while the second decays.
fn returns(rng: &mut Seeded, links: &[LinkSpec], begin: f64) -> Acts {
    let (goes, comes) = if rng.chance(0.5) { (Act::Stall(0), Act::Resume(0)) } else { (Act::Cut(0), Act::Heal(0)) };
    let mut acts = vec![(between(rng, 0.5, begin - 1.0), goes)];
    acts.extend(decay(rng, &links[1], 1, begin));
    acts.push((begin + between(rng, 0.0, DECAY.0), comes));
    acts
}
