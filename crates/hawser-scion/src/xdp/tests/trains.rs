//! Super-packets: the program sees many SCION packets under one outer header.

use std::net::SocketAddr;

use super::frame::{Outer, datagram, extended, template};
use super::program::{Bench, Fate, OPEN, UNLISTED, families};
use crate::xdp::Left;

/// Packets in a train (linux/udp.h, UDP_MAX_SEGMENTS).
const MOST: usize = 128;

/// A train of packets for these ports, with payloads of these lengths.
fn train(outer: &Outer, host: SocketAddr, packets: &[(u16, usize)]) -> Vec<Vec<u8>> {
    let packet = |&(port, len): &(u16, usize)| {
        let destination = SocketAddr::new(host.ip(), port);
        datagram(&template(outer.source, destination, &[2, 3]), &vec![len as u8; len])
    };
    packets.iter().map(packet).collect()
}

#[test]
fn a_train_for_one_port_goes_there_as_one() {
    let bench = Bench::new("xtrain");
    for (outer, host) in families() {
        let table = [
            vec![(OPEN, 1000); 2],
            vec![(OPEN, 1200), (OPEN, 1200), (OPEN, 7)],
            vec![(OPEN, 1200); 40],
            vec![(OPEN, 0); MOST],
            vec![(OPEN, 300); MOST],
        ];
        for packets in table {
            let frame = outer.frame(&train(&outer, host, &packets).concat());
            assert_eq!(bench.fate(&outer, &frame), Fate::Forwarded(OPEN), "{} packets", packets.len());
        }
    }
}

#[test]
fn a_train_for_several_ports_is_left_to_the_dispatcher() {
    let bench = Bench::new("xmixed");
    for (outer, host) in families() {
        let other = |at: usize, count: usize| {
            let mut packets = vec![(OPEN, 300); count];
            packets[at].0 = UNLISTED;
            packets
        };
        for packets in [other(1, 2), other(20, 40), other(39, 40), other(MOST - 1, MOST)] {
            let frame = outer.frame(&train(&outer, host, &packets).concat());
            assert_eq!(bench.fate(&outer, &frame), Fate::Left(Left::Train), "{packets:?}");
        }
        let too_many = outer.frame(&train(&outer, host, &vec![(OPEN, 10); MOST + 1]).concat());
        assert_eq!(bench.fate(&outer, &too_many), Fate::Left(Left::Train));
        let first_unlisted = outer.frame(&train(&outer, host, &[(UNLISTED, 50), (UNLISTED, 50)]).concat());
        assert_eq!(bench.fate(&outer, &first_unlisted), Fate::Left(Left::Port));
    }
}

#[test]
fn what_looks_like_a_train_and_is_none_is_left_alone() {
    let bench = Bench::new("xnone");
    for (outer, host) in families() {
        let whole = train(&outer, host, &[(OPEN, 100), (OPEN, 100)]);
        let with = |at: usize, value: u8| {
            let mut packets = whole.clone();
            packets[1][at] = value;
            packets.concat()
        };
        let stranger = SocketAddr::new(outer.source.ip(), OPEN);
        let stranger = match stranger.ip() == host.ip() {
            true => SocketAddr::new("fd00::9".parse().expect("an address"), OPEN),
            false => stranger,
        };
        let to_another = train(&outer, stranger, &[(OPEN, 100)]);
        let with_extensions: Vec<u8> = whole.iter().flat_map(|packet| extended(packet, &[(201, 0)])).collect();
        let table = [
            ("a byte too many", [whole.concat(), vec![0]].concat()),
            ("a second packet cut short", whole.concat()[..whole[0].len() + 60].to_vec()),
            ("a second packet that is larger", train(&outer, host, &[(OPEN, 100), (OPEN, 101)]).concat()),
            ("a smaller one in the middle", train(&outer, host, &[(OPEN, 100), (OPEN, 99), (OPEN, 100)]).concat()),
            ("a second packet of version 1", with(0, 0x10)),
            ("a second packet of tcp", with(4, 6)),
            ("a second packet with a longer header", with(5, whole[1][5] + 1)),
            ("a second packet with another length", with(7, whole[1][7].wrapping_sub(1))),
            ("a second packet with another path type", with(8, 0)),
            ("a second packet with another kind of host", with(9, whole[1][9] ^ 0x30)),
            ("a second packet for another host", [whole[0].clone(), to_another[0].clone()].concat()),
            ("packets with extensions", with_extensions),
        ];
        for (what, packets) in table {
            assert_eq!(bench.fate(&outer, &outer.frame(&packets)), Fate::Left(Left::Train), "{what}: {outer:?}");
        }
    }
}
