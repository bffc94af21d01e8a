//! What a path that is not active may send, whatever asks for more: a token bucket in bytes of IP packets.
//!
//! Challenges, responses, acknowledgements and pings of such a path all go through it. So no rule that answers a packet
//! by a packet can fill a link, however many of them a link kept and delivers at once. A path that returned from suspicion
//! has it whole again.

use super::constants::{INACTIVE_BURST, INACTIVE_RATE};
use crate::units::{ByteCount, Rate, Time};
use std::time::Duration;

/// The bucket of one path. Full at first; one path owns it.
#[derive(Clone, Debug)]
pub struct InactiveQuota {
    /// When the bucket would be, or was, full.
    full_at: Time,
}

impl Default for InactiveQuota {
    fn default() -> Self {
        InactiveQuota { full_at: Time::ZERO }
    }
}

const RATE: Rate = Rate(INACTIVE_RATE);

impl InactiveQuota {
    /// Bytes that may go now.
    pub fn room(&self, now: Time) -> ByteCount {
        ByteCount(INACTIVE_BURST) - RATE.bytes_in(self.full_at.since(now)).min(ByteCount(INACTIVE_BURST))
    }

    /// When `bytes` may go: `now`, or later.
    pub fn ready_at(&self, now: Time, bytes: ByteCount) -> Time {
        let lacking = bytes.min(ByteCount(INACTIVE_BURST)) - self.room(now).min(bytes);
        // A nanosecond on top, because both divisions round down.
        if lacking == ByteCount::ZERO { now } else { now + RATE.time_for(lacking) + Duration::from_nanos(1) }
    }

    /// `bytes` went.
    pub fn spend(&mut self, now: Time, bytes: ByteCount) {
        self.full_at = self.full_at.max(now) + RATE.time_for(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);

    proptest! {
        #[test]
        fn whoever_asks_however_often_gets_no_more_than_ten_kilobits_in_any_second(
            asks in proptest::collection::vec((0u64..200_000, 40u64..400), 1..300),
        ) {
            let (mut quota, mut now, mut sent) = (InactiveQuota::default(), Time::from_nanos(1), Vec::new());
            for (micros, bytes) in asks {
                now = now + Duration::from_micros(micros);
                if quota.room(now) >= ByteCount(bytes) {
                    quota.spend(now, ByteCount(bytes));
                    sent.push((now, bytes));
                } else {
                    let ready = quota.ready_at(now, ByteCount(bytes));
                    prop_assert!(ready > now && quota.room(ready) >= ByteCount(bytes), "{ready:?} is when it may go");
                }
            }
            for (from, _) in &sent {
                let within = sent.iter().filter(|(at, _)| at >= from && at.since(*from) < SECOND);
                let bits: u64 = within.map(|(_, bytes)| bytes * 8).sum();
                prop_assert!(bits <= 10_000, "{bits} bits in the second from {from:?}");
            }
        }
    }
}
