//! Packets of the reference encoder (golden/vectors.json): ours are the same bytes, and ours are read as the same
//! fields.

use std::net::IpAddr;
use std::sync::Arc;

use hawser_scion::packet::{DataplaneView, Echo, FlowId, ScmpView, Template, Traceroute, Upper, parse};
use hawser_scion::{Dataplane, EndpointAddr, InterfaceId, IsdAs};
use serde::Deserialize;

/// Vectors that there are at least.
const VECTORS: usize = 400;

/// What golden/vectors writes: a packet's fields, and its bytes up to a tail that follows a pattern.
#[derive(Deserialize)]
struct Vector {
    source_as: String,
    source_host: IpAddr,
    destination_as: String,
    destination_host: IpAddr,
    traffic_class: u8,
    flow_id: u32,
    path: String,
    reversed: String,
    udp: Option<Udp>,
    scmp: Option<Scmp>,
    tail_len: usize,
    tail_seed: u8,
    headers: String,
}

#[derive(Deserialize)]
struct Udp {
    source_port: u16,
    destination_port: u16,
}

#[derive(Deserialize)]
struct Scmp {
    r#type: u8,
    code: u8,
    number: u16,
    id: u16,
    seq: u16,
    r#as: String,
    ingress: u16,
    egress: u16,
}

fn vectors() -> Vec<Vector> {
    let vectors: Vec<Vector> =
        serde_json::from_str(include_str!("../../golden/vectors.json")).expect("vectors are JSON");
    assert!(vectors.len() >= VECTORS, "only {} vectors", vectors.len());
    vectors
}

#[test]
fn every_vector_is_written_as_the_same_bytes() {
    for (index, vector) in vectors().iter().enumerate() {
        let template = vector.template();
        let mut packet = vec![0xaa; template.headroom()];
        packet.extend(vector.tail());
        match vector.message(&vector.tail()) {
            Some(message) => template.write_scmp(&message, &mut packet),
            None => template.finish(&mut packet),
        }
        assert!(packet == vector.packet(), "vector {index}: another packet");
    }
}

#[test]
fn every_vector_is_read_as_the_same_fields() {
    for (index, vector) in vectors().iter().enumerate() {
        let (bytes, tail) = (vector.packet(), vector.tail());
        let packet = parse(&bytes).unwrap_or_else(|error| panic!("vector {index}: {error}"));
        assert_eq!(packet.source(), (isd_as(&vector.source_as), vector.source_host), "vector {index}");
        assert_eq!(packet.destination(), (isd_as(&vector.destination_as), vector.destination_host), "vector {index}");
        assert_eq!(packet.header().traffic_class(), vector.traffic_class, "vector {index}");
        assert_eq!(packet.header().flow_id(), vector.flow_id, "vector {index}");
        assert_eq!(packet.dataplane().as_bytes(), hex(&vector.path), "vector {index}");
        assert!(packet.verify_checksum(), "vector {index}");
        match (packet.upper(), &vector.udp) {
            (Upper::Udp(udp), Some(expected)) => {
                let ports = (udp.source_port(), udp.destination_port());
                assert_eq!(ports, (expected.source_port, expected.destination_port), "vector {index}");
                assert!(udp.payload() == tail && udp.verify_checksum(), "vector {index}");
            }
            (Upper::Scmp(message), None) => assert_eq!(Some(message), vector.message(&tail), "vector {index}"),
            (other, _) => panic!("vector {index}: {other:?}"),
        }
    }
}

#[test]
fn every_path_is_reversed_as_by_the_reference() {
    for (index, vector) in vectors().iter().enumerate() {
        let path = vector.path();
        let back = DataplaneView::of(&path).expect("it is a path").reversed().expect("it can be reversed");
        assert_eq!(back.as_bytes(), hex(&vector.reversed), "vector {index}");
    }
}

#[test]
fn a_changed_byte_is_noticed_in_every_vector() {
    for (index, vector) in vectors().iter().enumerate() {
        let mut bytes = vector.packet();
        // The last byte of what is summed, whatever the packet carries.
        *bytes.last_mut().expect("a packet") ^= 1 << (index % 8);
        let noticed = parse(&bytes).map_or(true, |packet| !packet.verify_checksum());
        assert!(noticed, "vector {index}");
    }
}

impl Vector {
    fn template(&self) -> Template {
        let (source, destination) = self.udp.as_ref().map_or((0, 0), |udp| (udp.source_port, udp.destination_port));
        let source = EndpointAddr::new(isd_as(&self.source_as), (self.source_host, source).into());
        let destination = EndpointAddr::new(isd_as(&self.destination_as), (self.destination_host, destination).into());
        let flow = FlowId::new(self.flow_id).expect("a flow id");
        let mut template = Template::new(source, destination, &self.path(), flow).expect("a template");
        template.set_traffic_class(self.traffic_class);
        template
    }

    fn path(&self) -> Dataplane {
        if self.path.is_empty() { Dataplane::Empty } else { Dataplane::Scion(Arc::from(hex(&self.path))) }
    }

    /// As `pattern` of golden/vectors/main.go.
    fn tail(&self) -> Vec<u8> {
        let byte = |index: usize| {
            let (fast, slow) = ((index as u8).wrapping_mul(197), ((index >> 8) as u8).wrapping_mul(31));
            self.tail_seed.wrapping_add(fast).wrapping_add(slow)
        };
        (0..self.tail_len).map(byte).collect()
    }

    fn packet(&self) -> Vec<u8> {
        let mut packet = hex(&self.headers);
        packet.extend(self.tail());
        packet
    }

    fn message<'a>(&self, tail: &'a [u8]) -> Option<ScmpView<'a>> {
        let scmp = self.scmp.as_ref()?;
        let (isd_as, code, quoted) = (isd_as(&scmp.r#as), scmp.code, tail);
        let (ingress, egress) = (InterfaceId(scmp.ingress), InterfaceId(scmp.egress));
        let echo = Echo { id: scmp.id, seq: scmp.seq, data: tail };
        let traceroute = Traceroute { id: scmp.id, seq: scmp.seq, isd_as, interface: ingress };
        Some(match scmp.r#type {
            1 => ScmpView::DestinationUnreachable { code, quoted },
            2 => ScmpView::PacketTooBig { mtu: scmp.number, quoted },
            4 => ScmpView::ParameterProblem { code, pointer: scmp.number, quoted },
            5 => ScmpView::ExternalInterfaceDown { isd_as, interface: ingress, quoted },
            6 => ScmpView::InternalConnectivityDown { isd_as, ingress, egress, quoted },
            128 => ScmpView::EchoRequest(echo),
            129 => ScmpView::EchoReply(echo),
            130 => ScmpView::TracerouteRequest(traceroute),
            131 => ScmpView::TracerouteReply(traceroute),
            kind => ScmpView::Unknown { kind, code, body: tail },
        })
    }
}

fn isd_as(text: &str) -> IsdAs {
    text.parse().expect("an AS")
}

fn hex(text: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hex digits");
    (0..text.len()).step_by(2).map(byte).collect()
}
