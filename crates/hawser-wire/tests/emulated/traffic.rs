//! The measuring traffic, measured on links whose behaviour is known. Needs root.

use std::net::IpAddr;

use crate::common::measured::measured;
use crate::common::{ADDRESS_A, ADDRESS_B, Hole, between, ms};
use hawser_wire::traffic::{Congestion, Ping, TcpStreams, TcpTransfer, UdpFlow};
use hawser_wire::{Direction, EmulatedLink, LinkSpec, Loss, Moment, Rate, Way};

fn link(direction: &Direction) -> EmulatedLink {
    let (a, b) = between("traf");
    EmulatedLink::new(LinkSpec::symmetric("traffic", a, b, direction)).expect("the link starts")
}

fn ping(link: &EmulatedLink, address: &str) -> Ping {
    Ping {
        from: link.ends()[0].namespace.clone(),
        destination: address.parse().expect("an address"),
        interval: ms(10),
        duration: ms(500),
    }
}

#[test]
fn a_ping_tells_the_round_trip_over_both_families() {
    measured(|| {
        let link = link(&Direction { delay: ms(10), ..Direction::default() });
        for address in [ADDRESS_B, "fd09::2"] {
            let report = ping(&link, address).run().expect("it runs");
            assert_eq!((report.sent.len(), report.lost()), (50, 0), "{address}");
            let median = report.round_trips().median().expect("answers");
            assert!((20.0..21.5).contains(&median), "{median} ms to {address}");
        }
    });
}

#[test]
fn a_ping_counts_what_a_black_hole_took_and_when() {
    measured(|| {
        let link = link(&Direction { delay: ms(2), ..Direction::default() });
        let running = ping(&link, ADDRESS_B).start().expect("it starts");
        std::thread::sleep(ms(150));
        let hole = Hole::open(&link, &Way::BOTH, ms(200));
        let report = running.finish().expect("it ends");
        assert!(hole.may_have_taken(report.lost() as u64, ms(10), 3), "{} lost in {hole:?}", report.lost());
        // A request on its way when the hole opened was sent up to one round trip before, and what the machine took.
        let slack = ms(30);
        assert_eq!(report.lost_between(hole.opening - slack, hole.closed), report.lost());
        assert_eq!(report.round_trips_between(hole.opened, hole.closing - slack).len(), 0);
    });
}

#[test]
fn loss_shows_in_a_ping() {
    measured(|| {
        let link = link(&Direction { loss: Loss::percent(30.0).expect("a percentage"), ..Direction::default() });
        let report = ping(&link, ADDRESS_B).run().expect("it runs");
        // Both ways: 51 % are lost, 25.5 of 50 on average, and 4.2 standard deviations are 15.
        assert!((10..=40).contains(&report.lost()), "lost {}", report.lost());
        assert_eq!(report.lost_between(report.sent[0], Moment::now()), report.lost());
    });
}

#[test]
fn flows_both_ways_at_once_do_not_disturb_each_other() {
    measured(|| {
        let link = link(&Direction::shaped(20.0, ms(5), ms(50)));
        let [a, b] = link.ends();
        let flow = |from: &hawser_wire::End, to: &hawser_wire::End, address: &str| UdpFlow {
            from: from.namespace.clone(),
            to: to.namespace.clone(),
            destination: format!("{address}:9003").parse().expect("an address"),
            payload: 1472,
            // What waits after a sender's pause of 30 ms is gone after 70 ms more; at 18 of 20 Mbit/s after 270 ms, and
            // the median would be of packets that waited. Both ways together are more than the rate all the same.
            rate: Rate::mbit(14.0),
            duration: ms(500),
            linger: ms(100),
        };
        let there = flow(a, b, ADDRESS_B).start().expect("starts");
        let back = flow(b, a, ADDRESS_A).start().expect("starts");
        for report in [there.finish().expect("ends"), back.finish().expect("ends")] {
            assert_eq!((report.lost(), report.refused), (0, 0));
            assert!(report.sent.abs_diff(583) <= 1, "{}", report.sent);
            let median = report.delays().median().expect("arrivals");
            assert!((5.0..7.0).contains(&median), "{median} ms");
            assert!(report.longest_gap() < ms(50));
        }
    });
}

#[test]
fn a_transfer_shows_the_gap_of_a_hole_and_the_time_to_recover() {
    measured(|| {
        let link = link(&Direction::shaped(30.0, ms(5), ms(50)));
        let [a, b] = link.ends();
        let transfer = TcpTransfer {
            from: a.namespace.clone(),
            to: b.namespace.clone(),
            destination: format!("{ADDRESS_B}:5002").parse().expect("an address"),
            source: Some(ADDRESS_A.parse::<IpAddr>().expect("an address")),
            congestion: Congestion::Cubic,
            duration: ms(2200),
        };
        let running = transfer.start().expect("starts");
        std::thread::sleep(ms(1000));
        let hole = Hole::open(&link, &[Way::AToB], ms(150));
        let got = running.finish().expect("ends");
        let before = got.mbps_between(got.start() + ms(300), hole.opening);
        assert!((26.0..30.0).contains(&before), "{before} Mbit/s");
        let gap = got.longest_gap(hole.opened, got.end());
        assert!(gap >= ms(145) && gap < ms(1000), "{gap:?}");
        let recovered = got.recovered_after(hole.closed, before * 0.9, ms(100)).expect("it recovers");
        assert!(recovered < ms(1500), "{recovered:?}");
        let parts: Vec<f64> = got.mbps_by(ms(100));
        assert!(parts.len() >= 21, "{parts:?}");
        // A part may hold more than the link's rate: what waited for a lost packet. All together may not.
        let mean = parts.iter().sum::<f64>() / parts.len() as f64;
        assert!((20.0..30.0).contains(&mean), "{mean} Mbit/s: {parts:?}");
    });
}

#[test]
fn many_streams_share_a_link_and_each_gets_some() {
    measured(|| {
        let link = link(&Direction::shaped(50.0, ms(2), ms(50)));
        let [a, b] = link.ends();
        let each = TcpTransfer {
            from: a.namespace.clone(),
            to: b.namespace.clone(),
            destination: format!("{ADDRESS_B}:0").parse().expect("an address"),
            source: None,
            congestion: Congestion::Cubic,
            duration: ms(2000),
        };
        let report = TcpStreams { each, count: 20 }.start().expect("all connect").finish().expect("none breaks");
        let from = report.timeline.start() + ms(500);
        let rate = report.timeline.mbps_between(from, from + ms(1500));
        assert!((44.0..=50.0).contains(&rate), "{rate} Mbit/s");
        assert_eq!(report.bytes.iter().sum::<u64>(), report.timeline.total_bytes());
        assert!(report.bytes.iter().all(|&bytes| bytes > 0), "{:?}", report.bytes);
    });
}
