//! What can be set on one way of an emulated link.

use std::time::Duration;

use super::codel::Codel;
use super::jitter::Jitter;
use super::loss::Loss;
use super::medium::Medium;
use super::trace::Trace;
use crate::clock::SECOND_NS;

/// Bits in a byte.
const BYTE_BITS: u64 = 8;
/// Bits per second in a megabit per second.
const MEGABIT: f64 = 1e6;
/// Packets a queue holds unless told: what Linux gives an Ethernet interface (txqueuelen).
const DEFAULT_QUEUE_PACKETS: u32 = 1000;
/// The highest rate whose times fit: 1 Tbit/s. Beyond, a packet's time rounds to nothing.
const MAX_RATE: f64 = 1e12;

/// Which way a packet goes. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From end a to end b.
    AToB,
    /// From end b to end a.
    BToA,
}

impl Way {
    /// Both, from a to b first.
    pub const BOTH: [Self; 2] = [Self::AToB, Self::BToA];

    pub(crate) const fn index(self) -> usize {
        match self {
            Self::AToB => 0,
            Self::BToA => 1,
        }
    }
}

/// A bit rate above zero. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    /// A rate in Mbit/s, brought into 1 bit/s to 1 Tbit/s.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    pub fn mbit(megabits: f64) -> Self {
        Self((megabits * MEGABIT).clamp(1.0, MAX_RATE).round() as u64)
    }

    /// Bits per second.
    #[must_use]
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// How long this many bytes take, in nanoseconds.
    pub(crate) fn time_of(self, bytes: u64) -> u64 {
        let nanos = u128::from(bytes) * u128::from(BYTE_BITS * SECOND_NS) / u128::from(self.0);
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }

    /// How many bytes go in a time.
    #[must_use]
    pub fn bytes_in(self, time: Duration) -> u64 {
        let bytes = time.as_nanos() * u128::from(self.0) / u128::from(BYTE_BITS * SECOND_NS);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// A probability from 0 to 1. Zero by default. Plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Probability(f64);

impl Probability {
    /// Never.
    pub const NEVER: Self = Self(0.0);
    /// Always.
    pub const ALWAYS: Self = Self(1.0);

    /// Parses a fraction; None where it is not within 0 and 1.
    #[must_use]
    pub fn new(fraction: f64) -> Option<Self> {
        (0.0..=1.0).contains(&fraction).then_some(Self(fraction))
    }

    /// Parses a percentage; None where it is not within 0 and 100.
    #[must_use]
    pub fn percent(percent: f64) -> Option<Self> {
        Self::new(percent / 100.0)
    }

    /// The fraction.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// How much waits before the rate, the packet being sent included; what would exceed it is dropped.
/// Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueDepth {
    /// Bytes, layer-2 overhead not counted; at least one packet always fits.
    Bytes(u64),
    /// Packets, at least one.
    Packets(u32),
    /// What the rate (of a trace, its mean) sends in this time; without a rate, the default.
    Time(Duration),
}

/// Packets that are held back, so that later ones overtake them. Plain data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// Which share of them, at random.
    pub share: Probability,
    /// For how long, beside their delay.
    pub by: Duration,
}

/// One way of a link. By default it carries everything at once: no rate, no delay, no loss.
/// Plain data.
#[derive(Clone, Debug)]
pub struct Direction {
    /// Bits per second of IP packets with `overhead`; None is unlimited. On a medium, while it is this way's turn.
    pub rate: Option<Rate>,
    /// Recorded delivery opportunities, which take the place of `rate`. Set anew, it begins anew.
    pub trace: Option<Trace>,
    /// What this way shares with others: it sends, at `rate`, only when it is its turn. Is set when the link is made.
    pub medium: Option<Medium>,
    /// Bytes each packet takes beside its IP bytes (Ethernet 14, or 38 with preamble and gap).
    pub overhead: u32,
    /// The queue before the rate.
    pub queue: QueueDepth,
    /// A full queue drops any of its packets, not the one that comes: else whoever sends in step with the queue's
    /// departures loses nothing, or all (Floyd and Jacobson: On Traffic Phase Effects in Packet-Switched
    /// Gateways, 1992).
    pub random_drop: bool,
    /// CoDel as packets leave the queue, beside the limit of `queue`.
    pub codel: Option<Codel>,
    /// From the last bit sent to the packet's arrival.
    pub delay: Duration,
    /// How the delay varies.
    pub jitter: Option<Jitter>,
    /// What is lost after the queue: it took its time on the wire.
    pub loss: Loss,
    /// How often a packet arrives twice.
    pub duplicate: Probability,
    /// How often one bit of a packet is flipped, anywhere but in its version. Checksums stay as they were: whoever
    /// receives it drops it.
    pub corrupt: Probability,
    /// Which packets are held back.
    pub reorder: Option<Reorder>,
    /// Packets of more IP bytes vanish without a word: a hole for large packets.
    pub longest: Option<u32>,
    /// Where chance starts. Equal seeds and equal traffic give equal fates.
    pub seed: u64,
}

impl Default for Direction {
    fn default() -> Self {
        Self {
            rate: None,
            trace: None,
            medium: None,
            overhead: 0,
            queue: QueueDepth::Packets(DEFAULT_QUEUE_PACKETS),
            random_drop: false,
            codel: None,
            delay: Duration::ZERO,
            jitter: None,
            loss: Loss::None,
            duplicate: Probability::NEVER,
            corrupt: Probability::NEVER,
            reorder: None,
            longest: None,
            seed: 0,
        }
    }
}

impl Direction {
    /// A way with a rate in Mbit/s, a delay and a queue of so much time.
    #[must_use]
    pub fn shaped(megabits: f64, delay: Duration, queue: Duration) -> Self {
        Self { rate: Some(Rate::mbit(megabits)), queue: QueueDepth::Time(queue), delay, ..Self::default() }
    }

    /// There, and back: the same, with a seed of its own for each.
    #[must_use]
    pub fn both_ways(&self) -> [Self; 2] {
        [self.clone(), Self { seed: self.seed.wrapping_add(1), ..self.clone() }]
    }

    /// What it carries on average: its trace's mean, or its rate.
    #[must_use]
    pub fn mean_rate(&self) -> Option<Rate> {
        self.trace.as_ref().map(Trace::mean_rate).or(self.rate)
    }

    /// Whether its settings go together.
    pub(crate) fn fits(&self) -> Result<(), &'static str> {
        match self.trace.is_some() && self.medium.is_some() {
            true => Err("a way on a medium has a rate, no trace"),
            false => Ok(()),
        }
    }

    /// Whether a packet finds room beside what waits.
    pub(crate) fn has_room(&self, waiting: u32, waiting_bytes: u64, length: u64) -> bool {
        match (self.queue, self.mean_rate()) {
            _ if waiting == 0 => true,
            (QueueDepth::Bytes(most), _) => waiting_bytes + length <= most,
            (QueueDepth::Packets(most), _) => waiting < most,
            (QueueDepth::Time(time), Some(rate)) => {
                let overhead = u64::from(self.overhead);
                let all = waiting_bytes + length + overhead * u64::from(waiting + 1);
                all <= rate.bytes_in(time)
            }
            (QueueDepth::Time(_), None) => waiting < DEFAULT_QUEUE_PACKETS,
        }
    }
}
