//! Media that links share, traces, CoDel, and what befalls packets, with the kernel's own stack. Needs root.

use std::time::Duration;

use crate::common::measured::measured;
use crate::common::{ADDRESS_A, ADDRESS_B, between, ms, stretches};
use hawser_wire::traffic::{Arrival, Congestion, Sample, TcpTransfer, UdpFlow, UdpReport};
use hawser_wire::{
    Access, Codel, Direction, EmulatedLink, LinkSpec, Loss, Medium, Probability, QueueDepth, Rate, Reorder,
    Timekeeping, Trace, Way,
};

fn link(way: &Direction) -> EmulatedLink {
    let (a, b) = between("media");
    EmulatedLink::new(LinkSpec::symmetric("media", a, b, way)).expect("the link starts (this test needs root)")
}

fn on(medium: &Medium, way: &Direction) -> EmulatedLink {
    let (a, b) = between("air");
    EmulatedLink::new(LinkSpec::symmetric("air", a, b, way).on(medium)).expect("the link starts (this test needs root)")
}

fn flow(link: &EmulatedLink, megabits: f64, payload: usize, duration: Duration) -> UdpReport {
    let [a, b] = link.ends();
    let flow = UdpFlow {
        from: a.namespace.clone(),
        to: b.namespace.clone(),
        destination: format!("{ADDRESS_B}:9000").parse().expect("an address"),
        payload,
        rate: Rate::mbit(megabits),
        duration,
        linger: ms(150),
    };
    flow.run().expect("the flow runs")
}

/// Goodput in Mbit/s of CUBIC streams at once, each by a link this way or that, after their first half second.
fn streams(links: &[(&EmulatedLink, Way)]) -> Vec<f64> {
    let start = |(link, way): &(&EmulatedLink, Way)| {
        let [a, b] = link.ends();
        let (from, to, address) = match way {
            Way::AToB => (a, b, ADDRESS_B),
            Way::BToA => (b, a, ADDRESS_A),
        };
        let transfer = TcpTransfer {
            from: from.namespace.clone(),
            to: to.namespace.clone(),
            destination: format!("{address}:5001").parse().expect("an address"),
            source: None,
            congestion: Congestion::Cubic,
            duration: ms(2500),
        };
        transfer.start().expect("the stream starts")
    };
    let running: Vec<_> = links.iter().map(start).collect();
    let got = |running: hawser_wire::traffic::RunningTcp| {
        let got = running.finish().expect("the stream runs");
        got.mbps_between(got.start() + ms(500), got.start() + ms(2500))
    };
    running.into_iter().map(got).collect()
}

#[test]
fn both_ways_of_802_11n_share_what_one_has_alone() {
    measured(|| {
        let medium = Medium::new(Access::wifi_n());
        let link = on(&medium, &Direction::shaped(65.0, ms(1), ms(40)));
        let alone = streams(&[(&link, Way::AToB)])[0];
        let both = streams(&[(&link, Way::AToB), (&link, Way::BToA)]);
        println!("802.11n at 65 Mbit/s: {alone:.1} alone, {both:.1?} both ways");
        // One way, acknowledgements want turns too.
        assert!((38.0..60.0).contains(&alone), "{alone:.1} Mbit/s alone");
        let sum = both[0] + both[1];
        assert!((0.85..1.2).contains(&(sum / alone)), "{both:.1?} are not the {alone:.1} of one");
        assert!(both.iter().all(|each| (0.3..0.75).contains(&(each / alone))), "{both:.1?} of {alone:.1}");
        assert!(link.counters(Way::AToB).collisions > 0);
    });
}

#[test]
fn links_on_one_medium_share_it_and_a_wired_one_does_not() {
    measured(|| {
        let way = Direction::shaped(40.0, ms(1), ms(40));
        let medium = Medium::new(Access::turns());
        let (one, other, wired) = (on(&medium, &way), on(&medium, &way), link(&way));
        let got = streams(&[(&one, Way::AToB), (&other, Way::AToB), (&wired, Way::AToB)]);
        println!("two links of 40 Mbit/s on one medium, one beside it: {got:.1?}");
        assert!(got[0] + got[1] < 40.0 && got[0] + got[1] > 30.0, "{got:.1?}");
        assert!(got[2] > 34.0, "{got:.1?}");
        // Who leaves, leaves all of it to the other; and the last to leave ends its thread.
        drop(one);
        assert!(streams(&[(&other, Way::AToB)])[0] > 34.0);
        medium.set(Access { overhead: Duration::from_micros(300), ..Access::turns() });
        let slower = streams(&[(&other, Way::AToB)])[0];
        assert!((10.0..22.0).contains(&slower), "{slower:.1} Mbit/s with 300 µs for each turn of 300 µs");
        drop(other);
        medium.set(Access::turns());
        assert!(streams(&[(&on(&medium, &way), Way::AToB)])[0] > 34.0, "a medium begins anew");
    });
}

#[test]
fn a_cut_or_changed_link_leaves_others_on_its_medium_alone() {
    measured(|| {
        let medium = Medium::new(Access::turns());
        let way = Direction::shaped(20.0, ms(1), ms(40));
        let (one, other) = (on(&medium, &way), on(&medium, &way));
        one.cut().expect("it is cut");
        assert_eq!(flow(&one, 1.0, 1000, ms(100)).arrivals.len(), 0);
        assert_eq!(flow(&other, 1.0, 1000, ms(100)).lost(), 0);
        one.restore().expect("it is whole");
        other.set(Way::AToB, |way| way.loss = Loss::Random(Probability::ALWAYS)).expect("it loses all");
        other.black_hole_way(Way::BToA, true).expect("the hole opens");
        assert_eq!(flow(&one, 1.0, 1000, ms(100)).lost(), 0);
        assert_eq!(flow(&other, 1.0, 1000, ms(100)).arrivals.len(), 0);
        assert!(other.counters(Way::AToB).lost > 0 && one.counters(Way::AToB).lost == 0);
    });
}

#[test]
fn a_trace_is_replayed_again_and_again() {
    measured(|| {
        // 100 ms in which every millisecond delivers 1500 bytes, then 100 ms in which every fifth does: 12 and 2.4
        // Mbit/s.
        let lines = (1..=100).chain((105..=200).step_by(5));
        let text: String = lines.map(|millis| format!("{millis}\n")).collect();
        let trace = Trace::parse(&text).expect("a trace");
        // It holds enough for the sender to pause for 60 ms.
        let link = link(&Direction { trace: Some(trace), queue: QueueDepth::Packets(60), ..Direction::default() });
        let report = flow(&link, 30.0, 1472, ms(1400));
        let median = |times: &[Duration]| times.iter().copied().collect::<Sample>().median().expect("packets arrive");
        // 120 packets a round, wherever it was when the flow began. Few of a round's packets wait for the machine.
        let rounds: Vec<f64> = stretches(&report, 120).chunks_exact(120).map(median).collect();
        assert!(rounds.len() >= 6, "{rounds:?}");
        assert!(rounds.iter().all(|took| (took - 200.0).abs() <= 2.0), "rounds of 200 ms took {rounds:?}");
        let six = median(&stretches(&report, 720));
        assert!((six - 1200.0).abs() <= 5.0, "six rounds of 200 ms took {six} ms");
        let ten = median(&stretches(&report, 10));
        assert!((ten - 10.0).abs() <= 1.0, "ten packets took {ten} ms, most of which go at 12 Mbit/s");
    });
}

#[test]
fn a_recorded_fade_keeps_packets_for_as_long_as_it_lasts() {
    measured(|| {
        // From 6 Mbit/s down to nothing for a second, and up again; a flow of 4 Mbit/s that a queue of 2 s can hold.
        let megabits = [6.0, 0.0, 12.0, 12.0];
        let trace = Trace::rates(ms(1000), &megabits).expect("a trace");
        let link = link(&Direction { queue: QueueDepth::Time(ms(2000)), ..Direction::default() });
        link.set(Way::AToB, |way| way.trace = Some(trace)).expect("it begins");
        let report = flow(&link, 4.0, 1472, ms(3500));
        assert_eq!(report.lost(), 0, "nothing is lost");
        let first = report.arrivals.first().expect("packets arrive").received;
        let mut gap = (Duration::ZERO, first);
        for pair in report.arrivals.windows(2) {
            assert!(pair[0].number < pair[1].number, "in order");
            let length = pair[1].received - pair[0].received;
            gap = gap.max((length, pair[0].received));
        }
        assert!(gap.0 > ms(995) && gap.0 < ms(1010), "the gap is {:?}", gap.0);
        // A second's 4 Mbit wait when it is back; at 12 Mbit/s half a second brings them home, and the next one waits no more.
        let back = gap.1 + gap.0;
        let mut prompt = report.arrivals.iter().filter(|one| one.received >= back && one.received - one.sent <= ms(5));
        let home = prompt.next().expect("the queue is empty before the end").received - back;
        assert!(home > ms(450) && home < ms(550), "they took {home:?}");
    });
}

#[test]
fn codel_keeps_a_streams_queue_short() {
    measured(|| {
        let mean = |codel| {
            let link = link(&Direction { codel, ..Direction::shaped(20.0, ms(10), ms(400)) });
            let goodput = streams(&[(&link, Way::AToB)])[0];
            let counters = link.counters(Way::AToB);
            (goodput, counters.queue_delay_mean_since(&Default::default()), counters.dropped_by_codel)
        };
        let (tail, codel) = (mean(None), mean(Some(Codel::default())));
        println!("goodput, mean wait, drops: drop-tail {tail:?}, CoDel {codel:?}");
        assert!(codel.0 > 17.0, "{codel:?}");
        assert!(codel.1 < ms(40) && codel.1 < tail.1 / 3, "{tail:?} against {codel:?}");
        assert!(codel.2 > 0 && tail.2 == 0);
    });
}

#[test]
fn a_corrupted_packet_is_dropped_by_who_receives_it() {
    measured(|| {
        let corrupt = Probability::new(0.1).expect("a probability");
        let link = link(&Direction { corrupt, seed: 3, ..Direction::default() });
        let report = flow(&link, 8.0, 472, ms(800));
        let corrupted = link.counters(Way::AToB).corrupted;
        assert!((100..240).contains(&corrupted), "{corrupted} of {}", report.sent);
        // A neighbour's packet may be hit too.
        assert!(report.lost().abs_diff(corrupted) <= 2, "{corrupted} corrupted, {} lost", report.lost());
    });
}

#[test]
fn packets_held_back_come_later_by_what_was_told() {
    measured(|| {
        let reorder = Some(Reorder { share: Probability::new(0.1).expect("a probability"), by: ms(60) });
        let link = link(&Direction { reorder, delay: ms(10), seed: 3, ..Direction::default() });
        let report = flow(&link, 1.0, 97, ms(800));
        let held = link.counters(Way::AToB).held_back;
        assert_eq!(report.lost(), 0);
        // Others may wait for the machine, but nothing overtakes them; the last one held back has nobody behind it.
        let all = || report.arrivals.iter();
        let is_late = |one: &&Arrival| all().any(|other| other.sent > one.sent && other.received < one.received);
        let late: Vec<Duration> = all().filter(is_late).map(|one| one.received - one.sent).collect();
        let count = late.len() as u64;
        assert!((50..170).contains(&held) && count.abs_diff(held) <= 2, "{count} late, {held} held back");
        let usual = report.delays().median().expect("packets arrive");
        let most = late.into_iter().collect::<Sample>().median().expect("some are late");
        assert!((usual - 10.0).abs() < 1.0 && (most - 70.0).abs() < 1.5, "{usual} and {most} ms");
    });
}

#[test]
fn a_links_thread_goes_before_others() {
    let link = link(&Direction::default());
    assert_eq!(flow(&link, 1.0, 100, ms(20)).lost(), 0);
    match link.timekeeping() {
        Some(Timekeeping::RealTime) => {}
        // Where root is not allowed to (a container without a real-time budget), it is said.
        Some(Timekeeping::Ordinary(why)) => assert_eq!(why, std::io::ErrorKind::PermissionDenied),
        None => panic!("an emulated link has a thread"),
    }
}
