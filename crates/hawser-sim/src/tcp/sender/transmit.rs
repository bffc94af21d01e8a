//! What is sent, and when: repairs first, then what is new, as super-packets.
//!
//! 1. Where a timeout may have been spurious something new goes first (F-RTO).
//! 2. What is lost goes again, from the lowest.
//! 3. New data goes as far as congestion window, receive window and pacing allow.
//! 4. A train is about a millisecond at the pacing rate, and is put off for a while if it cannot be whole.

use super::Sender;
use crate::tcp::hosts::Line;
use crate::tcp::segment::{DATA_HEADERS, PSH};
use crate::tcp::stamp;
use crate::tcp::window::State;
use hawser_core::units::Time;
use std::time::Duration;

/// The longest super-packet, bytes of the IP packet.
const SUPER_PACKET: u32 = 65_000;
/// A train lasts a 1024th of a second at the pacing rate (Linux's `sk_pacing_shift`).
const TRAIN: f64 = 1024.0;
/// Where the round trip is short trains are longer: the shift that counts halvings, of µs (Linux's `tcp_tso_rtt_log`).
const TRAIN_RTT_SHIFT: u32 = 9;
/// A train is put off only this long after the last one.
const PUT_OFF: Duration = Duration::from_millis(1);
/// What may be sent at once is not put off if it is this part of the window (Linux's `tcp_tso_win_divisor`).
const PUT_OFF_PART: u32 = 3;
/// The first segments are not paced (Linux's `tcp_update_skb_after_send`).
const UNPACED: u64 = 10;

impl Sender {
    /// Steps 1 to 3.
    pub(super) fn transmit(&mut self, now: Time, line: &mut Line<'_, '_>) {
        let mss = (line.mtu() - DATA_HEADERS) as u32;
        self.window.mss = self.window.mss.min(mss);
        self.held = false;
        if std::mem::take(&mut self.new_first) {
            if self.send_new(now, line) {
                return;
            }
            self.frto = false;
        }
        self.send_lost(now, line);
        self.send_new(now, line);
    }

    /// Step 4, segments.
    fn train(&self) -> u32 {
        let mut bytes = self.window.pacing / TRAIN;
        let least = self.rtt.least.unwrap_or_default().as_micros() as u64 >> TRAIN_RTT_SHIFT;
        if least < 16 {
            bytes += f64::from(1u32 << (16 - least));
        }
        let most = (SUPER_PACKET - DATA_HEADERS as u32) / self.window.mss;
        let segments = bytes as u32 / self.window.mss;
        segments.max(self.control.least_train(&self.window)).min(most)
    }

    fn is_paced_until_later(&mut self, now: Time) -> bool {
        self.held = self.paced && self.next_send > now;
        self.held
    }

    /// Step 2.
    fn send_lost(&mut self, now: Time, line: &mut Line<'_, '_>) {
        loop {
            let quota = self.window.cwnd.saturating_sub(self.board.in_flight());
            let most = quota.min(self.train()) as usize;
            if most == 0 {
                return;
            }
            let Some((start, end, run)) = self.board.first_lost(most) else { return };
            if self.is_paced_until_later(now) {
                return;
            }
            let oldest = start == self.una;
            self.send_again(now, line, start, end, &run);
            if oldest {
                self.on_head_resent(now);
            }
        }
    }

    fn send_again(&mut self, now: Time, line: &mut Line<'_, '_>, start: u64, end: u64, run: &[u64]) {
        for end in run {
            let stamp = self.sampler.on_sent(now, self.board.out());
            self.board.on_resent(*end, now, stamp);
        }
        let segments = run.len() as u32;
        if self.undo.first_resent == 0 {
            self.undo.first_resent = stamp(now);
        }
        self.undo.open = Some(self.undo.open.unwrap_or(0) + segments);
        self.story.resent += u64::from(segments);
        self.put(now, line, start, (end - start) as u32, segments);
    }

    /// Step 3. Says whether anything was sent.
    fn send_new(&mut self, now: Time, line: &mut Line<'_, '_>) -> bool {
        let (before, was_idle, mut limited) = (self.nxt, self.board.out() == 0, false);
        let available = self.available(now);
        loop {
            let quota = self.window.cwnd.saturating_sub(self.board.in_flight());
            limited |= quota == 0;
            let allowed = available.min(self.una + self.peer_window).saturating_sub(self.nxt);
            if quota == 0 || allowed == 0 || self.is_paced_until_later(now) {
                break;
            }
            let (mss, train) = (self.window.mss, self.train());
            let most = quota.min((self.window.cwnd / 2).max(1)).min(train) * mss;
            let mut len = allowed.min(u64::from(most)) as u32;
            // Part of a segment goes only at the end of all (RFC 896).
            if self.nxt + u64::from(len) < available {
                len -= len % mss;
            }
            let put_off = self.nxt + u64::from(len) < available && self.puts_off(now, quota, allowed, train);
            limited |= put_off;
            if len == 0 || put_off {
                break;
            }
            self.send_train(now, line, len);
        }
        self.after_new(now, before, was_idle, limited, available);
        self.nxt > before
    }

    fn after_new(&mut self, now: Time, before: u64, was_idle: bool, limited: bool, available: u64) {
        let in_flight = self.board.in_flight();
        let limited = limited || in_flight >= self.window.cwnd;
        if self.nxt > before {
            self.on_new_data(now, was_idle);
        }
        if self.nxt > before || limited {
            self.window.validate(limited, self.board.out(), self.una, self.nxt);
        }
        let idle = self.nxt == available && in_flight < self.window.cwnd && self.board.lost() <= self.board.resent();
        if idle {
            self.sampler.limited_until = (self.sampler.delivered + u64::from(in_flight)).max(1);
        }
    }

    fn send_train(&mut self, now: Time, line: &mut Line<'_, '_>, len: u32) {
        let (start, mss) = (self.nxt, u64::from(self.window.mss));
        let end = start + u64::from(len);
        let mut at = start;
        while at < end {
            let stamp = self.sampler.on_sent(now, self.board.out());
            let to = end.min(at + mss);
            self.board.on_sent(at, to, now, stamp);
            at = to;
        }
        self.nxt = end;
        self.put(now, line, start, len, u64::from(len).div_ceil(mss) as u32);
    }

    /// Gives a super-packet to the line, and says when the next one may follow.
    fn put(&mut self, now: Time, line: &mut Line<'_, '_>, start: u64, len: u32, segments: u32) {
        if self.state == State::Recovery {
            self.window.on_sent_in_reduction(segments);
        }
        let mut header = self.header(now);
        header.sequence = self.first.wrapping_add(start as u32);
        if self.plan.bytes == Some(start + u64::from(len)) {
            header.flags |= PSH;
        }
        line.send(&header, start, len as usize, self.window.mss as usize);
        self.last_sent = now;
        if self.paced && self.nxt / u64::from(self.window.mss) >= UNPACED {
            let lasts = Duration::from_secs_f64(f64::from(len) / self.window.pacing.max(1.0));
            self.next_send = self.next_send.max(now) + lasts;
        }
    }

    /// Step 4: whether the next acknowledgement is worth waiting for (Linux's `tcp_tso_should_defer`).
    fn puts_off(&self, now: Time, quota: u32, allowed: u64, train: u32) -> bool {
        if self.state >= State::Recovery || now.since(self.last_sent) > PUT_OFF {
            return false;
        }
        let mss = u64::from(self.window.mss);
        let limit = (u64::from(quota) * mss).min(allowed);
        let part = (u64::from(self.window.cwnd) * mss).min(self.peer_window) / u64::from(PUT_OFF_PART);
        if limit >= u64::from(train) * mss || limit >= part {
            return false;
        }
        let half = self.rtt.smoothed.unwrap_or_default() / 2;
        self.board.head().is_some_and(|head| now.since(head.sent) >= half)
    }

    /// A tail loss probe: something new, or the last segment again. Says whether it was new.
    pub(super) fn send_probe(&mut self, now: Time, line: &mut Line<'_, '_>) -> bool {
        let available = self.available(now);
        let allowed = available.min(self.una + self.peer_window).saturating_sub(self.nxt);
        let len = allowed.min(u64::from(self.window.mss)) as u32;
        if len > 0 {
            self.send_train(now, line, len);
            return true;
        }
        if let Some(tail) = self.board.tail().copied() {
            self.send_again(now, line, tail.start, tail.end, &[tail.end]);
        }
        false
    }
}
