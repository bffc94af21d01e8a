//! A path under a test's hand: it says what each round trip delivers and loses.

use super::super::{RateSample, RttSnapshot};
use super::*;

pub(super) const MTU: ByteCount = ByteCount(1_000);
/// Acknowledgement frames of a round trip.
pub(super) const FRAMES: u64 = 8;

/// A path under the test's hand: it says what each round trip delivers.
pub(super) struct Drive {
    pub(super) bbr: Bbr,
    pub(super) now: Time,
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// Round trip in ms, rate in bytes per second, and what is in flight after each frame.
    pub(super) rtt: u64,
    pub(super) rate: u64,
    pub(super) in_flight: u64,
    pub(super) limited: bool,
    pub(super) spread: Duration,
    /// What the frames acknowledge was sent before what was acknowledged already.
    pub(super) overtaken: bool,
}

impl Drive {
    /// A path of 1 MB/s and 100 ms: its product is 100 packets.
    pub(super) fn new() -> Self {
        Drive {
            bbr: Bbr::new(MTU, 1, Departures::default()),
            now: Time::from_nanos(1_000_000_000),
            delivered: 0,
            lost: 0,
            rtt: 100,
            rate: 1_000_000,
            in_flight: 100_000,
            limited: false,
            spread: Duration::ZERO,
            overtaken: false,
        }
    }

    /// The same, with some departures from the draft switched off.
    pub(super) fn without(switch_off: impl Fn(&mut Departures)) -> Self {
        let mut drive = Drive::new();
        switch_off(&mut drive.bbr.departures);
        drive
    }

    pub(super) fn in_state(state: State) -> Self {
        let mut drive = Drive::new();
        drive.until(state);
        drive
    }

    /// The way to `state`, as a path without surprises goes it.
    pub(super) fn until(&mut self, state: State) {
        for _ in 0..600 {
            if self.bbr.state == state {
                return;
            }
            self.in_flight = match self.bbr.state {
                State::Startup => 200_000,
                State::Drain if matches!(state, State::Drain | State::Down) => 200_000,
                _ => 95_000,
            };
            self.rtt = 100;
            self.frame();
        }
        panic!("not in {state:?}, but {:?}", self.bbr.state);
    }

    pub(super) fn frame(&mut self) {
        let round = self.rate * self.rtt / 1_000;
        let bytes = round / FRAMES;
        self.now = self.now + Duration::from_micros(self.rtt * 1_000 / FRAMES);
        self.delivered += bytes;
        let prior = self.delivered.saturating_sub(round);
        let rtt = Duration::from_millis(self.rtt);
        let event = AckEvent {
            now: self.now,
            acked: ByteCount(bytes),
            largest_sent_at: self.now - rtt,
            prior_in_flight: ByteCount(self.in_flight + bytes),
            in_flight: ByteCount(self.in_flight),
            delivered: ByteCount(self.delivered),
            rtt: RttSnapshot { latest: rtt, smoothed: rtt, variance: Duration::ZERO, min: rtt, spread: self.spread },
            round_trip: (!self.overtaken).then_some(rtt),
            received_at: self.now,
            rate: Some(RateSample {
                rate: Rate(self.rate),
                app_limited: self.limited,
                prior_delivered: ByteCount(prior),
                delivered: ByteCount(self.delivered - prior),
                lost: self.bbr.loss.lost_since(self.now - rtt),
                tx_in_flight: ByteCount(self.in_flight),
                interval: rtt,
            }),
            app_limited: self.limited,
        };
        self.bbr.on_ack(&event, &[]);
    }

    pub(super) fn rounds(&mut self, count: u64) {
        for _ in 0..count * FRAMES {
            self.frame();
        }
    }

    /// Runs `count` rounds, but stops when the state changes.
    pub(super) fn rounds_in(&mut self, state: State, count: u64) -> State {
        for _ in 0..count * FRAMES {
            self.frame();
            if self.bbr.state != state {
                break;
            }
        }
        self.bbr.state
    }

    /// `packets` that were sent a round trip ago, behind `flight` bytes, are lost.
    pub(super) fn lose(&mut self, packets: u64, flight: u64) {
        self.lost += packets * MTU.0;
        self.bbr.on_loss(&LossEvent {
            now: self.now,
            lost: ByteCount(packets * MTU.0),
            largest_sent_at: self.now - Duration::from_millis(self.rtt),
            in_flight: ByteCount(self.in_flight),
            tx_in_flight: ByteCount(flight),
            total_lost: ByteCount(self.lost),
            persistent: false,
        });
    }
}

/// In Up, with a queue that the round trips show and a first round of feedback.
pub(super) fn probing_beside_a_queue() -> Drive {
    let mut drive = Drive::in_state(State::Up);
    drive.rate = 1_300_000;
    drive.rtt = 130;
    drive.in_flight = 150_000;
    assert_eq!(drive.rounds_in(State::Up, 1), State::Up);
    drive
}
