//! What a portal must withstand (docs/security.md): each test says what was sent, and what state and
//! bytes came back.

use crate::support;
use hawser_core::drops::DropReason;
use hawser_core::endpoint::Event;
use hawser_core::packet::Offload;
use hawser_core::units::{ByteCount, PathId, Random};
use hawser_core::wire::{
    DataFlags, DataFrame, EcnCounts, FlowBucket, FlowSequence, Gone, Hold, LinkState, PathInfo, SplitFrame, SplitId,
    Writer,
};
use std::net::SocketAddr;
use std::time::Duration;
use support::packet;
use support::sender::{PING, Sender};
use support::world::{Fate, Flight, LOCAL, REMOTE, World, ms};

/// The largest number of a varint.
const HUGE: u64 = (1 << 62) - 1;

#[test]
fn an_unknown_key_leaves_no_state_and_gets_a_cookie_and_no_more() {
    let mut sender = Sender::new();
    let (_, message) = sender.initiation(9, 1);
    sender.send(&message);
    let heard = sender.hear(ms(2_000));
    assert!(matches!(&heard[..], [(_, cookie)] if cookie[0] == 0x30 && cookie.len() < message.len()), "{heard:?}");
    assert!(sender.session().is_none());
    assert_eq!(sender.dropped(DropReason::Handshake), 1);
}

#[test]
fn truncated_lengthened_and_random_datagrams_get_no_byte() {
    let mut sender = Sender::new();
    let (_, message) = sender.initiation(1, 1);
    (0..message.len()).for_each(|len| sender.send(&message[..len]));
    sender.send(&[&message[..], &[0]].concat());
    for at in 0..message.len() {
        let mut changed = message.clone();
        changed[at] ^= 0x10;
        // All but mac2, which nobody looks at without load.
        if at < message.len() - 16 {
            sender.send(&changed);
        }
    }
    for len in 0..1_500 {
        let mut noise = vec![0; len];
        sender.rng.fill(&mut noise);
        sender.send(&noise);
        if let Some(first) = noise.first_mut() {
            *first = [0x10, 0x20, 0x30, 0x40][len % 4];
        }
        sender.send(&noise);
    }
    assert_eq!(sender.hear(ms(2_000)), []);
    assert!(sender.session().is_none());
}

#[test]
fn a_flood_of_initiations_never_gets_more_bytes_than_it_costs_and_keeps_no_state() {
    let mut sender = Sender::new();
    for index in 0..2_000 {
        let (_, message) = sender.initiation(9, index);
        sender.from.set_port(1_000 + index as u16);
        sender.send(&message);
    }
    let heard: usize = sender.hear(ms(1)).iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(heard as u64 * 2 < sender.sent_bytes, "{heard} bytes");
    assert!(sender.session().is_none());
    // The peer itself gets through once the flood is over.
    sender.hear(ms(2_000));
    let sender = sender.handshake();
    assert!(sender.session().is_some());
}

#[test]
fn the_same_initiation_again_gets_the_same_answer_and_replaces_nothing() {
    let mut sender = Sender::new();
    let (mut initiator, message) = sender.initiation(1, 1);
    sender.send(&message);
    let first = sender.hear(ms(1));
    for _ in 0..20 {
        sender.send(&message);
    }
    let again = sender.hear(ms(1));
    assert_eq!(again.len(), 20);
    assert!(again.iter().all(|heard| *heard == first[0] && heard.1.len() <= message.len()));
    assert!(sender.session().is_none(), "not before its first datagram");
    sender.keys = Some(initiator.on_response(&first[0].1).expect("keys").keys);
    sender.say(0, |out| out.put_u8(PING));
    sender.hear(ms(10));
    // A replay of it, and others that nobody finishes, leave the live session as it is.
    for index in 0..20 {
        let (_, other) = sender.initiation(1, index);
        sender.send(&message);
        sender.send(&other);
        sender.hear(ms(100));
    }
    sender.say(0, |out| out.put_u8(PING));
    assert_eq!(sender.dropped(DropReason::UnknownLabel), 0);
    let session = sender.session().expect("the session");
    assert!(session.age >= ms(2_000));
}

#[test]
fn every_datagram_of_a_session_again_delivers_nothing_and_moves_no_path() {
    let mut world = World::new(&[0, 0], 1);
    let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::<Flight>::new()));
    let log = seen.clone();
    world.rule = Box::new(move |_, flight| {
        if flight.is_data() {
            log.borrow_mut().push(flight.clone());
        }
        Fate::Pass
    });
    world.run(ms(1_000));
    assert_eq!((world.stream(LOCAL, 200), world.stream(REMOTE, 200)), (200, 200));
    let delivered = [LOCAL, REMOTE].map(|portal| world.portals[portal].inbox.0.len());
    let routes = [LOCAL, REMOTE].map(|portal| world.paths(portal).iter().map(|path| path.remote).collect::<Vec<_>>());
    let sent = world.portals.each_ref().map(|portal| portal.sent.0);
    world.rule = Box::new(|_, _| Fate::Pass);
    for mut flight in seen.take() {
        flight.source = "203.0.113.9:9".parse().expect("an address");
        world.inject(flight);
    }
    world.run(ms(10));
    assert_eq!([LOCAL, REMOTE].map(|portal| world.portals[portal].inbox.0.len()), delivered);
    let after = [LOCAL, REMOTE].map(|portal| world.paths(portal).iter().map(|path| path.remote).collect::<Vec<_>>());
    assert_eq!(after, routes);
    let said = [LOCAL, REMOTE].map(|portal| world.portals[portal].sent.0 - sent[portal]);
    assert!(said.iter().all(|datagrams| *datagrams < 10), "{said:?}");
    assert!([LOCAL, REMOTE].iter().all(|portal| world.dropped(*portal, DropReason::Replayed) > 100));
}

#[test]
fn a_datagram_forwarded_from_a_foreign_address_brings_it_at_most_three_times_its_bytes() {
    let mut world = World::new(&[0], 1).settled();
    let foreign: SocketAddr = "203.0.113.9:9".parse().expect("an address");
    let got = std::rc::Rc::new(std::cell::Cell::new((0, 0)));
    let counted = got.clone();
    world.rule = Box::new(move |_, flight| {
        let (to, from) = counted.get();
        counted.set((to + if flight.to == foreign { flight.bytes.len() } else { 0 }, from));
        Fate::Pass
    });
    // The local portal's datagrams arrive from elsewhere for a while.
    let home = world.portals[LOCAL].links[0];
    for number in 0..100 {
        world.inner(LOCAL, number, 300);
        if number == 50 {
            world.portals[LOCAL].links[0] = foreign;
            world.run(Duration::from_micros(10));
            world.portals[LOCAL].links[0] = home;
        }
        world.run(ms(2));
    }
    world.run(ms(3_000));
    assert_eq!((world.stream(LOCAL, 100), world.stream(REMOTE, 100)), (100, 100));
    let (bytes, _) = got.get();
    assert!(bytes > 0 && bytes < 3 * 1_500, "{bytes} bytes to the foreign address");
    assert_eq!(world.paths(REMOTE)[0].remote, home);
}

#[test]
fn a_peer_that_acknowledges_what_was_never_sent_is_not_believed() {
    let mut sender = Sender::new().handshake();
    sender.portal.read_buffer()[..100].copy_from_slice(&answer());
    let now = sender.now;
    sender.portal.handle_inner(now, 100, Offload::default());
    for range in [1_000_000..=1_000_000, HUGE..=HUGE, 0..=HUGE] {
        sender.ack(0, range, EcnCounts::default(), 0);
    }
    sender.hear(ms(100));
    assert_eq!(sender.dropped(DropReason::BadFrame), 3);
    assert!(sender.portal.snapshot(sender.now).trains > ByteCount::ZERO, "it still answers for the packet");
}

/// An inner packet to the peer.
fn answer() -> Vec<u8> {
    let mut packet = packet(1);
    packet[12..16].copy_from_slice(&[10, 0, 0, 1]);
    packet[16..20].copy_from_slice(&[10, 0, 0, 2]);
    packet
}

#[test]
fn a_peer_that_lies_about_everything_harms_itself_alone() {
    let mut sender = Sender::new().handshake();
    for path in [0, 1, 2, 3, 9, 31, HUGE as u32] {
        for state in [LinkState::Down, LinkState::Usable, LinkState::Closed] {
            let info = PathInfo { path: PathId(path), state, metric: u16::MAX, revision: HUGE };
            sender.say(0, |out| info.encode(out));
        }
    }
    for times in [0, 1, HUGE] {
        sender.ack(2, 0..=0, EcnCounts { ect0: HUGE, ect1: 0, ce: HUGE }, times);
        sender.say(2, |out| Hold { hold_us: times }.encode(out));
        for number in 0..3 {
            sender.ack(2, number..=number, EcnCounts { ect0: 1, ect1: HUGE, ce: HUGE }, times);
        }
    }
    for bucket in 0..4_096 {
        let gone = |upto| Gone { bucket: FlowBucket::of_hash(bucket), upto: FlowSequence::of(upto) };
        sender.say(2, |out| gone(1 << 23).encode(out));
        sender.say(2, |out| gone(5).encode(out));
    }
    sender.hear(ms(5_000));
    assert!(sender.session().is_some_and(|session| session.paths.len() <= 64));
    sender.initiate_anew();
}

impl Sender {
    /// The peer is itself again: a new start of its portal.
    fn initiate_anew(mut self) -> Sender {
        (self.number, self.keys, self.instance) = (0, None, self.instance + 1);
        self.handshake()
    }
}

#[test]
fn a_refused_inner_packet_holds_up_no_other_of_its_bucket() {
    let foreign = |number| {
        let mut packet = packet(number);
        packet[12..16].copy_from_slice(&[10, 9, 9, 9]);
        packet
    };
    let mut sender = Sender::new().handshake();
    sender.say(0, |out| Hold { hold_us: 3_000_000 }.encode(out));
    let data = |sequence: u32, packet: Vec<u8>| {
        move |out: &mut Writer<'_>| {
            let (bucket, sequence) = (FlowBucket::of_hash(7), FlowSequence::of(sequence.into()));
            DataFrame { bucket, flags: DataFlags::default(), sequence, packet: &packet }.encode(out)
        }
    };
    // In turn, ahead of its turn, and after it was given up.
    sender.say(0, data(0, foreign(0)));
    sender.say(0, data(1, packet(1)));
    assert_eq!(sender.inbox.0, [packet(1)]);
    sender.say(0, data(4, packet(4)));
    sender.say(0, data(3, vec![0xff; 60]));
    sender.say(0, data(2, packet(2)));
    assert_eq!(sender.inbox.0, [packet(1), packet(2), packet(4)]);
    sender.say(0, |out| Gone { bucket: FlowBucket::of_hash(7), upto: FlowSequence::of(5) }.encode(out));
    sender.say(0, data(5, foreign(5)));
    sender.say(0, data(5, packet(5)));
    assert_eq!(sender.inbox.0.len(), 3, "a number comes once");
    assert_eq!((sender.dropped(DropReason::WrongSource), sender.dropped(DropReason::BadInner)), (2, 1));
    // The same in pieces.
    let piece = |sequence: u32, at: usize, packet: &[u8]| {
        let half = packet.len() / 2;
        let bytes = packet[at * half..(at + 1) * half].to_vec();
        move |out: &mut Writer<'_>| {
            let (bucket, sequence) = (FlowBucket::of_hash(7), FlowSequence::of(sequence.into()));
            let (id, offset, flags) = (SplitId(9), (at * half) as u16, DataFlags::default());
            SplitFrame { id, more: at == 0, offset, bucket, flags, sequence, bytes: &bytes }.encode(out)
        }
    };
    (0..2).for_each(|at| sender.say(0, piece(6, at, &foreign(6))));
    sender.say(0, data(7, packet(7)));
    assert_eq!(sender.inbox.0.last(), Some(&packet(7)));
}

#[test]
fn a_flood_of_path_ids_makes_at_most_64_paths() {
    let mut sender = Sender::new().handshake();
    for path in (0..20_000).step_by(2) {
        sender.say(path, |out| out.put_u8(PING));
    }
    sender.hear(ms(2_000));
    let session = sender.session().expect("the session");
    assert!(session.paths.len() <= 64, "{} paths", session.paths.len());
    for path in (0..20_000).step_by(2) {
        let info = PathInfo { path: PathId(path), state: LinkState::Closed, metric: 0, revision: 1 };
        sender.say(0, |out| info.encode(out));
        sender.say(path + 2, |out| out.put_u8(PING));
    }
    sender.hear(ms(2_000));
    assert!(sender.session().is_some_and(|session| session.paths.len() <= 64));
}

/// Path ids that a peer may still open: 64 in the record and 16 ahead; and a few paths in use.
const LABELS_MOST: usize = 64 + 16 + 8;

#[test]
fn a_peer_that_closes_paths_that_are_none_costs_no_labels_and_closes_none_of_ours() {
    let mut sender = Sender::new().handshake();
    let closed = |path| PathInfo { path: PathId(path), state: LinkState::Closed, metric: 0, revision: 1 };
    let labels = |sender: &Sender| sender.portal.snapshot(sender.now).labels;
    let before = labels(&sender);
    // Ours, and such as the peer cannot have come to.
    for path in (1..2_001).step_by(2).chain((100_000..102_000).step_by(2)) {
        sender.say(0, |out| closed(path).encode(out));
    }
    assert_eq!((sender.dropped(DropReason::BadFrame), labels(&sender)), (2_000, before));
    // Its own, one after another and with gaps.
    for path in (2..20_000).filter(|path| path % 2 == 0 && path % 10 != 0) {
        sender.say(0, |out| closed(path).encode(out));
        assert!(labels(&sender) <= LABELS_MOST, "{} labels after {path}", labels(&sender));
    }
    assert_eq!(sender.dropped(DropReason::BadFrame), 2_000);
    // A closed id stays closed, an old one that was skipped too, and the next one opens.
    for path in [19_998, 10, 20_000] {
        sender.say(path, |out| out.put_u8(PING));
    }
    let paths: Vec<u32> = sender.session().expect("a session").paths.iter().map(|path| path.id.0).collect();
    assert_eq!((paths, sender.dropped(DropReason::UnknownLabel)), (vec![0, 20_000], 2));
}

/// Every type of frame but word about paths and CLOSE.
const FRAMES: [u8; 12] = [0, 1, 2, 3, 4, 6, 7, 8, 0xa, 0xb, 0xc, 0xd];

#[test]
fn random_frames_under_valid_keys_break_nothing() {
    let mut sender = Sender::new().handshake();
    for round in 0..20_000u32 {
        let mut noise = vec![0; 1 + round as usize % 200];
        sender.rng.fill(&mut noise);
        // A type that exists, but no CLOSE; word about paths seldom, because it closes them.
        noise[0] = if round % 400 == 0 { 5 } else { FRAMES[usize::from(noise[0]) % FRAMES.len()] };
        noise.iter_mut().filter(|byte| **byte == 9).for_each(|byte| *byte = 8);
        // Often small numbers, which come near to what is so.
        if round % 3 > 0 {
            noise[1..].iter_mut().for_each(|byte| *byte &= 0x03);
        }
        let path = round / 1_000 * 2 + u32::from(noise.last().copied().unwrap_or(0)) % 2 * 2;
        sender.say(path, |out| out.put_bytes(&noise));
        if round % 64 == 0 {
            sender.portal.read_buffer()[..100].copy_from_slice(&answer());
            let now = sender.now;
            sender.portal.handle_inner(now, 100, Offload::default());
            sender.hear(ms(3));
        }
    }
    sender.hear(ms(10_000));
    assert!(sender.dropped(DropReason::BadFrame) > 1_000 && sender.dropped(DropReason::Forged) == 0);
    let mut sender = sender.initiate_anew();
    let begun = std::iter::from_fn(|| sender.portal.poll_event())
        .filter(|event| matches!(event, Event::Session { new: true, .. }));
    assert_eq!(begun.count(), 2);
}
