//! A bounded set of packet numbers, kept as ranges.

use super::constants::MAX_RANGES_KEPT;
use crate::units::PacketNumber;
use std::ops::RangeInclusive;

/// Both ends belong to it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Range {
    start: u64,
    end: u64,
}

/// Packet numbers received, as at most 512 ranges: the oldest is forgotten first. Empty at first. One
/// path owns it; it allocates once.
#[derive(Clone, Debug)]
pub struct RangeSet {
    /// Ascending, never touching each other.
    ranges: Vec<Range>,
}

impl Default for RangeSet {
    fn default() -> Self {
        RangeSet {
            // One more than is kept, since a new range goes in before the oldest goes out.
            ranges: Vec::with_capacity(MAX_RANGES_KEPT + 1),
        }
    }
}

impl RangeSet {
    /// Adds a number; nothing changes when it is there already.
    pub fn insert(&mut self, pn: PacketNumber) {
        let pn = pn.0;
        // Almost every packet extends the newest range, so the search starts there.
        let below = self.ranges.iter().rposition(|range| range.start <= pn);
        let above = below.map_or(0, |at| at + 1);
        if below.is_some_and(|at| self.ranges[at].end >= pn) {
            return;
        }
        let touches_below = below.filter(|&at| self.ranges[at].end + 1 == pn);
        let touches_above = self.ranges.get(above).is_some_and(|r| r.start == pn + 1);
        match (touches_below, touches_above) {
            (Some(at), true) => {
                self.ranges[at].end = self.ranges[above].end;
                self.ranges.remove(above);
            }
            (Some(at), false) => self.ranges[at].end = pn,
            (None, true) => self.ranges[above].start = pn,
            (None, false) => {
                self.ranges.insert(above, Range { start: pn, end: pn });
                if self.ranges.len() > MAX_RANGES_KEPT {
                    self.ranges.remove(0);
                }
            }
        }
    }

    /// Forgets every number below `floor`.
    pub fn remove_below(&mut self, floor: PacketNumber) {
        let gone = self.ranges.iter().take_while(|r| r.end < floor.0).count();
        self.ranges.drain(..gone);
        if let Some(oldest) = self.ranges.first_mut() {
            oldest.start = oldest.start.max(floor.0);
        }
    }

    /// The ranges, newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = RangeInclusive<PacketNumber>> + Clone + '_ {
        let newest_first = self.ranges.iter().rev();
        newest_first.map(|r| PacketNumber(r.start)..=PacketNumber(r.end))
    }

    /// The largest number, none in an empty set.
    pub fn largest(&self) -> Option<PacketNumber> {
        self.ranges.last().map(|range| PacketNumber(range.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{AckHead, Frame, Frames, Writer};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn set(numbers: &[u64]) -> RangeSet {
        let mut set = RangeSet::default();
        for &pn in numbers {
            set.insert(PacketNumber(pn));
        }
        set
    }

    fn listed(set: &RangeSet) -> Vec<(u64, u64)> {
        set.newest_first().map(|range| (range.start().0, range.end().0)).collect()
    }

    #[test]
    fn numbers_become_ranges() {
        type Row = (&'static [u64], &'static [(u64, u64)]);
        let table: [Row; 7] = [
            (&[], &[]),
            (&[5], &[(5, 5)]),
            (&[0, 1, 2], &[(0, 2)]),
            (&[2, 1, 0], &[(0, 2)]),
            (&[0, 2], &[(2, 2), (0, 0)]),
            (&[0, 2, 1], &[(0, 2)]),
            (&[7, 7, 3, 4, 9], &[(9, 9), (7, 7), (3, 4)]),
        ];
        for (numbers, expected) in table {
            assert_eq!(listed(&set(numbers)), expected, "{numbers:?}");
        }
    }

    #[test]
    fn numbers_below_a_floor_go() {
        let mut ranges = set(&[1, 2, 5, 6, 7, 9]);
        ranges.remove_below(PacketNumber(6));
        assert_eq!(listed(&ranges), [(9, 9), (6, 7)]);
        ranges.remove_below(PacketNumber(100));
        assert_eq!(ranges.largest(), None);
    }

    #[test]
    fn memory_stays_bounded_and_the_oldest_range_goes_first() {
        let every_other: Vec<u64> = (0..1_000).map(|i| i * 2).collect();
        let ranges = set(&every_other);
        assert_eq!(ranges.ranges.len(), MAX_RANGES_KEPT);
        assert_eq!(ranges.ranges.capacity(), MAX_RANGES_KEPT + 1);
        assert_eq!(ranges.largest(), Some(PacketNumber(1_998)));
    }

    #[test]
    fn the_largest_number_of_all_does_no_harm() {
        assert_eq!(listed(&set(&[u64::MAX - 1])), [(u64::MAX - 1, u64::MAX - 1)]);
    }

    /// The numbers of a set, as the bits of a mask.
    fn mask(set: &RangeSet) -> u32 {
        listed(set).into_iter().flat_map(|(start, end)| start..=end).map(|pn| 1 << pn).sum()
    }

    fn of_mask(mask: u32) -> Vec<u64> {
        (0..32).filter(|pn| mask & 1 << pn != 0).collect()
    }

    /// The numbers of an ACK frame of at most `budget` bytes, as the bits of a mask, and how many ranges it has.
    fn acknowledged(set: &RangeSet, budget: usize) -> (u32, usize) {
        let mut buffer = [0; 100];
        let mut out = Writer::new(&mut buffer);
        let written = AckHead::default().encode(set.newest_first(), budget, &mut out).expect("a range fits");
        let Some(Ok(Frame::Ack(ack))) = Frames::new(out.written()).next() else { panic!("not read as an ACK") };
        assert_eq!(ack.ranges().count(), written);
        (ack.ranges().flat_map(|range| range.start().0..=range.end().0).map(|pn| 1 << pn).sum(), written)
    }

    #[test]
    fn every_set_of_twelve_numbers_is_acknowledged_as_it_is_in_whatever_order_they_came() {
        for all in 1..1_u32 << 12 {
            let ascending = of_mask(all);
            let mut mixed: Vec<u64> = ascending.iter().copied().filter(|pn| pn % 2 == 1).collect();
            mixed.extend(ascending.iter().rev().filter(|pn| **pn % 2 == 0));
            let descending: Vec<u64> = ascending.iter().rev().copied().collect();
            for order in [&ascending, &descending, &mixed] {
                let set = set(order);
                assert_eq!((mask(&set), acknowledged(&set, 100).0), (all, all), "{order:?}");
            }
        }
    }

    #[test]
    fn every_set_of_ten_numbers_loses_its_oldest_ranges_where_an_acknowledgement_has_no_room_for_them() {
        // A frame of small numbers takes a byte for each but the count: type, path, largest, delay, time, the first
        // range and three counts of ECN; and two for each further range.
        const HEAD: usize = 11;
        for all in 1..1_u32 << 10 {
            let set = set(&of_mask(all));
            let ranges = listed(&set);
            for room in 0..ranges.len() {
                let newest =
                    ranges.iter().take(room + 1).flat_map(|(start, end)| *start..=*end).map(|pn| 1 << pn).sum();
                assert_eq!(acknowledged(&set, HEAD + 2 * room), (newest, room + 1), "{ranges:?}");
            }
        }
    }

    #[test]
    fn every_two_sets_of_seven_numbers_become_one_and_lose_what_lies_below_every_floor() {
        for one in 0..1_u32 << 7 {
            for other in 0..1_u32 << 7 {
                let whole = set(&[of_mask(one), of_mask(other)].concat());
                assert_eq!(mask(&whole), one | other, "{one:b} and {other:b}");
                assert!(listed(&whole).windows(2).all(|two| two[1].1 + 1 < two[0].0), "ranges touch");
                for floor in 0..8 {
                    let mut rest = whole.clone();
                    rest.remove_below(PacketNumber(floor));
                    assert_eq!(mask(&rest), (one | other) >> floor << floor, "{one:b} and {other:b} from {floor} on");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_set_of_numbers(
            steps in prop::collection::vec((0u64..120, prop::option::weighted(0.05, 0u64..120)), 0..300),
        ) {
            let mut ranges = RangeSet::default();
            let mut model = BTreeSet::new();
            for (pn, floor) in steps {
                ranges.insert(PacketNumber(pn));
                model.insert(pn);
                if let Some(floor) = floor {
                    ranges.remove_below(PacketNumber(floor));
                    model.retain(|&pn| pn >= floor);
                }
                // 120 numbers make at most 60 ranges, so that nothing is forgotten.
                let listed = listed(&ranges);
                let newest_first: Vec<u64> = listed.iter().flat_map(|&(s, e)| (s..=e).rev()).collect();
                let expected: Vec<u64> = model.iter().rev().copied().collect();
                prop_assert_eq!(newest_first, expected);
                prop_assert!(listed.windows(2).all(|w| w[1].1 + 1 < w[0].0), "ranges touch");
            }
        }
    }
}
