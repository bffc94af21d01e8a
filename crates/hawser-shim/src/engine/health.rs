//! Whether a path to a peer works, by what comes back along it.
//!
//! 1. What goes out begins to wait for something to come back ([`Health::sent`], [`Health::heard`]).
//! 2. After a patience of silence a probe goes out, another after half of it, and after half of it again the path is
//!    dead.
//! 3. A dead path is probed every second. One that was silent works again when anything comes back; one that a router
//!    spoke of when a probe is answered, for what comes back otherwise may have been under way before.
//! 4. A path in use is probed every second all the same, for its round trip and its loss.
//! 5. So is one by which datagrams of UDP come, for a while after the last ([`Health::listen`]): who listens alone
//!    sends nothing that could be unanswered, and its peer's silence may be all that there is to hear.

use std::time::Duration;

use hawser_core::units::Time;
use hawser_scion::select::{Health as Measured, Loss};

use super::notice::Reason;

/// Silence after which a path is doubted: this many round trips, and at least so long (less is a delayed
/// acknowledgment, RFC 9293 section 3.8.6.3: up to 500 ms, Linux: 40 ms, and a scheduler's whim).
const PATIENCE_ROUND_TRIPS: u32 = 3;
const LEAST_PATIENCE: Duration = Duration::from_millis(200);
/// The longest silence: a round trip of more is a queue's, and MPTCP sends again elsewhere long before.
const MOST_PATIENCE: Duration = Duration::from_secs(2);
/// How often a dead path, and one in use, is probed.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// How long after the last datagram of UDP a path is listened on.
const LISTENS: Duration = Duration::from_secs(10);
/// Probes that are awaited at a time; an answer to an older one counts as none.
const AWAITED: usize = 4;
/// Weight of the newest round trip, and of the newest probe's fate (RFC 6298 section 2: 1/8).
const WEIGHT: u32 = 8;
/// Loss is counted in this many parts (hawser-scion's `Loss`).
const LOSS_PARTS: u32 = 1000;

/// What a probe bears, and its answer. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Nonce(pub u64);

/// Whether a path to a peer works. Live at first. Its connection owns it.
///
/// ```text
///           sent                    patience over: probe          half of it: probe
///   Quiet -------> Waiting(0 probes) -----------> Waiting(1) -----------------> Waiting(2)
///     ^                |                             |                              | half of it
///     +---- heard -----+------------ heard ----------+------------- heard -----+    |
///     |                                                                             v
///     +-------------------------------- heard ------------------------------- Dead(silent) (probe every second)
///     |
///     +------------------- an answer to a probe that went out since ---------- Dead(said) (probe every second)
///                                                                                 ^
///   any of these: a router says so, or the path is gone --------------------------+
///
///   Quiet, where it is listened on, and nothing was probed for a second: probe ---> Waiting(1 probe)
/// ```
#[derive(Clone, Debug, Default)]
pub(super) struct Health {
    state: State,
    awaited: [Option<(Nonce, Time)>; AWAITED],
    next: usize,
    round_trip: Option<Duration>,
    /// How much it varies (RFC 6298 section 2).
    variation: Duration,
    /// Probes of 1000 that are not answered, smoothed; none before the first.
    loss: Option<u32>,
    /// When a probe went out last.
    probed: Option<Time>,
    /// When something went out last.
    used: Option<Time>,
    /// Until when it is listened on.
    listens: Option<Time>,
}

/// See [`Health`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Quiet,
    Waiting {
        since: Time,
        probes: u8,
    },
    Dead {
        since: Time,
        /// Somebody said so, and not silence.
        said: bool,
    },
}

/// What is to be done. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// A probe with this nonce goes out.
    Probe,
    /// The path is dead from now on.
    Died(Reason),
}

impl Health {
    /// Step 1: something went out.
    pub fn sent(&mut self, now: Time) {
        self.used = Some(now);
        if self.state == State::Quiet {
            self.state = State::Waiting { since: now, probes: 0 };
        }
    }

    /// Step 5: a datagram of UDP came by it.
    pub fn listen(&mut self, now: Time) {
        self.listens = Some(now + LISTENS);
    }

    /// Steps 1 and 3: something came back. Says whether the path was dead and is no more.
    pub fn heard(&mut self) -> bool {
        match self.state {
            State::Dead { said: true, .. } => false,
            before => {
                self.state = State::Quiet;
                matches!(before, State::Dead { .. })
            }
        }
    }

    /// An answer came back. Says whether the path was dead and is no more; none where nobody awaited it.
    pub fn answered(&mut self, now: Time, nonce: Nonce) -> Option<bool> {
        let awaited = self.awaited.iter_mut().find(|one| one.is_some_and(|(awaited, _)| awaited == nonce));
        let (_, sent) = awaited.and_then(Option::take)?;
        self.measure(now.since(sent));
        self.count(0);
        let is_back = matches!(self.state, State::Dead { since, .. } if sent >= since);
        if is_back {
            self.state = State::Quiet;
        }
        Some(is_back || self.heard())
    }

    fn measure(&mut self, newest: Duration) {
        let Some(before) = self.round_trip else {
            (self.round_trip, self.variation) = (Some(newest), newest / 2);
            return;
        };
        self.variation = (self.variation * 3 + before.abs_diff(newest)) / 4;
        self.round_trip = Some((before * (WEIGHT - 1) + newest) / WEIGHT);
    }

    /// A router says that a part of the path is dead, or it is gone. Says whether that was news.
    pub fn kill(&mut self, now: Time) -> bool {
        let was_dead = self.is_dead();
        if !was_dead {
            self.state = State::Dead { since: now, said: true };
        }
        !was_dead
    }

    /// Steps 2 to 5: what is to be done now.
    pub fn due(&mut self, now: Time) -> Option<Due> {
        let patience = self.patience();
        let probed_long_ago = self.probed.is_none_or(|probed| now.since(probed) >= PROBE_INTERVAL);
        match self.state {
            State::Quiet => {
                self.listens = self.listens.filter(|until| now < *until);
                (self.listens.is_some() && probed_long_ago).then(|| {
                    self.state = State::Waiting { since: now, probes: 1 };
                    Due::Probe
                })
            }
            State::Dead { .. } => probed_long_ago.then_some(Due::Probe),
            State::Waiting { since, probes } => {
                let allowed = patience + patience / 2 * u32::from(probes);
                if now.since(since) < allowed {
                    let is_used = self.used.is_some_and(|used| now.since(used) < PROBE_INTERVAL);
                    return (is_used && probed_long_ago && probes == 0).then_some(Due::Probe);
                }
                if probes >= 2 {
                    self.state = State::Dead { since: now, said: false };
                    return Some(Due::Died(Reason::Silence));
                }
                self.state = State::Waiting { since, probes: probes + 1 };
                Some(Due::Probe)
            }
        }
    }

    /// Step 2: a probe goes out.
    pub fn probe(&mut self, now: Time, nonce: Nonce) {
        if self.awaited[self.next].replace((nonce, now)).is_some() {
            self.count(LOSS_PARTS);
        }
        self.next = (self.next + 1) % AWAITED;
        self.probed = Some(now);
    }

    /// Whether it is dead.
    pub const fn is_dead(&self) -> bool {
        matches!(self.state, State::Dead { .. })
    }

    /// Whether time alone may bring something to do.
    pub const fn is_idle(&self) -> bool {
        matches!(self.state, State::Quiet) && self.listens.is_none()
    }

    /// Since when it is dead.
    pub const fn dead_since(&self) -> Option<Time> {
        match self.state {
            State::Dead { since, .. } => Some(since),
            _ => None,
        }
    }

    /// As paths are ranked by it.
    pub fn measured(&self, now: Time) -> Measured {
        Measured {
            loss: self.loss.and_then(|loss| u16::try_from(loss).ok()).map(Loss),
            round_trip: self.round_trip,
            since_failure: self.dead_since().map(|since| now.since(since)),
        }
    }

    fn patience(&self) -> Duration {
        let round_trip = self.round_trip.unwrap_or_default();
        // Where it varies, as long as TCP waits (RFC 6298 section 2.3).
        let patience = (round_trip * PATIENCE_ROUND_TRIPS).max(round_trip + self.variation * 4);
        patience.clamp(LEAST_PATIENCE, MOST_PATIENCE)
    }

    fn count(&mut self, lost: u32) {
        let smooth = |before: u32| (before * (WEIGHT - 1) + lost) / WEIGHT;
        self.loss = Some(self.loss.map_or(lost, smooth));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// Asks every millisecond of a time, and says what was due when.
    fn due_within(health: &mut Health, from: u64, to: u64) -> Vec<(u64, Due)> {
        let mut all = Vec::new();
        for ms in from..=to {
            if let Some(due) = health.due(at(ms)) {
                if due == Due::Probe {
                    health.probe(at(ms), Nonce(ms));
                }
                all.push((ms, due));
            }
        }
        all
    }

    #[test]
    fn silence_is_probed_twice_and_then_the_path_is_dead_and_probed_every_second() {
        let mut health = Health::default();
        assert_eq!(due_within(&mut health, 0, 10), []);
        health.probe(at(0), Nonce(0));
        assert_eq!(health.answered(at(10), Nonce(0)), Some(false));
        health.sent(at(100));
        let died = (500, Due::Died(Reason::Silence));
        assert_eq!(
            due_within(&mut health, 100, 1500),
            [(300, Due::Probe), (400, Due::Probe), died, (1400, Due::Probe)]
        );
        assert!(health.is_dead());
        assert!(health.heard(), "it works again");
        assert_eq!(due_within(&mut health, 1501, 9000), [], "nothing is under way");
    }

    #[test]
    fn whatever_comes_back_ends_the_doubt() {
        for heard in [250, 350, 450] {
            let mut health = Health::default();
            health.probe(at(0), Nonce(0));
            health.sent(at(100));
            due_within(&mut health, 100, heard);
            assert!(!health.heard());
            assert_eq!(due_within(&mut health, heard, 2000), []);
        }
    }

    #[test]
    fn a_long_round_trip_has_more_patience_and_a_path_in_use_is_measured() {
        let mut health = Health::default();
        health.sent(at(0));
        assert_eq!(due_within(&mut health, 0, 0), [(0, Due::Probe)], "in use, and never measured");
        assert_eq!(health.answered(at(100), Nonce(0)), Some(false));
        assert_eq!(health.answered(at(100), Nonce(0)), None, "once");
        health.sent(at(101));
        assert_eq!(due_within(&mut health, 101, 400), [], "three round trips are not over");
        assert_eq!(health.measured(at(400)).round_trip, Some(Duration::from_millis(100)));
        assert_eq!(health.measured(at(400)).loss, Some(Loss(0)));
    }

    #[test]
    fn a_round_trip_that_varies_has_more_patience_too() {
        let mut health = Health::default();
        for (nonce, ms) in (0..20).zip([10, 200].into_iter().cycle()) {
            health.probe(at(1000 * nonce), Nonce(nonce));
            health.answered(at(1000 * nonce + ms), Nonce(nonce));
        }
        assert!(health.patience() > Duration::from_millis(400), "{:?}", health.patience());
    }

    #[test]
    fn a_path_that_is_listened_on_is_probed_for_ten_seconds_more_and_found_dead() {
        let mut health = Health::default();
        health.listen(at(0));
        let mut probes = Vec::new();
        for ms in 0..20_000 {
            for (_, due) in due_within(&mut health, ms, ms) {
                assert_eq!(due, Due::Probe);
                probes.push(ms);
                health.answered(at(ms), Nonce(ms));
            }
        }
        assert_eq!(probes, (0..10).map(|second| second * 1000).collect::<Vec<_>>());
        assert!(health.is_idle());
        health.listen(at(30_000));
        let died = (30_400, Due::Died(Reason::Silence));
        assert_eq!(
            due_within(&mut health, 30_000, 30_500),
            [(30_000, Due::Probe), (30_300, Due::Probe), died],
            "an answer is awaited as for what goes out"
        );
    }

    #[test]
    fn probes_without_answer_are_loss() {
        let mut health = Health::default();
        for nonce in 0..8 {
            health.probe(at(nonce), Nonce(nonce));
        }
        assert_eq!(health.measured(at(9)).loss, Some(Loss(1000)));
        assert_eq!(health.answered(at(9), Nonce(7)), Some(false));
        assert_eq!(health.measured(at(9)).loss, Some(Loss(875)));
    }

    #[test]
    fn what_a_router_says_is_news_once() {
        let mut health = Health::default();
        assert!(health.kill(at(5)) && !health.kill(at(6)));
        assert_eq!(health.dead_since(), Some(at(5)));
        assert_eq!(health.measured(at(8)).since_failure, Some(Duration::from_millis(3)));
        assert!(!health.heard() && health.is_dead(), "that may have been under way");
        health.probe(at(9), Nonce(9));
        assert_eq!(health.answered(at(10), Nonce(9)), Some(true));
        health.probe(at(11), Nonce(11));
        health.kill(at(12));
        assert_eq!(health.answered(at(13), Nonce(11)), Some(false), "it went out before");
        assert!(health.is_dead());
    }
}
