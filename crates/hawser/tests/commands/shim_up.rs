//! `hawser shim -c`, whole: two hosts in one AS, where no router and no daemon are needed (needs root).

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use hawser_wire::{End, Namespace, veth};
use rustix::process::Signal;

use crate::shims::{Host, PATIENCE, WEB, curl, fetched, web_server};

/// The AS of both hosts.
const AS: &str = "1-ff00:0:110";
/// CAP_NET_ADMIN alone, and with CAP_SYS_ADMIN (linux/capability.h: numbers 12 and 21).
const NET_ADMIN: &str = "0000000000001000";
const WITH_SYS_ADMIN: &str = "0000000000201000";
/// Nobody listens there: within an AS no daemon is asked.
const DAEMON: &str = "127.0.0.1:9";

/// Two hosts of one AS.
fn hosts() -> [Host; 2] {
    let ends =
        ["shim-a", "shim-b"].map(|tag| Namespace::new(tag).expect("this test needs root: it makes network namespaces"));
    let [a, b] = &ends;
    veth(&End::new(a, "eth0", &["10.110.0.1/24"]), &End::new(b, "eth0", &["10.110.0.2/24"]), 1500).expect("a link");
    [Host::new(a, AS, "10.110.0.1", DAEMON), Host::new(b, AS, "10.110.0.2", DAEMON)]
}

/// What the threads of a host's shim may do, as /proc has it.
fn powers(host: &Host) -> BTreeSet<String> {
    let pid = host.shim.as_ref().expect("it runs").id();
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").flatten();
    // A thread may end while it is looked at.
    let texts = threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok());
    texts.filter_map(|text| Some(text.lines().find_map(|line| line.strip_prefix("CapPrm:\t"))?.to_owned())).collect()
}

#[test]
fn a_page_is_fetched_by_surrogate_derived_and_mapped_addresses_and_nothing_stays() {
    let [mut a, mut b] = hosts();
    let before = a.system();
    a.start("");
    b.start("");
    assert_eq!(powers(&a), BTreeSet::from([NET_ADMIN.to_owned()]), "of every thread");
    let server = web_server(&b, 4);
    let [surrogate, derived] = b.addresses();
    fetched(&a, &surrogate, &b);
    // IPv4 cannot be turned back into a SCION address: the map says whose it is.
    assert!(!curl(&a, &derived).status.success(), "no map has it yet");
    a.map(&format!(
        "[[route]]\nscion = \"{}\"\n[[route]]\nto = \"10.110.0.2:{WEB}\"\nscion = \"{}\"\n",
        b.end(),
        b.end()
    ));
    a.until("the map to be read again", |host| host.status()["routes"] == 1 && host.ip("rule").contains("dport"));
    fetched(&a, &derived, &b);
    fetched(&a, "10.110.0.2", &b);
    let seen = b.status();
    let opened = seen["counters"].to_string();
    assert!(opened.contains("opened"), "{seen}");
    // A kill leaves rules behind, which the next start undoes.
    a.signal(Signal::KILL);
    assert_ne!(a.system(), before);
    a.start("");
    fetched(&a, &surrogate, &b);
    server.join().expect("the server ends in order");
    a.signal(Signal::TERM);
    b.signal(Signal::TERM);
    a.until_as_before(&before);
    assert!(!a.file("sock").exists());
}

#[test]
fn namespaces_for_servers_and_clients_work_as_a_whole() {
    let [mut a, mut b] = hosts();
    let name = format!("he{}", std::process::id());
    a.start(&format!("name = \"{name}\"\nmode = \"namespaces\"\n"));
    b.start("");
    let server = web_server(&b, 1);
    assert_eq!(powers(&a), BTreeSet::from([NET_ADMIN, WITH_SYS_ADMIN].map(str::to_owned)), "one has to remove them");
    let clients = Namespace::open(&format!("{name}-egress")).expect("there is one for clients");
    let from = Host::new(&clients, AS, "10.110.0.1", DAEMON);
    fetched(&from, &b.addresses()[0], &b);
    server.join().expect("the server ends in order");
    drop((from, clients));
    a.signal(Signal::TERM);
    for tag in ["egress", "ingress"] {
        assert!(!PathBuf::from(format!("/run/netns/{name}-{tag}")).exists(), "{tag}");
    }
    b.signal(Signal::TERM);
    std::fs::remove_dir(format!("/run/hawser/{name}-in")).expect("an empty folder");
}

#[test]
fn who_is_nowhere_is_refused_at_once() {
    let [mut a, _b] = hosts();
    a.start("");
    let begun = Instant::now();
    let nobody = "fc00:1ff:0:0:1100:7918:a6e:63";
    assert!(!curl(&a, nobody).status.success());
    assert!(begun.elapsed() < PATIENCE / 2, "{:?}", begun.elapsed());
    a.signal(Signal::TERM);
}

#[test]
fn beside_the_ordinary_internet_a_connection_has_flows_of_both_kinds() {
    let [mut a, mut b] = hosts();
    b.start("");
    let server = web_server(&b, 2);
    let derived = "100.";
    let ordinary = "10.110.0.1:";
    for (kind, first) in [("subflows", ordinary), ("main", derived)] {
        let route = format!("to = \"10.110.0.2:{WEB}\"\nscion = \"{}\"\nside_by_side = \"{kind}\"\n", b.end());
        a.start(&format!("egress = 1\n[[route]]\n{route}"));
        let stream = a.connect("10.110.0.2");
        let local = stream.local_addr().expect("an address").to_string();
        assert!(local.starts_with(first), "{kind}: {local}");
        a.until("a flow of either kind", |host| {
            let seen = host.namespace.command("ss").args(["-tnH", "dport = 8080"]).output().expect("run ss (iproute2)");
            let seen = String::from_utf8_lossy(&seen.stdout).into_owned();
            let ends: Vec<&str> = seen.lines().filter_map(|line| line.split_whitespace().nth(3)).collect();
            ends.len() == 2 && [derived, ordinary].iter().all(|kind| ends.iter().any(|end| end.starts_with(kind)))
        });
        drop(stream);
        a.signal(Signal::TERM);
    }
    server.join().expect("the server ends in order");
    b.signal(Signal::TERM);
}
