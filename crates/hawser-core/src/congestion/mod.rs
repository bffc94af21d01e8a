//! Congestion control behind one trait, one controller a path.
//!
//! The path calls, in this order: `on_sent` for every batch; for every acknowledgement frame
//! first `on_loss` (when packets were declared lost), then `on_ack`; `on_ecn` when the peer's CE
//! count rose; `on_mtu` when the datagram size changed. Then it reads `window` and `pacing_rate`.
//! A controller has no clock and no random source of its own.

mod aimd;
mod balia;
mod bbr;
mod coupled;
mod cubic;
mod hystart;
mod kernel;
mod lia;
mod newreno;
mod olia;
pub mod pacer;
pub mod sampler;
#[cfg(test)]
mod testbench;
#[cfg(test)]
mod tests;

pub use bbr::{Bbr, Departures};
pub(crate) use bbr::{FULL_PIPE_GROWTH, HEADROOM};
pub use cubic::Cubic;
pub use kernel::Kernel;

use crate::units::{ByteCount, Rate, Time};
use aimd::Aimd;
use balia::Balia;
use lia::Lia;
use newreno::NewReno;
use olia::Olia;
use std::time::Duration;

/// Packets of the initial window (RFC 9002 section 7.2, RFC 6928 section 2).
const INITIAL_WINDOW_PACKETS: u64 = 10;
/// Bytes that cap the initial window when datagrams are large (RFC 9002 section 7.2).
const INITIAL_WINDOW_CAP: ByteCount = ByteCount(14_720);
/// Packets of the least window of NewReno and CUBIC (RFC 9002 section 7.2, kMinimumWindow).
const MIN_WINDOW_PACKETS: u64 = 2;
/// The window per round trip is sent a little faster than evenly (RFC 9002 section 7.7).
const PACING_GAIN: f64 = 1.25;
/// In slow start the window doubles every round trip, and the rate must keep up with it.
const SLOW_START_PACING_GAIN: f64 = 2.0;

/// Which controller a path runs, as configured. Has no default here: the configuration names one.
/// A plain name.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// RFC 9002 section 7 with HyStart++.
    NewReno,
    /// RFC 9438 with HyStart++.
    Cubic,
    /// draft-ietf-ccwg-bbr (BBRv3), with [`Departures`].
    Bbr,
    /// RFC 6356, coupled.
    Lia,
    /// draft-khalili-mptcp-congestion-control, coupled.
    Olia,
    /// draft-walid-mptcp-congestion-control, coupled.
    Balia,
    /// The kernel's, below a stream: never configured, it follows from the transport.
    Kernel,
}

/// A new controller for a path whose largest datagram is `mtu` bytes. `seed` decides the random
/// parts of BBR's probe times; give every path another, so that paths do not probe in step. `departures` are BBR's too.
pub fn build(kind: Kind, mtu: ByteCount, seed: u64, departures: Departures) -> Box<dyn Controller> {
    match kind {
        Kind::NewReno => Box::new(Aimd::new(NewReno, mtu)),
        Kind::Cubic => Box::new(Cubic::new(mtu)),
        Kind::Bbr => Box::new(Bbr::new(mtu, seed, departures)),
        Kind::Lia => Box::new(Aimd::new(Lia::new(), mtu)),
        Kind::Olia => Box::new(Aimd::new(Olia::new(), mtu)),
        Kind::Balia => Box::new(Aimd::new(Balia::new(), mtu)),
        Kind::Kernel => Box::new(Kernel::new(mtu)),
    }
}

/// `packets` datagrams of `mtu` bytes.
fn packets(packets: u64, mtu: ByteCount) -> ByteCount {
    ByteCount(mtu.0.saturating_mul(packets))
}

/// The initial window in bytes (RFC 9002 section 7.2).
fn initial_window(mtu: ByteCount) -> ByteCount {
    let least = packets(MIN_WINDOW_PACKETS, mtu);
    packets(INITIAL_WINDOW_PACKETS, mtu).min(INITIAL_WINDOW_CAP.max(least))
}

/// The pacing rate of a window-based controller: `window` per round trip, times the gain of its phase.
fn window_pacing(window: ByteCount, rtt: Duration, slow_start: bool) -> Rate {
    let gain = if slow_start { SLOW_START_PACING_GAIN } else { PACING_GAIN };
    Rate::of(window, rtt).scale(gain)
}

/// The path's round trip, as RFC 9002 section 5 keeps it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RttSnapshot {
    /// The latest sample.
    pub latest: Duration,
    /// Exponentially smoothed.
    pub smoothed: Duration,
    /// Mean deviation.
    pub variance: Duration,
    /// The least seen in the last ten seconds or so.
    pub min: Duration,
    /// What the path itself adds to that on the average, where packets overtake each other or come in clumps: the round
    /// trips are those of the fastest then. Zero where it is little.
    pub spread: Duration,
}

impl RttSnapshot {
    /// The round trip of an average packet on an empty path: what is in flight must last for so long.
    pub fn base(&self) -> Duration {
        self.min + self.spread
    }
}

/// One measurement of how fast the path delivers (draft-ietf-ccwg-bbr, section 4.1).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Delivered bytes over the longer of the send and the ack interval.
    pub rate: Rate,
    /// The sender had nothing to send during the sample: the rate is a lower bound.
    pub app_limited: bool,
    /// `delivered` at the time the newest acknowledged packet was sent.
    pub prior_delivered: ByteCount,
    /// Bytes delivered in the sample's interval.
    pub delivered: ByteCount,
    /// Bytes declared lost in the sample's interval.
    pub lost: ByteCount,
    /// Bytes in flight when the newest acknowledged packet was sent (itself included).
    pub tx_in_flight: ByteCount,
    /// The interval itself.
    pub interval: Duration,
}

/// What one acknowledgement frame newly acknowledged.
#[derive(Clone, Debug)]
pub struct AckEvent {
    /// The present.
    pub now: Time,
    /// Bytes newly acknowledged.
    pub acked: ByteCount,
    /// When the newest of them was sent.
    pub largest_sent_at: Time,
    /// Bytes in flight before this frame.
    pub prior_in_flight: ByteCount,
    /// Bytes in flight after it.
    pub in_flight: ByteCount,
    /// All bytes delivered on this path so far.
    pub delivered: ByteCount,
    /// The path's round trips, with this frame's.
    pub rtt: RttSnapshot,
    /// This frame's own, without what waited on the way back: none where its newest packet is older than one that was
    /// acknowledged before, or where it came another way.
    pub round_trip: Option<Duration>,
    /// When its newest packet arrived, on the peer's clock.
    pub received_at: Time,
    /// Delivery rate, when one could be taken.
    pub rate: Option<RateSample>,
    /// The sender did not fill the window when the newest of them was sent.
    pub app_limited: bool,
}

/// What was declared lost at one time.
#[derive(Clone, Debug)]
pub struct LossEvent {
    /// The present.
    pub now: Time,
    /// Bytes declared lost.
    pub lost: ByteCount,
    /// When the newest of them was sent: losses sent before the last reduction belong to it.
    pub largest_sent_at: Time,
    /// Bytes in flight after the loss.
    pub in_flight: ByteCount,
    /// Bytes in flight when the newest lost packet was sent.
    pub tx_in_flight: ByteCount,
    /// All bytes lost on this path so far.
    pub total_lost: ByteCount,
    /// Persistent congestion (RFC 9002 section 7.6): fall to the minimum.
    pub persistent: bool,
}

/// What the driver knows of a stream's socket. Plain data.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SocketState {
    /// How many bytes it takes before a queue builds in it.
    pub room: ByteCount,
    /// How fast it delivers, where the kernel knows.
    pub rate: Option<Rate>,
}

/// What coupled controllers know of each other. A plain value.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct PathSnapshot {
    /// The path's window.
    pub window: ByteCount,
    /// The same, averaged over some dozens of round trips.
    pub usual: ByteCount,
    /// Its smoothed round trip.
    pub rtt: Duration,
    /// Bytes delivered since its last loss, or between the two before it if that is more.
    pub between_losses: ByteCount,
}

/// A path's congestion controller. One path owns it; it is moved, never shared.
pub trait Controller: Send {
    /// `bytes` went out; `in_flight` counts them. `app_limited`: nothing more waits to be sent.
    fn on_sent(&mut self, now: Time, bytes: ByteCount, in_flight: ByteCount, app_limited: bool);
    /// An acknowledgement frame arrived. `siblings`: the `coupling` of the paths beside it, where this one
    /// `is_coupled`.
    fn on_ack(&mut self, ack: &AckEvent, siblings: &[PathSnapshot]);
    /// Packets were declared lost.
    fn on_loss(&mut self, loss: &LossEvent);
    /// The peer saw `marked` more CE marks; the newest acknowledged packet was sent at `sent_at`.
    fn on_ecn(&mut self, now: Time, marked: u64, sent_at: Time);
    /// The largest datagram changed.
    fn on_mtu(&mut self, mtu: ByteCount);
    /// A loss declared earlier turned out to be mere reordering or delay (RFC 9002 has none; as RFC 4015).
    fn on_spurious_loss(&mut self, now: Time);
    /// The path was idle, and now begins to carry what another one did: asked after of late, and never filled, it showed
    /// how it is without a queue.
    fn on_takeover(&mut self, _now: Time) {}
    /// Nothing was carried yet, and `rate` may be tried, at this round trip (`policy::careful_start`). Controllers that
    /// do not know how begin as ever.
    fn start_at(&mut self, _rate: Rate, _round_trip: Duration) {}
    /// The path is known to carry `rate` at this round trip: its own link does now, for the same sender
    /// ([`Start::Known`](crate::units::Start)); `filled`: that is all that it can. Whether it goes on at that. It does
    /// not where it would begin with as much anyway, unless the link was filled: that says that little is sent, and not
    /// how much could be; nor without a model of the rate.
    fn resume(&mut self, _now: Time, rate: Rate, round_trip: Duration, _filled: bool) -> bool {
        self.start_at(rate, round_trip);
        false
    }
    /// The driver looked at the path's socket, where that has a controller below; `in_flight` is the path's.
    fn on_socket(&mut self, _in_flight: ByteCount, _state: &SocketState) {}
    /// How many bytes may be in flight.
    fn window(&self) -> ByteCount;
    /// How fast to send; `None` before anything is known: the window and the round trip decide.
    fn pacing_rate(&self) -> Option<Rate>;
    /// The rate this controller believes that the path carries, for the scheduler and the user.
    fn bandwidth(&self) -> Option<Rate>;
    /// Whether it still looks for the path's rate by sending ever faster, and so fills its queue.
    fn is_ramping(&self) -> bool {
        false
    }
    /// How much what the path delivers changes from one half second to the next, on the average: a natural logarithm.
    /// `None` while that is not known.
    fn variation(&self) -> Option<f64> {
        None
    }
    /// Whether it wants to know its siblings.
    fn is_coupled(&self) -> bool {
        false
    }
    /// What its siblings are to know of it; `None` where it is alone, or knows nothing yet.
    fn coupling(&self) -> Option<PathSnapshot> {
        None
    }
    /// The configured name: `newreno`, `cubic`, `bbr`, `lia`, `olia`, `balia`; `kernel`.
    fn name(&self) -> &'static str;
}
