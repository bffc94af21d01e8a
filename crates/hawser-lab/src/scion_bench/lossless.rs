//! The highest rate at which next to nothing is lost. Source: RFC 2544 section 26.1, "Throughput".
//!
//! 1. Sent as fast as it goes: what arrives then is more than can be without loss, unless nothing was lost.
//! 2. Between that and nothing, halves: a rate that loses too much bounds it from above, another from below.

use super::figures::Counts;
use crate::error::LabError;

/// Halves taken: the rate is found to within a 64th of what arrives at full speed.
const HALVES: u32 = 6;

/// The rate, in packets a second, by trials at rates (`None` is as fast as it goes). At most `most` percent are lost.
pub(super) fn fastest(
    most: f64,
    mut trial: impl FnMut(Option<f64>) -> Result<Counts, LabError>,
) -> Result<f64, LabError> {
    let full = trial(None)?;
    if full.loss_percent() <= most {
        return Ok(full.received.rate());
    }
    let (mut good, mut bad) = (0.0, full.received.rate());
    for _ in 0..HALVES {
        let rate = f64::midpoint(good, bad);
        if trial(Some(rate))?.loss_percent() <= most {
            good = rate;
        } else {
            bad = rate;
        }
    }
    if good == 0.0 {
        let reason = format!("even {bad:.0} packets a second lose more than {most} %");
        return Err(LabError::NoFigure { figure: "rate without loss", reason });
    }
    Ok(good)
}

#[cfg(test)]
mod tests {
    use super::super::figures::Count;
    use super::*;

    /// What carries `lossless` packets a second, and of more than that loses an eighth.
    fn carrier(lossless: u64, limit: u64) -> impl FnMut(Option<f64>) -> Result<Counts, LabError> {
        move |rate| {
            let sent = rate.map_or(limit, |rate| rate as u64);
            let received = if sent > lossless { sent - sent / 8 } else { sent };
            let count = |packets| Count { packets, seconds: 1.0, ..Count::default() };
            Ok(Counts { sent: count(sent), received: count(received), ..Counts::default() })
        }
    }

    #[test]
    fn what_loses_nothing_at_full_speed_needs_no_search() {
        assert_eq!(fastest(0.1, carrier(100_000, 90_000)).expect("a rate"), 90_000.0);
    }

    #[test]
    fn the_rate_is_found_from_below_to_within_a_64th() {
        for lossless in [10_000, 34_000, 60_000] {
            let found = fastest(0.1, carrier(lossless, 80_000)).expect("a rate");
            let most = f64::from(u32::try_from(lossless).expect("small"));
            assert!(found <= most && found > most - 70_000.0 / 64.0 - 1.0, "{found} of {most}");
        }
    }

    #[test]
    fn what_always_loses_has_none() {
        let error = fastest(0.1, carrier(0, 80_000)).expect_err("there is none").to_string();
        assert!(error.contains("packets a second lose more than 0.1 %"), "{error}");
    }
}
