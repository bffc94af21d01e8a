//! Whether something grows: the slope of a line through medians, with its 95 % interval.
//!
//! Samples that follow one another are not independent. So each span of five minutes gives one figure, its median; the
//! line is the one of least squares through these, and the interval Student's.

/// Seconds that give one figure.
const SPAN_S: f64 = 300.0;

/// A slope for each hour, with its interval. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Slope {
    pub per_hour: f64,
    pub from: f64,
    pub to: f64,
    pub points: usize,
}

/// Of (seconds, value); none for fewer than three spans.
pub fn slope(samples: &[(f64, f64)]) -> Option<Slope> {
    let start = samples.first()?.0;
    let mut spans: Vec<Vec<(f64, f64)>> = Vec::new();
    for &(second, value) in samples {
        let span = ((second - start) / SPAN_S) as usize;
        spans.resize_with(spans.len().max(span + 1), Vec::new);
        spans[span].push((second / 3_600.0, value));
    }
    let points: Vec<(f64, f64)> = spans.iter().filter(|span| !span.is_empty()).map(|span| middle(span)).collect();
    let count = points.len() as f64;
    let freedom = points.len().checked_sub(2).filter(|freedom| *freedom > 0)?;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let per_hour = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>() / spread;
    let rest: f64 = points.iter().map(|point| (point.1 - y - per_hour * (point.0 - x)).powi(2)).sum();
    let half = student(freedom) * (rest / freedom as f64 / spread).sqrt();
    Some(Slope { per_hour, from: per_hour - half, to: per_hour + half, points: points.len() })
}

fn middle(span: &[(f64, f64)]) -> (f64, f64) {
    let median = |of: fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = span.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    (median(|point| point.0), median(|point| point.1))
}

/// The 97.5 % quantile of Student's distribution. Source: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2.
fn student(freedom: usize) -> f64 {
    const QUANTILES: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    QUANTILES[freedom.min(QUANTILES.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_slope_and_noise_an_interval_with_zero() {
        let line: Vec<_> = (0..3_600).map(|s| (f64::from(s), f64::from(s) / 60.0)).collect();
        let found = slope(&line).expect("twelve spans");
        assert!((found.per_hour - 60.0).abs() < 0.01 && found.from > 59.0, "{found:?}");
        let noise: Vec<_> = (0..3_600).map(|s| (f64::from(s), f64::from(s * 7_919 % 101))).collect();
        let found = slope(&noise).expect("twelve spans");
        assert!(found.from < 0.0 && found.to > 0.0, "{found:?}");
    }
}
