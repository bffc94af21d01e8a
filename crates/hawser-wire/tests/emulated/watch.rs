//! Packets that are looked at, and who lives in a namespace. Needs root.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use hawser_wire::traffic::Ping;
use hawser_wire::{Direction, EmulatedLink, LinkSpec, Look, Watch, Whose, inhabitants};

use crate::common::{ADDRESS_B, between, ms};

/// An IPv4 header's protocol, and that of ICMP. Source: RFC 791 section 3.1, RFC 792.
const PROTOCOL: usize = 9;
const ICMP: u8 = 1;
/// How long a process may take to be there, or to be gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// Counts ICMP packets, and the longest that is seen of any.
#[derive(Debug, Default)]
struct Pings {
    count: usize,
    longest: usize,
}

impl Look for Pings {
    fn look(&mut self, packet: &[u8]) {
        self.longest = self.longest.max(packet.len());
        self.count += usize::from(packet[0] >> 4 == 4 && packet[PROTOCOL] == ICMP);
    }
}

#[test]
fn every_packet_of_a_link_without_ethernet_is_seen_from_its_ip_header_on() {
    let (a, b) = between("watch");
    let direction = Direction::shaped(10.0, ms(1), ms(100));
    let _link = EmulatedLink::new(LinkSpec::symmetric("watched", a.clone(), b, &direction)).expect("a link");
    let watch = Watch::start(&a.namespace, Pings::default()).expect("a packet socket (needs root)");
    let destination = ADDRESS_B.parse().expect("an address");
    let ping = Ping { from: a.namespace.clone(), destination, interval: ms(10), duration: ms(200) };
    let report = ping.run().expect("it runs");
    let Pings { count, longest } = watch.finish().expect("none was dropped");
    let answered = report.echoes.len();
    assert!(answered > 5, "{answered}");
    assert!((2 * answered..=2 * answered + 2 * report.lost() + 2).contains(&count), "{count} of {answered} echoes");
    assert!((28..=128).contains(&longest), "{longest}");
}

fn sleeper(namespace: &hawser_wire::Namespace) -> Child {
    namespace.command("sleep").arg("60").stdin(Stdio::null()).spawn().expect("sleep is a command")
}

#[test]
fn a_process_in_a_namespace_of_ours_lives_there_and_this_one_does_not() {
    let (a, _b) = between("lives");
    let mut child = sleeper(&a.namespace);
    let pid = rustix::process::Pid::from_child(&child);
    let is_there = || inhabitants(Whose::Own).expect("it is looked for (needs root)").contains(&pid);
    let late = Instant::now() + PATIENCE;
    while !is_there() && Instant::now() < late {
        std::thread::sleep(ms(5));
    }
    let (own, gone) = (inhabitants(Whose::Own), inhabitants(Whose::Gone));
    let was_there = is_there();
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert!(was_there);
    assert!(!own.expect("as before").contains(&rustix::process::getpid()));
    assert!(!gone.expect("as before").contains(&pid), "its namespace's owner lives");
    assert!(!is_there());
}
