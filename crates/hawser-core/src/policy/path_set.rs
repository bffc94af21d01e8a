//! Paths of a session by their places, as a bit mask.

/// As many paths as one session may have usable at a time.
pub const MAX_PATHS: usize = 64;

/// Some of a session's paths. Empty by default; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct PathSet(u64);

impl PathSet {
    /// No path.
    pub const NONE: PathSet = PathSet(0);
    /// Whatever paths there are.
    pub const ALL: PathSet = PathSet(u64::MAX);

    /// Whether the path at this place is among them.
    pub fn contains(self, path: usize) -> bool {
        path < MAX_PATHS && self.0 & (1 << path) != 0
    }

    /// These and that one, if there may be this many.
    #[must_use]
    pub fn with(self, path: usize) -> PathSet {
        if path < MAX_PATHS { PathSet(self.0 | 1 << path) } else { self }
    }

    /// All of both.
    #[must_use]
    pub fn and(self, other: PathSet) -> PathSet {
        PathSet(self.0 | other.0)
    }

    /// Those that are in both.
    #[must_use]
    pub fn common(self, other: PathSet) -> PathSet {
        PathSet(self.0 & other.0)
    }

    /// Those that are not in `other`.
    #[must_use]
    pub fn without(self, other: PathSet) -> PathSet {
        PathSet(self.0 & !other.0)
    }

    /// How many.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Their places, in order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..MAX_PATHS).filter(move |path| self.contains(*path))
    }
}

impl FromIterator<usize> for PathSet {
    fn from_iter<I: IntoIterator<Item = usize>>(paths: I) -> PathSet {
        paths.into_iter().fold(PathSet::NONE, PathSet::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in_and_no_place_beyond_the_last() {
        let set: PathSet = [0, 3, 63, 64, 99].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 3, 63]);
        assert!(!set.contains(64) && !PathSet::ALL.contains(64) && PathSet::ALL.contains(63));
        assert!(PathSet::NONE.is_empty() && !set.is_empty());
    }
}
