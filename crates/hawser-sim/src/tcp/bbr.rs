//! BBR version 1 (Cardwell et al., "BBR: congestion-based congestion control", 2016) as Linux has it, but for the
//! detection of policers.
//!
//! 1. `on_sample` learns the bottleneck's rate (the most of ten round trips) and the least round trip (of ten seconds).
//! 2. STARTUP doubles the rate each round until it brings nothing; DRAIN empties the queue; PROBE_BW cycles.
//! 3. PROBE_RTT empties the pipe when the least round trip was not seen for ten seconds.
//! 4. From all that follow the pacing rate and the window.

use super::rate::Sample;
use super::window::{Control, INITIAL, State, View, Window};
use crate::random::Seeded;
use hawser_core::units::Time;
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
/// The least round trip is sought again after this, for that long.
const RTT_WINDOW: Duration = Duration::from_secs(10);
const PROBE_RTT: Duration = Duration::from_millis(200);
/// The least window, segments.
const LEAST: u32 = 4;
/// What is paced of the rate, so that no queue stays.
const MARGIN: f64 = 0.99;
/// Aggregated acknowledgements are remembered for five to ten rounds, and count up to 100 ms at the rate.
const AGGREGATION_ROUNDS: u32 = 5;
const AGGREGATION_MOST: f64 = 0.1;
/// A count of acknowledged segments begins anew here.
const AGGREGATION_RESET: u64 = 1 << 20;
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
    extra: [f64; 2],
    extra_rounds: u32,
    extra_which: usize,
    epoch: (Time, u64),
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
            extra: [0.0; 2],
            extra_rounds: 0,
            extra_which: 0,
            epoch: (Time::ZERO, 0),
            rng,
        }
    }

    fn rate(&self) -> f64 {
        self.rates.front().map_or(0.0, |(_, rate)| *rate)
    }

    fn gains(&self) -> (f64, f64) {
        match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (1.0 / HIGH_GAIN, HIGH_GAIN),
            Mode::ProbeBw => (CYCLE[self.cycle], CWND_GAIN),
            Mode::ProbeRtt => (1.0, 1.0),
        }
    }

    fn product(&self, gain: f64) -> u32 {
        self.least.map_or(INITIAL, |(least, _)| (self.rate() * least.as_secs_f64() * gain).ceil() as u32)
    }

    /// Room for super-packets at both ends and for the acknowledgements that are delayed.
    fn quantized(&self, view: &View<'_>, segments: u32) -> u32 {
        let goal = (view.window.pacing / 1024.0 / f64::from(view.window.mss)) as u32;
        let goal = goal.max(self.least_train(view.window)).min(127);
        let probing = self.mode == Mode::ProbeBw && self.cycle == 0;
        (segments + 3 * goal).next_multiple_of(2) + if probing { 2 } else { 0 }
    }

    fn in_flight_at(&self, view: &View<'_>, gain: f64) -> u32 {
        self.quantized(view, self.product(gain))
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
        let rate = delivered as f64 / interval.as_secs_f64();
        if !sample.app_limited || rate >= self.rate() {
            while self.rates.pop_back_if(|(_, known)| *known <= rate).is_some() {}
            self.rates.push_back((self.round, rate));
            while self.rates.pop_front_if(|(round, _)| *round + RATE_ROUNDS < self.round).is_some() {}
        }
    }

    /// Step 1: how much more than the rate says is acknowledged at once.
    fn learn_aggregation(&mut self, view: &View<'_>, sample: &Sample) {
        if sample.acked == 0 || sample.delivered.is_none() {
            return;
        }
        if self.round_start {
            self.extra_rounds += 1;
            if self.extra_rounds >= AGGREGATION_ROUNDS {
                (self.extra_rounds, self.extra_which) = (0, 1 - self.extra_which);
                self.extra[self.extra_which] = 0.0;
            }
        }
        let (began, acked) = &mut self.epoch;
        let now = view.sampler.delivered_at;
        let rate = self.rates.front().map_or(0.0, |(_, rate)| *rate);
        let mut expected = rate * now.since(*began).as_secs_f64();
        if *acked as f64 <= expected || *acked >= AGGREGATION_RESET {
            (*began, *acked, expected) = (now, 0, 0.0);
        }
        *acked += u64::from(sample.acked);
        let extra = (*acked as f64 - expected).min(f64::from(view.window.cwnd));
        let known = &mut self.extra[self.extra_which];
        *known = known.max(extra);
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
            if self.rate() >= self.full.0 * FULL_GROWTH {
                self.full = (self.rate(), 0);
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
            let aggregation = if self.filled { self.extra[0].max(self.extra[1]) } else { 0.0 };
            let most = aggregation.min(self.rate() * AGGREGATION_MOST) as u32;
            let target = self.quantized(view, self.product(gain) + most);
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
        view.window.cwnd
    }

    fn on_timeout(&mut self, _: &mut View<'_>) {
        self.prior_state = State::Loss;
        self.full = (0.0, self.full.1);
        self.round_start = true;
    }

    fn on_round_trip(&mut self, _: &mut View<'_>, _: Duration) {}

    fn avoid(&mut self, _: &mut View<'_>, _: u32) {}

    fn on_sample(&mut self, view: &mut View<'_>, sample: &Sample) -> bool {
        self.learn_rate(view, sample);
        self.learn_aggregation(view, sample);
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
