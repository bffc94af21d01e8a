//! A name server that says what a test wants, and a stub resolver that asks it.

use std::net::{IpAddr, UdpSocket};
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use hawser_wire::Namespace;

use super::{NAMED, PATIENCE};
use crate::answering::Answering;
use crate::home::Home;
use crate::lab::{ms, parse};

/// Where it is, in the world.
pub const NAME_SERVER: &str = "203.0.113.53";
/// The gateway, as devices in its LAN know it.
pub const GATEWAY: &str = "192.168.8.1";
const NAME: &str = "tv.example.test";

/// A name server that says what it is told to. Ends when it drops.
pub struct NameServer {
    pub says: Arc<Mutex<[IpAddr; 2]>>,
    _answering: Answering,
}

impl NameServer {
    pub fn start(world: &Namespace, ttl: u8) -> Self {
        let says = Arc::new(Mutex::new(NAMED.map(parse)));
        let said = Arc::clone(&says);
        let _answering = Answering::at(world, NAME_SERVER, move |question| {
            answer(question, *said.lock().expect("nobody panics"), ttl)
        });
        Self { says, _answering }
    }
}

/// An answer (RFC 1035 section 4.1) by one alias.
fn answer(question: &[u8], [v4, v6]: [IpAddr; 2], ttl: u8) -> Vec<u8> {
    const AAAA: u8 = 28;
    let kind = question[question.len() - 3];
    let mut said = question.to_vec();
    said[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, 2, 0, 0, 0, 0]);
    // The alias: a label before the name that was asked for, and the address of that.
    said.extend([0xc0, 12, 0, 5, 0, 1, 0, 0, 0, ttl, 0, 6, 3, b'c', b'd', b'n', 0xc0, 12]);
    let alias = u16::try_from(question.len() + 12).expect("a short question") | 0xc000;
    said.extend(alias.to_be_bytes());
    let octets = match if kind == AAAA { v6 } else { v4 } {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    said.extend([0, kind, 0, 1, 0, 0, 0, ttl, 0, octets.len() as u8]);
    said.extend(octets);
    said
}

/// Asks for the addresses of both IP versions, as a stub resolver does.
pub fn resolve(from: &Namespace, server: &str) {
    let socket = from.run(|| UdpSocket::bind("0.0.0.0:0")).expect("the namespace").expect("a socket");
    socket.set_read_timeout(Some(ms(500))).expect("a timeout");
    for kind in [1, 28] {
        let mut question = vec![0, kind, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in NAME.split('.') {
            question.push(u8::try_from(label.len()).expect("a short label"));
            question.extend(label.bytes());
        }
        question.extend([0, 0, kind, 0, 1]);
        let end = Instant::now() + PATIENCE;
        loop {
            socket.send_to(&question, (server, 53)).expect("it is sent");
            if socket.recv(&mut [0; 512]).is_ok() {
                break;
            }
            assert!(Instant::now() < end, "no answer");
        }
    }
}

/// dnsmasq(8) at the gateway's address in the LAN, which asks that name server, and puts what it says into these sets.
pub struct Dnsmasq(Child);

impl Dnsmasq {
    pub fn start(home: &Home, sets: &[String]) -> Self {
        let [v4, v6] = sets else { panic!("two sets: {sets:?}") };
        let table = "inet#hawser_hawser0_rules";
        let conf = home.path("dnsmasq.conf");
        let text = format!(
            "no-resolv\nno-hosts\nserver={NAME_SERVER}\nlisten-address={GATEWAY}\nbind-interfaces\nuser=root\n\
             pid-file=\nnftset=/example.test/4#{table}#{v4},6#{table}#{v6}\n"
        );
        std::fs::write(&conf, text).expect("a file");
        let child = home.local.command("dnsmasq").arg("--keep-in-foreground").arg("-C").arg(conf).spawn();
        Self(child.expect("run dnsmasq (dnsmasq-base; `make tools` installs it)"))
    }
}

impl Drop for Dnsmasq {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
