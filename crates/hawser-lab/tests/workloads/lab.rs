//! A client, a server, known links between them, and how workloads are run there.

use std::net::IpAddr;
use std::time::Duration;

use hawser_lab::contender::Transport;
use hawser_lab::experiment::Findings;
use hawser_lab::scenario::WorkloadPlan;
use hawser_lab::stage::Ends;
use hawser_lab::workload::{Ground, Workload, make};
use hawser_wire::{Direction, EmulatedLink, End, LinkSpec, Moment, Namespace};

#[path = "../../../hawser-wire/tests/common/measured.rs"]
mod measured;
pub use measured::measured;

/// No workload outlives its time by more.
const OVERTIME: Duration = Duration::from_secs(2);

pub const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// A client, a server, and links between them: 10.9.N.1 and 10.9.N.2, fd09:N::1 and fd09:N::2.
pub struct Lab {
    pub links: Vec<EmulatedLink>,
    pub client: Namespace,
    pub server: Namespace,
}

impl Lab {
    pub fn new(ways: &[Direction]) -> Self {
        let make = || Namespace::new("work").expect("makes a namespace (these tests need root)");
        let (client, server) = (make(), make());
        let links = (0..).zip(ways).map(|(n, way)| join(n, &client, &server, way)).collect();
        Self { links, client, server }
    }

    pub fn ground(&self, duration: Duration) -> Ground {
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

    pub fn run(&self, duration: Duration, kind: &str, options: &str) -> Findings {
        run(&self.ground(duration), kind, options)
    }
}

pub fn join(n: usize, client: &Namespace, server: &Namespace, way: &Direction) -> EmulatedLink {
    let end = |host: &Namespace, last: u8| {
        End::new(host, &format!("link{n}"), &[&format!("10.9.{n}.{last}/24"), &format!("fd09:{n}::{last}/64")])
    };
    let spec = LinkSpec::symmetric(&format!("work{n}"), end(client, 1), end(server, 2), way);
    EmulatedLink::new(spec).expect("the link starts")
}

/// A test that measures, with these links.
pub fn on(ways: &[Direction], test: impl Fn(&Lab)) {
    measured(|| test(&Lab::new(ways)));
}

pub fn made(ground: &Ground, kind: &str, options: &str) -> Box<dyn Workload> {
    let options = toml::from_str(options).expect("TOML");
    let plan = WorkloadPlan { kind: kind.to_owned(), name: "test".to_owned(), duration: ground.duration, options };
    make(&plan).expect("it is made")
}

/// Makes, prepares and runs a workload, and holds it to its time.
pub fn run(ground: &Ground, kind: &str, options: &str) -> Findings {
    let mut workload = made(ground, kind, options);
    workload.prepare(ground).expect("it is prepared");
    let start = Moment::now() + ms(20);
    let found = workload.run(ground, start).expect("it runs");
    let took = Moment::now() - start;
    assert!(took < ground.duration + OVERTIME, "{kind} took {took:?} of {:?}", ground.duration);
    println!("{kind}: {:?}", found.metrics);
    found
}

/// A link with this many Mbit/s, 10 ms each way, and a queue of 50 ms.
pub fn shaped(mbps: f64) -> Direction {
    Direction::shaped(mbps, ms(10), ms(50))
}

pub fn figure(found: &Findings, name: &str) -> f64 {
    *found.metrics.get(name).unwrap_or_else(|| panic!("no {name} in {:?}", found.metrics))
}

/// A figure within bounds.
#[track_caller]
pub fn within(found: &Findings, name: &str, least: f64, most: f64) {
    let value = figure(found, name);
    assert!((least..=most).contains(&value), "{name} is {value}, not within {least} and {most}");
}
