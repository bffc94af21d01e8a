//! What the fuzz target `scion_words`, and a test on machines without cargo-fuzz, run on any bytes.

use super::came::{Came, read};
use super::key::Key;
use crate::packet::{Quote, Quoted, Upper, parse};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Any bytes as a packet that came to a link: it is a datagram for the link's port, word about one of its own, or
/// nothing. Ports are taken from the packet, for a wrong one would hide all else.
pub fn words(bytes: &[u8]) {
    let Ok(packet) = parse(bytes) else { return };
    let port = match packet.upper() {
        Upper::Udp(udp) => udp.destination_port(),
        Upper::Scmp(message) => match message.quoted().map(Quote::read) {
            Some(Ok(Quote { carried: Quoted::Udp { source_port, .. }, .. })) => source_port,
            _ => 1,
        },
        Upper::Other(_) => 1,
    };
    let local = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port);
    let mut key = Key::default();
    let came = read(bytes, local, &mut key);
    match (packet.upper(), came) {
        (Upper::Udp(_), Came::Datagram(datagram)) => {
            assert_eq!(datagram.to.host.port(), port);
            assert!(datagram.header <= bytes.len());
        }
        (Upper::Scmp(message), Came::Word(word)) => {
            assert!(message.is_error() && word.mtu.is_none_or(|_| message.quoted().is_some()));
            assert_ne!(key, Key::default(), "word about a way names it");
        }
        (_, Came::Nothing) => assert_eq!(key, Key::default(), "nothing names no way"),
        _ => panic!("read as something else: {bytes:02x?}"),
    }
    // Another port's packet is nobody's.
    let other = SocketAddr::new(local.ip(), port ^ 1);
    assert!(matches!(read(bytes, other, &mut Key::default()), Came::Nothing));
}
