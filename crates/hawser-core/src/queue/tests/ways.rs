//! Flows have buckets of their own.

use super::*;
use crate::packet::FlowHash;
use crate::packet::flow::{Buckets, FlowKey, GAP_MAX};
use std::num::NonZeroU32;

const HOME: u16 = 83;

/// One of the flows whose home this is.
fn at_home(tag: u32) -> FlowHash {
    FlowHash { home: FlowBucket(HOME), tag: NonZeroU32::new(tag).expect("not zero") }
}

fn hash(bench: &mut Bench, port: u16) -> FlowHash {
    let (packet, offload) = Sample { ports: (port, 1), payload: 1_000, ..Sample::default() }.partial();
    let id = admit(&mut bench.store, &packet, offload);
    let hash = bench.store.train(id).flow();
    bench.store.release_all(id);
    hash
}

/// Ports whose flows all belong to the set of the first one.
fn ports_of_a_set(bench: &mut Bench, count: usize) -> Vec<u16> {
    let set = hash(bench, 1).home.0 / 8;
    (1..).filter(|port| hash(bench, *port).home.0 / 8 == set).take(count).collect()
}

#[test]
fn eight_flows_of_one_home_have_buckets_of_their_own_and_keep_them() {
    let mut bench = Bench::new(QueueParams::default());
    let mut place = |tag| bench.queue.place(bench.now, at_home(tag));
    let first: Vec<FlowBucket> = (1..=8).map(&mut place).collect();
    assert_eq!(first[0], FlowBucket(HOME), "the first one is at home");
    let mut set: Vec<u16> = first.iter().map(|bucket| bucket.0).collect();
    set.sort_unstable();
    assert_eq!(set, (80..88).collect::<Vec<_>>(), "the others are beside it");
    assert_eq!((1..=8).rev().map(&mut place).collect::<Vec<_>>(), first.into_iter().rev().collect::<Vec<_>>());
}

#[test]
fn of_those_that_rest_and_have_nothing_waiting_the_one_silent_for_the_longest_gives_its_bucket_up() {
    let mut bench = Bench::new(QueueParams::default());
    let ports = ports_of_a_set(&mut bench, 10);
    let mut buckets = Vec::new();
    for port in &ports[..8] {
        bench.now = bench.now + MS;
        buckets.push(bench.enqueue(*port, 1, false));
        // The first two have something waiting from then on.
        (buckets.len() > 2)
            .then(|| bench.pull(&mut |view| if buckets[2..].contains(&view.bucket) { ALL } else { Choice::Skip }));
    }
    // The third one says something again: the fourth is the one.
    bench.now = bench.now + GAP_MAX;
    assert_eq!(bench.enqueue(ports[2], 1, false), buckets[2]);
    bench.now = bench.now + MS;
    assert_eq!(bench.enqueue(ports[8], 1, false), buckets[3]);
    assert_eq!(bench.enqueue(ports[3], 1, false), buckets[4], "it comes back, and has the fifth's");
    bench.check();
    bench.drain();
}

#[test]
fn where_none_of_a_set_rests_a_ninth_flow_shares_its_home() {
    let mut bench = Bench::new(QueueParams::default());
    let ports = ports_of_a_set(&mut bench, 9);
    let buckets: Vec<FlowBucket> = ports[..8].iter().map(|port| bench.enqueue(*port, 1, false)).collect();
    bench.drain();
    let ninth = hash(&mut bench, ports[8]);
    bench.now = bench.now + GAP_MAX - MS;
    assert_eq!(bench.queue.place(bench.now, ninth), ninth.home, "nothing waits, and what was sent may be under way");
    let place = |bench: &mut Bench, port| {
        let flow = hash(bench, port);
        bench.queue.place(bench.now, flow)
    };
    let again: Vec<FlowBucket> = ports[..8].iter().map(|port| place(&mut bench, *port)).collect();
    assert_eq!(again, buckets, "none lost its own");
}

#[test]
fn of_300_flows_with_something_waiting_none_shares_a_bucket() {
    let mut by_hash_alone = 0;
    for seed in 0..20 {
        let mut bench = Bench::new(QueueParams::default());
        let ports: Vec<u16> = (1..=300).map(|port| port + seed * 300).collect();
        let homes: Vec<FlowBucket> = ports.iter().map(|port| hash(&mut bench, *port).home).collect();
        let own: Vec<FlowBucket> = ports.iter().map(|port| bench.enqueue(*port, 1, false)).collect();
        let shared =
            |buckets: &[FlowBucket]| buckets.len() - buckets.iter().collect::<std::collections::BTreeSet<_>>().len();
        by_hash_alone += shared(&homes);
        assert_eq!(shared(&own), 0, "ports from {}", ports[0]);
        bench.drain();
    }
    assert!((200..400).contains(&by_hash_alone), "{by_hash_alone}: 300 in 2,944 buckets are 15 too few");
}

#[test]
fn of_2000_questions_within_a_minute_none_shares_a_streams_bucket() {
    const STREAMS: u64 = 20;
    for (seed, of) in (0..20).flat_map(|seed| [(seed, Buckets::Resent), (seed, Buckets::Unresent)]) {
        let mut bench = Bench::new(QueueParams::default());
        let key = FlowKey::new(seed, 1);
        let flows: Vec<FlowHash> = (0..2_000 + STREAMS).map(|port| key.hash(&[port], of)).collect();
        let (streams, questions) = flows.split_at(STREAMS as usize);
        for question in questions {
            bench.now = bench.now + MS * 30;
            let own: Vec<FlowBucket> = streams.iter().map(|flow| bench.queue.place(bench.now, *flow)).collect();
            let shared = own.contains(&bench.queue.place(bench.now, *question));
            assert!(!shared, "{of:?}, seed {seed}, at {:?}", bench.now);
        }
    }
}
