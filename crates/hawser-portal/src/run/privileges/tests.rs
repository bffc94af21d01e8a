//! Each test gives up the powers of a thread of its own: capabilities belong to threads.

use std::process::Command;

use caps::CapSet;

use super::*;

fn config(portal: &str, link: &str) -> Config {
    let text = format!(
        "[portal]\nprivate_key_file = \"key\"\n{portal}\n[tun]\naddresses = [\"10.77.0.1/24\"]\n[[link]]\nname = \"a\"\n\
         interface = \"eth0\"\n{link}\n[[peer]]\nname = \"home\"\npublic_key = \"RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=\"\n\
         endpoints = [\"192.0.2.1:4920\"]\nallowed_ips = [\"10.77.0.2/32\"]\n"
    );
    Config::parse(&text, "test.toml").expect("a right configuration")
}

fn powers() -> Powers {
    Powers::of(&config("", ""))
}

fn on_a_thread_of_its_own(work: impl FnOnce() + Send + 'static) {
    std::thread::spawn(work).join().expect("no panic");
}

fn holds(set: CapSet) -> CapsHashSet {
    caps::read(None, set).expect("it can be read")
}

/// The effective capabilities of a program that this thread starts.
fn of_a_program() -> String {
    let said = Command::new("grep").args(["CapEff", "/proc/self/status"]).output().expect("grep runs");
    String::from_utf8_lossy(&said.stdout).trim().replace("CapEff:\t", "")
}

const NOTHING: &str = "0000000000000000";
/// CAP_NET_ADMIN alone (linux/capability.h: number 12).
const NET_ADMIN: &str = "0000000000001000";

#[test]
fn the_configuration_decides_what_is_kept() {
    use Capability::{CAP_NET_ADMIN, CAP_NET_BIND_SERVICE, CAP_NET_RAW};
    let raw = |transport| {
        let mut config = config("listen = [\"0.0.0.0:4920\"]", "");
        config.links[0].transport = transport;
        config
    };
    let mut listens_raw = config("listen = [\"0.0.0.0:4920\"]", "");
    listens_raw.portal.transports.push(Transport::Ip);
    let mut calls_only = config("", "");
    calls_only.portal.transports.push(Transport::Ip);
    let table = [
        (config("", ""), vec![CAP_NET_ADMIN]),
        (raw(Transport::Udp), vec![CAP_NET_ADMIN]),
        (raw(Transport::Ip), vec![CAP_NET_ADMIN, CAP_NET_RAW]),
        (listens_raw, vec![CAP_NET_ADMIN, CAP_NET_RAW]),
        (calls_only, vec![CAP_NET_ADMIN]),
        (config("listen = [\"0.0.0.0:443\"]", ""), vec![CAP_NET_ADMIN, CAP_NET_BIND_SERVICE]),
    ];
    for (config, packet) in table {
        let powers = Powers::of(&config);
        assert_eq!(powers.packet, packet.into_iter().collect(), "{:?} {:?}", config.portal, config.links);
        assert_eq!(powers.control, [CAP_NET_ADMIN].into());
    }
}

#[test]
fn one_capability_is_left_and_none_comes_back() {
    on_a_thread_of_its_own(|| {
        powers().reduce().expect("privileges can be given up");
        let only: CapsHashSet = [Capability::CAP_NET_ADMIN].into();
        assert_eq!(holds(CapSet::Effective), only, "this test needs root");
        assert_eq!(holds(CapSet::Permitted), only);
        assert_eq!(holds(CapSet::Bounding), CapsHashSet::new());
        assert_eq!(holds(CapSet::Ambient), CapsHashSet::new());
        assert!(caps::raise(None, CapSet::Effective, Capability::CAP_NET_RAW).is_err());
        assert!(caps::raise(None, CapSet::Inheritable, Capability::CAP_NET_RAW).is_err());
        assert!(rustix::thread::no_new_privs().expect("it can be read"));
    });
}

#[test]
fn a_program_gets_no_capability_but_what_is_lent_to_it() {
    on_a_thread_of_its_own(|| {
        powers().reduce().expect("privileges can be given up");
        assert_eq!(of_a_program(), NOTHING, "though it is root's");
        assert_eq!(hawser_net::powers::lending(of_a_program), NET_ADMIN);
        assert_eq!(of_a_program(), NOTHING, "it was lent, not given");
    });
}

#[test]
fn the_packet_thread_has_its_powers_in_force_for_a_moment_only() {
    on_a_thread_of_its_own(|| {
        let powers = powers();
        powers.reduce().expect("privileges can be given up");
        at_rest(&powers).expect("they can be put to rest");
        assert_eq!(holds(CapSet::Effective), CapsHashSet::new());
        assert_eq!(hawser_net::powers::raised(|| holds(CapSet::Effective)), powers.packet);
        assert_eq!(holds(CapSet::Effective), CapsHashSet::new());
        assert_eq!(hawser_net::powers::lending(of_a_program), NOTHING, "it has nothing to lend");
    });
}

#[test]
fn what_only_the_packet_thread_needs_is_not_kept_by_the_control_thread() {
    on_a_thread_of_its_own(|| {
        let powers = Powers::of(&config("listen = [\"0.0.0.0:443\"]", ""));
        powers.reduce().expect("privileges can be given up");
        assert_eq!(holds(CapSet::Permitted).len(), 2, "this test needs root");
        powers.keep_own().expect("they can be given up");
        assert_eq!(holds(CapSet::Permitted), [Capability::CAP_NET_ADMIN].into());
    });
}

#[test]
fn nobody_looks_into_the_memory_of_a_process_that_hides_it() {
    hawser_net::powers::hide_memory().expect("it can be hidden");
    let dumpable = rustix::process::dumpable_behavior().expect("it can be read");
    assert_eq!(dumpable, rustix::process::DumpableBehavior::NotDumpable);
}
