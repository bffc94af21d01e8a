//! Labels: which session, key and path a data datagram belongs to.
//!
//! Labels are computed from keys (docs/wire.md), so two sessions may by chance share one; then both
//! are tried, and the one whose key opens the datagram has it.

use crate::units::{PathId, PeerId};
use crate::wire::Label;
use std::collections::BTreeMap;

/// Names a set of receive keys of one peer, never used again within a portal's life.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct KeyId(pub u64);

/// What a label stands for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Owner {
    /// Whose session.
    pub peer: PeerId,
    /// Under which keys.
    pub key: KeyId,
    /// On which path.
    pub path: PathId,
}

/// All labels of a portal. Empty at first; the endpoint owns it.
#[derive(Default)]
pub struct Labels {
    owners: BTreeMap<Label, Vec<Owner>>,
}

impl Labels {
    /// Adds an owner of `label`.
    pub fn insert(&mut self, label: Label, owner: Owner) {
        let owners = self.owners.entry(label).or_default();
        if !owners.contains(&owner) {
            owners.push(owner);
        }
    }

    /// Removes every label of `key`.
    pub fn remove_key(&mut self, key: KeyId) {
        self.owners.retain(|_, owners| {
            owners.retain(|owner| owner.key != key);
            !owners.is_empty()
        });
    }

    /// Removes the labels of a path of `peer` under all its keys.
    pub fn remove_path(&mut self, peer: PeerId, path: PathId) {
        self.owners.retain(|_, owners| {
            owners.retain(|owner| owner.peer != peer || owner.path != path);
            !owners.is_empty()
        });
    }

    /// The owners of `label`; nearly always none or one.
    pub fn owners(&self, label: Label) -> &[Owner] {
        self.owners.get(&label).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_owners_of_one_label_are_kept_apart_and_removed_by_key() {
        let mut labels = Labels::default();
        let owner = |key| Owner { peer: PeerId(1), key: KeyId(key), path: PathId(0) };
        labels.insert(Label(7), owner(1));
        labels.insert(Label(7), owner(2));
        labels.insert(Label(7), owner(2));
        assert_eq!(labels.owners(Label(7)), [owner(1), owner(2)]);
        labels.remove_key(KeyId(1));
        assert_eq!(labels.owners(Label(7)), [owner(2)]);
        labels.remove_key(KeyId(2));
        assert_eq!(labels.owners(Label(7)), []);
    }
}
