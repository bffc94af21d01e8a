//! Statistics of drives, of recordings as of generated ones, second by second.
//!
//! 1. [`per_second`] brings what was generated to the recordings' steps.
//! 2. [`Statistics::of`] is of one link over many drives; [`correlation`] and [`likeness`] are of two.
//! 3. [`RECORDED`] and [`PAIRS`] are what recordings have: aggregates of Hu et al., LEO Satellite vs. Cellular
//!    Networks, CoNEXT 2023 (the artifact's downlink throughput: 38 drives, 16,906 s, four links in one car). Nothing
//!    else of them is here.
//!
//! What goes on within a second those do not say. Fast fading is compared with two LTE downlinks recorded by the
//! packet, of Winstein et al., Stochastic Forecasts Achieve High Throughput and Low Delay over Cellular Networks,
//! NSDI 2013, and of 2016.

use super::{Kind, STEP};

/// Below this share of a drive's mean a second counts as an outage.
const LOW: f64 = 0.05;
/// Seconds over which autocorrelation is told.
pub const LAGS: [usize; 3] = [1, 5, 15];
/// Of outages' lengths: the percentile that stands for their tail.
const TAIL: f64 = 0.97;
/// The seconds that outages are counted in.
const OUTAGES_IN: f64 = 1000.0;

/// What many drives of a link are like. Plain data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// Of all seconds, in Mbit/s.
    pub mean_mbps: f64,
    /// Standard deviation of all seconds over their mean.
    pub variation: f64,
    /// The same within a drive: the median of drives.
    pub drive_variation: f64,
    /// Seconds below 5 % of their drive's mean, as a share.
    pub low_share: f64,
    /// How many outages, of such seconds in a row, begin in 1000 s.
    pub outages: f64,
    /// How long they are in the mean, and at the 97th percentile, in seconds.
    pub outage_mean_s: f64,
    /// See above.
    pub outage_p97_s: f64,
    /// Over [`LAGS`], the mean of drives.
    pub autocorrelation: [f64; 3],
}

/// What two links have in common. Plain data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// Of which kinds.
    pub kinds: [Kind; 2],
    /// [`correlation`].
    pub within: f64,
    /// [`likeness`].
    pub between: f64,
}

/// AT&T; the mean of T-Mobile and Verizon; Starlink Mobility. Source: Hu et al., CoNEXT 2023.
pub const RECORDED: [(Kind, Statistics); 3] = [
    (
        Kind::Lte,
        Statistics {
            mean_mbps: 64.7,
            variation: 1.02,
            drive_variation: 0.76,
            low_share: 0.051,
            outages: 28.7,
            outage_mean_s: 1.79,
            outage_p97_s: 8.0,
            autocorrelation: [0.80, 0.65, 0.43],
        },
    ),
    (
        Kind::FiveG,
        Statistics {
            mean_mbps: 119.6,
            variation: 0.98,
            drive_variation: 0.71,
            low_share: 0.052,
            outages: 17.5,
            outage_mean_s: 2.93,
            outage_p97_s: 15.0,
            autocorrelation: [0.85, 0.64, 0.40],
        },
    ),
    (
        Kind::Starlink,
        Statistics {
            mean_mbps: 141.3,
            variation: 0.61,
            drive_variation: 0.45,
            low_share: 0.093,
            outages: 8.1,
            outage_mean_s: 11.5,
            outage_p97_s: 54.0,
            autocorrelation: [0.74, 0.46, 0.14],
        },
    ),
];

/// Means over such pairs. Source: Hu et al., CoNEXT 2023.
pub const PAIRS: [Pair; 4] = [
    Pair { kinds: [Kind::Lte, Kind::FiveG], within: 0.19, between: 0.47 },
    Pair { kinds: [Kind::FiveG, Kind::FiveG], within: 0.16, between: 0.71 },
    Pair { kinds: [Kind::Starlink, Kind::Lte], within: 0.03, between: -0.01 },
    Pair { kinds: [Kind::Starlink, Kind::FiveG], within: 0.01, between: -0.28 },
];

/// Step 1: means of whole seconds.
pub fn per_second(rates: &[f64]) -> Vec<f64> {
    let steps = (1.0 / STEP.as_secs_f64()).round() as usize;
    rates.chunks_exact(steps).map(mean).collect()
}

impl Statistics {
    /// Step 2: of drives, each with a rate for each second.
    pub fn of(drives: &[Vec<f64>]) -> Self {
        let all = drives.concat();
        let mut variations: Vec<f64> = drives.iter().map(|drive| deviation(drive) / mean(drive)).collect();
        let low = |drive: &Vec<f64>| {
            let bound = LOW * mean(drive);
            drive.iter().map(|rate| *rate < bound).collect::<Vec<bool>>()
        };
        let low: Vec<Vec<bool>> = drives.iter().map(low).collect();
        let mut lengths: Vec<f64> = low.iter().flat_map(|drive| runs(drive)).collect();
        let lows = low.iter().flatten().filter(|is_low| **is_low).count() as f64;
        Self {
            mean_mbps: mean(&all),
            variation: deviation(&all) / mean(&all),
            drive_variation: quantile(&mut variations, 0.5),
            low_share: lows / all.len() as f64,
            outages: OUTAGES_IN * lengths.len() as f64 / all.len() as f64,
            outage_mean_s: mean(&lengths),
            outage_p97_s: quantile(&mut lengths, TAIL),
            autocorrelation: LAGS.map(|lag| mean_autocorrelation(drives, lag)),
        }
    }
}

/// What two links of the same drives have in common within them: the mean of Pearson's coefficient over drives.
pub fn correlation(a: &[Vec<f64>], b: &[Vec<f64>]) -> f64 {
    mean(&a.iter().zip(b).filter_map(|(a, b)| pearson(a, b)).collect::<Vec<_>>())
}

/// Whether drives good for one are good for the other: Pearson's coefficient of the logarithms of drives' means.
pub fn likeness(a: &[Vec<f64>], b: &[Vec<f64>]) -> f64 {
    let logs = |drives: &[Vec<f64>]| drives.iter().map(|drive| mean(drive).ln()).collect::<Vec<f64>>();
    pearson(&logs(a), &logs(b)).unwrap_or_default()
}

/// The mean of drives.
pub(super) fn mean_autocorrelation(drives: &[Vec<f64>], lag: usize) -> f64 {
    mean(&drives.iter().filter_map(|drive| autocorrelation(drive, lag)).collect::<Vec<_>>())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / values.len().max(1) as f64).sqrt()
}

/// The nearest of the values.
fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = (share * values.len().saturating_sub(1) as f64).round() as usize;
    values.get(place).copied().unwrap_or_default()
}

/// How long each row of trues is.
fn runs(flags: &[bool]) -> Vec<f64> {
    let rows = flags.split(|is_low| !is_low).filter(|row| !row.is_empty());
    rows.map(|row| row.len() as f64).collect()
}

/// None where nothing varies, or there is too little of it.
fn autocorrelation(values: &[f64], lag: usize) -> Option<f64> {
    let mean = mean(values);
    let product = |pair: (&f64, &f64)| (pair.0 - mean) * (pair.1 - mean);
    let all: f64 = values.iter().zip(values).map(product).sum();
    let later = values.get(lag..)?;
    (all > 0.0).then(|| values.iter().zip(later).map(product).sum::<f64>() / all)
}

/// None where one of them does not vary.
fn pearson(a: &[f64], b: &[f64]) -> Option<f64> {
    let (mean_a, mean_b, spread) = (mean(a), mean(b), deviation(a) * deviation(b));
    let products: f64 = a.iter().zip(b).map(|(a, b)| (a - mean_a) * (b - mean_b)).sum();
    (spread > 0.0).then(|| products / (a.len() as f64 * spread))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_as_by_hand() {
        let drives = vec![vec![2.0, 4.0, 0.0, 0.0, 4.0, 2.0], vec![1.0, 0.0, 3.0, 4.0]];
        let found = Statistics::of(&drives);
        assert_eq!((found.mean_mbps, found.low_share, found.outages), (2.0, 0.3, 200.0));
        assert_eq!((found.outage_mean_s, found.outage_p97_s), (1.5, 2.0));
        // Squares of 0 2 -2 -2 2 0 and -1 -2 1 2 are 26 in all, 16 and 10 of each.
        assert!((found.variation - (26.0_f64 / 10.0).sqrt() / 2.0).abs() < 1e-12);
        // Neighbours' products: 0 - 4 + 4 - 4 + 0 of 16, and 2 - 2 + 2 of 10.
        assert!((found.autocorrelation[0] - (-4.0 / 16.0 + 2.0 / 10.0) / 2.0).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn links_that_move_together_are_told_from_those_that_do_not() {
        let one = vec![vec![1.0, 2.0, 3.0], vec![20.0, 10.0, 30.0]];
        let double: Vec<Vec<f64>> = one.iter().map(|drive| drive.iter().map(|rate| 2.0 * rate).collect()).collect();
        let against: Vec<Vec<f64>> = one.iter().map(|drive| drive.iter().map(|rate| 100.0 - rate).collect()).collect();
        assert!((correlation(&one, &double) - 1.0).abs() < 1e-12 && (likeness(&one, &double) - 1.0).abs() < 1e-12);
        assert!((correlation(&one, &against) + 1.0).abs() < 1e-12 && (likeness(&one, &against) + 1.0).abs() < 1e-12);
    }

    #[test]
    fn steps_become_seconds() {
        assert_eq!(per_second(&[1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 7.0, 7.0, 7.0, 7.0, 100.0]), [3.0, 7.0]);
    }
}
