//! Who may come in: how many connections a listener takes in a second, and of each address.
//!
//! A connection costs little, but whoever opens thousands a second would have the packet thread do nothing else. So:
//! 1. [`Doors::rests_until`]: in all so many are taken a second; the rest wait in the kernel's queue, and then outside of it.
//! 2. [`Doors::admits`]: of each address so many; more are closed at once.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::PENDING_MAX;

/// Connections taken in all: one each so often, and so many at once. A thousand a second cost the thread a hundredth of its time.
const ANY: Pace = Pace { every: Duration::from_millis(1), burst: PENDING_MAX as u32 };
/// From one address: a peer opens one for each of its links, and again when they break; several share an address behind a NAT.
const ONE: Pace = Pace { every: Duration::from_millis(50), burst: 2 * PENDING_MAX as u32 };
/// Addresses that are remembered. Where more come at once, the others share one bucket.
const ADDRESSES_MAX: usize = 256;
/// Where nothing is left in all, the listener is left alone for so long.
const REST: Duration = Duration::from_millis(50);
/// Where the process, or the system, has no descriptor or memory left, for so long.
pub(super) const FULL_REST: Duration = Duration::from_secs(1);
/// Bits of an IPv6 address that one customer has (RFC 6177).
const V6_PREFIX: u32 = 64;

/// One in so long, and so many at once. Plain data.
#[derive(Debug, Clone, Copy)]
struct Pace {
    every: Duration,
    burst: u32,
}

/// A token bucket. Full at first.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: u32,
    /// Up to when tokens were given.
    given: Instant,
}

impl Bucket {
    fn new(pace: Pace, now: Instant) -> Bucket {
        Bucket { tokens: pace.burst, given: now }
    }

    fn take(&mut self, pace: Pace, now: Instant) -> bool {
        let gained = now.saturating_duration_since(self.given).as_micros() / pace.every.as_micros().max(1);
        if gained >= u128::from(pace.burst) {
            *self = Bucket::new(pace, now);
        } else {
            // Less than a burst.
            self.given += pace.every * gained as u32;
            self.tokens = (self.tokens + gained as u32).min(pace.burst);
        }
        let taken = self.tokens > 0;
        self.tokens -= u32::from(taken);
        taken
    }

    fn is_full(&self, pace: Pace, now: Instant) -> bool {
        now.saturating_duration_since(self.given) >= pace.every * pace.burst
    }
}

/// A listener's doors. Open at first; its link owns them.
#[derive(Debug)]
pub(super) struct Doors {
    any: Bucket,
    by_address: HashMap<IpAddr, Bucket>,
    others: Bucket,
    /// Connections that were closed at once.
    pub(super) refused: u64,
}

impl Doors {
    pub(super) fn new() -> Doors {
        let now = Instant::now();
        let (any, others) = (Bucket::new(ANY, now), Bucket::new(ONE, now));
        Doors { any, by_address: HashMap::new(), others, refused: 0 }
    }

    /// Step 1: until when no connection is taken; none: one may be, now.
    pub(super) fn rests_until(&mut self, now: Instant) -> Option<Instant> {
        (!self.any.take(ANY, now)).then(|| now + REST)
    }

    /// Step 2: whether a connection from there may stay.
    pub(super) fn admits(&mut self, from: IpAddr, now: Instant) -> bool {
        let from = customer(from);
        if self.by_address.len() >= ADDRESSES_MAX && !self.by_address.contains_key(&from) {
            self.by_address.retain(|_, bucket| !bucket.is_full(ONE, now));
        }
        let room = self.by_address.len() < ADDRESSES_MAX;
        let bucket = match self.by_address.get_mut(&from) {
            Some(bucket) => bucket,
            None if room => self.by_address.entry(from).or_insert(Bucket::new(ONE, now)),
            None => &mut self.others,
        };
        let admitted = bucket.take(ONE, now);
        self.refused += u64::from(!admitted);
        admitted
    }
}

/// What one customer of a provider's has: an IPv4 address, a /64.
fn customer(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() >> (128 - V6_PREFIX) << (128 - V6_PREFIX)).into()),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn one_address_has_its_share_and_others_have_theirs() {
        let (mut doors, start) = (Doors::new(), Instant::now());
        let count =
            |doors: &mut Doors, from: &str, now| (0..1_000).filter(|_| doors.admits(address(from), now)).count();
        assert_eq!(count(&mut doors, "192.0.2.1", start), 128);
        assert_eq!(count(&mut doors, "192.0.2.2", start), 128);
        assert_eq!(count(&mut doors, "2001:db8::1", start), 128);
        assert_eq!(count(&mut doors, "2001:db8::2", start), 0, "of the same /64");
        assert_eq!(count(&mut doors, "192.0.2.1", start + Duration::from_secs(1)), 20, "20 a second");
        assert_eq!(doors.refused, 5 * 1_000 - 3 * 128 - 20);
    }

    #[test]
    fn many_addresses_take_no_memory_and_share() {
        let (mut doors, now) = (Doors::new(), Instant::now());
        let admitted = (0..100_000_u32).filter(|n| doors.admits(IpAddr::V4((*n).into()), now)).count();
        assert_eq!((admitted, doors.by_address.len()), (ADDRESSES_MAX + 128, ADDRESSES_MAX));
        assert!(doors.admits(address("192.0.2.1"), now + Duration::from_secs(10)), "those that rested are forgotten");
    }

    #[test]
    fn in_all_a_thousand_a_second_are_taken() {
        let (mut doors, start) = (Doors::new(), Instant::now());
        let mut taken = 0;
        let (mut now, end) = (start, start + Duration::from_secs(1));
        while now < end {
            match doors.rests_until(now) {
                None => taken += 1,
                Some(until) => now = until,
            }
        }
        assert!((1_000..=1_100).contains(&taken), "{taken}");
    }
}
