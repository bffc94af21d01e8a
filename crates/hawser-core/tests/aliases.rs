//! Paths whose far ends are aliases: one along each, with the room before each datagram that the link asks for.

use crate::support;
use hawser_core::alias::Alias;
use hawser_core::endpoint::Link;
use hawser_core::packet::Offload;
use hawser_core::path::health::{DownReason, HealthState};
use hawser_core::transport::Transport;
use hawser_core::units::{ByteCount, Ecn, LinkGroup, LinkId, PeerId, Time};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;
use support::{Buffer, Delivered, endpoint, packet, peer};

/// Bytes that the link writes before each datagram, and the largest datagram behind them.
const HEADER: u16 = 80;
const LARGEST: u16 = 1392;
/// Datagrams that acknowledge only are shorter, bytes.
const WORD: usize = 80;
/// The link of the local portal, and that of the remote one.
const OURS: LinkId = LinkId(3);
const THEIRS: LinkId = LinkId(0);

fn alias(link: LinkId, name: u32, generation: u16) -> Alias {
    Alias::new(link, LARGEST, false, HEADER, name, generation).expect("it fits")
}

/// Two portals: a datagram along alias `n` of the local one comes by alias `n` of the remote one.
struct World {
    local: hawser_core::endpoint::Endpoint,
    remote: hawser_core::endpoint::Endpoint,
    delivered: Delivered,
    now: Time,
    /// Ways that carry nothing.
    cut: Vec<u32>,
    /// The generation by which the remote portal sees each way.
    generation: u16,
    /// Batches of several datagrams that were seen.
    trains: usize,
    /// The local portal's last datagram along each way that is more than an acknowledgement.
    sent: BTreeMap<u32, Vec<u8>>,
}

impl World {
    fn new(ways: &[u32]) -> World {
        let link = |id, opens| Link {
            id,
            group: LinkGroup(id.0),
            preference: 0,
            metric: 0,
            transport: Transport::Scion,
            ipv4: false,
            ipv6: false,
            opens,
            up: true,
        };
        let now = Time::from_nanos(1_000_000_000);
        let mut local = endpoint(1, vec![peer(2, &[], "10.0.0.1/32")]);
        let mut remote = endpoint(2, vec![peer(1, &[], "10.0.0.2/32")]);
        local.add_link(now, link(OURS, true));
        remote.add_link(now, link(THEIRS, false));
        let (delivered, cut, sent) = (Delivered::default(), vec![], BTreeMap::new());
        let mut world = World { local, remote, delivered, now, cut, generation: 1, trains: 0, sent };
        world.set(ways);
        world
    }

    fn set(&mut self, ways: &[u32]) {
        let aliases: Vec<Alias> = ways.iter().map(|way| alias(OURS, *way, 1)).collect();
        self.local.set_aliases(self.now, PeerId(0), OURS, &aliases);
    }

    fn run(&mut self, ms: u32) {
        for _ in 0..ms {
            self.local.handle_timeout(self.now, &mut self.delivered);
            self.remote.handle_timeout(self.now, &mut self.delivered);
            while self.speak(true) | self.speak(false) {}
            self.now = self.now + Duration::from_millis(1);
        }
    }

    fn speak(&mut self, ours: bool) -> bool {
        let (from, to) = if ours { (&mut self.local, &mut self.remote) } else { (&mut self.remote, &mut self.local) };
        let (link, generation) = if ours { (THEIRS, self.generation) } else { (OURS, 1) };
        let mut buffer = Buffer(vec![0; 65_536]);
        let mut spoke = false;
        while let Some(transmit) = from.poll_transmit(self.now, &mut buffer) {
            spoke = true;
            let way = Alias::of(&transmit.remote).expect("an alias");
            let step = transmit.segment_size + usize::from(HEADER);
            self.trains += usize::from(transmit.len > transmit.segment_size);
            for from in (0..transmit.len).step_by(step) {
                let mut datagram = buffer.0[from..transmit.len.min(from + transmit.segment_size)].to_vec();
                assert!(datagram.len() <= usize::from(LARGEST));
                if ours && datagram.len() >= WORD {
                    self.sent.insert(way.name(), datagram.clone());
                }
                if !self.cut.contains(&way.name()) {
                    let source = alias(link, way.name(), generation).address();
                    to.handle_datagram(self.now, link, source, None, Ecn::NotEct, &mut datagram, &mut self.delivered);
                }
            }
        }
        spoke
    }

    fn offer(&mut self, count: u16) {
        for number in 0..count {
            let packet = packet(number);
            self.local.read_buffer()[..packet.len()].copy_from_slice(&packet);
            self.local.handle_inner(self.now, packet.len(), Offload::default());
        }
    }

    /// A router says that way 1 is broken, and quotes the last datagram along it. Whether that is believed.
    fn say_broken(&mut self) -> bool {
        let quoted = &self.sent[&1];
        self.local.handle_broken(self.now, OURS, alias(OURS, 1, 1).address(), &quoted[..quoted.len().min(16)])
    }

    /// The paths of either portal, by the names of their ways.
    fn paths(&self, ours: bool) -> BTreeMap<u32, (HealthState, u16, SocketAddr)> {
        let endpoint = if ours { &self.local } else { &self.remote };
        let sessions = endpoint.snapshot(self.now).peers.into_iter().flatten();
        let open = sessions
            .flat_map(|session| session.paths)
            .filter(|path| path.state != HealthState::Down(DownReason::Closed));
        open.map(|path| (Alias::of(&path.remote).expect("an alias").name(), (path.state, path.mtu, path.remote)))
            .collect()
    }
}

fn active(paths: &BTreeMap<u32, (HealthState, u16, SocketAddr)>) -> Vec<u32> {
    paths.iter().filter(|(_, path)| path.0 == HealthState::Active).map(|(name, _)| *name).collect()
}

#[test]
fn every_way_of_a_link_is_a_path_and_begins_with_the_size_that_it_is_said_to_carry() {
    let mut world = World::new(&[1, 2, 3]);
    world.run(300);
    for ours in [true, false] {
        let paths = world.paths(ours);
        assert_eq!(active(&paths), [1, 2, 3], "{paths:?}");
        assert!(paths.values().all(|path| path.1 == LARGEST), "{paths:?}");
    }
}

#[test]
fn the_datagrams_of_a_train_have_room_between_them() {
    let mut world = World::new(&[1]);
    world.run(300);
    world.offer(40);
    world.run(50);
    assert_eq!(world.delivered.0.len(), 40);
    assert!(world.trains > 0, "no train was seen");
}

#[test]
fn the_paths_follow_the_ways_and_those_that_stay_do_not_notice() {
    let mut world = World::new(&[1, 2]);
    world.run(300);
    let before = world.local.snapshot(world.now).peers[0].as_ref().expect("a session").paths[0].id;
    world.set(&[1, 4]);
    world.run(300);
    assert_eq!(active(&world.paths(true)), [1, 4]);
    assert_eq!(active(&world.paths(false)), [1, 4], "the peer was told");
    assert_eq!(world.local.snapshot(world.now).peers[0].as_ref().expect("a session").paths[0].id, before);
    world.set(&[]);
    world.run(100);
    assert!(world.paths(true).is_empty());
}

#[test]
fn a_way_that_is_said_to_be_broken_is_suspected_at_once_and_believed_in_when_it_answers() {
    let mut world = World::new(&[1, 2]);
    world.run(300);
    world.cut = vec![1];
    world.offer(20);
    world.run(1);
    assert!(world.say_broken(), "it quotes what is under way");
    assert_eq!(world.paths(true)[&1].0, HealthState::Suspect);
    world.cut.clear();
    world.run(20);
    assert_eq!(active(&world.paths(true)), [1, 2], "it was a lie");
    assert_eq!(world.delivered.0.len(), 20, "what was under way went by the other");
    world.run(300);
    world.cut = vec![1];
    world.offer(20);
    world.run(1);
    assert!(world.say_broken());
    world.run(400);
    assert_eq!(world.paths(true)[&1].0, HealthState::Down(DownReason::Timeout));
    assert_eq!(world.delivered.0.len(), 40);
    world.cut.clear();
    world.run(1_000);
    assert_eq!(active(&world.paths(true)), [1, 2], "it came back by itself");
}

#[test]
fn who_quotes_nothing_that_is_under_way_breaks_no_way() {
    let mut world = World::new(&[1, 2]);
    let broken = alias(OURS, 1, 1).address();
    // The first initiation is on its way.
    world.cut = vec![1, 2];
    world.run(1);
    assert!(world.say_broken(), "an initiation that waits for its answer");
    let initiation = world.sent[&1].clone();
    world.cut.clear();
    world.run(3_000);
    world.offer(20);
    world.run(300);
    assert!(!world.say_broken(), "what has arrived");
    let guessed = [0x40, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
    for quoted in [&[][..], &[0x10], &guessed, &initiation[..16]] {
        assert!(!world.local.handle_broken(world.now, OURS, broken, quoted), "{quoted:?}");
    }
    // By another way.
    world.cut = vec![2];
    world.offer(20);
    world.run(1);
    let of_another = world.sent[&2].clone();
    assert!(!world.local.handle_broken(world.now, OURS, broken, &of_another[..16]));
    assert_eq!(active(&world.paths(true)), [1, 2]);
}

#[test]
fn other_hop_fields_on_the_same_way_do_not_begin_it_anew() {
    let mut world = World::new(&[1]);
    world.run(300);
    let window = |world: &World| -> ByteCount {
        let snapshot = world.remote.snapshot(world.now);
        snapshot.peers[0].as_ref().expect("a session").paths[0].window
    };
    let (before, size) = (window(&world), world.paths(false)[&1].1);
    world.generation = 2;
    world.offer(1);
    world.run(50);
    let path = world.paths(false)[&1];
    assert_eq!((path.0, path.1, path.2.port()), (HealthState::Active, size, 2), "it answers by the new ones");
    assert!(window(&world) >= before);
}

#[test]
fn a_link_of_aliases_and_one_of_addresses_keep_apart() {
    let now = Time::from_nanos(1_000_000_000);
    let mut local = endpoint(1, vec![peer(2, &["198.51.100.1:4920"], "10.0.0.1/32")]);
    local.add_link(now, support::link(0, Transport::Udp, true));
    local.add_link(now, support::link(1, Transport::Scion, true));
    let other = alias(LinkId(7), 1, 1);
    local.set_aliases(now, PeerId(0), LinkId(1), &[alias(LinkId(1), 1, 1), other]);
    local.handle_timeout(now, &mut Delivered::default());
    let (mut buffer, mut initiated) = (Buffer(vec![0; 65_536]), Vec::new());
    while let Some(transmit) = local.poll_transmit(now, &mut buffer) {
        initiated.push((transmit.link, transmit.remote));
    }
    let address = "198.51.100.1:4920".parse().expect("an address");
    assert_eq!(initiated, [(LinkId(0), address), (LinkId(1), alias(LinkId(1), 1, 1).address())]);
}
