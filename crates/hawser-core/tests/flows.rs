//! The largest flows, as two portals count them on either side of one session.

use crate::allocator::allocations_of;
use crate::support;
use hawser_core::flows::{FlowPath, FlowSnapshot, FlowWatch};
use hawser_core::packet::{Inner, Offload, inner};
use hawser_core::units::{ByteCount, LinkId, PeerId, Time};
use std::time::Duration;
use support::{Portal, Seeded, connected, packet, step};

/// Packets that are sent, and bytes of each.
const PACKETS: u16 = 100;
const BYTES: u64 = 100;

/// Sends all packets of one flow from the local portal to the remote one.
fn send(local: &mut Portal, remote: &mut Portal, mut now: Time) -> Time {
    for number in 0..PACKETS {
        let packet = packet(number);
        local.endpoint.read_buffer()[..packet.len()].copy_from_slice(&packet);
        local.endpoint.handle_inner(now, packet.len(), Offload::default());
        now = now + Duration::from_millis(1);
        step(now, local, remote);
    }
    now
}

fn only(portal: &mut Portal, now: Time) -> FlowSnapshot {
    let flows = portal.endpoint.largest_flows(now, 64).expect("flows are counted").flows;
    assert_eq!(flows.len(), 1, "{flows:#?}");
    flows[0]
}

#[test]
fn what_one_side_sends_of_a_flow_the_other_receives() {
    let (mut local, mut remote, now) = connected();
    assert!(local.endpoint.largest_flows(now, 64).is_none(), "nobody asked");
    local.endpoint.watch_flows(now, true);
    remote.endpoint.watch_flows(now, true);
    let now = send(&mut local, &mut remote, now);
    let (sent, received) = (only(&mut local, now), only(&mut remote, now));
    let all = ByteCount(u64::from(PACKETS) * BYTES);
    assert_eq!((sent.sent, sent.received), (all, ByteCount::ZERO));
    assert_eq!((received.sent, received.received), (ByteCount::ZERO, all));
    // Each side calls its own end local.
    assert_eq!((sent.id.local, sent.id.remote), (received.id.remote, received.id.local));
    assert_eq!((sent.id.ports, received.id.ports), (Some((1000, 2000)), Some((2000, 1000))));
    assert!(sent.treatment.is_some_and(|(rule, _)| rule.is_none()) && received.treatment.is_none());
    for flow in [&sent, &received] {
        let by_link: u64 = flow.shares.iter().flatten().map(|share| share.sent.0 + share.received.0).sum();
        assert_eq!(by_link, all.0, "every byte went by a link: {flow:#?}");
    }
}

#[test]
fn a_flow_is_counted_from_the_first_question_to_the_last() {
    let (mut local, mut remote, now) = connected();
    let now = send(&mut local, &mut remote, now);
    local.endpoint.watch_flows(now, true);
    let now = send(&mut local, &mut remote, now);
    assert_eq!(only(&mut local, now).sent, ByteCount(u64::from(PACKETS) * BYTES), "the first packets came before");
    local.endpoint.watch_flows(now, false);
    send(&mut local, &mut remote, now);
    assert!(local.endpoint.largest_flows(now, 64).is_none());
    local.endpoint.watch_flows(now, true);
    let anew = local.endpoint.largest_flows(now, 64).expect("flows are counted");
    assert!(anew.flows.is_empty(), "it begins anew: {anew:#?}");
}

#[test]
fn counting_allocates_nothing_however_many_flows_there_are() {
    let mut watch = FlowWatch::default();
    let now = Time::from_nanos(9);
    watch.begin(now, &mut Seeded(5));
    let (bytes, mut counted) = (packet(1), 0);
    let remote = "198.51.100.1:4920".parse().expect("an address");
    let first = inner::parse(&bytes).expect("a packet");
    let count = || {
        for flow in 0..50_000u32 {
            let inner = Inner { ports: Some((flow as u16, (flow >> 16) as u16)), ..first };
            let path = FlowPath { link: LinkId(flow as u16 % 16), remote };
            watch.note_sent(now, PeerId(0), &inner, path, ByteCount(BYTES));
            watch.note_received(now, PeerId(0), &bytes);
            counted += 1;
        }
    };
    assert_eq!(allocations_of(count), 0);
    let flows = watch.largest(now, 8).expect("it is on").flows;
    assert_eq!((counted, flows.len()), (50_000, 8));
    assert_eq!(flows[0].received, ByteCount(50_000 * BYTES), "the one large flow is exact");
}
