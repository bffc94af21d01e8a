//! A network namespace per test, `ip` as the second opinion, and changes of every kind.

use std::{
    fs,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use hawser_net::netcfg::{
    Change, EndpointFlags, Family, IfIndex, InstanceName, IpProtocol, Mark, MarkMatch, Metric, MptcpEndpoint,
    MptcpLimits, Mtu, NetConfig, NftChain, NftName, NftTable, RouteKind, RouteSpec, RulePriority, RuleSpec, SysctlKey,
    TableId,
};
use rustix::thread::UnshareFlags;
use serde_json::Value;

/// A table nobody else uses.
pub const TABLE: TableId = TableId(4920);
/// The kernel reports operational states with up to a second's delay (linkwatch); this and some more.
const SETTLED_WITHIN: Duration = Duration::from_secs(5);

/// Runs `story` on a thread of its own in a new network namespace, inside a tokio runtime.
pub fn in_namespace<F: Future<Output = ()>>(story: impl FnOnce() -> F + Send + 'static) {
    assert!(rustix::process::geteuid().is_root(), "this test needs root: it makes network namespaces");
    let thread = thread::spawn(|| {
        // SAFETY: only the network namespace of this thread changes, and no descriptor or memory is shared less.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }.expect("unshare network namespace");
        ip("link set lo up");
        on_runtime(story());
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Runs `story` on a current-thread runtime, as the control thread does.
pub fn on_runtime(story: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(story);
}

/// Runs `ip` in this thread's namespace and returns what it prints.
pub fn ip(arguments: &str) -> String {
    let output = Command::new("ip").args(arguments.split(' ')).output().expect("run ip (iproute2)");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs `nft` in this thread's namespace and returns what it prints.
pub fn nft(arguments: &str) -> String {
    let output = Command::new("nft").args(arguments.split(' ')).output().expect("run nft (nftables)");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "nft {arguments}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs `ip -j` in this thread's namespace and parses what it prints.
pub fn ip_json(arguments: &str) -> Value {
    let text = ip(&format!("-j {arguments}"));
    if text.trim().is_empty() { Value::Array(vec![]) } else { serde_json::from_str(&text).unwrap() }
}

/// The index of an interface, as `ip` has it.
pub fn index(name: &str) -> IfIndex {
    let links = ip_json(&format!("link show dev {name}"));
    IfIndex::new(u32::try_from(links[0]["ifindex"].as_u64().unwrap()).unwrap()).unwrap()
}

/// Two interfaces joined to each other, both down, without addresses of their own accord.
pub fn veth(near: &str, far: &str) {
    ip(&format!("link add name {near} type veth peer name {far}"));
    for name in [near, far] {
        ip(&format!("link set {name} addrgenmode none"));
    }
}

/// The same, both up: the far one first, so that the near one has its carrier at once.
pub fn veth_up(near: &str, far: &str) {
    veth(near, far);
    for name in [far, near] {
        ip(&format!("link set {name} up"));
    }
}

/// All that Hawser may have changed in this namespace, as others see it.
pub fn system() -> Value {
    let mut all = serde_json::Map::new();
    for question in ["addr", "-4 route show table all", "-6 route show table all", "-4 rule", "-6 rule"] {
        let mut answer = ip_json(question);
        for link in answer.as_array_mut().unwrap() {
            // The kernel gives an interface its queue when it is first set up, and never takes it away.
            link.as_object_mut().unwrap().remove("qdisc");
        }
        all.insert(question.into(), answer);
    }
    for question in ["mptcp endpoint", "mptcp limits"] {
        all.insert(question.into(), ip(question).into());
    }
    all.insert("nft".into(), nft("list ruleset").into());
    for directory in fs::read_dir("/proc/sys/net/ipv4/conf").unwrap() {
        let path = directory.unwrap().path().join("rp_filter");
        let value = fs::read_to_string(&path).unwrap();
        all.insert(path.display().to_string(), value.trim().into());
    }
    all.into()
}

/// Waits until the system is as it was, or fails with the difference.
pub fn assert_restored(before: &Value) {
    let begun = Instant::now();
    while system() != *before {
        assert!(begun.elapsed() < SETTLED_WITHIN, "not restored:{}", difference(before, &system()));
        thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until `ip` shows what the kernel does of its own accord, in its own time.
pub fn until_shown(question: &str, want: &str) {
    let begun = Instant::now();
    while !shown(question).contains(want) {
        assert!(begun.elapsed() < SETTLED_WITHIN, "ip {question} shows no {want:?}: {}", shown(question));
        thread::sleep(Duration::from_millis(20));
    }
}

fn difference(before: &Value, after: &Value) -> String {
    let mut text = String::new();
    for (question, was) in before.as_object().unwrap() {
        if was != &after[question] {
            text += &format!("\n{question}\n  was {was}\n  is  {}", after[question]);
        }
    }
    text
}

/// One change of every kind and more for the interface `name`, with what `ip` or /proc must then show.
pub fn every_change(name: &str) -> Vec<(Change, &'static str, &'static str)> {
    let interface = index(name);
    let address = |text: &str| Change::Address { interface, address: text.parse().unwrap() };
    let route = |destination: &str, table, metric, source: Option<&str>| {
        Change::Route(RouteSpec {
            table,
            metric,
            source: source.map(|text| text.parse().unwrap()),
            ..RouteSpec::to(destination.parse().unwrap(), interface)
        })
    };
    let table = |rule: &str| {
        Change::Nft(NftTable {
            name: NftName::of_tun(name),
            sets: Vec::new(),
            chains: vec![NftChain {
                name: "forward".into(),
                hook: Some("type filter hook forward priority mangle".into()),
                rules: vec![rule.into()],
            }],
        })
    };
    let rule = |family, priority, mark: Option<u32>, input: Option<&str>, table, suppress| {
        Change::Rule(RuleSpec {
            mark: mark.map(|mark| MarkMatch { mark: Mark(mark), mask: u32::MAX }),
            input: input.map(str::to_owned),
            invert: mark.is_some(),
            suppress_prefix_length: suppress,
            ..RuleSpec::at(family, RulePriority(priority), table)
        })
    };
    let main = TableId::MAIN;
    vec![
        (Change::LinkUp { interface }, "link show dev v0", "<NO-CARRIER,BROADCAST,MULTICAST,UP"),
        (Change::Mtu { interface, mtu: Mtu(1400) }, "link show dev v0", "mtu 1400"),
        (address("10.77.0.1/24"), "-4 addr show dev v0", "inet 10.77.0.1/24"),
        (address("fd77::1/64"), "-6 addr show dev v0", "inet6 fd77::1/64"),
        (
            route("192.168.8.0/24", None, None, Some("10.77.0.1")),
            "-4 route",
            "192.168.8.0/24 dev v0 proto 72 scope link src 10.77.0.1",
        ),
        (
            route("0.0.0.0/0", Some(TABLE), Some(Metric(7)), None),
            "-4 route show table all",
            "default dev v0 table 4920 proto 72 scope link metric 7",
        ),
        (route("fd88::/48", None, None, None), "-6 route", "fd88::/48 dev v0 proto 72 metric 1024"),
        (
            route("::/0", Some(TABLE), Some(Metric(7)), None),
            "-6 route show table all",
            "default dev v0 table 4920 proto 72 metric 7",
        ),
        (
            rule(Family::V4, 100, Some(0x48), None, TABLE, None),
            "-4 rule",
            "100:\tnot from all fwmark 0x48 lookup 4920 proto 72",
        ),
        (
            rule(Family::V4, 99, None, None, main, Some(0)),
            "-4 rule",
            "99:\tfrom all lookup main suppress_prefixlength 0 proto 72",
        ),
        (rule(Family::V6, 100, None, Some("v0"), TABLE, None), "-6 rule", "100:\tfrom all iif v0 lookup 4920 proto 72"),
        (
            Change::Route(RouteSpec {
                gateway: Some("10.77.0.9".parse().unwrap()),
                ..RouteSpec::to("192.168.9.0/24".parse().unwrap(), interface)
            }),
            "-4 route",
            "192.168.9.0/24 via 10.77.0.9 dev v0 proto 72",
        ),
        (
            Change::Route(RouteSpec {
                kind: RouteKind::Local,
                table: Some(TABLE),
                ..RouteSpec::to("10.66.0.0/16".parse().unwrap(), interface)
            }),
            "-4 route show table all",
            "local 10.66.0.0/16 dev v0 table 4920 proto 72",
        ),
        (
            Change::Rule(RuleSpec {
                output: Some("v0".into()),
                source: Some("10.66.0.0/16".parse().unwrap()),
                destination: Some("192.0.2.1/32".parse().unwrap()),
                ip_protocol: Some(IpProtocol(17)),
                ..RuleSpec::at(Family::V4, RulePriority(98), TABLE)
            }),
            "-4 rule",
            "98:\tfrom 10.66.0.0/16 to 192.0.2.1 oif v0 ipproto udp lookup 4920 proto 72",
        ),
        (
            Change::Rule(RuleSpec {
                source: Some("fd66::/64".parse().unwrap()),
                ..RuleSpec::at(Family::V6, RulePriority(98), TABLE)
            }),
            "-6 rule",
            "98:\tfrom fd66::/64 lookup 4920 proto 72",
        ),
        (
            Change::Route(RouteSpec {
                kind: RouteKind::Unreachable,
                table: Some(TABLE),
                metric: Some(Metric(u32::MAX)),
                ..RouteSpec::to("10.67.0.0/16".parse().unwrap(), index("lo"))
            }),
            "-4 route show table all",
            "unreachable 10.67.0.0/16 table 4920 proto 72 metric 4294967295",
        ),
        (
            Change::Route(RouteSpec {
                kind: RouteKind::Unreachable,
                table: Some(TABLE),
                metric: Some(Metric(u32::MAX)),
                ..RouteSpec::to("fd67::/64".parse().unwrap(), index("lo"))
            }),
            "-6 route show table all",
            "unreachable fd67::/64 dev lo table 4920 proto 72 metric 4294967295",
        ),
        (
            Change::Route(RouteSpec {
                kind: RouteKind::Blackhole,
                table: Some(TABLE),
                ..RouteSpec::to("10.68.0.0/16".parse().unwrap(), index("lo"))
            }),
            "-4 route show table all",
            "blackhole 10.68.0.0/16 table 4920 proto 72",
        ),
        (
            Change::Rule(RuleSpec {
                destination: Some("192.0.2.0/24".parse().unwrap()),
                ip_protocol: Some(IpProtocol(6)),
                destination_port: Some(443),
                ..RuleSpec::at(Family::V4, RulePriority(97), TABLE)
            }),
            "-4 rule",
            "97:\tfrom all to 192.0.2.0/24 ipproto tcp dport 443 lookup 4920 proto 72",
        ),
        (
            Change::LocalRule { family: Family::V4, priority: RulePriority(1) },
            "-4 rule",
            "1:\tfrom all lookup local\n97:",
        ),
        (
            Change::LocalRule { family: Family::V6, priority: RulePriority(1) },
            "-6 rule",
            "1:\tfrom all lookup local\n98:",
        ),
        (table("tcp flags syn tcp option maxseg size set rt mtu"), "nft", "maxseg size set rt mtu"),
        (
            Change::MptcpEndpoint(MptcpEndpoint::new(
                "10.77.0.1".parse().unwrap(),
                EndpointFlags::SUBFLOW | EndpointFlags::BACKUP,
            )),
            "mptcp endpoint",
            "10.77.0.1 id 1 subflow backup",
        ),
        (
            Change::MptcpEndpoint(MptcpEndpoint {
                interface: Some(interface),
                ..MptcpEndpoint::new("fd77::1".parse().unwrap(), EndpointFlags::SIGNAL)
            }),
            "mptcp endpoint",
            "signal dev v0",
        ),
        (
            Change::MptcpLimits(MptcpLimits { subflows: 7, accepted: 3 }),
            "mptcp limits",
            "add_addr_accepted 3 subflows 7",
        ),
        (Change::Sysctl { key: SysctlKey::rp_filter(name).unwrap(), value: "2".into() }, "", "2"),
    ]
}

/// What is shown of a change: by `ip`, by `nft`, or the rp_filter of `v0`.
pub fn shown(question: &str) -> String {
    match question {
        "nft" => nft("list ruleset"),
        "" => SysctlKey::rp_filter("v0").unwrap().read().unwrap(),
        question => ip(question).replace("  ", " "),
    }
}

/// Takes the journal below `directory`.
pub fn config(directory: &std::path::Path) -> NetConfig {
    NetConfig::new(directory, &instance()).unwrap()
}

/// The instance of all tests; each has a directory of its own.
pub fn instance() -> InstanceName {
    InstanceName::new("hawser0").unwrap()
}
