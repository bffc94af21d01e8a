//! Rules that lead packets past the tunnel, and rules that ask for a device or a name: what the router sees by the
//! links is what they say.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use hawser_wire::{End, Namespace, veth};
use rustix::process::Signal;

use crate::home::{HUB, Home, WORLD, nft, run};
use crate::lab::{Portal, ms, parse};
use crate::talk::{talk, tcp};

mod flows;
mod name_server;

use name_server::{Dnsmasq, GATEWAY, NAME_SERVER, NameServer, resolve};

/// The router lets the links' packets into the world here, and counts: those to each address by itself.
const ROUTER: &str = "delete table inet leaks; table inet watch { \
    chain forward { type filter hook forward priority 0; iifname { one, two } oifname world jump past; }; \
    chain past { ip daddr 203.0.113.10 counter return comment \"named\"; ip6 daddr fd20::10 counter return comment \"named6\"; \
    ip daddr 203.0.113.11 counter return comment \"moved\"; ip saddr 192.0.1.1 counter comment \"rest\"; \
    ip saddr != 192.0.1.1 counter comment \"rest\"; }; }";
/// What comes in from the client for the same addresses.
const SENT: &str = "table inet sent { chain prerouting { type filter hook prerouting priority -300; \
    iifname lan0 ip daddr 203.0.113.10 counter comment \"named\"; iifname lan0 ip6 daddr fd20::10 counter comment \"named6\"; }; }";
const NAMED: [&str; 2] = ["203.0.113.10", "fd20::10"];
const MOVED: &str = "203.0.113.11";
/// Whom the world takes the links for.
const LINK: [&str; 2] = ["192.0.1.1", "fd00:1::1"];
/// How long an answer counts, in seconds: for longer than a test, and for a while.
const LASTING: u8 = 120;
const TTL: u8 = 5;
/// How exact the bytes on the way are.
const WITHIN: f64 = 0.02;
const PATIENCE: Duration = Duration::from_secs(10);
const BY_NAME: &str = "[[rule]]\ndomains = [\"example.test\"]\nvia = \"direct\"\n";

struct Past {
    home: Home,
    /// A second device, in a network of its own behind the gateway.
    device: Namespace,
}

impl Past {
    fn new(tag: &str, rules: &str) -> Self {
        let home = Home::new(tag);
        let device = Namespace::new(tag).expect("makes a namespace");
        let near = End::new(&device, "lan1", &["192.168.9.2/24", "fd09::2/64", "fe80::1/64"]);
        let far = End::new(&home.local, "lan1", &["192.168.9.1/24", "fd09::1/64", "fe80::2/64"]);
        veth(&near, &far, 1500).expect("a veth pair");
        run(&device, "ip", "route add default via 192.168.9.1");
        run(&device, "ip", "-6 route add default via fd09::1");
        for address in [NAMED[0], MOVED, NAME_SERVER] {
            run(&home.world, "ip", &format!("address add {address}/32 dev lo"));
            run(&home.router, "ip", &format!("route add {address}/32 via {}", WORLD[0]));
        }
        run(&home.world, "ip", &format!("address add {}/128 dev lo", NAMED[1]));
        run(&home.router, "ip", &format!("-6 route add {}/128 via {}", NAMED[1], WORLD[1]));
        nft(&home.router, ROUTER);
        nft(&home.local, SENT);
        home.edit("local.toml", "[\"lan0\"]", "[\"lan0\", \"lan1\"]");
        home.edit("local.toml", "[[peer]]", &format!("{rules}[[peer]]"));
        home.edit("remote.toml", "\"fd08::/64\"", "\"fd08::/64\", \"192.168.9.0/24\", \"fd09::/64\"");
        Self { home, device }
    }

    /// The Ethernet address of the second device.
    fn mac(&self) -> String {
        let said = run(&self.device, "ip", "-o link show dev lan1");
        let after = said.split_whitespace().skip_while(|word| *word != "link/ether");
        after.into_iter().nth(1).expect("an address").to_owned()
    }
}

/// Bytes of the packets with this comment.
fn counted(namespace: &Namespace, table: &str, comment: &str) -> u64 {
    let said = run(namespace, "nft", &format!("list table inet {table}"));
    let lines = said.lines().filter(|line| line.contains(&format!("\"{comment}\"")));
    lines
        .map(|line| line.split_whitespace().skip_while(|word| *word != "bytes").nth(1))
        .map(|word| word.map_or(0, parse::<u64>))
        .sum()
}

/// Waits until the portal knows these addresses of the first rule's domains, and no others.
fn wait_for_addresses(portal: &Portal, addresses: &[&str]) {
    portal
        .wait_for("the addresses", |status| status.rules.iter().any(|rule| rule.addresses.keys().eq(addresses.iter())));
}

fn end(portal: &mut Portal, signal: Signal) {
    portal.signal(signal);
    portal.wait();
}

#[test]
fn a_domain_and_a_device_go_past_the_tunnel_and_all_else_by_it() {
    let past = Past::new(
        "past",
        &format!("[[rule]]\nprotocol = \"icmp\"\ninterface = \"lan0\"\nvia = [\"two\"]\nstrict = true\n{BY_NAME}"),
    );
    let mac = past.mac();
    let Past { home, device } = &past;
    home.edit(
        "local.toml",
        "[[peer]]",
        &format!("[[rule]]\nmac = \"{mac}\"\ninterface = \"lan1\"\nvia = \"direct\"\n[[peer]]"),
    );
    let _server = NameServer::start(&home.world, LASTING);
    let (local, _remote) = home.start_both();
    assert_eq!(talk(&home.client, &home.world, WORLD[0]), HUB[0], "what no rule names goes by the tunnel");
    assert_eq!(counted(&home.router, "watch", "rest"), 0, "and not past it");
    resolve(&home.client, NAME_SERVER);
    wait_for_addresses(&local, &NAMED);
    for (named, link) in NAMED.into_iter().zip(LINK) {
        let known = tcp(&home.client, &home.world, parse(named));
        assert_eq!(known, parse::<IpAddr>(link), "{named}: the world knows the client by the link");
        assert_eq!(tcp(&home.local, &home.world, parse(named)), parse::<IpAddr>(link), "the host itself");
    }
    nft(&home.local, "delete table inet sent");
    nft(&home.local, SENT);
    let before = ["named", "named6"].map(|comment| counted(&home.router, "watch", comment));
    for named in NAMED {
        tcp(&home.client, &home.world, parse(named));
    }
    for (comment, before) in ["named", "named6"].into_iter().zip(before) {
        let (sent, went) = (counted(&home.local, "sent", comment), counted(&home.router, "watch", comment) - before);
        println!("{comment}: the client sent {sent} bytes, the router saw {went}");
        assert!(
            sent > 2 << 20 && (went as f64 / sent as f64 - 1.0).abs() < WITHIN,
            "{comment}: {sent} sent, {went} went past"
        );
    }
    assert_eq!(counted(&home.router, "watch", "rest"), 0, "nothing else went past the tunnel");
    // Pings come first, and stay in the tunnel.
    let pings = hawser_wire::traffic::Ping {
        from: home.client.clone(),
        destination: parse(NAMED[0]),
        interval: ms(20),
        duration: ms(400),
    };
    assert_eq!(pings.run().expect("a ping").lost(), 0);
    let status = local.wait_for("pings by the second link", |status| {
        status.rules[0].sent_bytes.get("two").is_some_and(|sent| *sent > 1_000)
    });
    assert_eq!(
        status.rules[0].sent_bytes.get("one").copied().unwrap_or(0),
        0,
        "a device's packets by the link that its rule names"
    );
    assert!(status.rules[1].direct && status.rules[1].sets.len() == 2);
    // The other device goes past it, wherever to.
    for (world, link) in WORLD.into_iter().zip(LINK) {
        assert_eq!(talk(device, &home.world, world), link);
    }
    assert!(counted(&home.router, "watch", "rest") > 2 << 20);
    assert!(!local.log().contains("WARN"), "{}", local.log());
}

#[test]
fn a_name_that_resolves_anew_is_followed_within_its_ttl() {
    let past = Past::new("ttl", BY_NAME);
    let home = &past.home;
    let server = NameServer::start(&home.world, TTL);
    let (local, _remote) = home.start_both();
    resolve(&home.client, NAME_SERVER);
    wait_for_addresses(&local, &NAMED);
    assert_eq!(tcp(&home.client, &home.world, parse(NAMED[0])), parse::<IpAddr>(LINK[0]));
    *server.says.lock().expect("nobody panics") = [parse(MOVED), parse(NAMED[1])];
    // The old one's time is over so much before the new one's: a status is seldom looked at for less.
    std::thread::sleep(ms(1_000));
    let start = Instant::now();
    resolve(&home.client, NAME_SERVER);
    wait_for_addresses(&local, &[MOVED, NAMED[1]]);
    let followed = start.elapsed();
    println!("the old address was gone {followed:?} after the name had another");
    assert!(followed < Duration::from_secs(TTL.into()) + ms(800), "{followed:?}");
    // The new one was learned a moment after the old, and counts no longer than it.
    resolve(&home.client, NAME_SERVER);
    local.wait_for("the new address for some seconds", |status| {
        status.rules.iter().any(|rule| rule.addresses.get(MOVED).is_some_and(|left_s| *left_s + 2 >= u64::from(TTL)))
    });
    assert_eq!(tcp(&home.client, &home.world, parse(MOVED)), parse::<IpAddr>(LINK[0]));
    assert_eq!(tcp(&home.client, &home.world, parse(NAMED[0])), parse::<IpAddr>(HUB[0]), "the old one by the tunnel");
}

#[test]
fn where_dnsmasq_answers_an_address_is_known_before_the_answer_comes() {
    let past = Past::new("masq", BY_NAME);
    let home = &past.home;
    let _server = NameServer::start(&home.world, LASTING);
    let (local, _remote) = home.start_both();
    let status = local.wait_for("the sets", |status| status.rules.iter().any(|rule| !rule.sets.is_empty()));
    let _dnsmasq = Dnsmasq::start(home, &status.rules[0].sets);
    resolve(&home.client, GATEWAY);
    for (named, link) in NAMED.into_iter().zip(LINK) {
        assert_eq!(tcp(&home.client, &home.world, parse(named)), parse::<IpAddr>(link), "the very first flow");
    }
    // Its answer passes too, and says for how long.
    wait_for_addresses(&local, &NAMED);
    let set = run(&home.local, "nft", &format!("list set inet hawser_hawser0_rules {}", status.rules[0].sets[0]));
    assert!(set.contains(NAMED[0]) && set.contains(&format!("timeout {}m", LASTING / 60)), "{set}");
}

#[test]
fn closed_lets_exactly_what_a_rule_names_past_and_nothing_after_the_end() {
    let rules = format!("[[rule]]\ndestination = \"{}/32\"\nvia = \"direct\"\n", NAMED[0]);
    let past = Past::new("shut", &rules);
    let home = &past.home;
    let state = home.path("state").display().to_string();
    home.edit("local.toml", "default_route = true\n", "default_route = true\nfail = \"closed\"\n");
    home.edit("local.toml", "[portal]\n", &format!("[portal]\nstate_dir = \"{state}\"\n"));
    let (mut local, mut remote) = home.start_both();
    for from in [&home.client, &home.local] {
        assert_eq!(talk(from, &home.world, NAMED[0]), LINK[0], "past the tunnel");
        assert_eq!(talk(from, &home.world, WORLD[0]), HUB[0], "by it");
    }
    end(&mut remote, Signal::KILL);
    for from in [&home.client, &home.local] {
        assert_eq!(talk(from, &home.world, NAMED[0]), LINK[0], "the other end is away");
        assert!(!reaches(from, WORLD[0]) && !reaches(from, WORLD[1]) && !reaches(from, NAMED[1]));
    }
    end(&mut local, Signal::KILL);
    assert!(
        reaches(&home.client, NAMED[0]) && !reaches(&home.client, WORLD[0]),
        "a killed one leaves the rule in force"
    );
    let mut local = Portal::start(&home.local, home.folder(), "local");
    local.wait_for("a status", |_| true);
    assert!(reaches(&home.client, NAMED[0]));
    end(&mut local, Signal::TERM);
    assert!(!reaches(&home.client, NAMED[0]) && !reaches(&home.local, NAMED[0]), "closed, by nobody's rule");
    assert_eq!(counted(&home.router, "watch", "rest"), 0, "nothing else ever went past the tunnel");
}

/// Whether an answer comes; where the way is closed none does.
fn reaches(from: &Namespace, to: &str) -> bool {
    let ping = format!("-n -c 2 -i 0.2 -W 0.5 {to}");
    from.command("ping").args(ping.split(' ')).output().expect("run ping (iputils-ping)").status.success()
}
