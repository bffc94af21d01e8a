//! HyStart++ (RFC 9406): leave slow start when the round trip rises, before the queue overflows.
//!
//! ```text
//!              round trip rose                    5 rounds later
//!  SlowStart ------------------> Conservative ------------------> Done
//!      ^                             |                              ^
//!      +-----------------------------+                              |
//!        round trip fell again         (loss, from either: `stop`) -+
//! ```

use crate::units::{ByteCount, Time};
use std::time::Duration;

/// Least rise of the round trip that counts (RFC 9406 section 4.3, MIN_RTT_THRESH).
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
/// Largest rise that is waited for (RFC 9406 section 4.3, MAX_RTT_THRESH).
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
/// Part of the round trip that counts as a rise (RFC 9406 section 4.3, MIN_RTT_DIVISOR).
const MIN_RTT_DIVISOR: u32 = 8;
/// Samples a round needs (RFC 9406 section 4.3, N_RTT_SAMPLE).
const N_RTT_SAMPLE: u32 = 8;
/// How much slower conservative slow start grows (RFC 9406 section 4.3, CSS_GROWTH_DIVISOR).
const CSS_GROWTH_DIVISOR: u64 = 4;
/// Rounds of conservative slow start (RFC 9406 section 4.3, CSS_ROUNDS).
const CSS_ROUNDS: u32 = 5;

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Phase {
    SlowStart,
    Conservative { rounds: u32, baseline: Duration },
    Done,
}

/// Watches the round trips of one slow start. Starts in plain slow start. Owned by its controller.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    phase: Phase,
    /// The round ends when a packet sent after this is acknowledged.
    round_end: Time,
    last_round_min: Option<Duration>,
    round_min: Option<Duration>,
    samples: u32,
}

impl HyStart {
    pub(super) fn new() -> Self {
        HyStart { phase: Phase::SlowStart, round_end: Time::ZERO, last_round_min: None, round_min: None, samples: 0 }
    }

    /// How much the window grows for `acked` bytes, the newest sent at `sent_at`; zero once slow
    /// start is over. The sender paces, so growth is not limited further (RFC 9406: L is infinite).
    pub(super) fn on_ack(&mut self, now: Time, sent_at: Time, acked: ByteCount, rtt: Option<Duration>) -> ByteCount {
        if sent_at > self.round_end {
            self.start_round(now);
        }
        if let Some(rtt) = rtt {
            self.samples += 1;
            self.round_min = Some(self.round_min.map_or(rtt, |min| min.min(rtt)));
        }
        self.judge();
        match self.phase {
            Phase::SlowStart => acked,
            Phase::Conservative { .. } => ByteCount(acked.0 / CSS_GROWTH_DIVISOR),
            Phase::Done => ByteCount::ZERO,
        }
    }

    /// Slow start is over: by this, or by a loss.
    pub(super) fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// A loss ended slow start.
    pub(super) fn stop(&mut self) {
        self.phase = Phase::Done;
    }

    fn start_round(&mut self, now: Time) {
        self.round_end = now;
        self.last_round_min = self.round_min.take();
        self.samples = 0;
        if let Phase::Conservative { rounds, baseline } = self.phase {
            self.phase = if rounds + 1 >= CSS_ROUNDS {
                Phase::Done
            } else {
                Phase::Conservative { rounds: rounds + 1, baseline }
            };
        }
    }

    fn judge(&mut self) {
        let (Some(current), Some(last)) = (self.round_min, self.last_round_min) else {
            return;
        };
        if self.samples < N_RTT_SAMPLE {
            return;
        }
        match self.phase {
            Phase::SlowStart => {
                let rise = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if current >= last + rise {
                    self.phase = Phase::Conservative { rounds: 0, baseline: current };
                }
            }
            Phase::Conservative { baseline, .. } if current < baseline => {
                self.phase = Phase::SlowStart;
            }
            Phase::Conservative { .. } | Phase::Done => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACKED: ByteCount = ByteCount(4_000);

    /// One round of ten acknowledgements, all with round trip `rtt`, in the round that starts at
    /// `round` seconds; returns the growth of the last.
    fn round(hystart: &mut HyStart, round: u64, rtt: u64) -> ByteCount {
        let now = Time::from_nanos(round * 1_000_000_000);
        let mut grown = ByteCount::ZERO;
        for _ in 0..10 {
            // Sent just after the round began: it ends with the first packet of the next.
            grown = hystart.on_ack(now, now, ACKED, Some(Duration::from_millis(rtt)));
        }
        grown
    }

    #[test]
    fn a_steady_round_trip_keeps_slow_start() {
        let mut hystart = HyStart::new();
        for i in 1..20 {
            assert_eq!(round(&mut hystart, i, 40), ACKED);
        }
    }

    #[test]
    fn a_rise_below_the_threshold_is_jitter() {
        let mut hystart = HyStart::new();
        round(&mut hystart, 1, 40);
        assert_eq!(round(&mut hystart, 2, 44), ACKED, "an eighth of 40 ms is 5 ms");
    }

    #[test]
    fn a_rise_slows_growth_and_five_rounds_end_it() {
        let mut hystart = HyStart::new();
        round(&mut hystart, 1, 40);
        assert_eq!(round(&mut hystart, 2, 46), ByteCount(1_000));
        for i in 3..7 {
            assert_eq!(round(&mut hystart, i, 46), ByteCount(1_000));
            assert!(!hystart.is_done());
        }
        assert_eq!(round(&mut hystart, 7, 46), ByteCount::ZERO);
        assert!(hystart.is_done());
    }

    #[test]
    fn a_fall_resumes_slow_start() {
        let mut hystart = HyStart::new();
        round(&mut hystart, 1, 40);
        round(&mut hystart, 2, 46);
        assert_eq!(round(&mut hystart, 3, 41), ACKED);
    }

    #[test]
    fn a_loss_ends_it_from_either_phase() {
        for rise in [false, true] {
            let mut hystart = HyStart::new();
            round(&mut hystart, 1, 40);
            if rise {
                round(&mut hystart, 2, 46);
            }
            hystart.stop();
            assert!(hystart.is_done());
            assert_eq!(round(&mut hystart, 3, 40), ByteCount::ZERO);
        }
    }
}
