//! Flows leave paths that are dead.
//!
//! 1. A flow moves to a living path that its connection does not use. Where what is known of paths has none, one that
//!    is no longer known will do where its connection lives: a daemon leaves a path out for ten seconds when a router
//!    says that it is dead, however soon it works again.
//! 2. If there is none, but the connection has another flow that lives, it is given up: the kernel is told, and the
//!    reset by which it ends the flow takes the other's path, so that the peer's kernel moves on as well.
//! 3. The last flow of a connection stays, and moves to whatever comes alive.
//! 4. The peer hears of the new way by the flow's headers, which go alone until something comes back; so it does of a
//!    path that was renewed.

use std::time::Duration;

use hawser_core::units::Time;
use hawser_scion::{EndpointAddr, Fingerprint};

use super::form::{Form, Writer};
use super::lanes::{Announcement, Lane, Way};
use super::{Conn, ConnId, Engine, Notice, Outside, PeerId, Reason, Sent, Via};
use crate::flow::{Direction, FlowId, Protocol};

/// Headers go alone at once, and this often again, so long after each other, until something comes back.
const ANNOUNCEMENTS: u8 = 5;
const BETWEEN: Duration = Duration::from_millis(200);
/// Paths that are tried for one flow at a time.
const TRIES: usize = 8;

impl Engine {
    /// The flows on a connection that died.
    pub(super) fn leave_conn(&mut self, now: Time, id: ConnId, because: Reason, outside: &mut impl Outside) {
        let on_it: Vec<FlowId> =
            self.lanes.iter().flatten().filter(|lane| lane.way == Way::Conn(id)).map(|lane| lane.id).collect();
        on_it.into_iter().for_each(|flow| self.relocate(now, flow, because, outside));
    }

    /// Something has come alive: step 3.
    pub(super) fn leave_dead(&mut self, now: Time, outside: &mut impl Outside) {
        let is_dead = |way| match way {
            Way::Conn(id) => self.conns.get(id.0).is_some_and(|conn| conn.health.is_dead()),
            Way::Back(_) => false,
        };
        let stuck: Vec<FlowId> =
            self.lanes.iter().flatten().filter(|lane| is_dead(lane.way)).map(|lane| lane.id).collect();
        stuck.into_iter().for_each(|flow| self.relocate(now, flow, Reason::Alive, outside));
    }

    fn relocate(&mut self, now: Time, id: FlowId, because: Reason, outside: &mut impl Outside) {
        let Some(lane) = self.lane(id).filter(|lane| lane.is_ours && !lane.is_over) else { return };
        let (Way::Conn(from), key, peer, joins) = (lane.way, lane.key, lane.peer, lane.joins) else { return };
        let Some((to, before)) = self.conns.get(from.0).map(|conn| (conn.to, conn.fingerprint().clone())) else {
            return;
        };
        let connection = self.table.get(id).and_then(|flow| flow.connection);
        let siblings = self.siblings(id, connection, joins, peer);
        let used = self.paths_of(&siblings);
        // One that is not dead goes on until it expires.
        let is_dead = self.conns.get(from.0).is_some_and(|conn| conn.health.is_dead());
        let refuge = self.refuge_listed(now, peer, to, &used, outside);
        match refuge.or_else(|| self.refuge_unlisted(to, &used).filter(|_| is_dead)) {
            Some((conn, path)) => {
                self.set_way(now, id, Way::Conn(conn));
                self.lane_mut(id).into_iter().for_each(|lane| lane.moves += 1);
                self.counters.move_flow(because);
                outside.tell(Notice::Moved { key, from: before, to: path, because });
                self.begin_announcing(now, id, outside);
            }
            None if is_dead => self.give_up(now, id, &siblings, outside),
            None => {}
        }
    }

    /// Step 1: a connection along a path that is known; opened, if there is none.
    fn refuge_listed(
        &mut self,
        now: Time,
        peer: PeerId,
        to: EndpointAddr,
        used: &[Fingerprint],
        outside: &mut impl Outside,
    ) -> Option<(ConnId, Fingerprint)> {
        for _ in 0..TRIES {
            let dead = self.dead_to(to);
            let path = self.ases.get(&to.isd_as)?.pick(&self.wish(now, to, used, &dead))?;
            if let Some(conn) = self.conn_along(now, peer, to, &path, outside) {
                return Some((conn, path.interfaces));
            }
            self.ases
                .get_mut(&to.isd_as)
                .into_iter()
                .for_each(|paths| paths.set_aside(now, |one| *one == path.interfaces));
        }
        None
    }

    /// Step 1: a connection that works, along a path that is no longer known.
    fn refuge_unlisted(&self, to: EndpointAddr, used: &[Fingerprint]) -> Option<(ConnId, Fingerprint)> {
        let is_free = |conn: &Conn| conn.to == to && !conn.health.is_dead() && !used.contains(conn.fingerprint());
        let (place, conn) = self.conns.iter().find(|(_, conn)| is_free(conn))?;
        Some((ConnId(place), conn.fingerprint().clone()))
    }

    /// Step 2.
    fn give_up(&mut self, now: Time, id: FlowId, siblings: &[FlowId], outside: &mut impl Outside) {
        let living = |id: &FlowId| match self.lane(*id).map(|lane| (lane.way, lane.is_lost)) {
            Some((Way::Conn(conn), false)) => {
                self.conns.get(conn.0).is_some_and(|conn| !conn.health.is_dead()).then_some(conn)
            }
            _ => None,
        };
        let Some(refuge) = siblings.iter().find_map(living) else { return };
        let connection = self.table.get(id).and_then(|flow| self.table.connection(flow.connection?));
        let token = connection.and_then(|connection| connection.token(Direction::In));
        let Some(lane) = self.lane_mut(id).filter(|lane| !lane.is_lost) else { return };
        lane.is_lost = true;
        let key = lane.key;
        self.set_way(now, id, Way::Conn(refuge));
        if let Some(token) = token {
            self.counters.lost += 1;
            outside.tell(Notice::Lost { token, key });
        }
    }

    /// Step 4, for flows that stay on a path which was dead, or was renewed: the peer may have no other word of it.
    pub(super) fn announce_on(&mut self, now: Time, id: ConnId, outside: &mut impl Outside) {
        let is_on = |lane: &&Lane| lane.way == Way::Conn(id) && lane.is_ours && !lane.is_over;
        let on_it: Vec<FlowId> = self.lanes.iter().flatten().filter(is_on).map(|lane| lane.id).collect();
        on_it.into_iter().for_each(|flow| self.begin_announcing(now, flow, outside));
    }

    /// Step 4.
    fn begin_announcing(&mut self, now: Time, id: FlowId, outside: &mut impl Outside) {
        let Some(lane) = self.lane_mut(id) else { return };
        lane.is_lost = false;
        lane.announcement = Some(Announcement { left: ANNOUNCEMENTS, next: now + BETWEEN });
        self.announces = true;
        self.announce(now, id, outside);
    }

    fn announce(&mut self, now: Time, id: FlowId, outside: &mut impl Outside) {
        let Some(lane) = self.lanes.get(id.place()).and_then(Option::as_ref) else { return };
        let Way::Conn(conn_id) = lane.way else { return };
        let (Some(peer), Some(conn)) = (self.peers.get_mut(lane.peer.0), self.conns.get_mut(conn_id.0)) else { return };
        let (compression, out) = (&mut peer.compression, &mut self.scratch.datagrams);
        out.clear();
        let form = if lane.key.protocol == Protocol::Udp {
            compression.announce_datagram(now, &lane.key, conn.room, out).then_some(Form::Datagrams)
        } else {
            let mut writer = Writer { now, room: conn.room, outer: lane.outer, compression, out };
            writer.announce(lane.headers.get(), outside)
        };
        let datagrams = &self.scratch.datagrams;
        if form.is_some_and(|form| form.send(Via::Conn(conn_id), datagrams, outside) == Sent::All) {
            conn.sent(now, datagrams.len(), datagrams.iter().map(<[u8]>::len).sum());
        }
    }

    /// Step 4, as time passes.
    pub(super) fn announce_again(&mut self, now: Time, outside: &mut impl Outside) {
        if !self.announces {
            return;
        }
        for place in 0..self.lanes.len() {
            let Some(lane) = self.lanes[place].as_mut() else { continue };
            let Some(announcement) = lane.announcement.as_mut().filter(|one| one.next <= now) else { continue };
            if announcement.left == 0 {
                lane.announcement = None;
                continue;
            }
            *announcement = Announcement { left: announcement.left - 1, next: now + BETWEEN };
            let id = lane.id;
            self.announce(now, id, outside);
        }
        self.announces = self.lanes.iter().flatten().any(|lane| lane.announcement.is_some());
    }
}
