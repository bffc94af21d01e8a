//! The `redundant` scheduler: every packet goes by the two best paths. The far resequencer drops what comes second.
//!
//! Either of the two takes a packet, and answers for it; the other sends a redundant copy
//! (`session::redundant_copies`). Neither waits for the other: a path that was cut and does not know it yet would stop
//! the flow that is to outlive it.

use super::{PathSet, PathView, Room};
use crate::queue::Choice;

/// Whether `path` takes from a redundant flow that these paths may carry.
pub(super) fn choose(path: usize, paths: &[PathView], set: PathSet, room: Room) -> Choice {
    if best_two(paths, set).contains(&Some(path)) { room.take() } else { Choice::Skip }
}

/// The path that carries the redundant copies of what `path` takes: none where no other works.
pub(super) fn twin(path: usize, paths: &[PathView], set: PathSet) -> Option<usize> {
    best_two(paths, set).into_iter().flatten().find(|best| *best != path)
}

/// Those of these paths with the least delay, the first first.
fn best_two(paths: &[PathView], set: PathSet) -> [Option<usize>; 2] {
    let mut best = [None, None];
    for (index, view) in paths.iter().enumerate().filter(|(index, _)| set.contains(*index)) {
        let sooner = |than: Option<usize>| than.is_none_or(|than: usize| view.floor_us < paths[than].floor_us);
        if sooner(best[0]) {
            best = [Some(index), best[0]];
        } else if sooner(best[1]) {
            best[1] = Some(index);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tests::path;
    use crate::scheduler::tests::ROOM;

    #[test]
    fn the_two_paths_of_least_delay_take_and_are_each_others_twin() {
        let paths = [path(50, 40), path(50, 10), path(50, 30), path(50, 20)];
        let takes = |set: &[usize]| -> Vec<bool> {
            let set = set.iter().copied().collect();
            (0..4).map(|at| choose(at, &paths, set, ROOM) != Choice::Skip).collect()
        };
        assert_eq!(takes(&[0, 1, 2, 3]), [false, true, false, true]);
        assert_eq!((twin(1, &paths, PathSet::ALL), twin(3, &paths, PathSet::ALL)), (Some(3), Some(1)));
        assert_eq!(takes(&[0, 2, 3]), [false, false, true, true]);
        assert_eq!(takes(&[3]), [false, false, false, true]);
        assert_eq!(twin(3, &paths, PathSet::NONE.with(3)), None, "on that one");
    }
}
