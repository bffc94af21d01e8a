//! The congestion window, whoever sets it, and how it shrinks in recovery (RFC 6937).

use super::rate::{Sample, Sampler};
use super::rtt::Rtt;
use hawser_core::units::Time;
use std::time::Duration;

/// Segments that a connection begins with (RFC 6928).
pub const INITIAL: u32 = 10;
/// "Infinite", as Linux has it.
pub const INFINITE: u32 = 0x7fff_ffff;

/// Where loss recovery stands: Linux's `tcp_ca_state` without ECN.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum State {
    /// All is well.
    #[default]
    Open,
    /// Something is missing, and perhaps only late.
    Disorder,
    /// Something was lost.
    Recovery,
    /// A timeout passed.
    Loss,
}

/// The congestion window in segments. Ten at first; its sender owns it.
#[derive(Clone, Debug)]
pub struct Window {
    /// Segments that may be under way.
    pub cwnd: u32,
    /// Below it slow start.
    pub ssthresh: u32,
    /// Acknowledged towards the next segment of `cwnd`.
    pub count: u32,
    /// Before the last reduction.
    pub prior_cwnd: u32,
    /// The same of `ssthresh`; zero while there was none.
    pub prior_ssthresh: u32,
    /// The window is what limits the sender.
    pub limited: bool,
    /// Bytes a second that pacing and the size of super-packets go by.
    pub pacing: f64,
    /// Bytes of a full segment's data.
    pub mss: u32,
    max_out: u32,
    usage_end: u64,
    prr_delivered: u32,
    prr_out: u32,
}

impl Window {
    /// For segments of `mss` bytes.
    pub fn new(mss: u32) -> Self {
        Window {
            cwnd: INITIAL,
            ssthresh: INFINITE,
            count: 0,
            prior_cwnd: 0,
            prior_ssthresh: 0,
            limited: false,
            pacing: 0.0,
            mss,
            max_out: 0,
            usage_end: 0,
            prr_delivered: 0,
            prr_out: 0,
        }
    }

    /// Whether it is slow start.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// What `ssthresh` would be without a loss now.
    pub fn current_ssthresh(&self, reducing: bool) -> u32 {
        if reducing { self.ssthresh } else { self.ssthresh.max(self.cwnd / 2 + self.cwnd / 4) }
    }

    /// Slow start: what of `acked` segments it does not use.
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let cwnd = self.cwnd.saturating_add(acked).min(self.ssthresh);
        let rest = acked - (cwnd - self.cwnd);
        self.cwnd = cwnd;
        rest
    }

    /// One segment more for each `every` that are acknowledged.
    pub fn grow(&mut self, every: u32, acked: u32) {
        if self.count >= every {
            self.count = 0;
            self.cwnd += 1;
        }
        self.count += acked;
        if self.count >= every {
            self.cwnd += self.count / every;
            self.count %= every;
        }
    }

    /// Whether growing makes sense: an application that does not fill the window learns nothing (RFC 7661).
    pub fn may_grow(&self) -> bool {
        self.limited || self.in_slow_start() && self.cwnd < 2 * self.max_out
    }

    /// After sending: how the window was used.
    pub fn validate(&mut self, limited: bool, out: u32, una: u64, nxt: u64) {
        if una >= self.usage_end || limited || !self.limited && out > self.max_out {
            (self.limited, self.max_out, self.usage_end) = (limited, out, nxt);
        }
    }

    /// A reduction to `ssthresh` begins.
    pub fn begin_reduction(&mut self, ssthresh: u32) {
        (self.prior_cwnd, self.ssthresh) = (self.cwnd, ssthresh);
        (self.count, self.prr_delivered, self.prr_out) = (0, 0, 0);
    }

    /// Something was sent while it is being reduced.
    pub fn on_sent_in_reduction(&mut self, segments: u32) {
        self.prr_out += segments;
    }

    /// Proportional rate reduction, with the slow start bound where the repair advances (RFC 6937 section 3).
    pub fn reduce(&mut self, sample: &Sample, in_flight: u32, advanced: bool) {
        if sample.acked == 0 || self.prior_cwnd == 0 {
            return;
        }
        self.prr_delivered += sample.acked;
        let send = if in_flight > self.ssthresh {
            let dividend = u64::from(self.ssthresh) * u64::from(self.prr_delivered) + u64::from(self.prior_cwnd) - 1;
            ((dividend / u64::from(self.prior_cwnd)) as u32).saturating_sub(self.prr_out)
        } else {
            let mut send = self.prr_delivered.saturating_sub(self.prr_out).max(sample.acked);
            if advanced && sample.lost == 0 {
                send += 1;
            }
            send.min(self.ssthresh - in_flight)
        };
        // The first repair goes in any case.
        self.cwnd = in_flight + send.max(u32::from(self.prr_out == 0));
    }
}

/// What a congestion control sees, and may change. Made for one call.
pub struct View<'a> {
    /// The present.
    pub now: Time,
    /// The window.
    pub window: &'a mut Window,
    /// Round trips.
    pub rtt: &'a Rtt,
    /// What was delivered.
    pub sampler: &'a mut Sampler,
    /// Acknowledged up to there, and sent up to there.
    pub una: u64,
    /// Sent up to there.
    pub nxt: u64,
    /// Segments under way.
    pub in_flight: u32,
    /// Where recovery stands.
    pub state: State,
}

/// A congestion control. Its sender owns it.
pub trait Control {
    /// Something was lost: the new `ssthresh`.
    fn ssthresh(&mut self, view: &mut View<'_>) -> u32;
    /// Nothing had been lost: the window again.
    fn undo(&mut self, view: &mut View<'_>) -> u32;
    /// A timeout passed.
    fn on_timeout(&mut self, view: &mut View<'_>);
    /// Something was acknowledged; the round trip of the newest.
    fn on_round_trip(&mut self, view: &mut View<'_>, rtt: Duration);
    /// Outside of recovery, this number of segments was acknowledged.
    fn avoid(&mut self, view: &mut View<'_>, acked: u32);
    /// It sets the window by itself, at each acknowledgement. Says whether it does.
    fn on_sample(&mut self, view: &mut View<'_>, sample: &Sample) -> bool;
    /// It sets the window by itself, in recovery too.
    fn rules_alone(&self) -> bool;
    /// The least segments of a super-packet.
    fn least_train(&self, window: &Window) -> u32;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovery_goes_down_to_ssthresh_in_proportion() {
        let mut window = Window { cwnd: 100, ..Window::new(1448) };
        window.begin_reduction(70);
        let (mut in_flight, mut sent) = (99, 0);
        for _ in 0..100 {
            in_flight -= 1;
            window.reduce(&Sample { acked: 1, ..Sample::default() }, in_flight, false);
            let send = window.cwnd - in_flight;
            window.on_sent_in_reduction(send);
            (in_flight, sent) = (in_flight + send, sent + send);
        }
        assert_eq!((in_flight, sent), (70, 71));
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut window = Window { ssthresh: 10, ..Window::new(1448) };
        window.validate(false, 3, 0, 3);
        assert!(!window.may_grow());
        window.validate(true, 10, 3, 13);
        assert!(window.may_grow());
    }
}
