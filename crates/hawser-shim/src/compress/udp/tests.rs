//! Datagrams of UDP between two ends, and what may go wrong on the wire.

use std::net::SocketAddr;

use hawser_core::packet::inner;
use proptest::prelude::*;

use super::super::tests::{ROOM, Shim, is_compact};
use super::*;
use crate::udp::Content;
use crate::udp::samples::{completed, may_be_cut, packet, partial};

const QUESTION: Offload = Offload { partial: false, segment: None };

fn client(port: u16) -> SocketAddr {
    SocketAddr::new("10.1.0.1".parse().unwrap(), port)
}

fn server() -> SocketAddr {
    "10.2.0.1:53".parse().unwrap()
}

fn v6(last: u16) -> SocketAddr {
    SocketAddr::new(std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last).into(), 1000 + last)
}

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

impl Shim {
    fn try_send_at(&mut self, now: Time, packet: &[u8], offload: Offload) -> Result<Vec<Vec<u8>>, TooLarge> {
        let Content::Datagram(datagram) = Content::of(packet) else { panic!("it is a datagram") };
        self.shrink(|compression, mut random, out| {
            compression.shrink_datagram(now, packet, &datagram, offload, ROOM, &mut random, out)
        })
    }

    fn send_at(&mut self, now: Time, packet: &[u8]) -> Vec<Vec<u8>> {
        self.try_send_at(now, packet, QUESTION).unwrap()
    }
}

/// A packet crosses and is what it was; says whether all of it was compact, and its bytes.
fn cross(now: Time, from: &mut Shim, to: &mut Shim, packet: &[u8]) -> (bool, usize) {
    let datagrams = from.send_at(now, packet);
    let delivered: Vec<_> = datagrams.iter().filter_map(|datagram| to.take_at(now, datagram).unwrap()).collect();
    assert_eq!(delivered, [packet]);
    let bytes = datagrams.iter().map(Vec::len).sum();
    (datagrams.iter().all(|datagram| is_compact(datagram)), bytes)
}

#[test]
fn a_question_and_an_answer_go_whole_and_from_then_on_seven_bytes_stand_for_all_headers() {
    for (a, b) in [(client(4000), server()), (v6(1), v6(2))] {
        let (mut near, mut far) = (Shim::new(1), Shim::new(2));
        let (there, back) = (packet(a, b, &[1; 100]), packet(b, a, &[2; 200]));
        let whole = there.len() + 1 + 6;
        assert_eq!(cross(at(0), &mut near, &mut far, &there), (false, whole));
        assert_eq!(cross(at(10), &mut far, &mut near, &back), (false, back.len() + 1 + 6 + 6));
        // The acknowledgment of the answer's context, and a whole checksum.
        assert_eq!(cross(at(20), &mut near, &mut far, &there), (true, 100 + 7 + 6 + 2));
        assert_eq!(cross(at(30), &mut far, &mut near, &back), (true, 200 + 7 + 2));
        let offload = Offload { partial: true, segment: None };
        let datagrams = near.try_send_at(at(40), &partial(there.clone()), offload).unwrap();
        assert_eq!(datagrams.iter().map(Vec::len).collect::<Vec<_>>(), [107]);
        assert_eq!(far.take_at(at(40), &datagrams[0]).unwrap().map(completed), Some(there));
    }
}

#[test]
fn what_datagrams_of_udp_are_drawn_as_shims_of_before_do_not_take() {
    let (mut near, mut far) = (Shim::new(1), Shim::new(2));
    let (there, back) = (packet(client(1), server(), b"ab"), packet(server(), client(1), b"c"));
    let first = near.send_at(at(0), &there).remove(0);
    assert_eq!(first[0], 0b0100_0010, "whole, defines: of a protocol that they do not know");
    far.take_at(at(0), &first).unwrap();
    let answer = far.send_at(at(0), &back).remove(0);
    near.take_at(at(0), &answer).unwrap();
    let compact = near.send_at(at(0), &there).remove(0);
    assert_eq!(compact[0], 0b1011_0001, "the last bit was of no meaning, and so malformed");
    assert_eq!(compact[1..7], first[1..7]);
    assert_eq!(&compact[15..], b"ab");
}

#[test]
fn a_flow_that_goes_one_way_has_its_context_acknowledged_alone_and_defined_twice_a_second() {
    let (mut near, mut far) = (Shim::new(1), Shim::new(2));
    let one_way = packet(client(4000), server(), &[7; 160]);
    let key = FlowKey::between(Protocol::Udp, client(4000), server(), Direction::In);
    let mut whole = Vec::new();
    let mut told = Vec::new();
    for ms in (0..2000).step_by(20) {
        let (is_compact, _) = cross(at(ms), &mut near, &mut far, &one_way);
        if !is_compact {
            whole.push(ms);
            if let Some(id) = far.compression.ack_state(&key).due {
                told.push(ms);
                assert!(near.compression.knows(id).is_some_and(|of| of.local == client(4000)));
            }
        }
    }
    assert_eq!((&whole[..], &told[..]), (&[0, 20, 520, 1020, 1520][..], &[20, 520, 1020, 1520][..]));
    assert!(near.compression.is_proven() && !far.compression.is_proven());
    assert_eq!(near.compression.knows(ContextId([9; 6])), None, "nobody gave that");
}

#[test]
fn after_a_restart_of_either_end_the_next_definition_heals_a_flow_that_goes_one_way() {
    for is_sender in [true, false] {
        let (mut near, mut far) = (Shim::new(1), Shim::new(2));
        let (there, back) = (packet(client(1), server(), b"there"), packet(server(), client(1), b"back"));
        cross(at(0), &mut near, &mut far, &there);
        cross(at(0), &mut far, &mut near, &back);
        if is_sender {
            near.restart()
        } else {
            far.restart()
        }
        let lost = (20..1000).step_by(20).filter(|ms| {
            let datagrams = near.send_at(at(*ms), &there);
            datagrams.iter().any(|datagram| far.take_at(at(*ms), datagram).is_err())
        });
        let lost: Vec<u64> = lost.collect();
        assert!(lost.iter().all(|ms| *ms < 500) && lost.is_empty() == is_sender, "{lost:?}");
        assert_eq!(near.compression.counters().malformed, 0);
    }
}

#[test]
fn who_names_an_id_that_nobody_can_guess_is_the_peer() {
    let (mut near, mut far) = (Shim::new(1), Shim::new(2));
    let there = packet(client(1), server(), b"there");
    let key = FlowKey::between(Protocol::Udp, client(1), server(), Direction::In);
    let proven = |far: &Shim| far.compression.ack_state(&key).is_proven;
    let first = near.send_at(at(0), &there).remove(0);
    far.take_at(at(0), &first).unwrap();
    assert!(!proven(&far), "anybody can say this once");
    far.take_at(at(1), &first).unwrap();
    assert!(proven(&far));
    let forged = Shim::new(77).send_at(at(0), &there).remove(0);
    far.take_at(at(2), &forged).unwrap();
    assert!(!proven(&far));
    let mut out = Datagrams::default();
    let out_key = FlowKey { local: key.remote, remote: key.local, ..key };
    assert!(near.compression.announce_datagram(at(3), &out_key, ROOM, &mut out));
    let headers = out.iter().next().unwrap();
    assert_eq!((headers.len(), headers[0]), (1 + 6 + 28, 0b0100_1010));
    assert_eq!(far.take_at(at(3), headers), Ok(None));
    assert!(proven(&far), "headers alone are as good");
}

#[test]
fn a_datagram_too_large_to_go_whole_has_its_definition_sent_ahead() {
    let (mut near, mut far) = (Shim::new(1), Shim::new(2));
    // Id, and a whole checksum.
    let most = usize::from(ROOM) - 7 - 2;
    let large = packet(v6(1), v6(2), &vec![5; most]);
    let datagrams = near.send_at(at(0), &large);
    assert_eq!(datagrams.iter().map(|datagram| is_compact(datagram)).collect::<Vec<_>>(), [false, true]);
    assert_eq!(far.take_at(at(0), &datagrams[0]), Ok(None));
    assert_eq!(far.take_at(at(0), &datagrams[1]), Ok(Some(large)));
    let larger = packet(v6(1), v6(2), &vec![5; most + 1]);
    let refused = near.try_send_at(at(0), &larger, QUESTION).unwrap_err();
    assert_eq!(refused, TooLarge { len: usize::from(ROOM) + 1, room: ROOM.into() });
}

#[test]
fn a_train_is_cut_and_all_its_datagrams_have_one_length_but_the_last() {
    for (a, b) in [(client(4000), server()), (v6(1), v6(2))] {
        let (mut near, mut far) = (Shim::new(1), Shim::new(2));
        let data: Vec<u8> = (0..4500).map(|at| at as u8).collect();
        let train = partial(may_be(packet(a, b, &data)));
        let offload = Offload { partial: true, segment: Some(1000) };
        for whole in [1, 0] {
            let datagrams = near.try_send_at(at(0), &train, offload).unwrap();
            let compact: Vec<_> = datagrams.iter().filter(|datagram| is_compact(datagram)).collect();
            assert_eq!((datagrams.len() - compact.len(), compact.len()), (whole, 5));
            assert!(compact[..4].iter().all(|datagram| datagram.len() == compact[0].len()));
            let delivered: Vec<_> =
                datagrams.iter().filter_map(|one| far.take_at(at(0), one).unwrap()).map(completed).collect();
            for (number, (delivered, piece)) in delivered.iter().zip(data.chunks(1000)).enumerate() {
                let cut = packet(a, b, piece);
                let cut = if a.is_ipv4() { may_be_cut(cut, 0x1234 + number as u16) } else { cut };
                assert_eq!(*delivered, cut, "{number}");
            }
            near.compression.flows.values_mut().for_each(|flow| flow.outbound.as_mut().unwrap().is_known = true);
        }
    }
    fn may_be(packet: Vec<u8>) -> Vec<u8> {
        if packet[0] >> 4 == 4 { may_be_cut(packet, 0x1234) } else { packet }
    }
}

#[test]
fn what_no_context_can_bring_back_goes_whole() {
    let (mut near, mut far) = (Shim::new(1), Shim::new(2));
    let plain = packet(client(1), server(), b"0123456789");
    cross(at(0), &mut near, &mut far, &plain);
    cross(at(0), &mut far, &mut near, &packet(server(), client(1), b"ok"));
    let mut longer = plain.clone();
    longer[25] -= 2;
    let mut unsummed = plain.clone();
    unsummed[26..28].fill(0);
    assert!(!cross(at(0), &mut near, &mut far, &longer).0, "something stands behind the data");
    assert!(cross(at(0), &mut near, &mut far, &unsummed).0, "that there is no checksum is told");
    assert!(cross(at(0), &mut near, &mut far, &packet(client(1), server(), b"")).0, "an empty one");
}

#[test]
fn half_of_the_contexts_are_for_tcp_alone() {
    let mut near = Shim::new(1);
    near.compression = Compression::new(8);
    for port in 1..=20 {
        near.send_at(at(0), &packet(client(port), server(), b"x"));
    }
    assert_eq!((near.compression.flows(), near.compression.datagrams), (4, 4));
    near.compression.retain(|_| false);
    assert_eq!((near.compression.flows(), near.compression.datagrams, near.compression.given.len()), (0, 0, 0));
}

/// What the two ends of the wire do next.
#[derive(Clone, Copy, Debug)]
enum Act {
    Send { server: bool, flow: u8, later: u16 },
    Arrive { which: u16 },
    Restart { server: bool },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        20 => (any::<bool>(), 0..5_u8, 0..400_u16).prop_map(|(server, flow, later)| Act::Send { server, flow, later }),
        20 => any::<u16>().prop_map(|which| Act::Arrive { which }),
        1 => any::<bool>().prop_map(|server| Act::Restart { server }),
    ];
    proptest::collection::vec(act, 1..300)
}

proptest! {
    #[test]
    fn any_datagram_survives(
        v6_ends in any::<bool>(), payload in proptest::collection::vec(any::<u8>(), 0..1200), class in any::<u8>(),
        hop_limit in 1..=255_u8, fragments in any::<bool>(), wrong in any::<u16>(),
    ) {
        let (a, b) = if v6_ends { (v6(1), v6(2)) } else { (client(4000), server()) };
        let mut any = packet(a, b, &payload);
        let udp = if v6_ends { 40 } else { 20 };
        any[udp + 6..udp + 8].copy_from_slice(&wrong.to_be_bytes());
        if v6_ends {
            (any[0], any[1], any[7]) = (0x60 | class >> 4, class << 4 | 5, hop_limit);
        } else {
            (any[1], any[8]) = (class, hop_limit);
            any = may_be_cut(any, if fragments { wrong } else { 0 });
            any[6] = if fragments { 0 } else { 0x40 };
            crate::udp::samples::fix_header(&mut any);
        }
        let (mut near, mut far) = (Shim::new(1), Shim::new(2));
        cross(at(0), &mut near, &mut far, &any);
        cross(at(0), &mut far, &mut near, &packet(b, a, b"ok"));
        prop_assert!(cross(at(0), &mut near, &mut far, &any).0);
    }

    #[test]
    fn whatever_happens_on_the_wire_no_datagram_is_changed_or_gets_into_another_flow(acts in acts(), seed in any::<u64>()) {
        let mut ends = [Shim::new(seed), Shim::new(!seed)];
        let mut sent: [Vec<Vec<u8>>; 2] = [vec![], vec![]];
        let mut wire: Vec<(bool, Vec<u8>)> = Vec::new();
        let mut now = Time::ZERO;
        for act in acts {
            match act {
                Act::Send { server: is_server, flow, later } => {
                    now = now + Duration::from_millis(later.into());
                    let (a, b) = (client(40_000 + u16::from(flow)), server());
                    let (from, to) = if is_server { (b, a) } else { (a, b) };
                    let end = usize::from(is_server);
                    let packet = packet(from, to, &vec![flow; sent[end].len() % 40]);
                    wire.extend(ends[end].send_at(now, &packet).into_iter().map(|datagram| (is_server, datagram)));
                    sent[end].push(packet);
                }
                Act::Arrive { which } if !wire.is_empty() => {
                    let (is_server, datagram) = &wire[usize::from(which) % wire.len()];
                    if let Ok(Some(packet)) = ends[usize::from(!*is_server)].take_at(now, datagram) {
                        prop_assert!(sent[usize::from(*is_server)].contains(&packet), "nobody sent {:02x?}", packet);
                    }
                }
                Act::Arrive { .. } => {}
                Act::Restart { server } => ends[usize::from(server)].restart(),
            }
        }
    }

    #[test]
    fn noise_never_panics_and_only_packets_are_delivered(flags in any::<u8>(), noise in proptest::collection::vec(any::<u8>(), 0..120)) {
        let (mut near, mut far) = (Shim::new(1), Shim::new(2));
        let first = near.send_at(at(0), &packet(client(1), server(), b"x")).remove(0);
        far.take_at(at(0), &first).unwrap();
        let known = [&[0x81 | flags & 0x3e][..], &first[1..7], &noise].concat();
        for datagram in [known, [&[flags][..], &noise].concat()] {
            if let Ok(Some(packet)) = far.take_at(at(0), &datagram) {
                prop_assert!(inner::parse(&packet).is_ok());
            }
        }
    }
}
