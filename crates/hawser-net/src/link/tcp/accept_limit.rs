//! How many connections a second a listener accepts, in all and from each address.
//!
//! A connection costs little, but thousands a second would keep the packet thread busy with nothing else.
//! 1. [`AcceptLimit::pause_until`] bounds them in all; the others wait in the kernel's backlog, and are refused when
//!    that is full.
//! 2. [`AcceptLimit::admits`] bounds them by address; what is above that is closed at once.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::super::token_bucket::{Pace, TokenBucket};
use super::PENDING_MAX;

/// Connections accepted in all. A thousand a second cost the thread a hundredth of its time.
const ALL: Pace = Pace { interval: Duration::from_millis(1), burst: PENDING_MAX as u32 };
/// From one address: a peer opens one for each of its links, and again when they break; several share an address behind
/// a NAT.
const ONE: Pace = Pace { interval: Duration::from_millis(50), burst: 2 * PENDING_MAX as u32 };
/// Addresses that are remembered. Where more come at once, the others share one bucket.
const ADDRESSES_MAX: usize = 256;
/// How long no connection is accepted when the limit of all is reached.
const PAUSE: Duration = Duration::from_millis(50);
/// And when the process, or the system, has no descriptor or memory left.
pub(super) const EXHAUSTED_PAUSE: Duration = Duration::from_secs(1);
/// The prefix length of an IPv6 site (RFC 6177): one bucket for all of it.
const V6_PREFIX: u32 = 64;

/// A listener's limits. All buckets are full at first; its link owns it.
#[derive(Debug, Default)]
pub(super) struct AcceptLimit {
    all: TokenBucket,
    by_address: HashMap<IpAddr, TokenBucket>,
    others: TokenBucket,
    /// Connections that were closed at once.
    pub(super) refused: u64,
}

impl AcceptLimit {
    /// Step 1: until when no connection is accepted; none: one may be, now.
    pub(super) fn pause_until(&mut self, now: Instant) -> Option<Instant> {
        (!self.all.take(ALL, now)).then(|| now + PAUSE)
    }

    /// Step 2: whether a connection from there may stay.
    pub(super) fn admits(&mut self, from: IpAddr, now: Instant) -> bool {
        let from = site(from);
        if self.by_address.len() >= ADDRESSES_MAX && !self.by_address.contains_key(&from) {
            self.by_address.retain(|_, bucket| !bucket.is_full(now));
        }
        let room = self.by_address.len() < ADDRESSES_MAX;
        let bucket = match self.by_address.get_mut(&from) {
            Some(bucket) => bucket,
            None if room => self.by_address.entry(from).or_default(),
            None => &mut self.others,
        };
        let admitted = bucket.take(ONE, now);
        self.refused += u64::from(!admitted);
        admitted
    }
}

/// The address of a site: an IPv4 address, an IPv6 /64.
fn site(address: IpAddr) -> IpAddr {
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
        let (mut limit, start) = (AcceptLimit::default(), Instant::now());
        let count =
            |limit: &mut AcceptLimit, from: &str, now| (0..1_000).filter(|_| limit.admits(address(from), now)).count();
        assert_eq!(count(&mut limit, "192.0.2.1", start), 128);
        assert_eq!(count(&mut limit, "192.0.2.2", start), 128);
        assert_eq!(count(&mut limit, "2001:db8::1", start), 128);
        assert_eq!(count(&mut limit, "2001:db8::2", start), 0, "of the same /64");
        assert_eq!(count(&mut limit, "192.0.2.1", start + Duration::from_secs(1)), 20, "20 a second");
        assert_eq!(limit.refused, 5 * 1_000 - 3 * 128 - 20);
    }

    #[test]
    fn many_addresses_take_no_memory_and_share() {
        let (mut limit, now) = (AcceptLimit::default(), Instant::now());
        let admitted = (0..100_000_u32).filter(|n| limit.admits(IpAddr::V4((*n).into()), now)).count();
        assert_eq!((admitted, limit.by_address.len()), (ADDRESSES_MAX + 128, ADDRESSES_MAX));
        assert!(limit.admits(address("192.0.2.1"), now + Duration::from_secs(10)), "full buckets are forgotten");
    }

    #[test]
    fn in_all_a_thousand_a_second_are_taken() {
        let (mut limit, start) = (AcceptLimit::default(), Instant::now());
        let mut taken = 0;
        let (mut now, end) = (start, start + Duration::from_secs(1));
        while now < end {
            match limit.pause_until(now) {
                None => taken += 1,
                Some(until) => now = until,
            }
        }
        assert!((1_000..=1_100).contains(&taken), "{taken}");
    }
}
