//! Cutting and coalescing undo each other; what must not be coalesced is not.

use super::*;
use crate::packet::samples::*;
use crate::packet::store::TrainStore;
use crate::packet::train::Gso;
use proptest::prelude::*;

fn flush(coalescer: &mut Coalescer) -> Vec<(Offload, Vec<u8>)> {
    let mut out = Vec::new();
    coalescer.flush(&mut |offload, packet| out.push((*offload, packet.to_vec())));
    out
}

/// What comes out after `packets` (bytes, partial) went in.
fn through(packets: &[(Vec<u8>, bool)]) -> Vec<(Offload, Vec<u8>)> {
    let mut coalescer = Coalescer::new(true);
    packets.iter().for_each(|(p, partial)| coalescer.push(p, *partial));
    flush(&mut coalescer)
}

/// Segments of 1,000 bytes of one flow, in sequence, `with` changing the n-th.
fn stream(count: u32, with: impl Fn(u32, &mut Sample)) -> Vec<(Vec<u8>, bool)> {
    (0..count)
        .map(|n| {
            let mut sample = Sample { sequence: n * 1_000, ..Sample::default() };
            with(n, &mut sample);
            (sample.full(), false)
        })
        .collect()
}

fn segments(sample: &Sample, full: bool) -> Vec<(Vec<u8>, bool)> {
    let mut store = TrainStore::new(KEY);
    let (packet, offload) = sample.partial();
    let id = admit(&mut store, &packet, offload);
    (0..store.train(id).segments())
        .map(|i| {
            let mut packet = segment(&store, id, i);
            if full {
                finish(&mut packet, &offload);
            }
            (packet, !full)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_train_cut_and_coalesced_is_the_same_super_packet(sample in any_train(), full in any::<bool>()) {
        let (packet, offload) = sample.partial();
        let out = through(&segments(&sample, full));
        prop_assert_eq!(out.len(), 1);
        prop_assert_eq!(out[0].0, offload);
        prop_assert!(out[0].1 == packet, "the bytes differ");
    }

    #[test]
    fn mixed_flows_keep_their_payload_and_order(
        order in proptest::collection::vec((0..20u16, 0..10u8), 1..120), udp in any::<bool>()
    ) {
        let mut sent = vec![Vec::new(); 20];
        let mut coalescer = Coalescer::new(true);
        for (flow, kind) in order {
            let payload: &mut Vec<u8> = &mut sent[usize::from(flow)];
            let sample = Sample {
                ports: (flow, 1),
                udp,
                sequence: payload.len() as u32,
                payload: [500, 0, 300][usize::from(kind.min(2)) * usize::from(kind < 3)],
                seed: kind,
                ..Sample::default()
            };
            let packet = sample.full();
            payload.extend(&packet[packet.len() - sample.payload..]);
            coalescer.push(&packet, false);
        }
        let mut got = vec![Vec::<u8>::new(); 20];
        for (offload, mut packet) in flush(&mut coalescer) {
            if offload.gso == Gso::None {
                prop_assert!(verifies(&packet));
            } else {
                finish(&mut packet, &offload);
                prop_assert!(verifies(&packet));
            }
            let inner = inner::parse(&packet).unwrap();
            got[usize::from(inner.ports.unwrap().0)].extend(&packet[inner.header_len().unwrap()..]);
        }
        prop_assert_eq!(got, sent);
    }
}

#[test]
fn what_does_not_continue_is_not_appended() {
    type Change = fn(&mut Sample);
    let table: [(&str, Change); 9] = [
        ("a hole in the sequence", |s| s.sequence += 1),
        ("a bigger segment", |s| s.payload = 1_001),
        ("a pure acknowledgement", |s| s.payload = 0),
        ("other options", |s| s.tcp_words = 4),
        ("SYN", |s| s.flags = 0x12),
        ("RST", |s| s.flags = 0x14),
        ("CWR", |s| s.flags = 0x90),
        ("an ECN mark", |s| s.traffic_class = 3),
        ("DF gone", |s| s.dont_fragment = false),
    ];
    for (why, change) in table {
        let packets = stream(2, |n, s| {
            if n == 1 {
                change(s)
            }
        });
        let out = through(&packets);
        assert_eq!(out.len(), 2, "{why}");
        for (i, (offload, packet)) in out.iter().enumerate() {
            assert_eq!((offload, packet), (&Offload::default(), &packets[i].0), "{why}");
        }
    }
}

#[test]
fn a_wrong_checksum_is_passed_on_as_it_is() {
    for bad in 0..3 {
        let mut packets = stream(3, |_, _| {});
        packets[bad].0[60] ^= 1;
        let out = through(&packets);
        let kept = out.iter().filter(|(_, p)| *p == packets[bad].0).count();
        assert_eq!(kept, 1, "packet {bad} unchanged");
    }
    let mut packets = stream(2, |_, _| {});
    packets[1].0[11] ^= 1;
    assert_eq!(through(&packets).len(), 2, "ip checksum");
}

#[test]
fn push_and_fin_end_a_super_packet() {
    for flag in [0x08, 0x01] {
        let out = through(&stream(4, |n, s| s.flags |= if n == 1 { flag } else { 0 }));
        let lens: Vec<usize> = out.iter().map(|(_, p)| p.len() - 52).collect();
        assert_eq!(lens, [2_000, 2_000]);
        assert_eq!(out[0].1[20 + 13], 0x10 | flag);
    }
}

#[test]
fn an_acknowledgement_is_not_overtaken_by_data_of_its_flow() {
    let packets = [
        stream(1, |_, _| {}),
        stream(1, |_, s| (s.payload, s.sequence) = (0, 1_000)),
        stream(1, |_, s| s.sequence = 1_000),
    ]
    .concat();
    let lens: Vec<usize> = through(&packets).iter().map(|(_, p)| p.len() - 52).collect();
    assert_eq!(lens, [1_000, 0, 1_000]);
}

#[test]
fn identifications_count_up_unless_they_mean_nothing() {
    for (dont_fragment, step, super_packets) in [(true, 0, 1), (false, 1, 1), (false, 2, 2)] {
        let out = through(&stream(2, |n, s| {
            s.id = 9 + n as u16 * step;
            s.dont_fragment = dont_fragment;
        }));
        assert_eq!(out.len(), super_packets, "df {dont_fragment}, step {step}");
    }
}

#[test]
fn super_packets_stay_within_their_bounds() {
    let out = through(&stream(100, |_, _| {}));
    assert!(out.iter().all(|(_, p)| p.len() <= 65_535));
    assert_eq!(out.iter().map(|(_, p)| p.len() - 52).sum::<usize>(), 100_000);
    let out = through(&stream(100, |n, s| (s.payload, s.sequence) = (10, n * 10)));
    let lens: Vec<usize> = out.iter().map(|(_, p)| p.len() - 52).collect();
    assert_eq!(lens, [640, 360]);
}

#[test]
fn a_seventeenth_flow_closes_the_oldest() {
    let flow = |port: u16, n: u32| {
        let sample = Sample { ports: (port, 1), sequence: n * 1_000, ..Sample::default() };
        (sample.full(), false)
    };
    let mut packets: Vec<_> = (0..17).map(|port| flow(port, 0)).collect();
    packets.extend([flow(0, 1), flow(16, 1)]);
    let out = through(&packets);
    assert_eq!(out.len(), 18);
    assert_eq!(out.iter().filter(|(o, _)| o.gso == Gso::TcpV4).count(), 1);
}

#[test]
fn udp_is_coalesced_only_when_enabled_and_checked() {
    let udp = || stream(3, |_, s| (s.udp, s.payload) = (true, 500));
    assert_eq!(through(&udp()).len(), 1);
    let mut coalescer = Coalescer::new(false);
    udp().iter().for_each(|(p, _)| coalescer.push(p, false));
    assert_eq!(flush(&mut coalescer).len(), 3);
    let mut unchecked = udp();
    unchecked.iter_mut().for_each(|(p, _)| p[26..28].fill(0));
    assert_eq!(through(&unchecked).len(), 3);
}

#[test]
fn a_single_partial_packet_asks_for_its_checksum() {
    let (packet, offload) = Sample::default().partial();
    assert_eq!(through(&[(packet.clone(), true)]), [(offload, packet)]);
}

#[test]
fn what_is_no_packet_is_dropped_and_counted() {
    let mut coalescer = Coalescer::new(true);
    coalescer.push(&[1, 2, 3], false);
    let mut fragment = Sample::default().full();
    fragment[6] = 0x20;
    coalescer.push(&fragment, true);
    assert_eq!((coalescer.dropped(), coalescer.is_empty()), (2, true));
}

#[test]
fn from_the_first_that_is_refused_on_all_packets_are_dropped_and_counted() {
    let flow = |port: u16, n: u32| Sample { ports: (port, 1), sequence: n * 1_000, ..Sample::default() }.full();
    for (taken, dropped) in [(0, 5), (1, 3), (2, 1), (3, 0)] {
        let mut coalescer = Coalescer::new(true);
        for packet in [flow(1, 0), flow(1, 1), flow(2, 0), flow(2, 1), flow(3, 0)] {
            coalescer.push(&packet, false);
        }
        let mut asked = 0;
        let found = coalescer.flush_while(&mut |_, _| {
            asked += 1;
            asked <= taken
        });
        assert_eq!((found, asked), (dropped, (taken + 1).min(3)), "{taken} are taken");
        assert!(coalescer.is_empty() && coalescer.bytes_held() == 0);
    }
}
