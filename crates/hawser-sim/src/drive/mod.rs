//! Drives: what the links of a car could carry, generated from a seed.
//!
//! 1. [`Drive::new`] draws where the car is: a sequence of areas, how good the place is for every cellular link at once
//!    (a tunnel, a hill, a crowd), and how well the region is served.
//! 2. [`Drive::rates`] draws a link by its kind's [`model`]. The logarithm of its rate is the sum of a level for the
//!    drive, slow and fast fading (mean-reverting, Ornstein-Uhlenbeck), and deep fades. The capacity of a cell or
//!    beam limits it.
//! 3. Starlink's terminals are given another satellite every 15 s: the rate is drawn anew, with a brief interruption
//!    at times.
//! 4. Outages come by chance, and last as a heavy tail says: most a second, some a minute.
//!
//! The constants are fitted to [`statistics`] of recordings: [`statistics::RECORDED`]. The same seed gives the same
//! drive.

use std::time::Duration;

use crate::random::Seeded;
use model::Model;
use process::{OrnsteinUhlenbeck, exponential, normal, pareto, steps_in};

mod model;
mod process;
pub mod statistics;

/// From one rate to the next: fine enough for what happens within a second.
pub const STEP: Duration = Duration::from_millis(200);
/// Shares of areas in which drives begin. Source: 38 drives of Hu et al., CoNEXT 2023: 27, 36, 37 % of their seconds.
const AREAS: [(Area, f64); 3] = [(Area::Urban, 0.27), (Area::Suburban, 0.36), (Area::Rural, 0.37)];
/// A car is as long in an area. Source: the same: 17 changes in 16,906 s.
const AREA_S: f64 = 1000.0;
/// How fast the place changes for all cellular links at once: fitted, by what they have in common within a drive.
const PLACE_S: f64 = 20.0;
/// Links' numbers become seeds far apart. Source: the golden ratio times 2^64 (Knuth, TAOCP 3, 6.4).
const SEED_SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// What a link is. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Cellular, of the fourth generation for the most part.
    Lte,
    /// Cellular, of the fifth generation for the most part.
    FiveG,
    /// A satellite of low orbit.
    Starlink,
}

/// Where the car is. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// Houses hide satellites, and cells are close.
    Urban,
    /// Between.
    Suburban,
    /// The sky is open, and cells are far.
    Rural,
}

/// A drive. Made from its seed; plain data.
#[derive(Clone, Debug)]
pub struct Drive {
    seed: u64,
    areas: Vec<Area>,
    /// How good the place is in each step, as a standard normal number.
    place: Vec<f64>,
    /// How well the region is served.
    region: f64,
}

impl Drive {
    /// Step 1: the drive of a seed, so long.
    pub fn new(seed: u64, length: Duration) -> Self {
        let mut random = Seeded::new(seed);
        let steps = steps_in(length);
        let areas = areas(&mut random, steps);
        let region = normal(&mut random);
        let mut shared = OrnsteinUhlenbeck::new(&mut random, PLACE_S);
        let place = (0..steps).map(|_| shared.next(&mut random)).collect();
        Self { seed, areas, place, region }
    }

    /// The area in each step.
    pub fn areas(&self) -> &[Area] {
        &self.areas
    }

    /// Steps 2 to 4: rates in Mbit/s, one for each [`STEP`]. Links of different numbers are different ones.
    pub fn rates(&self, kind: Kind, number: u64) -> Vec<f64> {
        let model = model::of(kind);
        let mut random = Seeded::new(self.seed ^ (number.wrapping_add(1)).wrapping_mul(SEED_SPREAD));
        let own = normal(&mut random);
        let level = model.drive_spread * mixed(model.region_part, self.region, own);
        let mut logs = self.fading(model, level, &mut random);
        self.fade(model, &mut logs, &mut random);
        let handovers = self.redraw(model, &mut logs, &mut random);
        let bent = |log: &f64| log.exp() / (1.0 + log.exp() / model.capacity_mbps);
        let mut rates: Vec<f64> = logs.iter().map(bent).collect();
        interrupt(model, &handovers, &mut rates, &mut random);
        self.fail(model, level, &mut rates, &mut random);
        rates
    }

    /// Step 2: the logarithm without deep fades.
    fn fading(&self, model: &Model, level: f64, random: &mut Seeded) -> Vec<f64> {
        let mut slow = OrnsteinUhlenbeck::new(random, model.slow_s);
        let mut fast = OrnsteinUhlenbeck::new(random, model.fast_s);
        let mut log = |(area, place): (&Area, &f64)| {
            let slow = mixed(model.place_part, *place, slow.next(random));
            let median = model.median_mbps[area.index()].ln() + level;
            median + model.slow_spread * slow + model.fast_spread * fast.next(random)
        };
        self.areas.iter().zip(&self.place).map(&mut log).collect()
    }

    /// Step 2: fades begin by chance, are of exponential depth and length, and add up.
    fn fade(&self, model: &Model, logs: &mut [f64], random: &mut Seeded) {
        for step in 0..logs.len() {
            if random.chance(STEP.as_secs_f64() / model.fade_every_s) {
                let depth = exponential(random, model.fade_depth);
                let until = step + steps_in(Duration::from_secs_f64(exponential(random, model.fade_s))).max(1);
                let end = until.min(logs.len());
                logs[step..end].iter_mut().for_each(|log| *log -= depth);
            }
        }
    }

    /// Step 3: the steps at which another satellite takes over.
    fn redraw(&self, model: &Model, logs: &mut [f64], random: &mut Seeded) -> Vec<usize> {
        let Some(handover) = &model.handover else { return Vec::new() };
        let every = steps_in(handover.every);
        let mut handovers = Vec::new();
        let mut drawn = handover.spread * normal(random);
        // Nobody's drive begins with the satellites' clock.
        let mut left = steps_in(random.up_to(handover.every));
        for (step, log) in logs.iter_mut().enumerate() {
            if left == 0 {
                (left, drawn) = (every, handover.spread * normal(random));
                handovers.push(step);
            }
            left -= 1;
            *log += drawn;
        }
        handovers
    }

    /// Step 4.
    fn fail(&self, model: &Model, level: f64, rates: &mut [f64], random: &mut Seeded) {
        let mut free = 0;
        for step in 0..rates.len() {
            let area = self.areas[step].index();
            let outage = &model.outage;
            if step < free || !random.chance(outage.per_second[area] * STEP.as_secs_f64()) {
                continue;
            }
            let seconds = pareto(random, outage.shortest_s[area], outage.longest_s[area], outage.tail);
            free = (step + steps_in(Duration::from_secs_f64(seconds)).max(1)).min(rates.len());
            let is_dark = random.chance(outage.dark_share);
            let left = if is_dark { 0.0 } else { outage.rest * random.unit() };
            rates[step..free].fill(left * model.median_mbps[area] * level.exp());
        }
    }
}

impl Area {
    const fn index(self) -> usize {
        match self {
            Self::Urban => 0,
            Self::Suburban => 1,
            Self::Rural => 2,
        }
    }
}

/// Step 1: from an area to one beside it, by chance.
fn areas(random: &mut Seeded, steps: usize) -> Vec<Area> {
    let mut place = random.unit();
    let first = AREAS.iter().find(|(_, share)| {
        place -= share;
        place < 0.0
    });
    let mut now = first.map_or(Area::Rural, |(area, _)| *area);
    let mut next = |_| {
        if random.chance(STEP.as_secs_f64() / AREA_S) {
            now = match now {
                Area::Urban | Area::Rural => Area::Suburban,
                Area::Suburban if random.chance(0.5) => Area::Urban,
                Area::Suburban => Area::Rural,
            };
        }
        now
    };
    (0..steps).map(&mut next).collect()
}

/// Step 3: some handovers interrupt.
fn interrupt(model: &Model, handovers: &[usize], rates: &mut [f64], random: &mut Seeded) {
    let Some(handover) = &model.handover else { return };
    for &step in handovers {
        if random.chance(handover.interrupts) {
            let until = step + 1 + steps_in(random.up_to(handover.longest));
            let end = until.min(rates.len());
            rates[step..end].fill(0.0);
        }
    }
}

/// A standard normal number of two: so much of its variance is common.
fn mixed(part: f64, common: f64, own: f64) -> f64 {
    part.sqrt() * common + (1.0 - part).sqrt() * own
}

#[cfg(test)]
mod tests;
