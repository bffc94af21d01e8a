//! Paths come, are validated, move, go down and are closed.
//!
//! The local portal opens a path on every link to every endpoint that the link can reach; of those of one configured
//! link (a socket for each IP version and transport) one stays (`rivals`). The remote portal makes a path when the
//! first authentic datagram of a new path id arrives. Either side challenges the address that it was given before it
//! sends more than a little there. A path that leads to or from another address is a new one but for its name; another
//! port alone is a NAT's doing (RFC 9000 section 9.4).

use super::constants::INITIAL_RTT;
use super::path::Path;
use super::{Event, Moved, Rank, Route, Session, reliable};
use crate::alias::Alias;
use crate::congestion::SocketState;
use crate::drops::DropReason;
use crate::path::health::{DownReason, HealthAction, HealthState};
use crate::path::validation::{PathValidation, ValidationAction};
use crate::scheduler::MAX_PATHS;
use crate::units::{LinkGroup, LinkId, PathId, Random, Time};
use crate::wire::{LinkState, PathInfo, Token};
use std::net::SocketAddr;
use std::time::Duration;

impl Session {
    /// Opens a path of our own; it is challenged at once. `None` when the session has too many.
    pub fn open_path(
        &mut self,
        now: Time,
        route: Route,
        (group, rank): (LinkGroup, Rank),
        metric: u16,
    ) -> Option<PathId> {
        if self.paths.len() >= MAX_PATHS || self.paths.iter().any(|path| path.route == route && !path.is_closed()) {
            return None;
        }
        let id = self.paths.ids.give()?;
        // We chose this address ourselves: nobody can use us to flood it.
        let index = self.add_path(now, id, route, metric, PathValidation::opened_by_us(route));
        (self.paths[index].offer.group, self.paths[index].offer.rank) = (Some(group), rank);
        self.announce(id, LinkState::Usable);
        self.offer_terms(index);
        Some(id)
    }

    fn add_path(
        &mut self,
        now: Time,
        id: PathId,
        route: Route,
        metric: u16,
        validation: PathValidation<Route>,
    ) -> usize {
        let named = (id, self.keyring.label(id));
        let index = self.paths.add(now, named, route, metric, &self.settings, validation);
        self.events.push(Event::PathsSeen);
        self.scheduling.policy.reconsider();
        index
    }

    /// The path of an authentic datagram; made if the peer just opened it.
    pub(super) fn path_for(&mut self, now: Time, id: PathId, route: Route) -> Result<usize, DropReason> {
        if let Some(index) = self.paths.index_of(id) {
            return Ok(index);
        }
        if !self.paths.ids.may_open(id) || self.paths.len() >= MAX_PATHS {
            return Err(DropReason::UnknownLabel);
        }
        self.paths.ids.use_up(id);
        Ok(self.add_path(now, id, route, 0, PathValidation::opened_by_peer(route)))
    }

    /// A challenge was answered.
    pub(super) fn on_response(&mut self, now: Time, index: usize, token: Token) {
        let alone = !self.paths.iter().any(Path::works);
        let path = &mut self.paths[index];
        let Some(validated) = path.validation.on_response(now, token) else { return };
        self.liveness.note_proof(now);
        let transport = self.paths.transport(validated.remote.link);
        let path = &mut self.paths[index];
        if alone {
            path.health.forgive_flaps();
        }
        let moved = path.route.moved_to(&validated.remote);
        (path.route, path.transport) = (validated.remote, transport);
        let before = path.health.state();
        let returned = path.health.on_validated(now);
        path.flight.sent.on_answer(now);
        let took = now.since(validated.challenged_at);
        if self.liveness.is_awake_since(validated.challenged_at) {
            path.way.rtt.on_answer(now, took, took > path.way.probe_timeout());
        }
        if moved == Some(Moved::Address) {
            // The link may have kept the challenge for long: that is no round trip.
            self.relocate(now, index, took.min(INITIAL_RTT));
        } else if returned && before != HealthState::Suspect {
            path.restart(now, &self.settings);
        }
        if !returned {
            return;
        }
        if self.paths[index].way.pmtu.is_found() {
            self.events.push(Event::MtuChanged);
        }
        self.scheduling.policy.reconsider();
        let id = self.paths[index].id;
        if self.close_rivals(now, id) {
            self.announce(id, LinkState::Usable);
        }
        self.paths.index_of(id).into_iter().for_each(|index| self.repeat_terms(index));
        self.reinject_stranded(now);
    }

    /// Closes a path for good, and says so.
    pub(super) fn close_path(&mut self, now: Time, index: usize) {
        let id = self.paths[index].id;
        self.take_down(now, index, DownReason::Closed);
        self.announce(id, LinkState::Closed);
    }

    /// What paths that do not work still hold is given to those that do.
    fn reinject_stranded(&mut self, now: Time) {
        for index in 0..self.paths.len() {
            if !self.paths[index].works() {
                self.reinject(now, index);
            }
        }
    }

    /// What validation has to say: a challenge is due, or an address did not answer.
    pub(super) fn validation_timeout(&mut self, now: Time, index: usize, rng: &mut dyn Random) {
        loop {
            let path = &mut self.paths[index];
            // Before anything is known, a lost challenge must not cost a second: it may be repeated
            // on a path that is merely long.
            let pto = if path.way.rtt.has_sample() { path.way.probe_timeout() } else { INITIAL_RTT };
            match path.validation.handle_timeout(now, pto, rng) {
                ValidationAction::None => return,
                ValidationAction::Challenge { to, token } => path.wants.challenge = Some((token, to)),
                ValidationAction::Failed if path.health.state() == HealthState::Validating => {
                    self.take_down(now, index, DownReason::Timeout);
                }
                ValidationAction::Failed | ValidationAction::MoveFailed => {}
            }
        }
    }

    /// A path is known to be down: its load goes to the others at once.
    pub(super) fn take_down(&mut self, now: Time, index: usize, reason: DownReason) {
        let path = &mut self.paths[index];
        let action = path.health.on_down(now, reason);
        if reason == DownReason::Closed {
            self.events.push(Event::PathClosed(path.id));
        } else if action == HealthAction::BecameDown {
            // Else what arrived is retransmitted, before what did not.
            path.received.repeat_ack(now);
        }
        if action == HealthAction::BecameDown {
            self.events.push(Event::PathDown);
            self.reinject(now, index);
        }
    }

    /// The peer closed a path that never began here: its datagrams may still be on their way. Not believed of paths
    /// that it cannot open; tells whether it was.
    pub(super) fn never_began(&mut self, id: PathId) -> bool {
        let believed = self.paths.ids.hear_of(id);
        if believed {
            self.paths.ids.use_up(id);
            self.events.extend([Event::PathsSeen, Event::PathClosed(id)]);
        }
        believed
    }

    /// The peer opened a path that did not begin here yet. Tells whether that is believed.
    pub(super) fn will_begin(&mut self, id: PathId) -> bool {
        let believed = self.paths.ids.hear_of(id);
        if believed {
            self.events.push(Event::PathsSeen);
        }
        believed
    }

    /// The least of the peer's path ids that may still come, beside those in use.
    pub fn floor(&self) -> PathId {
        self.paths.ids.floor()
    }

    /// Every path id whose datagrams may come: of paths in use, and of those that the peer may open.
    pub fn ids_to_come(&self) -> impl Iterator<Item = PathId> + '_ {
        let open = self.paths.iter().filter(|path| !path.is_closed()).map(|path| path.id);
        open.chain(self.paths.ids.may_come())
    }

    /// Whether a path of this id is in use.
    pub fn is_open(&self, id: PathId) -> bool {
        self.paths.index_of(id).is_some_and(|index| !self.paths[index].is_closed())
    }

    /// Only these endpoints are the peer's from now on.
    pub fn keep_endpoints(&mut self, now: Time, endpoints: &[SocketAddr]) {
        for index in 0..self.paths.len() {
            let path = &self.paths[index];
            if path.offer.is_ours() && !path.is_closed() && !endpoints.contains(&path.route.remote) {
                self.close_path(now, index);
            }
        }
    }

    /// Only these are the ways of a link from now on.
    pub fn keep_aliases(&mut self, now: Time, link: LinkId, aliases: &[Alias]) {
        for index in 0..self.paths.len() {
            let path = &self.paths[index];
            let kept = |alias: &Alias| alias.address().ip() == path.route.remote.ip();
            if path.route.link == link && path.offer.is_ours() && !path.is_closed() && !aliases.iter().any(kept) {
                self.close_path(now, index);
            }
        }
    }

    /// The tier of a link's paths, which the peer learns too.
    pub fn set_metric(&mut self, link: LinkId, metric: u16) {
        for index in 0..self.paths.len() {
            let path = &mut self.paths[index];
            if !path.offer.is_ours() || path.route.link != link || path.is_closed() || path.offer.metric == metric {
                continue;
            }
            path.offer.metric = metric;
            let (id, down) = (path.id, matches!(path.health.state(), HealthState::Down(_)));
            self.announce(id, if down { LinkState::Down } else { LinkState::Usable });
            self.scheduling.policy.reconsider();
        }
    }

    /// The driver says that a link cannot be used now.
    pub fn on_link_down(&mut self, now: Time, link: LinkId, reason: DownReason) {
        for index in 0..self.paths.len() {
            let path = &self.paths[index];
            if path.route.link == link && !path.is_closed() {
                let id = path.id;
                self.take_down(now, index, reason);
                self.announce(id, LinkState::Down);
            }
        }
    }

    /// The driver says that a link is gone for good.
    pub fn on_link_removed(&mut self, now: Time, link: LinkId) {
        self.on_link_down(now, link, DownReason::LinkLost);
        for index in 0..self.paths.len() {
            let path = &self.paths[index];
            if path.route.link == link && path.offer.is_ours() && !path.is_closed() {
                self.close_path(now, index);
            }
        }
    }

    /// The driver says that a link can be used again: its paths are probed at once.
    pub fn on_link_up(&mut self, now: Time, link: LinkId) {
        for path in self.paths.iter_mut().filter(|path| path.route.link == link) {
            path.health.probe_now(now);
        }
    }

    /// The driver says that the stream of this link to `remote` broke: paths along it are down at once, and probed
    /// again, which asks for another stream.
    pub fn on_stream_down(&mut self, now: Time, link: LinkId, remote: SocketAddr) {
        for index in 0..self.paths.len() {
            let path = &self.paths[index];
            if path.goes_by(link, remote) && !path.is_closed() {
                let id = path.id;
                self.take_down(now, index, DownReason::LinkLost);
                self.paths[index].health.probe_now(now);
                self.announce(id, LinkState::Down);
            }
        }
    }

    /// The driver says that there is a stream of this link to `remote` (again).
    pub fn on_stream_up(&mut self, now: Time, link: LinkId, remote: SocketAddr) {
        self.paths.iter_mut().filter(|path| path.goes_by(link, remote)).for_each(|path| path.health.probe_now(now));
    }

    /// The driver looked at the socket of the stream of this link to `remote`.
    pub fn on_socket(&mut self, link: LinkId, remote: SocketAddr, state: &SocketState) {
        self.paths.iter_mut().filter(|path| path.goes_by(link, remote)).for_each(|path| path.on_socket(state));
    }

    /// Somebody says that the way of this link to `remote` is broken. Where `quoted` begins a datagram that went by it
    /// and was not acknowledged, what is under way goes by others at once, and a probe asks. Whether it does.
    pub fn on_broken(&mut self, now: Time, link: LinkId, remote: SocketAddr, quoted: &[u8]) -> bool {
        let mut sent = false;
        for index in 0..self.paths.len() {
            let path = &mut self.paths[index];
            if !path.goes_by(link, remote) || !path.sent_quoted(quoted, 0) {
                continue;
            }
            sent = true;
            if path.health.on_doubt(now, path.way.probe_timeout()) {
                path.wants.ping = true;
                self.on_suspect(now, index);
            }
        }
        sent
    }

    /// The driver says that a link's address changed: the peer learns the new one from a datagram.
    pub fn on_link_moved(&mut self, now: Time, link: LinkId, moved: Moved) {
        for index in 0..self.paths.len() {
            let path = &mut self.paths[index];
            if path.route.link != link || path.is_closed() {
                continue;
            }
            path.wants.ping = true;
            path.health.probe_now(now);
            if moved == Moved::Address {
                self.relocate(now, index, INITIAL_RTT);
            }
        }
    }

    /// A path leads another way: what was under way may have gone with the old one, and is retransmitted.
    fn relocate(&mut self, now: Time, index: usize, round_trip: Duration) {
        self.drain(now, index);
        self.paths[index].relocate(now, round_trip, &self.settings);
        self.scheduling.policy.reconsider();
    }

    /// The socket refused a datagram as too large: the path's MTU is less. Whether any path leads there.
    pub fn on_too_big(&mut self, link: LinkId, remote: SocketAddr, size: u16) -> bool {
        let mut found = false;
        for path in self.paths.iter_mut().filter(|path| path.route.link == link && path.route.remote == remote) {
            path.way.pmtu.on_too_big(size);
            path.follow_mtu();
            found = true;
        }
        found
    }

    /// A router says that datagrams of this size do not pass, and quotes one, unless the link has tested that it was
    /// sent. Whether that is news of a path: it must be a datagram that went by it, and was not acknowledged (RFC 8899
    /// section 4.6.1).
    pub fn on_hint(&mut self, link: LinkId, remote: SocketAddr, size: u16, quoted: Option<&[u8]>) -> bool {
        let mut news = false;
        for path in self.paths.iter_mut().filter(|path| path.goes_by(link, remote)) {
            if quoted.is_none_or(|quoted| path.sent_quoted(quoted, size)) {
                news |= path.way.pmtu.on_hint(size);
            }
        }
        news
    }

    /// Tells the peer how one of our paths stands; this word replaces older word about it.
    pub(super) fn announce(&mut self, id: PathId, state: LinkState) {
        let Some(index) = self.paths.index_of(id) else { return };
        let (metric, reliable) = (self.paths[index].offer.metric, &mut self.recovery.reliable);
        let revision = reliable.next_revision();
        reliable.push(reliable::Frame::Info(PathInfo { path: id, state, metric, revision }));
    }

    /// Forgets closed paths that nobody waits for any more.
    pub(super) fn sweep_closed(&mut self) {
        if self.paths.sweep_closed() {
            self.scheduling.policy.reconsider();
        }
    }
}
