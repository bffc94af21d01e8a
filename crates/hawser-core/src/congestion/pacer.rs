//! When the next packet may go: a leaky bucket of sending credit.
//!
//! Credit grows at the pacing rate, to at most one burst (two packets, or 1 ms at the rate): what an
//! idle sender did not use is gone. A sender that *waited* for its time and was woken late keeps
//! what it missed, up to a timer's slack, so that coarse timers do not lower the rate.

use crate::units::{ByteCount, Rate, Time};
use std::time::Duration;

/// Packets of a burst at low rates (draft-ietf-ccwg-bbr section 5.6.3, C.send_quantum; RFC 9002 section 7.7 bounds
/// bursts too).
const BURST_PACKETS: u64 = 2;
/// Time of a burst at high rates (the same).
const BURST_TIME: Duration = Duration::from_millis(1);
/// How late a timer may wake the sender without loss of rate: a tick of the timer and the scheduler.
const TIMER_SLACK: Duration = Duration::from_millis(1);
/// Faster than window per round trip, so that pacing does not hold back the first window
/// (RFC 9002 section 7.7).
const INITIAL_GAIN: f64 = 1.25;
/// The least round trip that the initial rate is computed for: below it pacing has no effect.
const LEAST_RTT: Duration = Duration::from_micros(100);

/// The rate to pace at before the controller knows one: `window` in a round trip, times 1.25.
pub fn initial_rate(window: ByteCount, rtt: Duration) -> Rate {
    Rate::of(window, rtt.max(LEAST_RTT)).scale(INITIAL_GAIN)
}

/// A path's pacer. Starts with a burst of credit and no rate, which means unpaced. One path owns it.
#[derive(Clone, Debug)]
pub struct Pacer {
    rate: Rate,
    mtu: ByteCount,
    /// Bytes that may go at `updated_at`; negative after a train larger than the credit.
    credit: f64,
    updated_at: Time,
    /// The time that a waiting sender was told.
    promised: Option<Time>,
}

impl Pacer {
    /// For datagrams of at most `mtu` bytes.
    pub fn new(mtu: ByteCount) -> Self {
        Pacer { rate: Rate::ZERO, mtu, credit: (mtu.0 * BURST_PACKETS) as f64, updated_at: Time::ZERO, promised: None }
    }

    /// The largest datagram changed.
    pub fn set_mtu(&mut self, mtu: ByteCount) {
        self.mtu = mtu;
    }

    /// Credit grows at `rate` from the last send on; `Rate::ZERO` stops pacing.
    pub fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }

    /// Whether nothing is paced.
    pub fn is_off(&self) -> bool {
        self.rate == Rate::ZERO
    }

    /// The most that may go at once, in bytes.
    pub fn burst(&self) -> ByteCount {
        ByteCount(self.mtu.0 * BURST_PACKETS).max(self.rate.bytes_in(BURST_TIME))
    }

    /// When `next_bytes` may go: `now` if at once. More than a burst goes when a burst is due, and
    /// is waited for afterwards.
    pub fn ready_at(&mut self, now: Time, next_bytes: ByteCount) -> Time {
        if self.rate == Rate::ZERO {
            return now;
        }
        self.refill(now);
        let need = next_bytes.min(self.burst()).0 as f64;
        if self.credit >= need {
            return now;
        }
        let nanos = (need - self.credit) * 1e9 / self.rate.0 as f64;
        let ready = now + Duration::from_nanos(nanos.ceil() as u64);
        self.promised = Some(ready);
        ready
    }

    /// `bytes` went out now.
    pub fn on_sent(&mut self, now: Time, bytes: ByteCount) {
        self.refill(now);
        self.promised = None;
        if self.rate != Rate::ZERO {
            self.credit -= bytes.0 as f64;
        }
    }

    fn refill(&mut self, now: Time) {
        let elapsed = now.since(self.updated_at);
        if elapsed == Duration::ZERO {
            return;
        }
        let late = self.promised.map_or(Duration::ZERO, |promised| now.since(promised)).min(TIMER_SLACK);
        let most = (self.burst() + self.rate.bytes_in(late)).0 as f64;
        let grown = self.credit + self.rate.0 as f64 * elapsed.as_secs_f64();
        self.credit = grown.min(most);
        self.updated_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MTU: ByteCount = ByteCount(1_250);
    const START: Time = Time::from_nanos(1_000_000_000);

    /// Sends as much as the pacer allows at `now`, and returns the bytes and the next time.
    fn drain(pacer: &mut Pacer, now: Time) -> (u64, Time) {
        let mut sent = 0;
        loop {
            let ready = pacer.ready_at(now, MTU);
            if ready > now {
                return (sent, ready);
            }
            pacer.on_sent(now, MTU);
            sent += MTU.0;
        }
    }

    fn run(rate: Rate, seconds: u64, slack: impl Fn(u64) -> Duration) -> u64 {
        let mut pacer = Pacer::new(MTU);
        pacer.set_rate(rate);
        let (mut now, mut total, mut wakes) = (START, 0, 0);
        let end = START + Duration::from_secs(seconds);
        while now < end {
            let (sent, ready) = drain(&mut pacer, now);
            assert!(sent <= pacer.burst().0 + rate.bytes_in(TIMER_SLACK).0 + MTU.0);
            total += sent;
            wakes += 1;
            now = ready + slack(wakes);
        }
        total
    }

    #[test]
    fn the_rate_holds_with_exact_and_with_late_timers() {
        for mbits in [1, 5, 20, 50, 100, 500, 2_000] {
            let rate = Rate::from_bits(mbits * 1_000_000);
            for micros in [0, 50, 300, 999] {
                let total = run(rate, 2, |wake| Duration::from_micros(wake * 7_919 % (micros + 1)));
                let share = total as f64 / (2 * rate.0) as f64;
                assert!((0.99..1.01).contains(&share), "{mbits} Mbit/s, {micros} µs late: {share}");
            }
        }
    }

    #[test]
    fn idle_time_gives_one_burst_and_no_more() {
        for (mbits, burst) in [(5, 2 * MTU.0), (100, 12_500), (800, 100_000)] {
            let mut pacer = Pacer::new(MTU);
            pacer.set_rate(Rate::from_bits(mbits * 1_000_000));
            drain(&mut pacer, START);
            pacer.on_sent(START, MTU);
            let later = START + Duration::from_secs(5);
            assert_eq!(drain(&mut pacer, later).0, burst, "{mbits} Mbit/s");
        }
    }

    #[test]
    fn a_train_larger_than_a_burst_goes_whole_and_is_waited_for() {
        let mut pacer = Pacer::new(MTU);
        pacer.set_rate(Rate(1_000_000));
        let train = ByteCount(50_000);
        assert_eq!(pacer.ready_at(START, train), START);
        pacer.on_sent(START, train);
        let ready = pacer.ready_at(START, MTU);
        // 50,000 bytes less the 2,500 of the burst, and the next packet: 48,750 bytes at 1 MB/s.
        assert_eq!(ready, START + Duration::from_micros(48_750));
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        let mut pacer = Pacer::new(MTU);
        for _ in 0..100 {
            assert_eq!(pacer.ready_at(START, MTU), START);
            pacer.on_sent(START, MTU);
        }
    }

    #[test]
    fn the_initial_rate_is_a_window_and_a_quarter_in_a_round_trip() {
        let rate = initial_rate(ByteCount(14_720), Duration::from_millis(20));
        assert_eq!(rate, Rate(920_000));
        assert!(initial_rate(ByteCount(14_720), Duration::ZERO).0 < u64::MAX / 2);
    }
}
