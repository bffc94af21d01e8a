//! Which bytes of a stream arrived: those in order, runs ahead of them, and which runs changed last.

use super::segment::BLOCKS;
use std::collections::BTreeMap;

/// What arrived beyond what is in order. Empty at first; its receiver owns it.
#[derive(Default)]
pub(super) struct Arrived {
    /// Everything before it came.
    pub next: u64,
    /// Runs beyond it: start and end.
    pub ahead: BTreeMap<u64, u64>,
    /// The most recently changed of them first.
    pub recent: Vec<(u64, u64)>,
}

impl Arrived {
    /// Puts a run in its place. Gives what of it had come before.
    pub fn put(&mut self, start: u64, end: u64) -> Option<(u64, u64)> {
        if end <= self.next {
            return Some((start, end));
        }
        if start <= self.next {
            let twice = (start < self.next).then_some((start, self.next));
            self.next = end;
            while let Some((_, ahead)) = self.ahead.first_key_value().filter(|(start, _)| **start <= self.next) {
                self.next = self.next.max(*ahead);
                self.ahead.pop_first();
            }
            self.recent.retain(|block| block.0 > self.next);
            return twice;
        }
        self.put_ahead(start, end)
    }

    fn put_ahead(&mut self, start: u64, end: u64) -> Option<(u64, u64)> {
        let (mut block, mut twice) = ((start, end), None);
        while let Some((&from, &to)) = self.ahead.range(..=block.1).next_back().filter(|(_, to)| **to >= block.0) {
            let common = (start.max(from), end.min(to));
            if common.0 < common.1 {
                twice = Some(common);
            }
            self.ahead.remove(&from);
            block = (block.0.min(from), block.1.max(to));
        }
        self.ahead.insert(block.0, block.1);
        self.recent.retain(|known| known.1 < block.0 || known.0 > block.1);
        self.recent.insert(0, block);
        self.recent.truncate(BLOCKS + 1);
        twice
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_joined_and_the_newest_block_is_told_first() {
        let mut arrived = Arrived::default();
        assert_eq!(arrived.put(0, 10), None);
        for (start, end) in [(20, 30), (40, 50), (60, 70)] {
            assert_eq!(arrived.put(start, end), None);
        }
        assert_eq!(arrived.recent, [(60, 70), (40, 50), (20, 30)]);
        assert_eq!(arrived.put(30, 40), None);
        assert_eq!(arrived.recent, [(20, 50), (60, 70)]);
        assert_eq!(arrived.put(25, 35), Some((25, 35)), "twice");
        assert_eq!(arrived.put(0, 10), Some((0, 10)), "twice");
        assert_eq!((arrived.put(10, 20), arrived.next), (None, 50));
        assert_eq!(arrived.put(45, 80), Some((45, 50)));
        assert_eq!((arrived.next, arrived.recent.len(), arrived.ahead.len()), (80, 0, 0));
    }
}
