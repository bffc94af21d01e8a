//! Every inner packet, from the portal that was given it to the one that delivers it.
//!
//! 1. [`Account::give`] writes a packet whose bytes follow from its name.
//! 2. [`Account::take`]: it came to the right portal, unchanged, once, and not later than [`PATIENCE`] after it was
//!    given.
//! 3. [`Account::excuse`]: a portal that forgets everything takes what is under way with it.
//! 4. [`Account::close`]: at rest nothing is under way, and what did not come is lost.

use super::talk::CALL;
use crate::host::packets::{self, Pattern, UDP_HEADERS};
use crate::world::LOCAL;
use hawser_core::units::Time;
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::time::Duration;

/// Bytes of a packet's name, behind its headers.
const NAME: usize = 8;
/// The least inner packet.
pub const LEAST: usize = UDP_HEADERS + NAME;
/// A packet that comes has come by then: it waits 10 s for a path at most (`session::constants::QUEUED_FOR`), is sent
/// six times, and a link that keeps what it holds gives it back after 30 s.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// A packet that a portal was given.
struct Given {
    at: Time,
    len: u16,
    flow: u16,
    came: bool,
    excused: bool,
}

/// The packets of one direction since the account was last closed.
#[derive(Default)]
struct Direction {
    /// The name of the first of these.
    first: u64,
    given: VecDeque<Given>,
}

/// What became of the packets of one direction. Zero at first. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Given to a portal.
    pub given: u64,
    /// Delivered by the other.
    pub came: u64,
    /// Not delivered, by portals that ran all the while.
    pub lost: u64,
    /// Not delivered, under way when a portal was killed or its peer was removed.
    pub forgotten: u64,
    /// Not given, as the portal did not run.
    pub away: u64,
    /// The longest that one waited.
    pub longest: Duration,
}

/// All of it. Empty at first; the year owns it, and the hosts write into it.
#[derive(Default)]
pub struct Account {
    pattern: Pattern,
    directions: [Direction; 2],
    /// By the side that they were given to.
    pub totals: [Totals; 2],
    expected: Vec<u8>,
    /// When the last packet of a call came, by the side that it was given to.
    pub last_call: [Time; 2],
    /// Who measures the gaps of calls now.
    pub gauges: Vec<Gauge>,
}

/// The longest time without a packet of a call, in either direction. Made where it is to begin; the account owns it.
#[derive(Copy, Clone, Debug)]
pub struct Gauge {
    /// For which fault.
    pub fault: u64,
    last: [Time; 2],
    longest: Duration,
}

impl Gauge {
    /// One that begins at `from`.
    pub fn new(fault: u64, from: Time) -> Self {
        Gauge { fault, last: [from; 2], longest: Duration::ZERO }
    }

    fn note(&mut self, now: Time, side: usize) {
        // It may begin later than now.
        if now > self.last[side] {
            self.longest = self.longest.max(now.since(self.last[side]));
            self.last[side] = now;
        }
    }

    /// The longest gap until now.
    pub fn read(mut self, now: Time) -> Duration {
        (0..2).for_each(|side| self.note(now, side));
        self.longest
    }
}

/// The address of the host behind the portal of a side.
pub fn address(side: usize) -> Ipv4Addr {
    crate::situation::address(side, 10)
}

impl Account {
    /// Step 1. The bytes that the packet has.
    pub fn give(&mut self, now: Time, side: usize, flow: u16, len: usize, out: &mut [u8]) -> usize {
        let len = len.max(LEAST);
        let direction = &mut self.directions[side];
        let name = direction.first + direction.given.len() as u64;
        direction.given.push_back(Given { at: now, len: len as u16, flow, came: false, excused: false });
        self.totals[side].given += 1;
        write(&self.pattern, side, flow, name, &mut out[..len]);
        len
    }

    /// Step 2.
    ///
    /// # Panics
    /// Where the packet is not what was given, or is there again, or too late.
    pub fn take(&mut self, now: Time, side: usize, packet: &[u8]) {
        assert!(packet.len() >= LEAST, "side {side} delivers what nobody sent: {packet:02x?}");
        let name = u64::from_be_bytes(*packet[UDP_HEADERS..].first_chunk().expect("a name"));
        let from = 1 - side;
        let direction = &mut self.directions[from];
        let index = name.checked_sub(direction.first);
        let index = index.unwrap_or_else(|| panic!("packet {name} for side {side} comes when it was lost, or again"));
        let given = direction.given.get_mut(index as usize);
        let given = given.unwrap_or_else(|| panic!("side {side} delivers what nobody sent: {packet:02x?}"));
        self.expected.resize(usize::from(given.len), 0);
        write(&self.pattern, from, given.flow, name, &mut self.expected);
        assert!(packet == self.expected, "packet {name} for side {side} was changed: {packet:02x?}");
        assert!(!given.came, "packet {name} came twice to side {side}");
        given.came = true;
        let waited = now.since(given.at);
        assert!(waited <= PATIENCE, "packet {name} for side {side} waited for {waited:?}");
        let totals = &mut self.totals[from];
        totals.came += 1;
        totals.longest = totals.longest.max(waited);
        if given.flow == CALL {
            self.last_call[from] = now;
            self.gauges.iter_mut().for_each(|gauge| gauge.note(now, from));
        }
    }

    /// Step 3.
    pub fn excuse(&mut self) {
        for given in self.directions.iter_mut().flat_map(|direction| &mut direction.given) {
            given.excused |= !given.came;
        }
    }

    /// A packet that no portal took, as it did not run.
    pub fn away(&mut self, side: usize) {
        self.totals[side].away += 1;
    }

    /// Step 4: how many were lost since the last time, by direction, that no portal forgot.
    pub fn close(&mut self) -> [u64; 2] {
        let mut lost = [0, 0];
        for (side, direction) in self.directions.iter_mut().enumerate() {
            direction.first += direction.given.len() as u64;
            for given in direction.given.drain(..).filter(|given| !given.came) {
                let totals = &mut self.totals[side];
                if given.excused {
                    totals.forgotten += 1
                } else {
                    totals.lost += 1
                }
                lost[side] += u64::from(!given.excused);
            }
        }
        lost
    }
}

fn write(pattern: &Pattern, side: usize, flow: u16, name: u64, out: &mut [u8]) {
    let (from, to) = (address(side), address(1 - side));
    let payload = out.len() - UDP_HEADERS;
    packets::ipv4(out, from, to, packets::UDP, 8 + payload);
    packets::udp(out, flow, payload);
    out[UDP_HEADERS..LEAST].copy_from_slice(&name.to_be_bytes());
    let stream = u16::from(side == LOCAL);
    out[LEAST..].copy_from_slice(pattern.bytes(stream, name * NAME as u64, payload - NAME));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::REMOTE;

    fn given(account: &mut Account) -> Vec<u8> {
        let mut out = vec![0; 300];
        account.give(Time::ZERO, LOCAL, 3, 300, &mut out);
        out
    }

    #[test]
    fn what_comes_is_not_lost_and_what_does_not_is_unless_a_portal_forgot_it() {
        let mut account = Account::default();
        let packet = given(&mut account);
        account.take(Time::ZERO + Duration::from_secs(2), REMOTE, &packet);
        given(&mut account);
        account.excuse();
        given(&mut account);
        assert_eq!(account.close(), [1, 0]);
        let longest = Duration::from_secs(2);
        let totals = Totals { given: 3, came: 1, lost: 1, forgotten: 1, away: 0, longest };
        assert_eq!(account.totals, [totals, Totals::default()]);
        assert_eq!(account.close(), [0, 0], "each once");
    }

    #[test]
    fn a_gauge_reads_the_longest_gap_of_either_direction_from_its_beginning() {
        let at = |second| Time::ZERO + Duration::from_secs(second);
        let mut gauge = Gauge::new(0, at(10));
        for (second, side) in [(8, LOCAL), (11, LOCAL), (11, REMOTE), (15, LOCAL), (16, LOCAL), (18, REMOTE)] {
            gauge.note(at(second), side);
        }
        assert_eq!(gauge.read(at(19)), Duration::from_secs(7));
        assert_eq!(gauge.read(at(26)), Duration::from_secs(10), "until it is read");
    }

    /// What taking these bytes twice, the second time changed so, ends in.
    fn refused(change: impl Fn(&mut Account, &mut Vec<u8>) + std::panic::RefUnwindSafe) -> bool {
        std::panic::catch_unwind(|| {
            let mut account = Account::default();
            let mut packet = given(&mut account);
            change(&mut account, &mut packet);
            account.take(Time::ZERO, REMOTE, &packet);
        })
        .is_err()
    }

    #[test]
    fn a_packet_that_is_changed_or_comes_twice_or_late_or_to_the_wrong_portal_is_refused() {
        assert!(!refused(|_, _| {}), "as it is");
        assert!(refused(|_, packet| packet[290] ^= 1), "changed");
        assert!(refused(|_, packet| packet.truncate(299)), "cut");
        assert!(refused(|account, packet| account.take(Time::ZERO, REMOTE, packet)), "twice");
        assert!(refused(|account, packet| account.take(Time::ZERO, LOCAL, packet)), "to who sent it");
        assert!(
            refused(|account, _| {
                let _ = account.close();
            }),
            "after all was quiet"
        );
        let late = Time::ZERO + PATIENCE + Duration::from_secs(1);
        assert!(refused(|account, packet| account.take(late, REMOTE, packet)), "late");
    }
}
