//! What a round trip takes while nothing else goes on.

use std::time::Duration;

use super::contender::Contest;
use crate::error::LabError;
use crate::measure::bench::Figures;

/// From one request to the next: seldom enough that everyone sleeps meanwhile.
const INTERVAL: Duration = Duration::from_millis(5);
/// How long: 800 round trips, of which the 99th percentile leaves out eight.
const COUNTED: Duration = Duration::from_secs(4);
/// Microseconds in a millisecond.
const US: f64 = 1e3;

pub(super) fn measure(contest: &Contest) -> Result<Figures, LabError> {
    let times = contest.bond.ping(INTERVAL, COUNTED).run()?.round_trips();
    let at = |percent| {
        let no_answer = || LabError::NoFigure { figure: "p50_us", reason: "no ping was answered".to_owned() };
        times.percentile(percent).map(|ms| ms * US).ok_or_else(no_answer)
    };
    Ok(Figures::from([("p50_us", at(50.0)?), ("p99_us", at(99.0)?)]))
}
