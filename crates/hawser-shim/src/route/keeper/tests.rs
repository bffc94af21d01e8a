//! The map's file and names, as they change under a running keeper.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Condvar, Mutex};

use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};

use super::names::Txt;
use super::*;
use crate::config::parse;

/// Far longer than anything here takes on a loaded machine.
const LONG: Duration = Duration::from_secs(60);
/// Names are asked for again this often.
const OFTEN: Duration = Duration::from_millis(20);

const OWN: &str = "1-ff00:0:110,10.110.0.10:31000";
const FAR: &str = "1-ff00:0:120,10.120.0.10:31000";
const OTHER: &str = "1-ff00:0:130,10.130.0.10:31000";

fn route(to: &str, end: &str) -> String {
    format!("[[route]]\nto = \"{to}\"\nscion = \"{end}\"\n")
}

/// A source with these keys of `[shim]`, routes, and a map's file.
fn source(keys: &str, routes: &str, map: Option<&Path>) -> Source {
    let config = parse(&format!("[shim]\nlocal = \"{OWN}\"\n{keys}\n{routes}"), "t.toml").expect("it is right");
    let own = config.end(config.local.isd_as.expect("it is there"));
    Source { map: map.map(Path::to_path_buf), ..Source::of(&config, own) }
}

fn end(table: &RouteTable, address: &str) -> Option<String> {
    table
        .to(crate::flow::Protocol::Tcp, address.parse().expect("it is an address"))
        .map(|target| target.end.to_string())
}

/// The first table told that has `address` at `expect`.
fn wait_for(told: &Receiver<Arc<RouteTable>>, address: &str, expect: Option<&str>) {
    while let Ok(table) = told.recv_timeout(LONG) {
        if end(&table, address).as_deref() == expect {
            return;
        }
    }
    panic!("{address} never was at {expect:?}");
}

fn teller() -> (impl FnMut(Arc<RouteTable>) + Send + 'static, Receiver<Arc<RouteTable>>) {
    let (tell, told) = channel();
    // The test may be over before the keeper's thread is.
    (move |table| drop(tell.send(table)), told)
}

/// The answers of a system's resolver, which the test may change.
#[derive(Default)]
struct Hosts {
    known: Mutex<BTreeMap<String, IpAddr>>,
    /// While it is true, the name `slow.example` is not answered.
    held: Mutex<bool>,
    let_go: Condvar,
}

impl Hosts {
    fn set(&self, name: &str, address: Option<&str>) {
        let mut known = self.known.lock().unwrap();
        match address {
            Some(address) => known.insert(name.to_owned(), address.parse().unwrap()),
            None => known.remove(name),
        };
    }

    fn resolver(self: &Arc<Self>, txt: Option<Txt>) -> Resolver {
        let hosts = Arc::clone(self);
        let look_up = move |name: &str| {
            if name == "slow.example" {
                let held = hosts.held.lock().unwrap();
                drop(hosts.let_go.wait_while(held, |held| *held).unwrap());
            }
            let found = hosts.known.lock().unwrap().get(name).copied();
            found.map(|ip| vec![ip]).ok_or_else(|| io::Error::other("no such name"))
        };
        Resolver { hosts: Arc::new(look_up), txt }
    }
}

#[test]
fn a_map_that_changes_is_read_again_and_a_broken_one_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let map = folder.path().join("map.toml");
    fs::write(&map, route("192.0.2.1", FAR)).expect("it can be written");
    let (tell, told) = teller();
    let source = source("", &route("192.0.2.2", FAR), Some(&map));
    let (_keeper, first) = Keeper::start(source, tell).expect("it starts");
    assert_eq!(end(&first, "192.0.2.1:80").as_deref(), Some(FAR));
    assert_eq!(end(&first, "192.0.2.2:80").as_deref(), Some(FAR), "the configuration's own");

    // As editors write: a new file in the place of the old one.
    let replace = |text: &str| {
        let new = folder.path().join("new.toml");
        fs::write(&new, text).expect("it can be written");
        fs::rename(&new, &map).expect("it can be moved");
    };
    replace("[[route]]\nto = nonsense\n");
    std::thread::sleep(LOOK_EVERY * 3);
    fs::remove_file(&map).expect("it is there");
    std::thread::sleep(LOOK_EVERY * 3);
    assert!(told.try_recv().is_err(), "the last good one stays");
    replace(&route("192.0.2.1", OTHER));
    wait_for(&told, "192.0.2.1:80", Some(OTHER));
}

#[test]
fn a_map_that_is_being_written_is_read_when_it_is_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let map = folder.path().join("map.toml");
    let write = |text: &str| fs::write(&map, text).expect("it can be written");
    write(&route("192.0.2.1", FAR));
    let (mut file, _) = MapFile::open(map.clone(), false).expect("it is right");
    assert!(file.changed().is_none(), "it has not changed");
    write("");
    assert!(file.changed().is_none(), "emptied, as who writes it does first");
    write(&(route("192.0.2.1", FAR) + &route("192.0.2.2", FAR)));
    assert!(file.changed().is_none(), "it may not be all");
    assert_eq!(file.changed().map(|routes| routes.len()), Some(2), "it rests");
    assert!(file.changed().is_none(), "read already");
    write("");
    assert!(file.changed().is_none());
    assert_eq!(file.changed().map(|routes| routes.len()), Some(0), "and one that stays empty is meant so");
}

#[test]
fn a_map_that_is_missing_or_faulty_at_the_start_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let map = folder.path().join("map.toml");
    let start = || Keeper::start(source("", "", Some(&map)), |_| {}).map(|_| ());
    assert!(matches!(start(), Err(KeeperError::Map(LoadError::Read { .. }))));
    fs::write(&map, "[shim]\n").expect("it can be written");
    assert!(matches!(start(), Err(KeeperError::Map(LoadError::Faulty { .. }))), "a map has routes alone");
}

#[test]
fn routes_to_the_own_host_are_left_out_so_that_hosts_can_share_a_map() {
    let routes = route("192.0.2.1", OWN) + &route("192.0.2.2", FAR);
    let (_keeper, table) = Keeper::start(source("", &routes, None), |_| {}).expect("it starts");
    assert_eq!(end(&table, "192.0.2.1:80"), None);
    assert_eq!(end(&table, "192.0.2.2:80").as_deref(), Some(FAR));
}

#[test]
fn what_a_name_has_is_asked_for_again_and_stays_when_it_is_not_found() {
    let hosts = Arc::new(Hosts::default());
    hosts.set("www.example", Some("192.0.2.1"));
    let (tell, told) = teller();
    let resolver = hosts.resolver(None);
    let source = source("", &route("www.example:443", FAR), None);
    let (_keeper, first) = Keeper::start_with(source, || resolver, OFTEN, tell).expect("it starts");
    assert_eq!(end(&first, "192.0.2.1:443"), None, "the start waits for no name");
    wait_for(&told, "192.0.2.1:443", Some(FAR));
    hosts.set("www.example", None);
    std::thread::sleep(OFTEN * 10);
    assert!(told.try_recv().is_err(), "what was known stays");
    hosts.set("www.example", Some("192.0.2.7"));
    wait_for(&told, "192.0.2.7:443", Some(FAR));
    // This host itself must stay reachable, whatever a name server says.
    hosts.set("www.example", Some("127.0.0.1"));
    std::thread::sleep(OFTEN * 10);
    assert!(told.try_recv().is_err(), "loopback is never taken");
}

#[test]
fn a_name_that_nobody_answers_for_holds_up_no_other() {
    let hosts = Arc::new(Hosts::default());
    *hosts.held.lock().unwrap() = true;
    hosts.set("www.example", Some("192.0.2.1"));
    hosts.set("slow.example", Some("192.0.2.2"));
    let (tell, told) = teller();
    let resolver = hosts.resolver(None);
    let routes = route("slow.example", FAR) + &route("www.example", FAR);
    let started = Keeper::start_with(source("", &routes, None), || resolver, LONG, tell);
    let (_keeper, _) = started.expect("it starts");
    wait_for(&told, "192.0.2.1:80", Some(FAR));
    *hosts.held.lock().unwrap() = false;
    hosts.let_go.notify_all();
    wait_for(&told, "192.0.2.2:80", Some(FAR));
}

#[test]
fn a_name_without_an_end_has_that_of_its_txt_record() {
    let server = name_server("scion=1-ff00:0:120,10.120.0.10");
    let hosts = Arc::new(Hosts::default());
    hosts.set("www.example", Some("192.0.2.1"));
    let (tell, told) = teller();
    let resolver = move || {
        let udp = {
            let mut udp = ConnectionConfig::udp();
            udp.port = server.port();
            udp
        };
        let server = NameServerConfig::new(server.ip(), true, vec![udp]);
        hosts.resolver(Txt::at(ResolverConfig::from_parts(None, Vec::new(), vec![server])))
    };
    let source = source("dns = true", "[[route]]\nto = \"www.example:443\"\n", None);
    let (_keeper, _) = Keeper::start_with(source, resolver, LONG, tell).expect("it starts");
    wait_for(&told, "192.0.2.1:443", Some(FAR));
}

#[test]
fn routes_that_are_handed_over_take_the_place_of_the_old_ones() {
    let (tell, told) = teller();
    let (keeper, _) = Keeper::start(source("", &route("192.0.2.1", FAR), None), tell).expect("it starts");
    keeper.read_again(source("", &route("192.0.2.1", OTHER), None)).expect("it is right");
    wait_for(&told, "192.0.2.1:80", Some(OTHER));
}

/// Answers every question with this TXT record, and one of another kind before it.
fn name_server(record: &'static str) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback is there");
    let address = socket.local_addr().expect("it is bound");
    // It ends with the test.
    std::thread::spawn(move || {
        let mut question = [0; 512];
        while let Ok((length, asker)) = socket.recv_from(&mut question) {
            let answer = txt_answer(&question[..length], &["v=spf1 -all", record]);
            socket.send_to(&answer, asker).expect("the asker is there");
        }
    });
    address
}

/// An answer of these records (RFC 1035 sections 4.1 and 3.3.14).
fn txt_answer(question: &[u8], records: &[&str]) -> Vec<u8> {
    let name = question[12..].iter().position(|byte| *byte == 0).expect("the name ends");
    let asked = &question[12..12 + name + 5];
    let count = u16::try_from(records.len()).expect("they are few");
    let mut answer = question[..2].to_vec();
    // A response, recursion available; one question.
    answer.extend([0x81, 0x80, 0, 1]);
    answer.extend(count.to_be_bytes());
    answer.extend([0; 4]);
    answer.extend(asked);
    for record in records {
        let length = u8::try_from(record.len()).expect("it is short");
        // The name asked for, TXT, IN, for a minute.
        answer.extend([0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 60, 0, length + 1, length]);
        answer.extend(record.as_bytes());
    }
    answer
}
