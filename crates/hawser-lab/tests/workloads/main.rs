//! Every workload over two namespaces joined by a link whose figures are known. Needs root; uses the programs ip, ss,
//! iperf3.

use std::time::Duration;

use hawser_lab::contender::Transport;
use hawser_lab::experiment::Findings;
use hawser_lab::scenario::WorkloadPlan;
use hawser_lab::stage::Ends;
use hawser_lab::workload::{Ground, When, Workload, make};
use hawser_wire::{Direction, EmulatedLink, End, LinkSpec, Moment, Namespace};

#[path = "../../../hawser-wire/tests/common/measured.rs"]
mod measured;
mod others;
mod streams;

use measured::measured;

/// No workload outlives its time by more.
const OVERTIME: Duration = Duration::from_secs(2);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Hosts 1 and 2 of a network: of `10.9.0.` or `fd09:0::`.
fn ends(network: &str) -> Ends {
    let address = |host| format!("{network}{host}").parse().expect("an address");
    Ends { client: address(1), server: address(2) }
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

    /// By the first link.
    fn ground(&self) -> Ground<'_> {
        let Self { client, server, .. } = self;
        Ground { client, server, ends: ends("10.9.0."), socket: Transport::Tcp, bystanders: &[] }
    }

    fn run(&self, duration: Duration, kind: &str, options: &str) -> Findings {
        run(self.ground(), duration, kind, options)
    }
}

fn join(n: usize, client: &Namespace, server: &Namespace, way: &Direction) -> EmulatedLink {
    let end = |host: &Namespace, last: u8| {
        End::new(host, &format!("link{n}"), &[&format!("10.9.{n}.{last}/24"), &format!("fd09:{n}::{last}/64")])
    };
    let spec = LinkSpec::symmetric(&format!("work{n}"), end(client, 1), end(server, 2), way);
    EmulatedLink::new(spec).expect("the link starts")
}

/// A test that measures, with these links.
fn on(ways: &[Direction], test: impl Fn(&Lab)) {
    measured(|| test(&Lab::new(ways)));
}

fn made(kind: &str, options: &str) -> Workload {
    let options = toml::from_str(options).expect("TOML");
    let plan = WorkloadPlan { kind: kind.to_owned(), name: "test".to_owned(), duration: ms(1), options };
    make(&plan).expect("it is made")
}

/// Makes, prepares and runs a workload, and holds it to its time.
fn run(ground: Ground<'_>, duration: Duration, kind: &str, options: &str) -> Findings {
    let workload = made(kind, options)(ground).expect("it is prepared");
    // Its threads are to be there by then, on a busy machine too: one that sends late sends all at once what was due.
    let start = Moment::now() + ms(100);
    let found = workload(When { start, duration, after: Duration::ZERO }).expect("it runs");
    let took = Moment::now() - start;
    assert!(took < duration + OVERTIME, "{kind} took {took:?} of {duration:?}");
    println!("{kind}: {:?}", found.metrics);
    found
}

/// A link with this many Mbit/s, 10 ms each way, and a queue of 50 ms.
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
