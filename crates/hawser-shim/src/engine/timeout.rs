//! What time brings.
//!
//! 1. Every 50 ms while a path is waited for or dead, or a way is announced: probes, deaths, announcements.
//! 2. Every second: flows that are over or silent are freed, and peers without any, unused connections closed, packets
//!    that waited refused.
//! 3. [`Engine::handle_paths`]: what is known of paths has changed. Peers hear of hop fields that are new.

use std::collections::BTreeSet;
use std::time::Duration;

use hawser_core::units::Time;
use hawser_scion::IsdAs;

use super::choice::AsPaths;
use super::{ConnId, Engine, Found, Outside, Peer, PeerId, Reason};
use crate::flow::{FlowId, Protocol, State};

/// How exactly deaths are noticed: a quarter of the least patience.
const TICK: Duration = Duration::from_millis(50);
/// How often what is over is looked for.
const SWEEP: Duration = Duration::from_secs(1);
/// Paths to an AS that no flow wanted for so long are forgotten, when no connection leads there.
const FORGET_PATHS: Duration = Duration::from_secs(600);

impl Engine {
    /// When [`Engine::handle_timeout`] has something to do; none while nothing is there.
    pub fn next_deadline(&self) -> Option<Time> {
        let is_watched =
            self.announces || !self.held.is_empty() || self.conns.iter().any(|(_, conn)| !conn.health.is_idle());
        let is_empty = self.peers.len() == 0
            && self.conns.len() == 0
            && self.ports.is_empty()
            && self.waiting.is_empty()
            && self.ases.is_empty();
        match (is_watched, is_empty) {
            (true, _) => Some((self.ticked + TICK).min(self.swept + SWEEP)),
            (false, false) => Some(self.swept + SWEEP),
            (false, true) => None,
        }
    }

    /// Steps 1 and 2.
    pub fn handle_timeout(&mut self, now: Time, outside: &mut impl Outside) {
        if now.since(self.ticked) >= TICK {
            self.ticked = now;
            self.tend_conns(now, outside);
            self.announce_again(now, outside);
            self.tend_held(now, outside);
        }
        if now.since(self.swept) >= SWEEP {
            self.swept = now;
            self.free_flows(now, outside);
            self.forget_peers();
            self.refuse_waiting(now, outside);
            self.close_idle(now, outside);
            self.close_ports(now, outside);
            self.forget_ases(now, outside);
        }
        self.settle(now, outside);
    }

    /// Step 2.
    fn free_flows(&mut self, now: Time, outside: &mut impl Outside) {
        let mut gone: Vec<FlowId> = Vec::new();
        let mut silent = Vec::new();
        self.table.expire(now, |id, flow| {
            gone.push(id);
            // UDP knows no other end, and of questions and answers nobody heard the beginning.
            let is_told = flow.key.protocol == Protocol::Tcp || flow.state == State::Established;
            if !flow.state.is_ended() && is_told {
                silent.push((id, flow.key));
            }
        });
        for (id, key) in silent {
            if self.lane(id).is_some_and(|lane| !lane.is_over) {
                self.tell_closed(id, key, None, outside);
            }
        }
        gone.into_iter().for_each(|id| self.drop_lane(now, id));
        let table = &self.table;
        self.told.retain(|id, _| table.connection(*id).is_some());
        let Self { peers, table, .. } = self;
        for (_, peer) in peers.iter_mut().filter(|(_, peer)| peer.compression.flows() > peer.flows) {
            peer.compression.retain(|key| table.find(key).is_some());
        }
    }

    /// Step 2: hosts that said something of a flow which never began.
    fn forget_peers(&mut self) {
        let with_conns: BTreeSet<_> = self.conns.iter().map(|(_, conn)| conn.peer.0).collect();
        let is_idle = |(place, peer): &(usize, &Peer)| peer.flows == 0 && !with_conns.contains(place);
        let idle: Vec<_> = self.peers.iter().filter(is_idle).map(|(place, _)| PeerId(place)).collect();
        idle.into_iter().for_each(|id| self.forget_idle_peer(id));
    }

    fn forget_ases(&mut self, now: Time, outside: &mut impl Outside) {
        let conns = &self.conns;
        let is_over = |isd_as: IsdAs, paths: &AsPaths| {
            now.since(paths.used) >= FORGET_PATHS && !conns.iter().any(|(_, conn)| conn.to.isd_as == isd_as)
        };
        self.ases.retain(|isd_as, paths| {
            let is_over = is_over(*isd_as, paths);
            if is_over {
                outside.forget(*isd_as);
            }
            !is_over
        });
    }

    /// Step 3.
    pub fn handle_paths(&mut self, now: Time, isd_as: IsdAs, found: Found, outside: &mut impl Outside) {
        let Some(known) = self.ases.get_mut(&isd_as) else { return };
        match found {
            Found::Failed => known.is_known = true,
            Found::Paths(paths) => {
                let gone = known.learn(paths);
                // A peer answers by the hop fields that came last: where nothing else goes to it, those would expire.
                let renewed = self.renew(isd_as, outside);
                renewed.into_iter().for_each(|id| self.announce_on(now, id, outside));
                for path in gone {
                    let on_it =
                        |(_, conn): &(usize, &super::Conn)| conn.to.isd_as == isd_as && *conn.fingerprint() == path;
                    let on_it: Vec<ConnId> = self.conns.iter().filter(on_it).map(|(place, _)| ConnId(place)).collect();
                    // Its hop fields are good for a while: flows leave it where there is another, and stay otherwise.
                    on_it.into_iter().for_each(|id| self.leave_conn(now, id, Reason::Gone, outside));
                }
                self.leave_dead(now, outside);
                self.doubt_all();
            }
        }
        self.wake(now, isd_as, outside);
        self.settle(now, outside);
    }

    /// Connections follow their paths. Says which of those that work did: the others' flows are announced when they do.
    fn renew(&mut self, isd_as: IsdAs, outside: &mut impl Outside) -> Vec<ConnId> {
        let Self { conns, ases, .. } = self;
        let Some(known) = ases.get(&isd_as) else { return Vec::new() };
        let mut followed = Vec::new();
        for (place, conn) in conns.iter_mut().filter(|(_, conn)| conn.to.isd_as == isd_as) {
            let Some(renewed) = known.find(conn.fingerprint()).filter(|known| known.path != conn.path) else {
                continue;
            };
            if let Some(room) = outside.follow(ConnId(place), &renewed.path) {
                (conn.path, conn.room) = (renewed.path.clone(), room);
                followed.extend((!conn.health.is_dead()).then_some(ConnId(place)));
            }
        }
        followed
    }
}
