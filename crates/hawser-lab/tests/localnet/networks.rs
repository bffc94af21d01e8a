//! Networks that run: in time, whole, through a cut, beside each other, and gone afterwards.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hawser_lab::localnet::{Host, Localnet, PATIENCE, Topology, services};
use hawser_wire::{Rate, Way};

/// How long a network may take.
const LONGEST: Duration = Duration::from_secs(15);
/// How long routers may take to find that a link is gone or there again: BFD misses three of its packets, 200 ms each.
const NOTICED: Duration = Duration::from_secs(10);
/// How often it is looked meanwhile.
const GLANCE: Duration = Duration::from_millis(100);
/// What a router says of a link that is down. Source: the reference implementation's snet.
const DOWN: &str = "external interface is down";

/// Two ASes whose hosts have IPv6 addresses, joined by two slow links.
const SLOW: &str = r#"
name = "slow"
remote-daemons = true

[[as]]
id = "1-ff00:0:110"
core = true
hosts = 2
hosts-ip = "ipv6"

[[as]]
id = "2-ff00:0:210"
core = true
hosts-ip = "ipv6"

[[link]]
name = "c"
kind = "core"
a = "1-ff00:0:110"
b = "2-ff00:0:210"
count = 2
rate = "20M"
delay = "20ms"
"#;

/// Held while a network starts: each is to be whole in time by itself.
static TURN: Mutex<()> = Mutex::new(());

/// A network, whole in time.
fn up(topology: &Topology) -> Localnet {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let services = services().expect("they are built (needs go)");
    let begun = Instant::now();
    let net = Localnet::start(topology, &services).expect("it starts (needs root)");
    net.wait_ready(PATIENCE).expect("it becomes whole");
    let took = begun.elapsed();
    eprintln!("{} is whole after {:.1} s", topology.name, took.as_secs_f64());
    assert!(took < LONGEST, "{took:?}");
    net
}

/// Whether the reference's `scion ping` has an answer by a path, one at all if none is given; and what was said.
fn ping(net: &Localnet, [from, to]: [&Host; 2], sequence: &str) -> (bool, String) {
    let (address, daemon) = (format!("{},{}", to.isd_as, to.address), from.daemon.to_string());
    let mut command = from.namespace.command(&net.services.join("scion").to_string_lossy());
    command.args(["ping", &address, "-c", "2", "--interval", "100ms", "--timeout", "500ms", "--sequence", sequence]);
    let output = command.args(["--sciond", &daemon]).output().expect("it runs");
    (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

/// Pings until what comes of it is as wanted.
fn ping_until(net: &Localnet, ends: [&Host; 2], sequence: &str, wanted: impl Fn(bool, &str) -> bool) {
    let late = Instant::now() + NOTICED;
    loop {
        let (answered, said) = ping(net, ends, sequence);
        if wanted(answered, &said) {
            return;
        }
        assert!(Instant::now() < late, "{sequence}: {said}");
    }
}

#[test]
fn six_ases_are_whole_in_time_and_live_through_a_cut() {
    let net = up(&Topology::named("six-as", None).expect("it comes along"));
    let leaves = ["1-ff00:0:111", "1-ff00:0:112"].map(|isd_as| net.host(isd_as).expect("it is there"));
    let [near, far] = leaves;
    // Over the peering link, either parent's, and from one parent to the other: by their link, and by the third core
    // AS.
    let paths = || -> BTreeSet<_> {
        let known = near.paths(far.isd_as).expect("the daemon answers");
        known.into_iter().map(|path| path.interfaces).collect()
    };
    // It is whole with a path from everywhere to everywhere; later beacons bring the others.
    let late = Instant::now() + NOTICED;
    let mut all = paths();
    while all.len() < 7 && Instant::now() < late {
        std::thread::sleep(GLANCE);
        all = paths();
    }
    assert_eq!(all.len(), 7, "{all:?}");
    let across = net.host("2-ff00:0:211").expect("it is there");
    assert!(ping(&net, [near, across], "0*").0, "{:?}", ping(&net, [near, across], "0*"));

    let (peering, parent) = ("1-ff00:0:111#0,3 1-ff00:0:112#3,0", "1-ff00:0:111 1-ff00:0:110 1-ff00:0:112");
    ping_until(&net, leaves, peering, |answered, _| answered);
    let link = net.link("p1").expect("it is there");
    link.cut().expect("it is cut");
    ping_until(&net, leaves, peering, |answered, said| !answered && said.contains(DOWN));
    assert!(paths().is_superset(&all), "paths remain: {:?}", paths());
    ping_until(&net, leaves, parent, |answered, _| answered);
    link.restore().expect("it is restored");
    ping_until(&net, leaves, peering, |answered, _| answered);
    let error = link.black_hole(true).expect_err("nothing slows it");
    assert!(error.to_string().contains("plain veth"), "{error}");

    let status = net.status();
    let processes: Vec<_> = status.ases.iter().flat_map(|one| &one.processes).collect();
    assert_eq!(processes.len(), 6 * 4, "router, control service, daemon, shim");
    for process in &processes {
        assert!(process.running && process.memory_bytes > 0, "{process:?}");
    }
    assert!(status.cpu_s > 0.0 && status.memory_bytes > processes[0].memory_bytes);
    let paths = &status.paths;
    assert!(paths.iter().all(|pair| !pair.paths.is_empty()) && paths.len() == 6 * 5, "{paths:?}");
    assert!(status.links.iter().all(|link| link.state == "up" && link.a_to_b.packets > 0), "{:?}", status.links);

    let pids: Vec<u32> = processes.iter().map(|process| process.pid).collect();
    let folder = net.config_dir(near.isd_as);
    assert!(folder.join("topology.json").exists() && !namespaces("hw-six-as.").is_empty());
    drop(net);
    assert_eq!(namespaces("hw-six-as."), [""; 0]);
    assert!(!folder.exists());
    let left: Vec<_> = pids.iter().filter(|pid| std::path::Path::new(&format!("/proc/{pid}")).exists()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn another_network_beside_it_has_slow_links_and_hosts_of_its_own() {
    let net = up(&Topology::parse(SLOW, "slow.toml", None, None).expect("it is right"));
    let (near, far) = (net.host("1-ff00:0:110").expect("it is there"), net.host("2-ff00:0:210").expect("it is there"));
    let second = net.hosts.iter().find(|host| host.number == 2).expect("it is there");
    assert!(ping(&net, [near, second], "").0, "{:?}", ping(&net, [near, second], ""));

    // The daemon of one host serves the other: both have one, and neither of them only for itself.
    let remote = Host { daemon: (near.address, near.daemon.port()).into(), ..second.clone() };
    let paths = remote.paths(far.isd_as).expect("the daemon answers");
    assert_eq!(paths.len(), 2, "{paths:?}");
    assert!(paths.iter().all(|path| path.latency[0] == Some(Duration::from_millis(20))), "announced: {paths:?}");

    let sequence = "1-ff00:0:110#0,1 2-ff00:0:210#1,0";
    let (answered, said) = ping(&net, [near, far], sequence);
    let least = said.split_once("min/avg/max/mdev = ").and_then(|(_, times)| times.split('/').next()?.parse().ok());
    let least: f64 = least.unwrap_or_else(|| panic!("{said}"));
    assert!(answered && least >= 40.0, "{least} ms there and back");
    let link = net.link("c1").expect("it is there");
    let emulated = link.emulated.as_ref().expect("it has a rate");
    for way in Way::BOTH {
        emulated.set(way, |way| way.rate = Some(Rate::mbit(5.0))).expect("it is changed");
    }
    let status = net.status();
    let rates: Vec<_> = status.links.iter().map(|link| link.emulated.as_ref().and_then(|way| way.rate_mbps)).collect();
    assert_eq!(rates, [Some(5.0), Some(20.0)]);
    link.black_hole(true).expect("it is emulated");
    ping_until(&net, [near, far], sequence, |answered, said| !answered && said.contains(DOWN));
}

/// This process's namespaces whose names begin so.
fn namespaces(prefix: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/run/netns").expect("it can be read").flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let own = format!("-{}-", std::process::id());
    names.filter(|name| name.starts_with(prefix) && name.contains(&own)).collect()
}
