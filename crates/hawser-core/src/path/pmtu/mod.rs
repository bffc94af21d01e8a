//! How large a datagram a path carries: RFC 8899 (DPLPMTUD). All sizes are datagram payloads in bytes unless
//! they are called MTU: then they are whole IP packets.
//!
//! 1. `poll_probe`: while something between the largest size that passed and the least that did not is
//!    untried, the session pads a probe to it: the link's own MTU first, then the common ones, then by halves.
//! 2. `on_probe_acked`, `on_probe_lost`: the search goes on; three lost probes make a size too big.
//! 3. Nothing left: the search rests for ten minutes.
//! 4. `on_lost`, `on_acked`: large packets vanish while smaller ones arrive: a black hole, back to the base at once.
//!    `on_black_holed`, `on_life`: the same where large ones were all that was sent, so that the path fell silent and
//!    only the probe for life was answered. What is not larger than the base proves nothing, and needs nothing.
//! 5. `on_too_big`: the socket said so (EMSGSIZE): the same, for certain.
//! 6. `on_hint`: a router said so, or whoever writes in its name (ICMP): the present size is probed, and believed in
//!    until three probes of it are lost.
//!
//! ```text
//!            poll_probe                       nothing left
//!   READY -------------> WAITING     READY -----------------> DONE
//!     ^                     |          ^                        |
//!     +--- acked, lost, 1 s-+          +-- 600 s, black hole, --+
//!                                          too big, hint, new link MTU
//! ```

#[cfg(test)]
mod tests;

use super::constants::{BASE_MTU, BLACK_HOLE_BURSTS, COMMON_MTUS, MAX_PROBES, MIN_MTU, PROBE_TIMER, RAISE_TIMER};
use crate::units::Time;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Phase {
    Ready,
    Waiting { size: u16, until: Time },
    Done { raise_at: Option<Time> },
}

/// The search for one path's largest datagram. At first the base is taken to pass, without a probe. One path
/// owns it.
#[derive(Clone, Debug)]
pub struct Pmtu {
    overhead: u16,
    max: u16,
    base: u16,
    floor: u16,
    /// The largest size known (or, for base and floor, taken) to pass.
    current: u16,
    /// The least size taken not to pass; above `max` while there is none.
    too_big: u16,
    phase: Phase,
    /// Datagrams of this size do not pass, somebody says: the present size is probed again.
    doubt: Option<u16>,
    /// A probe passed once, or the search ended: the size is no mere guess.
    found: bool,
    /// Probes of the present size that were lost.
    lost_probes: u32,
    black_hole: BlackHole,
}

impl Pmtu {
    /// A path over a link of `link_mtu` bytes whose datagrams have `overhead` bytes of outer headers (IPv4 and
    /// UDP: 28, IPv6 and UDP: 48).
    pub fn new(link_mtu: u16, overhead: u16) -> Self {
        let mut pmtu = Pmtu {
            overhead,
            max: 0,
            base: 0,
            floor: 0,
            current: 0,
            too_big: 0,
            phase: Phase::Ready,
            doubt: None,
            found: false,
            lost_probes: 0,
            black_hole: BlackHole::default(),
        };
        pmtu.limit_to(link_mtu);
        pmtu.current = pmtu.base;
        pmtu
    }

    /// A path that carries datagrams of exactly this size at most: there is nothing to search.
    pub fn fixed(size: u16) -> Self {
        let mut pmtu = Pmtu::new(size, 0);
        pmtu.current = pmtu.max;
        (pmtu.base, pmtu.floor) = (pmtu.max, pmtu.max);
        (pmtu.phase, pmtu.found) = (Phase::Done { raise_at: None }, true);
        pmtu
    }

    /// A path that is said to carry all that the link does, by somebody who knows it: that is begun with. It falls as
    /// any other where that turns out to be wrong.
    pub fn believed(link_mtu: u16, overhead: u16) -> Self {
        let mut pmtu = Pmtu::new(link_mtu, overhead);
        pmtu.current = pmtu.max;
        pmtu.found = true;
        pmtu
    }

    /// The link's MTU changed.
    pub fn set_link_mtu(&mut self, link_mtu: u16) {
        self.limit_to(link_mtu);
        self.current = self.current.min(self.max);
        self.search_again();
    }

    fn limit_to(&mut self, link_mtu: u16) {
        let payload = |mtu: u16| mtu.min(link_mtu).saturating_sub(self.overhead);
        // So that one more than the largest size is a number.
        self.max = payload(link_mtu).min(u16::MAX - 1);
        self.base = payload(BASE_MTU);
        self.floor = payload(MIN_MTU);
        self.too_big = self.max + 1;
    }

    /// The largest datagram that may carry traffic now.
    pub fn current(&self) -> u16 {
        self.current
    }

    /// Whether that is more than the guess that a path begins with.
    pub fn is_found(&self) -> bool {
        self.found
    }

    /// The size of a probe to send now, if one is due: the caller pads a datagram to exactly this.
    pub fn poll_probe(&mut self, now: Time) -> Option<u16> {
        match self.phase {
            Phase::Waiting { size, until } if until <= now => self.on_probe_lost(size),
            Phase::Done { raise_at } if raise_at.is_some_and(|at| at <= now) => {
                self.too_big = self.max + 1;
                self.search_again();
            }
            _ => {}
        }
        if self.phase != Phase::Ready {
            return None;
        }
        let Some(size) = self.next_size() else {
            let raise_at = (self.current < self.max).then(|| now + RAISE_TIMER);
            self.phase = Phase::Done { raise_at };
            self.found = true;
            return None;
        };
        let until = now + PROBE_TIMER;
        self.phase = Phase::Waiting { size, until };
        Some(size)
    }

    /// The present size where it is in doubt; else what lies strictly between what passes and what does not: the
    /// maximum, the middle one of the common sizes, the middle.
    fn next_size(&self) -> Option<u16> {
        if self.doubt.is_some() {
            return Some(self.current);
        }
        if self.too_big.saturating_sub(self.current) <= 1 {
            return None;
        }
        if self.too_big > self.max {
            return Some(self.max);
        }
        let sizes = COMMON_MTUS.map(|mtu| mtu.saturating_sub(self.overhead));
        let from = sizes.partition_point(|&size| size <= self.current);
        let to = sizes.partition_point(|&size| size < self.too_big);
        if from < to {
            return Some(sizes[from + (to - from) / 2]);
        }
        Some(self.current + (self.too_big - self.current) / 2)
    }

    /// A probe of `size` arrived.
    pub fn on_probe_acked(&mut self, size: u16) {
        if size > self.max {
            return;
        }
        if size >= self.too_big {
            self.too_big = self.max + 1;
        }
        self.current = self.current.max(size);
        self.found = true;
        self.search_again();
    }

    /// A probe of `size` was declared lost on a path that else works; a probe drained from a dead path is
    /// [`abandon_probe`](Self::abandon_probe)'s.
    pub fn on_probe_lost(&mut self, size: u16) {
        if !matches!(self.phase, Phase::Waiting { size: waiting, .. } if waiting == size) {
            return;
        }
        self.phase = Phase::Ready;
        self.lost_probes += 1;
        if self.lost_probes >= MAX_PROBES {
            self.lost_probes = 0;
            match self.doubt {
                Some(said) if size == self.current => self.fall_below(said),
                _ => self.too_big = size,
            }
        }
    }

    /// The path died under the probe: that says nothing about sizes.
    pub fn abandon_probe(&mut self) {
        if matches!(self.phase, Phase::Waiting { .. }) {
            self.phase = Phase::Ready;
        }
    }

    /// A datagram of `size` that was no probe was lost. Says whether that uncovered a black hole, so that
    /// `current` fell.
    pub fn on_lost(&mut self, size: u16) -> bool {
        if size <= self.refuge() {
            return false;
        }
        self.black_hole.on_large_lost(size);
        let uncovered = self.black_hole.bursts >= BLACK_HOLE_BURSTS;
        if uncovered {
            self.fall_below(self.black_hole.least_lost);
        }
        uncovered
    }

    /// A datagram of `size` that was no probe arrived.
    pub fn on_acked(&mut self, size: u16) {
        self.black_hole.on_acked(size);
    }

    /// A datagram of `size` was under way when the path fell silent.
    pub fn on_black_holed(&mut self, size: u16) {
        if size > self.refuge() {
            let least = self.black_hole.suspected.map_or(size, |least| least.min(size));
            self.black_hole.suspected = Some(least);
        }
    }

    /// A small probe of a silent path arrived: if what was black-holed did not, that is a burst of lost large
    /// packets. Says what `on_lost` says.
    pub fn on_life(&mut self) -> bool {
        let Some(size) = self.black_hole.suspected.take() else { return false };
        self.black_hole.small_since = true;
        self.on_lost(size)
    }

    /// A router says that datagrams of `size` do not pass. Whoever sees the path can say so in its name: it is no more
    /// than a reason to look (RFC 8899 section 4.6.2), and none below what every path carries. Larger sizes than the
    /// present one are probed anyway. Whether that is news.
    pub fn on_hint(&mut self, size: u16) -> bool {
        if size <= self.floor || size > self.current || self.doubt.is_some() {
            return false;
        }
        self.doubt = Some(size);
        self.lost_probes = 0;
        if matches!(self.phase, Phase::Done { .. }) {
            self.phase = Phase::Ready;
        }
        true
    }

    /// The socket refused a datagram of `size` (EMSGSIZE): its device does not carry it. That below what every path
    /// carries is not believed.
    pub fn on_too_big(&mut self, size: u16) {
        if size <= self.floor {
            return;
        }
        if size > self.current {
            self.too_big = self.too_big.min(size);
            self.search_again();
        } else {
            self.fall_below(size);
        }
    }

    /// What was lost so far says nothing of sizes: all of them are tried again.
    pub fn search_anew(&mut self) {
        if self.current < self.max {
            self.too_big = self.max + 1;
            self.search_again();
        }
    }

    /// When `poll_probe` has something to do: the epoch for at once, none for never.
    pub fn poll_timeout(&self) -> Option<Time> {
        match self.phase {
            Phase::Ready => Some(Time::ZERO),
            Phase::Waiting { until, .. } => Some(until),
            Phase::Done { raise_at } => raise_at,
        }
    }

    /// Where a black hole drives to: the base, or from there the floor.
    fn refuge(&self) -> u16 {
        if self.current > self.base { self.base } else { self.floor }
    }

    /// Sizes from `size` on do not pass.
    fn fall_below(&mut self, size: u16) {
        self.too_big = self.too_big.min(size).max(self.floor + 1);
        // Never up: a large datagram of before may be lost once smaller sizes than the base are known not to pass.
        let refuge = if self.base < self.too_big { self.base } else { self.floor };
        self.current = self.current.min(refuge);
        self.search_again();
    }

    fn search_again(&mut self) {
        self.phase = Phase::Ready;
        self.doubt = None;
        self.lost_probes = 0;
        self.black_hole = BlackHole::default();
    }
}

/// Bursts of lost large packets with none of their size arriving, and smaller ones arriving after each: a queue that
/// overflows drops both. None at first. A part of [`Pmtu`].
#[derive(Clone, Debug, Default)]
struct BlackHole {
    bursts: u32,
    /// A smaller one arrived since the last burst: the next loss is another burst.
    small_since: bool,
    least_lost: u16,
    /// The least of those that were under way when the path fell silent, while none of its size arrived.
    suspected: Option<u16>,
}

impl BlackHole {
    fn on_large_lost(&mut self, size: u16) {
        if self.bursts == 0 {
            self.least_lost = size;
            self.bursts = 1;
        } else if self.small_since {
            self.bursts += 1;
        }
        self.small_since = false;
        self.least_lost = self.least_lost.min(size);
    }

    fn on_acked(&mut self, size: u16) {
        self.suspected = self.suspected.filter(|least| size < *least);
        if self.bursts == 0 {
            return;
        }
        if size < self.least_lost {
            self.small_since = true;
        } else {
            *self = BlackHole { suspected: self.suspected, ..BlackHole::default() };
        }
    }
}
