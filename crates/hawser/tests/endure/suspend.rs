//! A machine that is suspended to memory and wakes, with a portal on it: the local one, as of a laptop, and the remote
//! one.
//!
//! ```text
//!   the host's namespace, with one portal              the guest (QEMU), with the other
//!     one  192.0.1.x ------------------------------------ one
//!     two  192.0.2.x ------------------------------------ two
//! ```
//! 1. The guest takes the place of one of the lab's hosts, with its addresses, routes, keys and configuration.
//! 2. A ping by the host, a stream that the guest sends back, and one that the guest writes, all through the tunnel.
//! 3. It sleeps: for as long as a portal is stopped elsewhere, and for longer than keys last (docs/security.md).
//! 4. What is on it goes on: datagrams and what it sends within a second. What the host's own TCP sends goes on when
//!    its timeout ends, which has doubled while nothing passed.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hawser_portal::api::PathState;
use hawser_wire::traffic::Ping;
use hawser_wire::{Moment, Namespace};
use serde_json::{Value, json};

use crate::faults::NAMES;
use crate::figures;
use crate::flows::{Heard, Tcp, lock};
use crate::guest::{Guest, Slept};
use crate::lab::{ENDPOINT, LINKS, LOCAL, Lab, PATIENCE, Portal, REMOTE, ms, parse, states};

/// How long it sleeps: as long as portals are stopped, and beyond the keys' end (180 s, docs/security.md).
const SLEEPS: [Duration; 2] = [Duration::from_secs(20), Duration::from_secs(200)];
/// How soon all is back (docs/results/endurance.md).
const BACK: Duration = Duration::from_secs(1);
/// From one request of the ping to the next; the rate of the stream that comes back; before, and after.
const PING: Duration = Duration::from_millis(20);
const STREAM_MBPS: u64 = 1;
const PEACE: Duration = Duration::from_secs(3);
const AFTER: Duration = Duration::from_secs(5);
/// Ports: the guest sends back what comes there; the host hears the guest's stream there.
const ECHOING: u16 = 6_002;
const HEARING: u16 = 6_003;
/// What the guest tells whoever listens: a numbered line each 20 ms.
const TALK: &str = "i=0; while :; do echo $i; i=$((i+1)); usleep 20000; done";

/// The guest in the place of one side of the lab, and its flows.
struct Place {
    guest: Guest,
    lab: Lab,
    side: usize,
}

impl Place {
    /// Step 1.
    fn new(side: usize) -> Self {
        let lab = Lab::new("suspend", "");
        let here = [&lab.remote, &lab.local][side];
        LINKS.iter().for_each(|link| here.delete_interface(link).expect("it can be deleted"));
        let program = lab.path("hawser");
        let stripped = Command::new("strip").arg("-o").arg(&program).arg(env!("CARGO_BIN_EXE_hawser")).status();
        assert!(stripped.expect("run strip (binutils)").success());
        let name = NAMES[side];
        let own = [program.clone(), lab.path(&format!("{name}.toml")), lab.path(&format!("{name}.key"))];
        let guest = Guest::start(here, &[own.as_slice(), &libraries(&program)].concat());
        let mut place = Self { guest, lab, side };
        place.join();
        place
    }

    /// The host's namespace.
    fn here(&self) -> &Namespace {
        [&self.lab.remote, &self.lab.local][self.side]
    }

    /// Both links' ends have the lab's addresses, and the local side its routes to the remote portal.
    fn join(&mut self) {
        let (guest, host) = [(1, 2), (2, 1)][self.side];
        for (number, link) in LINKS.iter().enumerate() {
            let (net, here) = (number + 1, self.here().clone());
            here.set_up(link).expect("it comes up");
            for address in [format!("192.0.{net}.{host}/24"), format!("fd00:{net}::{host}/64")] {
                here.add_address(link, parse(&address)).expect("an address");
            }
            self.guest.run(&format!("ip addr add 192.0.{net}.{guest}/24 dev {link}; ip link set {link} up"));
            if self.side == 0 {
                let to = [ENDPOINT, "198.51.100.0/24"][number];
                self.guest.run(&format!("ip route add {to} via 192.0.{net}.2 dev {link}"));
            } else {
                here.set_rp_filter(link, hawser_wire::RpFilter::Off).expect("a sysctl");
                self.lab.route(link);
            }
        }
        if self.side == 1 {
            self.guest.run(&format!("ip addr add {ENDPOINT}/32 dev lo"));
        }
    }

    /// Starts the guest's portal.
    fn start(&mut self) {
        let (program, name) = (self.lab.path("hawser"), NAMES[self.side]);
        let file = self.lab.path(&format!("{name}.toml"));
        self.guest.run(&format!("{} up -c {} 2>/tmp/log & echo $! >/tmp/pid", program.display(), file.display()));
    }

    /// Until the host's portal has both paths.
    fn wait_for_paths(&mut self, portal: &Portal) {
        let end = Instant::now() + PATIENCE;
        while portal.status().is_none_or(|status| states(&status) != [PathState::Active; 2]) {
            assert!(
                Instant::now() < end,
                "no paths; in the guest:\n{}",
                self.guest.run("ip addr; ip route; cat /tmp/log")
            );
            std::thread::sleep(ms(50));
        }
    }

    /// Ends it.
    fn stop(&mut self) {
        self.guest.run("kill $(cat /tmp/pid); while [ -e /proc/$(cat /tmp/pid)/exe ]; do usleep 50000; done");
    }

    /// What a portal could leave behind.
    fn traces(&mut self) -> String {
        self.guest
            .run("ls /sys/class/net; ip -o -4 addr; ip route; ip rule; ip -6 rule; find /run/hawser -type f -size +0 2>/dev/null")
    }
}

/// The libraries that a program is linked with.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let output = Command::new("ldd").arg(program).output().expect("run ldd");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let paths = text.split_whitespace().filter(|word| word.starts_with('/'));
    paths.map(PathBuf::from).collect()
}

/// Step 2: what passes between host and guest.
struct Talk {
    echoed: Tcp,
    told: Arc<Mutex<Heard>>,
}

impl Talk {
    fn start(place: &mut Place) -> Self {
        let [near, far] = [[REMOTE, LOCAL], [LOCAL, REMOTE]][place.side];
        place.guest.run(&format!("nc -ll -p {ECHOING} -e cat </dev/null >/dev/null 2>&1 &"));
        let at = SocketAddr::from(([0, 0, 0, 0], HEARING));
        let listener = place.here().run(|| TcpListener::bind(at)).expect("entered").expect("the port is free");
        place.guest.run(&format!("({TALK} | nc {near} {HEARING}) </dev/null >/dev/null 2>&1 &"));
        let (stream, told) = (listener.accept().expect("it accepts").0, Heard::new());
        let hearing = Arc::clone(&told);
        std::thread::spawn(move || hear_lines(stream, &hearing));
        let to = SocketAddr::new(parse(far), ECHOING);
        let near = place.here().run(|| TcpStream::connect(to)).expect("entered").expect("it connects");
        let far = near.try_clone().expect("a descriptor");
        Self { echoed: Tcp::between(near, far, STREAM_MBPS), told }
    }
}

/// Each line must be the next number.
fn hear_lines(stream: TcpStream, heard: &Mutex<Heard>) {
    for (number, line) in BufReader::new(stream).lines().map_while(Result::ok).enumerate() {
        let mut heard = lock(heard);
        heard.hear(line.len());
        if line != number.to_string() {
            heard.wrong = Some(format!("line {number} is {line:?}"));
        }
    }
}

/// Until a flow has been heard after a moment.
fn back(heard: &Mutex<Heard>, after: Moment, limit: Duration) -> Option<Duration> {
    let end = Instant::now() + limit;
    while Instant::now() < end {
        let back = lock(heard).back(after);
        if back.is_some() {
            return back;
        }
        std::thread::sleep(ms(5));
    }
    None
}

/// Steps 2 to 4, with one length.
fn sleeps(place: &mut Place, talk: &Talk, length: Duration, misses: &mut Vec<String>) -> Value {
    let destination = parse([LOCAL, REMOTE][place.side]);
    let ping = Ping { from: place.here().clone(), destination, interval: PING, duration: PEACE + length + PATIENCE };
    let ping = ping.start().expect("a ping");
    std::thread::sleep(PEACE);
    let Slept { asleep, woken, awake } = place.guest.sleep(length);
    let told = back(&talk.told, awake, PATIENCE);
    let echoed = back(&talk.echoed.heard, awake, length + BACK);
    std::thread::sleep(AFTER);
    ping.stop();
    let report = ping.finish().expect("a report");
    let heard = report.echoes.iter().map(|echo| echo.sent + echo.round_trip).find(|at| *at > awake);
    let pinged = heard.map(|at| at - awake);
    let case = format!("{} asleep for {length:?}", NAMES[place.side]);
    for (name, back) in [("the ping", pinged), ("what the guest sends", told)] {
        if back.is_none_or(|back| back > BACK) {
            misses.push(format!("{case}: {name} is back after {back:?}"));
        }
    }
    if echoed.is_none() {
        misses.push(format!("{case}: what the host sends is not back"));
    }
    for (name, heard) in [("told", &talk.told), ("echoed", &talk.echoed.heard)] {
        misses.extend(lock(heard).wrong.take().map(|wrong| format!("{case}: {name}: {wrong}")));
    }
    let later = awake + ms(2_000);
    let millis = |back: Option<Duration>| back.map(|back| back.as_millis() as u64);
    json!({
        "case": case, "awake_after_waking_ms": (awake - woken).as_millis() as u64, "slept_s": (woken - asleep).as_secs_f64(),
        "back_ms": { "ping": millis(pinged), "guest_sends": millis(told), "host_sends": millis(echoed) },
        "pings_lost_from_2_s_on": report.lost_between(later, later + ms(2_000)),
    })
}

#[test]
fn a_suspended_machine_goes_on_when_it_wakes() {
    let (mut misses, mut found) = (Vec::new(), Vec::new());
    for side in [0, 1] {
        let mut place = Place::new(side);
        let before = place.traces();
        place.start();
        let portal = place.lab.start(NAMES[1 - side]);
        place.wait_for_paths(&portal);
        let talk = Talk::start(&mut place);
        for length in SLEEPS {
            found.push(sleeps(&mut place, &talk, length, &mut misses));
            eprintln!("{}", found[found.len() - 1]);
            place.wait_for_paths(&portal);
        }
        drop(talk);
        place.stop();
        let left = place.traces();
        if left != before {
            misses.push(format!("{} left behind: {left}before: {before}", NAMES[side]));
        }
    }
    figures::write("suspend", "make endure CASE=suspend", &json!({ "on": figures::on(), "cases": found }));
    assert!(misses.is_empty(), "{misses:#?}");
}
