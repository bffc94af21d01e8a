//! Several peers of one portal: what one of them is, or does, is not the others' loss.
//!
//! The second peer lives in the local namespace, too, and has link `two`; the first has link `one`.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hawser_config::PrivateKey;
use hawser_core::handshake::{Identity, Initiator, Psk, TransportKeys};
use hawser_core::units::{PacketNumber, PathId, Random};
use hawser_core::wire::handshake::HandshakeIndex;
use hawser_core::wire::{
    CipherSet, DATA_HEADER_LEN, DataHeader, InstanceId, Offer, Protection, RepairFrame, SymbolNumber, TAG_LEN,
    TruncatedNumber, Writer,
};
use hawser_portal::api::PathState;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use serde_json::json;

use crate::SPELL;
use crate::bystander::{Attack, Bystander};
use crate::lab::{ENDPOINT, LOCAL, Lab, Portal, states};

/// What the narrow link carries, and what is left of it for inner packets: IPv4, UDP, and Hawser's 31 bytes.
const NARROW: u32 = 1_380;
const NARROW_INNER: u32 = NARROW - 28 - 31;
/// The second peer's inner address.
const AWAY: &str = "10.77.0.3";
/// Datagrams a second at first: each costs 17 to 40 µs where it is opened, as the machine is. Half more each second,
/// until the portal cannot serve them all; nobody can send the most.
const RATE: u64 = 40_000;
const RATE_MAX: u64 = 400_000;

/// A lab in which the first peer has one link, and the remote portal knows a second peer with this public key.
fn lab(tag: &str, away: &str) -> Lab {
    let lab = Lab::new(tag, "");
    lab.edit("local.toml", "[[link]]\nname = \"two\"\ninterface = \"two\"\n", "");
    let second = format!(
        "[[peer]]\nname = \"away\"\npublic_key = \"{away}\"\nallowed_ips = [\"{AWAY}/32\"]\n[[peer]]\nname = \"home\""
    );
    lab.edit("remote.toml", "[[peer]]\nname = \"home\"", &second);
    lab
}

#[test]
fn a_peer_behind_a_narrow_link_makes_nobody_elses_packets_smaller() {
    let key = PrivateKey::generate().expect("randomness");
    let lab = lab("narrow", &key.public().to_string());
    for namespace in [&lab.local, &lab.remote] {
        let set = namespace.command("ip").args(["link", "set", "two", "mtu", &NARROW.to_string()]).status();
        assert!(set.expect("ip runs").success());
    }
    lab.write("away.key", &key.to_base64());
    let local = std::fs::read_to_string(lab.path("local.toml")).expect("a configuration");
    let away = local.replace("local.", "away.").replace("\"one\"", "\"two\"").replace("10.77.0.1/32", "10.98.0.0/16");
    let away = away.replace("\"fd77::1/128\", \"10.99.0.0/16\"", "\"fd98:1::/64\"");
    let away = away.replace(
        "[tun]\naddresses = [\"10.77.0.2/24\", \"fd77::2/64\"]",
        &format!("[tun]\nname = \"hawser1\"\naddresses = [\"{AWAY}/32\"]"),
    );
    lab.write("away.toml", &away);
    let (remote, local) = (lab.start("remote"), lab.start("local"));
    let other = Portal::start(&lab.local, lab.path("").as_path(), "away");
    for portal in [&local, &other] {
        portal.wait_for("its path to be active", |status| states(status) == [PathState::Active]);
    }
    let shown = |question: &[&str]| {
        let output = lab.remote.command("ip").args(question).output().expect("ip runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let mtu = format!("mtu {NARROW_INNER}");
    let said = |lab_says: &dyn Fn() -> bool, what: &str| {
        let end = Instant::now() + Duration::from_secs(30);
        while !lab_says() {
            assert!(Instant::now() < end, "{what}; log of the remote portal:\n{}", remote.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    said(&|| shown(&["route", "get", AWAY]).contains(&mtu), "the narrow peer's route has its mtu");
    said(&|| shown(&["link", "show", "hawser0"]).contains("mtu 1441"), "the device has the other's");
    assert!(!shown(&["route", "get", LOCAL]).contains("mtu"), "{}", shown(&["route", "get", LOCAL]));
    // Whole packets of that size reach the first peer.
    let ping = ["ping", "-c", "1", "-W", "5", "-M", "do", "-s", "1413", LOCAL];
    let reached = lab.remote.command(ping[0]).args(&ping[1..]).output().expect("ping runs");
    assert!(reached.status.success(), "{}", String::from_utf8_lossy(&reached.stdout));
}

/// A peer that says under its keys what costs most.
struct Worst {
    socket: UdpSocket,
    keys: TransportKeys,
    /// The first that its side opens (docs/wire.md).
    path: PathId,
    number: u64,
}

struct Chance(ChaCha8Rng);

impl Random for Chance {
    fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

impl Worst {
    /// Has done its handshake with the portal from the calling thread's namespace.
    fn handshake(ours: &Identity, theirs: [u8; 32]) -> Self {
        let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
        socket.connect((ENDPOINT, 4_920)).expect("an address");
        socket.set_read_timeout(Some(Duration::from_secs(1))).expect("a timeout");
        let mut rng = Chance(ChaCha8Rng::seed_from_u64(8));
        let ciphers = CipherSet::for_machine(true);
        let offer = Offer { protection: Protection::Encrypt, ciphers, instance: InstanceId(1) };
        let (index, theirs) = (HandshakeIndex(1), hawser_core::handshake::PublicKey(theirs));
        let started = Initiator::start(ours, &theirs, Psk::default(), offer, index, None, &mut rng);
        let (mut initiator, message) = started.expect("a handshake");
        socket.send(&message).expect("it is sent");
        let mut answer = [0; 2_000];
        let len = socket.recv(&mut answer).expect("the portal answers");
        let keys = initiator.on_response(&answer[..len]).expect("keys").keys;
        let path = PathId(u32::from(ours.public().0 > theirs.0));
        Worst { socket, keys, path, number: 0 }
    }

    /// A repair that nobody asked for, of as many packets as there may be.
    fn say(&mut self) {
        let mut datagram = [0; 1_400];
        let mut out = Writer::new(&mut datagram[DATA_HEADER_LEN..1_400 - TAG_LEN]);
        let symbol = [self.number as u8; 1_300];
        let (first, count, row) =
            (SymbolNumber((self.number * 3) as u16), RepairFrame::MAX_COUNT, (self.number % 8) as u8);
        RepairFrame { first, count, row, symbol: &symbol }.encode(&mut out).expect("room");
        let len = DATA_HEADER_LEN + out.len() + TAG_LEN;
        let (path, number) = (self.path, PacketNumber(self.number));
        let header = DataHeader { label: self.keys.send.label(path), number: TruncatedNumber::of(number) };
        datagram[..DATA_HEADER_LEN].copy_from_slice(&header.encode());
        self.keys.send.seal(path, number, &mut datagram[..len]).expect("room");
        self.number += 1;
        // A full socket is the network's loss.
        let _ = self.socket.send(&datagram[..len]);
    }
}

#[test]
fn a_peer_at_its_worst_leaves_the_others_nine_tenths() {
    let key = PrivateKey::generate().expect("randomness");
    let lab = lab("worst", &key.public().to_string());
    let (remote, local) = (lab.start("remote"), lab.start("local"));
    local.wait_for("its path to be active", |status| states(status) == [PathState::Active]);
    let peace = Bystander::watch(&lab, SPELL);
    let before = remote.wait_for("its status", |_| true).drops["time_share"];
    // Zero: it is over.
    let rate = Arc::new(AtomicU64::new(RATE));
    let (asked, from) = (Arc::clone(&rate), lab.local.clone());
    let theirs = PrivateKey::load(&lab.path("remote.key")).expect("a key").public();
    let stranger = std::thread::spawn(move || {
        from.run(|| {
            let mut worst = Worst::handshake(&Identity::new(*key.as_bytes()), *theirs.as_bytes());
            let (mut owed, mut last) = (0.0, Instant::now());
            loop {
                let rate = asked.load(Ordering::Relaxed) as f64;
                if rate == 0.0 {
                    return worst.number;
                }
                // What it could not send for ten milliseconds it never does.
                owed = (owed + last.elapsed().as_secs_f64() * rate).min(rate / 100.0);
                last = Instant::now();
                while owed >= 1.0 {
                    worst.say();
                    owed -= 1.0;
                }
                std::thread::sleep(Duration::from_micros(200));
            }
        })
    });
    while remote.wait_for("its status", |_| true).drops["time_share"] == before {
        std::thread::sleep(Duration::from_secs(1));
        let asked = rate.load(Ordering::Relaxed);
        assert!(asked < RATE_MAX, "{asked} datagrams a second are all served");
        rate.store(asked * 3 / 2, Ordering::Relaxed);
    }
    let attacked = Bystander::watch(&lab, SPELL);
    rate.store(0, Ordering::Relaxed);
    let sent = stranger.join().expect("the stranger").expect("the namespace can be entered");
    let drops = remote.wait_for("its status", |_| true).drops;
    Attack::of(&peace, &attacked, json!({ "sent": sent, "drops": drops })).assert();
}
