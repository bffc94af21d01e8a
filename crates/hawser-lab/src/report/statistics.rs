//! What is said of repeated figures: their middle, their spread, and whether two sets of them differ.

use std::fmt;

use hawser_wire::traffic::Sample;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Half the length of an error bar, in standard deviations. Source: Hillion 2020, 4.1.
const ERROR_BAR: f64 = 1.5;
/// What is called significant: this rarely does chance alone do as much.
pub const LEVEL: f64 = 0.05;
/// A spread under this share of the mean is rounding, not spread.
const ROUNDING: f64 = 1e-12;

/// Figures of one series in short. Of at least one; plain data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    pub n: usize,
    pub mean: f64,
    /// Their standard deviation (n − 1); none for a single one.
    pub deviation: Option<f64>,
    pub least: f64,
    pub median: f64,
    pub most: f64,
}

impl Summary {
    /// None without a finite value; values that are not finite are left out.
    pub fn of(values: &[f64]) -> Option<Self> {
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        let sample: Sample = finite().collect();
        let (n, mean) = (sample.len(), sample.mean()?);
        let squares: f64 = finite().map(|value| (value - mean).powi(2)).sum();
        let deviation = (n > 1).then(|| (squares / (n - 1) as f64).sqrt());
        Some(Self { n, mean, deviation, least: sample.min()?, median: sample.median()?, most: sample.max()? })
    }

    /// How far the error bar reaches to either side.
    pub fn error_bar(&self) -> f64 {
        self.deviation.map_or(0.0, |deviation| deviation * ERROR_BAR)
    }
}

/// The mean, and where there are several the standard deviation.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2}", self.mean)?;
        self.deviation.map_or(Ok(()), |deviation| write!(f, " ± {deviation:.2}"))
    }
}

/// With a true minus, unless it is zero.
pub fn number(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let minus = if text.contains(|digit: char| matches!(digit, '1'..='9')) { "−" } else { "" };
    text.replace('-', minus)
}

/// Welch's t-test of two means (Welch 1947). Plain data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Welch {
    /// The difference, new less old, in its own standard errors.
    pub t: f64,
    /// Degrees of freedom (Welch–Satterthwaite).
    pub degrees: f64,
    /// How often chance alone makes as large a difference, either way.
    pub p: f64,
    /// The minimal relevant difference: with such spreads and this many runs a smaller one is not told from chance.
    pub relevant: f64,
}

/// Whether the means differ; none where a side has fewer than two values, whose spread nobody knows.
pub fn welch(old: &Summary, new: &Summary) -> Option<Welch> {
    let difference = new.mean - old.mean;
    let variance_of_mean = |side: &Summary| Some(side.deviation?.powi(2) / side.n as f64);
    let (a, b) = (variance_of_mean(old)?, variance_of_mean(new)?);
    let error = (a + b).sqrt();
    if error <= old.mean.abs().max(new.mean.abs()) * ROUNDING {
        // Figures without any spread: chance has no part in them.
        let same = difference.abs() <= error;
        let (t, p) = if same { (0.0, 1.0) } else { (f64::INFINITY.copysign(difference), 0.0) };
        return Some(Welch { t, degrees: (old.n + new.n - 2) as f64, p, relevant: 0.0 });
    }
    let degrees = (a + b).powi(2) / (a.powi(2) / (old.n - 1) as f64 + b.powi(2) / (new.n - 1) as f64);
    let student = StudentsT::new(0.0, 1.0, degrees).ok()?;
    let t = difference / error;
    let p = 2.0 * student.sf(t.abs());
    Some(Welch { t, degrees, p, relevant: student.inverse_cdf(1.0 - LEVEL / 2.0) * error })
}

/// The p values of several tests, corrected so that the chance of even one false alarm stays at the level (Holm 1979).
pub fn holm(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut corrected = vec![1.0; values.len()];
    let mut before: f64 = 0.0;
    for (rank, &place) in order.iter().enumerate() {
        before = before.max(values[place] * (values.len() - rank) as f64).min(1.0);
        corrected[place] = before;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-4 * expected.abs().max(1.0), "{value} is not {expected}");
    }

    fn of(values: &[f64]) -> Summary {
        Summary::of(values).expect("values")
    }

    #[test]
    fn summaries_are_as_computed_by_hand() {
        // values; mean, standard deviation, median
        let rows: [(&[f64], f64, f64, f64); 4] = [
            (&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0], 5.0, 2.138_09, 4.5),
            (&[10.0, 16.0], 13.0, 4.242_641, 13.0),
            (&[3.0, 1.0, 2.0], 2.0, 1.0, 2.0),
            (&[5.0, 5.0, 5.0, f64::NAN, f64::INFINITY], 5.0, 0.0, 5.0),
        ];
        for (values, mean, deviation, median) in rows {
            let summary = of(values);
            is_near(summary.mean, mean);
            is_near(summary.deviation.expect("several"), deviation);
            is_near(summary.median, median);
            is_near(summary.error_bar(), 1.5 * deviation);
        }
        let one = of(&[7.0]);
        assert_eq!((one.n, one.mean, one.deviation, one.error_bar()), (1, 7.0, None, 0.0));
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[f64::NAN]), None);
    }

    #[test]
    fn welchs_test_is_as_computed_by_hand() {
        let old = [19.8, 20.4, 19.6, 17.8, 18.5, 18.9, 18.3, 18.9, 19.5, 22.0];
        let new =
            [28.2, 26.6, 20.1, 23.3, 25.2, 22.1, 17.7, 27.6, 20.6, 13.7, 23.2, 17.5, 20.6, 18.0, 23.9, 21.6, 24.3];
        // old, new; t, degrees of freedom, p
        let rows: [(&[f64], &[f64], [f64; 3]); 3] = [
            // means 19.37 and 22.0118, variances 1.449 and 15.28485; p by numeric integration
            (&old, &new, [2.585_485, 20.620_55, 0.017_409]),
            (&[1.0, 2.0, 3.0], &[2.0, 3.0, 4.0], [1.224_745, 4.0, 0.287_864]),
            (&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0], [0.0, 4.0, 1.0]),
        ];
        for (old, new, expected) in rows {
            let test = welch(&of(old), &of(new)).expect("several of each");
            [test.t, test.degrees, test.p]
                .into_iter()
                .zip(expected)
                .for_each(|(value, expected)| is_near(value, expected));
        }
        // The minimal relevant difference: t(0.975; 4) = 2.776445, standard error sqrt(2/3).
        let test = welch(&of(&[1.0, 2.0, 3.0]), &of(&[2.0, 3.0, 4.0])).expect("several");
        is_near(test.relevant, 2.776_445 * 0.816_497);
    }

    #[test]
    fn figures_without_spread_differ_or_not() {
        let (two, three) = (of(&[2.0, 2.0]), of(&[3.0, 3.0, 3.0]));
        assert_eq!(welch(&two, &three).map(|test| (test.t, test.p)), Some((f64::INFINITY, 0.0)));
        assert_eq!(welch(&two, &two).map(|test| test.p), Some(1.0));
        assert_eq!(welch(&two, &of(&[2.0])), None);
    }

    #[test]
    fn holms_correction_is_as_computed_by_hand() {
        let rows: [(&[f64], &[f64]); 3] =
            [(&[0.01, 0.04, 0.03, 0.005], &[0.03, 0.06, 0.06, 0.02]), (&[0.5, 0.9], &[1.0, 1.0]), (&[], &[])];
        for (values, expected) in rows {
            let corrected = holm(values);
            assert_eq!(corrected.len(), expected.len());
            corrected.iter().zip(expected).for_each(|(value, expected)| is_near(*value, *expected));
        }
    }
}
