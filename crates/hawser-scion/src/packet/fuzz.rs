//! What the fuzz targets of `fuzz/`, and a test on machines without cargo-fuzz, run on any bytes.

use super::*;
use crate::EndpointAddr;

/// Any bytes as a packet: nothing that can be asked of it panics, and lengths are what they must be.
pub fn packet(bytes: &[u8]) {
    if let Ok((header, rest)) = Header::read(bytes) {
        assert_eq!(header.as_bytes().len() + rest.len(), bytes.len());
        let (destination, source) = (header.destination().1.ip(), header.source().1.ip());
        assert!(parse(bytes).is_err() || destination.is_ok() && source.is_ok());
        dataplane(header.dataplane());
    }
    if let Ok(quote) = Quote::read(bytes) {
        assert_eq!(Header::read(bytes).map(|(header, _)| header), Ok(quote.header));
    }
    let Ok(packet) = parse(bytes) else { return };
    assert!(Quote::read(bytes).is_ok(), "a whole packet can be quoted");
    assert!(packet.upper_bytes().len() <= packet.header().payload_len());
    packet.verify_checksum();
    match packet.upper() {
        Upper::Udp(udp) => {
            assert_eq!(udp.verify_checksum(), packet.verify_checksum());
            assert_eq!(dispatched_port(&packet), Ok(udp.destination_port()));
            assert!(udp.payload().len() <= MAX_UDP_PAYLOAD);
        }
        Upper::Scmp(message) => {
            assert_eq!(message.quoted().is_none(), !message.is_error() || matches!(message, ScmpView::Unknown { .. }));
            dispatched_port(&packet).ok();
        }
        Upper::Other(number) => assert!(number == protocol::TCP || dispatched_port(&packet) == Ok(ENDHOST_PORT)),
    }
}

fn dataplane(path: DataplaneView<'_>) {
    let hops: usize = path.segments().map(|(_, hops)| hops.count()).sum();
    assert_eq!(path.expiry().is_some(), hops > 0);
    assert!(path.position().is_some() == (path.path_type() == PathType::Scion));
    let Ok(back) = path.reversed() else { return };
    let view = DataplaneView::of(&back).expect("a way back is a path");
    assert_eq!((view.as_bytes().len(), view.expiry()), (path.as_bytes().len(), path.expiry()));
    let again = view.reversed().expect("a way back can be reversed");
    assert_eq!(DataplaneView::of(&again).expect("a path").reversed(), Ok(back));
}

/// Any packet: a template of its fields writes a packet that is read as the same fields.
pub fn roundtrip(bytes: &[u8]) {
    let Ok(packet) = parse(bytes) else { return };
    // A path that can be sent along, and back along: reserved bits are cleared by then.
    let Ok(back) = packet.dataplane().reversed() else { return };
    let path = DataplaneView::of(&back).expect("a path").reversed().expect("it can be reversed");
    let end = |(isd_as, host): (crate::IsdAs, std::net::IpAddr), port| {
        EndpointAddr::new(isd_as, (host.to_canonical(), port).into())
    };
    let ports = match packet.upper() {
        Upper::Udp(udp) => (udp.source_port(), udp.destination_port()),
        _ => (0, 0),
    };
    let (source, destination) = (end(packet.source(), ports.0), end(packet.destination(), ports.1));
    let flow = FlowId::from_hash(packet.header().flow_id());
    let mut template = Template::new(source, destination, &path, flow).expect("a template");
    template.set_traffic_class(packet.header().traffic_class());
    let mut written = vec![0; template.headroom()];
    match packet.upper() {
        Upper::Scmp(message) => template.write_scmp(&message, &mut written),
        _ => {
            written.extend_from_slice(packet.upper_bytes().get(8..).unwrap_or_default());
            template.finish(&mut written);
        }
    }
    let again = parse(&written).expect("what a template writes is a packet");
    assert!(again.verify_checksum());
    let header = again.header();
    assert_eq!((header.traffic_class(), header.flow_id()), (packet.header().traffic_class(), flow.get()));
    assert_eq!((end(again.source(), ports.0), end(again.destination(), ports.1)), (source, destination));
    assert_eq!(again.dataplane().as_bytes(), path.as_bytes());
    match (packet.upper(), again.upper()) {
        (Upper::Udp(before), Upper::Udp(after)) => assert_eq!(before.payload(), after.payload()),
        (Upper::Scmp(before), Upper::Scmp(after)) if written.len() < MAX_SCMP_LEN => assert_eq!(before, after),
        (Upper::Scmp(before), Upper::Scmp(after)) => assert_eq!(before.kind_and_code(), after.kind_and_code()),
        (Upper::Other(_), Upper::Udp(_)) => {}
        other => panic!("read as something else: {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::{Rng, SeedableRng};

    /// Packets that each target runs on.
    const INPUTS: usize = 20_000;

    fn seeds() -> Vec<Vec<u8>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/scion_packet");
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("read {folder:?}: {error}"));
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
        paths.sort();
        assert!(!paths.is_empty(), "no seeds in {folder:?}");
        paths.iter().map(|path| std::fs::read(path).expect("a seed")).collect()
    }

    /// Seeds, then seeds of which bytes were changed; lengths are changed as often as all else.
    fn smoke(run: fn(&[u8])) {
        let seeds = seeds();
        seeds.iter().for_each(|seed| run(seed));
        let mut rng = ChaCha20Rng::seed_from_u64(20_000);
        for _ in 0..INPUTS {
            let mut input = seeds[rng.next_u32() as usize % seeds.len()].clone();
            for _ in 0..1 + rng.next_u32() % 3 {
                let at = rng.next_u32() as usize % if rng.next_u32() & 1 == 0 { 12 } else { input.len() };
                input[at] = [input[at] ^ 1 << (rng.next_u32() % 8), rng.next_u32() as u8][rng.next_u32() as usize & 1];
            }
            run(&input);
        }
    }

    #[test]
    fn hostile_packets_are_survived() {
        smoke(super::packet);
    }

    #[test]
    fn hostile_words_about_ways_are_survived() {
        smoke(crate::link::fuzz::words);
    }

    #[test]
    fn what_is_read_is_written_alike() {
        smoke(super::roundtrip);
    }
}
