//! A peer with real keys that says whatever it likes to the remote portal.

use crate::stage::{offer, recipes};
use hawser_core::drops::DropReason;
use hawser_core::handshake::{Initiator, Psk, TransportKeys};
use hawser_core::session::SessionSnapshot;
use hawser_core::units::{Ecn, LinkId, PacketNumber, PathId};
use hawser_core::wire::handshake::HandshakeIndex;
use hawser_core::wire::{DATA_HEADER_LEN, DataHeader, TAG_LEN, TruncatedNumber, Writer};
use hawser_sim::host::flow::{Ledger, Plan, Sink, Source};
use hawser_sim::net::{Datagram, link};
use hawser_sim::random::Seeded;
use hawser_sim::situation::{address, second};
use hawser_sim::world::link::inside;
use hawser_sim::world::{Setup, listening};
use hawser_sim::{Act, LOCAL, REMOTE, World};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// Bytes of a datagram's frames at most.
const ROOM: usize = 1_400;

/// The peer. It has sent an initiation and was answered; nothing under the new keys was sent yet.
pub struct Liar {
    pub world: World,
    /// What the remote side's hosts got from it.
    pub delivered: Rc<RefCell<Ledger>>,
    keys: TransportKeys,
    numbers: BTreeMap<PathId, u64>,
    side: u32,
}

impl Liar {
    /// A peer in place of the local portal, to which the remote side's hosts send `mbit`.
    pub fn new(seed: u64, mbit: f64) -> Self {
        let links = vec![link(100.0, 2.0)];
        let mut world = World::new(Setup { seed, links, recipes: recipes(), clocks: None, both_initiate: false });
        world.act(Act::Kill(LOCAL));
        world.taps[LOCAL] = Some(Vec::new());
        let delivered = Rc::<RefCell<Ledger>>::default();
        let plan = Plan { until: second(1_000.0), ..Plan::steady(mbit, 1_000) };
        let ends = [LOCAL, REMOTE].map(|side| address(side, 10));
        let source = Source::new(plan, ends[REMOTE], ends[LOCAL], Rc::default());
        world.add_host(REMOTE, address(REMOTE, 11), source);
        world.add_host(REMOTE, ends[REMOTE], Sink(Rc::clone(&delivered)));

        let ([local, remote], mut rng) = (recipes(), Seeded::new(seed));
        let side = u32::from(local.identity.public().0 > remote.identity.public().0);
        let remote = remote.identity.public();
        let index = HandshakeIndex(7);
        let started = Initiator::start(&local.identity, &remote, Psk::default(), offer(1), index, None, &mut rng);
        let (mut initiator, initiation) = started.expect("a handshake starts");
        Self::give(&mut world, initiation.to_vec());
        world.run_until(second(0.05));
        let heard = world.taps[LOCAL].take().expect("a tape is on");
        let established = heard.iter().find_map(|datagram| initiator.on_response(&datagram.bytes).ok());
        let keys = established.expect("the remote portal answered").keys;
        world.taps[LOCAL] = Some(Vec::new());
        Liar { world, delivered, keys, numbers: BTreeMap::new(), side }
    }

    fn give(world: &mut World, bytes: Vec<u8>) {
        let from = inside(0, false, 0);
        world.receive(REMOTE, LinkId(0), Datagram { from, to: listening(false), ecn: Ecn::NotEct, bytes });
    }

    /// Its path number `count`.
    pub fn path(&self, count: u32) -> PathId {
        PathId(count * 2 + self.side)
    }

    /// Says on `path` what `write` writes, truly sealed.
    pub fn say(&mut self, path: PathId, write: impl FnOnce(&mut Writer<'_>)) {
        let number = self.numbers.entry(path).or_default();
        let mut bytes = vec![0; DATA_HEADER_LEN + ROOM + TAG_LEN];
        let mut out = Writer::new(&mut bytes[DATA_HEADER_LEN..DATA_HEADER_LEN + ROOM]);
        write(&mut out);
        let len = out.len();
        bytes.truncate(DATA_HEADER_LEN + len + TAG_LEN);
        let header =
            DataHeader { label: self.keys.send.label(path), number: TruncatedNumber::of(PacketNumber(*number)) };
        bytes[..DATA_HEADER_LEN].copy_from_slice(&header.encode());
        self.keys.send.seal(path, PacketNumber(*number), &mut bytes).expect("room for the tag");
        *number += 1;
        Self::give(&mut self.world, bytes);
    }

    /// A PING, which opens a path.
    pub fn ping(&mut self, path: PathId) {
        self.say(path, |out| out.put_u8(0x01).expect("room for a byte"));
    }

    /// The time passes.
    pub fn pass(&mut self, millis: u64) {
        let end = self.world.now + Duration::from_millis(millis);
        self.world.run_until(end);
    }

    /// The remote portal's session with it.
    pub fn session(&self) -> SessionSnapshot {
        self.world.portals[REMOTE].session(self.world.now).expect("the remote portal has a session")
    }

    /// What the remote portal dropped for that reason.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        let portal = &self.world.portals[REMOTE];
        portal.endpoint.snapshot(portal.clock.show(self.world.now)).drops.of(reason)
    }

    /// Bytes that came to it since it last asked, and how many datagrams.
    pub fn heard(&mut self) -> (u64, u64) {
        let tape = self.world.taps[LOCAL].replace(Vec::new()).expect("a tape is on");
        (tape.iter().map(|datagram| datagram.bytes.len() as u64).sum(), tape.len() as u64)
    }
}
