//! What a link is like, written as briefly as a table needs it.

use super::Loss;
use super::recording::{BYTE, Recording};
use hawser_core::units::{ByteCount, Rate, Time};
use std::time::Duration;

/// The smallest default queue, bytes: twenty full packets.
const QUEUE_MIN: u64 = 30_000;
/// No queue is smaller, bytes: two full packets.
const QUEUE_LEAST: u64 = 3_000;
/// Bits in a megabit.
const MEGABIT: f64 = 1e6;

/// One direction of a link. A plain value; changed while the simulation runs.
#[derive(Clone, Debug)]
pub struct Way {
    /// How fast it sends, headers of IP and UDP included.
    pub rate: Rate,
    /// How fast it sends in the place of `rate`, as it was recorded.
    pub recorded: Option<Recording>,
    /// Nothing is sent: what waits is kept, and goes when this ends.
    pub stalled: bool,
    /// How long a datagram travels.
    pub delay: Duration,
    /// Added to the delay, uniform up to this.
    pub jitter: Duration,
    /// Jitter lets datagrams overtake each other.
    pub reorders: bool,
    /// What it loses.
    pub loss: Loss,
    /// The share of datagrams that arrive twice.
    pub duplicates: f64,
    /// The share of datagrams in which a bit is flipped, unseen by any checksum on the way.
    pub bit_errors: f64,
    /// Bytes that may wait; more are dropped at the tail.
    pub queue: ByteCount,
    /// The largest IP packet, bytes.
    pub mtu: usize,
    /// A larger one is refused by the sender's socket; else it vanishes.
    pub refuses: bool,
    /// Of a larger one that vanishes a router tells the sender (RFC 1191), quoting it.
    pub reports: bool,
    /// Whatever is sent vanishes.
    pub hole: bool,
}

/// A link between the local portal and the remote one. A plain value.
#[derive(Clone, Debug)]
pub struct LinkSpec {
    /// From the local portal to the remote one.
    pub up: Way,
    /// And back.
    pub down: Way,
    /// Its tier.
    pub metric: u16,
    /// The outer addresses are IPv6.
    pub ipv6: bool,
    /// Behind a NAT that forgets a binding after so long without traffic.
    pub nat: Option<Duration>,
    /// It leads through the pipes of this link, whose ways count then: a bottleneck that both share.
    pub through: Option<usize>,
    /// It is another socket of this link: of one configured link, over another IP version.
    pub socket_of: Option<usize>,
}

/// A symmetric link of `mbit` Mbit/s and a round trip of `rtt_ms`, with a buffer of one
/// bandwidth-delay product (of at least 20 packets).
pub fn link(mbit: f64, rtt_ms: f64) -> LinkSpec {
    let rate = mbit_rate(mbit);
    let rtt = Duration::from_secs_f64(rtt_ms / 1e3);
    let way = Way {
        rate,
        recorded: None,
        stalled: false,
        delay: rtt / 2,
        jitter: Duration::ZERO,
        reorders: false,
        loss: Loss::None,
        duplicates: 0.0,
        bit_errors: 0.0,
        queue: rate.bytes_in(rtt).max(ByteCount(QUEUE_MIN)),
        mtu: 1500,
        refuses: false,
        reports: false,
        hole: false,
    };
    LinkSpec { up: way.clone(), down: way, metric: 0, ipv6: false, nat: None, through: None, socket_of: None }
}

/// This many Mbit/s.
pub fn mbit_rate(mbit: f64) -> Rate {
    Rate::from_bits((mbit * MEGABIT) as u64)
}

/// This many ms.
pub fn millis(ms: f64) -> Duration {
    Duration::from_secs_f64(ms / 1e3)
}

impl Way {
    /// The work that it does from one moment to another, as [`Recording`] counts it.
    pub fn work(&self, from: Time, to: Time) -> u128 {
        match &self.recorded {
            _ if self.stalled => 0,
            Some(recorded) => recorded.work(from, to),
            None => u128::from(self.rate.0) * to.since(from).as_nanos(),
        }
    }

    /// When so much work is done; `Time::NEVER` where the rate is zero.
    pub fn finish(&self, from: Time, work: u128) -> Time {
        match &self.recorded {
            _ if self.stalled => Time::NEVER,
            Some(recorded) => recorded.finish(from, work),
            None if self.rate == Rate::ZERO => Time::NEVER,
            None => from + Duration::from_nanos(work.div_ceil(u128::from(self.rate.0)) as u64),
        }
    }

    /// The bytes that it could carry from one moment to another, as it is now.
    pub fn carries(&self, from: Time, to: Time) -> ByteCount {
        ByteCount((self.work(from, to) / BYTE) as u64)
    }

    /// Follows a recording, with a buffer of `queue_ms` at its mean rate (of at least two full packets).
    pub fn follow(&mut self, recording: Recording, queue_ms: f64) {
        self.rate = recording.mean();
        self.queue = self.rate.bytes_in(millis(queue_ms)).max(ByteCount(QUEUE_LEAST));
        self.recorded = Some(recording);
    }

    /// Sends at `mbit` Mbit/s from now on, whatever was recorded.
    pub fn set_rate(&mut self, mbit: f64) {
        (self.rate, self.recorded) = (mbit_rate(mbit), None);
    }
}

impl LinkSpec {
    /// Changes the way to the remote portal.
    pub fn up(mut self, change: impl FnOnce(&mut Way)) -> Self {
        change(&mut self.up);
        self
    }

    /// Changes the way from the remote portal.
    pub fn down(mut self, change: impl FnOnce(&mut Way)) -> Self {
        change(&mut self.down);
        self
    }

    /// Changes both ways.
    pub fn both(self, change: impl Fn(&mut Way)) -> Self {
        self.up(&change).down(&change)
    }

    /// Loses this share at random, both ways.
    pub fn loss(self, share: f64) -> Self {
        self.both(|way| way.loss = Loss::Random(share))
    }

    /// Loses in bursts, both ways: see [`Loss::Bursts`].
    pub fn bursts(self, enter: f64, leave: f64) -> Self {
        self.both(|way| way.loss = Loss::Bursts { enter, leave })
    }

    /// Varies its delay by up to this many ms, in order.
    pub fn jitter(self, ms: f64) -> Self {
        self.both(|way| way.jitter = millis(ms))
    }

    /// Varies its delay by up to this many ms; datagrams overtake each other.
    pub fn reordering(self, ms: f64) -> Self {
        self.jitter(ms).both(|way| way.reorders = true)
    }

    /// Delivers this share twice.
    pub fn duplicates(self, share: f64) -> Self {
        self.both(|way| way.duplicates = share)
    }

    /// Has a buffer of this many ms at its rate.
    pub fn queue_ms(self, ms: f64) -> Self {
        self.both(|way| way.queue = way.rate.bytes_in(millis(ms)).max(ByteCount(QUEUE_LEAST)))
    }

    /// Carries IP packets of at most this many bytes.
    pub fn mtu(self, bytes: usize) -> Self {
        self.both(|way| way.mtu = bytes)
    }

    /// Of this tier.
    pub fn metric(mut self, metric: u16) -> Self {
        self.metric = metric;
        self
    }

    /// Over IPv6.
    pub fn ipv6(mut self) -> Self {
        self.ipv6 = true;
        self
    }

    /// Shares the bottleneck of that link.
    pub fn through(mut self, link: usize) -> Self {
        self.through = Some(link);
        self
    }

    /// Is the socket for another IP version of that link, whose pipes it leads through.
    pub fn socket_of(mut self, link: usize) -> Self {
        self.socket_of = Some(link);
        self.through(link)
    }

    /// Behind a NAT that forgets a binding after this many seconds of silence.
    pub fn nat(mut self, seconds: u64) -> Self {
        self.nat = Some(Duration::from_secs(seconds));
        self
    }
}
