//! What there is in a table of flows.

use hawser_core::units::Time;

use super::connection::{Connection, ConnectionId};
use super::{Counters, Direction, Flow, FlowId, FlowKey, FlowTable};

impl FlowTable {
    /// A flow, where it is still there.
    pub fn get(&self, id: FlowId) -> Option<&Flow> {
        let slot = self.slots.get(id.slot as usize).filter(|slot| slot.generation == id.generation)?;
        slot.flow.as_ref()
    }

    /// The flow between two ends.
    pub fn find(&self, key: &FlowKey) -> Option<FlowId> {
        self.by_key.get(key).map(|slot| self.id_of(*slot))
    }

    /// All flows, by their ends.
    pub fn flows(&self) -> impl Iterator<Item = (FlowId, &Flow)> {
        self.by_key.values().filter_map(|slot| Some((self.id_of(*slot), self.flow_in(*slot)?)))
    }

    /// A connection, where one of its flows is still there.
    pub fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        self.connections.get(id)
    }

    /// All connections, the oldest first.
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionId, &Connection)> {
        self.connections.iter()
    }

    /// The share that each flow of a connection had of its data of late, this way; nothing where there was none.
    pub fn shares(&self, of: ConnectionId, direction: Direction, now: Time) -> Vec<(FlowId, f64)> {
        let flows = self.connections.get(of).into_iter().flat_map(|connection| &connection.flows);
        let recent = |id: &FlowId| Some((*id, self.get(*id)?.track(direction).recent(now)));
        let recent: Vec<(FlowId, u64)> = flows.filter_map(recent).collect();
        let total: u64 = recent.iter().map(|(_, bytes)| bytes).sum();
        #[expect(clippy::cast_precision_loss, reason = "a share of a few seconds' bytes")]
        let share = |bytes: u64| if total == 0 { 0.0 } else { bytes as f64 / total as f64 };
        recent.into_iter().map(|(id, bytes)| (id, share(bytes))).collect()
    }

    /// What was counted.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Entries of all kinds that live, none of which outlives its flow.
    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        let flows = self.slots.iter().filter(|slot| slot.flow.is_some()).count();
        let due: usize = self.due.iter().map(std::collections::BTreeSet::len).sum();
        let half_open: u32 = self.half_open.iter().sum();
        flows + self.by_key.len() + due + half_open as usize + self.connections.entries()
    }

    /// Places that were ever needed at once.
    #[cfg(test)]
    pub(super) fn places(&self) -> usize {
        self.slots.len()
    }
}
