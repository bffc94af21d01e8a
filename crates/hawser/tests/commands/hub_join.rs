//! `serve --hub`, `peer add` and `join`, as they are typed: from two hosts with nothing to a hub whose member may die.
//! Needs root, and Debian's etcd-server and etcd-client.

use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::etcd::{Kind, Servers};
use crate::etcd_hub::{ETCD, MEMBERS, Net, SERVER, active};
use crate::lab::{PATIENCE, ms};
use hawser_config::PublicKey;
use hawser_portal::api::{Client, Deed, HubList, Status};
use hawser_portal::pairing::Token;
use hawser_wire::Namespace;
use hawser_wire::traffic::Ping;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Signal, kill_process};
use tempfile::TempDir;

/// How many requests the member's death may cost, one each 20 ms: the figures are tests/hub's.
const LOST_MOST: usize = 100;

struct Scene {
    net: Net,
    folder: TempDir,
}

impl Scene {
    fn new() -> Self {
        Self { net: Net::new(), folder: tempfile::tempdir().expect("a folder") }
    }

    fn file(&self, who: &str) -> PathBuf {
        self.folder.path().join(who).join("hawser.toml")
    }

    fn socket(&self, who: &str) -> PathBuf {
        self.file(who).with_file_name("hawser.sock")
    }

    /// What `hawser WORDS` says without a terminal, and its status: standard output, standard error.
    fn hawser(&self, at: &Namespace, who: &str, words: &str) -> (Option<i32>, String, String) {
        let mut command = at.command(env!("CARGO_BIN_EXE_hawser"));
        command.args(words.split_whitespace()).arg("-c").arg(self.file(who)).stdin(Stdio::null());
        let output = command.output().expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    /// The same, where it is to succeed.
    fn done(&self, at: &Namespace, who: &str, words: &str) -> (String, String) {
        let (status, out, err) = self.hawser(at, who, words);
        assert_eq!(status, Some(0), "hawser {words}: {err}");
        (out, err)
    }

    /// A member serves; what it printed.
    fn serve(&self, member: usize, more: &str) -> (String, String) {
        let (name, endpoint) = (MEMBERS[member], format!("192.0.{}.2", member + 1));
        self.done(&self.net.members[member], name, &format!("serve --hub {name} --endpoint {endpoint} {more}"))
    }

    /// What a member needs to know of etcd.
    fn etcd(&self, member: usize) -> String {
        let file = |name: &str| self.folder.path().join(name).display().to_string();
        let name = MEMBERS[member];
        let (ca, certificate, key) = (file("ca.pem"), file(&format!("{name}.pem")), file(&format!("{name}.key")));
        let at = SocketAddr::new(ETCD.parse().expect("an address"), 2379);
        format!("--etcd https://{at} --etcd-ca {ca} --etcd-certificate {certificate} --etcd-key {key}")
    }

    /// A token of zurich's.
    fn token(&self, more: &str) -> (String, String) {
        let (out, err) =
            self.done(&self.net.members[0], MEMBERS[0], &format!("peer add home --endpoint 192.0.1.2 {more}"));
        let token = out.trim().strip_prefix("sudo hawser join ").unwrap_or_else(|| panic!("no token: {out}"));
        let read: Token = token.parse().expect("a token");
        let hub = read.hub.expect("it names the members");
        assert_eq!((hub.name().as_str(), hub.others()[0].name.as_str()), (MEMBERS[0], MEMBERS[1]));
        (token.to_owned(), err)
    }

    fn join(&self, token: &str) -> String {
        self.done(&self.net.home, "home", &format!("join {token} --probe {SERVER}:7001")).1
    }

    fn wait_for(&self, who: &str, what: &str, holds: impl Fn(&Status) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !Client::status(&self.socket(who)).is_ok_and(|status| holds(&status)) {
            assert!(Instant::now() < end, "waited for {what}: {:#?}", Client::status(&self.socket(who)));
            sleep(ms(20));
        }
    }

    fn signal(&self, who: &str, signal: Signal) -> bool {
        let Ok(stream) = UnixStream::connect(self.socket(who)) else { return false };
        socket_peercred(&stream).is_ok_and(|peer| kill_process(peer.pid, signal).is_ok())
    }

    /// This member, the active one, is killed under a ping, and the other one has the home.
    fn survives_the_death_of(&self, first: usize) {
        let role = |status: &Status, name: &str, role: &str| {
            let peer = status.peers.iter().find(|peer| peer.name == name);
            peer.and_then(|peer| peer.hub.as_ref()).is_some_and(|hub| hub.role == role)
        };
        self.wait_for("home", "an owner", |status| active(status) == Some(first));
        self.wait_for(MEMBERS[1 - first], "a standby", |status| role(status, "home", "standby"));
        let ping = Ping {
            from: self.net.home.clone(),
            destination: SERVER.parse().expect("an address"),
            interval: ms(20),
            duration: Duration::from_secs(4),
        };
        let pinging = ping.start().expect("a ping");
        sleep(ms(500));
        assert!(self.signal(MEMBERS[first], Signal::KILL), "it runs");
        let report = pinging.finish().expect("a ping");
        let lost = report.sent.len() - report.echoes.len();
        println!("{lost} of {} requests lost", report.sent.len());
        assert!(lost < LOST_MOST, "{lost} of {}", report.sent.len());
        self.wait_for("home", "the other member", |status| active(status) == Some(1 - first));
    }
}

impl Drop for Scene {
    /// Portals in the background end with the test: the home first, so that no member waits for it to go.
    fn drop(&mut self) {
        for who in ["home", "zurich", "geneva"] {
            let end = Instant::now() + PATIENCE;
            while self.signal(who, Signal::TERM) && Instant::now() < end {
                sleep(ms(20));
            }
        }
    }
}

#[test]
fn a_site_joins_two_members_that_share_no_etcd_once_the_other_one_is_told() {
    let scene = Scene::new();
    let geneva = &scene.net.members[1];
    scene.serve(0, "");
    let (option, said) = scene.serve(1, "");
    assert!(option.starts_with("--member geneva=") && option.ends_with("@192.0.2.2:4920\n"), "{option}");
    assert!(said.contains("hint: for each peer, at one member"), "{said}");
    let (status, _, without) = scene.hawser(&scene.net.members[0], "zurich", "peer add home --endpoint 192.0.1.2");
    assert_eq!(status, Some(2), "{without}");
    assert!(
        without.contains("error: make token: a hub's token names all members\nhint: name each other one"),
        "{without}"
    );
    let (token, said) = scene.token(&option);
    assert!(said.contains("members of the hub: zurich (active), geneva\n"), "{said}");
    assert!(said.contains("peer add home --key KEY --allowed-ip 10.77.0.2/32\n"), "{said}");
    let joined = scene.join(&token);
    assert!(joined.contains("uplinks: one, two\n"), "each leads to a member: {joined}");
    let (_, command) =
        joined.split_once("at each other member (geneva), which does not know this peer yet:\n").expect("told");
    let words = command.trim().strip_prefix("sudo hawser ").expect("a command");
    scene.done(geneva, "geneva", words);
    scene.survives_the_death_of(0);
    scene.done(&scene.net.home, "home", "leave");
}

#[test]
fn with_etcd_who_enrols_is_a_peer_of_all_members_at_once() {
    let scene = Scene::new();
    let mut servers = Servers::start(&scene.net.store, scene.folder.path(), &[ETCD], &MEMBERS, Kind::default());
    let (_, said) = scene.serve(0, &scene.etcd(0));
    assert!(said.contains("etcd reached: members 1, peers 0\n"), "{said}");
    let (_, _, alone) = scene.hawser(&scene.net.members[0], "zurich", "peer add home --endpoint 192.0.1.2");
    assert!(alone.contains("error: make token: etcd knows no other member of this hub\n"), "{alone}");
    scene.serve(1, &scene.etcd(1));
    scene.wait_for("zurich", "both members", |status| status.etcd.as_ref().is_some_and(|etcd| etcd.members == 2));
    let (token, _) = scene.token("");
    // While etcd is away nobody enrols, and the token is good still.
    servers.kill(0);
    scene.wait_for("zurich", "etcd to be away", |status| status.etcd.as_ref().is_some_and(|etcd| !etcd.reached));
    let (status, _, refused) = scene.hawser(&scene.net.home, "home", &format!("join {token}"));
    assert_eq!(status, Some(1), "{refused}");
    let log = std::fs::read_to_string(scene.socket("zurich").with_extension("log")).expect("its log");
    let told = log.matches("token not taken: the peer is not in etcd").count();
    assert!((1..4).contains(&told), "told {told} times, and asked twice a second: {log}");
    servers.begin(0);
    servers.wait_until_healthy();
    scene.wait_for("zurich", "etcd", |status| status.etcd.as_ref().is_some_and(|etcd| etcd.reached));
    let joined = scene.join(&token);
    assert!(!joined.contains("at each other member"), "{joined}");
    assert!(!scene.file("zurich").with_file_name("peers.d").join("home.toml").exists(), "it is in etcd");
    assert!(!scene.file("zurich").with_file_name("tokens.d").join("home.toml").exists(), "a token works once");
    let (_, _, again) = scene.hawser(&scene.net.members[0], "zurich", "peer add home --endpoint 192.0.1.2");
    assert!(
        again.contains("make token: there is a peer \"home\" already")
            || again.contains("make token: the hub has a peer \"home\" already"),
        "{again}"
    );
    // Where it belongs is where it went.
    let told = Client::order(&scene.socket("zurich"), Deed::HubList).expect("it runs").expect("a list");
    let list: HubList = serde_json::from_value(told).expect("a list");
    let belongs = list.peers[0].active.as_deref().expect("there are members");
    let first = MEMBERS.iter().position(|name| *name == belongs).expect("a member");
    scene.survives_the_death_of(first);
    scene.done(&scene.net.home, "home", "leave");
}

#[test]
fn a_token_of_a_hub_of_twelve_names_eight_of_its_members_in_all_racks() {
    let scene = Scene::new();
    let servers = Servers::start(&scene.net.store, scene.folder.path(), &[ETCD], &MEMBERS, Kind::default());
    scene.serve(0, &scene.etcd(0));
    // The others are there as far as etcd says.
    for number in 1..12_u8 {
        let (key, rack) = (PublicKey::new([number; 32]).expect("a key"), number % 3);
        let value = format!(
            "{{\"v\":1,\"public_key\":\"{key}\",\"endpoints\":[\"198.51.100.{number}:4920\"],\"weight\":1,\
             \"rack\":{rack},\"version\":\"0\"}}"
        );
        servers.ctl(&format!("put /hawser/hub/members/member{number} {value}"));
    }
    scene.wait_for("zurich", "all members", |status| status.etcd.as_ref().is_some_and(|etcd| etcd.members == 12));
    let (out, said) = scene.done(&scene.net.members[0], "zurich", "peer add home --endpoint 192.0.1.2");
    assert!(said.contains("8 of 12 members of the hub: zurich, member"), "{said}");
    let token: Token = out.trim().strip_prefix("sudo hawser join ").expect("a token").parse().expect("a token");
    let hub = token.hub.expect("it names the members");
    // Zurich is in rack 0, which has three others; each of the other racks has four.
    let of_rack = [0, 1, 2].map(|rack| hub.others().iter().filter(|other| other.share.rack == rack).count());
    let is_spread = (1..=2).contains(&of_rack[0]) && of_rack[1..].iter().all(|count| (2..=3).contains(count));
    assert!(is_spread && of_rack.iter().sum::<usize>() == 7, "{of_rack:?}: {hub:?}");
}

#[test]
fn an_etcd_that_does_not_answer_leaves_nothing_of_a_member() {
    let scene = Scene::new();
    let words = "serve --hub zurich --endpoint 192.0.1.2 --etcd http://127.0.0.1:1";
    let (status, _, said) = scene.hawser(&scene.net.members[0], "zurich", words);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("error: serve: etcd is not reached: connect to http://127.0.0.1:1: "), "{said}");
    assert!(said.contains("undone: the portal has ended") && !scene.file("zurich").exists(), "{said}");
    let (status, _, said) = scene.hawser(&scene.net.members[0], "zurich", "serve --hub a/b --endpoint 192.0.1.2");
    assert!(status == Some(2) && said.contains("error: name the member of a hub \"a/b\": "), "{said}");
}
