//! A small stage, a contender on it, and what is asked of both.

#[path = "../../../hawser-wire/tests/support/at_rest.rs"]
mod at_rest;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use at_rest::at_rest;
use hawser_lab::LabError;
use hawser_lab::contender::{Down, Offer, Programs, make};
use hawser_lab::scenario::{ContenderPlan, Scenario};
use hawser_lab::stage::Stage;
use hawser_wire::traffic::{Ping, PingReport, TcpTransfer, Timeline};
use hawser_wire::{Namespace, Way};

/// Where short transfers go, and how long they last.
const PORT: u16 = 5001;
const TRANSFER: Duration = Duration::from_millis(700);
/// Bytes that a link without traffic may carry all the same: neighbours and multicast groups are told and asked for.
pub const HOUSEKEEPING: u64 = 4_000;
/// What a process that is gone leaves for a moment is waited for so long.
const PATIENCE: Duration = Duration::from_secs(5);
const GLANCE: Duration = Duration::from_millis(20);

/// A network of IPv6; without it, of IPv4.
pub const IPV6: &str = "inner = \"ipv6\"\nouter = \"ipv6\"";

/// A plan with these options, in TOML.
fn plan(kind: &str, options: &str) -> ContenderPlan {
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
    down: Down,
    pub offer: Offer,
    before: BTreeMap<String, String>,
}

impl Ground {
    /// A network of these keys, in TOML, and links of these names and rates in Mbit/s.
    pub fn new(network: &str, links: &[(&str, f64)]) -> Self {
        let link = |(name, mbps): &(&str, f64)| {
            format!("[[network.link]]\nname = \"{name}\"\nrate = \"{mbps}M\"\ndelay = \"5ms\"\n")
        };
        let links: String = links.iter().map(link).collect();
        let text = format!(
            "name = \"ground\"\ngroup = \"tests\"\ntitle = \"A small network\"\nsource = \"us\"\nfinding = \"none\"\n\
             [network]\n{network}\n{links}[[contender]]\nkind = \"tcp\"\n[[workload]]\nkind = \"ping\"\n\
             duration = \"1s\"\n[[case]]\nname = \"all\"\n"
        );
        let scenario = Scenario::parse(&text, "ground.toml", None).expect("the scenario of these tests");
        let stage = Stage::build(&scenario.network, &scenario.cases[0], 1).expect("it stands (these tests need root)");
        let hawser = option_env!("CARGO_BIN_EXE_hawser").unwrap_or("/nowhere/hawser").into();
        // Tools are built once for all tests.
        Self { stage, programs: Programs { hawser, cache: Path::new(env!("CARGO_TARGET_TMPDIR")).join("tools") } }
    }

    /// A contender with these options, carrying traffic.
    pub fn up(&self, kind: &str, options: &str) -> Contest<'_> {
        let before = at_rest(|| self.state());
        let contender = make(&plan(kind, options), &self.programs).expect("its options are understood");
        let (offer, down) = contender(&self.stage).unwrap_or_else(|error| panic!("{kind} is not up: {error}"));
        Contest { ground: self, down, offer, before }
    }

    /// Why a contender does not come up.
    pub fn refused(&self, kind: &str, options: &str) -> LabError {
        let contender = make(&plan(kind, options), &self.programs).expect("its options are understood");
        match contender(&self.stage) {
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
        let mptcp = ["enabled", "pm_type", "checksum_enabled", "scheduler"].map(|key| format!("mptcp/{key}"));
        let others = ["ipv4/tcp_syn_retries", "ipv4/fib_multipath_hash_policy", "ipv6/fib_multipath_hash_policy"];
        let mut state = BTreeMap::new();
        for host in hosts {
            for question in questions {
                // What came anew stands elsewhere in a list.
                let said = ip(host, question);
                let mut lines: Vec<_> = said.lines().collect();
                lines.sort_unstable();
                state.insert(format!("{} {question}", host.name()), lines.join("\n"));
            }
            for key in mptcp.iter().map(String::as_str).chain(others) {
                state.insert(format!("{} {key}", host.name()), host.sysctl(key).expect("this kernel has it"));
            }
        }
        state
    }
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

/// Looks from time to time until it is so: whether it was in time.
pub fn until(patience: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let late = Instant::now() + patience;
    while !is_so() {
        if Instant::now() > late {
            return false;
        }
        thread::sleep(GLANCE);
    }
    true
}

fn ping(from: &Namespace, destination: IpAddr) -> PingReport {
    let interval = Duration::from_millis(20);
    Ping { from: from.clone(), destination, interval, duration: interval * 10 }.run().expect("it pings")
}

fn transfer(from: (&Namespace, IpAddr), to: (&Namespace, IpAddr), duration: Duration) -> Timeline {
    TcpTransfer::cubic(from, (to.0, SocketAddr::new(to.1, PORT)), duration).run().expect("it runs")
}

impl Contest<'_> {
    /// A ping and a stream each way between the addresses on offer.
    pub fn assert_both_ways(&self) {
        let [client, server] = self.hosts();
        for (from, to) in [(client, server), (server, client)] {
            assert!(!ping(from.0, to.1).echoes.is_empty(), "no answer from {}", to.1);
            let got = transfer(from, to, TRANSFER);
            assert!(got.total_bytes() > 100_000, "{} bytes to {}", got.total_bytes(), to.1);
        }
    }

    /// A ping that nobody answers.
    pub fn assert_unanswered(&self) {
        let [client, server] = self.hosts();
        assert!(ping(client.0, server.1).echoes.is_empty(), "{} answers", server.1);
    }

    /// What a stream from client to server gets, in Mbit/s.
    pub fn rate(&self, duration: Duration) -> f64 {
        let [client, server] = self.hosts();
        let got = transfer(client, server, duration);
        got.mbps_between(got.start() + duration / 4, got.start() + duration)
    }

    /// Client and server, with the addresses on offer.
    fn hosts(&self) -> [(&Namespace, IpAddr); 2] {
        let (stage, ends) = (&self.ground.stage, self.offer.ends);
        [(&stage.client, ends.client), (&stage.server, ends.server)]
    }

    /// Waits until a link has carried this many bytes.
    pub fn await_carried(&self, link: &str, bytes: u64) {
        assert!(until(PATIENCE, || self.carried(link) >= bytes), "{link} carried {} bytes", self.carried(link));
    }

    /// This many connections, which end at once.
    pub fn assert_flows(&self, flows: usize) {
        let [(client, _), (server, address)] = self.hosts();
        let address = SocketAddr::new(address, PORT + 1);
        let listener = server.run(|| TcpListener::bind(address).expect("listens")).expect("enters");
        for _ in 0..flows {
            let outbound = client.run(|| TcpStream::connect(address).expect("connects")).expect("enters");
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
    pub fn down(self) {
        let Self { ground, down, offer, before } = self;
        down(&ground.stage).expect("it goes down");
        for program in &offer.programs {
            let process = format!("/proc/{}", program.pid.as_raw_pid());
            assert!(!Path::new(&process).exists(), "{} still runs", program.role);
        }
        // The kernel removes a device a moment after its program has ended.
        until(PATIENCE, || ground.state() == before);
        let after = ground.state();
        for (question, before) in &before {
            assert_eq!(&after[question], before, "{question}");
        }
    }
}
