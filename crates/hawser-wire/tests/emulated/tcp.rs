//! The kernel's TCP over an emulated link, against the kernel's own shaper. Needs root and the `tc` program.

use std::net::IpAddr;
use std::time::Duration;

use crate::common::measured::measured;
use crate::common::{between, ms};
use hawser_wire::traffic::{Congestion, TcpTransfer};
use hawser_wire::{Direction, EmulatedLink, End, LinkSpec, Moment, Namespace, keep_time, veth};

const RATE_MBIT: f64 = 50.0;
/// Bytes of Ethernet that tbf counts with each packet.
const ETHERNET: u32 = 14;
/// How much waits before the shaper.
const QUEUE: Duration = ms(50);
/// Where the receiver is.
const SERVER: &str = "10.2.0.2";

/// Client, router and server: the delay lies between client and router, the shaper after the router.
struct Line {
    client: Namespace,
    router: Namespace,
    server: Namespace,
    _delay: EmulatedLink,
}

fn line() -> Line {
    let make = || Namespace::new("tbf").expect("makes a namespace (these tests need root)");
    let (client, router, server) = (make(), make(), make());
    let near = End::new(&client, "wan", &["10.1.0.1/24"]);
    let far = End::new(&router, "lan", &["10.1.0.2/24"]);
    let way = Direction { delay: ms(10), ..Direction::default() };
    let delay = EmulatedLink::new(LinkSpec::symmetric("delay", near, far, &way));
    router.set_forwarding(true).expect("the router forwards");
    client.add_default_route(address("10.1.0.2")).expect("the client has a route");
    Line { client, router, server, _delay: delay.expect("the delay starts") }
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

impl Line {
    fn shaped_ends(&self) -> (End, End) {
        (End::new(&self.router, "shaped", &["10.2.0.1/24"]), End::new(&self.server, "eth0", &[&format!("{SERVER}/24")]))
    }

    /// Goodput of one CUBIC stream after its first second, in Mbit/s.
    fn goodput(&self) -> f64 {
        self.server.add_default_route(address("10.2.0.1")).expect("the server has a route");
        let transfer = TcpTransfer {
            from: self.client.clone(),
            to: self.server.clone(),
            destination: (address(SERVER), 5001).into(),
            source: None,
            congestion: Congestion::Cubic,
            duration: ms(3000),
        };
        // Its threads are instruments: they inherit the priority of the one that starts them.
        let measure = || {
            keep_time();
            transfer.run()
        };
        let got = std::thread::scope(|scope| scope.spawn(measure).join()).expect("it does not panic");
        let got = got.expect("the transfer runs");
        got.mbps_between(got.start() + ms(1000), got.start() + ms(3000))
    }
}

#[test]
fn one_cubic_stream_matches_tbf_within_three_percent() {
    measured(|| {
        let by_kernel = {
            let line = line();
            let (router, server) = line.shaped_ends();
            veth(&router, &server, 1500).expect("the pair is made");
            // Its bucket lasts for 16 ms: where its timer is later, it does not keep the rate itself. The queue is told
            // in bytes: to one in time tc adds the bucket.
            let queue = RATE_MBIT * 1e6 / 8.0 * QUEUE.as_secs_f64();
            let tbf = format!("qdisc add dev shaped root tbf rate {RATE_MBIT}mbit burst 100kb limit {queue:.0}");
            let status = line.router.command("tc").args(tbf.split(' ')).status();
            assert!(status.expect("the tc program starts").success(), "tc {tbf}");
            line.goodput()
        };
        let by_us = {
            let line = line();
            let (router, server) = line.shaped_ends();
            let way = Direction { overhead: ETHERNET, ..Direction::shaped(RATE_MBIT, ms(0), QUEUE) };
            let _shaper =
                EmulatedLink::new(LinkSpec::symmetric("shaper", router, server, &way)).expect("the shaper starts");
            line.goodput()
        };
        println!("one cubic stream: tbf {by_kernel:.2}, emulated {by_us:.2} Mbit/s");
        assert!(by_kernel > RATE_MBIT * 0.85, "tbf let {by_kernel:.2} Mbit/s pass");
        assert!((by_us / by_kernel - 1.0).abs() <= 0.03, "tbf {by_kernel:.2}, emulated {by_us:.2}");
    });
}

#[test]
fn progress_is_seen_and_stop_ends_a_transfer() {
    measured(|| {
        let (a, b) = between("tcp");
        let (from, to) = (a.namespace.clone(), b.namespace.clone());
        let way = Direction::shaped(20.0, ms(5), ms(40));
        let link = EmulatedLink::new(LinkSpec::symmetric("tcp", a, b, &way)).expect("the link starts");
        for congestion in [Congestion::Reno, Congestion::Bbr] {
            let transfer = TcpTransfer {
                from: from.clone(),
                to: to.clone(),
                destination: "[fd09::2]:5001".parse().expect("an address"),
                source: Some(address("fd09::1")),
                congestion,
                duration: Duration::from_secs(60),
            };
            let running = transfer.start().expect("the transfer starts");
            std::thread::sleep(ms(600));
            let middle = Moment::now();
            assert!(running.received_bytes() > 500_000, "{}", running.received_bytes());
            link.black_hole(true).expect("the hole opens");
            std::thread::sleep(ms(300));
            assert!(running.progress().longest_gap(middle, Moment::now()) >= ms(250));
            running.stop();
            let got = running.finish().expect("the transfer ends");
            assert!(got.end() < middle + ms(100), "bytes came through the hole");
            link.restore().expect("the hole closes");
        }
    });
}
