//! Small statistics over a set of durations or numbers.

use std::time::Duration;

/// A set of numbers, sorted. May be empty; then every figure is None.
/// Plain data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample(Vec<f64>);

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }
}

impl FromIterator<Duration> for Sample {
    /// Durations count in milliseconds.
    fn from_iter<I: IntoIterator<Item = Duration>>(values: I) -> Self {
        values.into_iter().map(|value| value.as_secs_f64() * 1e3).collect()
    }
}

impl Sample {
    /// How many numbers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The least.
    #[must_use]
    pub fn min(&self) -> Option<f64> {
        self.0.first().copied()
    }

    /// The greatest.
    #[must_use]
    pub fn max(&self) -> Option<f64> {
        self.0.last().copied()
    }

    /// The arithmetic mean.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a count of measurements")]
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.0.iter().sum::<f64>() / self.len() as f64)
    }

    /// The median: of an even count the mean of the two in the middle.
    #[must_use]
    pub fn median(&self) -> Option<f64> {
        self.percentile(50.0)
    }

    /// The value below which this many percent lie, interpolated between neighbours; percent is brought into 0 to 100.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index within the sample"
    )]
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        let last = self.len().checked_sub(1)?;
        let place = percent.clamp(0.0, 100.0) / 100.0 * last as f64;
        let (below, above) = (self.0[place as usize], self.0[place.ceil() as usize]);
        Some(below + place.fract() * (above - below))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_between_neighbours() {
        let table: [(&[f64], f64, Option<f64>); 7] = [
            (&[], 50.0, None),
            (&[3.0], 99.0, Some(3.0)),
            (&[2.0, 1.0], 50.0, Some(1.5)),
            (&[5.0, 1.0, 3.0], 50.0, Some(3.0)),
            (&[0.0, 10.0], 90.0, Some(9.0)),
            (&[0.0, 10.0], 200.0, Some(10.0)),
            (&[0.0, 10.0], -1.0, Some(0.0)),
        ];
        for (values, percent, expected) in table {
            let sample: Sample = values.iter().copied().collect();
            assert_eq!(sample.percentile(percent), expected, "{values:?} at {percent}");
        }
    }

    #[test]
    fn durations_count_in_milliseconds() {
        let sample: Sample = [Duration::from_millis(30), Duration::from_micros(500)].into_iter().collect();
        assert_eq!((sample.min(), sample.max(), sample.mean()), (Some(0.5), Some(30.0), Some(15.25)));
    }
}
