use super::table::{SETS, WAYS};
use super::*;
use crate::packet::samples::Sample;
use std::net::Ipv4Addr;

/// A fixed stream of numbers.
struct Counting(u8);

impl Random for Counting {
    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.0 = self.0.wrapping_mul(5).wrapping_add(7);
            *byte = self.0;
        }
    }
}

const HUB: PeerId = PeerId(0);
const DSL: FlowPath = by(3);
const LTE: FlowPath = by(5);
const NOW: Time = Time::from_nanos(7);

const fn by(link: u16) -> FlowPath {
    FlowPath { link: LinkId(link), remote: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4920) }
}

fn watch() -> FlowWatch {
    let mut watch = FlowWatch::default();
    watch.begin(NOW, &mut Counting(1));
    watch
}

/// The packet of a flow that its port names.
fn packet(port: u16) -> Vec<u8> {
    Sample { udp: true, ports: (port, 443), ..Sample::default() }.full()
}

fn inner(packet: &[u8]) -> Inner {
    inner::parse(packet).expect("a packet")
}

fn largest(watch: &mut FlowWatch) -> Vec<FlowSnapshot> {
    watch.largest(NOW, 64).expect("it is on").flows
}

#[test]
fn nothing_is_counted_before_somebody_asks_nor_afterwards() {
    let mut watch = FlowWatch::default();
    let packet = packet(1);
    watch.note_sent(NOW, HUB, &inner(&packet), DSL, ByteCount(9));
    assert!(!watch.is_on() && watch.largest(NOW, 64).is_none());
    watch.begin(NOW, &mut Counting(1));
    assert_eq!(largest(&mut watch), []);
    watch.note_received(NOW, HUB, &packet);
    watch.begin(NOW, &mut Counting(2));
    assert_eq!(largest(&mut watch).len(), 1, "who begins again goes on");
    watch.end();
    assert!(watch.largest(NOW, 64).is_none());
}

#[test]
fn both_directions_are_one_flow_that_knows_its_links_and_its_rule() {
    let mut watch = watch();
    let there = packet(4000);
    let (out, back) = (inner(&there), inner(&there).reversed());
    let mut answer = there.clone();
    // Addresses and ports change places; nothing else of an answer matters here.
    for (at, len) in [(12, 4), (20, 2)] {
        let (one, other) = (there[at..at + len].to_vec(), there[at + len..at + 2 * len].to_vec());
        answer[at..at + len].copy_from_slice(&other);
        answer[at + len..at + 2 * len].copy_from_slice(&one);
    }
    assert_eq!(inner(&answer).ports, back.ports);
    watch.note_treatment(NOW, HUB, &out, Some(2), Treatment::default());
    watch.note_sent(NOW, HUB, &out, DSL, ByteCount(1_000));
    watch.note_sent(NOW, HUB, &out, LTE, ByteCount(500));
    watch.arrive_by(LTE);
    watch.note_received(NOW, HUB, &answer);
    let flows = largest(&mut watch);
    assert_eq!(flows.len(), 1, "{flows:#?}");
    let (flow, bytes) = (flows[0], ByteCount(answer.len() as u64));
    let id = FlowId { peer: HUB, protocol: 17, local: out.source, remote: out.destination, ports: out.ports };
    assert_eq!((flow.id, flow.since, flow.sent, flow.received), (id, NOW, ByteCount(1_500), bytes));
    assert_eq!(flow.treatment, Some((Some(2), Treatment::default())));
    let dsl = FlowShare { path: DSL, sent: ByteCount(1_000), received: ByteCount::ZERO };
    let lte = FlowShare { path: LTE, sent: ByteCount(500), received: bytes };
    assert_eq!(flow.shares[..3], [Some(dsl), Some(lte), None]);
}

#[test]
fn an_echo_and_its_reply_are_one_flow() {
    let mut watch = watch();
    let mut echo = vec![0x45, 0, 0, 28, 0, 1, 0, 0, 64, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 8, 0, 0, 0, 0, 77, 0, 1];
    watch.note_sent(NOW, HUB, &inner(&echo), DSL, ByteCount(28));
    (echo[15], echo[19], echo[20]) = (2, 1, 0);
    watch.note_received(NOW, HUB, &echo);
    let flows = largest(&mut watch);
    assert_eq!(flows.len(), 1, "{flows:#?}");
    assert_eq!((flows[0].id.ports, flows[0].received), (Some((77, 0)), ByteCount(28)));
}

#[test]
fn a_large_flow_keeps_its_place_however_many_small_ones_come() {
    let mut watch = watch();
    let large = inner(&packet(9)).reversed();
    let mut sent = 0;
    // Of 60 MB it carries two hundredths, five times what its place takes.
    for round in 0..60_000u32 {
        let small = Inner { ports: Some((round as u16, (round >> 16) as u16 + 1)), ..large };
        watch.note_sent(NOW, HUB, &small, DSL, ByteCount(1_000));
        if round % 50 == 0 {
            watch.note_sent(NOW, HUB, &large, LTE, ByteCount(1_000));
            sent += 1_000;
        }
    }
    let flows = largest(&mut watch);
    assert_eq!(flows.len(), 64);
    assert_eq!((flows[0].id.ports, flows[0].sent), (large.ports, ByteCount(sent)), "exact, and first");
}

#[test]
fn what_was_large_once_gives_way_to_what_is_now() {
    let mut watch = watch();
    let of = |port: u16| Inner { ports: Some((port, 1)), ..inner(&packet(1)) };
    let all = (SETS * WAYS * 4) as u16;
    (0..all).for_each(|port| watch.note_sent(NOW, HUB, &of(port), DSL, ByteCount(1 << 20)));
    for _ in 0..64 {
        largest(&mut watch);
    }
    assert_eq!(largest(&mut watch), [], "silent for a minute");
    watch.note_sent(NOW, HUB, &of(all), DSL, ByteCount(40));
    let flows = largest(&mut watch);
    assert_eq!(flows.iter().map(|flow| flow.sent).collect::<Vec<_>>(), [ByteCount(40)]);
}

#[test]
fn the_flows_of_a_peer_that_goes_are_not_its_successors() {
    let mut watch = watch();
    let other = PeerId(1);
    watch.note_sent(NOW, HUB, &inner(&packet(1)), DSL, ByteCount(10));
    watch.note_sent(NOW, other, &inner(&packet(1)), DSL, ByteCount(20));
    watch.forget(HUB);
    let peers: Vec<_> = largest(&mut watch).iter().map(|flow| (flow.id.peer, flow.sent)).collect();
    assert_eq!(peers, [(other, ByteCount(20))]);
}

#[test]
fn further_paths_than_a_flow_has_room_for_count_for_the_flow_alone() {
    let mut watch = watch();
    for link in 0..10 {
        watch.note_sent(NOW, HUB, &inner(&packet(1)), by(link), ByteCount(10));
    }
    let flow = largest(&mut watch)[0];
    assert_eq!(flow.sent, ByteCount(100));
    assert_eq!(flow.shares.map(|share| share.map_or(0, |share| share.sent.0)), [10; FLOW_PATHS]);
}

#[test]
fn what_a_flow_carried_lately_is_what_was_not_told_before() {
    let mut watch = watch();
    let (flow, second) = (inner(&packet(1)), Duration::from_secs(1));
    for (sent, interval) in [(700, second), (300, second * 2), (0, second)] {
        let now = watch.told_at + interval;
        watch.note_sent(now, HUB, &flow, DSL, ByteCount(sent));
        let told = watch.largest(now, 64).expect("it is on");
        assert_eq!((told.interval, told.flows[0].sent_lately), (interval, ByteCount(sent)));
    }
    assert_eq!(largest(&mut watch)[0].sent, ByteCount(1_000));
}

/// Two flows, of which the second sends every tenth packet, at that rate for a second; what is told of each, and how
/// often one was looked at.
fn a_second_of(watch: &mut FlowWatch, from: Time, packets_per_s: u32) -> ([u64; 2], u32) {
    let flows = [1, 2].map(|port| inner(&packet(port)));
    let mut looks = 0;
    for number in 0..packets_per_s {
        if watch.is_next(Look::Sent) {
            looks += 1;
            let now = from + Duration::from_secs(1) * number / packets_per_s;
            watch.note_sent(now, HUB, &flows[usize::from(number % 10 == 0)], DSL, ByteCount(1_000));
        }
    }
    let told = watch.largest(from + Duration::from_secs(1), 64).expect("it is on").flows;
    let of = |flow: &Inner| told.iter().find(|told| told.id.ports == flow.ports).map_or(0, |told| told.sent_lately.0);
    (flows.each_ref().map(of), looks)
}

#[test]
fn few_packets_are_counted_and_of_many_a_sample() {
    let mut watch = watch();
    let second = |number: u32| NOW + Duration::from_secs(1) * number;
    assert_eq!(a_second_of(&mut watch, second(0), 1_500), ([1_350_000, 150_000], 1_500), "each");
    // The first tenth of a second goes by the rate before.
    a_second_of(&mut watch, second(1), 200_000);
    for number in 2..10 {
        let (told, looks) = a_second_of(&mut watch, second(number), 200_000);
        assert!(looks < 2_500, "{looks} looks");
        let [most, few] = told.map(|bytes| bytes as f64);
        assert!((most / 180e6 - 1.0).abs() < 0.1 && (few / 20e6 - 1.0).abs() < 0.3, "{told:?}");
    }
    for number in [10, 11] {
        a_second_of(&mut watch, second(number), 1);
    }
    assert_eq!(a_second_of(&mut watch, second(12), 1_500), ([1_350_000, 150_000], 1_500), "each again");
}
