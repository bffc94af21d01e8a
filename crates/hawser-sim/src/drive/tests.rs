//! Generated drives are like those recorded, and a seed decides them.

use super::statistics::{LAGS, PAIRS, Pair, RECORDED, Statistics, correlation, likeness, per_second};
use super::*;

/// As long as the recorded ones in the mean, and enough of them that chance hardly moves a figure.
const LENGTH: Duration = Duration::from_secs(450);
const SEEDS: std::ops::Range<u64> = 0..400;

/// Drives of Hu et al., CoNEXT 2023.
const RECORDED_DRIVES: u32 = 38;

/// A link of every drive, second by second.
fn link(kind: Kind, number: u64) -> Vec<Vec<f64>> {
    SEEDS.map(|seed| per_second(&Drive::new(seed, LENGTH).rates(kind, number))).collect()
}

#[test]
fn generated_drives_have_the_statistics_of_those_recorded() {
    let mut wrong = Vec::new();
    for (kind, recorded) in RECORDED {
        let found = Statistics::of(&link(kind, 1));
        println!("{kind:?}\n  recorded {recorded:?}\n  generated {found:?}");
        // What, recorded, generated, by how much of the recorded it may differ.
        let shares = [
            ("mean", recorded.mean_mbps, found.mean_mbps, 0.15),
            ("variation", recorded.variation, found.variation, 0.15),
            ("variation within a drive", recorded.drive_variation, found.drive_variation, 0.15),
            ("share of low seconds", recorded.low_share, found.low_share, 0.20),
            ("outages", recorded.outages, found.outages, 0.25),
            ("mean outage", recorded.outage_mean_s, found.outage_mean_s, 0.25),
        ];
        for (what, recorded, found, bound) in shares {
            if (found / recorded - 1.0).abs() > bound {
                wrong.push(format!("{kind:?}, {what}: {found:.3}, recorded {recorded}, within {bound}"));
            }
        }
        // The 97th percentile of recorded outages is of a handful of them: within a factor of two.
        if !(0.5..=2.0).contains(&(found.outage_p97_s / recorded.outage_p97_s)) {
            wrong.push(format!("{kind:?}, long outages: {} s, recorded {}", found.outage_p97_s, recorded.outage_p97_s));
        }
        for ((lag, found), recorded) in LAGS.into_iter().zip(found.autocorrelation).zip(recorded.autocorrelation) {
            if (found - recorded).abs() > 0.08 {
                wrong.push(format!("{kind:?}, autocorrelation over {lag} s: {found:.2}, recorded {recorded}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn links_of_a_car_have_in_common_what_recorded_ones_do() {
    let mut wrong = Vec::new();
    for Pair { kinds: [one, other], within, between } in PAIRS {
        let (one_link, other_link) = (link(one, 1), link(other, 2));
        let found = (correlation(&one_link, &other_link), likeness(&one_link, &other_link));
        println!("{one:?} and {other:?}: {found:.2?}, recorded {within} and {between}");
        // What 38 drives say of a coefficient between drives has this standard error (Fisher).
        let error = (1.0 - between * between) / f64::from(RECORDED_DRIVES - 1).sqrt();
        if (found.0 - within).abs() > 0.06 || (found.1 - between).abs() > 1.6 * error {
            wrong.push(format!("{one:?} and {other:?}: {found:.2?}, recorded {within} and {between}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_seed_decides_a_drive_and_a_number_a_link() {
    let rates = |seed, number| Drive::new(seed, Duration::from_secs(60)).rates(Kind::Starlink, number);
    assert_eq!(rates(7, 1), rates(7, 1));
    assert_ne!(rates(7, 1), rates(8, 1));
    assert_ne!(rates(7, 1), rates(7, 2));
    assert_eq!(rates(7, 1).len(), 300);
    let longer = Drive::new(7, Duration::from_secs(60));
    assert_eq!((longer.areas().len(), longer.rates(Kind::Lte, 0).len()), (300, 300));
}

#[test]
fn rates_lie_between_nothing_and_what_the_cell_has() {
    for kind in [Kind::Lte, Kind::FiveG, Kind::Starlink] {
        let rates: Vec<f64> = (0..20).flat_map(|seed| Drive::new(seed, LENGTH).rates(kind, 0)).collect();
        assert!(rates.iter().all(|&rate| (0.0..model::of(kind).capacity_mbps).contains(&rate)), "{kind:?}");
        assert!(rates.contains(&0.0), "{kind:?} has outages");
    }
}

#[test]
fn satellites_change_every_fifteen_seconds() {
    // Steps at which the rate is drawn anew move it more than others: by their place in 75 steps.
    let mut moves = vec![0.0; 75];
    let mut random = Seeded::new(1);
    for seed in 0..200 {
        let drive = Drive::new(seed, LENGTH);
        let model = model::of(Kind::Starlink);
        let mut logs = vec![0.0; drive.areas().len()];
        let handovers = drive.redraw(model, &mut logs, &mut random);
        assert!(handovers.windows(2).all(|pair| pair[1] - pair[0] == 75), "{handovers:?}");
        let first = handovers[0] % 75;
        for (step, pair) in logs.windows(2).enumerate() {
            moves[(step + 1 + 75 - first) % 75] += (pair[1] - pair[0]).abs();
        }
    }
    assert!(moves[0] > 0.0 && moves[1..].iter().all(|&sum| sum == 0.0), "{moves:?}");
}

#[test]
fn fast_fading_of_lte_is_like_that_of_links_recorded_by_the_packet() {
    // Autocorrelation over 0.2 s and 1 s, in steps, of two LTE downlinks recorded while driving, which differ.
    // Source: the traces of mahimahi, as of Winstein et al., NSDI 2013, and of 2016.
    let recorded = [(1, 0.72..0.92), (5, 0.46..0.85)];
    let drives: Vec<Vec<f64>> = SEEDS.map(|seed| Drive::new(seed, LENGTH).rates(Kind::Lte, 1)).collect();
    for (steps, recorded) in recorded {
        let found = statistics::mean_autocorrelation(&drives, steps);
        assert!(recorded.contains(&found), "over {steps} steps: {found:.2}, recorded {recorded:?}");
    }
}
