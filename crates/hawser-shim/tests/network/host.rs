//! The shim's place in the host, in network namespaces of the tests' own (needs root): what is set, and that nothing of
//! it stays.

#[path = "../../../hawser-wire/tests/support/at_rest.rs"]
mod at_rest;

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use at_rest::at_rest;
use hawser_net::netcfg::Change;
use hawser_scion::EndpointAddr;
use hawser_shim::config::{Config, EgressCount, Local, Mode, PathManager, Prefix};
use hawser_shim::flow::Protocol;
use hawser_shim::host::{Devices, System, own_addresses};
use hawser_shim::manager::{Prepared, prepare};
use hawser_shim::route::{Addresses, DEFAULT_RANGE, InterfaceIndex, NoAddress, Port, RouteTable, Side, Target};
use hawser_wire::Namespace;

/// Interfaces, egress ones.
const EGRESS: u8 = 2;
/// The test that, executed anew as a child, is the one to be killed.
const CHILD_TEST: &str = "host::what_a_killed_shim_left_goes_with_the_next_start";
/// What tells the child its mode; set only in a child.
const CHILD: &str = "HAWSER_TEST_SHIM_MODE";
/// What a child prints once everything is set.
const READY: &str = "everything is set";
/// The kernel takes interfaces of a closed descriptor away within this time, on a loaded machine too.
const PATIENCE: Duration = Duration::from_secs(20);

fn end() -> EndpointAddr {
    "1-ff00:0:110,10.110.0.10:31000".parse().unwrap()
}

fn config(name: &str, mode: Mode) -> Config {
    Config {
        local: Local { isd_as: Some(end().isd_as), host: end().host },
        daemon: None,
        egress: EgressCount::new(EGRESS.into()).unwrap(),
        select: Default::default(),
        mode,
        path_manager: PathManager::Userspace,
        ipv4: Some(DEFAULT_RANGE),
        name: Prefix::parse(name).unwrap(),
        map: None,
        dns: false,
        control: "unused.sock".into(),
        layer4: Default::default(),
        server_ports: Default::default(),
        policy: Default::default(),
        routes: Vec::new(),
    }
}

fn own(index: InterfaceIndex) -> Result<Addresses, NoAddress> {
    Addresses::of(end(), Some(DEFAULT_RANGE), index)
}

fn number(index: u8) -> InterfaceIndex {
    InterfaceIndex::new(index).unwrap()
}

/// Runs `story` in a namespace, inside a tokio runtime as the control thread's.
fn within<T: Send>(namespace: &Namespace, story: impl AsyncFnOnce() -> T + Send) -> T {
    let run = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(story());
    namespace.run(run).expect("enter the namespace")
}

fn namespace(tag: &str) -> Namespace {
    Namespace::new(tag).expect("this test needs root: it makes network namespaces")
}

fn ip(namespace: &Namespace, arguments: &str) -> String {
    let output = namespace.command("ip").args(arguments.split(' ')).output().expect("run ip (iproute2)");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// All that a shim may have changed in a namespace, as others see it.
fn seen(namespace: &Namespace) -> String {
    let questions = [
        "-d link",
        "addr",
        "-4 route show table all",
        "-6 route show table all",
        "-4 rule",
        "-6 rule",
        "mptcp endpoint",
        "mptcp limits",
    ];
    let mut all: String = questions.iter().map(|question| ip(namespace, question)).collect();
    let mut settings = namespace.command("sysctl");
    settings.args(["-a", "--pattern", "^net\\.(mptcp|ipv4\\.conf|ipv6\\.conf)"]).stderr(Stdio::null());
    let settings = settings.output().expect("run sysctl (procps)");
    all.push_str(&String::from_utf8(settings.stdout).unwrap());
    all
}

fn named_namespaces(name: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|one| one.starts_with(&format!("{name}-"))).collect()
}

/// The folder of its journals is empty then, and stays for the next of its name: of these there is none.
fn no_more(name: &str) {
    std::fs::remove_dir(format!("/run/hawser/{name}-in")).expect("an empty folder");
}

/// Waits until everything is as it was, or fails with what is not.
fn assert_as_before(namespace: &Namespace, before: &str) {
    let begun = Instant::now();
    loop {
        let now = seen(namespace);
        if now == before {
            return;
        }
        let more: Vec<&str> = now.lines().filter(|line| !before.contains(line)).collect();
        assert!(begun.elapsed() < PATIENCE, "left behind: {more:#?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

async fn set(system: &mut System, config: &Config) -> Devices {
    let egress: Vec<Addresses> = config.egress.interfaces().map(|index| own(index).unwrap()).collect();
    let Prepared { clients, servers, .. } = prepare(config.path_manager, &egress);
    system.configure(config, own, clients, servers).await.expect("everything can be set")
}

/// A map with an entry of every kind.
fn routes(port: u16) -> RouteTable {
    let target = |side| Target { end: "1-ff00:0:120,10.120.0.10:31000".parse().unwrap(), side };
    let entries = [
        ("192.0.2.10/32".parse().unwrap(), port.try_into().ok().map(Port), Protocol::Tcp, target(Side::Scion)),
        ("203.0.113.0/24".parse().unwrap(), None, Protocol::Tcp, target(Side::Subflows)),
        ("10.9.0.2/32".parse().unwrap(), None, Protocol::Tcp, target(Side::Main)),
        ("2001:db8::/32".parse().unwrap(), None, Protocol::Tcp, target(Side::Scion)),
    ];
    RouteTable::new(Some(DEFAULT_RANGE), entries)
}

/// The interface and source that a new connection gets.
fn way(namespace: &Namespace, question: &str) -> String {
    let said = ip(namespace, &format!("route get {question}"));
    let words: Vec<&str> = said.split_whitespace().collect();
    let after = |word: &str| words.iter().position(|one| *one == word).and_then(|at| words.get(at + 1)).copied();
    let source = after("src").or_else(|| after("from"));
    format!("{} {}", after("dev").unwrap_or("-"), source.unwrap_or("-"))
}

#[test]
fn every_packet_finds_its_interface_and_nothing_stays() {
    let namespace = namespace("shim-direct");
    // An ordinary way out.
    ip(&namespace, "link add eth0 type veth peer name far");
    for name in ["eth0", "far"] {
        // Addresses of the kernel's own come in its own time.
        ip(&namespace, &format!("link set {name} addrgenmode none"));
    }
    ip(&namespace, "addr add 10.9.0.1/24 dev eth0");
    ip(&namespace, "link set eth0 up");
    ip(&namespace, "link set far up");
    ip(&namespace, "route add default via 10.9.0.254");
    let before = at_rest(|| seen(&namespace));
    let inside = namespace.clone();
    within(&namespace, async move || {
        let config = config("shim", Mode::Direct);
        let mut system = System::open(&config).await.unwrap();
        let devices = set(&mut system, &config).await;
        let map = Arc::new(routes(443));
        system.follow(&map).await;
        let (v4, v6) =
            (|at: u8| own(number(at)).unwrap().ipv4.unwrap(), |at: u8| own(number(at)).unwrap().ipv6.unwrap());
        let elsewhere = Addresses::of("2-ff00:0:220,10.2.0.2:31000".parse().unwrap(), Some(DEFAULT_RANGE), number(0));
        let (far4, far6) = elsewhere.map(|far| (far.ipv4.unwrap(), far.ipv6.unwrap())).unwrap();
        let table = [
            // A client that has no address yet.
            (format!("{far6}"), format!("shim1 {}", v6(1))),
            (format!("{far4}"), format!("shim1 {}", v4(1))),
            ("192.0.2.10 ipproto tcp dport 443".into(), format!("shim1 {}", v4(1))),
            ("10.9.0.2 ipproto tcp".into(), format!("shim1 {}", v4(1))),
            ("2001:db8::1 ipproto tcp".into(), format!("shim1 {}", v6(1))),
            // Not the map's.
            ("192.0.2.10 ipproto tcp dport 80".into(), "eth0 10.9.0.1".into()),
            ("192.0.2.10 ipproto udp dport 443".into(), "eth0 10.9.0.1".into()),
            ("203.0.113.1 ipproto tcp".into(), "eth0 10.9.0.1".into()),
            // The underlay.
            ("10.9.0.2 ipproto udp dport 30042".into(), "eth0 10.9.0.1".into()),
            // Subflows of a connection, wherever it goes.
            (format!("203.0.113.1 from {} ipproto tcp", v4(2)), format!("shim2 {}", v4(2))),
            (format!("{far6} from {}", v6(2)), format!("shim2 {}", v6(2))),
            // Beside SCION.
            ("10.9.0.2 from 10.9.0.1 ipproto tcp".into(), "eth0 10.9.0.1".into()),
            // What servers answer: from the ingress, and from another address of the host.
            (format!("{far6} from {}", v6(0)), format!("shim-in {}", v6(0))),
            (format!("{far4} from {}", v4(0)), format!("shim-in {}", v4(0))),
            (format!("{far4} from 10.9.0.1"), "shim-in 10.9.0.1".into()),
        ];
        for (question, want) in table {
            assert_eq!(way(&inside, &question), want, "{question}");
        }
        let forwarded = leads(&inside, "203.0.113.1 from 100.64.1.1 iif shim-in");
        assert!(!forwarded, "what comes out of SCION goes to this host alone");
        assert_eq!(system.ordinary(&map).await, [("10.9.0.2".parse().unwrap(), "10.9.0.1".parse::<IpAddr>().unwrap())]);
        let all = own_addresses(&system.rtnl()).await.unwrap();
        assert!(all.contains(&IpAddr::from(v4(0))) && all.contains(&"10.9.0.1".parse().unwrap()), "{all:?}");

        let ways_of = |port: u16| way(&inside, &format!("192.0.2.10 ipproto tcp dport {port}"));
        system.follow(&routes(8443)).await;
        assert_eq!(ways_of(443), "eth0 10.9.0.1", "the map has it no more");
        assert_eq!(ways_of(8443), format!("shim1 {}", v4(1)));

        drop(devices);
        let gone = format!("203.0.113.1 from {}", v4(2));
        // A process that others start at this moment has the descriptor too, until it is another program.
        let begun = Instant::now();
        while leads(&inside, &gone) {
            assert!(begun.elapsed() < PATIENCE, "without its interface an address leads nowhere");
            std::thread::sleep(Duration::from_millis(20));
        }
        system.undo().await;
    });
    assert_as_before(&namespace, &before);
}

/// Whether there is any way.
fn leads(namespace: &Namespace, question: &str) -> bool {
    let mut command = namespace.command("ip");
    command.args(["route", "get"]).args(question.split(' ')).output().expect("run ip (iproute2)").status.success()
}

#[test]
fn namespaces_hold_servers_and_clients_and_go_as_a_whole() {
    let host = namespace("shim-spaces");
    let name = format!("hs{}", std::process::id());
    let before = at_rest(|| seen(&host));
    let (tag, inside) = (name.clone(), host.clone());
    within(&host, async move || {
        let config = config(&tag, Mode::Namespaces);
        let mut system = System::open(&config).await.unwrap();
        let devices = set(&mut system, &config).await;
        let egress = Namespace::open(&format!("{tag}-egress")).unwrap();
        let ingress = Namespace::open(&format!("{tag}-ingress")).unwrap();
        let v4 = |at: u8| own(number(at)).unwrap().ipv4.unwrap();
        assert_eq!(way(&egress, "192.0.2.1"), format!("{tag}1 {}", v4(1)), "everything goes by the shim");
        assert_eq!(way(&egress, &format!("192.0.2.1 from {}", v4(2))), format!("{tag}2 {}", v4(2)));
        assert_eq!(way(&ingress, "192.0.2.1"), format!("{tag}-in {}", v4(0)));
        assert!(ip(&ingress, "mptcp limits").contains("subflows 8"));
        assert!(!ip(&inside, "link").contains(&tag), "nothing of it is the host's");
        drop(devices);
        system.undo().await;
    });
    assert_eq!(named_namespaces(&name), Vec::<String>::new());
    assert_as_before(&host, &before);
    no_more(&name);
}

/// A child that has set everything in this namespace, and waits to be killed.
fn to_be_killed(mode: Mode, name: &str) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let config = config(name, mode);
        let mut system = System::open(&config).await.unwrap();
        let _devices = set(&mut system, &config).await;
        system.follow(&routes(443)).await;
        println!("{READY}");
        std::io::stdout().flush().unwrap();
        tokio::time::sleep(PATIENCE).await;
    });
}

fn child(namespace: &Namespace, mode: &str, name: &str) -> Child {
    let mut command = namespace.command(env::current_exe().unwrap().to_str().unwrap());
    command.args([CHILD_TEST, "--exact", "--nocapture"]).env(CHILD, format!("{mode} {name}")).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains(READY)), "the child died early");
    child
}

#[test]
fn what_a_killed_shim_left_goes_with_the_next_start() {
    if let Ok(wanted) = env::var(CHILD) {
        let (mode, name) = wanted.split_once(' ').unwrap();
        return to_be_killed(if mode == "direct" { Mode::Direct } else { Mode::Namespaces }, name);
    }
    for mode in ["direct", "namespaces"] {
        let host = namespace("shim-killed");
        let name = format!("hk{}", std::process::id());
        let before = at_rest(|| seen(&host));
        let mut child = child(&host, mode, &name);
        child.kill().unwrap();
        child.wait().unwrap();
        if mode == "direct" {
            assert_ne!(seen(&host), before, "rules and sysctls stay behind");
        } else {
            assert_eq!(named_namespaces(&name).len(), 2, "namespaces stay behind");
        }
        let tag = name.clone();
        within(&host, async move || {
            // The next one may want something else.
            let mut next = System::open(&config(&tag, Mode::Direct)).await.unwrap();
            next.undo().await;
        });
        assert_eq!(named_namespaces(&name), Vec::<String>::new(), "{mode}");
        assert_as_before(&host, &before);
        no_more(&name);
    }
}

#[test]
fn two_shims_of_one_name_do_not_run_beside_each_other() {
    let host = namespace("shim-twice");
    within(&host, async || {
        let config = config("shim", Mode::Direct);
        let _first = System::open(&config).await.unwrap();
        let error = System::open(&config).await.unwrap_err();
        assert!(error.to_string().contains("running process"), "{error}");
    });
}

#[test]
fn a_namespace_of_somebody_else_is_not_taken() {
    let host = namespace("shim-theirs");
    let name = format!("ht{}", std::process::id());
    let theirs = format!("{name}-egress");
    assert!(Command::new("ip").args(["netns", "add", &theirs]).status().unwrap().success());
    let tag = name.clone();
    within(&host, async move || {
        let config = config(&tag, Mode::Namespaces);
        let mut system = System::open(&config).await.unwrap();
        let error = system.configure(&config, own, Vec::new(), Vec::<Change>::new()).await.unwrap_err();
        assert!(error.to_string().contains("File exists"), "{error}");
        system.undo().await;
    });
    assert_eq!(named_namespaces(&name), std::slice::from_ref(&theirs));
    no_more(&name);
    assert!(Command::new("ip").args(["netns", "del", &theirs]).status().unwrap().success());
}

#[test]
fn without_ipv4_there_are_surrogates_alone() {
    let host = namespace("shim-v6");
    within(&host.clone(), async move || {
        let config = Config { ipv4: None, ..config("shim", Mode::Direct) };
        let mut system = System::open(&config).await.unwrap();
        let own = |index| Addresses::of(end(), None, index);
        let devices = system.configure(&config, own, Vec::new(), Vec::new()).await.unwrap();
        assert_eq!(ip(&host, "-4 addr show dev shim1"), "");
        assert!(!ip(&host, "-4 rule").contains("493"), "nothing of ipv4 is touched");
        let far: SocketAddr = "[fc00::1]:80".parse().unwrap();
        assert!(way(&host, &far.ip().to_string()).starts_with("shim1 fc"));
        drop(devices);
        system.undo().await;
    });
}
