//! RACK (RFC 8985): a segment is lost when one sent later arrived, and that is longer ago than order may be disturbed.

use super::rtt::Rtt;
use super::scoreboard::{Piece, Scan, Scoreboard};
use hawser_core::units::Time;
use std::time::Duration;

/// Without reordering seen, this number of segments above a hole is a loss (RFC 5681's three).
const DUPLICATES: u32 = 3;
/// The largest number of quarters of a round trip to wait (Linux's `0xff`).
const STEPS_MAX: u32 = 255;
/// A window that was widened is kept for this number of recoveries (RFC 8985 section 6.2, step 4).
const PERSIST: u32 = 16;

/// RACK's state. Knows nothing at first; its sender owns it.
#[derive(Clone, Debug, Default)]
pub struct Rack {
    /// When the newest that was delivered had been sent, and its end.
    newest: (Time, u64),
    /// Its round trip.
    rtt: Duration,
    /// It became newer since the last look.
    advanced: bool,
    /// By how many segments one was overtaken, the most so far; zero: none was.
    overtaken: u64,
    /// Something was received twice in this round trip, after order had been disturbed.
    duplicate_seen: bool,
    /// Quarters of a round trip to wait beyond the first.
    steps: u32,
    /// The number of recoveries that it is kept for.
    persist: u32,
    adjusted_at: u64,
}

impl Rack {
    /// A piece was delivered (RFC 8985 section 6.2, steps 1 and 2).
    pub fn advance(&mut self, now: Time, piece: &Piece, least: Option<Duration>) {
        let rtt = now.since(piece.sent);
        if piece.again && least.is_some_and(|least| rtt < least) {
            // What was acknowledged is the first transmission.
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        self.newest = self.newest.max((piece.sent, piece.end));
    }

    /// A segment was overtaken by this number of others.
    pub fn on_reordering(&mut self, by: u64) {
        self.overtaken = self.overtaken.max(by);
    }

    /// Something was received twice, and not because it was sent to probe.
    pub fn on_duplicate(&mut self) {
        self.duplicate_seen |= self.overtaken > 0;
    }

    /// Order is disturbed by more than three segments: selective progress counts as much as any.
    pub fn reorders_much(&self) -> bool {
        self.overtaken > u64::from(DUPLICATES)
    }

    /// Something changed that makes another look worth while.
    pub fn look_again(&mut self) {
        self.advanced = true;
    }

    /// How long to wait for what may have been overtaken (step 4). `recovering`: a loss is known already.
    pub fn window(&self, recovering: bool, sacked: u32, rtt: &Rtt) -> Duration {
        if self.overtaken == 0 && (recovering || sacked >= DUPLICATES) {
            return Duration::ZERO;
        }
        let quarter = rtt.least.unwrap_or_default() / 4;
        let most = rtt.smoothed.unwrap_or_default();
        (quarter * (self.steps + 1)).min(most)
    }

    /// Step 4: duplicates widen the window by a quarter of a round trip, once each round trip.
    pub fn adapt(&mut self, prior_delivered: u64, delivered: u64) {
        if prior_delivered < self.adjusted_at {
            self.duplicate_seen = false;
        }
        if self.duplicate_seen {
            self.steps = (self.steps + 1).min(STEPS_MAX);
            (self.duplicate_seen, self.adjusted_at, self.persist) = (false, delivered, PERSIST);
        } else if self.persist == 0 {
            self.steps = 0;
        }
    }

    /// Something was repaired in vain: the window stays for longer.
    pub fn hold(&mut self) {
        self.persist = (self.persist + 1).min(PERSIST);
    }

    /// A recovery ended.
    pub fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }

    /// Step 5, if there is news. Gives how many are newly lost, and how long to wait for the others.
    pub fn detect(&mut self, now: Time, board: &mut Scoreboard, window: Duration) -> (u32, Option<Duration>) {
        if !std::mem::take(&mut self.advanced) {
            return (0, None);
        }
        self.detect_now(now, board, window)
    }

    /// Step 5.
    pub fn detect_now(&self, now: Time, board: &mut Scoreboard, window: Duration) -> (u32, Option<Duration>) {
        let mut wait = None;
        let lost = board.scan(|piece| {
            if (piece.sent, piece.end) >= self.newest {
                return Scan::Enough;
            }
            let deadline = piece.sent + self.rtt + window;
            if deadline <= now {
                return Scan::Lost;
            }
            wait = wait.max(Some(deadline.since(now)));
            Scan::Keep
        });
        (lost, wait)
    }

    /// Whether a piece may still arrive in its time, when a timeout has passed.
    pub fn may_arrive(&self, now: Time, piece: &Piece, window: Duration) -> bool {
        piece.sent + self.rtt + window > now
    }
}
