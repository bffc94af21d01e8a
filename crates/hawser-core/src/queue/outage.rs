//! Outages, as a queue sees them: something waits, and for an interval of CoDel's no path takes anything.
//!
//! What came in one waited for the links, and not for what is ahead of it. That is no standing queue (RFC 8289 section
//! 3.1): it leaves as fast as the links carry it, however long the outage was. Its wait says nothing, and CoDel does
//! not judge it; an interval of CoDel's is two round trips and more, so that a slow link has no outage between two
//! packets.
//!
//! A sender whose window is far more than what it has to send, as BBR's is while an application limits it, gives all
//! that its application wrote meanwhile. With CoDel's judgement, thousands of segments went at once, and after some of
//! these outages its stream stood still for seconds: its timeout was made of round trips as long as the outage.

use crate::units::Time;
use std::time::Duration;

/// When paths took something. Nothing at first. One owner, the queue.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Outage {
    /// The last time, or when something began to wait for the next one.
    served: Time,
    /// The first time after the last outage.
    resumed: Time,
}

impl Outage {
    /// Something waits, and nothing did before.
    pub(super) fn on_first(&mut self, now: Time) {
        self.served = now;
    }

    /// A path takes something.
    pub(super) fn on_served(&mut self, now: Time, interval: Duration) {
        if now.since(self.served) > interval {
            self.resumed = now;
        }
        self.served = now;
    }

    /// How long CoDel holds that something has waited which came at `enqueued`.
    pub(super) fn wait(&self, now: Time, enqueued: Time) -> Duration {
        if enqueued < self.resumed { Duration::ZERO } else { now.since(enqueued) }
    }
}
