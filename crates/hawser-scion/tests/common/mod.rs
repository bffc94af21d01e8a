//! Packets for the tests.

#![allow(dead_code, reason = "each test binary uses its part")]

use hawser_scion::packet::{FlowId, ScmpView, Template, protocol};
use hawser_scion::{Dataplane, EndpointAddr, InterfaceId};

/// Who sends.
pub fn alice() -> EndpointAddr {
    "1-ff00:0:110,10.0.0.1:31000".parse().expect("an endpoint")
}

/// Who is sent to.
pub fn bob() -> EndpointAddr {
    "1-ff00:0:120,10.0.0.2:31001".parse().expect("an endpoint")
}

/// A path whose segments have this many hops, at one of them; every info field is in direction of construction.
pub fn path(segments: &[u8], hop: u8) -> Dataplane {
    let mut end = 0;
    let ends = segments.iter().map(|len| {
        end += len;
        end
    });
    let segment = ends.take_while(|end| *end <= hop).count();
    Dataplane::Scion(at_position(segments, segment as u8, hop).into())
}

/// As `path`, at any segment and hop.
pub fn at_position(segments: &[u8], segment: u8, hop: u8) -> Vec<u8> {
    let mut meta = u32::from(segment) << 30 | u32::from(hop) << 24;
    for (len, shift) in segments.iter().zip([12, 6, 0]) {
        meta |= u32::from(*len) << shift;
    }
    let mut bytes = meta.to_be_bytes().to_vec();
    for index in 0..segments.len() as u8 {
        bytes.extend([1, 0, 0, index, 100, 0, 0, index]);
    }
    for index in 0..segments.iter().sum() {
        bytes.extend([0, 63, 1, index, 2, index, 3, 3, 3, 3, 3, index]);
    }
    bytes
}

/// From alice to bob.
pub fn template(path: &Dataplane) -> Template {
    Template::new(alice(), bob(), path, FlowId::default()).expect("a template")
}

/// A finished packet.
pub fn finished(template: &Template, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0xaa; template.headroom()];
    packet.extend_from_slice(payload);
    template.finish(&mut packet);
    packet
}

/// UDP from alice to bob.
pub fn datagram(path: &Dataplane, payload: &[u8]) -> Vec<u8> {
    finished(&template(path), payload)
}

/// SCMP from alice to bob, in the same AS.
pub fn control(message: &ScmpView<'_>) -> Vec<u8> {
    let mut packet = Vec::new();
    template(&Dataplane::Empty).write_scmp(message, &mut packet);
    packet
}

/// An error about a packet.
pub fn down(quoted: &[u8]) -> ScmpView<'_> {
    ScmpView::ExternalInterfaceDown { isd_as: alice().isd_as, interface: InterfaceId(41), quoted }
}

/// Any protocol from alice to bob, in the same AS.
pub fn carrying(protocol: u8, bytes: &[u8]) -> Vec<u8> {
    let mut packet = datagram(&Dataplane::Empty, b"");
    packet.truncate(packet.len() - 8);
    packet.extend_from_slice(bytes);
    packet[4] = protocol;
    packet[6..8].copy_from_slice(&(bytes.len() as u16).to_be_bytes());
    packet
}

/// A datagram behind extensions, each of which has these options.
pub fn with_extensions(order: &[u8], options: &[u8]) -> Vec<u8> {
    let packet = datagram(&Dataplane::Empty, b"hello");
    let mut payload = packet[36..].to_vec();
    let mut next = protocol::UDP;
    for extension in order.iter().rev() {
        let head = [next, ((2 + options.len()) / 4 - 1) as u8];
        payload = [&head[..], options, &payload].concat();
        next = *extension;
    }
    carrying(next, &payload)
}
