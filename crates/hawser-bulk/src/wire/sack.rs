//! An acknowledgement's bitmap: written from ranges, read as ranges.

use std::ops::RangeInclusive;

use hawser_core::units::PacketNumber;

/// Bytes of a bitmap at most: with its head, and 350 bytes of SCION, it fits the least MTU.
pub const MOST_BITMAP: usize = 768;
/// Numbers that a bitmap tells at most.
const MOST_BITS: u64 = MOST_BITMAP as u64 * 8;

/// Writes the bits of `ranges` (newest first) from `from` on, or of the newest numbers if there are more than fit. What
/// the first bit stands for, and how many bytes there are: none where no number is.
pub fn write_bitmap(
    from: u64,
    ranges: impl Iterator<Item = RangeInclusive<PacketNumber>> + Clone,
    out: &mut [u8; MOST_BITMAP],
) -> (u64, usize) {
    let Some(largest) = ranges.clone().next().map(|range| range.end().0).filter(|largest| *largest >= from) else {
        return (from, 0);
    };
    let first = from.max((largest + 1).saturating_sub(MOST_BITS));
    let len = (largest - first) as usize / 8 + 1;
    out[..len].fill(0);
    for range in ranges {
        if range.end().0 < first {
            break;
        }
        set(&mut out[..len], (range.start().0.max(first) - first) as usize, (range.end().0 - first) as usize);
    }
    (first, len)
}

/// Sets bits `start` to `end`.
fn set(bits: &mut [u8], start: usize, end: usize) {
    let (first, last) = (start / 8, end / 8);
    let (head, tail) = (u8::MAX << (start % 8), u8::MAX >> (7 - end % 8));
    if first == last {
        bits[first] |= head & tail;
        return;
    }
    bits[first] |= head;
    bits[first + 1..last].fill(u8::MAX);
    bits[last] |= tail;
}

/// The ranges of a bitmap, ascending. Begins at its first bit; a plain value.
#[derive(Clone, Debug)]
pub struct Runs<'a> {
    first: u64,
    bits: &'a [u8],
    at: usize,
}

impl<'a> Runs<'a> {
    pub(super) fn new(first: u64, bits: &'a [u8]) -> Runs<'a> {
        Runs { first, bits, at: 0 }
    }

    /// The next bit of this value from `at` on; the end if there is none.
    fn next_bit(&self, at: usize, value: bool) -> usize {
        let end = self.bits.len() * 8;
        let mut at = at;
        while at < end {
            let byte = if value { self.bits[at / 8] } else { !self.bits[at / 8] };
            let left = byte >> (at % 8);
            if left != 0 {
                return at + left.trailing_zeros() as usize;
            }
            at = (at / 8 + 1) * 8;
        }
        end
    }
}

impl Iterator for Runs<'_> {
    type Item = RangeInclusive<PacketNumber>;

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.next_bit(self.at, true);
        if start == self.bits.len() * 8 {
            return None;
        }
        let end = self.next_bit(start, false);
        self.at = end;
        Some(PacketNumber(self.first + start as u64)..=PacketNumber(self.first + end as u64 - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hawser_core::path::ranges::RangeSet;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn told(numbers: &[u64], from: u64) -> Vec<u64> {
        let mut set = RangeSet::default();
        numbers.iter().for_each(|number| set.insert(PacketNumber(*number)));
        let mut bits = [0xaa; MOST_BITMAP];
        let (first, len) = write_bitmap(from, set.newest_first(), &mut bits);
        assert!(len == 0 || bits[len - 1] != 0);
        Runs::new(first, &bits[..len]).flat_map(|run| run.start().0..=run.end().0).collect()
    }

    #[test]
    fn of_more_than_fit_the_newest_are_told() {
        let newest = 3 * MOST_BITS;
        assert_eq!(told(&[1, newest - MOST_BITS, newest - MOST_BITS + 1, newest], 0), [newest - MOST_BITS + 1, newest]);
        assert_eq!(told(&[1, 2], 3), [0_u64; 0]);
        assert_eq!(told(&[], 3), [0_u64; 0]);
    }

    proptest! {
        #[test]
        fn a_bitmap_tells_what_it_was_written_from(
            numbers in proptest::collection::btree_set(0_u64..4000, 0..300),
            from in 0_u64..4000,
        ) {
            let expected: BTreeSet<u64> = numbers.range(from..).copied().collect();
            let numbers: Vec<u64> = numbers.into_iter().collect();
            prop_assert_eq!(told(&numbers, from), expected.into_iter().collect::<Vec<_>>());
        }
    }
}
