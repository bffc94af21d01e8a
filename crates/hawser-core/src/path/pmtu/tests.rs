//! The search as situations, and against every true MTU.

use super::*;
use proptest::prelude::*;
use std::time::Duration;

/// IPv4 and UDP.
const OVERHEAD: u16 = 28;

fn at(s: u64) -> Time {
    Time::ZERO + Duration::from_secs(s)
}

/// A network that passes IP packets of `mtu` bytes, driven until the search rests; gives the probes sent.
fn settle(pmtu: &mut Pmtu, mtu: u16, now: Time) -> u32 {
    let passes = mtu - pmtu.overhead;
    let mut probes = 0;
    loop {
        while pmtu.current() > passes {
            // Traffic of the present size vanishes, small packets pass.
            pmtu.on_lost(pmtu.current());
            pmtu.on_acked(100);
        }
        match pmtu.poll_probe(now) {
            Some(size) if size <= passes => pmtu.on_probe_acked(size),
            Some(size) => pmtu.on_probe_lost(size),
            None => {
                assert!(matches!(pmtu.phase, Phase::Done { .. }), "a probe is out already");
                return probes;
            }
        }
        probes += 1;
        assert!(probes < 200, "the search does not end");
    }
}

fn found(link_mtu: u16, mtu: u16) -> (u16, u32) {
    let mut pmtu = Pmtu::new(link_mtu, OVERHEAD);
    let probes = settle(&mut pmtu, mtu, at(0));
    (pmtu.current() + OVERHEAD, probes)
}

#[test]
fn an_unhindered_path_takes_one_probe() {
    assert_eq!(found(1500, 1500), (1500, 1));
    assert_eq!(found(9000, 9000), (9000, 1));
    assert_eq!(found(1280, 1280), (1280, 0));
    assert_eq!(found(800, 800), (800, 0));
}

#[test]
fn common_sizes_are_found_within_few_probes() {
    for mtu in COMMON_MTUS {
        let (size, probes) = found(9000, mtu);
        assert_eq!(size, mtu);
        assert!(probes <= 60, "{mtu}: {probes} probes");
    }
}

#[test]
fn before_the_first_probe_the_base_stands() {
    let table = [(1500, 28, 1252), (1500, 48, 1232), (1000, 28, 972), (20, 28, 0)];
    for (link_mtu, overhead, base) in table {
        assert_eq!(Pmtu::new(link_mtu, overhead).current(), base);
    }
}

#[test]
fn three_lost_probes_make_a_size_too_big_and_two_do_not() {
    let mut pmtu = Pmtu::new(1500, OVERHEAD);
    for _ in 0..2 {
        assert_eq!(pmtu.poll_probe(at(0)), Some(1472));
        assert_eq!(pmtu.poll_probe(at(0)), None, "one at a time");
        pmtu.on_probe_lost(1472);
    }
    assert_eq!(pmtu.poll_probe(at(0)), Some(1472));
    pmtu.on_probe_lost(1472);
    assert!(pmtu.poll_probe(at(0)).is_some_and(|size| size < 1472));
}

#[test]
fn an_unanswered_probe_is_lost_after_a_second() {
    let mut pmtu = Pmtu::new(1500, OVERHEAD);
    assert_eq!(pmtu.poll_timeout(), Some(Time::ZERO));
    for s in 0..3 {
        assert_eq!(pmtu.poll_probe(at(s)), Some(1472));
        assert_eq!(pmtu.poll_timeout(), Some(at(s + 1)));
    }
    assert_ne!(pmtu.poll_probe(at(3)), Some(1472));
}

#[test]
fn a_probe_that_died_with_its_path_proves_nothing() {
    let mut pmtu = Pmtu::new(1500, OVERHEAD);
    for _ in 0..10 {
        assert_eq!(pmtu.poll_probe(at(0)), Some(1472));
        pmtu.abandon_probe();
        pmtu.on_probe_lost(1472);
    }
}

#[test]
fn a_late_answer_still_counts() {
    let mut pmtu = Pmtu::new(1500, OVERHEAD);
    for _ in 0..3 {
        assert_eq!(pmtu.poll_probe(at(0)), Some(1472));
        pmtu.on_probe_lost(1472);
    }
    let smaller = pmtu.poll_probe(at(0)).expect("the search goes on");
    for _ in 0..3 {
        pmtu.on_probe_lost(smaller);
        pmtu.poll_probe(at(0));
    }
    pmtu.on_probe_acked(1400);
    pmtu.on_probe_acked(1472);
    assert_eq!(pmtu.current(), 1472);
    assert_eq!(pmtu.poll_probe(at(0)), None, "nothing is left to try");
    pmtu.on_probe_acked(u16::MAX);
    assert_eq!(pmtu.current(), 1472, "no link carries that");
}

#[test]
fn a_rested_search_begins_again_after_ten_minutes() {
    let mut pmtu = Pmtu::new(1500, OVERHEAD);
    settle(&mut pmtu, 1400, at(0));
    assert_eq!(pmtu.current(), 1372);
    assert_eq!(pmtu.poll_timeout(), Some(at(600)));
    assert_eq!(pmtu.poll_probe(at(599)), None);
    settle(&mut pmtu, 1500, at(600));
    assert_eq!(pmtu.current(), 1472);
    assert_eq!(pmtu.poll_timeout(), None, "nothing above the link's own");
}

#[test]
fn a_black_hole_drives_back_to_the_base() {
    let mut pmtu = Pmtu::new(1500, OVERHEAD);
    settle(&mut pmtu, 1500, at(0));
    for burst in 1..=3 {
        pmtu.on_acked(100);
        assert_eq!(pmtu.on_lost(1472), burst == 3, "burst {burst}");
    }
    assert_eq!(pmtu.current(), 1252);
    settle(&mut pmtu, 1400, at(1));
    assert_eq!(pmtu.current(), 1372);
}

#[test]
fn a_path_that_only_its_probes_of_life_cross_is_a_black_hole() {
    let mut pmtu = Pmtu::new(1500, OVERHEAD);
    settle(&mut pmtu, 1500, at(0));
    for silence in 1..=3 {
        pmtu.on_black_holed(1472);
        pmtu.on_black_holed(1300);
        pmtu.on_black_holed(100);
        assert_eq!(pmtu.on_life(), silence == 3, "silence {silence}");
    }
    assert_eq!((pmtu.current(), pmtu.too_big), (1252, 1300));
}

#[test]
fn what_is_no_black_hole() {
    type Story = fn(&mut Pmtu, u32);
    let table: [(&str, Story); 8] = [
        ("a path that falls silent and comes back", |pmtu, _| {
            pmtu.on_black_holed(1472);
            pmtu.on_life();
            pmtu.on_acked(1472);
        }),
        ("what was black-holed arrived late", |pmtu, _| {
            pmtu.on_black_holed(1472);
            pmtu.on_acked(1472);
            pmtu.on_life();
        }),
        ("nothing large was black-holed", |pmtu, _| {
            pmtu.on_black_holed(1252);
            pmtu.on_life();
        }),
        ("one long burst", |pmtu, _| {
            pmtu.on_lost(1472);
        }),
        ("two long bursts", |pmtu, i| {
            pmtu.on_lost(1472);
            if i == 50 {
                pmtu.on_acked(100);
            }
        }),
        ("large ones arrive in between", |pmtu, _| {
            pmtu.on_lost(1472);
            pmtu.on_acked(100);
            pmtu.on_acked(1472);
        }),
        ("small ones are lost", |pmtu, _| {
            pmtu.on_lost(1252);
            pmtu.on_acked(100);
        }),
        ("everything is lost", |pmtu, i| {
            pmtu.on_lost(if i % 2 == 0 { 1472 } else { 100 });
        }),
    ];
    for (what, story) in table {
        let mut pmtu = Pmtu::new(1500, OVERHEAD);
        settle(&mut pmtu, 1500, at(0));
        for i in 0..100 {
            story(&mut pmtu, i);
        }
        assert_eq!(pmtu.current(), 1472, "{what}");
    }
}

#[test]
fn the_sockets_word_is_final() {
    let mut pmtu = Pmtu::new(1500, OVERHEAD);
    assert_eq!(pmtu.poll_probe(at(0)), Some(1472));
    pmtu.on_too_big(1472);
    assert_eq!(pmtu.current(), 1252);
    assert!(pmtu.poll_probe(at(0)).is_some_and(|size| size < 1472));
    pmtu.abandon_probe();
    settle(&mut pmtu, 1452, at(0));
    assert_eq!(pmtu.current(), 1424);
    pmtu.on_too_big(1424);
    assert_eq!(pmtu.current(), 1252);
    pmtu.on_too_big(1252);
    assert_eq!(pmtu.current(), 548);
    (0..=548).for_each(|forged| pmtu.on_too_big(forged));
    assert_eq!(pmtu.current(), 548, "every path carries that");
}

#[test]
fn a_routers_word_is_tested_by_probes_of_the_present_size() {
    let mut pmtu = Pmtu::new(1500, OVERHEAD);
    settle(&mut pmtu, 1500, at(0));
    // It was a lie, as often as it is told.
    for said in (549..=1472).chain([1472; 9]) {
        pmtu.on_hint(said);
        pmtu.on_hint(600);
        assert_eq!(pmtu.poll_timeout(), Some(Time::ZERO));
        assert_eq!(pmtu.poll_probe(at(1)), Some(1472));
        assert_eq!(pmtu.poll_probe(at(1)), None, "one probe at a time");
        pmtu.on_hint(said);
        assert_eq!(pmtu.current(), 1472, "while it is tested");
        pmtu.on_probe_acked(1472);
        assert_eq!(pmtu.poll_probe(at(1)), None);
        assert!(matches!(pmtu.phase, Phase::Done { .. }));
    }
    for beside in [0, 548, 1473, u16::MAX] {
        pmtu.on_hint(beside);
        assert_eq!(pmtu.poll_probe(at(1)), None, "{beside} is no reason to look");
    }
    // It is true: three probes are lost.
    pmtu.on_hint(1373);
    for _ in 0..MAX_PROBES {
        assert_eq!((pmtu.current(), pmtu.poll_probe(at(2))), (1472, Some(1472)));
        pmtu.on_hint(1373);
        pmtu.on_probe_lost(1472);
    }
    assert_eq!(pmtu.current(), 1252);
    settle(&mut pmtu, 1400, at(3));
    assert_eq!(pmtu.current(), 1372);
    // In the middle of the search, whose own probe goes on.
    let mut pmtu = Pmtu::new(1500, OVERHEAD);
    assert_eq!(pmtu.poll_probe(at(0)), Some(1472));
    pmtu.on_hint(1200);
    assert_eq!(pmtu.poll_probe(at(0)), None);
    pmtu.on_probe_lost(1472);
    assert_eq!(pmtu.poll_probe(at(0)), Some(1252));
    pmtu.on_probe_acked(1252);
    settle(&mut pmtu, 1452, at(1));
    assert_eq!(pmtu.current(), 1424);
}

#[test]
fn losses_of_larger_datagrams_from_before_do_not_raise_what_passes() {
    let mut pmtu = Pmtu::new(1500, OVERHEAD);
    pmtu.on_probe_acked(1472);
    pmtu.on_too_big(1000);
    let floor = pmtu.current();
    assert!(floor < 1000 && pmtu.too_big == 1000);
    // What was under way before the socket said so is declared lost only now.
    for _ in 0..2 * BLACK_HOLE_BURSTS {
        pmtu.on_lost(1472);
        pmtu.on_acked(100);
    }
    assert_eq!((pmtu.current(), pmtu.too_big), (floor, 1000));
    assert!(pmtu.poll_probe(at(1)).is_some_and(|size| floor < size && size < 1000));
}

#[test]
fn a_new_link_mtu_bounds_at_once_and_is_searched_up_to() {
    let mut pmtu = Pmtu::new(1500, OVERHEAD);
    settle(&mut pmtu, 1500, at(0));
    pmtu.set_link_mtu(1400);
    assert_eq!(pmtu.current(), 1372);
    assert_eq!(pmtu.poll_probe(at(1)), None);
    pmtu.set_link_mtu(9000);
    assert_eq!(pmtu.poll_probe(at(1)), Some(8972));
}

proptest! {
    /// Whatever is said in whatever order, what passes stays below what does not.
    #[test]
    fn what_passes_is_less_than_what_is_too_big(words in prop::collection::vec((0u8..8, 400u16..2_000), 1..200)) {
        let mut pmtu = Pmtu::new(1500, OVERHEAD);
        for (second, (word, size)) in words.into_iter().enumerate() {
            match word {
                0 => pmtu.on_probe_acked(size),
                1 => _ = pmtu.on_lost(size),
                2 => pmtu.on_acked(size),
                3 => _ = pmtu.on_hint(size),
                4 => pmtu.on_too_big(size),
                5 => pmtu.on_black_holed(size),
                6 => _ = pmtu.on_life(),
                _ => pmtu.set_link_mtu(size),
            }
            prop_assert!(pmtu.current < pmtu.too_big, "{pmtu:?}");
            pmtu.poll_probe(at(second as u64));
            prop_assert!(pmtu.current < pmtu.too_big, "{pmtu:?}");
        }
    }

    #[test]
    fn the_true_mtu_is_found_and_found_again(
        link_mtu in MIN_MTU..=u16::MAX,
        first in 0u16..=u16::MAX,
        second in 0u16..=u16::MAX,
        overhead in prop_oneof![Just(20u16), Just(28), Just(40), Just(48)],
    ) {
        let link_mtu = link_mtu.min(u16::MAX - 1);
        let within = |draw: u16| MIN_MTU + draw % (link_mtu - MIN_MTU + 1);
        let (first, second) = (within(first), within(second));
        let mut pmtu = Pmtu::new(link_mtu, overhead);
        settle(&mut pmtu, first, at(0));
        prop_assert_eq!(pmtu.current(), first - overhead);
        settle(&mut pmtu, second, at(600));
        prop_assert_eq!(pmtu.current(), second - overhead);
    }
}

#[test]
fn a_fixed_size_is_known_at_once_and_stays_whatever_is_said_of_it() {
    let mut pmtu = Pmtu::fixed(1480);
    assert!(pmtu.is_found());
    pmtu.on_black_holed(1480);
    assert!(!pmtu.on_life());
    for _ in 0..9 {
        assert!(!pmtu.on_lost(1480));
        pmtu.on_acked(100);
    }
    pmtu.on_too_big(600);
    pmtu.on_too_big(1480);
    assert_eq!((pmtu.current(), pmtu.poll_probe(Time::NEVER), pmtu.poll_timeout()), (1480, None, None));
}
