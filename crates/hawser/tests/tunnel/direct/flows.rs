//! Flows keep their way when a reload brings or takes a rule that leads past the tunnel; and all is undone.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Instant;

use rustix::process::Signal;

use super::{BY_NAME, LINK, NAMED, PATIENCE, Past, end};
use crate::home::{HUB, Home, run};
use crate::lab::{Portal, ms, parse};
use crate::talk::bound;

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

/// Two ends of a conversation that lasts.
struct Stream(TcpStream, TcpStream);

impl Stream {
    fn new(home: &Home, port: u16) -> (Self, IpAddr) {
        let address = SocketAddr::new(parse(NAMED[0]), port);
        let listener = bound(&home.world, || TcpListener::bind(address));
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
    home.edit(
        "local.toml",
        "[[peer]]",
        &format!("{rule}{BY_NAME}[[rule]]\nmac = \"{}\"\npriority = 1\n[[peer]]", past.mac()),
    );
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
