//! Axes: from figures to places, and the round figures that stand beside them.

use super::super::statistics::number;

/// Ticks are about this many.
const TICKS: f64 = 6.0;
/// What is rounding.
pub(super) const ROUNDING: f64 = 1e-6;

/// From figures to places. Plain data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub low: f64,
    pub high: f64,
    pub start: f64,
    pub end: f64,
}

impl Scale {
    pub(super) fn at(&self, value: f64) -> f64 {
        let span = if self.high > self.low { self.high - self.low } else { 1.0 };
        self.start + (value - self.low) / span * (self.end - self.start)
    }
}

/// What stands at an axis. Plain data.
#[derive(Default)]
pub(super) struct Axis {
    pub low: f64,
    pub high: f64,
    /// Figures with their text.
    pub ticks: Vec<(f64, String)>,
    pub title: String,
}

impl Axis {
    /// From and to, widened to round figures, and the round figures between.
    pub(super) fn nice(low: f64, high: f64, title: impl Into<String>) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        let rough = (high - low) / TICKS;
        let size = 10_f64.powf(rough.log10().floor());
        let step = size * [1.0, 2.0, 5.0, 10.0].into_iter().find(|nice| nice * size >= rough * 0.999).unwrap_or(10.0);
        let (first, last) = ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil());
        let decimals = (0..9).find(|&places| is_round(step * 10_f64.powi(places))).unwrap_or(9) as usize;
        let count = (last - first).round() as usize;
        let ticks = (0..=count).map(|place| (first + place as f64) * step).map(|tick| (tick, number(tick, decimals)));
        Self { low: first * step, high: last * step, ticks: ticks.collect(), title: title.into() }
    }

    /// Of seconds, which ends with what is drawn.
    pub(super) fn seconds(end: f64) -> Self {
        let mut axis = Self { high: end, ..Self::nice(0.0, end, "Time (s)") };
        axis.ticks.retain(|(at, _)| *at <= end + ROUNDING);
        axis
    }
}

fn is_round(value: f64) -> bool {
    (value - value.round()).abs() < ROUNDING
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_around_what_is_drawn() {
        // low, high; the ticks' texts
        let rows: [(f64, f64, &[&str]); 7] = [
            (0.0, 97.3, &["0", "20", "40", "60", "80", "100"]),
            (0.0, 1.0, &["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
            (0.0, 12.0, &["0", "2", "4", "6", "8", "10", "12"]),
            (-3.0, 7.0, &["−4", "−2", "0", "2", "4", "6", "8"]),
            (0.0, 0.004, &["0.000", "0.001", "0.002", "0.003", "0.004"]),
            (0.0, 0.0, &["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
            (0.0, 43_000.0, &["0", "10000", "20000", "30000", "40000", "50000"]),
        ];
        for (low, high, expected) in rows {
            let axis = Axis::nice(low, high, "");
            assert!(axis.low <= low && axis.high >= high, "{} to {}", axis.low, axis.high);
            assert_eq!(axis.ticks.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_scale_of_one_figure_is_still_a_scale() {
        let scale = Scale { low: 5.0, high: 5.0, start: 10.0, end: 20.0 };
        assert!(scale.at(5.0).is_finite());
        assert_eq!(Scale { low: 0.0, high: 10.0, ..scale }.at(2.5), 12.5);
    }
}
