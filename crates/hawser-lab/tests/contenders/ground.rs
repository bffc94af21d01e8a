//! A small stage, a contender on it, and what is asked of both.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use hawser_lab::LabError;
use hawser_lab::contender::{Contender, Offer, Programs, make};
use hawser_lab::scenario::{Case, ContenderPlan, Family, LinkPlan, Network};
use hawser_lab::stage::Stage;
use hawser_wire::traffic::{Congestion, Ping, TcpTransfer};
use hawser_wire::{Direction, Namespace, Way};

/// One way, and room for as much in the queue.
const DELAY: Duration = Duration::from_millis(5);
const QUEUE: Duration = Duration::from_millis(100);
/// Where short transfers go, and how long they last.
const PORT: u16 = 5001;
const TRANSFER: Duration = Duration::from_millis(700);
/// What a process that is gone leaves for a moment is waited for so long.
const PATIENCE: Duration = Duration::from_secs(5);
const GLANCE: Duration = Duration::from_millis(20);

/// What a network is like. IPv4, without a LAN, and one address at the server by default. Plain data.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    pub lan: bool,
    pub ipv6: bool,
    pub server_links: bool,
    pub absent: Vec<&'static str>,
}

/// A plan with these options, in TOML.
pub fn plan(kind: &str, options: &str) -> ContenderPlan {
    let options = options.parse().unwrap_or_else(|error| panic!("options of a test: {error}\n{options}"));
    ContenderPlan { kind: kind.to_owned(), label: kind.to_owned(), options }
}

/// A stage. Removed on drop.
pub struct Ground {
    pub stage: Stage,
    programs: Programs,
}

/// A contender that is up. One owner.
pub struct Contest<'a> {
    ground: &'a Ground,
    contender: Box<dyn Contender>,
    pub offer: Offer,
    before: BTreeMap<String, String>,
}

impl Ground {
    /// Links of these names and rates in Mbit/s.
    pub fn new(shape: &Shape, links: &[(&str, f64)]) -> Self {
        let link = |&(name, mbps): &(&str, f64)| LinkPlan {
            name: name.to_owned(),
            profile: None,
            up: Direction::shaped(mbps, DELAY, QUEUE),
            down: Direction::shaped(mbps, DELAY, QUEUE),
            medium: None,
            access: hawser_wire::Access::turns(),
            metric: 0,
        };
        let family = if shape.ipv6 { Family::V6 } else { Family::V4 };
        let links: Vec<LinkPlan> = links.iter().map(link).collect();
        let network = Network {
            inner: family,
            outer: family,
            lan: shape.lan,
            server_links: shape.server_links,
            nat: false,
            backend: hawser_wire::Backend::default(),
            links: links.clone(),
            bystanders: Vec::new(),
        };
        let case = Case {
            name: "case".to_owned(),
            title: String::new(),
            links,
            bystanders: Vec::new(),
            absent: shape.absent.iter().map(|&name| name.to_owned()).collect(),
            contenders: Vec::new(),
            workloads: Vec::new(),
            events: Vec::new(),
            sysctls: BTreeMap::new(),
            x: None,
        };
        let stage = Stage::build(&network, &case, 1).expect("the stage stands (these tests need root)");
        let programs = Programs { hawser: "/nowhere/hawser".into(), cache: tools() };
        Self { stage, programs }
    }

    /// A contender with these options, carrying traffic.
    pub fn up(&self, kind: &str, options: &str) -> Contest<'_> {
        let before = self.state();
        let mut contender = make(&plan(kind, options), &self.programs).expect("its options are understood");
        let offer = contender.up(&self.stage).unwrap_or_else(|error| panic!("{kind} is not up: {error}"));
        Contest { ground: self, contender, offer, before }
    }

    /// Why a contender does not come up.
    pub fn refused(&self, kind: &str, options: &str) -> LabError {
        let mut contender = make(&plan(kind, options), &self.programs).expect("its options are understood");
        match contender.up(&self.stage) {
            Err(error) => error,
            Ok(_) => panic!("{kind} came up with {options}"),
        }
    }

    /// Everything that a contender might leave in the kernel, by host and question.
    pub fn state(&self) -> BTreeMap<String, String> {
        let stage = &self.stage;
        let routers = stage.links.iter().map(|link| &link.router);
        let hosts = [&stage.client, &stage.local, &stage.remote, &stage.server].into_iter().chain(routers);
        let questions = [
            "-oneline address",
            "-4 rule",
            "-6 rule",
            "-4 route show table all",
            "-6 route show table all",
            "mptcp endpoint",
            "mptcp limits",
        ];
        let sysctls = [
            "mptcp/enabled",
            "mptcp/pm_type",
            "mptcp/checksum_enabled",
            "mptcp/scheduler",
            "ipv4/tcp_syn_retries",
            "ipv4/fib_multipath_hash_policy",
            "ipv6/fib_multipath_hash_policy",
        ];
        let mut state = BTreeMap::new();
        for host in hosts {
            for question in questions {
                state.insert(format!("{} {question}", host.name()), ip(host, question));
            }
            for key in sysctls {
                state.insert(format!("{} {key}", host.name()), host.sysctl(key).expect("this kernel has it"));
            }
        }
        state
    }
}

/// Where tools are built, once for all tests.
fn tools() -> std::path::PathBuf {
    std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("tools")
}

/// What `ip` says in a namespace.
pub fn ip(host: &Namespace, words: &str) -> String {
    run(host, &format!("ip {words}"))
}

/// What a command says in a namespace.
pub fn run(host: &Namespace, words: &str) -> String {
    let mut words = words.split(' ');
    let program = words.next().expect("a command");
    let output = host.command(program).args(words).output().unwrap_or_else(|error| panic!("run {program}: {error}"));
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

impl Contest<'_> {
    /// A ping and a stream each way between the addresses on offer.
    pub fn assert_both_ways(&mut self) {
        let (stage, ends) = (&self.ground.stage, self.offer.ends);
        let ways = [
            (&stage.client, &stage.server, ends.client, ends.server),
            (&stage.server, &stage.client, ends.server, ends.client),
        ];
        for (from, to, source, destination) in ways {
            let interval = Duration::from_millis(20);
            let ping = Ping { from: from.clone(), destination, interval, duration: interval * 10 };
            let report = ping.start().and_then(hawser_wire::traffic::RunningPing::finish).expect("it pings");
            assert!(!report.echoes.is_empty(), "no answer from {destination}");
            let transfer = TcpTransfer {
                from: from.clone(),
                to: to.clone(),
                destination: SocketAddr::new(destination, PORT),
                source: Some(source),
                congestion: Congestion::Cubic,
                duration: TRANSFER,
            };
            let got = transfer.run().expect("it runs");
            assert!(got.total_bytes() > 100_000, "{} bytes to {destination}", got.total_bytes());
        }
    }

    /// So many connections, a byte each.
    pub fn assert_flows(&self, flows: usize) {
        let (stage, ends) = (&self.ground.stage, self.offer.ends);
        let listen = || TcpListener::bind(SocketAddr::new(ends.server, PORT + 1)).expect("listens");
        let listener = stage.server.run(listen).expect("enters");
        let connect = || TcpStream::connect(SocketAddr::new(ends.server, PORT + 1)).expect("connects");
        for _ in 0..flows {
            let outbound = stage.client.run(connect).expect("enters");
            listener.accept().expect("accepts");
            drop(outbound);
        }
    }

    /// Bytes that a link carried, both ways.
    pub fn carried(&self, link: &str) -> u64 {
        let link = &self.ground.stage.links[self.ground.stage.index(link).expect("there is such a link")].link;
        Way::BOTH.map(|way| link.counters(way).bytes_out).iter().sum()
    }

    /// Takes it down: its processes are gone, and the stage is as it was.
    pub fn down(mut self) {
        self.contender.down(&self.ground.stage).expect("it goes down");
        for program in &self.offer.programs {
            let process = format!("/proc/{}", program.pid.as_raw_pid());
            assert!(!std::path::Path::new(&process).exists(), "{} still runs", program.role);
        }
        // The kernel removes a device a moment after its program has ended.
        let late = std::time::Instant::now() + PATIENCE;
        while self.ground.state() != self.before && std::time::Instant::now() < late {
            std::thread::sleep(GLANCE);
        }
        let after = self.ground.state();
        for (question, before) in &self.before {
            assert_eq!(&after[question], before, "{question}");
        }
    }
}
