//! Properties of the codec, on packets that a machine thinks up.

use std::net::{IpAddr, SocketAddr};

use crate::common::*;
use hawser_scion::packet::*;
use hawser_scion::{Dataplane, EndpointAddr, IsdAs};
use proptest::collection::vec;
use proptest::prelude::*;

/// A path of one to three segments, at any of its hops, its fields anything that is not reserved.
fn any_path() -> impl Strategy<Value = Dataplane> {
    let shape = (vec(1u8..6, 1..4), any::<u8>(), vec(any::<u8>(), 3 * 8 + 15 * 12));
    let scion = shape.prop_map(|(segments, hop, noise)| {
        let hops: u8 = segments.iter().sum();
        let mut bytes = path(&segments, hop % hops).as_bytes().to_vec();
        let fields = bytes.len() - 4;
        bytes[4..].copy_from_slice(&noise[..fields]);
        let hops_at = 4 + 8 * segments.len();
        (4..hops_at).step_by(8).for_each(|at| (bytes[at], bytes[at + 1]) = (bytes[at] & 3, 0));
        (hops_at..bytes.len()).step_by(12).for_each(|at| bytes[at] &= 3);
        Dataplane::Scion(bytes.into())
    });
    prop_oneof![1 => Just(Dataplane::Empty), 4 => scion]
}

/// IPv6 addresses that stand for IPv4 ones become those.
fn any_endpoint() -> impl Strategy<Value = EndpointAddr> {
    any::<(u64, IpAddr, u16)>().prop_map(|(isd_as, host, port)| {
        EndpointAddr::new(IsdAs::from_bits(isd_as), SocketAddr::new(host.to_canonical(), port))
    })
}

proptest! {
    #[test]
    fn what_a_template_writes_is_read_again(
        source in any_endpoint(),
        destination in any_endpoint(),
        path in any_path(),
        flow: u32,
        class: u8,
        payload in vec(any::<u8>(), 0..1500),
    ) {
        let flow = FlowId::from_hash(flow);
        let mut template = Template::new(source, destination, &path, flow).expect("a template");
        template.set_traffic_class(class);
        let bytes = finished(&template, &payload);
        prop_assert_eq!(template.max_payload(bytes.len() as u16), payload.len());
        let packet = parse(&bytes).expect("a packet");
        let Upper::Udp(udp) = packet.upper() else { panic!("no datagram") };
        let (from, to) = (packet.source(), packet.destination());
        prop_assert_eq!(EndpointAddr::new(from.0, (from.1, udp.source_port()).into()), source);
        prop_assert_eq!(EndpointAddr::new(to.0, (to.1, udp.destination_port()).into()), destination);
        prop_assert_eq!(packet.dataplane().as_bytes(), path.as_bytes());
        prop_assert_eq!((packet.header().traffic_class(), packet.header().flow_id()), (class, flow.get()));
        prop_assert_eq!(udp.payload(), &payload[..]);
        prop_assert!(udp.verify_checksum() && packet.verify_checksum());
    }

    #[test]
    fn a_run_is_finished_as_each_of_its_packets(path in any_path(), payload in 0usize..300, count in 0usize..9, last: bool, fill: u8) {
        let template = template(&path);
        let stride = template.headroom() + payload;
        let len = stride * count + if last { template.headroom() + payload / 2 } else { 0 };
        let mut run: Vec<u8> = (0..len).map(|index| (index as u8).wrapping_mul(fill)).collect();
        let mut each = run.clone();
        template.finish_run(&mut run, stride);
        each.chunks_mut(stride).for_each(|packet| template.finish(packet));
        prop_assert_eq!(run, each);
    }

    #[test]
    fn headers_are_the_same_where_the_payload_stands_elsewhere(path in any_path(), payload in vec(any::<u8>(), 0..300)) {
        let template = template(&path);
        let mut headers = vec![0xaa; template.headroom()];
        template.write_headers(&mut headers, &payload);
        prop_assert_eq!([headers, payload.clone()].concat(), finished(&template, &payload));
    }

    #[test]
    fn a_path_reversed_twice_is_the_path(path in any_path()) {
        let back = DataplaneView::of(&path).expect("a path").reversed().expect("it can be reversed");
        let again = DataplaneView::of(&back).expect("a path").reversed().expect("it can be reversed");
        prop_assert_eq!(again, path);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        if let Ok(packet) = parse(&bytes) {
            prop_assert_eq!(packet.header().as_bytes().len() + packet.header().payload_len(), bytes.len());
        }
    }
}
