//! Traces are read strictly, and replayed to the byte.

use super::*;

fn at(millis: u64) -> Moment {
    Moment::from_nanos(7_000_000_000) + Duration::from_millis(millis)
}

#[test]
fn what_is_no_trace_is_refused_with_its_line() {
    let table = [
        ("", "read trace: it has no opportunity after 0 ms, so that it cannot repeat"),
        ("0\n0\n", "read trace: it has no opportunity after 0 ms, so that it cannot repeat"),
        ("1\n2 ms\n", "read trace, line 2: \"2 ms\" is no whole number of milliseconds up to 4294967295"),
        ("1\n\n2\n", "read trace, line 2: \"\" is no whole number of milliseconds up to 4294967295"),
        ("1\n-1\n", "read trace, line 2: \"-1\" is no whole number of milliseconds up to 4294967295"),
        ("5\n9\n8\n", "read trace, line 3: 8 ms is before the line above it"),
    ];
    for (text, said) in table {
        assert_eq!(Trace::parse(text).expect_err(text).to_string(), said);
    }
    assert!(Trace::read(Path::new("/nonexistent/trace")).expect_err("no file").to_string().contains("nonexistent"));
}

#[test]
fn a_trace_has_a_length_and_a_rate() {
    let trace = Trace::parse("0\r\n5\n5\n10\n\n").expect("a trace");
    assert_eq!(trace.length(), Duration::from_millis(10));
    assert_eq!(trace.mean_rate(), Rate::mbit(4.8));
}

#[test]
fn packets_take_opportunities_in_turn_and_what_is_left_of_them() {
    // Bytes, waiting since (ms), through at (ms): on the trace 0 3 3 10, which repeats after 10 ms.
    let table = [
        ("full packets", &[(1500, 0, 0), (1500, 0, 3), (1500, 0, 3), (1500, 0, 10), (1500, 0, 10)][..]),
        ("small packets share one", &[(500, 1, 3), (500, 1, 3), (500, 1, 3), (1, 1, 3), (1500, 1, 10)]),
        ("what is left serves the next in part", &[(1000, 1, 3), (1000, 1, 3), (1000, 1, 3), (1, 1, 10)]),
        ("nobody waits: it is gone", &[(100, 2, 3), (100, 4, 10), (100, 11, 13), (1500, 21, 23)]),
        ("a long idle time", &[(100, 2, 3), (100, 10_007, 10_010), (2900, 10_007, 10_010), (1, 10_007, 10_013)]),
        ("at the very moment", &[(1500, 3, 3), (1500, 3, 3), (1500, 3, 10), (1500, 10, 10), (1, 10, 13)]),
    ];
    let trace = Trace::parse("0\n3\n3\n10\n").expect("a trace");
    for (what, packets) in table {
        let mut replay = Replay::new(at(0));
        for (number, &(bytes, waits, through)) in packets.iter().enumerate() {
            assert!(replay.next(&trace, at(waits)) <= at(through), "{what}, packet {number}");
            assert_eq!(replay.serve(&trace, bytes, at(waits)), at(through), "{what}, packet {number}");
        }
    }
}

fn rates(megabits: &[f64]) -> Trace {
    Trace::rates(Duration::from_millis(100), megabits).expect("a trace")
}

/// Bytes, waiting since (ms), may begin at (ms), through at (ms).
type Packets<'a> = &'a [(u32, u64, u64, u64)];

#[test]
fn packets_take_what_the_steps_hold_and_wait_where_they_hold_nothing() {
    // 12 Mbit/s for 100 ms, nothing for 200 ms, 6 Mbit/s for 100 ms: 1500 bytes take 1 ms, and 2 ms.
    let trace = rates(&[12.0, 0.0, 0.0, 6.0]);
    let table: [(&str, Packets<'_>); 5] = [
        ("one behind the other", &[(1500, 0, 0, 1), (3000, 0, 1, 3), (1500, 50, 50, 51)]),
        ("what has begun goes on when the rate is back", &[(4500, 98, 98, 302), (1500, 98, 302, 304)]),
        ("what comes meanwhile waits for the rate", &[(1500, 150, 300, 302), (1500, 250, 302, 304)]),
        ("to the last bit of a step", &[(3000, 98, 98, 100), (1500, 98, 300, 302)]),
        ("it repeats", &[(3000, 398, 398, 401), (150_000, 398, 401, 702), (1500, 9350, 9500, 9502)]),
    ];
    for (what, packets) in table {
        let (mut replay, mut free) = (Replay::new(at(0)), at(0));
        for (number, &(bytes, waits, begins, through)) in packets.iter().enumerate() {
            let waits = free.max(at(waits));
            assert_eq!(replay.next(&trace, waits), at(begins), "{what}, packet {number}");
            free = replay.serve(&trace, bytes, waits);
            assert_eq!(free, at(through), "{what}, packet {number}");
        }
    }
}

#[test]
fn a_busy_link_carries_every_byte_of_its_steps_and_no_more() {
    // Rates at which no packet takes a whole number of nanoseconds.
    let trace = rates(&[7.3, 0.0, 0.9, 13.7]);
    let (mut replay, mut free, mut bytes) = (Replay::new(at(0)), at(0), 0_u64);
    for length in [1500, 40, 1371, 999].into_iter().cycle() {
        free = replay.serve(&trace, length, free);
        if free > at(40_000) {
            break;
        }
        bytes += u64::from(length);
    }
    let held = trace.bytes_between(Duration::ZERO, Duration::from_secs(40));
    assert_eq!(held, 100 * (730_000 + 90_000 + 1_370_000) / 8, "a hundred rounds");
    assert!(bytes <= held && held - bytes < 1500, "{bytes} of {held}");
}

#[test]
fn a_trace_may_begin_in_its_midst_and_repeats_as_a_whole() {
    let trace = rates(&[12.0, 0.0, 6.0]).from_offset(Duration::from_millis(250));
    let mut replay = Replay::new(at(0));
    assert_eq!(replay.serve(&trace, 1500, at(0)), at(2));
    assert_eq!(replay.serve(&trace, 1500, at(50)), at(51), "its first step again");
    assert_eq!((trace.mean_rate(), trace.length()), (Rate::mbit(6.0), Duration::from_millis(300)), "of the whole");
    let held = trace.bytes_between(Duration::ZERO, Duration::from_millis(60));
    assert_eq!(held, (50 * 6_000 + 10 * 12_000) / 8);
    let longer = Duration::from_millis(250 + 7 * 300);
    assert_eq!(rates(&[12.0, 0.0, 6.0]).from_offset(longer), trace);
    let lines = Trace::parse("0\n3\n3\n10\n").expect("a trace").from_offset(Duration::from_millis(4));
    let mut replay = Replay::new(at(0));
    assert_eq!(replay.next(&lines, at(0)), at(6));
    assert_eq!((1..=4).map(|_| replay.serve(&lines, 1500, at(0))).collect::<Vec<_>>(), [6, 6, 9, 9].map(at));
    assert_eq!(lines.bytes_between(Duration::ZERO, Duration::from_millis(20)), 8 * 1500);
}

#[test]
fn a_scaled_trace_carries_so_many_times_as_much() {
    let half = rates(&[12.0, 0.0, 6.0]).scaled(0.5).expect("it can be");
    assert_eq!(half, rates(&[6.0, 0.0, 3.0]));
    let lines = Trace::parse("0\n5\n5\n10\n").expect("a trace").scaled(0.2).expect("it can be");
    assert_eq!(lines.mean_rate(), Rate::mbit(4.8 / 5.0));
    let mut replay = Replay::new(at(0));
    assert_eq!(replay.serve(&lines, 900, at(0)), at(5), "300 bytes at each");
    for factor in [0.0, -1.0, f64::NAN, 1e9, 1e-10] {
        assert!(rates(&[1000.0]).scaled(factor).is_err(), "{factor}");
        assert!(Trace::parse("1\n").expect("a trace").scaled(factor).is_err(), "{factor}");
    }
}

#[test]
fn rates_that_are_none_are_refused() {
    let refused = |megabits: &[f64]| Trace::rates(Duration::from_secs(1), megabits).expect_err("no trace").to_string();
    assert_eq!(refused(&[]), "read trace: it carries nothing at all");
    assert_eq!(refused(&[0.0, 0.0]), "read trace: it carries nothing at all");
    assert_eq!(refused(&[1.0, -0.5]), "read trace, step 2: -0.5 Mbit/s is no rate from 0 to 1 Tbit/s");
    assert_eq!(refused(&[f64::NAN]), "read trace, step 1: NaN Mbit/s is no rate from 0 to 1 Tbit/s");
    assert!(Trace::rates(Duration::ZERO, &[1.0]).is_err(), "no time");
}

const DRIVES: &str =
    "drive,second,sky,lte,area\n7,0,10,1,urban\n7,1,20,0,urban\n8,3,0,5,rural\n8,4,0,7,rural\n8,5,0,9,rural\n";

#[test]
fn a_recording_has_drives_and_links() {
    let recording = Recording::parse(DRIVES).expect("a recording");
    assert_eq!(recording.links(), ["sky", "lte"]);
    let drives: Vec<(&str, Duration)> = recording.drives().collect();
    assert_eq!(drives, [("7", Duration::from_secs(2)), ("8", Duration::from_secs(3))]);
    let trace = recording.trace("8", "lte").expect("it is there");
    assert_eq!(trace, Trace::rates(Duration::from_secs(1), &[5.0, 7.0, 9.0]).expect("a trace"));
    assert_eq!(recording.rates("7", "sky"), Some(&[10.0, 20.0][..]));
    assert_eq!((recording.rates("9", "sky"), recording.rates("7", "5g")), (None, None));
    let said = |drive, link| recording.trace(drive, link).expect_err("none").to_string();
    assert_eq!(said("9", "lte"), "find a drive's link: there is no drive \"9\", but: 7, 8");
    assert_eq!(said("7", "5g"), "find a drive's link: there is no link \"5g\", but: sky, lte");
    assert_eq!(said("8", "sky"), "read trace: it carries nothing at all");
    let alone = Recording::parse("second,a\n0,1\n0.5,2\n").expect("one drive needs no name");
    assert_eq!(alone.drives().collect::<Vec<_>>(), [("", Duration::from_secs(1))]);
}

#[test]
fn what_is_no_recording_is_refused_with_its_line() {
    let table = [
        ("", "read drives, line 1: needs columns `second` and one for each link"),
        ("drive,second,area\n", "read drives, line 1: needs columns `second` and one for each link"),
        ("second,a\n", "read trace: it carries nothing at all"),
        ("second,a\n0,1,2\n", "read drives, line 2: 3 cells below 2 columns"),
        ("second,a\n0,\n", "read drives, line 2: \"\" is no number from 0 on"),
        ("second,a\n0,-1\n", "read drives, line 2: \"-1\" is no number from 0 on"),
        ("second,a\n0,1\n", "read drives: the seconds of drive \"\" do not go up in equal steps"),
        (
            "drive,second,a\n1,0,1\n1,1,1\n1,3,1\n",
            "read drives: the seconds of drive \"1\" do not go up in equal steps",
        ),
        ("drive,second,a\n1,1,1\n1,0,1\n", "read drives: the seconds of drive \"1\" do not go up in equal steps"),
        ("drive,second,a\n1,0,1\n2,0,1\n1,1,1\n", "read drives, line 4: drive \"1\" has rows further up"),
    ];
    for (text, said) in table {
        assert_eq!(Recording::parse(text).expect_err(text).to_string(), said);
    }
}
