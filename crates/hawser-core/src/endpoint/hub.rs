//! A hub's portals (`hawser-hub`): a peer that has two members, or a member that serves peers which may be another's.
//!
//! The peer:
//! 1. `pair`: two peers are members of one hub. They have the same networks; what comes from either is taken, and
//!    packets go to one, the *carrier*.
//! 2. `hand_over`: the other one is the carrier from now on, and gets what waits. What the first was sent and did not
//!    acknowledge goes with it, before all else (`Handing::All`: the first is silent), or comes to its end where it is,
//!    and the rest follows later (`Handing::Queue`, then `hand_over_rest`: a planned move). Where the carrier closes
//!    its session all goes at once.
//!
//! The member:
//! 3. `set_standing`: whether a peer is served. Packets from and for one that is not are held for a moment, or dropped.
//!
//! Both say and hear CLAIM and CLAIM_ACK, which mean nothing here (`say_to_hub`, [`super::Event::HubSaid`]).

use super::peer::INITIATE_EVERY;
use super::{Endpoint, Event};
use crate::drops::DropReason;
use crate::packet::TrainId;
use crate::rules::Mark;
use crate::session::{Part, Presence, Reach, Sink};
use crate::units::{PeerId, Start, Time};
use crate::wire::HubFrame;
use std::net::IpAddr;

/// Whether packets from and for a peer are forwarded. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Standing {
    /// They are.
    #[default]
    Served,
    /// They wait: whether they are is to be known within a moment (`HELD_FOR`). Those that came first are dropped where
    /// there are too many.
    Held,
    /// They are dropped.
    Refused,
}

/// Rounds of initiations whose lack of an answer is a silence: as of datagrams, one may be lost.
const INITIATIONS: u32 = 2;

/// What goes to the other member at once. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Handing {
    /// What was not acknowledged, too: both members may have it then.
    All,
    /// What was not sent yet.
    Queue,
}

/// Two members of a hub, as a peer knows them.
#[derive(Copy, Clone, Debug)]
pub(super) struct Pair {
    members: [PeerId; 2],
    carrier: PeerId,
}

impl Endpoint {
    /// Step 1. Packets go to the first of the two, which must have the same networks.
    pub fn pair(&mut self, members: [PeerId; 2]) {
        self.pairs.retain(|pair| !pair.members.iter().any(|peer| members.contains(peer)));
        self.pairs.push(Pair { members, carrier: members[0] });
        self.routing.pair(members);
        self.route_carriers();
    }

    /// The member of a peer's hub that packets go to.
    pub fn carrier(&self, peer: PeerId) -> Option<PeerId> {
        self.pairs.iter().find(|pair| pair.members.contains(&peer)).map(|pair| pair.carrier)
    }

    /// Step 2: `to` is the carrier from now on. False where it is already, is of no pair, or has no session.
    pub fn hand_over(&mut self, now: Time, to: PeerId, what: Handing) -> bool {
        let Some(pair) = self.pairs.iter_mut().find(|pair| pair.members.contains(&to)) else { return false };
        let from = pair.carrier;
        if from == to || self.peers[to.0 as usize].session.is_none() {
            return false;
        }
        pair.carrier = to;
        self.route_carriers();
        self.give(now, [from, to], if what == Handing::All { Part::All } else { Part::Queue });
        true
    }

    /// Step 2: what the member that is not the carrier has under way goes to the carrier too.
    pub fn hand_over_rest(&mut self, now: Time, from: PeerId) {
        if let Some(to) = self.carrier(from).filter(|to| *to != from) {
            self.give(now, [from, to], Part::InFlight);
        }
    }

    /// Whether anything that a peer was sent is not acknowledged.
    pub fn has_in_flight(&self, PeerId(id): PeerId) -> bool {
        self.peers[id as usize].session.as_ref().is_some_and(|session| session.has_in_flight())
    }

    fn give(&mut self, now: Time, [from, to]: [PeerId; 2], part: Part) {
        let (peer, mut cx) = self.parts(from);
        let handed = peer.session.as_mut().map(|session| session.surrender(now, part, &mut cx));
        let waiting = peer.take_waiting();
        let (peer, mut cx) = self.parts(to);
        if let Some((session, handed)) = peer.session.as_mut().zip(handed) {
            session.adopt(now, handed, cx.store);
        }
        waiting.for_each(|train| peer.enqueue(now, train, &mut cx));
        self.settle(now, from);
        self.settle(now, to);
    }

    /// Step 2: a peer closed its session. What was to go to it may go to its twin.
    pub(super) fn leave_closed(&mut self, now: Time, id: PeerId) {
        if let Some(twin) = self.routing.twin(id).filter(|_| self.carrier(id) == Some(id)) {
            self.hand_over(now, twin, Handing::All);
        }
    }

    /// Says a CLAIM or CLAIM_ACK to a peer, once; to a standby what the carrier's links bring, too. False where it is
    /// away, or does not know what that is.
    pub fn say_to_hub(&mut self, now: Time, id: PeerId, frame: HubFrame, reach: Reach) -> bool {
        self.say_beside(now, id, frame, reach, Start::Careful)
    }

    /// The same of a planned move: the carrier hands over to this peer.
    pub fn say_of_move(&mut self, now: Time, id: PeerId, frame: HubFrame, reach: Reach) -> bool {
        self.say_beside(now, id, frame, reach, Start::Beside)
    }

    fn say_beside(&mut self, now: Time, id: PeerId, frame: HubFrame, reach: Reach, start: Start) -> bool {
        let carrier = self.carrier(id);
        let of_carrier = carrier.and_then(|PeerId(carrier)| self.peers[carrier as usize].session.as_mut());
        // Measured whoever is told: the standby is told seldom.
        let brought =
            of_carrier.map(|session| session.brought(now).collect::<Vec<_>>()).filter(|_| carrier != Some(id));
        let session = self.peers.get_mut(id.0 as usize).and_then(|peer| peer.session.as_mut());
        session.is_some_and(|session| {
            brought.iter().for_each(|brought| session.tell_carried(now, start, brought));
            session.say_to_hub(now, frame, reach)
        })
    }

    /// The other member has brought what it had: this one's paths are to go on as fast.
    pub fn say_known(&mut self, PeerId(id): PeerId) {
        self.peers[id as usize].session.iter_mut().for_each(|session| session.tell_known());
    }

    /// A peer is asked to claim another member, or no longer: what goes by that one finds room on the links.
    pub fn leave_room(&mut self, now: Time, PeerId(id): PeerId, leaves: bool) {
        self.peers[id as usize].session.iter_mut().for_each(|session| session.leave_room(now, leaves));
    }

    /// Whether a peer is there.
    pub fn presence(&self, PeerId(id): PeerId) -> Presence {
        let peer = &self.peers[id as usize];
        let asking_since = peer.asking_since;
        let overdue_at = asking_since.map(|since| since + INITIATIONS * INITIATE_EVERY);
        let away = Presence {
            unanswered_since: asking_since,
            answered_at: None,
            late_at: overdue_at,
            overdue_at,
            idle: false,
            busy_at: None,
        };
        peer.session.as_ref().map_or(away, |session| session.presence())
    }

    /// Whether a peer has a session with us, and knows what CLAIM and CLAIM_ACK are about.
    pub fn knows_hub(&self, PeerId(id): PeerId) -> bool {
        self.peers[id as usize].session.as_ref().is_some_and(|session| session.knows_hub())
    }

    /// A peer is no more: whoever has its place next is of no pair, and served.
    pub(super) fn leave_hub(&mut self, id: PeerId) {
        self.pairs.retain(|pair| !pair.members.contains(&id));
        self.routing.leave_hub(id);
    }

    /// The networks of pairs lead to their carriers.
    pub(super) fn route_carriers(&mut self) {
        for Pair { carrier, .. } in &self.pairs {
            let nets = &self.peers[carrier.0 as usize].config.allowed_ips;
            nets.iter().for_each(|net| self.routing.insert(*net, *carrier));
        }
    }

    /// Step 3: from now on. What was held is forwarded, or dropped.
    pub fn set_standing(&mut self, now: Time, id: PeerId, standing: Standing, sink: &mut dyn Sink) {
        let before = self.routing.standing(id);
        if before == standing {
            return;
        }
        self.routing.set_standing(id, standing);
        let (peer, mut cx) = self.parts(id);
        if before == Standing::Served
            && let Some(session) = &mut peer.session
        {
            session.drop_undelivered(now, cx.drops);
        }
        let served = standing == Standing::Served;
        for (train, fresh) in peer.take_held(now) {
            if served && fresh {
                peer.enqueue(now, train, &mut cx);
            } else {
                cx.store.release_all(train);
                cx.drops.count(DropReason::NotOwner);
            }
        }
        if let Some(session) = &mut peer.session {
            session.release_held(now, served, sink, cx.drops);
        }
    }

    /// Step 3: since when the host brings packets for a peer that are held, and when the last one came; none where it
    /// has brought none for a second. What the host itself and this portal's other peers send is not brought: routers
    /// say nothing by it.
    pub fn brought(&self, now: Time, PeerId(id): PeerId) -> Option<(Time, Time)> {
        self.peers[id as usize].brought(now)
    }

    /// Step 3: the host has these addresses from now on.
    pub fn set_host_addresses(&mut self, addresses: Vec<IpAddr>) {
        self.host = addresses;
    }

    /// Step 3: this many inner packets were delivered, and not forwarded: the driver did not run meanwhile.
    pub fn note_fenced(&mut self, packets: u64) {
        self.drops.add(DropReason::NotOwner, packets);
    }

    /// Step 3: what came from TUN for a peer that is not served. Without one, `reason` is why it is dropped.
    #[cold]
    pub(super) fn refuse_inner(&mut self, now: Time, train: TrainId, mark: Mark, reason: DropReason) {
        let (source, destination) = (self.store.train(train).source(), self.store.train(train).destination());
        let reason = match self.routing.unserved(destination) {
            // As for a peer that is served.
            Some((peer, _)) if self.routing.is_from_another(peer, source) => DropReason::BetweenPeers,
            Some((peer, Standing::Held)) if self.store.charge(train, peer.0) => {
                let treatment = self.rules.treatment(self.store.train(train).inner(), mark);
                self.store.treat(train, treatment);
                // A peer must not move another one by what it sends, nor this host by what it asks or answers.
                let is_hosts = self.own.contains(&source) || self.host.contains(&source);
                let is_brought = !is_hosts && !self.routing.belongs_to_another(peer, source);
                let (held, mut cx) = self.parts(peer);
                if held.hold(now, train, is_brought, &mut cx) {
                    self.events.push(Event::Holds { peer });
                }
                return;
            }
            Some((_, Standing::Held)) => DropReason::StoreShare,
            Some(_) => DropReason::NotOwner,
            None => reason,
        };
        self.store.release_all(train);
        self.drops.count(reason);
    }
}
