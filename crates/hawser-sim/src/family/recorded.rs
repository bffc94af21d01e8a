//! Links as they were recorded: whoever runs this has the files, and gives their text.
//!
//! 1. [`stretches`] draws stretches of drives, of two links or more of the same car in the same seconds.
//! 2. [`pairs`] takes mahimahi traces two by two, and each beside a steady link.

use crate::judge::Network;
use crate::net::spec::{mbit_rate, millis};
use crate::net::{LinkSpec, Recording, link};
use crate::random::Seeded;
use crate::recorded::Drive;
use std::time::Duration;

/// Delays each way, ms: of satellites and of all others.
const DELAY_SATELLITE: f64 = 25.0;
const DELAY_OTHER: f64 = 30.0;
/// Queues at the mean rate, ms.
const QUEUE_MS: f64 = 300.0;
/// Uplinks that were not recorded, of the mean of the downlink; and the least, Mbit/s: without a way back it is none.
const UPLINK: f64 = 0.2;
const UPLINK_MIN: f64 = 0.1;
/// The steady link: Mbit/s down and up, and its round trip, ms.
const STEADY: (f64, f64, f64) = (12.0, 2.0, 30.0);

/// What is drawn of drives. A plain value.
#[derive(Copy, Clone, Debug)]
pub struct Draw {
    /// Decides which.
    pub seed: u64,
    /// The number of cases.
    pub cases: usize,
    /// Each so long, s.
    pub seconds: usize,
    /// The factor of the recorded rates.
    pub scale: f64,
}

/// A trace of one link. A plain value.
#[derive(Clone, Debug)]
pub struct Trace {
    /// What it is called.
    pub name: String,
    /// Its downlink.
    pub down: Recording,
    /// Its uplink, if that was recorded.
    pub up: Option<Recording>,
}

/// A car's link of this name as recorded, or as generated.
pub(super) fn car_link(down: Recording, up: Option<Recording>, name: &str) -> LinkSpec {
    recorded_link(down, up, if name.contains("starlink") { DELAY_SATELLITE } else { DELAY_OTHER })
}

/// A link as recorded, with this delay each way, ms.
fn recorded_link(down: Recording, up: Option<Recording>, delay: f64) -> LinkSpec {
    let mean = down.mean();
    let spec = link(1.0, delay * 2.0).down(|way| way.follow(down, QUEUE_MS));
    spec.up(|way| match up {
        Some(up) => way.follow(up, QUEUE_MS),
        None => {
            way.rate = mean.scale(UPLINK).max(mbit_rate(UPLINK_MIN));
            way.queue = way.rate.bytes_in(millis(QUEUE_MS)).max(way.queue);
        }
    })
}

/// Step 1. `names`: of the links of a drive.
pub fn stretches(names: &[String], drives: &[Drive], draw: Draw) -> Vec<Network> {
    let long: Vec<&Drive> = drives.iter().filter(|drive| drive.seconds() >= draw.seconds).collect();
    let mut rng = Seeded::new(draw.seed);
    let cases = if long.is_empty() { 0 } else { draw.cases };
    (0..cases).map(|_| stretch(names, &long, draw, &mut rng)).collect()
}

fn stretch(names: &[String], drives: &[&Drive], draw: Draw, rng: &mut Seeded) -> Network {
    let drive = drives[rng.below(drives.len() as u64) as usize];
    let from = rng.below((drive.seconds() - draw.seconds + 1) as u64) as usize;
    let mut links: Vec<usize> = (0..names.len()).collect();
    let count = (2 + rng.below((names.len() as u64 - 1).max(1)) as usize).min(names.len());
    while links.len() > count {
        links.remove(rng.below(links.len() as u64) as usize);
    }
    let of = |link: &usize| {
        let rates = drive.stretch(*link, from, draw.seconds, draw.scale).expect("a stretch within the drive");
        car_link(rates, None, &names[*link])
    };
    let short: Vec<&str> = links.iter().map(|link| names[*link].split('_').next().unwrap_or_default()).collect();
    Network {
        name: format!("drive {} from {from} {}", drive.number, short.join("+")),
        seed: draw.seed,
        links: links.iter().map(of).collect(),
        seconds: draw.seconds as f64,
        ..Network::default()
    }
}

/// Step 2.
pub fn pairs(traces: &[Trace], draw: Draw) -> Vec<Network> {
    let mut rng = Seeded::new(draw.seed);
    let cut = |trace: &Trace| {
        let most = trace.down.length().saturating_sub(Duration::from_secs(draw.seconds as u64));
        let offset = rng.up_to(most);
        let up = trace.up.clone().map(|up| up.at(offset));
        let spec = recorded_link(trace.down.clone().at(offset), up, DELAY_OTHER);
        (format!("{}@{}", trace.name, offset.as_secs()), spec)
    };
    let cut: Vec<(String, LinkSpec)> = traces.iter().map(cut).collect();
    let steady = link(STEADY.0, STEADY.2).up(|way| way.set_rate(STEADY.1)).queue_ms(QUEUE_MS);
    let steady = ("steady".to_owned(), steady);
    let mut networks = Vec::new();
    for (index, one) in cut.iter().enumerate() {
        for other in cut[index + 1..].iter().chain([&steady]) {
            networks.push(Network {
                name: format!("{} + {}", one.0, other.0),
                seed: draw.seed,
                links: vec![one.1.clone(), other.1.clone()],
                seconds: draw.seconds as f64,
                ..Network::default()
            });
        }
    }
    networks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded;

    #[test]
    fn stretches_and_pairs_are_drawn_by_the_seed() {
        let rows: String = (0..60).map(|second| format!("3,{second},10,20,30,x\n")).collect();
        let (names, drives) = recorded::drives(&format!("drive,second,starlink_a,b,c,area\n{rows}"));
        let draw = Draw { seed: 1, cases: 9, seconds: 40, scale: 0.5 };
        let networks = stretches(&names, &drives, draw);
        assert_eq!(networks.len(), 9);
        assert!(networks.iter().all(|network| (2..=3).contains(&network.links.len())));
        let again = stretches(&names, &drives, draw);
        assert!(networks.iter().zip(&again).all(|(one, other)| one.name == other.name));
        let other = stretches(&names, &drives, Draw { seed: 2, ..draw });
        assert!(networks.iter().zip(&other).any(|(one, other)| one.name != other.name));
        assert!(stretches(&names, &drives, Draw { seconds: 61, ..draw }).is_empty());

        let down = recorded::mahimahi("1\n60000\n").expect("a recording");
        let trace = |name: &str| Trace { name: name.to_owned(), down: down.clone(), up: None };
        assert_eq!(pairs(&[trace("a"), trace("b"), trace("c")], draw).len(), 6, "three pairs, three beside the steady");
    }
}
