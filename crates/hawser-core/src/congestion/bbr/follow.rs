//! On a path whose rate varies the window follows the rate (`Departures::follow`).
//!
//! The draft looks for more rate every two or three seconds. A cellular or satellite link in a car has another rate
//! every second, and what it gained is found when it is gone. Here the path keeps a short queue all the time: what
//! comes out of a queue comes at the link's rate, so that each round trip measures it, and the window is
//!
//! ```text
//! window = rate · (round trip without queue + queue to keep) + a few packets
//! ```
//!
//! which is the law of FAST TCP (Wei, Jin, Low and Hegde, IEEE/ACM Transactions on Networking 14(6), 2006). Where the
//! rate rises the queue empties, and the window grows by the kept queue's share in each round trip; where it falls the
//! window falls with it, before a queue of a second is built. Links that serve their users in turns measure another
//! rate each round trip: the rate is the most of one or two slots of time, and the queue outlasts what round trips
//! deviate by.
//!
//! ```text
//!            delivered changes by more than VARIES from one PERIOD to the next, on the average
//!   DRAFT --------------------------------------------------------------------------> FOLLOWING
//!     ^                                                                                   |
//!     +----- it changes by less than STEADY; or for CROWDED no round trip was short ------+
//! ```
//!
//! The last arrow is for those who share the link: a queue that does not follow our window is not ours, and whoever
//! keeps his own part short beside senders that fill it gets nothing (Arun and Balakrishnan, Copa, NSDI 2018,
//! section 4). The draft's own rules hold there for [`APART`].

use super::model::Sample;
use super::{Bbr, State};
use crate::units::{ByteCount, Rate, Time};
use std::time::Duration;

/// The queue that the path keeps at least. Recorded drives carry 0.72 of their capacity with 10 ms, 0.93 with 20, no
/// more with 40 (one path, open loop); a ping over the path takes as much longer.
const QUEUE: Duration = Duration::from_millis(20);
/// Mean deviations of the round trip that it outlasts: 1 leaves a tenth of a recorded LTE link unused, 4 adds half to
/// its ping.
const QUEUE_DEVIATIONS: u32 = 3;
/// And at most: what a ping may be late by.
const QUEUE_MAX: Duration = Duration::from_millis(100);
/// A queue of less is none: hosts and acknowledgements are late by as much.
const QUEUE_SEEN: Duration = Duration::from_millis(2);
/// A slot of the rate's maximum, and at least a round trip: some turns of a cell that serves others in between.
const SLOT: Duration = Duration::from_millis(100);
/// What was delivered is compared over so long: half of what recordings resolve, and some round trips.
const PERIOD: Duration = Duration::from_millis(500);
/// Periods that the changes are averaged over (a weight of an eighth, as RFC 6298's).
const MEMORY: f64 = 8.0;
/// The mean change (a natural logarithm) from which on a path varies, and below which it is steady. Probing for
/// bandwidth alone changes what is delivered by 0.01 to 0.02.
const VARIES: f64 = 0.04;
/// See `VARIES`.
const STEADY: f64 = 0.025;
/// Changes that must have been seen before anything is said of the path.
const CHANGES: u32 = 8;
/// The most that one change counts.
const MOST: f64 = 1.0;
/// The most that it counts where the window is to follow: a rate that halves once has changed, and does not vary. Above
/// what probing alone changes one of these stays below [`VARIES`] (0.02 · 7/8 + 0.15/8), and a second one does not.
const MOST_ONCE: f64 = 0.15;
/// A path without any short round trip for so long is crowded.
const CROWDED: Duration = Duration::from_secs(3);
/// For so long the draft's rules hold then.
const APART: Duration = Duration::from_secs(10);
/// On top of it, in packets, but not more than as much again: the same for everybody, so that those who share a queue
/// end up with equal rates (FAST's alpha). With 3 three paths in 100 Mbit/s are not equal within half a minute, with 6
/// and 10 they are.
const SHARE_PACKETS: u64 = 8;
/// Part of the product that PROBE_RTT keeps in flight (the draft has half): the kept queue is short, and a round trip
/// empties it.
pub(super) const PROBE_RTT_WINDOW_GAIN: f64 = 0.85;
/// Faster than the window alone would go, so that the pacer is not what bounds the rate.
const PACE: f64 = 1.5;

/// What one path delivered of late. Steady at first; its controller owns it.
#[derive(Clone, Debug, Default)]
pub(super) struct Follow {
    following: bool,
    on: bool,
    slots: Slots,
    variation: f64,
    /// The same, with every change counted as at most [`MOST_ONCE`].
    often: f64,
    changes: u32,
    /// The period at hand: since when, from how many delivered bytes on, and whether the sender was its limit.
    since: Time,
    from: ByteCount,
    limited: bool,
    /// Its queue was empty at a moment.
    emptied: bool,
    /// What the last period delivered.
    before: Rate,
    /// When a round trip was last short, and until when the draft's rules hold.
    short_at: Time,
    apart_until: Time,
    /// What acknowledgements wait for on their way, smoothed (RFC 6298 section 2).
    back: Duration,
}

/// The most of the slot at hand and of the last that had any.
#[derive(Clone, Debug, Default)]
struct Slots {
    current: Rate,
    previous: Rate,
    since: Time,
}

impl Slots {
    fn get(&self) -> Rate {
        self.current.max(self.previous)
    }

    /// `lasts`: how long a slot is. A sender that is `limited` raises the rate, and says nothing else.
    fn add(&mut self, now: Time, rate: Rate, limited: bool, lasts: Duration) {
        if now.since(self.since) > lasts {
            if self.current > Rate::ZERO {
                self.previous = std::mem::take(&mut self.current);
            }
            self.since = now;
        }
        if !limited || rate > self.get() {
            self.current = self.current.max(rate);
        }
    }
}

impl Follow {
    /// How much what is delivered changes from one half second to the next, on the average: a natural logarithm. `None`
    /// while that is not known.
    pub(super) fn variation(&self) -> Option<f64> {
        (self.changes >= CHANGES).then_some(self.variation)
    }

    /// A period may have ended, on the peer's clock, since acknowledgements that wait on their way vary by themselves:
    /// what it delivered is held against the one before.
    fn add(&mut self, now: Time, delivered: ByteCount, queue: Duration, limited: bool) {
        self.limited |= limited;
        self.emptied |= queue < QUEUE_SEEN;
        let elapsed = now.since(self.since);
        if elapsed < PERIOD {
            return;
        }
        let rate = Rate::of(delivered - self.from, elapsed);
        // A period that lasts is one in which nothing was acknowledged for a while: a pause says nothing of the rate.
        if !self.limited && elapsed < PERIOD * 2 && rate > Rate::ZERO {
            self.changes = self.changes.saturating_add(u32::from(self.before > Rate::ZERO));
            self.compare(rate);
        }
        (self.since, self.from, self.limited, self.emptied) = (now, delivered, false, false);
    }

    /// The period delivered at this rate, and its sender could have sent more. Less than before while the queue was
    /// empty is what was sent, and no change of the link.
    fn compare(&mut self, rate: Rate) {
        if self.emptied && rate < self.before {
            return;
        }
        if self.before > Rate::ZERO {
            let change = (rate.0 as f64 / self.before.0 as f64).ln().abs().min(MOST);
            self.variation += (change - self.variation) / MEMORY;
            self.often += (change.min(MOST_ONCE) - self.often) / MEMORY;
        }
        self.before = rate;
    }

    /// Whether the window followed the rate when that was last asked.
    pub(super) fn was_on(&self) -> bool {
        self.on
    }

    /// Whether the path varies, and its queue is ours.
    fn is_on(&mut self, now: Time) -> bool {
        self.following = self.often > if self.following { STEADY } else { VARIES };
        if now.since(self.short_at) > CROWDED {
            (self.apart_until, self.short_at) = (now + APART, now);
        }
        self.on = self.following && now >= self.apart_until;
        self.on
    }
}

impl Bbr {
    /// Replaces rate, window and pace by those that follow, where the path varies.
    pub(super) fn follow_rate(&mut self, sample: &Sample) {
        let Some(least) = self.min_rtt.get().filter(|_| self.full.reached && sample.rate > Rate::ZERO) else { return };
        let base = least + self.spread;
        let kept = (self.delay.deviation() * QUEUE_DEVIATIONS).clamp(QUEUE, QUEUE_MAX);
        let queue = sample.rtt.unwrap_or(sample.smoothed_rtt).saturating_sub(base);
        // A queue of our own shows the link's rate, whoever limits the sender.
        let limited = sample.limited && queue < QUEUE / 2;
        self.follow.add(sample.received_at, sample.total_delivered, queue, limited);
        self.follow.back = (self.follow.back * 7 + sample.back) / 8;
        self.follow.slots.add(sample.now, sample.rate, limited, SLOT.max(base));
        let rate = self.follow.slots.get();
        // What must be under way in any case makes a queue by itself where the path is thin.
        if queue <= (kept + rate.time_for(self.min_window())) * 2 {
            self.follow.short_at = sample.now;
        }
        if self.departures.follow && self.follow.is_on(sample.now) {
            self.bw = rate;
            if self.state == State::ProbeRtt {
                self.window = self.window.min(self.probe_rtt_window());
                return;
            }
            let share = ByteCount(self.mtu.0 * SHARE_PACKETS).min(rate.bytes_in(kept));
            let window = self.quantized(rate.bytes_in(base + kept + self.follow.back) + share);
            self.window = window.min(self.inflight_short).max(self.min_window());
            self.pacing = rate.scale(PACE).max(Rate::of(self.window, base));
        }
    }
}
