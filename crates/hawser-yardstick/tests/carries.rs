//! Two yardsticks carry a stream and a ping. Needs root.

use std::net::IpAddr;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use hawser_wire::traffic::{Ping, TcpTransfer};
use hawser_wire::{End, Namespace, veth};

/// Outside addresses of both, and inside ones.
const OUTER: [&str; 2] = ["10.9.0.1", "10.9.0.2"];
const INNER: [&str; 2] = ["10.8.0.1", "10.8.0.2"];
/// What a stream gets at least: a tenth of what two busy cores do.
const LEAST_MBPS: f64 = 100.0;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A process of ours. Killed on drop.
struct Yardstick(Child);

impl Drop for Yardstick {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(namespaces: &[Namespace; 2], own: usize, cipher: &str, secret: &str) -> Yardstick {
    let other = 1 - own;
    let mut command: Command = namespaces[own].command(env!("CARGO_BIN_EXE_yardstick"));
    command.args(["--tun", "ys0", "--role", ["local", "remote"][own], "--cipher", cipher, "--secret", secret]);
    command.args(["--bind", &format!("{}:4921", OUTER[own]), "--peer", &format!("{}:4921", OUTER[other])]);
    let running = Yardstick(command.spawn().expect("it starts"));
    let late = Instant::now() + ms(5000);
    while let Err(error) = namespaces[own].set_up("ys0") {
        assert!(Instant::now() < late, "{error}");
        std::thread::sleep(ms(5));
    }
    let address = format!("{}/24", INNER[own]).parse().expect("an address");
    namespaces[own].add_address("ys0", address).expect("it is taken");
    running
}

fn pair() -> [Namespace; 2] {
    let made = |tag| Namespace::new(tag).expect("a namespace is made (these tests need root)");
    let namespaces = [made("ys-local"), made("ys-remote")];
    let end = |own: usize| End::new(&namespaces[own], "link0", &[&format!("{}/24", OUTER[own])]);
    veth(&end(0), &end(1), 1500).expect("they are joined");
    for namespace in &namespaces {
        namespace.set_plain_packets("link0").expect("single packets");
    }
    namespaces
}

fn ping(namespaces: &[Namespace; 2]) -> Ping {
    let destination: IpAddr = INNER[1].parse().expect("an address");
    Ping { from: namespaces[0].clone(), destination, interval: ms(5), duration: ms(200) }
}

#[test]
fn a_stream_and_a_ping_cross_with_either_cipher() {
    for cipher in ["aes-128-gcm", "chacha20-poly1305"] {
        let namespaces = pair();
        let _both = [start(&namespaces, 0, cipher, "one"), start(&namespaces, 1, cipher, "one")];
        let report = ping(&namespaces).run().expect("it runs");
        assert!(report.lost() <= 2, "{} echoes lost with {cipher}", report.lost());
        let [from, to] = INNER.map(|address| address.parse::<IpAddr>().expect("an address"));
        let stream = TcpTransfer::cubic((&namespaces[0], from), (&namespaces[1], (to, 5001).into()), ms(1500));
        let got = stream.run().expect("it runs");
        let rate = got.mbps_between(got.start() + ms(500), got.start() + ms(1500));
        assert!(rate > LEAST_MBPS, "{rate} Mbit/s with {cipher}");
    }
}

#[test]
fn nothing_crosses_between_strangers() {
    let namespaces = pair();
    let _both = [start(&namespaces, 0, "aes-128-gcm", "one"), start(&namespaces, 1, "aes-128-gcm", "other")];
    let report = ping(&namespaces).run().expect("it runs");
    assert!(report.echoes.is_empty(), "{:?}", report.echoes);
}
