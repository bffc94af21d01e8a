//! The replay window of one path: a bitmap that slides by whole words, as RFC 6479.

use super::constants::REPLAY_WORDS;
use crate::units::PacketNumber;

/// Bits in a word.
const WORD_BITS: u64 = u64::BITS as u64;
/// Words, as the arithmetic wants them.
const WORDS: u64 = REPLAY_WORDS as u64;
/// Numbers below the largest that are told apart; the word under refill is not among them.
pub const REPLAY_WINDOW: u64 = (WORDS - 1) * WORD_BITS;

/// Whether a packet may be accounted.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ReplayVerdict {
    /// Never seen.
    Fresh,
    /// Seen before.
    Duplicate,
    /// Below the window: nobody knows, so it is dropped.
    TooOld,
}

/// Which of the last 16,320 numbers were seen. Nothing at first. One path owns it; check a number
/// only after its packet was opened, and mark it under the same lock.
#[derive(Clone, Debug)]
pub struct ReplayWindow {
    /// The number above the largest seen.
    next: u64,
    words: Box<[u64; REPLAY_WORDS]>,
}

impl Default for ReplayWindow {
    fn default() -> Self {
        ReplayWindow { next: 0, words: Box::new([0; REPLAY_WORDS]) }
    }
}

impl ReplayWindow {
    /// Judges a number without marking it.
    pub fn check(&self, pn: PacketNumber) -> ReplayVerdict {
        if pn.0 >= self.next {
            ReplayVerdict::Fresh
        } else if self.next - pn.0 > REPLAY_WINDOW {
            ReplayVerdict::TooOld
        } else if self.words[Self::word(pn.0)] & Self::bit(pn.0) != 0 {
            ReplayVerdict::Duplicate
        } else {
            ReplayVerdict::Fresh
        }
    }

    /// Marks a number as seen, and says what it was before.
    pub fn mark(&mut self, pn: PacketNumber) -> ReplayVerdict {
        let verdict = self.check(pn);
        if verdict != ReplayVerdict::Fresh {
            return verdict;
        }
        if pn.0 >= self.next {
            self.slide_to(pn.0);
        }
        self.words[Self::word(pn.0)] |= Self::bit(pn.0);
        verdict
    }

    /// Clears the words that come into the window; a great leap clears each once.
    fn slide_to(&mut self, largest: u64) {
        let top = self.next.saturating_sub(1) / WORD_BITS;
        let new_top = largest / WORD_BITS;
        for step in 1..=(new_top - top).min(WORDS) {
            self.words[((top + step) % WORDS) as usize] = 0;
        }
        self.next = largest.saturating_add(1);
    }

    fn word(pn: u64) -> usize {
        ((pn / WORD_BITS) % WORDS) as usize
    }

    fn bit(pn: u64) -> u64 {
        1 << (pn % WORD_BITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ReplayVerdict::{Duplicate, Fresh, TooOld};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_window_spans_at_least_8192_numbers() {
        const { assert!(REPLAY_WINDOW >= 8_192) };
        let mut window = ReplayWindow::default();
        assert_eq!(window.mark(PacketNumber(0)), Fresh);
        assert_eq!(window.mark(PacketNumber(0)), Duplicate);
        assert_eq!(window.mark(PacketNumber(REPLAY_WINDOW)), Fresh);
        assert_eq!(window.check(PacketNumber(0)), TooOld);
        assert_eq!(window.check(PacketNumber(1)), Fresh);
    }

    #[test]
    fn a_great_leap_forgets_everything_below() {
        let mut window = ReplayWindow::default();
        for pn in 0..1_000 {
            window.mark(PacketNumber(pn));
        }
        assert_eq!(window.mark(PacketNumber(1 << 40)), Fresh);
        assert_eq!(window.check(PacketNumber(999)), TooOld);
        assert_eq!(window.check(PacketNumber((1 << 40) - 999)), Fresh);
    }

    #[test]
    fn the_last_number_of_all_does_no_harm() {
        let mut window = ReplayWindow::default();
        window.mark(PacketNumber(u64::MAX - 1));
        assert_eq!(window.check(PacketNumber(u64::MAX - 1)), Duplicate);
    }

    /// Numbers that creep, leap by words and whole windows, and fall back.
    fn numbers() -> impl Strategy<Value = Vec<u64>> {
        let step = prop_oneof![
            8 => 0i64..4,
            4 => -200i64..200,
            1 => -20_000i64..20_000,
            1 => Just(64),
            1 => Just(REPLAY_WINDOW as i64),
        ];
        prop::collection::vec(step, 1..400).prop_map(|steps| {
            let mut at = 0i64;
            let walk = steps.into_iter().map(|step| {
                at = (at + step).max(0);
                at as u64
            });
            walk.collect()
        })
    }

    /// Marks each of `numbers` in every order, again and again, `depth` deep; tells how many sequences there were.
    fn each_order(window: &ReplayWindow, seen: &mut Vec<u64>, numbers: &[u64], depth: u32) -> u64 {
        if depth == 0 {
            return 1;
        }
        let mut sequences = 0;
        for &pn in numbers {
            let largest = seen.iter().max();
            let expected = match largest {
                Some(largest) if pn + REPLAY_WINDOW <= *largest => TooOld,
                _ if seen.contains(&pn) => Duplicate,
                _ => Fresh,
            };
            let mut window = window.clone();
            assert_eq!(
                (window.check(PacketNumber(pn)), window.mark(PacketNumber(pn))),
                (expected, expected),
                "{seen:?}, {pn}"
            );
            if expected == Fresh {
                seen.push(pn);
            }
            sequences += each_order(&window, seen, numbers, depth - 1);
            if expected == Fresh {
                seen.pop();
            }
        }
        sequences
    }

    /// Each that lies on an edge: of a word, of the window, of one that was filled anew.
    #[test]
    fn every_order_of_six_numbers_on_the_edges_of_words_and_window_is_judged_as_a_set_judges_it() {
        let edges = [0, 63, 64, REPLAY_WINDOW - 1, REPLAY_WINDOW, REPLAY_WINDOW + 63, 2 * REPLAY_WINDOW + 64];
        assert_eq!(each_order(&ReplayWindow::default(), &mut Vec::new(), &edges, 6), 7_u64.pow(6));
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_set_of_all_numbers_ever_seen(numbers in numbers()) {
            let mut window = ReplayWindow::default();
            let mut seen = BTreeSet::new();
            for pn in numbers {
                let largest = seen.last().copied().unwrap_or(0);
                let expected = if pn + REPLAY_WINDOW <= largest {
                    TooOld
                } else if seen.contains(&pn) {
                    Duplicate
                } else {
                    Fresh
                };
                prop_assert_eq!(window.check(PacketNumber(pn)), expected);
                prop_assert_eq!(window.mark(PacketNumber(pn)), expected);
                if expected == Fresh {
                    seen.insert(pn);
                }
            }
        }
    }
}
