//! Labels: which session, key and path a data datagram belongs to.
//!
//! Labels are computed from keys (docs/wire.md), so two sessions may by chance share one; then both are tried, and the
//! one whose key opens the datagram has it. What is removed is found by its key and path: the labels of other peers are
//! never walked over.

use crate::units::{KeyId, Owner, PathId};
use crate::wire::Label;
use std::collections::BTreeMap;

/// All labels of a portal. Empty at first; the endpoint owns it.
#[derive(Default)]
pub struct Labels {
    owners: BTreeMap<Label, Vec<Owner>>,
    /// The same, by what they stand for.
    by_owner: BTreeMap<(KeyId, PathId), Label>,
}

impl Labels {
    /// Adds an owner of the label that `label` makes, unless it has one.
    pub fn insert(&mut self, owner: Owner, label: impl FnOnce() -> Label) {
        let Owner { key, path, .. } = owner;
        if let std::collections::btree_map::Entry::Vacant(place) = self.by_owner.entry((key, path)) {
            let label = *place.insert(label());
            self.owners.entry(label).or_default().push(owner);
        }
    }

    /// Removes every label of `key`.
    pub fn remove_key(&mut self, key: KeyId) {
        self.remove_range(key, PathId(0)..=PathId(u32::MAX), |_| true);
    }

    /// Removes the label of a path under `key`.
    pub fn remove_path(&mut self, key: KeyId, path: PathId) {
        self.remove_range(key, path..=path, |_| true);
    }

    /// Removes the labels under `key` of all paths below `floor` that are `useless`.
    pub fn remove_below(&mut self, key: KeyId, floor: PathId, useless: impl Fn(PathId) -> bool) {
        if let Some(last) = floor.0.checked_sub(1) {
            self.remove_range(key, PathId(0)..=PathId(last), useless);
        }
    }

    fn remove_range(&mut self, key: KeyId, paths: std::ops::RangeInclusive<PathId>, useless: impl Fn(PathId) -> bool) {
        let range = (key, *paths.start())..=(key, *paths.end());
        let owners = &mut self.owners;
        let gone = self.by_owner.extract_if(range, |(_, path), _| useless(*path));
        gone.for_each(|((key, path), label)| remove_owner(owners, label, key, path));
    }

    /// The owners of `label`; nearly always none or one.
    pub fn owners(&self, label: Label) -> &[Owner] {
        self.owners.get(&label).map_or(&[], Vec::as_slice)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_owner.len()
    }
}

fn remove_owner(owners: &mut BTreeMap<Label, Vec<Owner>>, label: Label, key: KeyId, path: PathId) {
    if let Some(several) = owners.get_mut(&label) {
        several.retain(|owner| (owner.key, owner.path) != (key, path));
        if several.is_empty() {
            owners.remove(&label);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::PeerId;

    fn owner(key: u64, path: u32) -> Owner {
        Owner { peer: PeerId(1), key: KeyId(key), path: PathId(path) }
    }

    #[test]
    fn two_owners_of_one_label_are_kept_apart_and_removed_by_key() {
        let mut labels = Labels::default();
        for key in [1, 2, 2] {
            labels.insert(owner(key, 0), || Label(7));
        }
        assert_eq!(labels.owners(Label(7)), [owner(1, 0), owner(2, 0)]);
        labels.remove_key(KeyId(1));
        assert_eq!(labels.owners(Label(7)), [owner(2, 0)]);
        labels.remove_key(KeyId(2));
        assert_eq!((labels.owners(Label(7)), labels.len()), (&[][..], 0));
    }

    #[test]
    fn what_is_known_is_not_computed_again() {
        let mut labels = Labels::default();
        labels.insert(owner(1, 4), || Label(7));
        labels.insert(owner(1, 4), || panic!("it is known"));
    }

    #[test]
    fn of_paths_below_a_floor_those_that_are_useless_go() {
        let mut labels = Labels::default();
        (0..6).for_each(|path| labels.insert(owner(1, path), || Label(path)));
        labels.insert(owner(2, 0), || Label(100));
        labels.remove_path(KeyId(1), PathId(5));
        labels.remove_below(KeyId(1), PathId(4), |path| path != PathId(2));
        let left: Vec<u32> =
            labels.by_owner.keys().filter(|(key, _)| *key == KeyId(1)).map(|(_, path)| path.0).collect();
        assert_eq!(left, [2, 4]);
        labels.remove_below(KeyId(1), PathId(0), |_| true);
        assert_eq!((labels.len(), labels.owners.len()), (3, 3), "another key's stay");
    }
}
