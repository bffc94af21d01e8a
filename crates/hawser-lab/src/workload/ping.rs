//! A ping: alone, for the latency of an idle network, or beside any other workload.
//!
//! 1. From the start on an echo is asked now and then, until the end. Round trips count from the time on that `after`
//!    says.
//! 2. Beside another workload its figures join the other's.

use std::time::Duration;

use hawser_wire::Moment;
use hawser_wire::traffic::Ping;

use super::beside::Both;
use super::figures::Span;
use super::options::Options;
use super::{Ground, Workload};
use crate::error::LabError;
use crate::experiment::Findings;

/// From one echo to the next: 240 in 12 s, and 0.013 Mbit/s each way.
const INTERVAL: Duration = Duration::from_millis(50);

/// A ping alone. Starts idle; one owner.
pub(super) struct Alone {
    interval: Duration,
    after: Duration,
}

impl Alone {
    pub(super) fn parse(after: Option<Duration>, options: &mut Options) -> Result<Self, LabError> {
        let interval = options.time("interval")?.unwrap_or(INTERVAL);
        Ok(Self { interval, after: after.unwrap_or_default() })
    }
}

impl Workload for Alone {
    fn prepare(&mut self, _ground: &Ground) -> Result<(), LabError> {
        Ok(())
    }

    /// Step 1.
    fn run(&mut self, ground: &Ground, start: Moment) -> Result<Findings, LabError> {
        let mut found = Findings::default();
        let ping = Ping {
            from: ground.client.clone(),
            destination: ground.ends.server,
            interval: self.interval,
            duration: ground.duration,
        };
        start.sleep_until();
        found.put_ping(&ping.run()?, Span { start, duration: ground.duration }, self.after);
        Ok(found)
    }
}

/// The workload with what its option `ping` asks for beside it: true, or an interval.
pub(super) fn beside(
    workload: Box<dyn Workload>,
    after: Option<Duration>,
    options: &mut Options,
) -> Result<Box<dyn Workload>, LabError> {
    let interval = match options.take("ping") {
        None | Some(toml::Value::Boolean(false)) => return Ok(workload),
        Some(toml::Value::Boolean(true)) => INTERVAL,
        Some(value) => options.time_of("ping", &value)?,
    };
    let ping = Alone { interval, after: after.unwrap_or_default() };
    Ok(Box::new(Both { workload, other: Box::new(ping), keep: |found| found }))
}
