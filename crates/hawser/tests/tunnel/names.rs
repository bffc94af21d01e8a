//! Endpoints that are names, and a name server that says what the test wants.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hawser_portal::api::{PathState, Status};
use hawser_wire::{Moment, Namespace};

use crate::answering::Answering;
use crate::home::run;
use crate::lab::{self, ENDPOINT, LOCAL, Lab, Portal, ms, parse, paths, states};

/// What is promised: traffic on the new address within this time of the old one's end.
const MOVES_WITHIN: Duration = Duration::from_secs(10);
/// Where the remote portal is reached later.
const MOVED: &str = "198.51.100.8";
/// Where the name server is: the way there is the default route, which the tunnel takes.
pub const SERVER: &str = "203.0.113.53";
pub const NAME: &str = "hub.hawser.test";

/// A name server that has one address for every name, or none. Ends when it drops.
pub struct NameServer {
    says: Arc<AtomicU32>,
    asked: Arc<Mutex<Vec<String>>>,
    _answering: Answering,
}

impl NameServer {
    pub fn start(namespace: &Namespace, says: Ipv4Addr) -> Self {
        Self::start_at(namespace, SERVER, says)
    }

    /// The same at another address.
    pub fn start_at(namespace: &Namespace, address: &str, says: Ipv4Addr) -> Self {
        let (says, asked) = (Arc::new(AtomicU32::new(says.into())), Arc::<Mutex<Vec<String>>>::default());
        let (said, heard) = (Arc::clone(&says), Arc::clone(&asked));
        let _answering = Answering::at(namespace, address, move |question| {
            heard.lock().expect("nobody panicked").push(asked_name(question));
            answer(question, said.load(Ordering::Relaxed))
        });
        Self { says, asked, _answering }
    }

    /// How often it was asked for a name.
    pub fn count(&self, name: &str) -> usize {
        self.asked.lock().expect("nobody panicked").iter().filter(|asked| *asked == name).count()
    }

    fn say(&self, address: &str) {
        self.says.store(parse::<Ipv4Addr>(address).into(), Ordering::Relaxed);
    }
}

/// The name in a question (RFC 1035 section 4.1.2), in lower case: whoever asks may mix cases.
fn asked_name(question: &[u8]) -> String {
    let mut labels = Vec::new();
    let mut rest = &question[12..];
    while let Some((length, after)) = rest.split_first().filter(|(length, _)| **length > 0) {
        let (label, after) = after.split_at(usize::from(*length).min(after.len()));
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        rest = after;
    }
    labels.join(".")
}

/// The answer to a question (RFC 1035 section 4.1): one address of IPv4 that counts for a minute; 0 is no such name.
fn answer(question: &[u8], address: u32) -> Vec<u8> {
    const AAAA: u8 = 28;
    let is_v4 = question[question.len() - 3] != AAAA;
    let (code, count) = if address == 0 { (3, 0) } else { (0, u8::from(is_v4)) };
    let mut said = question.to_vec();
    said[2..8].copy_from_slice(&[0x81, 0x80 | code, 0, 1, 0, count]);
    said[8..12].fill(0);
    if count == 1 {
        said.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        said.extend(address.to_be_bytes());
    }
    said
}

/// A lab whose local portal knows the other by these endpoints, and sends everything by the tunnel.
pub fn lab(tag: &str, endpoints: &str) -> Lab {
    let lab = Lab::new(tag, "");
    lab.edit("local.toml", &format!("\"{ENDPOINT}:4920\""), endpoints);
    lab.edit("local.toml", "[tun]\n", "[tun]\ndefault_route = true\n");
    lab.edit("local.toml", "\"10.99.0.0/16\"", "\"0.0.0.0/0\"");
    run(&lab.local, "ip", "route add default via 192.0.2.2 dev two");
    run(&lab.remote, "ip", &format!("address add {SERVER}/32 dev lo"));
    std::fs::write(lab.path("resolv.conf"), format!("nameserver {SERVER}\n")).expect("a file");
    lab
}

/// A program that becomes another, for which the file is resolv.conf.
pub fn resolving_by(file: &Path) -> [String; 6] {
    let script = format!("mount --bind {} /etc/resolv.conf && exec \"$@\"", file.display());
    ["unshare", "-m", "sh", "-c", &script, "sh"].map(str::to_owned)
}

/// The local portal, which knows that name server alone.
pub fn start(lab: &Lab) -> Portal {
    let by = resolving_by(&lab.path("resolv.conf"));
    lab.start_by("local", &by.each_ref().map(String::as_str))
}

pub fn endpoints(status: &Status) -> Vec<&str> {
    paths(status).iter().filter_map(|path| path.endpoint.as_deref()).collect()
}

#[test]
fn a_download_follows_a_name_that_moves() {
    let lab = lab("names", &format!("\"{NAME}:4920\""));
    let server = NameServer::start(&lab.remote, parse(ENDPOINT));
    let (_remote, local) = (lab.start("remote"), start(&lab));
    let active = |status: &Status| states(status) == [PathState::Active; 2];
    let status = local.wait_for("all paths to be active", active);
    assert_eq!(endpoints(&status), [format!("{ENDPOINT}:4920").as_str(); 2]);

    run(&lab.local, "ip", &format!("route add {MOVED}/32 via 192.0.1.2 dev one"));
    run(&lab.remote, "ip", &format!("address add {MOVED}/32 dev lo"));
    let download = lab::transfer(&lab.remote, &lab.local, parse(&format!("{LOCAL}:5001")), Duration::from_secs(60));
    let download = download.start().expect("a connection");
    std::thread::sleep(ms(1_000));
    server.say(MOVED);
    run(&lab.remote, "ip", &format!("address delete {ENDPOINT}/32 dev lo"));
    let end_of_old = Moment::now();
    let moved = format!("{MOVED}:4920");
    let status = local.wait_for("the new address", |status| active(status) && endpoints(status) == [&moved; 2]);
    assert_eq!(status.peers[0].names[0].addresses, [parse::<std::net::IpAddr>(MOVED)], "the old one is let go");
    let followed = Moment::now();
    std::thread::sleep(ms(1_000));
    let end = Moment::now();
    download.stop();
    let got = download.finish().expect("a transfer");
    let gap = got.longest_gap(end_of_old, end);
    println!("moved after {:?}, longest gap {gap:?}", followed.since(end_of_old));
    assert!(gap < MOVES_WITHIN, "{gap:?}; log:\n{}", local.log());
    assert!(got.bytes_between(followed, end) > 0, "it goes on");
}

#[test]
fn a_name_that_does_not_resolve_yet_keeps_nobody_from_starting_and_the_next_endpoint_is_used_meanwhile() {
    let lab = lab("unnamed", &format!("\"{NAME}:4920\", \"{MOVED}:4920\""));
    run(&lab.local, "ip", &format!("route add {MOVED}/32 via 192.0.1.2 dev one"));
    run(&lab.remote, "ip", &format!("address add {MOVED}/32 dev lo"));
    let server = NameServer::start(&lab.remote, Ipv4Addr::UNSPECIFIED);
    let (_remote, local) = (lab.start("remote"), start(&lab));
    let by = |address: &str| {
        let expect = format!("{address}:4920");
        move |status: &Status| states(status) == [PathState::Active; 2] && endpoints(status) == [&expect; 2]
    };
    local.wait_for("the address", by(MOVED));
    let status = local.wait_for("an answer", |status| status.peers[0].names[0].error.is_some());
    let error = status.peers[0].names[0].error.as_deref();
    assert!(error.is_some_and(|error| error.contains("non-existent domain")), "{error:?}");
    server.say(ENDPOINT);
    local.wait_for("the name, which is preferred", by(ENDPOINT));
}
