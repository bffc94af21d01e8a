//! Path ids: which were given, which may still come, and that none comes twice.
//!
//! 1. `give`: the next id of this side, each once in a session.
//! 2. `may_open`: whether an id of the peer's may begin a path: within a window, and never used.
//! 3. `use_up`: it began a path, or was closed before it could. The window moves, and never back. `hear_of`: the peer
//!    said a word of it (PATH_INFO), and datagrams of it may follow.
//!
//! ```text
//!        floor                highest            limit
//!   used   v  one bit for each   v   all may come  v   too far ahead
//!   -------+---------------------+-----------------+--------------
//! ```
//!
//! A path id that came back under the same keys would begin its packet numbers anew, and repeat nonces: all below the
//! window counts as used, as packet numbers do that are too old (RFC 6479).

use super::constants::LABELS_AHEAD;
use crate::units::PathId;

/// Ids in the window's record, the highest among them.
const KEPT: u32 = u64::BITS;

/// The path ids of a session. None is used at first; the session owns it.
#[derive(Clone, Debug)]
pub(super) struct PathIds {
    /// The lowest bit of the ids that this side gives.
    side: u32,
    /// The next of them; none when all were given.
    next: Option<u32>,
    /// One more than the place of the peer's highest id that was used: the place of an id is its upper 31 bits.
    after: u32,
    /// Bit n: the id that lies n places below the highest was used.
    used: u64,
}

impl PathIds {
    /// Of a side that is 0 or 1; the peer's is the other.
    pub fn new(side: u32) -> Self {
        PathIds { side, next: Some(side), after: 0, used: 0 }
    }

    /// The lowest bit of the ids that this side gives.
    pub fn side(&self) -> u32 {
        self.side
    }

    /// Step 1. None when there is none left.
    pub fn give(&mut self) -> Option<PathId> {
        let id = self.next?;
        self.next = id.checked_add(2);
        Some(PathId(id))
    }

    /// Whether this side gives it.
    pub fn is_ours(&self, id: PathId) -> bool {
        id.0 & 1 == self.side
    }

    /// Step 2.
    pub fn may_open(&self, id: PathId) -> bool {
        if self.is_ours(id) {
            return false;
        }
        match (self.after.checked_sub(1), id.0 >> 1) {
            (Some(highest), place) if place <= highest => {
                highest - place < KEPT && self.used & (1 << (highest - place)) == 0
            }
            (_, place) => place - self.after < LABELS_AHEAD,
        }
    }

    /// Step 3: never again. Says whether the window moved. Only for what `may_open`; else nothing changes.
    pub fn use_up(&mut self, id: PathId) -> bool {
        if !self.may_open(id) {
            return false;
        }
        let place = id.0 >> 1;
        if place < self.after {
            self.used |= 1 << (self.after - 1 - place);
            return false;
        }
        let by = place + 1 - self.after;
        self.used = self.used.checked_shl(by).unwrap_or(0) | 1;
        self.after = place + 1;
        true
    }

    /// The peer says that there is such a path, or was. Not believed of ids of ours, or farther ahead than the record
    /// is long.
    pub fn hear_of(&mut self, id: PathId) -> bool {
        let place = id.0 >> 1;
        if self.is_ours(id) || place.saturating_sub(self.after) >= KEPT {
            return false;
        }
        // So far that it is the last that may come.
        if let Some(by) = (place + 1).checked_sub(self.after + LABELS_AHEAD).filter(|by| *by > 0) {
            self.used = self.used.checked_shl(by).unwrap_or(0);
            self.after += by;
        }
        true
    }

    /// The least id that may still come; below it none does.
    pub fn floor(&self) -> PathId {
        self.id_at(self.after.saturating_sub(KEPT))
    }

    /// Every id that may come, in order.
    pub fn may_come(&self) -> impl Iterator<Item = PathId> + '_ {
        let places = self.after.saturating_sub(KEPT)..self.after.saturating_add(LABELS_AHEAD).min(1 << 31);
        places.map(|place| self.id_at(place)).filter(|id| self.may_open(*id))
    }

    fn id_at(&self, place: u32) -> PathId {
        PathId(place << 1 | (self.side ^ 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn ids(ids: &PathIds) -> Vec<u32> {
        ids.may_come().map(|id| id.0).collect()
    }

    #[test]
    fn ours_are_given_once_and_end() {
        let mut ids = PathIds::new(1);
        assert_eq!([ids.give(), ids.give()], [Some(PathId(1)), Some(PathId(3))]);
        assert!(!ids.may_open(PathId(1)) && !ids.may_open(PathId(5)), "those are not the peer's to open");
        ids.next = Some(u32::MAX);
        assert_eq!([ids.give(), ids.give()], [Some(PathId(u32::MAX)), None]);
    }

    #[test]
    fn the_next_sixteen_may_come_and_move_along() {
        let mut window = PathIds::new(1);
        assert_eq!(ids(&window), (0..32).step_by(2).collect::<Vec<u32>>());
        assert!(!window.may_open(PathId(32)) && !window.use_up(PathId(32)), "too far ahead");
        assert!(window.use_up(PathId(30)));
        assert!(window.may_open(PathId(62)) && !window.may_open(PathId(64)));
        assert!(!window.use_up(PathId(4)) && !window.may_open(PathId(4)) && window.may_open(PathId(6)));
    }

    #[test]
    fn a_word_of_the_peers_moves_the_window_but_not_far() {
        let mut window = PathIds::new(1);
        assert!(window.use_up(PathId(0)));
        assert!(!window.hear_of(PathId(7)) && !window.hear_of(PathId(2 * 65)), "ours, and too far");
        assert!(window.hear_of(PathId(2 * 64)) && window.may_open(PathId(2 * 64)) && !window.may_open(PathId(2 * 65)));
        assert!(window.may_open(PathId(2)) && !window.may_open(PathId(0)), "what was skipped may still come");
        assert!(window.hear_of(PathId(0)), "an old one moves nothing");
        assert!(window.may_open(PathId(2 * 64)));
    }

    #[test]
    fn the_highest_id_is_the_last() {
        let mut window = PathIds::new(0);
        window.after = (1 << 31) - 2;
        assert_eq!(ids(&window).last(), Some(&u32::MAX));
        assert!(window.use_up(PathId(u32::MAX)));
        assert!(ids(&window).iter().all(|id| *id < u32::MAX));
    }

    /// What the window is to say, of places: the used ones, and one more than the highest that may not be skipped any
    /// more.
    #[derive(Clone, Default)]
    struct Model {
        used: Vec<u32>,
        after: u32,
    }

    impl Model {
        fn may(&self, place: u32) -> bool {
            !self.used.contains(&place) && place + KEPT >= self.after && place < self.after + LABELS_AHEAD
        }

        fn open(&mut self, place: u32) {
            if self.may(place) {
                self.used.push(place);
                self.after = self.after.max(place + 1);
            }
        }

        fn hear(&mut self, place: u32) {
            if place < self.after + KEPT {
                self.after = self.after.max((place + 1).saturating_sub(LABELS_AHEAD));
            }
        }
    }

    /// Opens and closes each place in every order, `depth` deep; tells how many sequences there were.
    fn each_order(window: &PathIds, model: &Model, places: &[u32], depth: u32) -> u64 {
        for &place in places {
            let id = window.id_at(place);
            assert_eq!(window.may_open(id), model.may(place), "{place} where {:?} were used", model.used);
        }
        if depth == 0 {
            return 1;
        }
        let mut sequences = 0;
        for &place in places {
            for opens in [true, false] {
                let (mut window, mut model) = (window.clone(), model.clone());
                if opens {
                    window.use_up(window.id_at(place));
                    model.open(place);
                } else {
                    window.hear_of(window.id_at(place));
                    model.hear(place);
                }
                assert_eq!(window.floor(), window.id_at(model.after.saturating_sub(KEPT)));
                sequences += each_order(&window, &model, places, depth - 1);
            }
        }
        sequences
    }

    #[test]
    fn every_order_of_five_openings_and_closings_on_the_edges_of_the_window_is_judged_as_a_set_judges_it() {
        let edges = [0, 1, LABELS_AHEAD - 1, LABELS_AHEAD, KEPT - 1, KEPT, KEPT + LABELS_AHEAD];
        for side in [0, 1] {
            let sequences = each_order(&PathIds::new(side), &Model::default(), &edges, 5);
            assert_eq!(sequences, 14_u64.pow(5));
        }
    }

    proptest! {
        /// Whatever is asked for in whatever order, no id begins a path twice, and what may come is as many as fit the
        /// window.
        #[test]
        fn no_id_opens_twice(side in 0u32..2, asked in prop::collection::vec(0u32..600, 1..400)) {
            let (mut window, mut opened) = (PathIds::new(side), BTreeSet::new());
            for id in asked.into_iter().map(PathId) {
                let floor = window.floor();
                if id.0 % 5 == 0 {
                    window.hear_of(id);
                }
                let may = window.may_open(id);
                prop_assert!(!may || !opened.contains(&id), "{id:?} again");
                window.use_up(id);
                if may {
                    opened.insert(id);
                }
                prop_assert!(!window.may_open(id));
                prop_assert!(window.floor() >= floor, "the window moved back");
                prop_assert!(ids(&window).len() <= (KEPT + LABELS_AHEAD) as usize);
            }
        }
    }
}
