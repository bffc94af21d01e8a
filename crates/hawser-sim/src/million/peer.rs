//! A peer, and what its two members are to it: what happens to them.

use super::world::World;
use super::{BROUGHT, PACKETS, time};
use hawser_hub::claim::{Announcement, ClaimAck, ClaimFrame, Claimant, Ownership, Phase};
use hawser_hub::units::{Epoch, MemberId};

/// What happens to a peer. `Brought`: its packets are brought to its standby. `Missed`: its owner answers no other
/// member.
pub(super) enum Event {
    Wake,
    Claim { side: usize, frame: ClaimFrame },
    Ack { side: usize, ack: ClaimAck },
    Packet,
    Brought,
    Missed,
}

/// One peer, and what its two members are to it.
pub(super) struct Peer {
    pub claimant: Claimant,
    pub members: [u32; 2],
    pub ownerships: [Ownership; 2],
    pub one_way: [u64; 2],
    pub wake_at: u64,
    pub moved_at: Option<u64>,
    /// When its new owner's route was set, after the death of the old one.
    pub routed_at: Option<u64>,
}

impl World {
    pub(super) fn happen(&mut self, now: u64, number: u32, event: Event) {
        let time = time(now);
        let peer = &mut self.peers[number as usize];
        let ids = peer.members.map(|id| MemberId(u64::from(id)));
        match event {
            Event::Wake if now != peer.wake_at => return,
            Event::Wake => peer.claimant.handle_timeout(time),
            Event::Packet if peer.moved_at.is_some() => return,
            Event::Packet => {
                let to = peer.claimant.carrier();
                peer.claimant.handle_sent(time, to);
                self.schedule(now + PACKETS, number, Event::Packet);
            }
            Event::Brought => return self.on_brought(now, number),
            Event::Missed => return self.on_missed(now, number),
            Event::Claim { side, frame } => return self.on_claim(now, number, side, frame),
            Event::Ack { side, ack } => {
                peer.claimant.handle_ack(time, ids[side], ack);
                if ack.misses {
                    peer.claimant.handle_missed(time);
                }
                if ack.brought {
                    peer.claimant.handle_move(time);
                }
            }
        }
        let peer = &mut self.peers[number as usize];
        // What moved before the death, for losses, is counted as needless.
        if peer.moved_at.is_none() && peer.claimant.phase() == Phase::Settled && peer.claimant.claim().owner == ids[1] {
            peer.moved_at = Some(now);
        }
        self.speak(now, number, ids[0]);
    }

    /// A peer that has not moved, and whose standby lives.
    fn waiting(&mut self, number: u32) -> Option<&mut Peer> {
        let peer = &mut self.peers[number as usize];
        (peer.moved_at.is_none() && !self.setup.dies.is_dead(peer.members[1])).then_some(peer)
    }

    fn on_brought(&mut self, now: u64, number: u32) {
        let Some(peer) = self.waiting(number) else { return };
        peer.ownerships[1].handle_brought();
        let ack = peer.ownerships[1].poll_ack(time(now));
        ack.into_iter().for_each(|ack| self.send(now, number, 1, Event::Ack { side: 1, ack }));
        self.schedule(now + BROUGHT, number, Event::Brought);
    }

    fn on_missed(&mut self, now: u64, number: u32) {
        let Some(peer) = self.waiting(number) else { return };
        peer.ownerships[1].handle_missed(MemberId(u64::from(peer.members[0])));
        let ack = peer.ownerships[1].poll_ack(time(now));
        for ack in ack.into_iter().flat_map(|ack| [ack; 2]) {
            self.send(now, number, 1, Event::Ack { side: 1, ack });
        }
    }

    fn on_claim(&mut self, now: u64, number: u32, side: usize, frame: ClaimFrame) {
        let peer = &mut self.peers[number as usize];
        if now >= self.death && self.setup.dies.is_dead(peer.members[side]) {
            return;
        }
        let ownership = &mut peer.ownerships[side];
        let _ = ownership.handle_claim(time(now), frame);
        let ack = ownership.poll_ack(time(now)).expect("each claim is answered");
        let announced = ownership.poll_announcement();
        self.send(now, number, side, Event::Ack { side, ack });
        if let Some(announcement) = announced {
            self.announce(now, number, side, announcement);
        }
    }

    /// Step 4. What peers claimed at first etcd has already.
    fn announce(&mut self, now: u64, number: u32, side: usize, announcement: Announcement) {
        let peer = &mut self.peers[number as usize];
        let (member, lost) = (peer.members[side], self.setup.dies.is_dead(peer.members[0]));
        let set = &mut self.routes[member as usize];
        *set = (*set).max(time(now)) + self.setup.costs.route;
        let epoch = peer.ownerships[side].known().map(|claim| claim.epoch);
        if announcement != Announcement::Owner || epoch <= Some(Epoch::FIRST) {
            return;
        }
        let wave = lost && side == 1 && now >= self.death && peer.routed_at.is_none();
        if wave {
            peer.routed_at = Some(set.as_nanos().div_ceil(1_000_000));
        }
        self.etcd.own(member, *set, wave);
    }

    /// A peer says what is due, and when it wants to be called.
    fn speak(&mut self, now: u64, number: u32, active: MemberId) {
        while let Some((to, frame)) = self.peers[number as usize].claimant.poll_transmit(time(now)) {
            let side = usize::from(to != active);
            self.send(now, number, side, Event::Claim { side, frame });
        }
        let peer = &mut self.peers[number as usize];
        let due = peer.claimant.poll_timeout().as_nanos();
        let wake = due.div_ceil(1_000_000).max(now + 1);
        if std::mem::replace(&mut peer.wake_at, wake) != wake {
            self.schedule(wake, number, Event::Wake);
        }
    }
}
