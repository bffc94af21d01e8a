//! Strangers that open connections, with TLS or without, by the thousand; and a portal with few descriptors: for as
//! long as is asked.
//!
//! 1. [`flood`] opens connections at a rate, and says a hello on each.
//! 2. [`by_the_thousand`] and [`few_descriptors`] do so to a portal under traffic, and look at its threads and its
//!    peer.

use std::collections::VecDeque;
use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hawser_portal::api::PathState;
use serde_json::json;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::bystander::{Attack, Bystander};
use crate::lab::{Lab, Portal, ms, parse, states};

/// Where the remote portal listens, as `SocketAddr` has it.
const LISTENS: &str = "198.51.100.7:4920";
/// Connections a second, each with a TLS hello.
const HELLOS: u64 = 2_000;
/// How long a connection is held open for its answer.
const PATIENCE: Duration = Duration::from_millis(250);
/// A thread that spins has all of a processor; ours have far less to do.
pub const BUSY: f64 = 0.8;
/// Linux counts the time of processes in hundredths of a second (USER_HZ).
const TICKS: f64 = 100.0;

/// A lab whose remote portal listens to streams, too.
fn lab(tag: &str) -> Lab {
    let lab = Lab::new(tag, "");
    let all = "listen = [\"0.0.0.0:4920\"]\ntransports = [\"udp\", \"tcp\"]\ntls = true";
    lab.edit("remote.toml", "listen = [\"0.0.0.0:4920\"]", all);
    lab
}

/// The least that a server of TLS 1.3 answers with a signature (RFC 8446 section 4.1.2): one cipher, one group, one
/// algorithm.
fn hello() -> Vec<u8> {
    let extensions = [
        &[0, 43, 0, 3, 2, 3, 4][..],
        &[0, 10, 0, 4, 0, 2, 0, 29],
        &[0, 13, 0, 4, 0, 2, 4, 3],
        &[0, 51, 0, 38, 0, 36, 0, 29, 0, 32],
        &[9; 32],
    ]
    .concat();
    let length = u16::try_from(extensions.len()).expect("short").to_be_bytes();
    let body = [&[3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0], &length, &extensions].concat();
    let length = u8::try_from(body.len()).expect("short");
    [&[22, 3, 1, 0, length + 4, 1, 0, 0, length][..], &body].concat()
}

/// Opens `rate` connections a second for that time and sends a hello on each; gives how many were opened and how many
/// answered.
fn flood(to: SocketAddr, rate: u64, time: Duration) -> (u64, u64) {
    let (hello, to) = (hello(), SockAddr::from(to));
    let (start, mut begun, mut answered) = (Instant::now(), 0, 0);
    let mut waiting: VecDeque<(Instant, Socket, bool)> = VecDeque::new();
    while start.elapsed() < time {
        while begun < start.elapsed().as_micros() as u64 * rate / 1_000_000 {
            let socket = Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), Some(Protocol::TCP)).expect("a socket");
            // Without TIME-WAIT, so that ports do not run out.
            socket.set_linger(Some(Duration::ZERO)).expect("an option");
            let _ = socket.connect(&to);
            waiting.push_back((Instant::now(), socket, false));
            begun += 1;
        }
        for (_, socket, said) in &mut waiting {
            *said = *said || socket.send(&hello).is_ok();
        }
        while waiting.front().is_some_and(|(since, ..)| since.elapsed() > PATIENCE) {
            let (_, socket, _) = waiting.pop_front().expect("it is there");
            answered += u64::from(socket.recv(&mut [std::mem::MaybeUninit::uninit(); 64]).is_ok_and(|len| len > 0));
        }
        std::thread::sleep(ms(2));
    }
    (begun, answered)
}

/// Seconds of processor time of each thread so far, with its name.
pub fn threads(portal: &Portal) -> Vec<(String, f64)> {
    let tasks = fs::read_dir(format!("/proc/{}/task", portal.pid())).expect("its threads");
    let stat = |task: fs::DirEntry| fs::read_to_string(task.path().join("stat")).unwrap_or_default();
    let time = |stat: String| {
        let (name, rest) = stat.rsplit_once(") ")?;
        let words: Vec<&str> = rest.split(' ').collect();
        let ticks = |at: usize| words.get(at)?.parse::<f64>().ok();
        Some((name.to_owned(), (ticks(11)? + ticks(12)?) / TICKS))
    };
    tasks.filter_map(Result::ok).map(stat).filter_map(time).collect()
}

/// The most that a thread had of a processor since then.
pub fn busiest(portal: &Portal, before: &[(String, f64)], since: Instant) -> f64 {
    let grown = |(name, time): &(String, f64)| {
        time - before.iter().find(|(other, _)| other == name).map_or(0.0, |(_, time)| *time)
    };
    threads(portal).iter().map(grown).fold(0.0, f64::max) / since.elapsed().as_secs_f64()
}

/// Hellos for a spell.
pub fn by_the_thousand(spell: Duration) -> Attack {
    let lab = lab("hello");
    let (_local, remote) = lab.start_both();
    let peace = Bystander::watch(&lab, spell);
    let (start, before, from) = (Instant::now(), threads(&remote), lab.local.clone());
    let stranger = std::thread::spawn(move || {
        from.run(|| flood(parse(LISTENS), HELLOS, spell)).expect("the namespace can be entered")
    });
    let attacked = Bystander::watch(&lab, spell);
    let (begun, answered) = stranger.join().expect("the stranger");
    let busy = busiest(&remote, &before, start);
    let refused = remote.wait_for("the others to be counted", |status| status.drops["connections_refused"] > 0);
    let refused = refused.drops["connections_refused"];
    let figures = json!({ "hellos": begun, "answered": answered, "refused": refused, "busiest_thread": busy });
    let mut attack = Attack::of(&peace, &attacked, figures);
    attack.must(begun > HELLOS && answered > 0, "the stranger was not heard");
    attack.must(busy < BUSY, "a thread spins");
    attack
}

/// 200 connections at any time, each there for a quarter of a second, to a portal that may have this many descriptors.
pub fn few_descriptors(descriptors: u32, spell: Duration) -> Attack {
    let lab = lab("few");
    let limit = format!("ulimit -n {descriptors}; exec \"$@\"");
    let (remote, local) = (lab.start_by("remote", &["sh", "-c", &limit, "sh"]), lab.start("local"));
    local.wait_for("all paths to be active", |status| states(status) == [PathState::Active; 2]);
    let peace = Bystander::watch(&lab, spell);
    let (start, before, from) = (Instant::now(), threads(&remote), lab.local.clone());
    let stranger = std::thread::spawn(move || {
        from.run(|| flood(parse(LISTENS), 800, spell)).expect("the namespace can be entered")
    });
    let attacked = Bystander::watch(&lab, spell);
    let asked = Instant::now();
    remote.wait_for("its status", |_| true);
    let waited = asked.elapsed();
    let (begun, answered) = stranger.join().expect("the stranger");
    let busy = busiest(&remote, &before, start);
    let figures = json!({ "descriptors": descriptors, "connections": begun, "answered": answered, "busiest_thread": busy, "status_ms": waited.as_millis() as u64 });
    let mut attack = Attack::of(&peace, &attacked, figures);
    attack.must(busy < BUSY, "a thread spins");
    attack.must(waited < Duration::from_secs(1), "the status is late");
    attack
}
