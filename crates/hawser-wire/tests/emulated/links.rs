//! Namespaces, and links that are cut, black-holed and restored. Needs root.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::common::measured::measured;
use crate::common::{ADDRESS_A, ADDRESS_B, between, ms};
use crate::forged;
use hawser_wire::traffic::UdpFlow;
use hawser_wire::{
    Direction, EmulatedLink, End, LinkSpec, Namespace, Rate, RpFilter, Way, WireError, emulate_until, sweep, teardown,
    veth,
};

/// Set for a child process of a test.
const CHILD: &str = "HAWSER_WIRE_TEST_CHILD";

fn exists(name: &str) -> bool {
    Path::new("/run/netns").join(name).exists()
}

fn link(tag: &str) -> EmulatedLink {
    let (a, b) = between(tag);
    let way = Direction { delay: ms(5), ..Direction::default() };
    EmulatedLink::new(LinkSpec::symmetric(tag, a, b, &way)).expect("the link starts")
}

/// How many tenths of a few datagrams to an address arrive.
fn arrived(from: &Namespace, to: &Namespace, address: &str) -> u64 {
    let flow = UdpFlow {
        from: from.clone(),
        to: to.clone(),
        destination: address.parse().expect("an address"),
        payload: 72,
        rate: Rate::mbit(0.8),
        duration: ms(10),
        linger: ms(60),
    };
    let report = flow.run().expect("the flow runs");
    report.arrivals.len() as u64 * 10 / report.sent
}

/// How many tenths arrive from a to b, and from b to a, over IPv4 and IPv6.
fn crossing(link: &EmulatedLink) -> [u64; 4] {
    let [a, b] = link.ends();
    [
        arrived(&a.namespace, &b.namespace, &format!("{ADDRESS_B}:9001")),
        arrived(&b.namespace, &a.namespace, &format!("{ADDRESS_A}:9001")),
        arrived(&a.namespace, &b.namespace, "[fd09::2]:9001"),
        arrived(&b.namespace, &a.namespace, "[fd09::1]:9001"),
    ]
}

fn ip(namespace: &Namespace, arguments: &str) -> String {
    let output = namespace.command("ip").args(arguments.split(' ')).output().expect("ip starts");
    String::from_utf8(output.stdout).expect("ip prints text")
}

#[test]
fn a_namespace_is_seen_while_it_is_held_and_gone_after() {
    let namespace = Namespace::new("held").expect("makes a namespace (these tests need root)");
    let name = namespace.name().to_owned();
    assert_eq!(name.split('-').nth(2), Some(std::process::id().to_string().as_str()));
    let clone = namespace.clone();
    drop(namespace);
    assert!(exists(&name));
    assert!(ip(&clone, "-brief link").starts_with("lo "), "a command starts inside");
    for missing in ["hawser-no-such-program", "/nowhere/at-all"] {
        let refused = clone.command(missing).output().expect_err("it is not there");
        assert_eq!(refused.kind(), std::io::ErrorKind::NotFound, "{missing}");
    }
    let inside = |path| std::fs::read_link(path).expect("reads its namespace");
    let outside = inside("/proc/thread-self/ns/net");
    let by_run = clone.run(|| inside("/proc/thread-self/ns/net")).expect("enters");
    let thread = clone.spawn_thread("inside", move || inside("/proc/thread-self/ns/net"));
    assert_eq!(thread.expect("starts").join().expect("ends"), by_run);
    assert_ne!(by_run, outside);
    let opened = Namespace::open(&name).expect("opens by name");
    drop(opened);
    assert!(exists(&name), "what was only opened is not removed");
    drop(clone);
    assert!(!exists(&name));
}

/// The test that runs, as the harness calls it and its thread.
fn this_test() -> String {
    std::thread::current().name().expect("a test's thread has its name").to_owned()
}

/// Starts this test as a process of its own, and reads the name of the namespace that made. Its output is to be held
/// until it ends.
fn start_child() -> (Child, BufReader<ChildStdout>, String) {
    let mut child = Command::new(std::env::current_exe().expect("has a path"))
        .args([&this_test(), "--exact", "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts itself");
    let mut output = BufReader::new(child.stdout.take().expect("is piped"));
    let name = output.by_ref().lines().map_while(Result::ok).find_map(|line| {
        let (_, name) = line.split_once("name ")?;
        Some(name.to_owned())
    });
    (child, output, name.expect("the child says its namespace's name"))
}

/// The child's part: makes a namespace that nothing drops, and says its name.
fn be_child() -> bool {
    if std::env::var_os(CHILD).is_none() {
        return false;
    }
    let namespace = Namespace::new("child").expect("makes a namespace");
    println!("name {}", namespace.name());
    std::io::stdout().flush().expect("prints");
    std::mem::forget(namespace);
    true
}

#[test]
fn sweep_removes_what_a_killed_process_left_and_nothing_else() {
    if be_child() {
        std::thread::sleep(ms(30_000));
        return;
    }
    let mine = Namespace::new("mine").expect("makes a namespace (these tests need root)");
    let (mut child, _output, left) = start_child();
    sweep().expect("sweeps");
    assert!(exists(&left), "its process lives");
    child.kill().expect("is killed");
    child.wait().expect("is gone");
    sweep().expect("sweeps");
    assert!(!exists(&left) && exists(mine.name()));
}

#[test]
fn a_namespace_is_removed_though_ip_netns_was_first_used_after_it() {
    if std::env::var_os(CHILD).is_some() {
        let mine = Namespace::new("mine").expect("makes a namespace (these tests need root)");
        let added = Command::new("ip").args(["netns", "add", "theirs"]).status().expect("ip starts");
        let name = mine.name().to_owned();
        drop(mine);
        assert!(added.success() && !exists(&name));
        return;
    }
    // A /run as after a start of the machine, of which nobody else knows.
    let script = "mount -t tmpfs none /run && exec \"$0\" --exact \"$1\" --nocapture";
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(program).arg(this_test()).env(CHILD, "1");
    let output = command.output().expect("unshare starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn teardown_removes_what_this_process_made() {
    if be_child() {
        assert_eq!(teardown().expect("tears down").len(), 1);
        assert_eq!(teardown().expect("tears down"), [""; 0]);
        return;
    }
    let mine = Namespace::new("mine").expect("makes a namespace (these tests need root)");
    let (mut child, mut output, made) = start_child();
    std::io::copy(&mut output, &mut std::io::sink()).expect("reads to the end");
    assert!(child.wait().expect("ends").success());
    assert!(!exists(&made) && exists(mine.name()));
}

#[test]
fn a_cut_takes_both_ends_down_and_restore_brings_routes_back() {
    measured(|| {
        let link = link("cut");
        let [a, b] = link.ends();
        let gateway = ADDRESS_B.parse().expect("an address");
        a.namespace.add_default_route(gateway).expect("routes");
        a.namespace
            .add_route("fd10::/64".parse().expect("a prefix"), Some("fd09::2".parse().expect("an address")), None)
            .expect("routes");
        assert_eq!(crossing(&link), [10; 4]);
        link.cut().expect("cuts");
        for end in [a, b] {
            assert!(ip(&end.namespace, "link show wire0").contains("state DOWN"));
        }
        assert_eq!(ip(&a.namespace, "route show default"), "");
        assert_eq!(crossing(&link), [0; 4]);
        link.cut().expect("a cut link may be cut");
        link.restore().expect("restores");
        assert!(ip(&a.namespace, "route show default").contains("via 10.9.0.2"));
        assert!(ip(&a.namespace, "-6 route show fd10::/64").contains("via fd09::2"));
        assert_eq!(crossing(&link), [10; 4]);
    });
}

/// To a host behind the link a smaller MTU holds: that is an exception, and no route.
#[test]
fn a_cut_forgets_what_a_router_said_and_restore_brings_the_route_back() {
    measured(|| {
        let link = link("told");
        let [a, b] = link.ends();
        a.namespace.add_default_route(ADDRESS_B.parse().expect("an address")).expect("routes");
        let (ours, theirs) =
            ("10.9.0.1:9000".parse().expect("an address"), "10.50.0.9:9001".parse().expect("an address"));
        let _socket = a.namespace.run(|| {
            let socket = UdpSocket::bind(SocketAddr::V4(ours)).expect("a socket");
            socket.connect(SocketAddr::V4(theirs)).expect("connects");
            socket
        });
        let said = [forged::FRAGMENTATION_NEEDED, forged::PORT_UNREACHABLE];
        let said = said.map(|kind| forged::message(kind, ours, theirs, 1_300, &[0; 8]));
        b.namespace.run(|| forged::flood(ours, &said, 1_000, ms(20))).expect("entered");
        assert!(ip(&a.namespace, "route show cache").contains("mtu 1300"));
        link.cut().expect("cuts");
        link.restore().expect("restores");
        assert!(ip(&a.namespace, "route show default").contains("via 10.9.0.2"));
        assert!(!ip(&a.namespace, "route show cache").contains("mtu 1300"));
    });
}

#[test]
fn what_is_on_the_way_of_a_cut_is_lost() {
    measured(|| {
        let link = link("way");
        link.set(Way::AToB, |way| way.delay = ms(200)).expect("sets");
        let [a, b] = link.ends();
        let flow = UdpFlow {
            from: a.namespace.clone(),
            to: b.namespace.clone(),
            destination: format!("{ADDRESS_B}:9002").parse().expect("an address"),
            payload: 72,
            rate: Rate::mbit(8.0),
            duration: ms(10),
            linger: ms(300),
        };
        let running = flow.start().expect("starts");
        std::thread::sleep(ms(80));
        link.cut().expect("cuts");
        link.restore().expect("restores");
        let report = running.finish().expect("ends");
        assert_eq!(report.arrivals, []);
        assert_eq!(link.counters(Way::AToB).cut, report.sent);
    });
}

#[test]
fn a_black_hole_swallows_silently_one_way_or_both() {
    measured(|| {
        let link = link("hole");
        link.black_hole(true).expect("opens");
        assert!(!ip(&link.ends()[0].namespace, "link show wire0").contains("state DOWN"));
        assert_eq!(crossing(&link), [0; 4]);
        let counters = link.counters(Way::AToB);
        assert!(counters.vanished > 0 && counters.vanished == counters.packets_in);
        link.restore().expect("closes");
        assert_eq!(crossing(&link), [10; 4]);
        link.black_hole_way(Way::BToA, true).expect("opens");
        assert_eq!(crossing(&link), [10, 0, 10, 0]);
        link.black_hole(false).expect("closes");
        assert_eq!(crossing(&link), [10; 4]);
    });
}

#[test]
fn an_idle_link_sends_nothing_of_its_own() {
    measured(|| {
        let link = link("idle");
        std::thread::sleep(ms(300));
        assert_eq!(Way::BOTH.map(|way| link.counters(way).packets_in), [0, 0]);
    });
}

#[test]
fn a_veth_pair_carries_and_takes_its_offloads() {
    measured(|| {
        let (mut a, mut b) = between("veth");
        (a.interface, b.interface) = ("left".to_owned(), "right".to_owned());
        veth(&a, &b, 1400).expect("makes the pair");
        a.namespace.set_plain_packets("left").expect("sets offloads");
        let features = a.namespace.command("ethtool").args(["-k", "left"]).output().expect("ethtool starts");
        let features = String::from_utf8(features.stdout).expect("prints text");
        for line in [
            "tcp-segmentation-offload: off",
            "generic-segmentation-offload: off",
            "generic-receive-offload: on",
            "tx-udp-segmentation: off",
        ] {
            assert!(features.contains(line), "{line} is not in\n{features}");
        }
        assert!(ip(&b.namespace, "link show right").contains("mtu 1400"));
        assert_eq!(arrived(&a.namespace, &b.namespace, &format!("{ADDRESS_B}:9001")), 10);
        a.namespace.set_features("left", &[("tx-udp-segmentation", true)]).expect("sets one offload");
        let unknown = a.namespace.set_features("left", &[("tx-teleport", true)]);
        assert!(matches!(unknown, Err(WireError::NoFeature { .. })));
        a.namespace.delete_interface("left").expect("deletes");
        let gone = b.namespace.set_up("right");
        assert!(matches!(gone, Err(WireError::NoInterface { .. })), "{gone:?}");
    });
}

#[test]
fn sysctls_are_of_the_namespace() {
    let namespace = Namespace::new("sysctl").expect("makes a namespace");
    namespace.set_forwarding(true).expect("forwards");
    assert_eq!(namespace.sysctl("ipv4/ip_forward").expect("reads"), "1");
    assert_eq!(namespace.sysctl("ipv6/conf/all/forwarding").expect("reads"), "1");
    for (filter, value) in [(RpFilter::Strict, "1"), (RpFilter::Loose, "2"), (RpFilter::Off, "0")] {
        namespace.set_rp_filter("lo", filter).expect("sets");
        assert_eq!(namespace.sysctl("ipv4/conf/lo/rp_filter").expect("reads"), value);
    }
    assert!(namespace.set_sysctl("ipv4/no_such", "1").is_err());
}

#[test]
fn emulate_until_carries_until_its_pipe_closes() {
    measured(|| {
        let (a, b) = between("until");
        let (from, to) = (a.namespace.clone(), b.namespace.clone());
        let spec = LinkSpec::symmetric("until", a, b, &Direction::default());
        let (shutdown, hold) = std::io::pipe().expect("makes a pipe");
        let emulation = std::thread::spawn(move || emulate_until(vec![spec], shutdown.as_fd()));
        while !ip(&to, "-brief address show wire0").contains(ADDRESS_B) {
            assert!(!emulation.is_finished(), "{:?}", emulation.join());
            std::thread::sleep(ms(5));
        }
        std::thread::sleep(ms(50));
        assert_eq!(arrived(&from, &to, &format!("{ADDRESS_B}:9001")), 10);
        drop(hold);
        let counted = emulation.join().expect("ends").expect("carried");
        assert!(counted[0][0].packets_out >= 9, "{counted:?}");
        assert_eq!(counted[0][1].packets_out, 0);
    });
}

#[test]
fn a_link_that_cannot_be_made_says_why() {
    measured(|| {
        let (a, mut b) = between("bad");
        b.interface = "a-name-too-long-for-linux".to_owned();
        let spec = LinkSpec::symmetric("bad", a.clone(), b.clone(), &Direction::default());
        let error = EmulatedLink::new(spec).expect_err("the name is too long");
        assert!(error.to_string().contains("a-name-too-long-for-linux"), "{error}");
        b.interface = "wire0".to_owned();
        let mut spec = LinkSpec::symmetric("bad", a, b, &Direction::default());
        spec.mtu = 9000;
        assert!(EmulatedLink::new(spec).is_err());
        let none = Namespace::open("hw-no-such").expect_err("there is none");
        assert!(none.to_string().starts_with("open namespace hw-no-such"));
    });
}

#[test]
fn an_end_is_written_with_its_addresses() {
    let namespace = Namespace::new("end").expect("makes a namespace");
    let end = End::new(&namespace, "x", &["10.0.0.1/8"]);
    assert_eq!(end.addresses[0].to_string(), "10.0.0.1/8");
}
