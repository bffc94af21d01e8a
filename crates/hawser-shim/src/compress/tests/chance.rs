//! Whatever happens on the wire, by chance: order, loss, duplicates, noise, ends that begin anew.

use proptest::prelude::*;

use super::*;

/// What the two ends of the wire do next.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// An end sends the next segment of a flow, or one that it sent before.
    Send { server: bool, flow: u8, again: bool },
    /// A datagram that is under way arrives, or once was: any, so that order, loss and duplicates are all there.
    Arrive { which: u16 },
    /// Somebody sends noise after a first byte that means something.
    Forge { server: bool, random: u64 },
    /// An end stops and begins anew.
    Restart { server: bool },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        20 => (any::<bool>(), 0..5_u8, any::<bool>()).prop_map(|(server, flow, again)| Act::Send { server, flow, again }),
        20 => any::<u16>().prop_map(|which| Act::Arrive { which }),
        2 => (any::<bool>(), any::<u64>()).prop_map(|(server, random)| Act::Forge { server, random }),
        1 => any::<bool>().prop_map(|server| Act::Restart { server }),
    ];
    proptest::collection::vec(act, 1..300)
}

/// The next segment of a flow, which bears the flow's number.
fn numbered(server: bool, flow: u8, sequence: u32) -> Vec<u8> {
    let port = 40_000 + u16::from(flow);
    let client = std::net::SocketAddr::new(CLIENT.parse::<std::net::SocketAddr>().unwrap().ip(), port);
    let draft = if server { back(Flags::ACK, sequence, 0) } else { there(Flags::ACK, sequence, 0) };
    let (from, to) = if server { (draft.from, client) } else { (client, draft.to) };
    let flags = if sequence == 0 { Flags::SYN } else { Flags::ACK };
    Draft { from, to, flags, payload: vec![flow; usize::from(flow) + 1], ..draft }.packet()
}

proptest! {
    #[test]
    fn any_segment_survives(
        v6_ends in any::<bool>(), flags in any::<u8>(), sequence in any::<u32>(), window in any::<u16>(),
        options in proptest::collection::vec(any::<u8>(), 0..=10), payload in proptest::collection::vec(any::<u8>(), 0..1200),
        class in any::<u8>(), hop_limit in 1..=255_u8, urgent in any::<u16>(), fragments in any::<bool>(), wrong in any::<u16>(),
    ) {
        let (from, to) = if v6_ends { (v6(1), v6(2)) } else { (CLIENT.parse().unwrap(), SERVER.parse().unwrap()) };
        let options = options.repeat(4);
        let draft = Draft { from, to, flags: Flags(flags), sequence, window, options, payload, ..Draft::default() };
        let mut packet = draft.packet();
        let tcp = if v6_ends { 40 } else { 20 };
        packet[tcp + 18..tcp + 20].copy_from_slice(&urgent.to_be_bytes());
        packet[tcp + 16..tcp + 18].copy_from_slice(&wrong.to_be_bytes());
        if v6_ends {
            packet[0] = 0x60 | class >> 4;
            packet[1] = class << 4 | 5;
            packet[7] = hop_limit;
        } else {
            (packet[1], packet[8]) = (class, hop_limit);
            packet[6] = if fragments { 0 } else { 0x40 };
            packet[4..6].copy_from_slice(&if fragments { wrong } else { 0 }.to_be_bytes());
            packet[10..12].fill(0);
            let checksum = !checksum::sum(&packet[..20]);
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        let (mut client, mut server) = (Shim::new(1), Shim::new(2));
        prop_assert_eq!(&cross(&mut client, &mut server, &packet).0, &packet);
        let ack = Draft { from: to, to: from, ..Draft::default() }.packet();
        cross(&mut server, &mut client, &ack);
        let (again, compact) = cross(&mut client, &mut server, &packet);
        prop_assert_eq!(&again, &packet);
        prop_assert_eq!(compact, flags & Flags::SYN.0 == 0);
    }

    #[test]
    fn whatever_happens_on_the_wire_no_segment_is_changed_or_gets_into_another_flow(acts in acts(), seed in any::<u64>()) {
        let mut ends = [Shim::new(seed), Shim::new(!seed)];
        let mut next = [[0_u32; 5]; 2];
        let mut sent: [Vec<Vec<u8>>; 2] = [vec![], vec![]];
        let mut wire: Vec<(bool, Vec<u8>)> = Vec::new();
        for act in acts {
            match act {
                Act::Send { server, flow, again } => {
                    let (end, counter) = (usize::from(server), &mut next[usize::from(server)][usize::from(flow)]);
                    let sequence = if again { counter.saturating_sub(7) } else { *counter };
                    *counter = if again { *counter } else { *counter + 7 };
                    let packet = numbered(server, flow, sequence);
                    wire.extend(ends[end].send(&packet).into_iter().map(|datagram| (server, datagram)));
                    sent[end].push(packet);
                }
                Act::Arrive { which } if !wire.is_empty() => {
                    let (server, datagram) = &wire[usize::from(which) % wire.len()];
                    if let Ok(Some(packet)) = ends[usize::from(!*server)].take(datagram) {
                        prop_assert!(sent[usize::from(*server)].contains(&packet), "nobody sent {:02x?}", packet);
                    }
                }
                Act::Arrive { .. } => {}
                Act::Forge { server, random } => {
                    let noise = [&[0x80][..], &random.to_be_bytes(), &[0x50; 30]].concat();
                    prop_assert_eq!(ends[usize::from(server)].take(&noise), Err(Rejected::Unknown));
                }
                Act::Restart { server } => ends[usize::from(server)].restart(),
            }
        }
    }

    #[test]
    fn noise_never_panics_and_only_packets_are_delivered(noise in proptest::collection::vec(any::<u8>(), 0..120)) {
        fuzz::datagram(&noise);
        let known = [&[0x80 | noise.first().copied().unwrap_or(0) & 0x3e][..], &[0; 6], &noise].concat();
        fuzz::datagram(&known);
    }

    #[test]
    fn what_arrives_is_a_packet_that_others_can_read(len in 0..1300_usize) {
        let (mut client, mut server) = acquainted();
        let (packet, compact) = cross(&mut client, &mut server, &there(Flags::ACK, 100, len).packet());
        prop_assert!(compact);
        prop_assert!(inner::parse(&packet).is_ok());
    }
}
