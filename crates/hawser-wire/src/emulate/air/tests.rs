//! A medium and its ways, on a time that the test makes.

use super::super::medium::Access;
use super::super::spec::{Direction, QueueDepth, Rate};
use super::*;

/// 1000 bytes at 8 Mbit/s: one millisecond.
const LENGTH: u32 = 1000;

const fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn at(micros: u64) -> Moment {
    Moment::from_nanos(1_000_000_000) + us(micros)
}

/// A medium and this many ways on it, each with packets waiting.
fn saturated(access: Access, ways: usize, packets: u32) -> (Air, Vec<Pipe>) {
    let medium = Medium::new(access);
    let settings = Direction {
        rate: Some(Rate::mbit(8.0)),
        medium: Some(medium.clone()),
        queue: QueueDepth::Packets(packets),
        ..Direction::default()
    };
    let mut pipes: Vec<Pipe> = (0..ways).map(|_| Pipe::new(settings.clone(), at(0))).collect();
    pipes.iter_mut().for_each(|pipe| (0..packets).for_each(|_| offer(pipe, at(0))));
    (Air::new(medium), pipes)
}

fn offer(pipe: &mut Pipe, arrived: Moment) {
    let mut packet = pipe.slab.lend().expect("a buffer is free");
    packet.length = LENGTH;
    pipe.offer(packet, arrived, arrived);
}

/// How many packets of each way have gone by a moment.
fn sent(air: &mut Air, pipes: &mut [Pipe], now: Moment) -> Vec<u64> {
    air.advance(pipes, now);
    pipes.iter().map(|pipe| pipe.counters(now).packets_sent).collect()
}

fn collisions(pipes: &[Pipe], now: Moment) -> u64 {
    pipes.iter().map(|pipe| pipe.counters(now).collisions).sum()
}

#[test]
fn in_turns_each_way_gets_its_share_and_nothing_is_sent_at_once() {
    // Ways, overhead (µs), packets a turn; what each has sent after 120 ms.
    let table = [
        (1, 0, 1, vec![120]),
        (2, 0, 1, vec![60, 60]),
        (3, 0, 1, vec![40, 40, 40]),
        (2, 1000, 1, vec![30, 30]),
        (2, 1000, 4, vec![48, 48]),
        (4, 500, 1, vec![20, 20, 20, 20]),
    ];
    for (ways, overhead, burst, expected) in table {
        let access = Access { overhead: us(overhead), burst, ..Access::turns() };
        let (mut air, mut pipes) = saturated(access, ways, 200);
        assert_eq!(sent(&mut air, &mut pipes, at(120_000)), expected, "{ways} ways, {overhead} µs, {burst} a turn");
    }
}

#[test]
fn a_turn_goes_through_its_states_at_the_times_it_says() {
    let (mut air, mut pipes) = saturated(Access { overhead: us(500), ..Access::turns() }, 1, 2);
    assert_eq!(air.next_event(), None, "nobody has looked");
    assert_eq!(sent(&mut air, &mut pipes, at(0)), [0]);
    assert_eq!(air.next_event(), Some(at(1500)));
    assert_eq!(sent(&mut air, &mut pipes, at(1499)), [0]);
    assert_eq!(sent(&mut air, &mut pipes, at(1500)), [1]);
    assert_eq!(air.next_event(), Some(at(3000)));
    assert_eq!(sent(&mut air, &mut pipes, at(9000)), [2]);
    assert_eq!(air.next_event(), None, "it is free");
    offer(&mut pipes[0], at(10_000));
    sent(&mut air, &mut pipes, at(10_000));
    assert_eq!(air.next_event(), Some(at(11_500)), "time in which it was free is not saved up");
    pipes[0].cut();
    assert_eq!(sent(&mut air, &mut pipes, at(20_000)), [2], "what was cut is not sent");
    offer(&mut pipes[0], at(20_000));
    assert_eq!(sent(&mut air, &mut pipes, at(21_500)), [3]);
}

#[test]
fn a_way_off_the_medium_waits_for_nobody() {
    let (mut air, mut pipes) = saturated(Access::turns(), 2, 100);
    let mut wired = Pipe::new(Direction { rate: Some(Rate::mbit(8.0)), ..Direction::default() }, at(0));
    (0..100).for_each(|_| offer(&mut wired, at(0)));
    pipes.push(wired);
    pipes[2].advance(at(60_000));
    assert_eq!(sent(&mut air, &mut pipes, at(60_000)), [30, 30, 60]);
}

#[test]
fn chance_gives_equal_shares_and_collisions_as_often_as_two_draw_the_same() {
    let backoff = Backoff { slot: us(9), window: 15, window_most: 1023 };
    let access = Access { backoff: Some(backoff), seed: 5, ..Access::turns() };
    let (mut air, mut pipes) = saturated(access, 2, 4000);
    let now = at(4_000_000);
    let sent = sent(&mut air, &mut pipes, now);
    let (all, collided) = (sent[0] + sent[1], collisions(&pipes, now) / 2);
    assert!(sent[0].abs_diff(sent[1]) < all / 20, "{sent:?}");
    // Two stations with these windows collide at one try in ten, which is one turn in sixteen (G. Bianchi, IEEE JSAC
    // 18, 2000).
    let share = collided as f64 / (all + collided) as f64;
    assert!((0.03..0.15).contains(&share), "{collided} collisions of {all}");
    let busy = all + collided;
    assert!((3700..4000).contains(&busy), "{busy} turns of a millisecond, and slots between, in 4 s");
}

#[test]
fn a_window_doubles_with_each_collision_up_to_its_limit_and_shrinks_with_success() {
    let backoff = Backoff { slot: us(9), window: 3, window_most: 20 };
    let mut dice = Dice::new(3);
    for (collided, most) in [(0, 3), (1, 7), (2, 15), (3, 20), (9, 20)] {
        let draws: Vec<u32> =
            (0..500).map(|_| Contender { collided, ..Contender::default() }.slots(&backoff, &mut dice)).collect();
        assert_eq!(draws.iter().max(), Some(&most), "after {collided}");
        assert_eq!(draws.iter().min(), Some(&0));
    }
    // A window of one slot: both draw it, and collide; then from two, four, …: one of them gets through at last.
    let access = Access { backoff: Some(Backoff { window: 0, ..backoff }), ..Access::turns() };
    let (mut air, mut pipes) = saturated(access, 2, 1);
    let now = at(100_000);
    assert_eq!(sent(&mut air, &mut pipes, now), [1, 1]);
    assert!(collisions(&pipes, now) >= 2);
    assert!(pipes.iter().all(|pipe| pipe.contender.collided == 0), "success makes it small again");
}

#[test]
fn who_loses_keeps_the_slots_it_has_left() {
    let backoff = Backoff { slot: us(10), window: 100, window_most: 100 };
    let (mut air, mut pipes) = saturated(Access { backoff: Some(backoff), ..Access::turns() }, 2, 50);
    (pipes[0].contender.slots, pipes[1].contender.slots) = (Some(4), Some(9));
    sent(&mut air, &mut pipes, at(0));
    assert_eq!(air.next_event(), Some(at(1040)), "four slots, and a packet");
    assert_eq!((pipes[0].contender.slots, pipes[1].contender.slots), (None, Some(5)));
}

#[test]
fn both_ways_of_802_11n_get_half_of_what_one_gets_alone() {
    let alone = {
        let (mut air, mut pipes) = saturated(Access::wifi_n(), 1, 5000);
        sent(&mut air, &mut pipes, at(2_000_000))[0]
    };
    let (mut air, mut pipes) = saturated(Access::wifi_n(), 2, 5000);
    let both = sent(&mut air, &mut pipes, at(2_000_000));
    for each in both {
        let share = each as f64 / alone as f64;
        assert!((0.42..0.52).contains(&share), "{each} of {alone}");
    }
}

#[test]
fn equal_seeds_give_equal_turns() {
    let run = |seed| {
        let (mut air, mut pipes) = saturated(Access { seed, ..Access::wifi_n() }, 3, 500);
        let mut shares = Vec::new();
        (0..40).for_each(|step| shares.extend(sent(&mut air, &mut pipes, at(step * 10_000))));
        shares
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
