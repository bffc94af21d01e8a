//! Pacing rate and window from model and state (draft section 5.6).

use super::super::initial_window;
use super::model::Sample;
use super::{Bbr, State, follow};
use crate::units::{ByteCount, Rate};
use std::time::Duration;

/// Paced this far below the model's rate, so that queues drain (draft section 2.5, BBR.PacingMarginPercent 1).
const PACING_MARGIN: f64 = 0.99;
/// Doubles the rate each round trip (draft section 5.3.1.1: 4 ln 2).
const STARTUP_PACING_GAIN: f64 = 2.77;
/// The same below a sender that is the limit (`Departures::startup_pace`): an inner slow start doubles by itself, and
/// its window bounds it. What takes half a round trip to leave would end it, for HyStart takes a train of
/// acknowledgements that long for a full pipe (Ha and Rhee, 2011; Linux's CUBIC). What it doubles takes 2 (1 + 2 /
/// gain) / gain round trips: above 5.3, with a margin.
const LIMITED_STARTUP_PACING_GAIN: f64 = 7.0;
/// Drains what Startup queued (draft section 5.3.2).
const DRAIN_PACING_GAIN: f64 = 0.5;
/// Drains what Up queued (draft section 5.3.3.1).
const DOWN_PACING_GAIN: f64 = 0.90;
/// Drains faster while much is queued (`Departures::deep_down`): a queue of a quarter of the product is gone after a
/// round.
const DEEP_DOWN_PACING_GAIN: f64 = 0.75;
/// Multiple of the bandwidth-delay product that is much.
const DEEP: f64 = 1.1;
/// Looks for more bandwidth (draft section 5.3.3.4).
const UP_PACING_GAIN: f64 = 1.25;
/// Room for delayed acknowledgements (draft section 5.6.1, BBR.DefaultCwndGain).
pub(super) const WINDOW_GAIN: f64 = 2.0;
/// Room for the faster sending of Up (draft section 5.6.1).
const UP_WINDOW_GAIN: f64 = 2.25;
/// What PROBE_RTT keeps in flight (draft section 2.16.2, BBR.ProbeRTTCwndGain).
const PROBE_RTT_WINDOW_GAIN: f64 = 0.5;
/// Packets that Up may have in flight beyond (draft section 5.6.4.2).
const UP_EXTRA_PACKETS: u64 = 2;
/// Time that a burst of sending covers, and the packets it has at least (draft section 5.6.3).
const QUANTUM_TIME: Duration = Duration::from_millis(1);
/// Packets of the least burst (draft section 5.6.3).
const QUANTUM_PACKETS: u64 = 2;
/// The largest burst (draft section 5.6.3).
const QUANTUM_CAP: ByteCount = ByteCount(64 * 1024);
/// What may be in flight in any case, in time (`Departures::host_time`; the draft's section 5.5.8.2 has one burst).
/// Portals that move many packets rest between rounds: of 1 ms round trip at several Gbit/s nearly all is spent in
/// them, and none in a queue.
const HOST_TIME: Duration = Duration::from_millis(2);

impl Bbr {
    fn pacing_gain(&self, in_flight: ByteCount) -> f64 {
        match self.state {
            State::Startup if self.departures.startup_pace && self.rounds.is_emptied() => LIMITED_STARTUP_PACING_GAIN,
            State::Startup => STARTUP_PACING_GAIN,
            State::Drain => DRAIN_PACING_GAIN,
            State::Down if self.departures.deep_down && in_flight > self.inflight(DEEP) => DEEP_DOWN_PACING_GAIN,
            State::Down => DOWN_PACING_GAIN,
            State::Up => UP_PACING_GAIN,
            State::Cruise | State::Refill | State::ProbeRtt => 1.0,
        }
    }

    fn window_gain(&self) -> f64 {
        match self.state {
            State::Up => UP_WINDOW_GAIN,
            State::ProbeRtt => PROBE_RTT_WINDOW_GAIN,
            _ => WINDOW_GAIN,
        }
    }

    pub(super) fn set_pacing(&mut self, sample: &Sample) {
        if self.pacing == Rate::ZERO {
            let window = initial_window(self.mtu);
            self.pacing = Rate::of(window, sample.smoothed_rtt).scale(STARTUP_PACING_GAIN);
        }
        if self.departures.least_pace {
            self.least_pacing = Rate::of(self.mtu, sample.smoothed_rtt);
        }
        self.set_pacing_with_gain(self.pacing_gain(sample.in_flight));
    }

    pub(super) fn set_pacing_with_gain(&mut self, gain: f64) {
        let trim = if gain == 1.0 { self.trim } else { 1.0 };
        let rate = self.bw.scale(gain * trim * PACING_MARGIN).max(self.least_pacing);
        if self.full.reached || rate > self.pacing {
            self.pacing = rate;
        }
    }

    /// `gain` times the bandwidth-delay product of the present rate.
    pub(super) fn bdp(&self, gain: f64) -> ByteCount {
        self.volume(self.bw, gain)
    }

    /// The same of the most bandwidth, whatever bounds it now.
    pub(super) fn max_bw_bdp(&self, gain: f64) -> ByteCount {
        self.volume(self.max_bw.get(), gain)
    }

    fn volume(&self, rate: Rate, gain: f64) -> ByteCount {
        match self.min_rtt.get() {
            None => initial_window(self.mtu),
            Some(rtt) => rate.bytes_in(rtt + self.spread).scale(gain),
        }
    }

    /// `volume`, but at least what batches of sending and acknowledging need.
    pub(super) fn quantized(&self, volume: ByteCount) -> ByteCount {
        let quantum = self.pacing.bytes_in(QUANTUM_TIME).min(QUANTUM_CAP).max(ByteCount(self.mtu.0 * QUANTUM_PACKETS));
        let volume = volume.max(quantum).max(self.host_volume()).max(self.min_window());
        if self.state == State::Up { volume + ByteCount(self.mtu.0 * UP_EXTRA_PACKETS) } else { volume }
    }

    fn host_volume(&self) -> ByteCount {
        if self.departures.host_time { self.pacing.bytes_in(HOST_TIME) } else { ByteCount::ZERO }
    }

    pub(super) fn inflight(&self, gain: f64) -> ByteCount {
        self.quantized(self.bdp(gain))
    }

    /// What should be in flight: the product, unless congestion cut the window.
    pub(super) fn target_inflight(&self) -> ByteCount {
        self.bdp(1.0).min(self.window)
    }

    pub(super) fn probe_rtt_window(&self) -> ByteCount {
        let gain = if self.follow.was_on() { follow::PROBE_RTT_WINDOW_GAIN } else { PROBE_RTT_WINDOW_GAIN };
        self.bdp(gain).max(self.host_volume().scale(PROBE_RTT_WINDOW_GAIN)).max(self.min_window())
    }

    pub(super) fn set_window(&mut self, sample: &Sample) {
        let most = self.quantized(self.bdp(self.window_gain()) + self.extra.get());
        if self.full.reached {
            self.window = (self.window + sample.newly_acked).min(most);
        } else if self.window < most || self.delivered < initial_window(self.mtu) {
            self.window += sample.newly_acked;
        }
        self.window = self.window.max(self.min_window());
        if self.state == State::ProbeRtt {
            self.window = self.window.min(self.probe_rtt_window());
        }
        let cap = match self.state {
            // Headroom is for others; what the path itself needs, with its clumps, is not cut.
            State::Cruise if self.departures.headroom => {
                (self.inflight(1.0) + self.extra.get()).min(self.inflight_long).max(self.inflight_with_headroom())
            }
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::Down | State::Refill | State::Up => self.inflight_long,
            State::Startup | State::Drain => ByteCount::MAX,
        };
        let cap = cap.min(self.inflight_short).max(self.min_window());
        self.window = self.window.min(cap);
    }
}
