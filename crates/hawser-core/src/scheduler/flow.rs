//! The `flow` scheduler: a flow stays on a path, so that nothing of it is ever reordered.
//!
//! 1. A flow that has none is given the path with the fewest flows for its rate, of those that may carry it.
//! 2. It stays there until the path may not any more: it is gone, or one of a better tier works again.
//! 3. The subflows of one MPTCP connection go to different paths, as far as there are enough (`connections`).
//!
//! Flows are told apart by their bucket, and who had it before by the tag: two that share a bucket share its path.

use super::connections::{ConnectionId, Connections, MptcpOption};
use super::{MAX_PATHS, PathSet, PathView, Room};
use crate::packet::FlowBucket;
use crate::packet::flow::FORGOTTEN;
use crate::queue::Choice;
use crate::units::{PathId, Time};
use std::num::NonZeroU32;
use std::time::Duration;

/// A flow that sent within this time counts as its path's load.
const LIVE: Duration = Duration::from_secs(10);

/// A bucket, and the tag of the flow that has it.
pub type Tagged = (FlowBucket, Option<NonZeroU32>);

/// What is known of a bucket. No path at first. A plain value.
#[derive(Copy, Clone, Debug, Default)]
struct Pin {
    tag: Option<NonZeroU32>,
    path: Option<PathId>,
    used: Time,
    connection: Option<ConnectionId>,
}

/// The path of each flow. Empty, and without memory, until the first flow asks. The session's scheduler owns it.
#[derive(Default)]
pub(super) struct ByFlow {
    pins: Vec<Pin>,
    connections: Connections,
}

impl ByFlow {
    /// Whether `path` takes from the flow: if it is the flow's own.
    pub fn choose(
        &mut self,
        now: Time,
        path: usize,
        paths: &[PathView],
        set: PathSet,
        flow: Tagged,
        room: Room,
    ) -> Choice {
        let own = self.path_of(now, flow, paths, set);
        if own == paths.get(path).map(|view| view.id) { room.take() } else { Choice::Foreign }
    }

    /// The flow sent something.
    pub fn on_taken(&mut self, now: Time, bucket: FlowBucket) {
        self.pin(bucket).used = now;
    }

    /// That of the flow; whoever had the bucket before says nothing of it.
    fn own_pin(&mut self, (bucket, tag): Tagged) -> &mut Pin {
        let pin = self.pin(bucket);
        if pin.tag != tag {
            *pin = Pin { tag, ..Pin::default() };
        }
        pin
    }

    /// What an MPTCP option says: whose subflow this is. A subflow that joins has not sent yet, whatever its bucket
    /// did.
    pub fn on_mptcp_option(&mut self, now: Time, flow: Tagged, option: MptcpOption) {
        let joins = matches!(option, MptcpOption::Join(_));
        let connection = self.connections.of(now, option);
        let pin = self.own_pin(flow);
        if joins && pin.connection != Some(connection) {
            pin.path = None;
        }
        pin.connection = Some(connection);
    }

    fn path_of(&mut self, now: Time, flow: Tagged, paths: &[PathView], set: PathSet) -> Option<PathId> {
        let (bucket, pin) = (flow.0, *self.own_pin(flow));
        let works = |id: &PathId| paths.iter().position(|view| view.id == *id).is_some_and(|at| set.contains(at));
        let kept = pin.path.filter(|id| works(id) && now.since(pin.used) < FORGOTTEN);
        if kept.is_some() {
            return kept;
        }
        let path = self.least_loaded(now, bucket, pin.connection, (paths, set));
        let pin = self.pin(bucket);
        (pin.path, pin.used) = (path, now);
        path
    }

    /// Of these paths the one with the fewest live flows for its rate; one without a sibling if there is any.
    fn least_loaded(
        &self,
        now: Time,
        bucket: FlowBucket,
        connection: Option<ConnectionId>,
        (paths, set): (&[PathView], PathSet),
    ) -> Option<PathId> {
        let (mut flows, mut siblings) = ([0u32; MAX_PATHS], [0u32; MAX_PATHS]);
        for (at, pin) in self.pins.iter().enumerate().filter(|(at, _)| *at != bucket.index()) {
            let Some(index) = paths.iter().take(MAX_PATHS).position(|view| Some(view.id) == pin.path) else { continue };
            debug_assert!(at < FlowBucket::COUNT);
            flows[index] += u32::from(now.since(pin.used) < LIVE);
            let sibling = connection.is_some() && pin.connection == connection && now.since(pin.used) < FORGOTTEN;
            siblings[index] += u32::from(sibling);
        }
        // Rates that are not all known compare nothing.
        let known = set.iter().filter_map(|at| paths.get(at)).all(|view| view.rate.is_some());
        let load = |index: usize, view: &PathView| {
            let rate = view.rate.filter(|_| known).map_or(1.0, |rate| rate.0.max(1) as f64);
            f64::from(flows[index] + 1) / rate
        };
        let allowed = paths.iter().take(MAX_PATHS).enumerate().filter(|(at, _)| set.contains(*at));
        let best = allowed.min_by(|(one, a), (other, b)| {
            let order = siblings[*one].cmp(&siblings[*other]);
            order.then(load(*one, a).total_cmp(&load(*other, b))).then(a.floor_us.cmp(&b.floor_us))
        });
        best.map(|(_, view)| view.id)
    }

    fn pin(&mut self, bucket: FlowBucket) -> &mut Pin {
        if self.pins.is_empty() {
            self.pins.resize(FlowBucket::COUNT, Pin::default());
        }
        &mut self.pins[bucket.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tests::path;
    use crate::scheduler::connections::Token;
    use crate::scheduler::tests::ROOM;

    const NOW: Time = Time::from_nanos(1_000_000_000_000);

    fn paths(mbit: &[u64]) -> Vec<PathView> {
        mbit.iter().zip(0..).map(|(mbit, id)| PathView { id: PathId(id), ..path(*mbit, 10) }).collect()
    }

    /// The path of a bucket: the one that takes from it, if one does.
    fn asked(by_flow: &mut ByFlow, now: Time, bucket: u16, paths: &[PathView]) -> Option<usize> {
        let set = paths.iter().enumerate().filter(|(_, view)| view.usable).map(|(at, _)| at).collect();
        let takes =
            |at: &usize| by_flow.choose(now, *at, paths, set, (FlowBucket(bucket), None), ROOM) != Choice::Foreign;
        let taker: Vec<usize> = (0..paths.len()).filter(takes).collect();
        assert!(taker.len() <= 1, "one path at most");
        by_flow.on_taken(now, FlowBucket(bucket));
        taker.first().copied()
    }

    #[test]
    fn a_new_flow_in_a_used_bucket_has_nothing_of_the_last_ones_path() {
        let (mut by_flow, paths) = (ByFlow::default(), paths(&[50, 50]));
        let mut path_of = |tag: u32, bucket: u16, paths: &[PathView]| {
            let flow = (FlowBucket(bucket), NonZeroU32::new(tag));
            let set = paths.iter().enumerate().filter(|(_, view)| view.usable).map(|(at, _)| at).collect();
            let taker = (0..paths.len()).find(|at| by_flow.choose(NOW, *at, paths, set, flow, ROOM) != Choice::Foreign);
            by_flow.on_taken(NOW, FlowBucket(bucket));
            taker.expect("a path")
        };
        let mut one_away = paths.clone();
        one_away[0].usable = false;
        assert_eq!((0..10).map(|bucket| path_of(1, bucket, &one_away)).collect::<Vec<_>>(), [1; 10]);
        let again: Vec<usize> = (0..10).map(|bucket| path_of(1, bucket, &paths)).collect();
        assert_eq!(again, [1; 10], "they stay");
        let others: usize = (0..10).map(|bucket| path_of(2, bucket, &paths)).sum();
        assert_eq!(others, 5, "those that follow are dealt out");
    }

    #[test]
    fn flows_are_dealt_out_by_the_paths_rates() {
        let (mut by_flow, paths) = (ByFlow::default(), paths(&[40, 10]));
        let mut flows = [0; 2];
        for bucket in 0..100 {
            flows[asked(&mut by_flow, NOW, bucket, &paths).expect("a path")] += 1;
        }
        assert_eq!(flows, [80, 20]);
    }

    #[test]
    fn a_flow_stays_until_its_path_is_gone_and_does_not_come_back() {
        let (mut by_flow, mut paths) = (ByFlow::default(), paths(&[50, 50]));
        let first = asked(&mut by_flow, NOW, 7, &paths).expect("a path");
        (100..150).for_each(|other| assert!(asked(&mut by_flow, NOW, other, &paths).is_some()));
        paths[first].rate = Some(crate::units::Rate(1));
        assert_eq!(asked(&mut by_flow, NOW + LIVE * 2, 7, &paths), Some(first), "however slow, however busy");
        paths[first].usable = false;
        assert_eq!(asked(&mut by_flow, NOW + LIVE * 2, 7, &paths), Some(1 - first));
        paths[first].usable = true;
        assert_eq!(asked(&mut by_flow, NOW + LIVE * 2, 7, &paths), Some(1 - first));
        paths[1 - first].usable = false;
        paths[first].usable = false;
        assert_eq!(asked(&mut by_flow, NOW + LIVE * 2, 7, &paths), None);
    }

    #[test]
    fn the_subflows_of_one_connection_go_to_different_paths() {
        let (mut by_flow, paths) = (ByFlow::default(), paths(&[400, 10, 10]));
        let (a, b) = (Token(1), Token(2));
        // The first subflow sends before its keys are known.
        let first = asked(&mut by_flow, NOW, 1, &paths).expect("a path");
        by_flow.on_mptcp_option(NOW, (FlowBucket(1), None), MptcpOption::Capable([Some(a), Some(b)]));
        let mut used = vec![first];
        for (bucket, token) in [(2, b), (3, a)] {
            // Another flow had the bucket, and the path that is not free.
            asked(&mut by_flow, NOW, bucket, &paths);
            by_flow.on_mptcp_option(NOW, (FlowBucket(bucket), None), MptcpOption::Join(token));
            used.push(asked(&mut by_flow, NOW, bucket, &paths).expect("a path"));
        }
        used.sort_unstable();
        assert_eq!(used, [0, 1, 2]);
        by_flow.on_mptcp_option(NOW, (FlowBucket(4), None), MptcpOption::Join(b));
        assert!(asked(&mut by_flow, NOW, 4, &paths).is_some(), "more subflows than paths share one");
        let before = asked(&mut by_flow, NOW, 2, &paths);
        by_flow.on_mptcp_option(NOW, (FlowBucket(2), None), MptcpOption::Join(b));
        assert_eq!(asked(&mut by_flow, NOW, 2, &paths), before, "a repeated option moves nothing");
    }
}
