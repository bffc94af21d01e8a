//! A state of the model, and what happens to it.

use super::envelope::{Envelope, Packed};
use super::places::Places;
use super::{Action, Broken, Hub};
use hawser_core::units::Time;
use hawser_hub::claim::{ClaimFrame, ClaimMessage, Claimant, Forwarding, Ownership, Phase, Timing, Verdict};
use hawser_hub::units::{Epoch, MemberId, Stamp};
use std::collections::BTreeMap;
use std::time::Duration;

const TICK: Duration = Duration::from_secs(1);
/// A lease, in ticks.
pub const LEASE: u8 = 2;
/// As short as they can be, with a lease that outlives a silence: a search must see several of each.
const TIMING: Timing = Timing {
    silence: Duration::from_secs(1),
    ask: Duration::from_millis(500),
    refresh: Duration::from_secs(1),
    standby_refresh: Duration::from_secs(1),
    retransmit: Duration::from_secs(1),
    lease: Duration::from_secs(LEASE as u64),
    late: Duration::from_secs(1000),
};
/// How many members there are at most.
pub const MOST: usize = 3;
/// By their places in the peer's list.
pub const IDS: [MemberId; MOST] = [MemberId(0), MemberId(1), MemberId(2)];
/// Whose clock it is.
const PEER: usize = MOST;

/// What `who`'s clock shows at a tick: each has its own zero.
pub fn clock(who: usize, tick: u8) -> Time {
    Time::ZERO + TICK * (u32::from(tick) + 100 * who as u32)
}

/// A member's machine. `heard` and `claimed` are kept by the model.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Machine {
    ownership: Ownership,
    /// How many times it restarted.
    pub start: u8,
    pub draining: bool,
    /// The life of the peer with which it has a session.
    life: Option<u8>,
    /// Not stopped.
    pub running: bool,
    /// The highest epoch that came to it since it started, from anybody, and from the peer as its own.
    pub heard: Option<Epoch>,
    /// See `heard`.
    pub claimed: Option<Epoch>,
}

/// All that there is. `owners` and `said_at` are kept by the model.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    pub now: u8,
    pub peer: Claimant,
    life: u8,
    pub members: Vec<Machine>,
    /// The start of each member with which the peer has a session.
    sessions: [Option<u8>; MOST],
    /// As they are at the start where no member is spare.
    pub places: Places,
    /// All that was ever sent, in order.
    pub network: Vec<Packed>,
    pub faults: u8,
    pub extras: u8,
    /// Which members ever forwarded in an epoch, a bit each.
    pub owners: BTreeMap<Epoch, u8>,
    /// When an epoch was last said by the peer.
    pub said_at: BTreeMap<Epoch, u8>,
}

impl Machine {
    fn new(at: usize, start: u8) -> Self {
        Machine {
            ownership: Ownership::new(IDS[at], TIMING),
            start,
            draining: false,
            life: None,
            running: true,
            heard: None,
            claimed: None,
        }
    }
}

impl State {
    /// Everybody has just started.
    pub fn new(hub: &Hub) -> Self {
        let mut state = State {
            now: 0,
            peer: Claimant::new(Epoch::FIRST, IDS[0], IDS[1], TIMING),
            life: 0,
            members: (0..hub.members).map(|at| Machine::new(at, 0)).collect(),
            sessions: [Some(0); MOST],
            places: Places::new(0, 1),
            network: Vec::new(),
            faults: hub.faults,
            extras: hub.extras,
            owners: BTreeMap::new(),
            said_at: BTreeMap::new(),
        };
        for machine in &mut state.members {
            machine.life = Some(0);
        }
        state.speak();
        state
    }

    /// And has said what there was to say: the first member owns, the second stands by.
    pub fn settled(hub: &Hub) -> Self {
        let mut state = State::new(hub);
        state.deliver_all(hub);
        state
    }

    /// All that is under way comes, each message once, and what is said for that.
    pub fn deliver_all(&mut self, hub: &Hub) {
        while let Some(first) = self.network.pop() {
            if self.can_open(first) {
                self.happen(hub, Action::Deliver(first));
            }
        }
    }

    /// How far the peer is.
    pub fn phase(&self) -> Phase {
        self.peer.phase()
    }

    /// What becomes of packets at a member that runs.
    pub fn forwarding_of(&self, at: usize) -> Forwarding {
        self.members[at].ownership.forwarding(clock(at, self.now))
    }

    /// The members that forward, and under which epoch. Who is stopped does nothing.
    pub fn forwarding(&self) -> impl Iterator<Item = (usize, Epoch)> {
        (0..self.members.len()).filter(|at| self.members[*at].running).filter_map(|at| match self.forwarding_of(at) {
            Forwarding::Forward(epoch) => Some((at, epoch)),
            Forwarding::Hold | Forwarding::Drop => None,
        })
    }

    /// Whether the peer has a session with the present start of a member.
    pub fn has_session(&self, at: usize) -> bool {
        self.sessions[at] == Some(self.members[at].start)
    }

    /// Whether it has one with any start of it.
    pub fn has_any_session(&self, at: usize) -> bool {
        self.sessions[at].is_some()
    }

    /// Whether whom it goes to runs, and has its keys. A member keeps an old session's until it restarts.
    pub fn can_open(&self, packed: Packed) -> bool {
        let envelope = packed.unpack();
        let machine = &self.members[envelope.member];
        match envelope.message {
            ClaimMessage::Claim(_) => machine.running && machine.start == envelope.start,
            ClaimMessage::Ack(_) => {
                self.life == envelope.life && self.sessions[envelope.member] == Some(envelope.start)
            }
        }
    }

    /// Something happens, and everybody who runs says what it then has to.
    pub fn happen(&mut self, hub: &Hub, action: Action) {
        match action {
            Action::Tick => self.tick(),
            Action::Deliver(packed) => self.deliver(hub, packed.unpack()),
            Action::Handshake(at) => {
                self.sessions[at] = Some(self.members[at].start);
                self.members[at].life = Some(self.life);
                self.places.begin_anew(at);
                self.peer.handle_session(clock(PEER, self.now), IDS[at]);
            }
            Action::Restart(at) => {
                self.faults -= 1;
                self.members[at] = Machine::new(at, self.members[at].start + 1);
            }
            Action::Stop(at) => {
                self.faults -= 1;
                self.members[at].running = false;
            }
            Action::LetGo(at) => self.members[at].running = true,
            Action::EndMove => {
                self.places.leaving = false;
                self.peer.let_go();
            }
            Action::RestartPeer { active } => self.restart_peer(hub, active),
            Action::Hearsay { to } => self.hearsay(to),
            Action::Traffic(at) => {
                self.extras -= 1;
                self.members[at].ownership.handle_traffic(clock(at, self.now));
            }
            Action::Drain(at) => {
                self.extras -= 1;
                let machine = &mut self.members[at];
                machine.draining = !machine.draining;
                machine.ownership.handle_drain(machine.draining);
            }
            Action::Miss(at) => {
                self.extras -= 1;
                self.places.away[at] = true;
            }
            Action::GoBack => {
                self.extras -= 1;
                if !self.places.leaving {
                    self.peer.handle_move(clock(PEER, self.now));
                }
            }
        }
        if hub.has_spare() {
            self.follow(hub, clock(PEER, self.now));
        }
        self.speak();
        for (at, epoch) in self.forwarding().collect::<Vec<_>>() {
            *self.owners.entry(epoch).or_default() |= 1 << at;
        }
    }

    fn tick(&mut self) {
        self.now += 1;
        self.peer.handle_timeout(clock(PEER, self.now));
        for at in 0..self.members.len() {
            if self.members[at].running {
                let Machine { ownership, heard, .. } = &mut self.members[at];
                ownership.handle_timeout(clock(at, self.now));
                // What it heard during a lease counts once that is over.
                *heard = (*heard).max(ownership.known().map(|claim| claim.epoch));
            }
        }
    }

    fn deliver(&mut self, hub: &Hub, envelope: Envelope) {
        let at = envelope.member;
        match envelope.message {
            ClaimMessage::Ack(ack) => {
                let now = clock(PEER, self.now);
                if hub.has_spare() {
                    self.places.hear(now, at, ack);
                }
                self.peer.handle_ack(now, IDS[at], ack);
            }
            ClaimMessage::Claim(frame) => {
                let now = clock(at, self.now);
                let echo = if hub.broken == Some(Broken::LeaseFromArrival) { Some(Stamp(now)) } else { frame.echo };
                let machine = &mut self.members[at];
                let _ = machine.ownership.handle_claim(now, ClaimFrame { echo, ..frame });
                machine.heard = machine.heard.max(Some(frame.claim.epoch));
                if frame.claim.owner == IDS[at] {
                    machine.claimed = machine.claimed.max(Some(frame.claim.epoch));
                }
            }
        }
    }

    /// The reserve on its disk gives the peer an epoch that it never made; the hub may have placed it anew.
    fn restart_peer(&mut self, hub: &Hub, active: usize) {
        self.faults -= 1;
        let reserved = self.peer.claim().epoch.next().expect("few epochs");
        let first = if hub.broken == Some(Broken::PeerForgets) { Epoch::FIRST } else { reserved };
        let standby = (active + 1) % hub.members;
        self.peer = Claimant::new(first, IDS[active], IDS[standby], TIMING);
        if hub.has_spare() {
            self.places = Places::new(active, standby);
        }
        self.life += 1;
        self.sessions = [None; MOST];
    }

    fn hearsay(&mut self, to: usize) {
        self.extras -= 1;
        if let Some(claim) = self.members[1 - to].ownership.known() {
            let now = clock(to, self.now);
            let machine = &mut self.members[to];
            if machine.ownership.handle_hearsay(now, claim) == Verdict::Taken {
                machine.heard = machine.heard.max(Some(claim.epoch));
            }
        }
    }

    /// All that is due is sent. Without a session nothing can be.
    fn speak(&mut self) {
        while let Some((id, frame)) = self.peer.poll_transmit(clock(PEER, self.now)) {
            let member = id.0 as usize;
            if let Some(start) = self.sessions[member] {
                self.said_at.insert(frame.claim.epoch, self.now);
                self.send(Envelope { member, start, life: self.life, message: ClaimMessage::Claim(frame) });
            }
        }
        for member in 0..self.members.len() {
            let machine = &mut self.members[member];
            let ack = machine.running.then(|| machine.ownership.poll_ack(clock(member, self.now))).flatten();
            if let Some((ack, life)) = ack.zip(machine.life) {
                let start = machine.start;
                self.send(Envelope { member, start, life, message: ClaimMessage::Ack(ack) });
            }
        }
    }

    fn send(&mut self, envelope: Envelope) {
        let packed = envelope.pack();
        if let Err(slot) = self.network.binary_search(&packed) {
            self.network.insert(slot, packed);
        }
    }
}
