//! Small networks, and questions over them.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use hawser_lab::scenario::{Case, LinkPlan, Network, Scenario};
use hawser_lab::stage::{Ends, Stage};
use hawser_wire::traffic::TcpTransfer;
use hawser_wire::{Direction, Namespace, Way};

#[path = "../../../hawser-wire/tests/common/measured.rs"]
mod measured;
pub use measured::measured;

/// The first port that is asked; each talk has one of its own, because another test's fork may hold a closed one open.
static PORT: AtomicU16 = AtomicU16::new(4000);
const TRANSFER_PORT: u16 = 5001;
/// How long an answer may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a link is asked.
pub const QUESTIONS: u64 = 20;
/// How long nobody answers before nobody will.
pub const SILENCE: Duration = Duration::from_millis(400);

pub const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A plain network of IPv4 with a link, and the case of it.
fn plain() -> Scenario {
    let rest = "contender = [{ kind = \"tcp\" }]\nworkload = [{ kind = \"ping\" }]\n";
    let text = format!("name = \"plain\"\nnetwork.link = [{{ name = \"a\" }}]\n{rest}");
    Scenario::parse(&text, "plain.toml", None).expect("the scenario of these tests")
}

/// A link of this many Mbit/s and ms, the same both ways.
pub fn link(name: &str, mbps: f64, delay: u64) -> LinkPlan {
    let way = Direction::shaped(mbps, ms(delay), ms(100));
    LinkPlan { name: name.to_owned(), up: way.clone(), down: way, ..plain().network.links.remove(0) }
}

/// Two links, of 20 Mbit/s and 5 ms, and of 10 Mbit/s and 20 ms.
pub fn two() -> Vec<LinkPlan> {
    vec![link("wifi", 20.0, 5), link("eth", 10.0, 20)]
}

/// A plain network of IPv4.
pub fn network(links: Vec<LinkPlan>) -> Network {
    Network { links, ..plain().network }
}

/// The case of all links.
fn all(network: &Network) -> Case {
    let (links, bystanders) = (network.links.clone(), network.bystanders.clone());
    Case { links, bystanders, ..plain().cases.remove(0) }
}

pub fn build(network: &Network) -> Stage {
    build_case(network, |_| ())
}

/// The same of a case that is changed so.
pub fn build_case(network: &Network, change: impl FnOnce(&mut Case)) -> Stage {
    let mut case = all(network);
    change(&mut case);
    Stage::build(network, &case, 1).expect("the stage stands (these tests need root)")
}

/// The two links in a network that is changed so.
pub fn build_two(change: impl FnOnce(&mut Network)) -> Stage {
    let mut network = network(two());
    change(&mut network);
    build(&network)
}

/// Sockets of two ends. Both closed on drop; one owner.
pub struct Talk {
    near: UdpSocket,
    far: UdpSocket,
    to: SocketAddr,
}

impl Talk {
    pub fn new(client: &Namespace, server: &Namespace, ends: Ends) -> Self {
        let bind = |host: &Namespace, address: IpAddr, port: u16| {
            host.run(|| UdpSocket::bind((address, port))).expect("enters").expect("the address is there")
        };
        let port = PORT.fetch_add(1, Ordering::Relaxed);
        let far = bind(server, ends.server, port);
        Self { near: bind(client, ends.client, 0), far, to: SocketAddr::new(ends.server, port) }
    }

    /// The client asks, the server answers whoever it saw; gives who that was.
    pub fn ask_within(&self, patience: Duration) -> io::Result<SocketAddr> {
        self.near.set_read_timeout(Some(patience))?;
        self.far.set_read_timeout(Some(patience))?;
        self.near.send_to(b"?", self.to)?;
        let mut byte = [0; 1];
        let (_, from) = self.far.recv_from(&mut byte)?;
        self.far.send_to(b"!", from)?;
        let (_, answered) = self.near.recv_from(&mut byte)?;
        assert_eq!(answered, self.to, "the answer comes from where it was asked");
        Ok(from)
    }

    /// Asks often enough over a link that what the system says by itself there does not matter, and fails where any of
    /// it, there or back, goes another way.
    pub fn ask_over(&self, stage: &Stage, index: usize) -> SocketAddr {
        let before = carried(stage, index);
        let seen: Vec<SocketAddr> = (0..QUESTIONS).map(|_| self.ask().expect("answers")).collect();
        // A link publishes its counters when it has delivered: the last answer may be here before.
        let grown = || {
            let (now, name) = (carried(stage, index), &stage.links[index].name);
            let counts = [now[0] - before[0], now[1] - before[1]];
            if counts.iter().all(|count| *count >= QUESTIONS) { Ok(()) } else { Err(format!("{counts:?} over {name}")) }
        };
        let start = Instant::now();
        while grown().is_err() && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        grown().expect("all questions and answers go over the link");
        seen[0]
    }

    pub fn ask(&self) -> io::Result<SocketAddr> {
        self.ask_within(PATIENCE)
    }
}

/// Packets that a link delivered each way.
pub fn carried(stage: &Stage, index: usize) -> [u64; 2] {
    Way::BOTH.map(|way| stage.links[index].link.counters(way).packets_out)
}

/// A CUBIC transfer from client to server.
pub fn transfer(stage: &Stage, ends: Ends, duration: Duration) -> TcpTransfer {
    let destination = SocketAddr::new(ends.server, TRANSFER_PORT);
    TcpTransfer::cubic((&stage.client, ends.client), (&stage.server, destination), duration)
}

/// Mbit/s of a transfer from its first second on.
pub fn goodput(stage: &Stage, ends: Ends) -> f64 {
    let got = transfer(stage, ends, ms(3000)).run().expect("it runs");
    got.mbps_between(got.start() + ms(1000), got.start() + ms(3000))
}
