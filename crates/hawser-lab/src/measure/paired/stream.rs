//! One stream, and what it costs.

use std::time::Duration;

use super::contender::Contest;
use crate::error::LabError;
use crate::measure::bench::Figures;
use crate::measure::cost;
use crate::topology::Flow;

/// What of the stream's start is not counted.
const WARM_UP: Duration = Duration::from_secs(2);
/// What is counted.
const COUNTED: Duration = Duration::from_secs(5);

pub(super) fn measure(contest: &Contest) -> Result<Figures, LabError> {
    let done = cost::stream(&contest.bond, &contest.tunnel.processes(), Flow::Up, WARM_UP, COUNTED)?;
    Ok(Figures::from([
        ("mbps", done.mbps),
        ("cpu_s_per_gb", done.cpu_s_per_gb),
        ("machine_s_per_gb", done.machine_s_per_gb),
        ("others", done.others),
    ]))
}
