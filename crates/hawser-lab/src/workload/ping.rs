//! A ping: alone, for the latency of an idle network, or beside any other workload.
//!
//! From the start on an echo is asked now and then, until the end. Round trips count from the time on that `after`
//! says.

use std::time::Duration;

use hawser_wire::traffic;
use toml::Value;

use super::{Findings, Ground, LabError, Moment, Options, Span, Workload};

/// From one echo to the next: 240 in 12 s, and 0.013 Mbit/s each way.
const INTERVAL: Duration = Duration::from_millis(50);

/// A ping. Starts idle; one owner.
pub(super) struct Ping {
    interval: Duration,
    after: Duration,
}

impl Ping {
    pub(super) fn parse(after: Option<Duration>, options: &mut Options) -> Result<Self, LabError> {
        let interval = options.time("interval")?.unwrap_or(INTERVAL);
        Ok(Self { interval, after: after.unwrap_or_default() })
    }

    /// What another workload's option `ping` asks for: true, or an interval.
    pub(super) fn beside(after: Option<Duration>, options: &mut Options) -> Result<Option<Self>, LabError> {
        let interval = match options.take("ping") {
            None | Some(Value::Boolean(false)) => return Ok(None),
            Some(Value::Boolean(true)) => INTERVAL,
            Some(value) => options.time_of("ping", &value)?,
        };
        Ok(Some(Self { interval, after: after.unwrap_or_default() }))
    }
}

impl Workload for Ping {
    fn run(&mut self, ground: &Ground, start: Moment) -> Result<Findings, LabError> {
        let (from, destination, duration) = (ground.client.clone(), ground.ends.server, ground.duration);
        let ping = traffic::Ping { from, destination, interval: self.interval, duration };
        let mut found = Findings::default();
        start.sleep_until();
        found.put_ping(&ping.run()?, Span { start, duration }, self.after);
        Ok(found)
    }
}
