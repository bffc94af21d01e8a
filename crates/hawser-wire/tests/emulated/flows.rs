//! Bulk flows that may break, and conversations over UDP, on links whose behaviour is known. Needs root.

use std::net::SocketAddr;
use std::time::Duration;

use crate::common::measured::measured;
use crate::common::{ADDRESS_B, Hole, between, ms};
use hawser_wire::traffic::{Congestion, Duplex, Flows, Reliable, Stack, Towards};
use hawser_wire::{Direction, EmulatedLink, LinkSpec, Moment, Way};

fn link(direction: &Direction) -> EmulatedLink {
    let (a, b) = between("flow");
    EmulatedLink::new(LinkSpec::symmetric("flows", a, b, direction)).expect("the link starts")
}

fn at(port: u16) -> SocketAddr {
    format!("{ADDRESS_B}:{port}").parse().expect("an address")
}

fn flows(link: &EmulatedLink, stack: Stack, towards: Towards, count: usize) -> Flows {
    let [client, server] = link.ends().each_ref().map(|end| end.namespace.clone());
    let kind = Reliable { stack, congestion: Congestion::Cubic };
    Flows { client, server, destination: at(0), kind, towards, count }
}

#[test]
fn flows_of_either_stack_fill_a_link_in_either_direction() {
    measured(|| {
        let link = link(&Direction::shaped(30.0, ms(5), ms(50)));
        for (stack, towards) in [(Stack::Tcp, Towards::Client), (Stack::Mptcp, Towards::Server)] {
            let connected = flows(&link, stack, towards, 3).connect().expect("they connect");
            let start = Moment::now() + ms(50);
            let report = connected.start(start, ms(1500)).expect("they start").finish().expect("they end");
            let rate = report.all.mbps_between(start + ms(500), start + ms(1500));
            assert!((26.0..=30.0).contains(&rate), "{rate} Mbit/s {stack:?} {towards:?}");
            assert_eq!(report.all.bytes_between(start - ms(1), start), 0, "none before the start");
            let each: u64 = report.flows.iter().map(|flow| flow.timeline.total_bytes()).sum();
            assert_eq!(each, report.all.total_bytes());
            for flow in &report.flows {
                assert_eq!(flow.broken, None);
                let sender = flow.sender.expect("the kernel tells");
                assert_eq!((sender.subflows, sender.has_fallen_back), (1, false));
                assert!(flow.receiver.is_some() && flow.timeline.total_bytes() > 0);
            }
        }
    });
}

#[test]
fn a_flow_whose_other_end_resets_is_broken_and_the_rest_goes_on() {
    measured(|| {
        let link = link(&Direction::shaped(20.0, ms(2), ms(50)));
        let (one, two) = (Towards::Client, Towards::Server);
        let start = Moment::now() + ms(100);
        let running = [one, two].map(|towards| {
            let connected = flows(&link, Stack::Tcp, towards, 1).connect().expect("it connects");
            let port = connected.port();
            (port, connected.start(start, ms(1500)).expect("it starts"))
        });
        std::thread::sleep(ms(600));
        // `ss --kill` aborts a connection, as a reset from the network would.
        let filter = format!("sport = :{}", running[0].0);
        let killed = link.ends()[1].namespace.command("ss").args(["-K", "state", "established", &filter]).output();
        assert!(killed.expect("the program ss starts").status.success());
        let [down, up] = running.map(|(_, running)| running.finish().expect("it ends").flows.remove(0));
        assert!(down.broken.is_some(), "the server's end was aborted");
        assert!(down.timeline.total_bytes() > 0 && down.timeline.end() < start + ms(1000));
        assert_eq!(up.broken, None);
        assert!(up.timeline.end() > start + ms(1300));
    });
}

fn duplex(link: &EmulatedLink, interval: Duration) -> Duplex {
    let [client, server] = link.ends().each_ref().map(|end| end.namespace.clone());
    Duplex { client, server, destination: at(0), payload: 172, interval, up: true, down: true, linger: ms(100) }
}

#[test]
fn a_conversation_goes_both_ways_and_a_hole_in_one_shows_there_alone() {
    measured(|| {
        let link = link(&Direction { delay: ms(7), ..Direction::default() });
        let ready = duplex(&link, ms(5)).prepare().expect("they know each other");
        let start = Moment::now() + ms(20);
        let running = ready.start(start, ms(1000)).expect("it starts");
        (start + ms(400)).sleep_until();
        let hole = Hole::open(&link, &[Way::BToA], ms(300));
        let report = running.finish().expect("it ends");
        assert_eq!((report.up.sent, report.up.lost(), report.up.duplicates()), (200, 0, 0));
        assert_eq!((report.down.sent, report.up.packet_bytes), (200, 200));
        let lost = report.down.lost();
        assert_eq!(lost, link.counters(Way::BToA).vanished);
        assert!(hole.may_have_taken(lost, ms(5), 5), "{lost} lost in {hole:?}");
        for way in [report.up, report.down] {
            let median = way.delays().median().expect("arrivals");
            assert!((7.0..9.0).contains(&median), "{median} ms");
        }
    });
}

#[test]
fn the_server_follows_a_client_whose_address_changes() {
    measured(|| {
        let link = link(&Direction { delay: ms(1), ..Direction::default() });
        let ready = duplex(&link, ms(5)).prepare().expect("they know each other");
        let start = Moment::now() + ms(20);
        let running = ready.start(start, ms(900)).expect("it starts");
        (start + ms(300)).sleep_until();
        let commands = [
            "addr add 10.9.0.77/32 dev wire0",
            "addr del 10.9.0.1/24 dev wire0",
            "route add 10.9.0.0/24 dev wire0 src 10.9.0.77",
        ];
        for arguments in commands {
            let status = link.ends()[0].namespace.command("ip").args(arguments.split(' ')).status();
            assert!(status.expect("the program ip starts").success(), "ip {arguments}");
        }
        let report = running.finish().expect("it ends");
        // Without following, 120 of 180 would be lost.
        for way in [report.up, report.down] {
            assert!(way.lost() < 40, "{} lost", way.lost());
        }
    });
}

#[test]
fn a_conversation_with_nobody_there_does_not_begin() {
    measured(|| {
        let link = link(&Direction::default());
        link.black_hole(true).expect("it opens");
        let error = duplex(&link, ms(20)).prepare().expect_err("no hello arrives");
        assert!(error.to_string().contains("hello"), "{error}");
    });
}
