//! One way of a link, on a time that the test makes.

use super::super::codel::Codel;
use super::super::jitter::{Jitter, Spread};
use super::super::loss::Loss;
use super::super::spec::{Probability, QueueDepth, Rate, Reorder};
use super::super::trace::Trace;
use super::*;

/// 1000 bytes at 8 Mbit/s: one millisecond.
const LENGTH: u32 = 1000;

const NONE: [u8; 0] = [];

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Moment {
    Moment::from_nanos(1_000_000_000) + ms(millis)
}

/// 8 Mbit/s, so that a packet takes a millisecond.
fn one_a_millisecond() -> Direction {
    Direction { rate: Some(Rate::mbit(8.0)), ..Direction::default() }
}

fn whole(settings: Direction) -> Pipe {
    Pipe::new(settings, at(0))
}

/// Offers a packet whose first byte is its name.
fn offer(pipe: &mut Pipe, name: u8, arrived: Moment) {
    offer_late(pipe, name, arrived, arrived);
}

/// The same of one that was read later than it is taken for.
fn offer_late(pipe: &mut Pipe, name: u8, arrived: Moment, leaves: Moment) {
    let mut packet = pipe.slab.lend().expect("a buffer is free");
    packet.length = LENGTH;
    pipe.slab.buffer(packet)[0] = name;
    pipe.offer(packet, arrived, leaves);
}

/// What has arrived by a moment, by name.
fn arrived(pipe: &mut Pipe, now: Moment) -> Vec<u8> {
    pipe.advance(now);
    let mut names = Vec::new();
    while let Some(packet) = pipe.due(now) {
        names.push(pipe.slab.bytes(packet)[0]);
        pipe.delivered(packet, true);
    }
    names
}

#[test]
fn a_late_look_takes_no_rate_away() {
    let mut pipe = whole(one_a_millisecond());
    (0..100).for_each(|name| offer(&mut pipe, name, at(0)));
    assert_eq!(arrived(&mut pipe, at(0)), NONE);
    assert_eq!(arrived(&mut pipe, at(1)), [0]);
    assert_eq!(arrived(&mut pipe, at(57)).len(), 56);
    assert_eq!(pipe.next_event(), Some(at(58)));
    assert_eq!(arrived(&mut pipe, at(100)).len(), 43);
    assert_eq!(pipe.next_event(), None);
}

#[test]
fn what_is_read_late_has_its_turn_of_the_rate_and_leaves_no_sooner_than_told() {
    let short = Direction { queue: QueueDepth::Packets(2), delay: ms(10), ..one_a_millisecond() };
    let mut pipe = whole(short);
    // One a millisecond came, and nobody looked for twenty.
    (0..20).for_each(|name| offer_late(&mut pipe, name, at(u64::from(name)), at(19)));
    assert_eq!(pipe.counters(at(19)).dropped_by_queue, 0);
    assert_eq!(arrived(&mut pipe, at(28)), NONE);
    assert_eq!(arrived(&mut pipe, at(29)).len(), 19);
    offer(&mut pipe, 20, at(29));
    assert_eq!(arrived(&mut pipe, at(30)), [19]);
    assert_eq!(arrived(&mut pipe, at(40)), [20], "nothing of it waits any more");
}

#[test]
fn an_idle_line_saves_nothing_up() {
    let mut pipe = whole(one_a_millisecond());
    offer(&mut pipe, 0, at(0));
    assert_eq!(arrived(&mut pipe, at(50)), [0]);
    (1..4).for_each(|name| offer(&mut pipe, name, at(50)));
    assert_eq!(arrived(&mut pipe, at(52)), [1, 2]);
}

#[test]
fn each_kind_of_queue_drops_the_tail() {
    let table = [
        (QueueDepth::Bytes(3000), 3, "whole packets fill it"),
        (QueueDepth::Bytes(3999), 3, "a packet fits whole or not at all"),
        (QueueDepth::Bytes(1), 1, "one packet always fits"),
        (QueueDepth::Packets(5), 5, "packets"),
        (QueueDepth::Packets(0), 1, "one packet always fits"),
        (QueueDepth::Time(ms(4)), 4, "time at the rate"),
    ];
    for (queue, fit, why) in table {
        let mut pipe = whole(Direction { queue, ..one_a_millisecond() });
        (0..10).for_each(|name| offer(&mut pipe, name, at(0)));
        let counters = pipe.counters(at(0));
        assert_eq!((counters.queue_packets, counters.dropped_by_queue), (fit, 10 - fit), "{why}");
        assert_eq!(counters.queue_delay, ms(fit), "{why}");
        let kept: Vec<u8> = (0..).take(fit as usize).collect();
        assert_eq!(arrived(&mut pipe, at(20)), kept, "{why}");
        assert_eq!(pipe.counters(at(20)).queue_delay_most, ms(fit), "{why}");
    }
}

#[test]
fn the_mean_wait_is_over_what_left_since() {
    let mut pipe = whole(one_a_millisecond());
    (0..4).for_each(|name| offer(&mut pipe, name, at(0)));
    arrived(&mut pipe, at(2));
    let earlier = pipe.counters(at(2));
    arrived(&mut pipe, at(4));
    let later = pipe.counters(at(4));
    assert_eq!(later.queue_delay_mean_since(&Counters::default()), Duration::from_micros(2500));
    assert_eq!(later.queue_delay_mean_since(&earlier), Duration::from_micros(3500));
    assert_eq!(later.queue_delay_mean_since(&later), Duration::ZERO);
}

#[test]
fn a_started_packet_goes_on_at_the_new_rate() {
    let table = [(16.0, 750), (4.0, 1500), (8.0, 1000)];
    for (megabits, micros) in table {
        let mut pipe = whole(one_a_millisecond());
        offer(&mut pipe, 0, at(0));
        let change = Direction { rate: Some(Rate::mbit(megabits)), ..Direction::default() };
        pipe.change(change, at(0) + Duration::from_micros(500));
        let ends = at(0) + Duration::from_micros(micros);
        assert_eq!(pipe.next_event(), Some(ends), "{megabits} Mbit/s");
    }
    let mut pipe = whole(one_a_millisecond());
    offer(&mut pipe, 0, at(0));
    pipe.change(Direction::default(), at(0));
    assert_eq!(arrived(&mut pipe, at(0)), [0], "without a rate it has gone");
}

#[test]
fn a_shorter_delay_lets_nobody_overtake() {
    let mut pipe = whole(Direction { delay: ms(100), ..Direction::default() });
    offer(&mut pipe, 0, at(0));
    pipe.change(Direction { delay: ms(10), ..Direction::default() }, at(1));
    offer(&mut pipe, 1, at(2));
    assert_eq!(arrived(&mut pipe, at(99)), NONE);
    assert_eq!(arrived(&mut pipe, at(100)), [0, 1]);
}

#[test]
fn a_wandering_delay_stays_in_its_range_and_order() {
    for (spread, range) in [(Spread::Uniform, 20), (Spread::Normal, 60)] {
        let jitter = Jitter { amplitude: ms(20), spread, reorder: false };
        let mut pipe = whole(Direction { delay: ms(100), jitter: Some(jitter), ..Direction::default() });
        let (mut sent, mut mean) = (Vec::new(), 0.0);
        for step in 0..20_000 {
            let now = at(step);
            offer(&mut pipe, 0, now);
            sent.push(now);
            for _ in arrived(&mut pipe, now) {
                let delay = now - sent.remove(0);
                assert!(delay >= ms(99 - range) && delay <= ms(101 + range), "{delay:?}");
                mean += delay.as_secs_f64() / 20_000.0;
            }
        }
        assert!((mean - 0.1).abs() < 0.004, "mean delay {mean} s");
        assert_eq!(pipe.counters(at(0)).dropped_by_queue, 0);
    }
}

#[test]
fn jitter_that_may_reorder_does() {
    let jitter = Jitter { amplitude: ms(20), spread: Spread::Normal, reorder: true };
    let mut pipe = whole(Direction { delay: ms(30), jitter: Some(jitter), ..Direction::default() });
    (0..100).for_each(|name| offer(&mut pipe, name, at(u64::from(name))));
    // Three standard deviations later at most.
    let names = arrived(&mut pipe, at(99 + 30 + 3 * 20));
    assert_eq!(names.len(), 100);
    assert!(!names.is_sorted());
}

#[test]
fn what_the_line_does_to_a_packet_is_counted() {
    let always = Probability::ALWAYS;
    let mut pipe = whole(Direction { loss: Loss::Random(always), ..Direction::default() });
    offer(&mut pipe, 0, at(0));
    pipe.change(Direction { longest: Some(LENGTH - 1), ..Direction::default() }, at(1));
    offer(&mut pipe, 1, at(1));
    pipe.change(Direction { duplicate: always, ..Direction::default() }, at(2));
    offer(&mut pipe, 2, at(2));
    assert_eq!(arrived(&mut pipe, at(2)), [2, 2]);
    pipe.set_black_hole(true);
    offer(&mut pipe, 3, at(3));
    assert_eq!(arrived(&mut pipe, at(3)), NONE);
    pipe.set_black_hole(false);
    pipe.change(Direction { delay: ms(5), ..one_a_millisecond() }, at(4));
    (4..7).for_each(|name| offer(&mut pipe, name, at(4)));
    pipe.advance(at(5));
    pipe.cut();
    assert_eq!(arrived(&mut pipe, at(50)), NONE);
    let seen = pipe.counters(at(50));
    assert_eq!((seen.lost, seen.too_long, seen.duplicated, seen.vanished, seen.cut), (1, 1, 2, 2, 3));
    assert_eq!((seen.packets_in, seen.packets_out, seen.queue_bytes), (7, 2, 0));
    offer(&mut pipe, 9, at(50));
    assert_eq!(arrived(&mut pipe, at(56)), [9], "a cut line works again");
}

#[test]
fn random_drop_takes_any_packet_but_the_one_that_is_being_sent() {
    let settings = Direction { random_drop: true, queue: QueueDepth::Packets(20), ..one_a_millisecond() };
    let mut pipe = whole(settings);
    (0..120).for_each(|name| offer(&mut pipe, name, at(0)));
    let left = arrived(&mut pipe, at(200));
    assert_eq!((left.len(), left[0]), (20, 0));
    assert!(left.is_sorted(), "the order stays: {left:?}");
    let late = left.iter().filter(|name| **name >= 100).count();
    assert!((2..19).contains(&late), "neither those that came first nor the last alone: {left:?}");
    assert_eq!((pipe.counters(at(200)).dropped_by_queue, pipe.counters(at(200)).queue_bytes), (100, 0));
}

fn trace(text: &str) -> Option<Trace> {
    Some(Trace::parse(text).expect("a trace"))
}

#[test]
fn a_trace_says_when_packets_go() {
    // 1500 bytes at 2, 5 and 5 ms, and again from 10 ms on.
    let settings = Direction { trace: trace("2\n5\n5\n10\n"), delay: ms(1), ..Direction::default() };
    let mut pipe = whole(settings);
    (0..7).for_each(|name| offer(&mut pipe, name, at(0)));
    assert_eq!(pipe.next_event(), Some(at(2)), "the first goes with an opportunity, not before");
    // The second packet takes the 500 bytes that the first has left.
    let table = [(2, vec![]), (3, vec![0]), (6, vec![1, 2, 3]), (11, vec![4, 5]), (12, vec![]), (13, vec![6])];
    for (now, names) in table {
        assert_eq!(arrived(&mut pipe, at(now)), names, "at {now} ms");
    }
    offer(&mut pipe, 9, at(100_001));
    assert_eq!(pipe.next_event(), Some(at(100_002)), "it repeats, and saves nothing up");
}

#[test]
fn a_new_trace_begins_at_once_and_an_old_one_goes_on() {
    let mut pipe = whole(Direction { trace: trace("50\n"), ..Direction::default() });
    offer(&mut pipe, 0, at(0));
    pipe.change(Direction { delay: ms(1), ..pipe.settings.clone() }, at(10));
    assert_eq!(pipe.next_event(), Some(at(50)), "another setting leaves it alone");
    pipe.change(Direction { trace: trace("30\n"), ..Direction::default() }, at(10));
    assert_eq!(pipe.next_event(), Some(at(40)), "from now on");
    pipe.change(one_a_millisecond(), at(20));
    assert_eq!(pipe.next_event(), Some(at(21)), "a rate in its place");
    pipe.change(Direction { trace: trace("30\n"), ..Direction::default() }, at(20));
    assert_eq!(arrived(&mut pipe, at(49)), NONE);
    assert_eq!(arrived(&mut pipe, at(50)), [0]);
}

#[test]
fn the_queue_of_a_trace_holds_its_mean_rate() {
    // 12 Mbit/s on average.
    let settings = Direction { trace: trace("1\n"), queue: QueueDepth::Time(ms(4)), ..Direction::default() };
    let mut pipe = whole(settings);
    (0..10).for_each(|name| offer(&mut pipe, name, at(0)));
    let counters = pipe.counters(at(0));
    assert_eq!((counters.queue_packets, counters.dropped_by_queue), (6, 4));
    assert_eq!(counters.queue_delay, ms(4));
}

/// A packet a millisecond for 100 ms, nothing for two seconds, and again for 100 ms.
fn fades() -> Option<Trace> {
    let megabits: Vec<f64> = (0..22).map(|step| if (1..21).contains(&step) { 0.0 } else { 8.0 }).collect();
    Some(Trace::rates(ms(100), &megabits).expect("a trace"))
}

#[test]
fn a_link_that_fades_keeps_what_its_queue_holds_and_releases_it() {
    let mut pipe = whole(Direction { trace: fades(), queue: QueueDepth::Packets(50), ..Direction::default() });
    (0..80).for_each(|name| offer(&mut pipe, name, at(99)));
    assert_eq!(arrived(&mut pipe, at(100)), [0], "one while it lasts");
    assert_eq!(pipe.next_event(), Some(at(2100)), "the next has to wait for the rate");
    (80..90).for_each(|name| offer(&mut pipe, name, at(1000)));
    assert_eq!(arrived(&mut pipe, at(2100)), NONE);
    let counters = pipe.counters(at(2100));
    assert_eq!(
        (counters.queue_packets, counters.dropped_by_queue, counters.lost),
        (50, 39, 0),
        "only the tail is lost"
    );
    let kept: Vec<u8> = (1..50).chain([80]).collect();
    assert_eq!(arrived(&mut pipe, at(2150)), kept, "and all that was kept comes, in order");
}

#[test]
fn a_queue_in_time_is_of_the_mean_of_the_whole_trace_wherever_it_begins() {
    // 8 Mbit/s for two of 22 steps; 110 ms of the mean are 10,000 bytes.
    for offset in [0, 1000, 2150] {
        let trace = fades().map(|trace| trace.from_offset(ms(offset)));
        let mut pipe = whole(Direction { trace, queue: QueueDepth::Time(ms(110)), ..Direction::default() });
        (0..30).for_each(|name| offer(&mut pipe, name, at(0)));
        assert_eq!(pipe.counters(at(0)).queue_packets, 10, "{offset} ms");
    }
}

#[test]
fn codel_holds_a_standing_queue_near_its_target_and_drop_tail_does_not() {
    // Packets come at 1.05 of the rate, which no queue can hold for long.
    let standing = |codel| {
        let settings = Direction { codel, queue: QueueDepth::Packets(1000), ..one_a_millisecond() };
        let mut pipe = whole(settings);
        let mut next = at(0);
        while next < at(20_000) {
            offer(&mut pipe, 0, next);
            arrived(&mut pipe, next);
            next = next + Duration::from_nanos(1_000_000 * 100 / 105);
        }
        let counters = pipe.counters(at(20_000));
        assert_eq!(
            counters.packets_in,
            counters.packets_out + counters.dropped_by_codel + counters.dropped_by_queue + counters.queue_packets
        );
        assert!(counters.packets_sent >= 19_900, "the line stays busy");
        counters
    };
    let (tail, codel) = (standing(None), standing(Some(Codel::default())));
    assert!(tail.queue_delay > ms(800) && tail.dropped_by_codel == 0, "{tail:?}");
    assert!(codel.queue_delay < ms(60), "{codel:?}");
    assert!((800..1200).contains(&codel.dropped_by_codel), "{codel:?}");
}

#[test]
fn a_packet_held_back_is_overtaken_and_others_keep_their_order() {
    let share = Probability::new(0.2).expect("a probability");
    let reorder = Some(Reorder { share, by: ms(10) });
    let mut pipe = whole(Direction { reorder, delay: ms(30), ..Direction::default() });
    let (mut sent, mut got) = (0_u32, Vec::new());
    for now in 0..250 {
        if now < 200 {
            offer(&mut pipe, u8::try_from(now).expect("a byte"), at(now));
            sent += 1;
        }
        got.extend(arrived(&mut pipe, at(now)).into_iter().map(|name| (u64::from(name), now)));
    }
    let held: Vec<_> = got.iter().filter(|(sent, _)| got.contains(&(*sent, sent + 40))).collect();
    assert_eq!(got.len() as u32, sent);
    assert!(got.iter().all(|(sent, arrived)| [30, 40].contains(&(arrived - sent))), "{got:?}");
    assert_eq!(held.len() as u64, pipe.counters(at(250)).held_back);
    assert!((20..60).contains(&held.len()), "{} of 200", held.len());
}

#[test]
fn a_corrupted_packet_differs_in_one_bit_and_never_in_its_version() {
    let mut pipe = whole(Direction { corrupt: Probability::ALWAYS, ..Direction::default() });
    for _ in 0..500 {
        offer(&mut pipe, 0x45, at(0));
        let packet = pipe.due(at(0)).expect("it has arrived");
        let bytes = pipe.slab.bytes(packet).to_vec();
        assert_eq!(bytes[0], 0x45);
        assert_eq!(bytes[1..].iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
        pipe.slab.buffer(packet).fill(0);
        pipe.delivered(packet, true);
    }
    assert_eq!(pipe.counters(at(0)).corrupted, 500);
}
