//! The destinations a socket has.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::flow::Flow;
use crate::addr::EndpointAddr;

/// The way back that a packet came by: to its end, along that path and no other. Plain value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WayBack {
    /// Who sent the packet, as it says.
    pub end: EndpointAddr,
    path: u64,
}

impl WayBack {
    /// By a number for the path.
    pub const fn new(end: EndpointAddr, path: u64) -> WayBack {
        WayBack { end, path }
    }
}

/// What a flow is found by. Plain value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// The best way there, or the one that a packet from there came by last.
    To(EndpointAddr),
    Back(WayBack),
}

impl Key {
    pub(super) const fn destination(&self) -> EndpointAddr {
        match self {
            Key::To(destination) => *destination,
            Key::Back(way) => way.end,
        }
    }
}

/// Most destinations of one socket: whoever sends to it adds one, so there is an end.
const MOST_FLOWS: usize = 4096;

/// Of a full table, those that were not used for longest leave, this part of all.
const LEAVING_PART: usize = 4;

/// A socket's destinations, each with its way. Empty at first. For several threads.
#[derive(Debug, Default)]
pub(super) struct Flows {
    table: RwLock<HashMap<Key, Arc<Flow>>>,
    /// Counts what happens, so that it can be said which flow was used last.
    moment: AtomicU64,
    /// Counts when flows were forgotten.
    forgotten: AtomicU64,
}

impl Flows {
    /// The flow of a key.
    pub(super) fn get(&self, key: &Key) -> Option<Arc<Flow>> {
        let flow = self.table.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()?;
        flow.touch(self.moment.fetch_add(1, Ordering::Relaxed));
        Some(flow)
    }

    /// Adds a flow, in the place of the one of the same key.
    pub(super) fn put(&self, flow: Flow) -> Arc<Flow> {
        let flow = Arc::new(flow);
        flow.touch(self.moment.fetch_add(1, Ordering::Relaxed));
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        if table.len() >= MOST_FLOWS && !table.contains_key(&flow.key) {
            let mut used: Vec<u64> = table.values().map(|flow| flow.used.load(Ordering::Relaxed)).collect();
            let (_, &mut last, _) = used.select_nth_unstable(MOST_FLOWS / LEAVING_PART);
            self.forgotten.fetch_add(1, Ordering::Relaxed);
            table.retain(|_, flow| flow.used.load(Ordering::Relaxed) >= last);
        }
        table.insert(flow.key, Arc::clone(&flow));
        flow
    }

    /// Forgets the flow of a key.
    pub(super) fn remove(&self, key: &Key) {
        self.forgotten.fetch_add(1, Ordering::Relaxed);
        self.table.write().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// How often flows were forgotten: what was found before may be gone when it changes.
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::Relaxed)
    }

    /// All flows to a destination.
    pub(super) fn to(&self, destination: EndpointAddr) -> Vec<Arc<Flow>> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table.values().filter(|flow| flow.destination == destination).cloned().collect()
    }

    /// Calls `visit` with each flow, in no order.
    pub(super) fn each(&self, mut visit: impl FnMut(&Flow)) {
        self.all().iter().for_each(|flow| visit(flow));
    }

    /// All flows as they are now.
    pub(super) fn all(&self) -> Vec<Arc<Flow>> {
        self.table.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}
