//! Whole transfers over simulated links, in virtual time. Seeds are printed.

#![allow(clippy::disallowed_macros, reason = "seeds and figures are printed")]

mod source;
mod world;

use std::time::Duration;

use hawser_bulk::receiver::WINDOW;
use hawser_bulk::sender::{End, Law, PathState};
use hawser_bulk::wire::Verdict;
use hawser_core::units::Rate;
use proptest::prelude::*;
use world::{Disk, Link, Order, Run, bytes_of, run, share};

const MB: u64 = 1_000_000;
/// What is left of a link's rate: 1360 bytes of file in a datagram of 1464 with all headers.
const HEADERS: f64 = 1360.0 / 1464.0;

/// Runs it, and checks that every file arrived as it was sent.
fn whole(order: &Order) -> Run {
    let run = run(order, Disk::default());
    arrived(order, &run);
    run
}

fn arrived(order: &Order, run: &Run) {
    assert_eq!((run.end, &run.results[..]), (End::Done, &vec![Some(Verdict::Good); order.sizes.len()][..]));
    for (file, size) in order.sizes.iter().enumerate() {
        assert!(run.disk.files[file] == bytes_of(file, *size, order.seed), "file {file} is another");
    }
}

/// Megabits of file a second, over all of a run.
fn mbps(order: &Order, run: &Run) -> f64 {
    order.sizes.iter().sum::<u64>() as f64 * 8.0 / 1e6 / run.seconds
}

#[test]
fn one_path_is_filled() {
    for (rate, delay) in [(20.0, 30.0), (100.0, 10.0), (500.0, 2.0)] {
        let order = Order::new(vec![Link::new(rate, delay)], &[(rate * 1e6 / 8.0) as u64 * 4], 1);
        let run = whole(&order);
        let share = mbps(&order, &run) / (rate * HEADERS);
        println!("{rate} Mbit/s, {delay} ms: {share:.3} of it, lost {:?}", run.paths[0].1);
        assert!(share > 0.85, "{share} of {rate} Mbit/s");
    }
}

#[test]
fn a_loss_of_one_percent_by_chance_does_not_slow_it() {
    let link = Link { loss: 0.01, ..Link::new(100.0, 20.0) };
    let order = Order::new(vec![link], &[60 * MB], 2);
    let run = whole(&order);
    let share = mbps(&order, &run) / (100.0 * HEADERS * 0.99);
    println!("{share:.3} of what the link delivers");
    assert!(share > 0.85, "{share}");
}

#[test]
fn four_paths_are_one_and_a_lossy_one_counts() {
    let mut links = vec![Link::new(100.0, 10.0); 4];
    links[2].loss = 0.01;
    let order = Order::new(links, &[200 * MB], 3);
    let run = whole(&order);
    let usable = (300.0 + 99.0) * HEADERS;
    let share = mbps(&order, &run) / usable;
    println!("{share:.3} of {usable:.0} Mbit/s; {:?}", run.paths);
    assert!(share > 0.9, "{share}");
}

#[test]
fn the_end_does_not_wait_for_the_slowest_path() {
    let fast = Link::new(100.0, 5.0);
    let slow = Link { queue_ms: 800.0, ..Link::new(4.0, 300.0) };
    let alone = Order::new(vec![fast.clone()], &[40 * MB], 4);
    let both = Order { links: vec![fast, slow], ..alone.clone() };
    let (alone_s, both_s) = (whole(&alone).seconds, whole(&both).seconds);
    println!("alone {alone_s:.2} s, beside a slow one {both_s:.2} s");
    assert!(both_s < alone_s + 0.3, "{both_s} s, and {alone_s} s without the slow path");
}

#[test]
fn a_path_that_dies_gives_its_chunks_back_and_one_that_returns_is_used_again() {
    let mut links = vec![Link::new(50.0, 10.0); 2];
    links[1].dead_ms = Some((1000, 100_000));
    let order = Order::new(links.clone(), &[50 * MB], 5);
    let run = whole(&order);
    assert_eq!(run.paths[1].0, PathState::Down);
    // A second by both, the rest by one.
    let expected = 1.0 + (50.0 * 8.0 - 100.0 * HEADERS) / (50.0 * HEADERS);
    println!("{:.2} s of {expected:.2}", run.seconds);
    assert!(run.seconds < expected * 1.15 + 0.5, "{} s, {expected} expected", run.seconds);

    links[1].dead_ms = Some((1000, 3000));
    let order = Order::new(links, &[75 * MB], 5);
    let run = whole(&order);
    assert_eq!(run.paths[1].0, PathState::Active);
    let share = run.paths[1].1.sent_bytes as f64 / (75.0 * 1e6);
    println!("{share:.2} by the path that was away, {:.2} s", run.seconds);
    assert!(share > 0.3, "{share} by the path that was away for two seconds");
}

#[test]
fn when_every_path_dies_the_session_ends_and_another_goes_on_where_it_stopped() {
    let mut link = Link::new(50.0, 10.0);
    link.dead_ms = Some((3000, 100_000));
    let order = Order::new(vec![link], &[40 * MB], 6);
    let broken = run(&order, Disk::default());
    assert_eq!(broken.end, End::Silent);
    assert!((7.9..8.5).contains(&broken.seconds), "{} s", broken.seconds);
    let there = broken.disk.hashes[0].iter().filter(|hash| !hash.is_missing()).count();
    assert!(there > 10, "{there} blocks of 39");
    let resumed = Order { links: vec![Link::new(50.0, 10.0)], ..order };
    let run = run(&resumed, broken.disk);
    arrived(&resumed, &run);
    let missing = 40 * MB - there as u64 * (1 << 20);
    // The last acknowledgements may come after the result.
    assert!(
        (missing - 200_000..=missing).contains(&run.arrived),
        "{} bytes of {missing} that were missing",
        run.arrived
    );
}

#[test]
fn keys_that_are_worn_end_a_session_when_all_has_arrived() {
    let order = Order { most_datagrams: 5000, ..Order::new(vec![Link::new(100.0, 5.0); 2], &[20 * MB], 7) };
    let (mut disk, mut sessions) = (Disk::default(), 0);
    loop {
        let run = run(&order, disk);
        sessions += 1;
        if run.end == End::Done {
            arrived(&order, &run);
            break;
        }
        assert_eq!(run.end, End::Rekey);
        disk = run.disk;
    }
    assert!((3..=5).contains(&sessions), "{sessions} sessions of 5000 datagrams");
}

#[test]
fn a_result_that_was_lost_comes_when_the_path_is_back() {
    // The block has come after half a second, and is written, at two, while nothing passes.
    let link = Link { dead_ms: Some((1500, 4500)), ..Link::new(20.0, 10.0) };
    let order = Order { disk: 650e3, ..Order::new(vec![link], &[1 << 20], 13) };
    let run = whole(&order);
    assert!((4.5..6.5).contains(&run.seconds), "{} s", run.seconds);
}

#[test]
fn many_files_with_empty_ones_among_them_arrive() {
    let sizes = [0, 1, 999, 1 << 20, (1 << 20) + 1, 0, 3 * MB, 0];
    whole(&Order::new(vec![Link::new(100.0, 5.0); 2], &sizes, 8));
}

#[test]
fn a_disk_that_is_slower_than_the_path_is_the_limit_and_memory_stays_bounded() {
    let order = Order { disk: 20e6, ..Order::new(vec![Link::new(1000.0, 2.0)], &[300 * MB], 9) };
    let run = whole(&order);
    assert!(run.most_blocks <= WINDOW as usize, "{} blocks in memory", run.most_blocks);
    let lost = run.paths[0].1.lost as f64 / run.paths[0].1.sent as f64;
    println!("{:.1} s, {lost:.4} lost", run.seconds);
    assert!((15.0..17.0).contains(&run.seconds), "{} s, 15 expected", run.seconds);
}

#[test]
fn a_ceiling_holds_over_all_paths() {
    let ceiling = Some(Rate::from_bits(40_000_000));
    let order = Order { ceiling, ..Order::new(vec![Link::new(100.0, 5.0); 3], &[20 * MB], 10) };
    let got = mbps(&order, &whole(&order));
    assert!((34.0..40.0).contains(&got), "{got} Mbit/s under a ceiling of 40");
}

#[test]
fn a_fair_path_answers_loss_as_cubic_does() {
    let link = Link { loss: 0.01, ..Link::new(100.0, 20.0) };
    let order = Order { law: Law::Fair, ..Order::new(vec![link], &[10 * MB], 11) };
    let got = mbps(&order, &whole(&order));
    // Reno's law, which CUBIC follows at such windows: 1.22 · 1360 B / (40 ms · sqrt(0.01)), with CUBIC's factor
    // about 1.1.
    assert!((2.0..8.0).contains(&got), "{got} Mbit/s at 1 % loss");
    let clean = Order { law: Law::Fair, ..Order::new(vec![Link::new(100.0, 20.0)], &[60 * MB], 11) };
    let share = mbps(&clean, &whole(&clean)) / (100.0 * HEADERS);
    println!("fair: {got:.1} Mbit/s at 1 % loss, {share:.2} of a clean link");
    assert!(share > 0.75, "{share} of a clean link");
}

/// What the first of two transfers gets of a link beside the second, after the time in which both found their rates.
fn beside(first: Law, second: Law, link: Link, seed: u64) -> f64 {
    let order = |law, seed| Order { law, ..Order::new(vec![link.clone()], &[60 * MB], seed) };
    let orders = [order(first, seed), order(second, seed + 1000)];
    let gained = share(&orders, [Duration::from_secs(5), Duration::from_secs(22)]);
    gained[0] as f64 / gained[1] as f64
}

#[test]
fn transfers_share_a_link() {
    for (first, second, queue_ms, most) in [
        (Law::Fair, Law::Fair, 50.0, 1.6),
        (Law::Fill, Law::Fill, 50.0, 2.5),
        (Law::Fill, Law::Fair, 20.0, 20.0),
        (Law::Fill, Law::Fair, 100.0, 20.0),
    ] {
        let link = Link { queue_ms, ..Link::new(20.0, 10.0) };
        let ratio = beside(first, second, link, 12);
        println!("{first:?} beside {second:?}, queue of {queue_ms} ms: {ratio:.2}");
        assert!((1.0 / most..most).contains(&ratio), "{first:?} beside {second:?}: {ratio}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever links do to datagrams: the file arrives whole, and each block is written once.
    #[test]
    fn any_loss_reordering_and_duplication(
        seed in 0_u64..1_000_000,
        shapes in proptest::collection::vec((2.0..80.0, 0.5..80.0, 0.0..0.3, 0.0..30.0, 0.0..0.2), 1..5),
        fair: bool,
    ) {
        let links = shapes.into_iter().map(|(mbps, delay_ms, loss, jitter_ms, duplicates)| {
            Link { loss, jitter_ms, duplicates, ..Link::new(mbps, delay_ms) }
        });
        let law = if fair { Law::Fair } else { Law::Fill };
        let patience = Duration::from_secs(900);
        let order = Order { law, patience, ..Order::new(links.collect(), &[MB, 1_500_000], seed) };
        whole(&order);
    }
}
