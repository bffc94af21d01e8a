//! A state of the model, and what happens to it.

use super::envelope::{Envelope, Packed};
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
const IDS: [MemberId; 2] = [MemberId(0), MemberId(1)];
/// Whose clock it is.
const PEER: usize = 2;

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
    draining: bool,
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
    pub members: [Machine; 2],
    /// The start of each member with which the peer has a session.
    sessions: [Option<u8>; 2],
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
            members: [Machine::new(0, 0), Machine::new(1, 0)],
            sessions: [Some(0); 2],
            network: Vec::new(),
            faults: hub.faults,
            extras: hub.extras,
            owners: BTreeMap::new(),
            said_at: BTreeMap::new(),
        };
        for at in 0..2 {
            state.members[at].life = Some(0);
        }
        state.speak();
        state
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
        (0..2).filter(|at| self.members[*at].running).filter_map(|at| match self.forwarding_of(at) {
            Forwarding::Forward(epoch) => Some((at, epoch)),
            Forwarding::Hold | Forwarding::Drop => None,
        })
    }

    /// Whether the peer has a session with the present start of a member.
    pub fn has_session(&self, at: usize) -> bool {
        self.sessions[at] == Some(self.members[at].start)
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
            Action::EndMove => self.peer.let_go(),
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
        }
        self.speak();
        for (at, epoch) in self.forwarding().collect::<Vec<_>>() {
            *self.owners.entry(epoch).or_default() |= 1 << at;
        }
    }

    fn tick(&mut self) {
        self.now += 1;
        self.peer.handle_timeout(clock(PEER, self.now));
        for at in 0..2 {
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
            ClaimMessage::Ack(ack) => self.peer.handle_ack(clock(PEER, self.now), IDS[at], ack),
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
        self.peer = Claimant::new(first, IDS[active], IDS[1 - active], TIMING);
        self.life += 1;
        self.sessions = [None; 2];
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
        for member in 0..2 {
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
