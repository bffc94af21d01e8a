//! What of a SCION flow passed a link, by capture.
//!
//! 1. A capture in a router's namespace sees each packet as it comes and as it goes.
//! 2. Packets from one SCION host to another are told apart by their outer addresses: a link each.
//! 3. The link that carried most is the first one: nothing was lost before it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use hawser_scion::packet::{Upper, parse, protocol};
pub use hawser_shim::translate::Layer4 as Carried;

/// A pcap file's header, and that before each frame; where the frame's length stands in it. Source: pcap-savefile(5).
const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
const CAPTURED_LEN: usize = 8;

/// Packets of a flow on a link. None by default. Plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wire {
    /// Bytes of them, from the outer IP header on.
    pub ip_bytes: u64,
    /// How many.
    pub packets: u64,
}

/// What went from one SCION host to another, by the capture file of a router on the way: what the first link carried.
pub fn scion_flow(pcap: &[u8], from: IpAddr, to: IpAddr, carried: Carried) -> Wire {
    scion_links(pcap, from, to, carried).into_values().max().unwrap_or_default()
}

/// The same for each link of the router, by the outer addresses on it: source and destination.
#[must_use]
pub fn scion_links(pcap: &[u8], from: IpAddr, to: IpAddr, carried: Carried) -> BTreeMap<(Ipv4Addr, Ipv4Addr), Wire> {
    let mut links: BTreeMap<(Ipv4Addr, Ipv4Addr), Wire> = BTreeMap::new();
    for (outer, ip_bytes) in frames(pcap).filter_map(|frame| outer_of(frame, from, to, carried)) {
        let link = links.entry(outer).or_default();
        link.packets += 1;
        link.ip_bytes += u64::from(ip_bytes);
    }
    links
}

fn frames(pcap: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = pcap.get(FILE_HEADER..).unwrap_or_default();
    std::iter::from_fn(move || {
        let len: [u8; 4] = rest.get(CAPTURED_LEN..CAPTURED_LEN + 4)?.try_into().ok()?;
        let end = RECORD_HEADER + u32::from_le_bytes(len) as usize;
        let frame = rest.get(RECORD_HEADER..end)?;
        rest = &rest[end..];
        Some(frame)
    })
}

/// The outer addresses and the bytes of the IP packet in a frame, where it is one of the flow.
fn outer_of(frame: &[u8], from: IpAddr, to: IpAddr, carried: Carried) -> Option<((Ipv4Addr, Ipv4Addr), u16)> {
    let SlicedPacket { net, transport, .. } = SlicedPacket::from_ethernet(frame).ok()?;
    let (Some(NetSlice::Ipv4(outer)), Some(TransportSlice::Udp(udp))) = (net, transport) else { return None };
    let (outer, scion) = (outer.header().to_header(), parse(udp.payload()).ok()?);
    let is_carried = match carried {
        Carried::Udp => matches!(scion.upper(), Upper::Udp(_)),
        Carried::Tcp => scion.upper() == Upper::Other(protocol::TCP),
    };
    let is_ours = scion.source().1 == from && scion.destination().1 == to && is_carried;
    is_ours.then(|| ((outer.source.into(), outer.destination.into()), outer.total_len))
}

#[cfg(test)]
mod tests {
    use etherparse::{Ethernet2Header, PacketBuilder};
    use hawser_scion::packet::{FlowId, Template};
    use hawser_scion::{Dataplane, EndpointAddr};

    use super::*;

    const CLIENT: &str = "1-ff00:0:111,10.111.0.10:31000";
    const SERVER: &str = "1-ff00:0:112,10.112.0.10:31000";

    /// A frame with a SCION packet of this many bytes of payload, from one outer address to another.
    fn frame(ends: [&str; 2], outer: [u8; 2], payload: usize) -> Vec<u8> {
        let [from, to] = ends.map(|end| end.parse::<EndpointAddr>().expect("an endpoint"));
        let template = Template::new(from, to, &Dataplane::Empty, FlowId::default()).expect("a template");
        let mut scion = vec![0; template.headroom() + payload];
        template.finish(&mut scion);
        let [source, destination] = outer.map(|last| [10, 0, 0, last]);
        let carrier = PacketBuilder::ethernet2([0; 6], [0; 6]).ipv4(source, destination, 64).udp(0, 0);
        let mut frame = Vec::new();
        carrier.write(&mut frame, &scion).expect("a vector takes all");
        frame
    }

    fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
        let mut file = vec![0; FILE_HEADER];
        for frame in frames {
            let len = (frame.len() as u32).to_le_bytes();
            file.extend([[0; 4], [0; 4], len, len].concat());
            file.extend(frame);
        }
        file
    }

    #[test]
    fn a_flow_is_counted_once_on_the_link_that_carried_most() {
        let there = [CLIENT, SERVER];
        let whole = frame(there, [1, 2], 100);
        let mut padded = frame(there, [1, 2], 1);
        padded.extend([0; 7]);
        let frames =
            [whole.clone(), frame(there, [2, 3], 100), padded, frame([SERVER, CLIENT], [3, 2], 900), vec![0; 60]];
        let of = |frame: &[u8]| (frame.len() - Ethernet2Header::LEN) as u64;
        let expected = Wire { packets: 2, ip_bytes: 2 * of(&whole) - 99 };
        let [from, to] = ["10.111.0.10", "10.112.0.10"].map(|host| host.parse().expect("an address"));
        assert_eq!(scion_flow(&pcap(&frames), from, to, Carried::Udp), expected);
        assert_eq!(scion_links(&pcap(&frames), from, to, Carried::Udp).len(), 2);
        assert_eq!(scion_flow(&pcap(&frames), from, from, Carried::Udp), Wire::default());
        assert_eq!(scion_flow(&pcap(&frames), from, to, Carried::Tcp), Wire::default());
        let cut = &pcap(&frames)[..FILE_HEADER + RECORD_HEADER + 40];
        assert_eq!(scion_flow(cut, from, to, Carried::Udp), Wire::default(), "a frame that was not written to its end");
    }
}
