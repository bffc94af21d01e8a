//! All peers, members and etcd, and what is under way between them.

use super::etcd::{Etcd, Told};
use super::peer::{Event, Peer};
use super::{
    AFTER, ANSWERS, BROUGHT, Has, LOOKED_AT, LOOKS, LOST, MEMBERS, PACKETS, RACK, SETTLED, Setup, UNANSWERED, time,
};
use crate::hub::GONE_IN;
use hawser_core::units::Time;
use hawser_hub::claim::{Claimant, Ownership, Timing};
use hawser_hub::placement::{Member, Rack, Weight, place};
use hawser_hub::units::{Epoch, MemberId, PeerTag};
use std::collections::BTreeMap;
use std::time::Duration;

/// Random numbers (xorshift64: Marsaglia, "Xorshift RNGs", 2003): few, and as cheap as can be.
struct Xorshift(u64);

impl Xorshift {
    /// A number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    /// One way of a round trip, in ms.
    fn one_way(&mut self) -> u64 {
        5 + self.below(46)
    }
}

/// All of them, members' routes and etcd. Begins as peers start.
pub(super) struct World {
    pub setup: Setup,
    pub peers: Vec<Peer>,
    /// Of each millisecond, which peer's.
    due: Vec<Vec<(u32, Event)>>,
    pub death: u64,
    random: Xorshift,
    /// Claims and answers in the last second before the death.
    pub messages: u64,
    /// When each member's control thread has set all routes that it was told to.
    pub routes: Vec<Time>,
    pub etcd: Etcd,
    /// The members in the order of their ids, which are hashes.
    ring: Vec<u32>,
    /// Peers of dead members, by these and their standbys.
    bereft: BTreeMap<(u32, u32), Vec<u32>>,
}

impl World {
    pub fn new(setup: Setup) -> Self {
        let [owners, refresh] = setup.has.refresh().map(|time| time.as_millis() as u64);
        let death = refresh + SETTLED;
        let mut random = Xorshift(1);
        let ways = (0..MEMBERS).map(|_| Duration::from_millis(random.one_way())).collect();
        // Loads change at any time of ten seconds.
        let etcd = Etcd::new(setup.costs, ways, || time(random.below(10_000)));
        let ring = shuffled(&mut random);
        let mut world = World {
            setup,
            peers: Vec::new(),
            due: (0..=death + AFTER + owners).map(|_| Vec::new()).collect(),
            death,
            random,
            messages: 0,
            routes: vec![Time::ZERO; MEMBERS as usize],
            etcd,
            ring,
            bereft: BTreeMap::new(),
        };
        let member = |id: u32| Member { id: MemberId(u64::from(id)), rack: Rack(id / RACK), weight: Weight(1) };
        let members: Vec<_> = (0..MEMBERS).map(member).collect();
        (0..setup.peers).for_each(|number| world.add(number, refresh, &members));
        world
    }

    /// Step 1: one more peer, and what it will have to do.
    fn add(&mut self, number: u32, refresh: u64, members: &[Member]) {
        let placement = place(PeerTag(u64::from(number)), members).expect("there are members");
        let ids = [placement.active, placement.standby.expect("there are racks")];
        let one_way = [(); 2].map(|()| self.random.one_way());
        let start = self.random.below(refresh);
        let mut claimant = Claimant::new(Epoch::FIRST, ids[0], ids[1], Timing::DEFAULT);
        claimant.set_pace(silence(one_way), silence(one_way) / 2, self.setup.has.refresh());
        let [active, standby] = ids.map(|id| id.0 as u32);
        self.peers.push(Peer {
            claimant,
            members: [active, standby],
            ownerships: ids.map(|id| Ownership::new(id, Timing::DEFAULT)),
            one_way,
            wake_at: start,
            moved_at: None,
            routed_at: None,
        });
        self.schedule(start, number, Event::Wake);
        if self.setup.dies.is_dead(active) {
            self.bereft.entry((active, standby)).or_default().push(number);
            self.expect_packets(number);
        }
    }

    /// Step 2.
    fn expect_packets(&mut self, number: u32) {
        let first = self.death + self.random.below(PACKETS);
        match self.setup.has {
            Has::PacketsUp => self.schedule(first, number, Event::Packet),
            Has::PacketsDown => {
                let [least, most] = GONE_IN.map(|time| time.as_millis() as u64);
                // The second packet may come just after the standby looked, and counts when it looks again.
                let at = first + least + self.random.below(most - least + 1) + 2 * BROUGHT;
                self.schedule(at, number, Event::Brought);
            }
            Has::Nothing => {}
        }
    }

    pub fn schedule(&mut self, at: u64, peer: u32, event: Event) {
        if let Some(events) = self.due.get_mut(at as usize) {
            events.push((peer, event));
        }
    }

    /// Puts a message on the way, if it is not lost and nobody at its ends is dead.
    pub fn send(&mut self, now: u64, peer: u32, side: usize, event: Event) {
        let Peer { members, one_way, .. } = &self.peers[peer as usize];
        let (at, dead) = (now + one_way[side], now >= self.death && self.setup.dies.is_dead(members[side]));
        self.messages += u64::from((self.death - 1_000..self.death).contains(&now));
        if !dead && self.random.below(LOST) > 0 {
            self.schedule(at, peer, event);
        }
    }

    pub fn pass(&mut self) {
        for now in 0..self.due.len() as u64 {
            if now == self.death {
                self.die();
            }
            self.etcd.advance(time(now)).into_iter().for_each(|told| self.tell(told));
            for (peer, event) in std::mem::take(&mut self.due[now as usize]) {
                self.happen(now, peer, event);
            }
        }
    }

    /// Step 3: who looks at the dead misses them, and tells its own peers by itself.
    fn die(&mut self) {
        let dies = self.setup.dies;
        for missed in (0..MEMBERS).filter(|member| dies.is_dead(*member)) {
            self.etcd.kill(missed);
            let place = self.ring.iter().position(|member| *member == missed).expect("all members are in it");
            for before in 1..=LOOKED_AT {
                let member = self.ring[(place + self.ring.len() - before) % self.ring.len()];
                let unheard = UNANSWERED * ANSWERS[1].max(ANSWERS[0] * 2 * self.random.one_way());
                let at = time(self.death + self.random.below(LOOKS) + unheard);
                if !dies.is_dead(member) {
                    self.etcd.miss(member, missed, at);
                    self.tell(Told { at, member, missed });
                }
            }
        }
    }

    /// Step 3: a member hears of it.
    fn tell(&mut self, Told { at, member, missed }: Told) {
        let at = at.as_nanos().div_ceil(1_000_000);
        let peers = self.bereft.get(&(missed, member)).cloned().unwrap_or_default();
        peers.into_iter().for_each(|peer| self.schedule(at, peer, Event::Missed));
    }
}

/// As `pair` has it of one path: the second claim, after a third of the silence, waits for a probe timeout of one and a
/// half round trips (RFC 9002 section 6.2, of a variance that is an eighth); and at least 100 ms.
fn silence(one_way: [u64; 2]) -> Duration {
    let slowest = Duration::from_millis(one_way[0].max(one_way[1]));
    (slowest * 9 / 2).max(Duration::from_millis(100))
}

/// The members in an order of their own (Fisher and Yates, as Durstenfeld has it, 1964).
fn shuffled(random: &mut Xorshift) -> Vec<u32> {
    let mut all: Vec<u32> = (0..MEMBERS).collect();
    (1..all.len()).rev().for_each(|at| all.swap(at, random.below(at as u64 + 1) as usize));
    all
}
