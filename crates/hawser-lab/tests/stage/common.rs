//! Small networks, questions over them, and when a link really carries packets.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use hawser_lab::scenario::{Family, Scenario};
use hawser_lab::stage::{Ends, Stage};
use hawser_wire::traffic::TcpTransfer;
use hawser_wire::{Moment, Namespace, Way};
use socket2::SockRef;

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

/// A case of two links, of 20 Mbit/s and 5 ms, and of 10 Mbit/s and 20 ms, with more keys of network and case.
pub fn scenario(network: &str, case: &str) -> Scenario {
    let text = format!(
        r#"
        name = "two"
        contender = [{{ kind = "tcp" }}]
        workload = [{{ kind = "ping" }}]
        [network]
        link = [{{ name = "wifi", rate = "20M", delay = "5ms" }}, {{ name = "eth", rate = "10M", delay = "20ms" }}]
        {network}
        [[case]]
        name = "both"
        {case}
        "#
    );
    Scenario::parse(&text, "two.toml", None).unwrap_or_else(|error| panic!("{error:?}"))
}

/// The stage of a scenario's first case.
pub fn stage(scenario: &Scenario) -> Stage {
    Stage::build(&scenario.network, &scenario.cases[0], 1).expect("the stage stands (these tests need root)")
}

/// The stage of [`scenario`].
pub fn build(network: &str, case: &str) -> Stage {
    stage(&scenario(network, case))
}

/// Keys of a network whose links and applications have a family.
pub fn both_of(family: Family) -> String {
    format!("inner = \"{family}\"\nouter = \"{family}\"\n")
}

/// A host's socket, which waits this long for what comes.
pub fn bind(host: &Namespace, address: IpAddr, port: u16, patience: Duration) -> UdpSocket {
    let socket = host.run(|| UdpSocket::bind((address, port))).expect("enters").expect("the address is there");
    socket.set_read_timeout(Some(patience)).expect("is set");
    socket
}

/// Sockets of two ends. Both closed on drop; one owner.
pub struct Talk {
    near: UdpSocket,
    far: UdpSocket,
    to: SocketAddr,
}

impl Talk {
    pub fn new(client: &Namespace, server: &Namespace, ends: Ends) -> Self {
        let port = PORT.fetch_add(1, Ordering::Relaxed);
        let (near, far) = (bind(client, ends.client, 0, PATIENCE), bind(server, ends.server, port, PATIENCE));
        Self { near, far, to: SocketAddr::new(ends.server, port) }
    }

    /// Asks by an interface alone, from whatever address it has: gives that.
    pub fn ask_by(client: &Namespace, interface: &str, server: (&Namespace, IpAddr)) -> IpAddr {
        let talk = Self::new(client, server.0, Ends { client: Ipv4Addr::UNSPECIFIED.into(), server: server.1 });
        SockRef::from(&talk.near).bind_device(Some(interface.as_bytes())).expect("binds");
        talk.ask().expect("answers").ip()
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
        let start = Instant::now();
        let short = || carried(stage, index).into_iter().zip(before).any(|(now, before)| now < before + QUESTIONS);
        while short() && start.elapsed() < PATIENCE {
            sleep(ms(1));
        }
        let (now, name) = (carried(stage, index), &stage.links[index].name);
        assert!(!short(), "all questions and answers go over {name}: {before:?} became {now:?}");
        seen[0]
    }

    pub fn ask(&self) -> io::Result<SocketAddr> {
        self.ask_within(PATIENCE)
    }

    /// How long a question and its answer take, at the least of a few: each may wait for a processor, too.
    pub fn trip(&self) -> Duration {
        let trip = || {
            let asked = Instant::now();
            self.ask().expect("answers");
            asked.elapsed()
        };
        (0..5).map(|_| trip()).min().expect("a few")
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

/// How exact an event's time is.
pub const EXACT: Duration = ms(10);

/// A time without a packet: after which one, before which one. None: from the beginning, or for good.
pub type Silence = [Option<Duration>; 2];

/// A silence begins and ends when it was told to: not before, and hardly later.
pub fn near(silence: Silence, told: [Option<u64>; 2], late: Duration) {
    for (seen, told) in silence.into_iter().zip(told) {
        match (seen, told.map(ms)) {
            (None, None) => {}
            (Some(seen), Some(told)) => assert!(seen + EXACT >= told && seen < told + late, "{seen:?} for {told:?}"),
            (seen, told) => panic!("{seen:?} for {told:?}"),
        }
    }
}

/// Sends packets over a link until `end`, one each ms. Gives the silences of more than 100 ms, counted from `start`: a
/// packet on its way when a link ends is lost, so the last to arrive did so when it ended; the first that comes later
/// was sent a way's time before.
pub fn watch(stage: &Stage, link: usize, port: u16, [start, end]: [Moment; 2]) -> JoinHandle<Vec<Silence>> {
    let ends = stage.ends_of(link);
    // Addresses outlast a link that is down.
    let (near, far) = (bind(&stage.client, ends.client, 0, ms(50)), bind(&stage.server, ends.server, port, ms(50)));
    let way = stage.links[link].link.settings(Way::AToB).delay;
    spawn(move || {
        while Moment::now() < end {
            // Refused where the interface is down.
            let _ = near.send_to(b"?", (ends.server, port));
            sleep(ms(1));
        }
    });
    spawn(move || {
        let (mut silences, mut last) = (Vec::new(), None);
        let is_silent = |last: Option<Duration>, now: Duration| now > last.unwrap_or_default() + ms(100);
        while Moment::now() < end {
            if far.recv(&mut [0]).is_ok() {
                let now = Moment::now().since(start);
                if is_silent(last, now) {
                    silences.push([last, Some(now.saturating_sub(way))]);
                }
                last = Some(now);
            }
        }
        if is_silent(last, end.since(start)) {
            silences.push([last, None]);
        }
        silences
    })
}
