//! What the fuzz target of `fuzz/` and the tests run on any bytes: nothing panics, and what is delivered is a packet.

use hawser_core::packet::inner;
use hawser_core::units::Time;

use super::context::ContextId;
use super::format::Whole;
use super::{Compression, Expanded};

/// The context that every run knows, so that noise after its id gets far.
const KNOWN: ContextId = ContextId([0; 6]);
/// The same for UDP.
const KNOWN_UDP: ContextId = ContextId([1; 6]);
/// A datagram from 10.2.0.1:53 to 10.1.0.1:40000, with a right checksum of its IP header and none of its own.
const DEFINITION_UDP: [u8; 28] =
    [0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 17, 0x26, 0xcd, 10, 2, 0, 1, 10, 1, 0, 1, 0, 53, 0x9c, 0x40, 0, 8, 0, 0];
/// An acknowledgment from 10.2.0.1:80 to 10.1.0.1:40000, with right checksums.
const DEFINITION: [u8; 40] = [
    0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0x26, 0xcc, 10, 2, 0, 1, 10, 1, 0, 1, 0, 80, 0x9c, 0x40, 0, 0, 0, 1, 0, 0, 0,
    1, 0x50, 0x10, 1, 0xf4, 0xfd, 0x49, 0, 0,
];

/// A datagram of a peer, or what claims to be one.
pub fn datagram(datagram: &[u8]) {
    let mut compression = Compression::new(4);
    let mut packet = Vec::new();
    for (id, definition) in [(KNOWN, &DEFINITION[..]), (KNOWN_UDP, &DEFINITION_UDP[..])] {
        let mut first = Vec::new();
        Whole { defines: Some(id), ..Whole::default() }.write(&mut first);
        first.extend(definition);
        let taken = compression.expand(Time::ZERO, &first, |_, _, _| true, &mut packet);
        assert_eq!(taken, Ok(Expanded::Packet { partial: false }));
    }
    assert_eq!(compression.inbound.len(), 2, "{:?}", compression.counters);
    if let Ok(Expanded::Packet { .. }) = compression.expand(Time::ZERO, datagram, |_, _, _| true, &mut packet) {
        inner::parse(&packet).expect("what is delivered is a packet");
    }
    assert!(compression.flows.len() <= 4 && compression.inbound.len() <= 8);
}
