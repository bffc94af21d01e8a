//! The constants of each kind of link. All were fitted together to [`super::statistics::RECORDED`], save where a
//! source stands.

use std::time::Duration;

use super::Kind;

/// How a kind of link behaves. Areas are urban, suburban, rural. Plain data.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// The median by area, before capacity, fades and outages, in Mbit/s.
    pub median_mbps: [f64; 3],
    /// What a cell or a beam has at most, in Mbit/s: rates near it are bent.
    pub capacity_mbps: f64,
    /// Standard deviation of a drive's level, of the logarithm.
    pub drive_spread: f64,
    /// How much of that level's variance is the region's, and so all cellular links'.
    pub region_part: f64,
    /// Slow fading: standard deviation of the logarithm, and time constant in seconds.
    pub slow_spread: f64,
    pub slow_s: f64,
    /// How much of that variance is the place's.
    pub place_part: f64,
    /// Fast fading: the same.
    pub fast_spread: f64,
    pub fast_s: f64,
    /// Deep fades: seconds from one to the next, mean depth of the logarithm, mean length in seconds.
    pub fade_every_s: f64,
    pub fade_depth: f64,
    pub fade_s: f64,
    pub outage: Outage,
    pub handover: Option<Handover>,
}

/// Outages. Plain data.
#[derive(Clone, Debug)]
pub(super) struct Outage {
    /// How many begin in a second.
    pub per_second: [f64; 3],
    /// The exponent of their lengths' tail (a bounded Pareto), and between what they lie, in seconds.
    pub tail: f64,
    pub shortest_s: [f64; 3],
    pub longest_s: [f64; 3],
    /// In how many of them nothing goes at all; in others up to so much of the median.
    pub dark_share: f64,
    pub rest: f64,
}

/// Another satellite. Plain data.
#[derive(Clone, Debug)]
pub(super) struct Handover {
    /// From one to the next. Source: Mohan et al., A Multifaceted Look at Starlink Performance, WWW 2024.
    pub every: Duration,
    /// Standard deviation of what is drawn anew, of the logarithm.
    pub spread: f64,
    /// How many interrupt, and for how long at most.
    pub interrupts: f64,
    pub longest: Duration,
}

pub(super) const fn of(kind: Kind) -> &'static Model {
    match kind {
        Kind::Lte => &LTE,
        Kind::FiveG => &FIVE_G,
        Kind::Starlink => &STARLINK,
    }
}

const LTE: Model = Model {
    median_mbps: [71.0, 50.0, 48.0],
    capacity_mbps: 650.0,
    drive_spread: 0.50,
    region_part: 0.45,
    slow_spread: 0.88,
    slow_s: 80.0,
    place_part: 0.24,
    fast_spread: 0.32,
    fast_s: 0.4,
    fade_every_s: 60.0,
    fade_depth: 0.9,
    fade_s: 5.0,
    outage: Outage {
        per_second: [0.036, 0.040, 0.043],
        tail: 2.1,
        shortest_s: [1.0, 1.0, 1.05],
        longest_s: [40.0, 40.0, 60.0],
        dark_share: 0.24,
        rest: 0.03,
    },
    handover: None,
};

/// Cells fade alike, whatever they send.
const FIVE_G: Model = Model {
    median_mbps: [238.0, 74.0, 58.0],
    capacity_mbps: 720.0,
    drive_spread: 0.95,
    region_part: 0.68,
    slow_spread: 0.84,
    slow_s: 60.0,
    place_part: 0.20,
    outage: Outage {
        per_second: [0.017, 0.021, 0.026],
        tail: 1.35,
        shortest_s: [1.0; 3],
        longest_s: [40.0, 60.0, 60.0],
        dark_share: 0.2,
        ..LTE.outage
    },
    ..LTE
};

const STARLINK: Model = Model {
    median_mbps: [190.0, 235.0, 255.0],
    capacity_mbps: 450.0,
    drive_spread: 0.28,
    region_part: 0.0,
    slow_spread: 0.42,
    slow_s: 20.0,
    place_part: 0.0,
    fast_spread: 0.55,
    fast_s: 0.4,
    fade_every_s: 60.0,
    fade_depth: 0.8,
    fade_s: 3.0,
    // Houses and trees hide satellites for as long as the car stands among them.
    outage: Outage {
        per_second: [0.021, 0.0075, 0.0075],
        tail: 0.40,
        shortest_s: [0.8; 3],
        longest_s: [330.0, 40.0, 8.0],
        dark_share: 1.0,
        rest: 0.0,
    },
    handover: Some(Handover {
        every: Duration::from_secs(15),
        spread: 0.42,
        interrupts: 0.5,
        longest: Duration::from_millis(600),
    }),
};
