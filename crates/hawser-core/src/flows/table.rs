//! A table of fixed size in which flows that carry much keep their places.
//!
//! A flow belongs to one of [`SETS`] sets by a keyed hash, and has one of its [`WAYS`] places. Where all are taken, it
//! takes the place of the lightest, and its weight with it (Metwally, Agrawal, El Abbadi: space-saving, ICDT 2005). So
//! a flow that carries more than an eighth of its set's bytes never loses its place, and of all bytes about a
//! thousandth is enough; a packet costs the look at one set.

use super::{FLOW_PATHS, FlowId, FlowPath, FlowShare, FlowSnapshot};
use crate::packet::{FlowKey, Inner};
use crate::treatment::Treatment;
use crate::units::{ByteCount, PeerId, Time};
use std::cmp::Reverse;

/// Sets of the table: with [`WAYS`], 1024 flows, 600 KiB.
pub(super) const SETS: usize = 128;
/// Places of a set.
pub(super) const WAYS: usize = 8;

/// Every place of the table. All are free at first; a watch that is on owns it.
pub(super) struct Table {
    key: FlowKey,
    places: Box<[Entry]>,
}

/// A place, and the flow that has it. Free by default; the table owns it.
#[derive(Copy, Clone, Default)]
pub(super) struct Entry {
    id: Option<FlowId>,
    since: Time,
    /// What it carried lately, and what of that is of those who had its place before, bytes.
    weight: u64,
    inherited: u64,
    sent: ByteCount,
    received: ByteCount,
    /// What of that was told.
    told: (ByteCount, ByteCount),
    pub(super) treatment: Option<(Option<u16>, Treatment)>,
    shares: [Option<FlowShare>; FLOW_PATHS],
}

impl Table {
    pub(super) fn new(key: FlowKey) -> Table {
        Table { key, places: vec![Entry::default(); SETS * WAYS].into_boxed_slice() }
    }

    /// The place of a flow, which it gets now if it has none.
    pub(super) fn entry(&mut self, now: Time, id: FlowId, inner: &Inner) -> &mut Entry {
        let first = inner.flow(&self.key, true).home.index() % SETS * WAYS;
        let set = &mut self.places[first..first + WAYS];
        let place = match set.iter().position(|entry| entry.id == Some(id)) {
            Some(place) => place,
            None => {
                let lightest = (0..WAYS).min_by_key(|place| set[*place].weight).unwrap_or(0);
                let weight = set[lightest].weight;
                set[lightest] = Entry { id: Some(id), since: now, weight, inherited: weight, ..Entry::default() };
                lightest
            }
        };
        &mut set[place]
    }

    pub(super) fn forget(&mut self, peer: PeerId) {
        let theirs = |entry: &&mut Entry| entry.id.is_some_and(|id| id.peer == peer);
        self.places.iter_mut().filter(theirs).for_each(|entry| *entry = Entry::default());
    }

    pub(super) fn largest(&mut self, most: usize) -> Vec<FlowSnapshot> {
        let lately = |entry: &Entry| entry.weight - entry.inherited;
        let mut busy: Vec<&Entry> = self.places.iter().filter(|entry| lately(entry) > 0).collect();
        busy.sort_unstable_by_key(|entry| Reverse(lately(entry)));
        let flows = busy.iter().take(most).filter_map(|entry| entry.snapshot()).collect();
        for entry in &mut self.places {
            entry.told = (entry.sent, entry.received);
            (entry.weight, entry.inherited) = (entry.weight / 2, entry.inherited.div_ceil(2).min(entry.weight / 2));
        }
        flows
    }
}

impl Entry {
    /// The flow carried so much by `path`, where that is known.
    pub(super) fn count(&mut self, path: Option<FlowPath>, sent: ByteCount, received: ByteCount) {
        self.weight = self.weight.saturating_add((sent + received).0);
        self.sent += sent;
        self.received += received;
        let Some(path) = path else { return };
        let is_place = |share: &&mut Option<FlowShare>| share.is_none_or(|share| share.path == path);
        if let Some(place) = self.shares.iter_mut().find(is_place) {
            let nothing = FlowShare { path, sent: ByteCount::ZERO, received: ByteCount::ZERO };
            let share = place.get_or_insert(nothing);
            share.sent += sent;
            share.received += received;
        }
    }

    fn snapshot(&self) -> Option<FlowSnapshot> {
        let Entry { id, since, sent, received, told, treatment, shares, .. } = *self;
        let (sent_lately, received_lately) = (sent - told.0, received - told.1);
        Some(FlowSnapshot { id: id?, since, sent, received, sent_lately, received_lately, treatment, shares })
    }
}
