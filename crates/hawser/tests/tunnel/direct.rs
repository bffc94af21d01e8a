//! Rules that lead packets past the tunnel, and rules that ask for a device or a name: what the router sees by the links is
//! what they say.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hawser_wire::{End, Namespace, veth};
use rustix::process::Signal;

use crate::home::{HUB, Home, WORLD, nft, run};
use crate::lab::{Portal, ms, parse};
use crate::talk::talk;

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
const NAME_SERVER: &str = "203.0.113.53";
/// Whom the world takes the links for.
const LINK: [&str; 2] = ["192.0.1.1", "fd00:1::1"];
const NAME: &str = "tv.example.test";
/// How long an answer counts, in seconds.
const TTL: u8 = 3;
/// How exact the bytes on the way are.
const WITHIN: f64 = 0.02;
const PATIENCE: Duration = Duration::from_secs(10);
const BY_NAME: &str = "[[rule]]\ndomains = [\"example.test\"]\nvia = \"direct\"\n";

/// A name server that says what it is told to. Ends when it drops.
struct NameServer {
    says: Arc<Mutex<[IpAddr; 2]>>,
    over: Arc<AtomicBool>,
}

impl NameServer {
    fn start(world: &Namespace) -> Self {
        let server = Self { says: Arc::new(Mutex::new(NAMED.map(parse))), over: Arc::default() };
        let socket = world.run(|| UdpSocket::bind((NAME_SERVER, 53))).expect("the namespace").expect("a socket");
        socket.set_read_timeout(Some(ms(100))).expect("a timeout");
        let (says, over) = (Arc::clone(&server.says), Arc::clone(&server.over));
        std::thread::spawn(move || {
            let mut question = [0; 512];
            while !over.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut question) else { continue };
                let says = *says.lock().expect("nobody panics");
                let _ = socket.send_to(&answer(&question[..length], says), from);
            }
        });
        server
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// An answer (RFC 1035 section 4.1) by one alias.
fn answer(question: &[u8], [v4, v6]: [IpAddr; 2]) -> Vec<u8> {
    const AAAA: u8 = 28;
    let kind = question[question.len() - 3];
    let mut said = question.to_vec();
    said[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, 2, 0, 0, 0, 0]);
    // The alias: a label before the name that was asked for, and the address of that.
    said.extend([0xc0, 12, 0, 5, 0, 1, 0, 0, 0, TTL, 0, 6, 3, b'c', b'd', b'n', 0xc0, 12]);
    let alias = u16::try_from(question.len() + 12).expect("a short question") | 0xc000;
    said.extend(alias.to_be_bytes());
    let octets = match if kind == AAAA { v6 } else { v4 } {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    said.extend([0, kind, 0, 1, 0, 0, 0, TTL, 0, octets.len() as u8]);
    said.extend(octets);
    said
}

/// Asks for the addresses of both IP versions, as a stub resolver does.
fn resolve(from: &Namespace) {
    let socket = from.run(|| UdpSocket::bind("0.0.0.0:0")).expect("the namespace").expect("a socket");
    socket.set_read_timeout(Some(ms(500))).expect("a timeout");
    for kind in [1, 28] {
        let mut question = vec![0, kind, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in NAME.split('.') {
            question.push(u8::try_from(label.len()).expect("a short label"));
            question.extend(label.bytes());
        }
        question.extend([0, 0, kind, 0, 1]);
        let end = Instant::now() + PATIENCE;
        loop {
            socket.send_to(&question, (NAME_SERVER, 53)).expect("it is sent");
            if socket.recv(&mut [0; 512]).is_ok() {
                break;
            }
            assert!(Instant::now() < end, "no answer");
        }
    }
}

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
        let said = run(&self.device, "cat", "/sys/class/net/lan1/address");
        said.trim().to_owned()
    }
}

/// Bytes of the packets with this comment.
fn counted(namespace: &Namespace, table: &str, comment: &str) -> u64 {
    let said = run(namespace, "nft", &format!("list table inet {table}"));
    let lines = said.lines().filter(|line| line.contains(&format!("\"{comment}\"")));
    lines.map(|line| line.split_whitespace().skip_while(|word| *word != "bytes").nth(1)).map(|word| word.map_or(0, parse::<u64>)).sum()
}

/// Waits until the portal knows these addresses of the first rule's domains, and no others.
fn wait_for_addresses(portal: &Portal, addresses: &[&str]) {
    portal.wait_for("the addresses", |status| {
        status.rules.iter().any(|rule| rule.addresses.keys().eq(addresses.iter()))
    });
}

fn end(portal: &mut Portal, signal: Signal) {
    portal.signal(signal);
    portal.wait();
}

fn reload(portal: &Portal) {
    let reloads = |portal: &Portal| portal.log().matches("configuration read again: changed sections=\"rule\"").count();
    let before = reloads(portal);
    portal.signal(Signal::HUP);
    let end = Instant::now() + PATIENCE;
    while reloads(portal) == before {
        assert!(Instant::now() < end, "not read again: {}", portal.log());
        std::thread::sleep(ms(20));
    }
}

#[test]
fn a_domain_and_a_device_go_past_the_tunnel_and_all_else_by_it() {
    let past = Past::new("past", &format!("[[rule]]\nprotocol = \"icmp\"\ninterface = \"lan0\"\nvia = [\"two\"]\nstrict = true\n{BY_NAME}"));
    let mac = past.mac();
    let Past { home, device } = &past;
    home.edit("local.toml", "[[peer]]", &format!("[[rule]]\nmac = \"{mac}\"\ninterface = \"lan1\"\nvia = \"direct\"\n[[peer]]"));
    let _server = NameServer::start(&home.world);
    let (local, _remote) = home.start_both();
    assert_eq!(talk(&home.client, &home.world, WORLD[0]), HUB[0], "what no rule names goes by the tunnel");
    assert_eq!(counted(&home.router, "watch", "rest"), 0, "and not past it");
    resolve(&home.client);
    wait_for_addresses(&local, &NAMED);
    for (named, link) in NAMED.into_iter().zip(LINK) {
        let known = crate::talk::tcp(&home.client, &home.world, parse(named));
        assert_eq!(known, parse::<IpAddr>(link), "{named}: the world knows the client by the link");
        assert_eq!(crate::talk::tcp(&home.local, &home.world, parse(named)), parse::<IpAddr>(link), "the host itself");
    }
    nft(&home.local, "reset counters; flush chain inet sent prerouting; delete table inet sent");
    nft(&home.local, SENT);
    let before = ["named", "named6"].map(|comment| counted(&home.router, "watch", comment));
    for named in NAMED {
        crate::talk::tcp(&home.client, &home.world, parse(named));
    }
    for (comment, before) in ["named", "named6"].into_iter().zip(before) {
        let (sent, went) = (counted(&home.local, "sent", comment), counted(&home.router, "watch", comment) - before);
        println!("{comment}: the client sent {sent} bytes, the router saw {went}");
        assert!(sent > 2 << 20 && (went as f64 / sent as f64 - 1.0).abs() < WITHIN, "{comment}: {sent} sent, {went} went past");
    }
    assert_eq!(counted(&home.router, "watch", "rest"), 0, "nothing else went past the tunnel");
    // Pings come first, and stay in the tunnel.
    let pings = hawser_wire::traffic::Ping { from: home.client.clone(), destination: parse(NAMED[0]), interval: ms(20), duration: ms(400) };
    assert_eq!(pings.run().expect("a ping").lost(), 0);
    let status = local.wait_for("pings by the second link", |status| status.rules[0].sent_bytes.get("two").is_some_and(|sent| *sent > 1_000));
    assert_eq!(status.rules[0].sent_bytes.get("one").copied().unwrap_or(0), 0, "a device's packets by the link that its rule names");
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
    let server = NameServer::start(&home.world);
    let (local, _remote) = home.start_both();
    resolve(&home.client);
    wait_for_addresses(&local, &NAMED);
    assert_eq!(crate::talk::tcp(&home.client, &home.world, parse(NAMED[0])), parse::<IpAddr>(LINK[0]));
    *server.says.lock().expect("nobody panics") = [parse(MOVED), parse(NAMED[1])];
    let start = Instant::now();
    resolve(&home.client);
    wait_for_addresses(&local, &[MOVED, NAMED[0], NAMED[1]].map(|a| a).into_iter().collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>());
    wait_for_addresses(&local, &[MOVED, NAMED[1]]);
    let followed = start.elapsed();
    println!("the old address was gone {followed:?} after the name had another");
    assert!(followed < Duration::from_secs(TTL.into()) + ms(800), "{followed:?}");
    assert_eq!(crate::talk::tcp(&home.client, &home.world, parse(MOVED)), parse::<IpAddr>(LINK[0]));
    assert_eq!(crate::talk::tcp(&home.client, &home.world, parse(NAMED[0])), parse::<IpAddr>(HUB[0]), "the old one by the tunnel");
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
    assert!(reaches(&home.client, NAMED[0]) && !reaches(&home.client, WORLD[0]), "a killed one leaves the rule in force");
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

/// Two ends of a conversation that lasts.
struct Stream(TcpStream, TcpStream);

impl Stream {
    fn new(home: &Home, port: u16) -> (Self, IpAddr) {
        let address = SocketAddr::new(parse(NAMED[0]), port);
        let listener = home.world.run(|| TcpListener::bind(address)).expect("the namespace").expect("a listener");
        let caller = home.client.run(|| TcpStream::connect_timeout(&address, PATIENCE)).expect("the namespace");
        let (called, known) = listener.accept().expect("it comes");
        let caller = caller.expect("a connection");
        for stream in [&caller, &called] {
            stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        }
        (Self(caller, called), known.ip())
    }

    fn echo(&mut self, what: &[u8]) {
        let mut heard = vec![0; what.len()];
        self.0.write_all(what).expect("it can be said");
        self.1.read_exact(&mut heard).expect("it is heard");
        self.1.write_all(&heard).expect("it can be answered");
        self.0.read_exact(&mut heard).expect("the answer is heard");
        assert_eq!(heard, what);
    }
}

#[test]
fn a_reload_adds_and_removes_a_direct_rule_and_flows_keep_their_way() {
    let past = Past::new("again", "");
    let home = &past.home;
    let before = home.footprints();
    let (mut local, mut remote) = home.start_both();
    let (by_tunnel, by_link) = (parse::<IpAddr>(HUB[0]), parse::<IpAddr>(LINK[0]));
    let (mut first, known) = Stream::new(home, 7001);
    assert_eq!(known, by_tunnel);
    first.echo(b"before");
    let rule = format!("[[rule]]\ndestination = \"{}/32\"\nvia = \"direct\"\n", NAMED[0]);
    home.edit("local.toml", "[[peer]]", &format!("{rule}[[peer]]"));
    reload(&local);
    first.echo(b"a flow of the tunnel's stays there");
    let (mut second, known) = Stream::new(home, 7002);
    assert_eq!(known, by_link, "a new one goes past it");
    second.echo(b"before");
    // A rule before it has the first word.
    home.edit("local.toml", &rule, &format!("[[rule]]\nprotocol = \"tcp\"\nports = [7003]\nresend = true\n{rule}"));
    reload(&local);
    assert_eq!(Stream::new(home, 7003).1, by_tunnel, "the first rule that matches wins");
    assert_eq!(Stream::new(home, 7004).1, by_link);
    home.edit("local.toml", &rule, "");
    reload(&local);
    second.echo(b"a flow past the tunnel stays there");
    first.echo(b"and the other too");
    assert_eq!(Stream::new(home, 7005).1, by_tunnel, "without the rule new ones go by the tunnel");
    end(&mut local, Signal::TERM);
    end(&mut remote, Signal::TERM);
    home.assert_same(&before, "after the end");
    // The same after a kill, with the rule from the start on.
    home.edit("local.toml", "[[peer]]", &format!("{rule}{BY_NAME}[[rule]]\nmac = \"{}\"\npriority = 1\n[[peer]]", past.mac()));
    let (mut local, mut remote) = home.start_both();
    assert!(run(&home.local, "nft", "list ruleset").contains("goto direct"));
    end(&mut local, Signal::KILL);
    end(&mut remote, Signal::TERM);
    assert!(run(&home.local, "ip", "rule").contains("32763"), "a killed one leaves something");
    let (mut local, mut remote) = home.start_both();
    assert_eq!(Stream::new(home, 7006).1, by_link);
    end(&mut local, Signal::TERM);
    end(&mut remote, Signal::TERM);
    home.assert_same(&before, "after a kill, a new start and its end");
}
