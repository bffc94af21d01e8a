//! Before paths are asked: what each of them can do now, and what follows for the entrance.
//!
//! 1. Every path is looked at anew; only those of the lowest tier that works are usable.
//! 2. Ten times a second the scheduler chooses paths; one left out for long is tried again, with
//!    copies where real packets would be delayed much.
//! 3. How early slower paths take, and how much may wait at the entrance, follow what was measured.

use super::Session;
use super::constants::{
    ACK_SPACING, ACK_SPACING_PART, CODEL_INTERVAL_MAX, CODEL_INTERVAL_MIN, CODEL_REACH_MAX, CODEL_TARGET_BYTES,
    CODEL_TARGET_MAX, CODEL_TARGET_MIN, DOUBT, EXPLORATION_ROUNDS, LATE_JITTERS, LATELY, QUANTUM_MAX, QUANTUM_TIME,
    QUEUE_MAX, QUEUE_TIME, RATE_MEMORY, RATE_MEMORY_MAX, SLOW_START_ROUNDS,
};
use super::path::Path;
use crate::queue::{AckSpacing, LIMIT};
use crate::scheduler::PathView;
use crate::units::{Rate, Time};
use std::time::Duration;

impl Path {
    /// A suspect path may be late and nothing worse: its tier is not left before the probe could have been answered.
    pub(super) fn doubted_until(&self) -> Option<Time> {
        let since = self.health.suspect_since().filter(|_| self.is_offered())?;
        Some(since + self.rtt.snapshot().smoothed + DOUBT)
    }
}

impl Session {
    /// Looks at every path anew, for the scheduler.
    pub(super) fn look(&mut self, now: Time) {
        let works =
            self.paths.iter().filter(|path| path.works() || path.doubted_until().is_some_and(|until| now < until));
        let tier = works.map(Path::tier).min();
        let scale = self.paths.iter().find_map(Path::scale).unwrap_or(0);
        self.views.clear();
        for path in &mut self.paths {
            let usable = path.works() && Some(path.tier()) == tier;
            self.views.push(path.view(now, usable, scale));
            if usable { path.note_pacing(now) } else { path.paced_until = None }
        }
        if !self.has_second_path() {
            self.copies.forget_rescues();
        }
        let views = &self.views;
        self.copies.keep_twins(|id| views.iter().any(|view| view.id == id && view.usable));
        if self.scheduler.refresh(now, &self.views) {
            self.try_left_out(now);
            let copied =
                |(index, view): (usize, &PathView)| view.usable && view.exploring && !self.scheduler.is_chosen(index);
            let wanted = self.views.iter().enumerate().any(copied);
            self.copies.want(wanted);
            self.judge_spill(now);
            self.tune_queue(now);
            self.thin_acks();
        }
    }

    /// A slow start over several paths is not to be ended by acknowledgements that come as one train.
    fn thin_acks(&mut self) {
        let fastest = self.views.get(self.scheduler.fastest()).map_or(Duration::ZERO, |view| view.least_rtt);
        let thinned = self.has_second_path() && fastest >= ACK_SPACING * ACK_SPACING_PART;
        let spacing = AckSpacing { gap: ACK_SPACING, within: fastest * SLOW_START_ROUNDS };
        self.queue.set_ack_spacing(if thinned { spacing } else { AckSpacing::default() });
    }

    /// Whether more than one path may carry inner packets.
    pub(super) fn has_second_path(&self) -> bool {
        self.views.iter().filter(|view| view.usable).count() > 1
    }

    /// A path that bulk left out for long shows anew what it can.
    fn try_left_out(&mut self, now: Time) {
        for (index, path) in self.paths.iter_mut().enumerate() {
            let usable = self.views.get(index).is_some_and(|view| view.usable);
            let used = self.scheduler.is_chosen(index) || now.since(path.last_given) < LATELY;
            if usable && path.exploration.on_choice(now, used) {
                path.restart(now, &self.settings);
            }
        }
    }

    /// Whether what slower paths took of late left the fastest one dry.
    fn judge_spill(&mut self, now: Time) {
        let elapsed = now.since(std::mem::replace(&mut self.spill_judged, now));
        let Some(fastest) = self.paths.get_mut(self.scheduler.fastest()) else { return };
        let dry = fastest.take_dry(now).as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
        self.scheduler.on_dry(dry, std::mem::take(&mut self.spilled));
    }

    /// CoDel's target: a queue of about one round trip of the fastest path keeps a congestion-controlled
    /// sender's pipe full when its window is cut; on top of it comes what must wait before the slowest
    /// path that is chosen, or may be once its rate is known, is reached at all (earliest completion
    /// first). After a link was lost there is room for the window that filled the bond before, so that
    /// the sender fills it again as soon as the link returns. Other flows feel none of it, because the
    /// queue is fair. What packets are late by, where they overtake each other, all that is in order waits
    /// for: until a sender has heard of a drop and slowed down, that passes twice.
    fn tune_queue(&mut self, now: Time) {
        let Some(fastest) = self.views.get(self.scheduler.fastest()).copied() else { return };
        let (mut rate, mut behind, mut late, mut sought) = (0, 0, Duration::ZERO, Duration::ZERO);
        for (index, view) in self.views.iter().enumerate() {
            let chosen = self.scheduler.is_chosen(index);
            if view.usable && (chosen || view.exploring) {
                behind = behind.max(view.floor_us.saturating_sub(fastest.floor_us));
                late = late.max(view.own_jitter() * LATE_JITTERS);
            }
            if view.usable && view.exploring {
                sought = sought.max(view.rtt * EXPLORATION_ROUNDS).min(CODEL_INTERVAL_MAX);
            }
            if view.usable && chosen {
                rate += view.rate.map_or(0, |rate| rate.0);
            }
        }
        if rate == 0 {
            return;
        }
        let (best, until) = self.best_rate;
        if rate >= best || now >= until {
            self.best_rate = (rate, now + RATE_MEMORY);
        }
        let before = (self.best_rate.0 as f64 / rate as f64).clamp(1.0, RATE_MEMORY_MAX);
        let reach = Duration::from_micros(behind.max(0).unsigned_abs()).min(CODEL_REACH_MAX);
        let base = fastest.least_rtt.clamp(CODEL_TARGET_MIN, CODEL_TARGET_MAX);
        let base = base.max(Rate(rate).time_for(CODEL_TARGET_BYTES).min(CODEL_REACH_MAX));
        let target = base.mul_f64(before) + reach;
        self.queue.set_limit(Rate(rate).bytes_in(QUEUE_TIME).clamp(LIMIT, QUEUE_MAX));
        self.queue.set_quantum(Rate(rate).bytes_in(QUANTUM_TIME).min(QUANTUM_MAX));
        self.queue.set_codel(target, ((fastest.least_rtt + late) * 2 + target).max(CODEL_INTERVAL_MIN).max(sought));
    }
}
