//! Two ends, the wire between them, and all that may go wrong on it.

use hawser_core::packet::{checksum, inner};
use hawser_core::units::Time;

use super::*;
use crate::mptcp::Flags;
use crate::mptcp::samples::{CLIENT, Draft, SERVER, v6};

mod chance;

/// Room on a path of three hops with an AS MTU of 1472: less a SCION header of 104 bytes (12 common, 24 addresses, 68
/// path) and UDP's 8 (scion-header.rst of the reference implementation).
pub(super) const ROOM: u16 = 1360;
/// The IP packet around it: 1472 bytes, UDP's 8 and IPv4's 20.
const ON_THE_WIRE: f64 = 1500.0;
/// Options of a segment of MPTCP: timestamps with padding (RFC 7323), DSS with a long mapping and a long
/// acknowledgment.
const OPTIONS: usize = 40;

/// One end, with its own random numbers.
pub(super) struct Shim {
    pub compression: Compression,
    random: u64,
}

/// What gives random numbers.
pub(super) type Random<'r> = &'r mut dyn FnMut() -> u64;

impl Shim {
    pub fn new(seed: u64) -> Self {
        Self { compression: Compression::new(64), random: seed }
    }

    /// It stops, and begins anew without what it knew.
    pub fn restart(&mut self) {
        self.compression = Compression::new(64);
    }

    fn try_send(&mut self, packet: &[u8], offload: Offload) -> Result<Vec<Vec<u8>>, TooLarge> {
        self.shrink(|compression, mut random, out| {
            compression.shrink(Time::ZERO, packet, offload, ROOM, &mut random, out)
        })
    }

    /// The datagrams that are written.
    pub fn shrink<E>(
        &mut self,
        write: impl FnOnce(&mut Compression, Random<'_>, &mut Datagrams) -> Result<(), E>,
    ) -> Result<Vec<Vec<u8>>, E> {
        let mut out = Datagrams::default();
        let state = &mut self.random;
        // The generator of Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014).
        let mut random = || {
            *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        };
        write(&mut self.compression, &mut random, &mut out)?;
        Ok(out.iter().map(<[u8]>::to_vec).collect())
    }

    fn send(&mut self, packet: &[u8]) -> Vec<Vec<u8>> {
        self.try_send(packet, Offload::default()).unwrap()
    }

    fn take(&mut self, datagram: &[u8]) -> Result<Option<Vec<u8>>, Rejected> {
        self.take_at(Time::ZERO, datagram)
    }

    /// The packet of a datagram, if it bears one.
    pub fn take_at(&mut self, now: Time, datagram: &[u8]) -> Result<Option<Vec<u8>>, Rejected> {
        let mut packet = Vec::new();
        let taken = self.compression.expand(now, datagram, |_, _, _| true, &mut packet)?;
        Ok((taken != Expanded::Nothing).then_some(packet))
    }
}

pub(super) fn is_compact(datagram: &[u8]) -> bool {
    datagram[0] >> 6 == 0b10
}

/// A packet crosses: what is delivered, and whether all of it was compact.
fn cross(from: &mut Shim, to: &mut Shim, packet: &[u8]) -> (Vec<u8>, bool) {
    let datagrams = from.send(packet);
    let delivered: Vec<Vec<u8>> = datagrams.iter().filter_map(|datagram| to.take(datagram).unwrap()).collect();
    assert_eq!(delivered.len(), 1, "one packet");
    (delivered[0].clone(), datagrams.iter().all(|datagram| is_compact(datagram)))
}

fn there(flags: Flags, sequence: u32, len: usize) -> Draft {
    Draft { flags, sequence, payload: (0..len).map(|at| at as u8).collect(), ..Draft::default() }
}

fn back(flags: Flags, sequence: u32, len: usize) -> Draft {
    Draft { from: SERVER.parse().unwrap(), to: CLIENT.parse().unwrap(), ..there(flags, sequence, len) }
}

/// Two ends that know a flow.
fn acquainted() -> (Shim, Shim) {
    let (mut client, mut server) = (Shim::new(1), Shim::new(2));
    cross(&mut client, &mut server, &there(Flags::SYN, 99, 0).packet());
    cross(&mut server, &mut client, &back(Flags(0x12), 499, 0).packet());
    cross(&mut client, &mut server, &there(Flags::ACK, 100, 0).packet());
    (client, server)
}

#[test]
fn a_flow_is_compact_from_its_third_segment_on_without_a_datagram_more() {
    let (mut client, mut server) = (Shim::new(1), Shim::new(2));
    let story = [
        (true, there(Flags::SYN, 99, 0), false),
        (false, back(Flags(0x12), 499, 0), false),
        (true, there(Flags::ACK, 100, 0), true),
        (true, there(Flags::ACK, 100, 1000), true),
        (false, back(Flags::ACK, 500, 1000), true),
        (true, there(Flags(0x11), 1100, 0), true),
    ];
    for (is_clients, draft, compact) in story {
        let packet = draft.packet();
        let (from, to) = if is_clients { (&mut client, &mut server) } else { (&mut server, &mut client) };
        assert_eq!(from.send(&packet).len(), 1);
        from.compression.flows.values_mut().for_each(|flow| flow.owed = flow.inbound[0]);
        assert_eq!(cross(from, to, &packet), (packet.clone(), compact && !draft.flags.has(Flags::SYN)), "{draft:?}");
    }
}

#[test]
fn a_full_segment_on_three_hops_costs_at_most_sixteen_percent() {
    let (mut client, mut server) = acquainted();
    let mss = usize::from(Compression::max_segment(ROOM));
    let options = vec![1; OPTIONS];
    let draft = Draft { options, ..there(Flags::ACK, 100, mss - OPTIONS) };
    let mut packet = draft.packet();
    packet[36..38].fill(0);
    let pseudo = checksum::pseudo(draft.from.ip(), draft.to.ip(), 6, packet.len() - 20);
    packet[36..38].copy_from_slice(&pseudo.to_be_bytes());
    let datagrams = client.try_send(&packet, Offload { partial: true, segment: None }).unwrap();
    assert_eq!(datagrams.len(), 1);
    assert!(datagrams[0].len() <= usize::from(ROOM), "{} bytes", datagrams[0].len());
    assert_eq!(server.take(&datagrams[0]).unwrap().unwrap(), packet, "partial checksums arrive as such");
    let cost = ON_THE_WIRE / (mss - OPTIONS) as f64;
    assert!(cost <= 1.16, "{cost}");
    let whole = ON_THE_WIRE / (usize::from(ROOM) - 1 - 40 - OPTIONS) as f64;
    assert!(whole > 1.16, "whole headers would cost {whole}");
}

#[test]
fn a_segment_too_large_to_go_whole_has_its_definition_sent_ahead() {
    let (mut client, mut server) = (Shim::new(1), Shim::new(2));
    let packet = there(Flags::ACK, 100, usize::from(Compression::max_segment(ROOM))).packet();
    let datagrams = client.send(&packet);
    assert_eq!(datagrams.iter().map(|datagram| is_compact(datagram)).collect::<Vec<_>>(), [false, true]);
    assert!(datagrams.iter().all(|datagram| datagram.len() <= usize::from(ROOM)));
    assert_eq!(server.take(&datagrams[0]), Ok(None));
    assert_eq!(server.take(&datagrams[1]), Ok(Some(packet.clone())));
    let larger = there(Flags::ACK, 100, usize::from(ROOM)).packet();
    let refused = client.try_send(&larger, Offload::default()).unwrap_err();
    assert_eq!(refused, TooLarge { len: usize::from(ROOM) + usize::from(COMPACT_HEADER) + 2, room: usize::from(ROOM) });
}

/// The segments of a train as the kernel would cut it.
fn cut(train: &Draft, size: usize) -> Vec<Vec<u8>> {
    let count = train.payload.chunks(size).count();
    let segment = |(at, payload): (usize, &[u8])| {
        let last = Flags::FIN.0 | Flags::PSH.0;
        let flags =
            train.flags.0 & if at > 0 { !Flags::CWR.0 } else { 0xff } & if at + 1 < count { !last } else { 0xff };
        let sequence = train.sequence + (at * size) as u32;
        Draft { payload: payload.to_vec(), flags: Flags(flags), sequence, ..train.clone() }.packet()
    };
    train.payload.chunks(size).enumerate().map(segment).collect()
}

/// Makes the checksum whole.
fn completed(mut packet: Vec<u8>) -> Vec<u8> {
    let at = if packet[0] >> 4 == 4 { 20 } else { 40 };
    let checksum = checksum::of_transport(&packet[at..], 16);
    packet[at + 16..at + 18].copy_from_slice(&checksum.to_be_bytes());
    packet
}

#[test]
fn a_train_is_cut_and_all_its_datagrams_have_one_length_but_the_last() {
    for (from, to) in [(CLIENT.parse().unwrap(), SERVER.parse().unwrap()), (v6(1), v6(2))] {
        let (mut client, mut server) = (Shim::new(1), Shim::new(2));
        let train = Draft { from, to, ..there(Flags(0x99), 100, 4500) };
        let offload = Offload { partial: true, segment: Some(1000) };
        for expected_whole in [1, 0] {
            let datagrams = client.try_send(&train.packet(), offload).unwrap();
            let (whole, compact): (Vec<_>, Vec<_>) = datagrams.iter().partition(|datagram| !is_compact(datagram));
            assert_eq!((whole.len(), compact.len()), (expected_whole, 5));
            assert!(compact[..4].iter().all(|datagram| datagram.len() == compact[0].len()));
            let delivered = datagrams.iter().filter_map(|datagram| server.take(datagram).unwrap());
            assert_eq!(delivered.map(completed).collect::<Vec<_>>(), cut(&train, 1000));
            // The server's acknowledgment makes the client's context known; the ACK owed to it goes ahead of the next
            // train.
            let ack = Draft { from: to, to: from, ..Draft::default() };
            for datagram in server.send(&ack.packet()) {
                client.take(&datagram).unwrap();
            }
            client.compression.flows.values_mut().for_each(|flow| flow.owed = None);
        }
    }
}

#[test]
fn an_acknowledgment_of_a_context_goes_ahead_of_a_train() {
    let (mut client, mut server) = acquainted();
    server.restart();
    for datagram in server.send(&back(Flags::ACK, 500, 0).packet()) {
        client.take(&datagram).unwrap();
    }
    client.compression.flows.values_mut().for_each(|flow| flow.outbound.as_mut().unwrap().is_known = true);
    let train = there(Flags::ACK, 100, 2000).packet();
    let datagrams = client.try_send(&train, Offload { partial: true, segment: Some(1000) }).unwrap();
    assert_eq!(datagrams.iter().map(|datagram| is_compact(datagram)).collect::<Vec<_>>(), [false, true, true]);
    assert_eq!(server.take(&datagrams[0]), Ok(None));
    assert_eq!(server.take(&datagrams[1]), Err(Rejected::Unknown), "that it began anew nobody knew here");
    let (_, compact) = cross(&mut server, &mut client, &back(Flags::ACK, 500, 10).packet());
    assert!(compact, "but its own context was acknowledged");
}

#[test]
fn after_a_restart_of_either_end_a_segment_sent_again_heals_the_flow() {
    for is_client in [true, false] {
        let (mut client, mut server) = acquainted();
        if is_client {
            client.restart()
        } else {
            server.restart()
        }
        let data = there(Flags::ACK, 100, 500).packet();
        let first: Vec<_> = client.send(&data).iter().map(|datagram| server.take(datagram)).collect();
        assert_eq!(first, [if is_client { Ok(Some(data.clone())) } else { Err(Rejected::Unknown) }]);
        let next = there(Flags::ACK, 600, 500).packet();
        client.send(&next);
        assert_eq!(cross(&mut client, &mut server, &data), (data.clone(), false), "again");
        let ack = back(Flags::ACK, 500, 0).packet();
        assert_eq!(cross(&mut server, &mut client, &ack).0, ack);
        let more = there(Flags::ACK, 1100, 500).packet();
        assert_eq!(cross(&mut client, &mut server, &more), (more.clone(), true));
        assert_eq!(cross(&mut server, &mut client, &ack), (ack.clone(), true));
    }
}

#[test]
fn what_no_context_can_bring_back_goes_whole() {
    let (mut client, mut server) = acquainted();
    let packet = there(Flags::ACK, 100, 10).packet();
    let changed = |at: usize, value: u8| {
        let mut packet = packet.clone();
        packet[at] = value;
        packet[10..12].fill(0);
        let checksum = !checksum::sum(&packet[..20]);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet
    };
    let table = [
        ("another protocol", changed(9, 47)),
        ("first fragment", changed(6, 0x20)),
        ("reserved bit", changed(6, 0x80)),
    ];
    for (name, packet) in table {
        assert_eq!(cross(&mut client, &mut server, &packet), (packet.clone(), false), "{name}");
    }
    let mut wrong = packet.clone();
    wrong[10] ^= 0xff;
    assert_eq!(cross(&mut client, &mut server, &wrong), (wrong, false), "a wrong checksum stays wrong");
    for (name, packet) in [("traffic class", changed(1, 2)), ("may be fragmented", changed(6, 0))] {
        let before = client.compression.counters().compact;
        for _ in 0..2 {
            assert_eq!(cross(&mut client, &mut server, &packet).0, packet, "{name}");
        }
        let compact = client.compression.counters().compact - before;
        assert_eq!(
            compact,
            if name == "traffic class" { 2 } else { 0 },
            "{name}: a change of constants is defined first"
        );
    }
}

#[test]
fn strangers_ids_nonsense_and_foreign_addresses_are_counted_and_leave_nothing() {
    let (mut client, mut server) = acquainted();
    let before = server.compression.entries();
    let compact = client.send(&there(Flags::ACK, 100, 100).packet()).remove(0);
    let mut forged = compact.clone();
    forged[3] ^= 1;
    assert_eq!(server.take(&forged), Err(Rejected::Unknown));
    for nonsense in [&[][..], &[0; 40], &[0xff; 40], &[0x70; 60], &[0x85; 60], &compact[..18], &[0x40], &[0x4f; 13]] {
        assert_eq!(server.take(nonsense), Err(Rejected::Malformed), "{nonsense:02x?}");
    }
    let mut long_options = compact.clone();
    long_options[15] = 0xf0;
    long_options.truncate(19 + 2 + 30);
    assert_eq!(server.take(&long_options), Err(Rejected::Malformed));
    let mut stranger = Shim::new(3);
    let whole = stranger.send(&there(Flags::SYN, 1, 0).packet()).remove(0);
    let refused = server.compression.expand(Time::ZERO, &whole, |_, _, _| false, &mut Vec::new());
    assert_eq!(refused, Err(Rejected::Foreign));
    let counters = server.compression.counters();
    assert_eq!((counters.unknown, counters.malformed, counters.foreign), (1, 9, 1));
    assert_eq!(server.compression.entries(), before);
}

#[test]
fn an_id_never_means_another_flow() {
    let (mut client, mut server) = (Shim::new(1), Shim::new(2));
    let first = client.send(&there(Flags::SYN, 1, 0).packet()).remove(0);
    server.take(&first).unwrap();
    let other = Draft { from: "10.1.0.1:41000".parse().unwrap(), ..there(Flags::SYN, 1, 0) }.packet();
    let mut contradicting = first[..7].to_vec();
    contradicting.extend(&other);
    assert_eq!(server.take(&contradicting), Ok(Some(other)), "whole as it is");
    assert_eq!((server.compression.counters().refused, server.compression.flows()), (1, 1));
}

#[test]
fn forgotten_flows_and_old_definitions_leave_nothing() {
    let (mut client, mut server) = acquainted();
    let key = *client.compression.flows.keys().next().unwrap();
    client.compression.forget(&key);
    assert_eq!(client.compression.entries(), 0);
    for _ in 0..10 {
        client.restart();
        for datagram in client.send(&there(Flags::ACK, 100, 10).packet()) {
            server.take(&datagram).unwrap();
        }
    }
    assert!(server.compression.entries() <= 4, "{}", server.compression.entries());
    server.compression.expire(Time::ZERO + IDLE / 2);
    assert_eq!(server.compression.flows(), 1);
    server.compression.expire(Time::ZERO + IDLE);
    assert_eq!(server.compression.entries(), 0);
}

#[test]
fn flows_beyond_the_limit_go_whole_and_arrive() {
    let (mut client, mut server) = (Shim::new(1), Shim::new(2));
    client.compression = Compression::new(1);
    server.compression = Compression::new(1);
    for port in [40_000, 40_001] {
        let from = std::net::SocketAddr::new(CLIENT.parse::<std::net::SocketAddr>().unwrap().ip(), port);
        let packet = Draft { from, ..there(Flags::ACK, 1, 10) }.packet();
        assert_eq!(cross(&mut client, &mut server, &packet), (packet.clone(), false));
    }
    assert_eq!((client.compression.flows(), server.compression.flows()), (1, 1));
}
