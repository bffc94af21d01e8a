//! A member: a portal with its gate, as a driver runs them, and what holds of it at every moment.

use crate::net::Datagram;
use crate::portal::Portal;
use hawser_core::endpoint::Event;
use hawser_core::resequence::Sink;
use hawser_core::session::Transmit;
use hawser_core::units::{LinkId, PeerId, Time};
use hawser_hub::claim::{Role, Timing};
use hawser_hub::gate::{Announced, Gate};
use hawser_hub::units::{Epoch, MemberId};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Packets that a TUN device keeps for a process that does not read (`txqueuelen`).
const TUN_KEEPS: usize = 500;
/// The peer that this is all about.
const PEER: PeerId = PeerId(0);
/// IPv4's field of the protocol, and TCP's number: what TCP retransmits may be the same.
const PROTOCOL: usize = 9;
const TCP: u8 = 6;

/// Inner packets that came out of a core.
#[derive(Default)]
pub struct Inbox {
    /// Bytes, and whether the transport checksum covers the pseudo-header only.
    pub packets: Vec<(Vec<u8>, bool)>,
    /// Of how many of them it was checked that they might.
    checked: usize,
}

impl Sink for Inbox {
    fn deliver(&mut self, packet: &[u8], partial: bool) {
        self.packets.push((packet.to_vec(), partial));
    }
}

/// A member. It serves nobody at first; the world owns it.
pub struct Member {
    /// Its core, clock and sockets.
    pub portal: Portal,
    /// Whether it forwards.
    pub gate: Gate,
    id: MemberId,
    /// What a stopped process did not read from TUN.
    kept: Vec<Vec<u8>>,
    /// Packets of other protocols than TCP that it forwarded: each once.
    forwarded: HashSet<u64>,
    /// Claims that it heard, and how often a lease was over before the next one came.
    pub claims: u64,
    /// See `claims`.
    pub lapses: u64,
    owned: bool,
}

impl Member {
    /// One of this name.
    pub fn new(portal: Portal, id: MemberId) -> Self {
        let gate = Gate::new(id, Timing::DEFAULT);
        let mut member = Member {
            portal,
            gate,
            id,
            kept: Vec::new(),
            forwarded: HashSet::new(),
            claims: 0,
            lapses: 0,
            owned: false,
        };
        member.begin(Time::ZERO);
        member
    }

    fn begin(&mut self, now: Time) {
        let mut nobody = Inbox::default();
        let shown = self.portal.clock.show(now);
        self.gate.add_peer(shown, PEER, &mut self.portal.endpoint, &mut nobody);
    }

    /// The epoch in which it owns, if it does and runs.
    pub fn owns(&self, now: Time) -> Option<Epoch> {
        let role = self.gate.role(self.portal.clock.show(now), PEER);
        let known = self.gate.known(PEER).filter(|_| role == Role::Owner && !self.portal.stopped);
        known.map(|claim| claim.epoch)
    }

    /// Its process ends, and all that it knew.
    pub fn kill(&mut self) {
        (self.portal.stopped, self.portal.frozen) = (true, None);
        self.kept.clear();
    }

    /// It starts anew.
    pub fn restart(&mut self, now: Time) {
        self.portal.restart(now);
        self.gate = Gate::new(self.id, Timing::DEFAULT);
        self.begin(now);
    }

    /// Its process is stopped; sockets and TUN keep what comes.
    pub fn freeze(&mut self) {
        (self.portal.stopped, self.portal.frozen) = (true, Some(Vec::new()));
    }

    /// It is let go on, and reads what was kept.
    pub fn thaw(&mut self, now: Time, inbox: &mut Inbox) {
        let kept = self.portal.frozen.take().unwrap_or_default();
        self.portal.stopped = false;
        for (link, datagram) in kept {
            self.receive(now, link, datagram, inbox);
        }
        for packet in std::mem::take(&mut self.kept) {
            self.take_inner(now, &packet, inbox);
        }
    }

    /// A datagram reaches its socket.
    pub fn receive(&mut self, now: Time, link: LinkId, datagram: Datagram, inbox: &mut Inbox) {
        if self.portal.keeps(link, &datagram) || self.portal.stopped {
            return;
        }
        let shown = self.batch(now, inbox);
        let Datagram { from, to, ecn, mut bytes } = datagram;
        self.portal.endpoint.handle_datagram(shown, link, from, Some(to.ip()), ecn, &mut bytes, inbox);
        self.after(now, inbox);
    }

    /// The router sends a packet for the peer to it.
    pub fn take_inner(&mut self, now: Time, packet: &[u8], inbox: &mut Inbox) {
        if self.portal.frozen.is_some() {
            if self.kept.len() < TUN_KEEPS {
                self.kept.push(packet.to_vec());
            }
            return;
        }
        if self.portal.stopped {
            return;
        }
        self.batch(now, inbox);
        self.portal.send_inner(now, hawser_core::packet::Offload::default(), |out| {
            out[..packet.len()].copy_from_slice(packet);
            packet.len()
        });
        self.after(now, inbox);
    }

    /// What is due is done.
    pub fn wake(&mut self, now: Time, inbox: &mut Inbox) {
        if self.portal.stopped {
            return;
        }
        let shown = self.batch(now, inbox);
        if self.portal.deadline(now).is_some_and(|at| at <= now) {
            self.portal.endpoint.handle_timeout(shown, inbox);
        }
        self.after(now, inbox);
    }

    /// The operator takes peers off it.
    pub fn drain(&mut self, now: Time, inbox: &mut Inbox) {
        let shown = self.batch(now, inbox);
        self.gate.handle_drain(shown, None, true, &mut self.portal.endpoint, inbox);
    }

    /// When it wants to be woken, as it tells its gate.
    pub fn deadline(&mut self, now: Time) -> Option<Time> {
        if self.portal.stopped {
            return None;
        }
        let core = self.portal.deadline(now).unwrap_or(Time::NEVER);
        let gate = self.gate.poll_timeout();
        let until = core.min(if gate == Time::NEVER { gate } else { self.portal.clock.when(gate) });
        let until = self.gate.note_rest(self.portal.clock.show(now), self.portal.clock.show(until));
        Some(self.portal.clock.when(until))
    }

    /// The next batch to send.
    pub fn poll_transmit(&mut self, now: Time) -> Option<(Transmit, &[u8])> {
        self.portal.poll_transmit(now)
    }

    /// What it announces.
    pub fn poll_announced(&mut self) -> Option<Announced> {
        self.gate.poll_event()
    }

    fn batch(&mut self, now: Time, inbox: &mut Inbox) -> Time {
        let shown = self.portal.clock.show(now);
        self.gate.handle_batch(shown, &mut self.portal.endpoint, inbox);
        self.check(now, inbox);
        shown
    }

    fn after(&mut self, now: Time, inbox: &mut Inbox) {
        let shown = self.portal.clock.show(now);
        self.check(now, inbox);
        while let Some(event) = self.portal.endpoint.poll_event() {
            if let Event::PeerMtu { mtu, .. } = event {
                self.portal.mtu = mtu;
            }
            self.claims += u64::from(matches!(event, Event::HubSaid { .. }));
            self.gate.handle_event(shown, &event, &mut self.portal.endpoint, inbox);
            self.check(now, inbox);
        }
    }

    /// What came out now was forwarded by an owner, and once.
    fn check(&mut self, now: Time, inbox: &mut Inbox) {
        let role = self.gate.role(self.portal.clock.show(now), PEER);
        self.lapses += u64::from(self.owned && role == Role::Lapsed);
        self.owned = role == Role::Owner;
        for (packet, _) in &inbox.packets[inbox.checked..] {
            assert!(self.owns(now).is_some(), "{:?} forwards at {now:?} and does not own", self.id);
            if packet[PROTOCOL] != TCP {
                let mut hasher = DefaultHasher::new();
                packet.hash(&mut hasher);
                assert!(self.forwarded.insert(hasher.finish()), "{:?} forwards a packet twice at {now:?}", self.id);
            }
        }
        inbox.checked = inbox.packets.len();
    }
}
