//! Whether something was lost, and whether what was done about it was in vain: Linux's `tcp_fastretrans_alert`.
//!
//! ```text
//!   OPEN <--> DISORDER --a loss--> RECOVERY --all of it acknowledged--> OPEN
//!     any state --timeout--> LOSS --all of it acknowledged, or spurious--> OPEN
//! ```
//!
//! 1. `judge` leaves a state that is over, looks for losses (RACK), and enters recovery.
//! 2. `enter_loss` is what a timeout does; F-RTO (RFC 5682) finds out whether it was spurious.
//! 3. What was reduced in vain is undone: all that was retransmitted came twice (RFC 3708), or the first to be
//!    acknowledged was sent before any retransmission (RFC 3522).

use super::ack::News;
use super::timers::Timer;
use super::{Sender, Undo};
use crate::tcp::window::{INFINITE, State};
use hawser_core::units::Time;
use std::time::Duration;

/// Timers are not armed for less (Linux's `TCP_TIMEOUT_MIN`, two ticks).
pub(super) const TIMEOUT_MIN: Duration = Duration::from_millis(2);

impl Sender {
    /// Step 1.
    pub(super) fn judge(&mut self, now: Time, news: &mut News) {
        match self.state {
            State::Open => self.undo.first_resent = 0,
            State::Recovery if self.una >= self.high => {
                self.undo_if_vain(now, news);
                self.end_reduction();
                self.rack.on_recovered();
                self.set_state(State::Open);
            }
            _ => {}
        }
        match self.state {
            State::Recovery => {
                if news.advanced && self.undo_partly(now, news) {
                    return;
                }
                if self.undo_duplicates(now) {
                    self.try_open();
                }
                self.find_losses(now, news);
                if self.state == State::Recovery {
                    return;
                }
            }
            State::Loss => {
                self.leave_loss(now, news);
                self.find_losses(now, news);
                if self.state != State::Open {
                    return;
                }
            }
            State::Open | State::Disorder => {
                self.undo_duplicates(now);
                self.find_losses(now, news);
            }
        }
        if self.board.lost() > 0 { self.enter_recovery(now) } else { self.try_open() }
    }

    fn find_losses(&mut self, now: Time, news: &mut News) {
        let window = self.reorder_window();
        let (lost, wait) = self.rack.detect(now, &mut self.board, window);
        self.sampler.lost += u64::from(lost);
        if let Some(wait) = wait {
            self.timer = Some((Timer::Reorder, now + wait + TIMEOUT_MIN));
            news.rearm = false;
        }
    }

    pub(super) fn reorder_window(&self) -> Duration {
        self.rack.window(self.state >= State::Recovery, self.board.sacked(), &self.rtt)
    }

    pub(super) fn enter_recovery(&mut self, now: Time) {
        self.window.prior_ssthresh = 0;
        self.begin_undo();
        if self.state != State::Recovery {
            self.window.prior_ssthresh = self.window.current_ssthresh(false);
            let ssthresh = self.with_control(now, |control, view| control.ssthresh(view));
            self.window.begin_reduction(ssthresh);
            (self.high, self.probe) = (self.nxt, None);
        }
        self.state = State::Recovery;
        self.story.recoveries += 1;
    }

    fn begin_undo(&mut self) {
        let resent = self.board.resent();
        let first_resent = self.undo.first_resent;
        self.undo = Undo { marker: Some(self.una), open: (resent > 0).then_some(resent), first_resent };
    }

    pub(super) fn end_reduction(&mut self) {
        if !self.control.rules_alone() && self.window.ssthresh < INFINITE && self.undo.marker.is_some() {
            self.window.cwnd = self.window.ssthresh;
        }
    }

    fn set_state(&mut self, state: State) {
        self.state = state;
    }

    pub(super) fn try_open(&mut self) {
        let resent = self.board.any_resent();
        if !resent {
            self.undo.first_resent = 0;
        }
        let disorder = resent || self.board.sacked() + self.board.lost() > 0;
        let state = if disorder { State::Disorder } else { State::Open };
        if state != self.state {
            (self.state, self.high) = (state, self.nxt);
        }
    }

    /// Step 2.
    pub(super) fn enter_loss(&mut self, now: Time) {
        let fresh = self.state < State::Recovery;
        let head = self.board.head().map(|piece| piece.end);
        let gone = |piece: &&_| -> bool {
            let piece: &crate::tcp::scoreboard::Piece = piece;
            Some(piece.end) == head || !self.rack.may_arrive(now, piece, Duration::ZERO)
        };
        let lost: Vec<u64> = self.board.iter().filter(gone).map(|piece| piece.end).collect();
        for end in lost {
            self.sampler.lost += u64::from(self.board.mark_lost(end));
        }
        if fresh || self.una >= self.high || self.state == State::Loss && self.timeouts == 0 {
            self.window.prior_ssthresh = self.window.current_ssthresh(self.state == State::Recovery);
            self.window.prior_cwnd = self.window.cwnd;
            self.window.ssthresh = self.with_control(now, |control, view| control.ssthresh(view));
            self.begin_undo();
        }
        self.with_control(now, |control, view| control.on_timeout(view));
        (self.window.cwnd, self.window.count) = (self.board.in_flight() + 1, 0);
        (self.state, self.high) = (State::Loss, self.nxt);
        self.frto = fresh || self.timeouts > 0;
        self.probe = None;
        self.story.timeouts += 1;
    }

    /// Step 2: Linux's `tcp_process_loss`.
    fn leave_loss(&mut self, now: Time, news: &News) {
        let recovered = self.una >= self.high;
        if news.advanced && self.may_undo(news) {
            return self.undo_loss(now);
        }
        if self.frto {
            if news.original {
                return self.undo_loss(now);
            }
            if self.nxt > self.high {
                self.frto &= !news.sacked && news.advanced;
            } else if news.advanced && !recovered {
                (self.high, self.new_first) = (self.nxt, true);
                return;
            }
        }
        if recovered {
            self.undo_if_vain(now, news);
            self.set_state(State::Open);
        }
    }

    /// Step 3.
    fn may_undo(&self, news: &News) -> bool {
        self.undo.marker.is_some() && (self.undo.open == Some(0) || self.was_delayed(news))
    }

    /// What is acknowledged was sent before any retransmission.
    fn was_delayed(&self, news: &News) -> bool {
        let since = self.undo.first_resent.wrapping_sub(news.echoed) as i32;
        self.undo.first_resent != 0 && news.echoed != 0 && since > 0
    }

    fn undo_if_vain(&mut self, now: Time, news: &News) {
        if self.may_undo(news) {
            self.undo_reduction(now, false);
        }
    }

    fn undo_duplicates(&mut self, now: Time) -> bool {
        let vain = self.undo.marker.is_some() && self.undo.open == Some(0);
        if vain {
            self.rack.hold();
            self.undo_reduction(now, false);
        }
        vain
    }

    /// In recovery: says whether nothing else is to be done.
    fn undo_partly(&mut self, now: Time, news: &News) -> bool {
        if self.undo.marker.is_none() || !self.was_delayed(news) {
            return false;
        }
        // A retransmission is under way: its acknowledgement is waited for.
        if self.board.resent() > 0 {
            return true;
        }
        if !self.board.any_resent() {
            self.undo.first_resent = 0;
        }
        self.undo_reduction(now, true);
        self.try_open();
        true
    }

    fn undo_loss(&mut self, now: Time) {
        self.undo_reduction(now, true);
        (self.frto, self.timeouts) = (false, 0);
        self.set_state(State::Open);
    }

    fn undo_reduction(&mut self, now: Time, unmark: bool) {
        if unmark {
            self.board.unmark_lost();
        }
        if self.window.prior_ssthresh > 0 {
            self.window.cwnd = self.with_control(now, |control, view| control.undo(view));
            self.window.ssthresh = self.window.ssthresh.max(self.window.prior_ssthresh);
        }
        self.undo.marker = None;
        self.rack.look_again();
        self.story.undone += 1;
    }
}
