//! Every workload over two namespaces joined by a link whose figures are known. Needs root; uses the programs ip, ss, iperf3.

use std::net::IpAddr;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use hawser_lab::contender::Transport;
use hawser_lab::experiment::Findings;
use hawser_lab::scenario::WorkloadPlan;
use hawser_lab::stage::Ends;
use hawser_lab::workload::{Beside, Ground, make};
use hawser_wire::{Direction, EmulatedLink, End, LinkSpec, Loss, Moment, Namespace};

/// No workload outlives its time by more.
const OVERTIME: Duration = Duration::from_secs(2);

/// Held by a test that measures time: two at once would measure each other.
static TURN: Mutex<()> = Mutex::new(());
/// A machine that others share may stand still for a moment; it is asked again, this many times in all.
const ATTEMPTS: usize = 3;

/// Waits for this test's turn and measures: a pause of the machine's fails one attempt, a fault of ours fails each.
fn measured(test: impl Fn()) {
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for _ in 1..ATTEMPTS {
        if panic::catch_unwind(AssertUnwindSafe(&test)).is_ok() {
            return;
        }
        println!("measured again, in case the machine stood still");
    }
    test();
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// A client, a server, and links between them: 10.9.N.1 and 10.9.N.2, fd09:N::1 and fd09:N::2.
struct Lab {
    links: Vec<EmulatedLink>,
    client: Namespace,
    server: Namespace,
}

impl Lab {
    fn new(ways: &[Direction]) -> Self {
        let make = || Namespace::new("work").expect("makes a namespace (these tests need root)");
        let (client, server) = (make(), make());
        let links = (0..).zip(ways).map(|(n, way)| join(n, &client, &server, way)).collect();
        Self { links, client, server }
    }

    fn ground(&self, duration: Duration) -> Ground {
        Ground {
            client: self.client.clone(),
            server: self.server.clone(),
            ends: Ends { client: address("10.9.0.1"), server: address("10.9.0.2") },
            socket: Transport::Tcp,
            bystanders: Vec::new(),
            duration,
            seed: 1,
        }
    }

    fn run(&self, duration: Duration, kind: &str, options: &str) -> Findings {
        run(&self.ground(duration), kind, options)
    }
}

fn join(n: usize, client: &Namespace, server: &Namespace, way: &Direction) -> EmulatedLink {
    let end = |host: &Namespace, last: u8| {
        End::new(host, &format!("link{n}"), &[&format!("10.9.{n}.{last}/24"), &format!("fd09:{n}::{last}/64")])
    };
    let spec = LinkSpec::symmetric(&format!("work{n}"), end(client, 1), end(server, 2), way);
    EmulatedLink::new(spec).expect("the link starts")
}

/// Makes, prepares and runs a workload, and holds it to its time.
fn run(ground: &Ground, kind: &str, options: &str) -> Findings {
    let options = toml::from_str(options).expect("TOML");
    let plan = WorkloadPlan { kind: kind.to_owned(), name: "test".to_owned(), duration: ground.duration, options };
    let mut workload = make(&plan).expect("it is made");
    workload.prepare(ground).expect("it is prepared");
    let start = Moment::now() + ms(20);
    let found = workload.run(ground, start).expect("it runs");
    let took = Moment::now() - start;
    assert!(took < ground.duration + OVERTIME, "{kind} took {took:?} of {:?}", ground.duration);
    println!("{kind}: {:?}", found.metrics);
    found
}

/// A link with so many Mbit/s, 10 ms each way, and a queue of 50 ms.
fn shaped(mbps: f64) -> Direction {
    Direction::shaped(mbps, ms(10), ms(50))
}

fn figure(found: &Findings, name: &str) -> f64 {
    *found.metrics.get(name).unwrap_or_else(|| panic!("no {name} in {:?}", found.metrics))
}

/// A figure within bounds.
#[track_caller]
fn within(found: &Findings, name: &str, least: f64, most: f64) {
    let value = figure(found, name);
    assert!((least..=most).contains(&value), "{name} is {value}, not within {least} and {most}");
}

#[test]
fn a_bulk_download_fills_the_link_and_the_ping_beside_it_sees_the_queue() {
    measured(|| {
        let lab = Lab::new(&[shaped(30.0)]);
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
    measured(|| {
        let lab = Lab::new(&[shaped(20.0)]);
        let mut ground = lab.ground(ms(2500));
        ground.ends = Ends { client: address("fd09:0::1"), server: address("fd09:0::2") };
        let found = run(&ground, "bulk", "direction = 'both'\ncongestion = 'reno'");
        let (up, down) = (figure(&found, "goodput_up_mbps"), figure(&found, "goodput_down_mbps"));
        assert!(up > 10.0 && up < 19.2 && down > 10.0 && down < 19.2, "{up} and {down} Mbit/s");
        assert!((figure(&found, "goodput_mbps") - up - down).abs() < 1e-6);
        assert_eq!(found.lines.iter().filter(|line| line.step_s == 0.5).count(), 3);
    });
}

#[test]
fn several_clients_share_the_link_and_each_has_its_figure() {
    measured(|| {
        let lab = Lab::new(&[shaped(40.0)]);
        let found = lab.run(ms(3000), "bulk", "direction = 'up'\nclients = 4\ncongestion = 'bbr'");
        within(&found, "goodput_mbps", 32.0, 38.7);
        within(&found, "jain", 0.5, 1.0);
        let each: f64 = (1..=4).map(|n| figure(&found, &format!("client_{n}_mbps"))).sum();
        assert!((each - figure(&found, "goodput_mbps")).abs() < 1e-6);
    });
}

#[test]
fn a_host_beside_the_client_competes_with_it() {
    measured(|| {
        let lab = Lab::new(&[shaped(20.0)]);
        let host = Namespace::new("work").expect("makes a namespace");
        let _link = join(7, &host, &lab.server, &shaped(10.0));
        let mut ground = lab.ground(ms(2000));
        let ends = Ends { client: address("10.9.7.1"), server: address("10.9.7.2") };
        ground.bystanders = vec![Beside { name: "tcp1".to_owned(), host, ends }];
        let found = run(&ground, "bulk", "competitors = ['tcp1']");
        within(&found, "goodput_mbps", 15.0, 19.4);
        within(&found, "competitor_tcp1_mbps", 7.0, 9.7);
        within(&found, "jain", 0.8, 0.99);
        let plan = WorkloadPlan {
            kind: "bulk".to_owned(),
            name: "down".to_owned(),
            duration: ms(100),
            options: toml::from_str("competitors = ['tcp2']").expect("TOML"),
        };
        let error = make(&plan).expect("it is made").prepare(&ground).expect_err("nobody of this name");
        assert!(error.to_string().contains("tcp2"), "{error}");
    });
}

#[test]
fn a_link_that_is_cut_for_good_is_a_gap_to_the_end_and_no_error() {
    measured(|| {
        for kind in ["bulk", "request", "web", "http3"] {
            let lab = Lab::new(&[shaped(20.0)]);
            let ground = lab.ground(ms(1500));
            let found = thread::scope(|scope| {
                let running = scope.spawn(|| run(&ground, kind, "ping = true"));
                thread::sleep(ms(900));
                lab.links[0].cut().expect("it is cut");
                running.join().expect("it runs")
            });
            within(&found, "longest_gap_ms", 400.0, 1000.0);
            within(&found, "goodput_mbps", 0.5, 15.0);
            within(&found, "ping_loss_percent", 20.0, 80.0);
        }
    });
}

#[test]
fn mptcp_uses_both_links_and_every_subflow_has_the_congestion_control() {
    measured(|| {
        let lab = Lab::new(&[shaped(15.0), shaped(10.0)]);
        let set = |host: &Namespace, arguments: &str| {
            let status = host.command("ip").args(arguments.split(' ')).status().expect("the program ip starts");
            assert!(status.success(), "ip {arguments}");
        };
        for host in [&lab.client, &lab.server] {
            set(host, "mptcp limits set subflows 4 add_addr_accepted 4");
        }
        set(&lab.server, "mptcp endpoint add 10.9.1.2 dev link1 signal");
        let mut ground = lab.ground(ms(4000));
        ground.socket = Transport::Mptcp;
        for options in ["congestion = 'cubic'", "direction = 'up'\ncongestion = 'reno'"] {
            let found = run(&ground, "bulk", options);
            within(&found, "subflows", 2.0, 2.0);
            within(&found, "fallbacks", 0.0, 0.0);
            // More than the faster link alone has: 14.5.
            within(&found, "goodput_mbps", 16.0, 24.2);
        }
        let found = run(&ground, "connect", "");
        within(&found, "connect_ms", 20.0, 30.0);
    });
}

#[test]
fn a_request_takes_a_round_trip_and_clients_ask_side_by_side() {
    measured(|| {
        let lab = Lab::new(&[shaped(50.0)]);
        let found = lab.run(ms(2000), "request", "clients = 3\nanswer = '1kB'\nrequest = 100");
        within(&found, "completion_ms", 20.0, 25.0);
        within(&found, "completion_p99_ms", 20.0, 100.0);
        within(&found, "requests_per_s", 3.0 * 35.0, 3.0 * 50.0);
        within(&found, "jain", 0.95, 1.0);
        // An answer of 1000 bytes for each.
        let expected = figure(&found, "requests_per_s") * 8000.0 / 1e6;
        within(&found, "goodput_mbps", expected * 0.97, expected * 1.03);
    });
}

#[test]
fn a_request_that_is_long_takes_the_link_s_time() {
    measured(|| {
        let lab = Lab::new(&[shaped(20.0)]);
        let found = lab.run(ms(3000), "request", "request = '250kB'\nanswer = '250kB'");
        // A tenth of a second at 20 Mbit/s each way, and two round trips' worth; slow start and losses take their time.
        within(&found, "completion_ms", 220.0, 900.0);
    });
}

#[test]
fn a_clean_call_scores_high_and_a_lossy_one_as_the_model_says() {
    measured(|| {
        let lab = Lab::new(&[shaped(10.0)]);
        let found = lab.run(ms(2000), "voip", "ping = true");
        within(&found, "mos", 4.3, 4.41);
        within(&found, "delay_ms", 10.0, 13.0);
        within(&found, "jitter_ms", 0.0, 3.0);
        assert_eq!((figure(&found, "loss_percent"), figure(&found, "up_late_percent")), (0.0, 0.0));
        within(&found, "rtt_ms", 20.0, 25.0);
        // 172 bytes every 20 ms, both ways.
        within(&found, "goodput_mbps", 0.135, 0.139);

        let lossy = Direction { loss: Loss::percent(10.0).expect("a percentage"), ..shaped(10.0) };
        let found = Lab::new(&[lossy]).run(ms(3000), "voip", "codec = 'g711-plain'");
        // 150 packets each way: 10 %, and 4 standard deviations are 9.8.
        within(&found, "loss_percent", 2.0, 22.0);
        // 4 % takes 46, so R is 45 and the score 2.3; 20 % takes 78: R 13, score 1.
        let percent = figure(&found, "loss_percent");
        let mos = figure(&found, "mos");
        assert!(mos < 3.6 - percent * 0.1 && mos >= 1.0, "{mos} at {percent} %");
    });
}

#[test]
fn a_constant_rate_is_kept_in_one_direction() {
    measured(|| {
        let lab = Lab::new(&[shaped(10.0)]);
        let found = lab.run(ms(2000), "voip", "rate = '5M'\ndirection = 'down'");
        // 1200 of each 1228 bytes.
        within(&found, "goodput_mbps", 4.75, 4.9);
        assert_eq!(figure(&found, "loss_percent"), 0.0);
        assert!(!found.metrics.contains_key("up_mos"), "nobody speaks up");
        let found = lab.run(ms(2000), "voip", "rate = '20M'\ndirection = 'up'");
        within(&found, "goodput_mbps", 8.5, 9.8);
        within(&found, "loss_percent", 40.0, 55.0);
    });
}

#[test]
fn a_page_takes_its_round_trips_and_its_bytes() {
    measured(|| {
        let lab = Lab::new(&[shaped(20.0)]);
        let found = lab.run(ms(4000), "web", "objects = 20");
        // Four round trips at least: two streams after each other, each to be connected first.
        within(&found, "page_ms", 80.0, 1500.0);
        within(&found, "object_ms", 40.0, 500.0);
        within(&found, "pages", 2.0, 50.0);
        let kept = lab.run(ms(4000), "web", "objects = 20\nkeep-alive = true");
        // A round trip less for each object but the first of a connection.
        let (median, without) = (figure(&kept, "object_ms"), figure(&found, "object_ms"));
        assert!(median < without, "{median} ms with keep-alive, {without} ms without");
    });
}

#[test]
fn an_http3_download_fills_the_link_under_either_congestion_control() {
    measured(|| {
        let lab = Lab::new(&[shaped(20.0)]);
        for congestion in ["bbr", "cubic"] {
            let found = lab.run(ms(3000), "http3", &format!("congestion = '{congestion}'"));
            within(&found, "goodput_mbps", 13.0, 19.6);
            assert_eq!(figure(&found, "broken_flows"), 0.0);
            assert!(!found.metrics.contains_key("completion_ms"), "it does not end");
        }
        let mut ground = lab.ground(ms(5000));
        ground.ends = Ends { client: address("fd09:0::1"), server: address("fd09:0::2") };
        let found = run(&ground, "http3", "bytes = '2MB'\nping = true");
        // 0.8 s at 20 Mbit/s.
        within(&found, "completion_ms", 800.0, 2500.0);
        let expected = 16.0 / (figure(&found, "completion_ms") / 1e3);
        within(&found, "goodput_mbps", expected * 0.98, expected * 1.02);
    });
}

#[test]
fn connecting_takes_a_round_trip_and_fails_into_a_hole() {
    measured(|| {
        let lab = Lab::new(&[shaped(10.0)]);
        let found = lab.run(ms(1000), "connect", "interval = '20ms'\nping = true");
        within(&found, "connect_ms", 20.0, 25.0);
        // What was due within the last round trip does not stand in time.
        within(&found, "connect_failures", 0.0, 3.0);
        assert!(found.samples["connect_ms"].len() >= 46);
        lab.links[0].black_hole(true).expect("it opens");
        let found = lab.run(ms(300), "connect", "");
        within(&found, "connect_failures", 6.0, 6.0);
        assert!(!found.metrics.contains_key("connect_ms"), "none stood");
    });
}

#[test]
fn a_ping_alone_tells_the_idle_latency() {
    measured(|| {
        let lab = Lab::new(&[shaped(10.0)]);
        let found = lab.run(ms(1000), "ping", "interval = '10ms'");
        within(&found, "rtt_ms", 20.0, 22.0);
        within(&found, "ping_loss_percent", 0.0, 0.0);
        assert_eq!(found.samples["round_trip_ms"].len(), 100);
    });
}

#[test]
fn iperf3_agrees_with_bulk() {
    measured(|| {
        let lab = Lab::new(&[shaped(20.0)]);
        for (options, least) in [("", 16.0), ("direction = 'up'\nclients = 2", 16.0), ("direction = 'both'", 22.0)] {
            let found = lab.run(ms(2000), "iperf3", options);
            within(&found, "goodput_mbps", least, 2.0 * least.min(19.4));
            let line = found.lines.iter().find(|line| line.name == "goodput_mbps").expect("a line");
            assert!(line.values.len() >= 3, "{:?}", line.values);
        }
    });
}

#[test]
fn iperf3_over_a_link_that_is_cut_tells_what_it_had_counted() {
    measured(|| {
        let lab = Lab::new(&[shaped(20.0)]);
        let ground = lab.ground(ms(2000));
        let found = thread::scope(|scope| {
            let running = scope.spawn(|| run(&ground, "iperf3", ""));
            thread::sleep(ms(1200));
            lab.links[0].cut().expect("it is cut");
            running.join().expect("it runs")
        });
        within(&found, "goodput_mbps", 3.0, 15.0);
    });
}
