//! Any workload without its first seconds, beside its figures of all of them.
//!
//! 1. Goodput from the time on that the option `after` says, of both directions and of each where both are busy.
//! 2. The least that five seconds of it had.

use std::time::Duration;

use hawser_wire::Moment;

use super::options::Options;
use super::{Ground, Workload};
use crate::error::LabError;
use crate::experiment::Findings;

/// Lines, and what their later parts are called.
const LATER: [(&str, &str); 3] =
    [("goodput_mbps", "later_mbps"), ("goodput_up_mbps", "later_up_mbps"), ("goodput_down_mbps", "later_down_mbps")];
/// What `least_stretch_mbps` is of: longer than an inner stream waits for one retransmission.
const STRETCH: Duration = Duration::from_secs(5);

/// A workload of which later figures are told. Starts idle; one owner.
pub(super) struct Later {
    workload: Box<dyn Workload>,
    after: Duration,
}

/// What the option says.
pub(super) fn after(options: &mut Options) -> Result<Option<Duration>, LabError> {
    options.time("after")
}

impl Later {
    /// The workload, with what its option `after` asks for.
    pub(super) fn around(workload: Box<dyn Workload>, after: Option<Duration>) -> Box<dyn Workload> {
        match after {
            None => workload,
            Some(after) => Box::new(Self { workload, after }),
        }
    }
}

impl Workload for Later {
    fn prepare(&mut self, ground: &Ground) -> Result<(), LabError> {
        self.workload.prepare(ground)
    }

    fn run(&mut self, ground: &Ground, start: Moment) -> Result<Findings, LabError> {
        let mut found = self.workload.run(ground, start)?;
        put_later(&mut found, self.after);
        Ok(found)
    }
}

/// Steps 1 and 2.
#[expect(clippy::cast_precision_loss, reason = "steps of one run")]
fn put_later(found: &mut Findings, after: Duration) {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let mut later = Vec::new();
    for line in found.lines.iter().filter(|line| line.link.is_none()) {
        let Some((name, told)) = LATER.iter().find(|(name, _)| *name == line.name) else { continue };
        let values = line.from(after);
        if !values.is_empty() {
            later.push(((*told).to_owned(), mean(values)));
        }
        let steps = (1..).take_while(|&steps| line.step_s * f64::from(steps) <= STRETCH.as_secs_f64()).count();
        let stretches = values.chunks_exact(steps.max(1)).map(mean).reduce(f64::min);
        let stretch = stretches.filter(|_| *name == LATER[0].0);
        later.extend(stretch.map(|least| ("least_stretch_mbps".to_owned(), least)));
    }
    found.metrics.extend(later);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Line;

    #[test]
    fn what_comes_later_is_the_mean_from_there_on_and_its_worst_five_seconds() {
        // 2 s without anything, 5 s of 10, 5 s of 4, a second more.
        let values = [(0.0, 4), (10.0, 10), (4.0, 10), (1.0, 2)];
        let values = values.iter().flat_map(|&(rate, steps)| std::iter::repeat_n(rate, steps)).collect();
        let line = Line { name: "goodput_mbps".to_owned(), link: None, step_s: 0.5, values };
        let up = Line { name: "goodput_up_mbps".to_owned(), ..line.clone() };
        let of_link = Line { link: Some("wifi".to_owned()), values: vec![99.0; 30], ..line.clone() };
        let mut found = Findings { lines: vec![line, up, of_link], ..Findings::default() };
        put_later(&mut found, Duration::from_secs(2));
        let mean = (100.0 + 40.0 + 2.0) / 22.0;
        assert!((found.metrics["later_mbps"] - mean).abs() < 1e-9, "{found:?}");
        assert!((found.metrics["later_up_mbps"] - mean).abs() < 1e-9, "{found:?}");
        assert!((found.metrics["least_stretch_mbps"] - 4.0).abs() < 1e-9, "{found:?}");
        assert!(!found.metrics.contains_key("later_down_mbps"));
        let mut short = Findings { lines: vec![], ..found };
        short.metrics.clear();
        put_later(&mut short, Duration::from_secs(2));
        assert!(short.metrics.is_empty());
    }
}
