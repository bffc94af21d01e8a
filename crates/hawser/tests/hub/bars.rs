//! What harm may cost, and which of it is none: what each case is held to.

use crate::cases::{MANY, Run};
use crate::traffic::{Noticed, Seen};

/// What the harm may cost; and where a second silence is waited for, as two members are dead.
pub const GAP_MAX_MS: u64 = 400;
pub const BOTH_GAP_MAX_MS: u64 = 500;
/// The least retransmission timeout of Linux's TCP (its TCP_RTO_MIN).
const RTO_MIN_MS: f64 = 200.0;
/// What a planned move may cost beyond what the same traffic costs by itself.
const CALM_MAX_MS: f64 = 20.0;
/// The same for the longest wait of 20 calls, of which each has its own: by itself that was 83 ms at most in 90 runs
/// (docs/results/hub-processes*.json, `none`).
const CALM_CALL_MAX_MS: f64 = 83.0 + CALM_MAX_MS;
/// How long a stream's packets wait at most where packets move by plan: until what the old owner has has come
/// (hawser-core, `policy::BESIDE`). In the simulator it is 260 ms in the median of 60 drains of such homes.
const BULK_WAITS_MS: f64 = 1000.0;
/// Packets for each ms of a gap, of a call with one each 20 ms; and those before and after it that are lost beside.
const DATAGRAMS_PER_MS: f64 = 1.0 / 20.0;
const BESIDE: f64 = 3.0;

/// How long one TCP connection may stand where packets wait for as long as this: a retransmission timer that expires
/// meanwhile doubles (RFC 6298, section 5.5), and so ends after twice the time, or the least timeout more.
fn tcp_max_ms(gap_max_ms: f64) -> f64 {
    2.0 * gap_max_ms + RTO_MIN_MS
}

/// Whether pings, calls and all streams together waited no longer than this, and who has one connection no longer than
/// follows from it.
pub fn is_short(noticed: &Noticed, gap_max_ms: u64) -> bool {
    let max = gap_max_ms as f64;
    let pings = noticed.pings().map(|ping| ping.gap_ms);
    let others = [noticed.call_gap_up_ms, noticed.call_gap_down_ms, noticed.streams_stood_ms];
    let single = [noticed.download_stood_ms, noticed.answered_after_ms];
    pings.into_iter().chain(others).all(|gap| gap <= max) && single.iter().all(|stood| *stood <= tcp_max_ms(max))
}

/// Whether nothing is lost.
pub fn is_whole(noticed: &Noticed) -> bool {
    (noticed.lost_up, noticed.lost_down) == (0, 0) && noticed.pings().iter().all(|ping| ping.pings_lost == 0)
}

/// Who was with a harmed member moved, and nobody else did.
pub fn assert_followed(runs: &[Run]) {
    for run in runs {
        let moved = |home: &usize| (run.before[*home] != run.after[*home]) == run.is_hit(*home);
        assert!([0, 1].iter().all(moved), "who had to move did: {run:?}");
    }
}

/// The same, and nobody noticed more than this.
pub fn assert_moved(runs: &[Run], gap_max_ms: u64) {
    assert_followed(runs);
    let is_short = |noticed: &Noticed| is_short(noticed, gap_max_ms);
    runs.iter().for_each(|run| assert!(run.seen.both().into_iter().all(is_short), "{run:?}"));
}

/// Nobody moved.
pub fn assert_stayed(runs: &[Run]) {
    runs.iter().for_each(|run| assert_eq!(run.before, run.after, "there was no need to move: {run:?}"));
}

/// What goes out is lost nowhere; what comes back, for no longer than the gap, which is bounded by [`assert_moved`].
pub fn assert_losses(runs: &[Run]) {
    for (noticed, many) in runs.iter().flat_map(|run| run.seen.both().into_iter().zip(MANY)) {
        assert_eq!(noticed.lost_up, 0, "{noticed:?}");
        let each = noticed.call_gap_down_ms.max(noticed.ipv4.gap_ms) * DATAGRAMS_PER_MS + BESIDE;
        assert!(noticed.lost_down as f64 <= each * many.calls as f64, "{noticed:?}");
    }
}

/// Nothing is lost, nobody waits for much longer than with nothing done, and the download goes on after what it may wait.
pub fn assert_unnoticed(seen: &Seen) {
    for noticed in seen.both() {
        assert!(is_whole(noticed), "{seen:?}");
        let is_usual = noticed.pings().iter().all(|ping| ping.gap_ms <= ping.gap_before_ms + CALM_MAX_MS);
        assert!(is_usual, "{seen:?}");
        assert!(noticed.call_gap_up_ms.max(noticed.call_gap_down_ms) <= CALM_CALL_MAX_MS, "{seen:?}");
        assert!(noticed.download_stood_ms <= tcp_max_ms(BULK_WAITS_MS), "{seen:?}");
    }
}
