//! `fail = "closed"`: while the tunnel is away, no packet leaves past it.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::Output;
use std::thread::sleep;
use std::time::{Duration, Instant};

use hawser_wire::Namespace;
use rustix::process::Signal;

use crate::home::{CLIENT, HUB, Home, WORLD, nft, run};
use crate::lab::{Portal, ms};
use crate::talk::talk;

/// What the router counts: all that comes by a link and is not the links' own. What keeps a link alive is left out.
const WATCH: &str = "table inet watch { chain prerouting { type filter hook prerouting priority -300; \
    iifname != { one, two } accept; \
    ip daddr 198.51.100.7 udp dport 4920 accept; icmpv6 type { 130-137, 143 } accept; \
    ip saddr 192.0.1.1 ip daddr 192.0.1.2 icmp type echo-request accept; \
    counter comment \"leaks\"; }; }";
/// In a mount namespace. `$0` is the program, `$1` the configuration.
const WITHOUT_NFT: &str =
    r#"mount --bind /bin/false "$(readlink -f "$(command -v nft)")" && exec "$0" kill-switch on -c "$1""#;
/// Long enough for a SYN and for a ping; nothing is waited for where the way is closed.
const TRY: Duration = Duration::from_millis(250);
/// How long deleted rules may be away on a busy machine: the portal looks five times a second.
const BACK_MAX: Duration = Duration::from_secs(5);
/// Said of them once a round; and of the kill switch's where they cannot be.
const RESTORED: &str = "deleted rules restored";
const UNRESTORED: &str = "kill switch not restored, it is tried again";
/// The kill switch's journals, one for each network namespace.
const JOURNALS: &str = "/run/hawser/hawser0.outlives-the-portal";

struct Closed {
    home: Home,
    state: String,
}

impl Closed {
    fn new(tag: &str, fail: &str) -> Self {
        let home = Home::new(tag);
        let state = home.path("state").display().to_string();
        home.edit("local.toml", "default_route = true\n", &format!("default_route = true\nfail = \"{fail}\"\n"));
        home.edit("local.toml", "[portal]\n", &format!("[portal]\nstate_dir = \"{state}\"\n"));
        nft(&home.router, WATCH);
        Self { home, state }
    }

    /// Everybody tries to reach the world, past the tunnel if need be; how many packets came to the router.
    fn leaks(&self) -> u64 {
        let before = self.counted();
        std::thread::scope(|scope| {
            for namespace in [&self.home.client, &self.home.local] {
                for world in WORLD {
                    scope.spawn(move || reach_out(namespace, world));
                }
            }
        });
        self.counted() - before
    }

    fn counted(&self) -> u64 {
        let said = run(&self.home.router, "nft", "list table inet watch");
        let line = said.lines().find(|line| line.contains("leaks")).expect("the counter");
        line.split_whitespace().nth(2).and_then(|word| word.parse().ok()).expect("packets")
    }

    /// `hawser kill-switch` in the local portal's namespace.
    fn kill_switch(&self, word: &str) -> Output {
        let mut command = self.home.local.command(env!("CARGO_BIN_EXE_hawser"));
        command.args(["kill-switch", word, "-c"]).arg(self.home.path("local.toml"));
        command.output().expect("it starts")
    }

    /// `hawser kill-switch on`, where `nft` fails.
    fn close_without_nft(&self) -> Output {
        let mut command = self.home.local.command("unshare");
        command.args(["-m", "sh", "-c", WITHOUT_NFT, env!("CARGO_BIN_EXE_hawser")]).arg(self.home.path("local.toml"));
        command.output().expect("run unshare (util-linux)")
    }

    fn assert_said(&self, word: &str, words: &str) {
        let output = self.kill_switch(word);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains(words), "{word}: {said}");
    }

    fn rules(&self) -> [String; 2] {
        ["-4 rule", "-6 rule"].map(|question| run(&self.home.local, "ip", question))
    }

    /// Rules are deleted as systemd-networkd does it with all that it did not set; gives those that were there.
    fn delete_rules(&self) -> [String; 2] {
        let before = self.rules();
        for family in ["-4", "-6"] {
            run(&self.home.local, "ip", &format!("{family} rule flush protocol 72"));
        }
        before
    }

    /// They are there again soon.
    fn assert_rules_return(&self, local: &Portal, before: &[String; 2]) {
        let end = Instant::now() + BACK_MAX;
        while self.rules() != *before {
            assert!(Instant::now() < end, "{:?} and not {before:?}; log:\n{}", self.rules(), local.log());
            sleep(ms(20));
        }
        local.wait_for_log(RESTORED);
    }

    /// The LAN, the links' neighbours and the host itself are reached all the same.
    fn assert_neighbours_answer(&self) {
        let Home { client, local, .. } = &self.home;
        talk(local, client, CLIENT[0]);
        talk(local, client, CLIENT[1]);
        talk(client, local, "192.168.8.1");
        talk(local, local, "127.0.0.1");
        let said = local.command("ping").args(["-c", "1", "-W", "2", "fe80::2%one"]).output().expect("run ping");
        assert!(said.status.success(), "a link's neighbour: {}", String::from_utf8_lossy(&said.stdout));
    }
}

/// Pings, UDP and TCP: what an application would do.
fn reach_out(namespace: &Namespace, world: &str) {
    let address = SocketAddr::new(world.parse().expect("an address"), 7000);
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let work = || {
        let socket = UdpSocket::bind(any).expect("a socket");
        // Refused is as good as lost.
        let _ = socket.send_to(b"hello", address);
        let _ = TcpStream::connect_timeout(&address, TRY);
    };
    namespace.run(work).expect("the namespace");
    let ping = format!("-n -c 1 -W 0.3 {world}");
    let _ = namespace.command("ping").args(ping.split(' ')).output().expect("run ping (iputils-ping)");
}

fn end(portal: &mut Portal, signal: Signal) {
    portal.signal(signal);
    portal.wait();
}

#[test]
fn nothing_leaves_past_the_tunnel_after_its_end_a_kill_and_a_faulty_file() {
    let closed = Closed::new("shut", "closed");
    let home = &closed.home;
    let (mut local, mut remote) = home.start_both();
    assert_eq!(talk(&home.client, &home.world, WORLD[0]), HUB[0], "the tunnel carries");
    assert_eq!(talk(&home.local, &home.world, WORLD[1]), HUB[1]);
    closed.assert_rules_return(&local, &closed.delete_rules());
    assert_eq!(closed.leaks(), 0, "all by the tunnel");
    end(&mut remote, Signal::KILL);
    assert_eq!(closed.leaks(), 0, "the other end is away");
    end(&mut local, Signal::TERM);
    assert!(local.log().contains("way past the tunnel stays closed"), "{}", local.log());
    assert_eq!(closed.leaks(), 0, "after its end");
    closed.assert_neighbours_answer();
    let (mut local, mut remote) = home.start_both();
    assert_eq!(talk(&home.client, &home.world, WORLD[0]), HUB[0], "and it carries again");
    end(&mut local, Signal::KILL);
    assert_eq!(closed.leaks(), 0, "after a kill");
    home.edit("local.toml", "[gateway]", "[getaway]");
    let mut faulty = Portal::start(&home.local, home.folder(), "local");
    assert_eq!(faulty.wait().code(), Some(2), "{}", faulty.log());
    assert_eq!(closed.leaks(), 0, "after a start with a faulty file");
    // The way out needs no right file.
    closed.assert_said("off", "open, traffic leaves past the tunnel");
    assert!(closed.leaks() > 0, "it is open, and the watch sees what leaks");
    closed.assert_said("off", "nothing was closed");
    end(&mut remote, Signal::TERM);
}

#[test]
fn it_is_closed_at_boot_before_any_portal_and_by_a_faulty_file_too() {
    let closed = Closed::new("boot", "closed");
    let home = &closed.home;
    assert!(closed.leaks() > 0, "nobody closed it yet");
    let before = home.footprints();
    closed.assert_said("on", "closed: nothing leaves past the tunnel");
    assert_eq!(closed.leaks(), 0);
    closed.assert_neighbours_answer();
    closed.assert_said("on", "closed");
    assert_eq!(
        run(&home.local, "ip", "rule").matches("lookup main suppress_prefixlength 0").count(),
        1,
        "it is there once"
    );
    // Others flush nftables: the routing rules hold until it is put back.
    run(&home.local, "nft", "flush ruleset");
    assert_eq!(closed.leaks(), 0, "after somebody flushed nftables");
    closed.assert_said("on", "closed");
    // No route of the world's passes, whoever sets it.
    run(&home.local, "ip", &format!("route add {}/32 via 192.0.1.2", WORLD[0]));
    assert_eq!(closed.leaks(), 0, "a route of its own");
    run(&home.local, "ip", &format!("route del {}/32 via 192.0.1.2", WORLD[0]));
    closed.assert_said("off", "open");
    home.assert_same(&before, "after it was opened");

    // The machine starts anew, and somebody has spoilt the file.
    closed.assert_said("on", "closed");
    home.edit("local.toml", "[gateway]", "[getaway]");
    forget_all(&home.local);
    assert!(closed.leaks() > 0, "nothing is left of it");
    let said = closed.kill_switch("on");
    let text = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.code() == Some(2) && text.contains("last said"), "{text}");
    assert_eq!(closed.leaks(), 0, "closed as it last was, from {}", closed.state);
    // A right file that says open opens it.
    home.edit("local.toml", "[getaway]", "[gateway]");
    home.edit("local.toml", "fail = \"closed\"", "fail = \"open\"");
    closed.assert_said("on", "open, as the configuration says");
    assert!(closed.leaks() > 0);
    home.assert_same(&before, "after it was opened by the file");
}

fn assert_failed(output: &Output, words: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains(words), "{said}");
}

#[test]
fn it_is_closed_though_nftables_fails_or_the_record_cannot_be_written() {
    let closed = Closed::new("half", "closed");
    let home = &closed.home;
    let before = home.footprints();
    assert_failed(&closed.close_without_nft(), "run nft");
    assert_eq!(closed.leaks(), 0, "by routing rules alone");
    closed.assert_said("off", "open");
    // Below a file there is no folder, for root neither.
    home.edit("local.toml", "/state\"", "/local.key/state\"");
    assert_failed(&closed.kill_switch("on"), "keep /");
    assert_eq!(closed.leaks(), 0, "without a record");
    // The way out needs neither a record nor a right file.
    home.edit("local.toml", "[gateway]", "[getaway]");
    closed.assert_said("off", "open");
    home.assert_same(&before, "after it was opened");
}

/// What a restart of the machine takes away.
fn forget_all(namespace: &Namespace) {
    run(namespace, "nft", "flush ruleset");
    for family in ["-4", "-6"] {
        let rules = run(namespace, "ip", &format!("{family} rule"));
        let ours = |line: &&str| line.contains("suppress_prefixlength") || line.contains("not from all fwmark");
        for priority in rules.lines().filter(ours).filter_map(|line| line.split_once(':')).map(|(priority, _)| priority)
        {
            run(namespace, "ip", &format!("{family} rule del priority {priority}"));
        }
    }
}

#[test]
fn open_leaks_as_it_says_while_the_tunnel_is_away() {
    let open = Closed::new("open", "open");
    let (mut local, _remote) = open.home.start_both();
    assert_eq!(open.leaks(), 0, "all by the tunnel");
    end(&mut local, Signal::TERM);
    assert!(open.leaks() > 0, "the watch sees what leaves past it");
}

#[test]
fn rules_that_another_program_deletes_come_back_and_all_goes_by_the_tunnel_again() {
    let open = Closed::new("rules", "open");
    let home = &open.home;
    let (local, _remote) = home.start_both();
    open.assert_rules_return(&local, &open.delete_rules());
    assert_eq!(talk(&home.client, &home.world, WORLD[0]), HUB[0], "the tunnel carries");
    assert_eq!(open.leaks(), 0, "all by the tunnel");
    let rounds = local.log().matches(RESTORED).count();
    assert!(rounds <= 4, "{rounds} rounds for four rules, by its own changes; log:\n{}", local.log());
}

/// The journal of what a portal's kill switch has set, locked as by another program that is about to change that.
fn lock_journal(local: &Portal) -> File {
    let owner = format!("\"pid\":{},", local.pid());
    let is_its = |folder: &PathBuf| fs::read_to_string(folder.join("journal")).is_ok_and(|text| text.contains(&owner));
    let mut folders = fs::read_dir(JOURNALS).expect("there are journals").map(|entry| entry.expect("an entry").path());
    let lock = File::open(folders.find(is_its).expect("one is the portal's")).expect("a folder");
    lock.lock().expect("nobody has it for long");
    lock
}

#[test]
fn rules_that_cannot_be_restored_are_tried_until_they_are_and_that_is_said_once() {
    let closed = Closed::new("retry", "closed");
    let (local, _remote) = closed.home.start_both();
    let lock = lock_journal(&local);
    let before = closed.delete_rules();
    local.wait_for_log(UNRESTORED);
    // Twice more it is tried (`RETRY_EVERY`).
    sleep(ms(4_500));
    assert_ne!(closed.rules(), before, "the kill switch's are restored by its journal alone");
    assert_eq!(closed.leaks(), 0, "nftables holds");
    // No change of routes or rules calls for it any more.
    drop(lock);
    closed.assert_rules_return(&local, &before);
    assert_eq!(local.log().matches(UNRESTORED).count(), 1, "{}", local.log());
}
