//! What there is, written down.

use hawser_core::units::Time;
use hawser_scion::Fingerprint;
use std::time::UNIX_EPOCH;

use super::choice::shared;
use super::lanes::{Lane, Way};
use super::{
    ConnSnapshot, ConnectionSnapshot, Engine, FlowSnapshot, Passed, PathSnapshot, PathState, PeerSnapshot, Snapshot,
};
use crate::flow::{Direction, Flow, FlowId};

impl Engine {
    /// All that there is.
    pub fn snapshot(&self, now: Time) -> Snapshot {
        let peers = self.peers.iter().map(|(_, peer)| PeerSnapshot {
            host: peer.host,
            flows: peer.flows,
            compression: peer.compression.counters(),
        });
        Snapshot {
            connections: self.connections(now),
            peers: peers.collect(),
            paths: self.paths(now),
            counters: self.counters(),
        }
    }

    fn connections(&self, now: Time) -> Vec<ConnectionSnapshot> {
        let known = self.table.connections().filter_map(|(id, connection)| {
            let flows: Vec<FlowId> = connection.flows.clone();
            let shares = [Direction::Out, Direction::In].map(|direction| self.table.shares(id, direction, now));
            let share = |direction: usize, flow: FlowId| {
                shares[direction].iter().find(|(one, _)| *one == flow).map_or(0.0, |(_, share)| *share)
            };
            let told: Vec<FlowSnapshot> =
                flows.iter().filter_map(|flow| self.flow(now, *flow, [share(0, *flow), share(1, *flow)])).collect();
            let first = flows.iter().find_map(|flow| self.lane(*flow))?;
            Some(ConnectionSnapshot {
                token: connection.token(Direction::In),
                asked: self.table.get(first.id)?.asked,
                peer: self.peers.get(first.peer.0)?.host,
                age: now.since(connection.opened),
                flows: told,
            })
        });
        let alone = self.table.flows().filter(|(_, flow)| flow.connection.is_none()).filter_map(|(id, flow)| {
            let share = |direction| if flow.track(direction).recent(now) == 0 { 0.0 } else { 1.0 };
            let peer = self.peers.get(self.lane(id)?.peer.0)?.host;
            let told = self.flow(now, id, [share(Direction::Out), share(Direction::In)])?;
            let (asked, age) = (flow.asked, now.since(flow.opened));
            Some(ConnectionSnapshot { token: None, asked, peer, age, flows: vec![told] })
        });
        let mut all: Vec<ConnectionSnapshot> = known.chain(alone).collect();
        all.sort_by_key(|connection| std::cmp::Reverse(connection.age));
        all
    }

    fn flow(&self, now: Time, id: FlowId, shares: [f64; 2]) -> Option<FlowSnapshot> {
        let (flow, lane) = (self.table.get(id)?, self.lane(id)?);
        let conn = match lane.way {
            Way::Conn(id) => self.conns.get(id.0),
            Way::Back(_) => None,
        };
        Some(FlowSnapshot {
            key: flow.key,
            role: flow.role,
            state: flow.state,
            asked: flow.asked,
            interface: lane.interface,
            age: now.since(flow.opened),
            remote: remote_of(lane, conn.map(|conn| conn.to)),
            path: conn.map(|conn| conn.fingerprint().clone()),
            mtu: conn.map(|conn| conn.path.mtu),
            max_segment: conn.map(|conn| lane.max_segment(conn.room)),
            moves: lane.moves,
            sent: passed(flow, Direction::Out, now, shares[0]),
            received: passed(flow, Direction::In, now, shares[1]),
        })
    }

    fn paths(&self, now: Time) -> Vec<PathSnapshot> {
        let mut all = Vec::new();
        for (isd_as, known) in &self.ases {
            let used = self.conns.iter().filter(|(_, conn)| conn.to.isd_as == *isd_as && conn.flows > 0);
            let used: Vec<Fingerprint> = used.map(|(_, conn)| conn.fingerprint().clone()).collect();
            for path in &known.paths {
                let fingerprint = &path.path.interfaces;
                let others: Vec<Fingerprint> = used.iter().filter(|other| *other != fingerprint).cloned().collect();
                let on_it = self
                    .conns
                    .iter()
                    .filter(|(_, conn)| conn.to.isd_as == *isd_as && conn.fingerprint() == fingerprint);
                let is_dead = path.is_dead(now) || on_it.clone().any(|(_, conn)| conn.health.is_dead());
                let state = match (is_dead, used.contains(fingerprint)) {
                    (true, _) => PathState::Dead,
                    (false, true) => PathState::Live,
                    (false, false) => PathState::Idle,
                };
                let conns = on_it.map(|(_, conn)| {
                    let measured = conn.health.measured(now);
                    ConnSnapshot {
                        remote: conn.to,
                        flows: conn.flows,
                        round_trip: measured.round_trip,
                        loss: measured.loss,
                        sent_packets: conn.passed[0].packets,
                        sent_bytes: conn.passed[0].bytes,
                        received_packets: conn.passed[1].packets,
                        received_bytes: conn.passed[1].bytes,
                    }
                });
                all.push(PathSnapshot {
                    isd_as: *isd_as,
                    path: fingerprint.clone(),
                    length: path.path.hops(),
                    mtu: path.path.mtu,
                    expiry: Some(path.path.expiry).filter(|expiry| *expiry != UNIX_EPOCH),
                    latency: path.path.announced_latency(),
                    state,
                    sharability: shared(fingerprint, &others),
                    conns: conns.collect(),
                });
            }
        }
        all
    }
}

fn remote_of(lane: &Lane, to: Option<hawser_scion::EndpointAddr>) -> Option<hawser_scion::EndpointAddr> {
    match lane.way {
        Way::Conn(_) => to,
        Way::Back(way) => Some(way.end),
    }
}

fn passed(flow: &Flow, direction: Direction, now: Time, share: f64) -> Passed {
    let track = flow.track(direction);
    Passed {
        packets: track.packets,
        bytes: track.bytes,
        retransmissions: track.retransmissions,
        recent: track.recent(now),
        intervals: track.intervals(now),
        share,
    }
}
