//! Two portals with traffic between them, and somebody who injects datagrams.

use hawser_core::congestion::Kind;
use hawser_core::drops::DropReason;
use hawser_core::handshake::{Identity, Initiator, Psk};
use hawser_core::units::{Ecn, LinkId, Random};
use hawser_core::wire::handshake::HandshakeIndex;
use hawser_core::wire::{Cipher, CipherSet, InstanceId, Offer, Protection};
use hawser_sim::host::flow::{Ledger, Plan, Sink, Source};
use hawser_sim::net::{Datagram, link};
use hawser_sim::portal::Recipe;
use hawser_sim::random::Seeded;
use hawser_sim::situation::{address, second};
use hawser_sim::world::{Setup, listening};
use hawser_sim::{LOCAL, REMOTE, World};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

/// The honest flow: Mbit/s, bytes a packet.
const HONEST: (f64, usize) = (2.0, 1_000);

/// What somebody who sends to the remote portal got out of it.
pub struct Stage {
    pub world: World,
    pub honest: Rc<RefCell<Ledger>>,
    pub rng: Seeded,
}

/// The recipes of both portals.
pub fn recipes() -> [Recipe; 2] {
    [LOCAL, REMOTE].map(|side| Recipe::of(side, Kind::Bbr))
}

impl Stage {
    /// Two portals with two links, one second old, with an honest flow to the remote side; everything
    /// that arrives at either side is recorded.
    pub fn new(seed: u64) -> Self {
        let links = vec![link(50.0, 20.0), link(50.0, 20.0)];
        let mut world = World::new(Setup { seed, links, recipes: recipes(), clocks: None, both_initiate: false });
        world.taps = [Some(Vec::new()), Some(Vec::new())];
        let honest = Rc::<RefCell<Ledger>>::default();
        let ends = [LOCAL, REMOTE].map(|side| address(side, 10));
        let plan = Plan { until: second(1_000.0), ..Plan::steady(HONEST.0, HONEST.1) };
        world.add_host(LOCAL, ends[LOCAL], Source::new(plan, ends[LOCAL], ends[REMOTE], Rc::clone(&honest)));
        world.add_host(REMOTE, ends[REMOTE], Sink(Rc::clone(&honest)));
        world.run_until(second(1.0));
        Stage { world, honest, rng: Seeded::new(seed) }
    }

    /// A datagram from `from` reaches the remote portal.
    pub fn inject(&mut self, from: SocketAddr, bytes: Vec<u8>) {
        let datagram = Datagram { from, to: listening(from.is_ipv6()), ecn: Ecn::NotEct, bytes };
        self.world.receive(REMOTE, LinkId(0), datagram);
    }

    /// The time passes.
    pub fn pass(&mut self, millis: u64) {
        let end = self.world.now + Duration::from_millis(millis);
        self.world.run_until(end);
    }

    /// What the remote portal dropped for that reason.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        let portal = &self.world.portals[REMOTE];
        portal.endpoint.snapshot(portal.clock.show(self.world.now)).drops.of(reason)
    }

    /// Bytes that the remote portal sent to an address that is none of the links'.
    pub fn answered(&self, to: SocketAddr) -> u64 {
        self.world.strays.get(&to).map_or(0, |stray| stray.bytes)
    }

    /// Bytes that it sent to all such addresses.
    pub fn answered_all(&self) -> u64 {
        self.world.strays.values().map(|stray| stray.bytes).sum()
    }

    /// Stops the tapes, and gives what arrived at that side.
    pub fn take_tape(&mut self, side: usize) -> Vec<Datagram> {
        self.world.taps[side].take().expect("a tape is on")
    }

    /// The honest flow goes on as if nothing had happened: for a second from now on, every packet
    /// comes, in order, once, unharmed; over the same session.
    pub fn all_is_well(&mut self) {
        let (start, before) = (self.world.now, self.sessions());
        self.pass(1_000);
        let honest = self.honest.borrow();
        let expected = HONEST.0 * 1e6 / 8.0 / HONEST.1 as f64;
        let came = honest.between(start, self.world.now).count() as f64;
        assert!(came > expected * 0.95, "{came} of {expected} honest packets came");
        assert_eq!((honest.corrupt, honest.duplicates), (0, 0), "corrupt, duplicate honest packets");
        assert_eq!(honest.out_of_order().len(), 0, "honest packets out of order");
        assert_eq!(self.world.unclaimed, 0, "inner packets for nobody");
        drop(honest);
        assert_eq!(self.sessions(), before, "the session is another one");
    }

    /// How many sessions and sets of keys both portals have seen.
    pub fn sessions(&self) -> [usize; 2] {
        [LOCAL, REMOTE].map(|side| self.world.portals[side].told.len())
    }

    /// The first message of a handshake by `who` to the remote portal.
    pub fn initiation(&mut self, who: &Identity) -> Vec<u8> {
        let remote = recipes()[REMOTE].identity.public();
        let index = HandshakeIndex(self.rng.below(1 << 32) as u32);
        let offer = offer(self.rng.next_u64());
        let started = Initiator::start(who, &remote, Psk::default(), offer, index, None, &mut self.rng);
        started.expect("a handshake starts").1.to_vec()
    }
}

/// An offer of everything.
pub fn offer(instance: u64) -> Offer {
    let ciphers = CipherSet::of(&[Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305]);
    Offer { protection: Protection::Encrypt, ciphers, instance: InstanceId(instance) }
}

/// Address number `number` of somebody who has none of the links.
pub fn stranger(number: u32) -> SocketAddr {
    let [_, a, b, c] = number.to_be_bytes();
    SocketAddr::from(([100, a, b, c], 40_000))
}
