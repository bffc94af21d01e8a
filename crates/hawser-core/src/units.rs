//! Numbers that must not be mixed: time, sizes, rates and the names of things.

use blake2::{Blake2s256, Digest};
use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::Duration;

/// Nanoseconds in a second.
const NANOS_PER_SEC: u64 = 1_000_000_000;

/// A point on the caller's monotonic clock, in nanoseconds since an epoch of the caller's choice.
/// The zero value is that epoch. A plain number: copy it freely.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(u64);

impl Time {
    /// The caller's epoch.
    pub const ZERO: Time = Time(0);
    /// Later than any deadline.
    pub const NEVER: Time = Time(u64::MAX);

    /// From nanoseconds since the caller's epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Time(nanos)
    }

    /// Nanoseconds since the caller's epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Microseconds since the caller's epoch, as acknowledgements carry them.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// How long after `earlier` this is; zero when it is not after it (a clock never runs back here).
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, rhs: Duration) -> Time {
        Time(self.0.saturating_add(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Time {
    type Output = Time;
    fn sub(self, rhs: Duration) -> Time {
        Time(self.0.saturating_sub(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// A number of bytes. Zero by default; arithmetic saturates at both ends. A plain number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ByteCount(pub u64);

impl ByteCount {
    /// No bytes.
    pub const ZERO: ByteCount = ByteCount(0);
    /// More bytes than any window.
    pub const MAX: ByteCount = ByteCount(u64::MAX);

    /// This many bytes times `factor`, rounded towards zero; `factor` must not be negative.
    pub fn scale(self, factor: f64) -> ByteCount {
        ByteCount((self.0 as f64 * factor) as u64)
    }
}

impl Add for ByteCount {
    type Output = ByteCount;
    fn add(self, rhs: ByteCount) -> ByteCount {
        ByteCount(self.0.saturating_add(rhs.0))
    }
}

impl Sub for ByteCount {
    type Output = ByteCount;
    fn sub(self, rhs: ByteCount) -> ByteCount {
        ByteCount(self.0.saturating_sub(rhs.0))
    }
}

impl AddAssign for ByteCount {
    fn add_assign(&mut self, rhs: ByteCount) {
        *self = *self + rhs;
    }
}

impl SubAssign for ByteCount {
    fn sub_assign(&mut self, rhs: ByteCount) {
        *self = *self - rhs;
    }
}

/// A rate in bytes per second. Zero means that nothing is known or nothing flows. A plain number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Rate(pub u64);

impl Rate {
    /// No flow.
    pub const ZERO: Rate = Rate(0);

    /// `bytes` in `interval`; zero when the interval is empty.
    pub fn of(bytes: ByteCount, interval: Duration) -> Rate {
        let nanos = interval.as_nanos();
        if nanos == 0 {
            return Rate::ZERO;
        }
        let rate = u128::from(bytes.0) * u128::from(NANOS_PER_SEC) / nanos;
        Rate(u64::try_from(rate).unwrap_or(u64::MAX))
    }

    /// Bits per second to a rate.
    pub const fn from_bits(bits_per_second: u64) -> Rate {
        Rate(bits_per_second / 8)
    }

    /// Bits per second.
    pub const fn as_bits(self) -> u64 {
        self.0.saturating_mul(8)
    }

    /// The time that `bytes` take at this rate; forever (`Duration::MAX`) at rate zero.
    pub fn time_for(self, bytes: ByteCount) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let nanos = u128::from(bytes.0) * u128::from(NANOS_PER_SEC) / u128::from(self.0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The bytes that pass in `interval`.
    pub fn bytes_in(self, interval: Duration) -> ByteCount {
        let bytes = u128::from(self.0) * interval.as_nanos() / u128::from(NANOS_PER_SEC);
        ByteCount(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// This rate times `factor`, which must not be negative.
    pub fn scale(self, factor: f64) -> Rate {
        Rate((self.0 as f64 * factor) as u64)
    }
}

/// A packet number: per path and direction, never used twice. Zero is the first. A plain number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PacketNumber(pub u64);

impl PacketNumber {
    /// The number after this one.
    pub fn next(self) -> PacketNumber {
        PacketNumber(self.0 + 1)
    }
}

/// The name of a path within a session, never used again under one key. Its lowest bit says which
/// side opened it. A plain number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PathId(pub u32);

/// Names a set of receive keys of one peer, never used again within a portal's life.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct KeyId(pub u64);

/// What a label stands for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Owner {
    /// Whose session.
    pub peer: PeerId,
    /// Under which keys.
    pub key: KeyId,
    /// On which path.
    pub path: PathId,
}

/// The driver's name of a link (or of a listening socket). A plain number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct LinkId(pub u16);

/// A configured link: its sockets, one for each IP version, share it, and between them keep one path.
/// A plain number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct LinkGroup(pub u16);

/// What a configured link is called, as both portals tell it by: the first eight bytes of its name's BLAKE2s-256. Zero:
/// it has no name. A plain number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct LinkTag(pub u64);

impl LinkTag {
    /// The tag of a link of this name.
    pub fn of(name: &str) -> LinkTag {
        let digest = Blake2s256::digest(name.as_bytes());
        LinkTag(digest.first_chunk().map_or(0, |first| u64::from_be_bytes(*first)))
    }
}

/// The index of a configured peer. A plain number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PeerId(pub u32);

/// Where a path starts whose link is known to carry something to another place (`policy::careful_start`). A plain
/// value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Start {
    /// At a part of what it carried before the other place fell silent.
    #[default]
    Careful,
    /// At what it carries, once what waits at the other place has come.
    Beside,
    /// At what it carries, all of which is this place's now.
    Known,
}

/// Explicit congestion notification codepoint of an outer or inner IP header (RFC 3168 section 5).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// 00: not ECN-capable.
    #[default]
    NotEct,
    /// 10.
    Ect0,
    /// 01.
    Ect1,
    /// 11: congestion experienced.
    Ce,
}

impl Ecn {
    /// From the low two bits of the traffic class.
    pub const fn from_bits(bits: u8) -> Ecn {
        match bits & 0b11 {
            0b00 => Ecn::NotEct,
            0b01 => Ecn::Ect1,
            0b10 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// The low two bits of the traffic class.
    pub const fn bits(self) -> u8 {
        match self {
            Ecn::NotEct => 0b00,
            Ecn::Ect1 => 0b01,
            Ecn::Ect0 => 0b10,
            Ecn::Ce => 0b11,
        }
    }
}

/// Randomness as an argument: the driver gives the system's, a test a seeded one.
pub trait Random {
    /// Fills `bytes` with uniformly random bytes fit for keys.
    fn fill(&mut self, bytes: &mut [u8]);

    /// A uniformly random number.
    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }
}

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_and_its_times_agree() {
        let rate = Rate::from_bits(50_000_000);
        assert_eq!(rate.time_for(ByteCount(6_250)), Duration::from_millis(1));
        assert_eq!(rate.bytes_in(Duration::from_millis(1)), ByteCount(6_250));
        assert_eq!(Rate::of(ByteCount(6_250), Duration::from_millis(1)), rate);
        assert_eq!(Rate::ZERO.time_for(ByteCount(1)), Duration::MAX);
    }

    #[test]
    fn time_never_runs_back() {
        assert_eq!(Time::ZERO.since(Time::from_nanos(5)), Duration::ZERO);
        assert_eq!(Time::NEVER + Duration::from_secs(1), Time::NEVER);
    }

    #[test]
    fn ecn_bits_round_trip() {
        for bits in 0..4 {
            assert_eq!(Ecn::from_bits(bits).bits(), bits);
        }
    }
}
