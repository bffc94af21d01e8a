//! Who owned each home: by what members log, and by a capture of what each gives the router.
//!
//! 1. dumpcap keeps the beginning of each packet of the homes' that the router gets, with the kernel's time. 2. A
//!    member logs what it is from when on, and in which epoch: no epoch has two owners. 3. Each packet came from a
//!    member that owned then; how long two of them gave packets at once is said.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use hawser_lab::hub::SITES;
use hawser_wire::Namespace;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::ipv6::{ALL, PREFIXES};
use crate::world::{HOMES, MEMBERS};

/// A clock that is set in a test jumps by this (`clocks`): far beyond any time that a log tells of, so that each line's
/// true time is known. In seconds.
pub const JUMP_S: i64 = 400 * 86_400;
/// From a claim to its line in the log, and back: routes are announced between the two.
const LINE_LATE_S: f64 = 0.25;
/// ICMP's number (IANA, Protocol Numbers), where no other packet is quoted.
const ICMP: &str = "1";
/// For so long after a new owner's first packet old ones' are looked for: nobody is an owner for a shorter time.
const AFTER_S: f64 = 1.0;

/// A capture under way. One owner.
pub struct Capture {
    dumpcap: Child,
    file: PathBuf,
}

/// What a member said it is, from a time on (seconds since 1970): the owner in an epoch, or not.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Said {
    at: f64,
    owner: Option<u64>,
}

/// A packet that a member gave the router. Plain data.
#[derive(Clone, Copy, Debug)]
struct Packet {
    /// Seconds since 1970.
    at: f64,
    member: usize,
    home: usize,
    is_ping: bool,
}

/// What logs and packets say of a home, or of both. Plain data.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Owned {
    /// Epochs that had an owner so far: none had two.
    pub epochs: usize,
    /// Packets of the capture: each came from a member that owned.
    pub captured: usize,
    /// The longest that an old owner gave packets after a new one began.
    pub both_ms: f64,
    /// The longest that the router got no ping of each home: a gap of answers that is not in it arose on the way back.
    pub pings_up_ms: [f64; 2],
}

impl Capture {
    /// Returns when it captures.
    pub fn start(router: &Namespace, folder: &Path, members: &[&str]) -> Self {
        let file = folder.join("owners.pcapng");
        let mut command = router.command("dumpcap");
        // What stands before the first interface is for all of them.
        let homes = format!("ip src {} or ip src {} or src net {ALL}", SITES[0], SITES[1]);
        command.args(["-q", "-s", "64", "-f", &homes, "-w"]).arg(&file);
        command.args(members.iter().flat_map(|name| ["-i", name]));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut dumpcap = child.expect("run dumpcap (package tshark; `make tools` installs it)");
        let mut said = BufReader::new(dumpcap.stderr.take().expect("it is piped"));
        let mut line = String::new();
        while !line.starts_with("File:") {
            line.clear();
            assert!(said.read_line(&mut line).expect("text") > 0, "dumpcap ended");
        }
        // It goes on speaking, and is not listened to: the pipe has room for that.
        dumpcap.stderr = Some(said.into_inner());
        Self { dumpcap, file }
    }

    /// Step 3, with step 2, of each home: asserts it.
    pub fn finish(mut self, logs: &[String]) -> Owned {
        kill_process(Pid::from_child(&self.dumpcap), Signal::INT).expect("it can be signalled");
        assert!(self.dumpcap.wait().expect("it ends").success(), "dumpcap failed");
        let packets = packets(&self.file);
        let homes = [0, 1].map(|home| packets.iter().filter(|packet| packet.home == home).collect::<Vec<_>>());
        let [one, other] = [0, 1].map(|home| judged(HOMES[home], &homes[home], logs));
        Owned {
            epochs: one.epochs + other.epochs,
            captured: one.captured + other.captured,
            both_ms: one.both_ms.max(other.both_ms),
            pings_up_ms: homes.map(|of_it| millis(without_ping(&of_it))),
        }
    }
}

/// Asserts that each of a home's packets came from an owner, by the members' logs.
fn judged(home: &str, packets: &[&Packet], logs: &[String]) -> Owned {
    let said: Vec<Vec<Said>> = logs.iter().map(|log| lines(log, home)).collect();
    for &&Packet { at, member, .. } in packets {
        let (name, said) = (MEMBERS[member], &said[member]);
        assert!(owned(said, at), "{name} gave a packet of {home}'s at {at}, and owned nothing: {said:?}");
    }
    let (epochs, both_ms) = (epochs(&said), millis(both(packets)));
    Owned { epochs, captured: packets.len(), both_ms, ..Owned::default() }
}

/// Of seconds, to the hundredth.
fn millis(seconds: f64) -> f64 {
    (seconds * 1e5).round() / 1e2
}

impl Drop for Capture {
    fn drop(&mut self) {
        // It has ended already, unless a test failed.
        let _ = self.dumpcap.kill();
        let _ = self.dumpcap.wait();
    }
}

/// Step 2: what a member's log says of a home.
fn lines(log: &str, home: &str) -> Vec<Said> {
    let of_it = format!("peer={home} ");
    let announced = log.lines().filter(|line| line.contains("announced so") && line.contains(&of_it));
    let said = announced.map(|line| {
        let (stamp, _) = line.split_once(' ').expect("a line begins with its time");
        let at = true_time(OffsetDateTime::parse(stamp, &Rfc3339).expect("a time"));
        let epoch = || {
            let (_, epoch) = line.split_once("epoch=").expect("an owner has an epoch");
            epoch.split(' ').next().and_then(|epoch| epoch.parse().ok()).expect("a number")
        };
        Said { at, owner: line.contains("role=\"owner\"").then(epoch) }
    });
    said.collect()
}

/// Seconds since 1970, by this machine's clock.
fn true_time(stamp: OffsetDateTime) -> f64 {
    let jumps = ((stamp - OffsetDateTime::now_utc()).as_seconds_f64() / JUMP_S as f64).round();
    stamp.unix_timestamp_nanos() as f64 / 1e9 - jumps * JUMP_S as f64
}

/// How many epochs had an owner: asserts that none had two.
fn epochs(said: &[Vec<Said>]) -> usize {
    let mut owners = BTreeMap::new();
    for (member, all) in said.iter().enumerate() {
        for epoch in all.iter().filter_map(|one| one.owner) {
            let first = *owners.entry(epoch).or_insert(member);
            assert_eq!(MEMBERS[first], MEMBERS[member], "epoch {epoch} has two owners");
        }
    }
    owners.len()
}

/// Whether a member was an owner within `LINE_LATE_S` of a time.
fn owned(said: &[Said], at: f64) -> bool {
    let became = said.partition_point(|one| one.at <= at + LINE_LATE_S);
    let was = said.partition_point(|one| one.at <= at - LINE_LATE_S).saturating_sub(1);
    said[was..became].iter().any(|one| one.owner.is_some())
}

/// Packets in their order.
fn packets(file: &Path) -> Vec<Packet> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(file).args(["-T", "fields"]);
    let fields = ["frame.time_epoch", "frame.interface_name", "ip.src", "ipv6.src", "ip.proto"];
    command.args(fields.iter().flat_map(|field| ["-e", field]));
    let out = command.stdin(Stdio::null()).output().expect("run tshark (package tshark)");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).expect("text");
    let mut all: Vec<Packet> = text.lines().map(packet).collect();
    all.sort_by(|one, other| one.at.total_cmp(&other.at));
    all
}

fn packet(line: &str) -> Packet {
    let mut fields = line.split('\t');
    let mut next = || fields.next().expect("five fields");
    let (at, name, ipv4, ipv6, protocol) = (next(), next(), next(), next(), next());
    // Of what an error of ICMP quotes, the source comes second.
    let source: IpAddr =
        [ipv4, ipv6].concat().split(',').next().and_then(|source| source.parse().ok()).expect("a source");
    let is_of = |home: &usize| match source {
        IpAddr::V4(address) => address == SITES[*home],
        IpAddr::V6(address) => PREFIXES[*home].contains(&address),
    };
    Packet {
        at: at.parse().expect("a time"),
        member: MEMBERS.iter().position(|member| *member == name).expect("a member's interface"),
        home: (0..HOMES.len()).find(is_of).expect("a home's address"),
        is_ping: protocol == ICMP,
    }
}

/// The longest from one ping to the next, in seconds.
fn without_ping(packets: &[&Packet]) -> f64 {
    let pings: Vec<f64> = packets.iter().filter(|packet| packet.is_ping).map(|packet| packet.at).collect();
    pings.windows(2).map(|two| two[1] - two[0]).fold(0.0, f64::max)
}

/// The longest that an old owner gave packets after a new one's first: in seconds.
fn both(packets: &[&Packet]) -> f64 {
    let (mut longest, mut begun) = (0.0_f64, f64::NEG_INFINITY);
    for pair in packets.windows(2).filter(|pair| pair[0].member != pair[1].member) {
        // Those of both take turns then.
        if pair[1].at < begun + AFTER_S {
            longest = longest.max(pair[0].at - begun);
            continue;
        }
        begun = pair[1].at;
    }
    longest
}
