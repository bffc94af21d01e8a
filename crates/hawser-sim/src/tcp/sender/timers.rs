//! The one timer of a sender: for a timeout (RFC 6298), a tail loss probe or a look at what was overtaken (RFC 8985).

use super::Sender;
use super::ack::News;
use super::recovery::TIMEOUT_MIN;
use crate::tcp::hosts::Line;
use crate::tcp::rate::Sample;
use crate::tcp::window::State;
use hawser_core::units::Time;
use std::time::Duration;

/// With one segment out its acknowledgement may be delayed by this (RFC 8985 section 7.2).
const DELAYED_MAX: Duration = Duration::from_millis(200);

/// What the timer is for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Timer {
    Retransmit,
    Probe,
    Reorder,
}

impl Sender {
    /// Something was acknowledged: the timer begins anew.
    pub(super) fn rearm(&mut self, now: Time) {
        if !self.schedule_probe(now, now + self.rtt.timeout()) {
            self.rearm_timeout(now);
        }
    }

    pub(super) fn rearm_timeout(&mut self, now: Time) {
        let rto = self.rtt.timeout();
        self.timer = self.board.head().map(|head| {
            let at = match self.timer {
                Some((Timer::Probe | Timer::Reorder, _)) => (head.sent + rto).max(now + Duration::from_micros(1)),
                _ => now + rto,
            };
            (Timer::Retransmit, at)
        });
    }

    /// A tail loss probe, two round trips from now, but not after `timeout`. Says whether there will be one.
    pub(super) fn schedule_probe(&mut self, now: Time, timeout: Time) -> bool {
        if self.board.out() == 0 || self.state != State::Open {
            return false;
        }
        let trips = self.rtt.smoothed.map_or(Duration::from_secs(1), |smoothed| smoothed * 2);
        let more = if self.board.out() == 1 { DELAYED_MAX } else { TIMEOUT_MIN };
        self.timer = Some((Timer::Probe, (now + trips + more).min(timeout)));
        true
    }

    /// New data went out.
    pub(super) fn on_new_data(&mut self, now: Time, was_idle: bool) {
        if was_idle || matches!(self.timer, None | Some((Timer::Probe, _))) {
            self.rearm_timeout(now);
        }
        let timeout = self.timer.map_or(Time::NEVER, |(_, at)| at);
        self.schedule_probe(now, timeout);
    }

    /// The oldest goes again: its answer has a whole timeout from now on (Linux's `tcp_xmit_retransmit_queue`).
    pub(super) fn on_head_resent(&mut self, now: Time) {
        if !matches!(self.timer, Some((Timer::Reorder, _))) {
            self.timer = Some((Timer::Retransmit, now + self.rtt.timeout()));
        }
    }

    pub(super) fn on_timer(&mut self, now: Time, timer: Timer, line: &mut Line<'_, '_>) {
        match timer {
            Timer::Reorder => self.on_reorder_timer(now),
            Timer::Probe => self.on_probe_timer(now, line),
            Timer::Retransmit => {
                self.timer = None;
                if self.board.out() > 0 {
                    self.enter_loss(now);
                    self.timeouts += 1;
                    self.rtt.back_off();
                    self.timer = Some((Timer::Retransmit, now + self.rtt.timeout()));
                }
            }
        }
        self.dirty = true;
    }

    fn on_reorder_timer(&mut self, now: Time) {
        let window = self.reorder_window();
        let (lost, wait) = self.rack.detect_now(now, &mut self.board, window);
        self.sampler.lost += u64::from(lost);
        if lost > 0 {
            if self.state != State::Recovery {
                self.enter_recovery(now);
            }
            if !self.control.rules_alone() {
                let sample = Sample { acked: 1, lost, ..Sample::default() };
                self.window.reduce(&sample, self.board.in_flight(), false);
            }
        }
        match wait {
            Some(wait) => self.timer = Some((Timer::Reorder, now + wait + TIMEOUT_MIN)),
            None => self.rearm_timeout(now),
        }
    }

    fn on_probe_timer(&mut self, now: Time, line: &mut Line<'_, '_>) {
        if self.probe.is_none() && self.board.out() > 0 {
            let again = !self.send_probe(now, line);
            self.probe = Some((self.nxt, again));
            self.story.probes += 1;
            // The timeout begins anew with the probe (RFC 8985 section 7.3).
            self.timer = None;
        }
        self.rearm_timeout(now);
    }

    /// What the answer to a tail loss probe says (RFC 8985 section 7.4).
    pub(super) fn settle_probe(&mut self, now: Time, news: &News) {
        let Some((end, again)) = self.probe.filter(|(end, _)| self.una >= *end) else { return };
        if !again || news.duplicate || !news.advanced && !news.sacked {
            self.probe = None;
        } else if self.una > end {
            // The probe repaired a loss, which nobody saw: it counts all the same.
            self.probe = None;
            self.window.prior_ssthresh = 0;
            let ssthresh = self.with_control(now, |control, view| control.ssthresh(view));
            self.window.begin_reduction(ssthresh);
            if !self.control.rules_alone() {
                self.window.cwnd = self.window.ssthresh;
            }
        }
    }
}
