//! How much a figure changes, and how sure that is: pairs of runs, networks as the sample.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Chance alone leaves the interval to either side with half of this probability.
const LEVEL: f64 = 0.05;
/// Log ratios are told in percent: 100 times the natural logarithm, near to percent where it is small.
const PERCENT: f64 = 100.0;

/// The mean log ratio of a figure, in percent, over networks. A plain value.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Effect {
    /// Above zero: the figure is larger with the variant.
    pub mean: f64,
    /// Half of its 95 % confidence interval (Student 1908); none of fewer than two networks.
    pub half: Option<f64>,
}

impl Effect {
    /// Of each network, the runs with the default and the same runs with the variant.
    ///
    /// Runs on one network resemble each other, so each network counts once, with the mean of its runs.
    pub fn of(networks: impl Iterator<Item = (Vec<f64>, Vec<f64>)>) -> Effect {
        let ratios: Vec<f64> = networks.map(|(default, variant)| log_ratio(&default, &variant)).collect();
        let count = ratios.len() as f64;
        let mean = ratios.iter().sum::<f64>() / count;
        let squares: f64 = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum();
        let student = StudentsT::new(0.0, 1.0, count - 1.0).ok();
        let half = student.map(|student| {
            let error = (squares / (count - 1.0) / count).sqrt();
            student.inverse_cdf(1.0 - LEVEL / 2.0) * error
        });
        Effect { mean, half }
    }

    /// The interval, if there is one.
    pub fn interval(&self) -> Option<[f64; 2]> {
        self.half.map(|half| [self.mean - half, self.mean + half])
    }

    /// Chance alone would hardly do as much.
    pub fn is_seen(&self) -> bool {
        self.interval().is_some_and(|[low, high]| low > 0.0 || high < 0.0)
    }
}

fn log_ratio(default: &[f64], variant: &[f64]) -> f64 {
    let sum: f64 = default.iter().zip(variant).map(|(default, variant)| (variant / default).ln()).sum();
    PERCENT * sum / default.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(networks: &[(&[f64], &[f64])]) -> Effect {
        Effect::of(networks.iter().map(|(default, variant)| (default.to_vec(), variant.to_vec())))
    }

    #[test]
    fn intervals_are_as_computed_by_hand() {
        let e = std::f64::consts::E;
        // Log ratios of 1, 2 and 3 in hundreds: mean 200, deviation 100, t(0.975; 2) = 4.302653.
        let effect = of(&[(&[1.0], &[e]), (&[2.0], &[2.0 * e * e]), (&[3.0], &[3.0 * e.powi(3)])]);
        assert!((effect.mean - 200.0).abs() < 1e-9, "{effect:?}");
        assert!((effect.half.expect("three networks") - 248.4138).abs() < 1e-3, "{effect:?}");
        assert!(!effect.is_seen());
    }

    #[test]
    fn runs_of_a_network_count_once() {
        let twice = of(&[(&[1.0, 1.0], &[2.0, 8.0]), (&[1.0, 1.0], &[4.0, 4.0])]);
        assert!((twice.mean - PERCENT * 4f64.ln()).abs() < 1e-9 && twice.half.expect("two") < 1e-6, "{twice:?}");
        assert!(twice.is_seen());
    }

    #[test]
    fn one_network_has_no_interval_and_equal_figures_no_effect() {
        let one = of(&[(&[1.0, 1.0], &[2.0, 2.0])]);
        assert!(one.half.is_none() && !one.is_seen());
        let equal = of(&[(&[3.0], &[3.0]), (&[5.0], &[5.0])]);
        assert_eq!((equal, equal.is_seen()), (Effect { mean: 0.0, half: Some(0.0) }, false));
    }
}
