//! Connections of SCION along one path to one peer, each with a port of its own.
//!
//! 1. A flow that gets a path finds the connection along it, or has it opened ([`Engine::conn_along`]).
//! 2. What a router says, or silence, makes it dead ([`Engine::conn_died`]); what comes back makes it live
//!    ([`Engine::conn_heard`]).
//! 3. It is closed when no flow has used it for a minute, dead ones as long as their peer has flows: to be probed.

use std::time::Duration;

use hawser_core::units::Time;
use hawser_scion::conn::{DeadPart, Event};
use hawser_scion::{EndpointAddr, Fingerprint, Path};

use super::choice::kills;
use super::{ConnId, Engine, Notice, Outside, PeerId, Reason, Via};
use crate::engine::control::{Control, Said};
use crate::engine::health::{Due, Health, Nonce};

/// Connections at a time: descriptors are dear, and 8 paths to 128 peers are enough.
pub(super) const MOST_CONNS: usize = 1024;
/// One that no flow uses is closed after this: the next connection to the same peer mostly comes sooner.
const IDLE: Duration = Duration::from_secs(60);

/// Why a connection was not opened. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotOpened {
    /// Descriptors, memory or ports lack: another one that is closed makes room.
    NoRoom,
    /// For what no other connection changes: its path expired, or cannot be used.
    Refused,
}

/// A connection along one path. Opened for a flow. The engine owns it.
#[derive(Debug)]
pub(super) struct Conn {
    pub peer: PeerId,
    pub to: EndpointAddr,
    pub path: Path,
    /// Bytes that a datagram may have.
    pub room: u16,
    /// Flows on it.
    pub flows: usize,
    /// When the last one left.
    pub idle_since: Time,
    pub health: Health,
    pub passed: [Passed; 2],
}

/// Datagrams of one direction. Nothing at first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Passed {
    pub packets: u64,
    pub bytes: u64,
}

impl Conn {
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.path.interfaces
    }

    /// Datagrams went out.
    pub fn sent(&mut self, now: Time, packets: usize, bytes: usize) {
        self.passed[0].packets += packets as u64;
        self.passed[0].bytes += bytes as u64;
        self.health.sent(now);
    }
}

impl Engine {
    /// Step 1. None where there are too many, or it cannot be opened.
    pub(super) fn conn_along(
        &mut self,
        now: Time,
        peer: PeerId,
        to: EndpointAddr,
        path: &Path,
        outside: &mut impl Outside,
    ) -> Option<ConnId> {
        let is_it = |conn: &Conn| conn.to == to && *conn.fingerprint() == path.interfaces;
        if let Some((place, _)) = self.conns.iter().find(|(_, conn)| is_it(conn)) {
            return Some(ConnId(place));
        }
        // The process may have fewer descriptors than there may be connections, or the AS fewer ports.
        let opened = match self.open(to, path, outside) {
            Err(NotOpened::NoRoom) => {
                self.close_idle_for(peer, outside)?;
                self.open(to, path, outside)
            }
            opened => opened,
        };
        let (id, room) = opened.ok()?;
        let (health, passed) = (Health::default(), [Passed::default(); 2]);
        self.conns.insert(Conn { peer, to, path: path.clone(), room, flows: 0, idle_since: now, health, passed });
        Some(id)
    }

    fn open(&self, to: EndpointAddr, path: &Path, outside: &mut impl Outside) -> Result<(ConnId, u16), NotOpened> {
        if self.conns.len() >= MOST_CONNS {
            return Err(NotOpened::NoRoom);
        }
        let id = ConnId(self.conns.next());
        outside.open(id, to, path).map(|room| (id, room))
    }

    /// Step 1: an idle connection makes room for one to this peer, who is not forgotten with it; one that is kept to be
    /// probed only where there is no other. None where all are in use.
    fn close_idle_for(&mut self, peer: PeerId, outside: &mut impl Outside) -> Option<()> {
        let idle = self.conns.iter().filter(|(_, conn)| conn.flows == 0);
        let (place, _) = idle.min_by_key(|(_, conn)| self.is_kept(conn))?;
        outside.close(ConnId(place));
        let closed = self.conns.remove(place)?;
        if closed.peer != peer {
            self.forget_idle_peer(closed.peer);
        }
        Some(())
    }

    pub(super) fn close(&mut self, id: ConnId, outside: &mut impl Outside) {
        outside.close(id);
        if let Some(conn) = self.conns.remove(id.0) {
            self.forget_idle_peer(conn.peer);
        }
    }

    /// Step 2: a connection's path is dead. Its flows go elsewhere.
    pub(super) fn conn_died(&mut self, now: Time, id: ConnId, because: Reason, outside: &mut impl Outside) {
        let Some(conn) = self.conns.get_mut(id.0) else { return };
        conn.health.kill(now);
        let (peer, path, is_used) = (conn.peer, conn.path.interfaces.clone(), conn.flows > 0);
        self.counters.die(because);
        if let Some(peer) = self.peers.get(peer.0).filter(|_| is_used) {
            outside.tell(Notice::Died { peer: peer.host, path, because });
        }
        self.leave_conn(now, id, because, outside);
        self.doubt_all();
    }

    /// Step 2: something came back.
    pub(super) fn conn_heard(&mut self, now: Time, id: ConnId, outside: &mut impl Outside) {
        if self.conns.get_mut(id.0).is_some_and(|conn| conn.health.heard()) {
            self.conn_is_back(now, id, outside);
        }
    }

    pub(super) fn conn_is_back(&mut self, now: Time, id: ConnId, outside: &mut impl Outside) {
        let Some(conn) = self.conns.get(id.0) else { return };
        let (isd_as, path, peer) = (conn.to.isd_as, conn.path.interfaces.clone(), conn.peer);
        self.ases.get_mut(&isd_as).into_iter().for_each(|paths| paths.revive(&path));
        self.counters.back += 1;
        if let Some(peer) = self.peers.get(peer.0) {
            outside.tell(Notice::Back { peer: peer.host, path });
        }
        self.leave_dead(now, outside);
        self.announce_on(now, id, outside);
        self.doubt_all();
    }

    /// A router says that a part of paths is dead.
    pub fn handle_dead_part(&mut self, now: Time, part: DeadPart, outside: &mut impl Outside) {
        self.ases.values_mut().for_each(|paths| paths.set_aside(now, kills(part)));
        let is_on = kills(part);
        let hit = |conn: &Conn| is_on(conn.fingerprint()) && !conn.health.is_dead();
        let hit: Vec<_> = self.conns.iter().filter(|(_, conn)| hit(conn)).map(|(place, _)| ConnId(place)).collect();
        // All first: a flow that leaves one must not be put on another.
        for id in &hit {
            if let Some(conn) = self.conns.get_mut(id.0) {
                conn.health.kill(now);
            }
        }
        for id in hit {
            // It may have made room for the one that a flow went to, which has its name now.
            if self.conns.get(id.0).is_some_and(|conn| is_on(conn.fingerprint())) {
                self.conn_died(now, id, Reason::Scmp, outside);
            }
        }
        self.settle(now, outside);
    }

    /// What a connection has to say of itself.
    pub fn handle_event(&mut self, now: Time, id: ConnId, event: &Event, room: u16, outside: &mut impl Outside) {
        if let Some(conn) = self.conns.get_mut(id.0) {
            conn.room = room;
        }
        if let Event::NoOther { because, .. } = event {
            self.handle_dead_part(now, *because, outside);
        }
    }

    /// Steps 2 and 3, as time passes.
    pub(super) fn tend_conns(&mut self, now: Time, outside: &mut impl Outside) {
        for place in 0..self.conns.places() {
            let Some(conn) = self.conns.get_mut(place) else { continue };
            match conn.health.due(now) {
                Some(Due::Probe) => self.probe(now, ConnId(place), outside),
                Some(Due::Died(because)) => self.conn_died(now, ConnId(place), because, outside),
                None => {}
            }
        }
    }

    fn probe(&mut self, now: Time, id: ConnId, outside: &mut impl Outside) {
        let nonce = Nonce(outside.random());
        let Some(conn) = self.conns.get_mut(id.0) else { return };
        conn.health.probe(now, nonce);
        self.counters.probes += 1;
        // One that does not go is as good as one that does not arrive.
        outside.send_control(Via::Conn(id), &Control::of(Said::Probe(nonce)));
    }

    /// Step 3.
    pub(super) fn close_idle(&mut self, now: Time, outside: &mut impl Outside) {
        for place in 0..self.conns.places() {
            let Some(conn) = self.conns.get(place) else { continue };
            let is_over = conn.flows == 0 && now.since(conn.idle_since) >= IDLE;
            if is_over && !self.is_kept(conn) {
                self.close(ConnId(place), outside);
            }
        }
    }

    /// Step 3: whether one that no flow uses is to be probed.
    fn is_kept(&self, conn: &Conn) -> bool {
        conn.health.is_dead() && self.peers.get(conn.peer.0).is_some_and(|peer| peer.flows > 0)
    }
}
