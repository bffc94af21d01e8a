//! BBR version 1 (Cardwell et al., "BBR: congestion-based congestion control", 2016) as Linux has it.
//!
//! 1. `on_sample` learns the bottleneck's rate (the most of ten round trips) and the least round trip (of ten seconds).
//! 2. STARTUP doubles the rate each round until it brings nothing; DRAIN empties the queue; PROBE_BW cycles.
//! 3. PROBE_RTT empties the pipe when the least round trip was not seen for ten seconds.
//! 4. From all that follow the pacing rate and the window.
//! 5. Where a policer is found ([`policer`]) its rate takes the place of the greatest.

mod aggregation;
mod policer;

use super::rate::Sample;
use super::window::{Control, INITIAL, State, View, Window};
use crate::random::Seeded;
use aggregation::Aggregation;
use hawser_core::units::Time;
use policer::Policer;
use std::collections::VecDeque;
use std::time::Duration;

/// Doubles the rate each round: 2/ln 2.
const HIGH_GAIN: f64 = 2.885;
/// The window in PROBE_BW, in bandwidth-delay products.
const CWND_GAIN: f64 = 2.0;
/// The phases of PROBE_BW.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Round trips for which the most of the rate counts.
const RATE_ROUNDS: u64 = 10;
/// STARTUP ends after three rounds without a quarter more.
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// The least round trip is probed again after this, for that long.
const RTT_WINDOW: Duration = Duration::from_secs(10);
const PROBE_RTT: Duration = Duration::from_millis(200);
/// The least window, segments.
const LEAST: u32 = 4;
/// What is paced of the rate, so that no queue stays.
const MARGIN: f64 = 0.99;
/// Below this (1.2 Mbit/s, bytes a second) segments go one by one.
const SINGLE: f64 = 150_000.0;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// BBR's state. In STARTUP at first; its sender owns it.
pub struct Bbr {
    mode: Mode,
    /// Segments a second: the most of each round, the greatest first.
    rates: VecDeque<(u64, f64)>,
    round: u64,
    round_start: bool,
    next_round: u64,
    least: Option<(Duration, Time)>,
    probe_rtt_done: Option<Time>,
    probe_rtt_round: bool,
    prior_cwnd: u32,
    conserving: bool,
    prior_state: State,
    cycle: usize,
    cycle_began: Time,
    full: (f64, u32),
    filled: bool,
    seen_rtt: bool,
    aggregation: Aggregation,
    policer: Policer,
    rng: Seeded,
}

impl Bbr {
    /// Whose phases are random by this.
    pub fn new(rng: Seeded) -> Self {
        Bbr {
            mode: Mode::Startup,
            rates: VecDeque::new(),
            round: 0,
            round_start: false,
            next_round: 0,
            least: None,
            probe_rtt_done: None,
            probe_rtt_round: false,
            prior_cwnd: 0,
            conserving: false,
            prior_state: State::Open,
            cycle: 0,
            cycle_began: Time::ZERO,
            full: (0.0, 0),
            filled: false,
            seen_rtt: false,
            aggregation: Aggregation::default(),
            policer: Policer::default(),
            rng,
        }
    }

    /// The greatest rate of the last rounds, segments a second.
    fn greatest(&self) -> f64 {
        self.rates.front().map_or(0.0, |(_, rate)| *rate)
    }

    /// What counts: a policer's rate, or the greatest.
    fn rate(&self) -> f64 {
        self.policer.rate().unwrap_or(self.greatest())
    }

    fn gains(&self) -> (f64, f64) {
        match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (1.0 / HIGH_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.policer.rate().is_some() => (1.0, CWND_GAIN),
            Mode::ProbeBw => (CYCLE[self.cycle], CWND_GAIN),
            Mode::ProbeRtt => (1.0, 1.0),
        }
    }

    fn product(&self, rate: f64, gain: f64) -> u32 {
        self.least.map_or(INITIAL, |(least, _)| (rate * least.as_secs_f64() * gain).ceil() as u32)
    }

    /// Room for super-packets at both ends and for the acknowledgements that are delayed.
    fn quantized(&self, view: &View<'_>, segments: u32) -> u32 {
        let goal = (view.window.pacing / 1024.0 / f64::from(view.window.mss)) as u32;
        let goal = goal.max(self.least_train(view.window)).min(127);
        let probing = self.mode == Mode::ProbeBw && self.cycle == 0;
        (segments + 3 * goal).next_multiple_of(2) + if probing { 2 } else { 0 }
    }

    fn in_flight_at(&self, view: &View<'_>, gain: f64) -> u32 {
        self.quantized(view, self.product(self.greatest(), gain))
    }

    fn save_cwnd(&mut self, window: &Window) {
        let good = self.prior_state < State::Recovery && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if good { window.cwnd } else { self.prior_cwnd.max(window.cwnd) };
    }

    /// Step 1: rounds and the rate.
    fn learn_rate(&mut self, view: &View<'_>, sample: &Sample) {
        self.round_start = false;
        let Some((delivered, interval)) = sample.delivered else { return };
        if sample.prior_delivered.is_some_and(|prior| prior >= self.next_round) {
            self.next_round = view.sampler.delivered;
            self.round += 1;
            self.round_start = true;
            self.conserving = false;
        }
        if self.policer.learn(view, sample.lost > 0, sample.app_limited, self.round_start, self.mode == Mode::ProbeBw) {
            self.probe_bandwidth(view.sampler.delivered_at);
        }
        let rate = delivered as f64 / interval.as_secs_f64();
        if !sample.app_limited || rate >= self.greatest() {
            while self.rates.pop_back_if(|(_, known)| *known <= rate).is_some() {}
            self.rates.push_back((self.round, rate));
            while self.rates.pop_front_if(|(round, _)| *round + RATE_ROUNDS < self.round).is_some() {}
        }
    }

    /// Step 2: the next phase of PROBE_BW.
    fn turn(&mut self, view: &View<'_>, sample: &Sample) {
        let Some((least, _)) = self.least.filter(|_| self.mode == Mode::ProbeBw) else { return };
        let long = view.sampler.delivered_at.since(self.cycle_began) > least;
        let gain = CYCLE[self.cycle];
        let over = if gain > 1.0 {
            long && (sample.lost > 0 || sample.in_flight >= self.in_flight_at(view, gain))
        } else {
            long || gain < 1.0 && sample.in_flight <= self.in_flight_at(view, 1.0)
        };
        if over {
            self.advance(view.sampler.delivered_at);
        }
    }

    fn advance(&mut self, now: Time) {
        self.cycle = (self.cycle + 1) % CYCLE.len();
        self.cycle_began = now;
    }

    fn probe_bandwidth(&mut self, now: Time) {
        self.mode = Mode::ProbeBw;
        self.cycle = CYCLE.len() - 1 - self.rng.below(7) as usize;
        self.advance(now);
    }

    /// Step 2: whether the pipe is full, and whether its queue is empty again.
    fn fill_and_drain(&mut self, view: &mut View<'_>, sample: &Sample) {
        if !self.filled && self.round_start && !sample.app_limited {
            if self.greatest() >= self.full.0 * FULL_GROWTH {
                self.full = (self.greatest(), 0);
            } else {
                self.full.1 += 1;
                self.filled = self.full.1 >= FULL_ROUNDS;
            }
        }
        if self.mode == Mode::Startup && self.filled {
            self.mode = Mode::Drain;
            view.window.ssthresh = self.in_flight_at(view, 1.0);
        }
        if self.mode == Mode::Drain && view.in_flight <= self.in_flight_at(view, 1.0) {
            self.probe_bandwidth(view.sampler.delivered_at);
        }
    }

    /// Step 3.
    fn learn_least(&mut self, view: &mut View<'_>, sample: &Sample) {
        let expired = self.least.is_some_and(|(_, at)| view.now > at + RTT_WINDOW);
        if let Some(rtt) = sample.rtt
            && self.least.is_none_or(|(least, _)| rtt < least || expired && !sample.delayed)
        {
            self.least = Some((rtt, view.now));
        }
        if expired && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd(view.window);
            self.probe_rtt_done = None;
        }
        if self.mode != Mode::ProbeRtt {
            return;
        }
        view.sampler.limited_until = (view.sampler.delivered + u64::from(view.in_flight)).max(1);
        match self.probe_rtt_done {
            None if view.in_flight <= LEAST => {
                self.probe_rtt_done = Some(view.now + PROBE_RTT);
                (self.probe_rtt_round, self.next_round) = (false, view.sampler.delivered);
            }
            None => {}
            Some(done) => {
                self.probe_rtt_round |= self.round_start;
                if self.probe_rtt_round && view.now > done {
                    self.least = self.least.map(|(least, _)| (least, view.now));
                    view.window.cwnd = view.window.cwnd.max(self.prior_cwnd);
                    if self.filled { self.probe_bandwidth(view.now) } else { self.mode = Mode::Startup }
                }
            }
        }
    }

    /// Step 4.
    fn pace(&mut self, view: &mut View<'_>) {
        if !self.seen_rtt
            && let Some(smoothed) = view.rtt.smoothed
        {
            self.seen_rtt = true;
            let rate = f64::from(view.window.cwnd) / smoothed.as_secs_f64().max(1e-6);
            view.window.pacing = rate * f64::from(view.window.mss) * HIGH_GAIN * MARGIN;
        }
        let rate = self.rate() * f64::from(view.window.mss) * self.gains().0 * MARGIN;
        if self.filled || rate > view.window.pacing {
            view.window.pacing = rate;
        }
    }

    /// Step 4: in recovery as much as is delivered, afterwards as before. Says whether that decides.
    fn recover(&mut self, view: &mut View<'_>, sample: &Sample) -> bool {
        let mut cwnd = view.window.cwnd.saturating_sub(sample.lost).max(1);
        let before = std::mem::replace(&mut self.prior_state, view.state);
        if view.state == State::Recovery && before != State::Recovery {
            self.conserving = true;
            self.next_round = view.sampler.delivered;
            cwnd = view.in_flight + sample.acked;
        } else if before >= State::Recovery && view.state < State::Recovery {
            cwnd = cwnd.max(self.prior_cwnd);
            self.conserving = false;
        }
        view.window.cwnd = if self.conserving { cwnd.max(view.in_flight + sample.acked) } else { cwnd };
        self.conserving
    }

    fn set_cwnd(&mut self, view: &mut View<'_>, sample: &Sample) {
        if sample.acked > 0 && !self.recover(view, sample) {
            let gain = self.gains().1;
            let more = if self.filled { self.aggregation.segments(self.rate()) } else { 0 };
            let target = self.quantized(view, self.product(self.rate(), gain) + more);
            let cwnd = view.window.cwnd;
            if self.filled {
                view.window.cwnd = (cwnd + sample.acked).min(target);
            } else if cwnd < target || view.sampler.delivered < u64::from(INITIAL) {
                view.window.cwnd = cwnd + sample.acked;
            }
            view.window.cwnd = view.window.cwnd.max(LEAST);
        }
        if self.mode == Mode::ProbeRtt {
            view.window.cwnd = view.window.cwnd.min(LEAST);
        }
    }
}

impl Control for Bbr {
    fn ssthresh(&mut self, view: &mut View<'_>) -> u32 {
        self.save_cwnd(view.window);
        view.window.ssthresh
    }

    fn undo(&mut self, view: &mut View<'_>) -> u32 {
        self.full = (0.0, 0);
        self.policer.forget(view);
        view.window.cwnd
    }

    fn on_timeout(&mut self, view: &mut View<'_>) {
        self.prior_state = State::Loss;
        self.full = (0.0, self.full.1);
        self.round_start = true;
        if self.policer.learn(view, true, false, true, self.mode == Mode::ProbeBw) {
            self.probe_bandwidth(view.sampler.delivered_at);
        }
    }

    fn on_round_trip(&mut self, _: &mut View<'_>, _: Duration) {}

    fn avoid(&mut self, _: &mut View<'_>, _: u32) {}

    fn on_sample(&mut self, view: &mut View<'_>, sample: &Sample) -> bool {
        self.learn_rate(view, sample);
        let rate = self.rate();
        self.aggregation.learn(view, sample, self.round_start, rate);
        self.turn(view, sample);
        self.fill_and_drain(view, sample);
        self.learn_least(view, sample);
        self.pace(view);
        self.set_cwnd(view, sample);
        true
    }

    fn rules_alone(&self) -> bool {
        true
    }

    fn least_train(&self, window: &Window) -> u32 {
        if window.pacing < SINGLE { 1 } else { 2 }
    }
}
