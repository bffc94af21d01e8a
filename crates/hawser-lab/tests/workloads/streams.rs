//! Bulk transfers, by our own streams and by iperf3's.

use std::thread;
use std::time::Duration;

use hawser_lab::contender::Transport;
use hawser_lab::experiment::Findings;
use hawser_lab::stage::Bystander;
use hawser_lab::workload::Ground;
use hawser_wire::Namespace;

use crate::{Lab, ends, figure, join, made, measured, ms, on, run, shaped, within};

#[test]
fn a_bulk_download_fills_the_link_and_the_ping_beside_it_sees_the_queue() {
    on(&[shaped(30.0)], |lab| {
        let found = lab.run(ms(3000), "bulk", "ping = '20ms'");
        // 1448 of each 1500 bytes, less the slow start.
        within(&found, "goodput_mbps", 25.0, 28.97);
        within(&found, "rtt_ms", 20.0, 80.0);
        assert!(figure(&found, "rtt_p99_ms") >= figure(&found, "rtt_ms"));
        within(&found, "longest_gap_ms", 1.0, 400.0);
        assert!(figure(&found, "retransmissions") > 0.0, "a full queue loses some");
        within(&found, "reordering_packets", 1.0, 300.0);
        assert_eq!(figure(&found, "broken_flows"), 0.0);
        assert!(!found.metrics.contains_key("jain"), "of one client");
        let line = &found.lines[0];
        assert_eq!((&*line.name, line.step_s, line.values.len()), ("goodput_mbps", 0.5, 6));
        assert!(line.values[3..].iter().all(|&mbps| mbps > 20.0), "{:?}", line.values);
        assert!(found.samples["round_trip_ms"].len() > 100);
    });
}

#[test]
fn both_directions_at_once_are_told_apart_and_summed() {
    on(&[shaped(20.0)], |lab| {
        let ground = Ground { ends: ends("fd09:0::"), ..lab.ground() };
        let found = run(ground, ms(2500), "bulk", "direction = 'both'\ncongestion = 'reno'");
        let (up, down) = (figure(&found, "goodput_up_mbps"), figure(&found, "goodput_down_mbps"));
        assert!(up > 10.0 && up < 19.2 && down > 10.0 && down < 19.2, "{up} and {down} Mbit/s");
        assert!((figure(&found, "goodput_mbps") - up - down).abs() < 1e-6);
        assert_eq!(found.lines.iter().filter(|line| line.step_s == 0.5).count(), 3);
    });
}

#[test]
fn several_clients_share_the_link_and_each_has_its_figure() {
    on(&[shaped(40.0)], |lab| {
        let found = lab.run(ms(3000), "bulk", "direction = 'up'\nclients = 4\ncongestion = 'bbr'");
        within(&found, "goodput_mbps", 32.0, 38.7);
        within(&found, "jain", 0.5, 1.0);
        let each: f64 = (1..=4).map(|n| figure(&found, &format!("client_{n}_mbps"))).sum();
        assert!((each - figure(&found, "goodput_mbps")).abs() < 1e-6);
    });
}

#[test]
fn a_host_beside_the_client_competes_with_it() {
    on(&[shaped(20.0)], |lab| {
        let host = Namespace::new("work").expect("makes a namespace");
        let link = join(7, &host, &lab.server, &shaped(10.0));
        let bystanders = [Bystander { link, name: "tcp1".to_owned(), host, ends: ends("10.9.7.") }];
        let ground = Ground { bystanders: &bystanders, ..lab.ground() };
        let found = run(ground, ms(2000), "bulk", "competitors = ['tcp1']");
        within(&found, "goodput_mbps", 15.0, 19.4);
        within(&found, "competitor_tcp1_mbps", 7.0, 9.7);
        within(&found, "jain", 0.8, 0.99);
        let error = made("bulk", "competitors = ['tcp2']")(ground).err().expect("nobody of this name");
        assert!(error.to_string().contains("tcp2"), "{error}");
    });
}

#[test]
fn a_link_that_is_cut_for_good_is_a_gap_to_the_end_and_no_error() {
    measured(|| {
        for kind in ["bulk", "request", "web", "http3"] {
            let found = cut(kind, "ping = true", ms(1500), ms(900));
            within(&found, "longest_gap_ms", 400.0, 1000.0);
            within(&found, "goodput_mbps", 0.5, 15.0);
            within(&found, "ping_loss_percent", 20.0, 80.0);
        }
        // It tells what it had counted.
        let iperf3 = cut("iperf3", "", ms(2000), ms(1200));
        within(&iperf3, "goodput_mbps", 3.0, 15.0);
    });
}

/// A workload over a link that is cut for good at a time.
fn cut(kind: &str, options: &str, duration: Duration, at: Duration) -> Findings {
    let lab = Lab::new(&[shaped(20.0)]);
    thread::scope(|scope| {
        let running = scope.spawn(|| lab.run(duration, kind, options));
        thread::sleep(at);
        lab.links[0].cut().expect("it is cut");
        running.join().expect("it runs")
    })
}

#[test]
fn mptcp_uses_both_links_and_every_subflow_has_the_congestion_control() {
    on(&[shaped(15.0), shaped(10.0)], |lab| {
        let limits = "mptcp limits set subflows 4 add_addr_accepted 4";
        let endpoint = "mptcp endpoint add 10.9.1.2 dev link1 signal";
        for (host, arguments) in [(&lab.client, limits), (&lab.server, limits), (&lab.server, endpoint)] {
            let status = host.command("ip").args(arguments.split(' ')).status().expect("the program ip starts");
            assert!(status.success(), "ip {arguments}");
        }
        let run = |kind, options| run(Ground { socket: Transport::Mptcp, ..lab.ground() }, ms(4000), kind, options);
        for options in ["congestion = 'cubic'", "direction = 'up'\ncongestion = 'reno'"] {
            let found = run("bulk", options);
            within(&found, "subflows", 2.0, 2.0);
            within(&found, "fallbacks", 0.0, 0.0);
            // More than the faster link alone has: 14.5.
            within(&found, "goodput_mbps", 16.0, 24.2);
        }
        let found = run("connect", "");
        within(&found, "connect_ms", 20.0, 30.0);
        let found = run("web", "objects = 10\nkeep-alive = true\ncongestion = 'reno'");
        within(&found, "subflows", 1.0, 2.0);
        within(&found, "fallbacks", 0.0, 0.0);
        within(&found, "page_ms", 60.0, 1500.0);
    });
}

#[test]
fn iperf3_agrees_with_bulk() {
    on(&[shaped(20.0)], |lab| {
        for (options, least) in [("", 16.0), ("direction = 'up'\nclients = 2", 16.0), ("direction = 'both'", 22.0)] {
            let found = lab.run(ms(2000), "iperf3", options);
            within(&found, "goodput_mbps", least, 2.0 * least.min(19.4));
            let line = found.lines.iter().find(|line| line.name == "goodput_mbps").expect("a line");
            assert!(line.values.len() >= 3, "{:?}", line.values);
        }
    });
}
