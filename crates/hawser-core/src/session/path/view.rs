//! A path as the policy and the scheduler see it.

use super::Path;
use crate::policy::PathView;
use crate::policy::delay::micros;
use crate::units::Time;
use std::time::Duration;

impl Path {
    /// What is known of it. `usable`: it may carry any packet; `carries`: it may carry some. `scale` puts a path
    /// without one-way samples on the others' scale.
    pub fn view(&mut self, now: Time, usable: bool, carries: bool, scale: i64) -> PathView {
        let half = i64::try_from(self.way.rtt.snapshot().smoothed.as_micros() / 2).unwrap_or(i64::MAX);
        let delay = self.way.oneway.smoothed_us().unwrap_or(half.saturating_add(scale));
        // Probing makes a queue, and a path that nobody uses has none. The queue that the kernel's controller keeps
        // below a stream is no reason to wait for another path: it is there whatever is sent, or the path is idle.
        let least = match (self.transport.is_stream(), self.capacity.probing.is_on()) {
            (true, _) => None,
            (false, true) => self.way.oneway.min_us(now),
            (false, false) => self.way.oneway.floor_us(now),
        };
        // The least is that of the fastest packets, where they overtake each other: half of what the others take is
        // this way's. In a stream none does.
        let spread = if self.transport.is_stream() { Duration::ZERO } else { self.way.rtt.snapshot().spread };
        let floor = least.unwrap_or(delay).min(delay).saturating_add(micros(spread / 2));
        PathView {
            id: self.id,
            weight: self.offer.terms.weight,
            usable,
            delay_us: self.way.oneway.expected_us(now, floor).unwrap_or(delay),
            floor_us: floor,
            jitter_us: self.way.oneway.jitter_us(),
            least_rtt: self.way.rtt.snapshot().min + spread,
            spread,
            rate: self.rate(),
            variation: self.capacity.controller.variation(),
            loss: self.capacity.loss.share(),
            ready_in: if carries { self.ready_in(now) } else { Duration::ZERO },
            probing: self.capacity.probing.is_on(),
            idle_for: self.pauses.total(now),
            last_given: self.activity.last_given,
            known_since: self.capacity.known_since,
        }
    }

    /// The scale of this path's one-way delays: clock offset and half round trip apart.
    pub fn scale(&self) -> Option<i64> {
        let half = i64::try_from(self.way.rtt.snapshot().smoothed.as_micros() / 2).unwrap_or(i64::MAX);
        self.way.oneway.smoothed_us().map(|delay| delay.saturating_sub(half))
    }
}
