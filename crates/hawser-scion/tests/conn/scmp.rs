//! What routers say: true and forged. The test is the router.

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use hawser_scion::conn::{ConnOpts, DeadPart, Event, PathTable, Remote, ScionConn, Unreachable};
use hawser_scion::packet::{Echo, FlowId, ScmpView, Template, Upper, parse};
use hawser_scion::{Dataplane, EndpointAddr, InterfaceId, IsdAs, Path, PathInterface};

use crate::support::{PATIENCE, Pair, SIX_HOURS, here, in_as, on, path, until};

/// The longest quote in these tests, in bytes: header and ports.
const QUOTE: usize = 200;

/// A connection from AS 110 to AS 120 with two paths, each by a router of its own.
struct Net {
    _pair: Pair,
    conn: ScionConn,
    routers: [UdpSocket; 2],
}

fn as_110() -> IsdAs {
    "1-ff00:0:110".parse().expect("an AS")
}

fn as_120() -> IsdAs {
    "1-ff00:0:120".parse().expect("an AS")
}

fn dead(isd_as: IsdAs, id: u16) -> DeadPart {
    DeadPart::External(PathInterface { isd_as, id: InterfaceId(id) })
}

impl Net {
    fn new() -> Net {
        Net::with(|pair, paths| {
            let table = PathTable::default();
            table.set(as_120(), paths);
            pair.conn(&pair.near, on("10.9.0.1:31000"), in_as("1-ff00:0:120", "10.0.0.7:443"), Arc::new(table))
        })
    }

    /// The same along the first of the two paths, whatever happens.
    fn along_the_first() -> (Net, Path) {
        let mut second = None;
        let net = Net::with(|pair, paths| {
            second = paths.get(1).cloned();
            let along = || ScionConn::along(on("10.9.0.1:31000"), in_as("1-ff00:0:120", "10.0.0.7:443"), &paths[0]);
            pair.near.run(along).expect("the namespace").expect("a connection")
        });
        (net, second.expect("two paths"))
    }

    fn with(open: impl FnOnce(&Pair, Vec<Path>) -> ScionConn) -> Net {
        let pair = Pair::new();
        let router = |_| {
            let socket = pair.far.run(|| UdpSocket::bind("10.9.0.2:0")).expect("the namespace").expect("a socket");
            socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            socket
        };
        let routers = [1, 2].map(router);
        let paths = [(1, &routers[0]), (2, &routers[1])]
            .map(|(id, router)| path(id, router.local_addr().expect("bound"), SIX_HOURS));
        let conn = open(&pair, paths.to_vec());
        Net { _pair: pair, conn, routers }
    }

    /// Sends a packet and returns the beginning of it, as it came to a router.
    fn quote_by(&self, router: usize) -> Vec<u8> {
        self.conn.send(&[7; 1000]).expect("send");
        let mut packet = vec![0; 2000];
        let bytes = self.routers[router].recv(&mut packet).expect("the packet comes to this router");
        packet.truncate(bytes.min(QUOTE));
        packet
    }

    /// Tells the connection something, from a host of an AS.
    fn say(&self, isd_as: IsdAs, message: &ScmpView<'_>) {
        let from = EndpointAddr::new(isd_as, "10.7.7.7:0".parse().expect("an address"));
        let template = Template::new(from, self.conn.local(), &Dataplane::Empty, FlowId::default());
        let mut packet = Vec::new();
        template.expect("a template").write_scmp(message, &mut packet);
        self.routers[0].send_to(&packet, self.conn.local().host).expect("send");
    }

    /// Has the connection read what was said, and returns how many messages it heeded in all.
    fn heeded_after(&self, messages: u64) -> u64 {
        until("all messages", || {
            self.conn.recv_batch(Some(Duration::from_millis(10)), |_| ()).expect("receive");
            let stats = self.conn.stats();
            (stats.scmp_heeded + stats.scmp_ignored + stats.bad_checksum >= messages).then_some(stats.scmp_heeded)
        })
    }
}

fn external(isd_as: IsdAs, id: u16, quoted: &[u8]) -> ScmpView<'_> {
    ScmpView::ExternalInterfaceDown { isd_as, interface: InterfaceId(id), quoted }
}

#[test]
fn a_path_whose_link_died_is_replaced_at_once() {
    let net = Net::new();
    let quote = net.quote_by(0);
    let (from, because) = (net.conn.path(), dead(as_120(), 1));
    net.say(as_120(), &external(as_120(), 1, &quote));
    assert_eq!(net.heeded_after(1), 1);
    net.quote_by(1);
    let told = Event::PathReplaced { destination: net.conn.destination(), from, to: net.conn.path(), because };
    assert_eq!(net.conn.next_event(), Some(told));
    // Packets that were under way bring the same report again; it is not about the path in use any more.
    net.say(as_120(), &external(as_120(), 1, &quote));
    assert_eq!(net.heeded_after(2), 1);
    net.quote_by(1);
}

#[test]
fn a_path_that_was_given_is_left_only_for_another_that_is_given() {
    let (net, second) = Net::along_the_first();
    let quote = net.quote_by(0);
    let (path, because) = (net.conn.path(), dead(as_120(), 1));
    net.say(as_120(), &external(as_120(), 1, &quote));
    assert_eq!(net.heeded_after(1), 1);
    let destination = net.conn.destination();
    assert_eq!(net.conn.next_event(), Some(Event::NoOther { destination, path, because }));
    let quote = net.quote_by(0);
    net.say(as_120(), &ScmpView::PacketTooBig { mtu: 1300, quoted: &quote });
    assert_eq!((net.heeded_after(2), net.conn.mtu()), (2, 1300));
    net.conn.follow(&second).expect("a path");
    assert_eq!((net.conn.path(), net.conn.mtu()), (second.interfaces, 1472), "another path has another limit");
    net.quote_by(1);
}

#[test]
fn a_way_through_an_as_that_died_is_heeded_too_and_the_last_path_stays() {
    let net = Net::new();
    let quote = net.quote_by(0);
    net.say(as_110(), &external(as_110(), 1, &quote));
    assert_eq!(net.heeded_after(1), 1);
    let quote = net.quote_by(1);
    // AS 110 has no way to its interface 2: paths have no interface before it, and so none crosses this pair.
    let inside = |ingress, egress| ScmpView::InternalConnectivityDown {
        isd_as: as_110(),
        ingress: InterfaceId(ingress),
        egress: InterfaceId(egress),
        quoted: &quote,
    };
    net.say(as_110(), &inside(0, 2));
    assert_eq!(net.heeded_after(2), 1);
    net.say(as_120(), &external(as_120(), 2, &quote));
    assert_eq!(net.heeded_after(3), 2);
    net.quote_by(0);
}

#[test]
fn forged_messages_change_nothing() {
    let net = Net::new();
    let quote = net.quote_by(0);
    let mut cases = 0;
    let mut forged = |isd_as, message: ScmpView<'_>| {
        net.say(isd_as, &message);
        cases += 1;
        assert_eq!(net.heeded_after(cases), 0, "{message:?}");
    };
    forged(as_110(), external(as_120(), 1, &quote));
    forged(as_120(), external(as_120(), 9, &quote));
    forged(as_120(), external(as_120(), 1, &quote[..30]));
    forged("1-ff00:0:130".parse().expect("an AS"), ScmpView::PacketTooBig { mtu: 1300, quoted: &quote });
    let changed = |at: usize| {
        let mut quote = quote.clone();
        quote[at] ^= 1;
        quote
    };
    // Flow id, destination AS, source AS, destination host, source host, source port, destination port.
    let ports_at = parse_ports_at(&quote);
    for at in [3, 19, 27, 31, 35, ports_at + 1, ports_at + 3] {
        forged(as_120(), external(as_120(), 1, &changed(at)));
    }
    let echo = Echo { id: 31000, seq: 1, data: b"?" };
    forged(as_120(), ScmpView::EchoReply(echo));
    let wrong_checksum = {
        let from = EndpointAddr::new(as_120(), "10.7.7.7:0".parse().expect("an address"));
        let template = Template::new(from, net.conn.local(), &Dataplane::Empty, FlowId::default());
        let mut packet = Vec::new();
        template.expect("a template").write_scmp(&external(as_120(), 1, &quote), &mut packet);
        *packet.last_mut().expect("bytes") ^= 1;
        packet
    };
    net.routers[0].send_to(&wrong_checksum, net.conn.local().host).expect("send");
    assert_eq!(net.heeded_after(cases + 1), 0);
    assert_eq!(net.conn.next_event(), None);
    net.quote_by(0);
    // And the same message, true.
    net.say(as_120(), &external(as_120(), 1, &quote));
    assert_eq!(net.heeded_after(cases + 2), 1);
    net.quote_by(1);
}

/// Where the ports stand in a quoted packet: behind its header.
fn parse_ports_at(quote: &[u8]) -> usize {
    usize::from(quote[5]) * 4
}

#[test]
fn a_packet_too_big_lowers_what_the_path_takes() {
    let net = Net::new();
    let quote = net.quote_by(0);
    let before = net.conn.max_payload();
    net.say(as_120(), &ScmpView::PacketTooBig { mtu: 1300, quoted: &quote });
    assert_eq!(net.heeded_after(1), 1);
    assert_eq!((net.conn.mtu(), net.conn.max_payload()), (1300, before - 172));
    let told = Event::MtuLowered { destination: net.conn.destination(), mtu: 1300, max_payload: before - 172 };
    assert_eq!(net.conn.next_event(), Some(told));
    assert!(net.conn.send(&vec![0; before - 171]).is_err());
    net.say(as_120(), &ScmpView::PacketTooBig { mtu: 100, quoted: &quote });
    assert_eq!(net.heeded_after(2), 1, "less than any path may take");
}

#[test]
fn an_unreachable_destination_is_told() {
    let net = Net::new();
    let quote = net.quote_by(0);
    net.say(as_120(), &ScmpView::DestinationUnreachable { code: 4, quoted: &quote });
    assert_eq!(net.heeded_after(1), 1);
    let remote = Remote::Endpoint(net.conn.destination());
    assert_eq!(net.conn.next_event(), Some(Event::Unreachable { remote, reason: Unreachable::Scmp(4) }));
}

#[test]
fn echo_requests_are_answered_along_the_path_they_came_by_but_not_all_of_a_flood() {
    let pair = Pair::new();
    for (near, far, v6) in [("10.9.0.1:31000", "10.9.0.2:0", false), ("[fd09::1]:31000", "[fd09::2]:0", true)] {
        let socket = pair.socket(&pair.near, ConnOpts::new(here(near)));
        let asking = pair.far.run(|| UdpSocket::bind(far)).expect("the namespace").expect("a socket");
        asking.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let asker = in_as("1-ff00:0:120", if v6 { "[fd07::7]:0" } else { "10.7.7.7:0" });
        let along = path(3, asking.local_addr().expect("bound"), SIX_HOURS).dataplane;
        let template = Template::new(asker, socket.local(), &along, FlowId::default()).expect("a template");
        let mut request = Vec::new();
        for seq in 0..50 {
            let echo = Echo { id: 77, seq, data: b"are you there?" };
            template.write_scmp(&ScmpView::EchoRequest(echo), &mut request);
            asking.send_to(&request, socket.local().host).expect("send");
        }
        let stats = until("the flood to be read", || {
            socket.recv_batch(Some(Duration::from_millis(10)), |_| ()).expect("receive");
            let stats = socket.stats();
            (stats.echoes_answered + stats.echoes_refused == 50).then_some(stats)
        });
        assert!((20..40).contains(&stats.echoes_answered), "{stats:?}");
        let mut answer = vec![0; 2000];
        let bytes = asking.recv(&mut answer).expect("an answer");
        let packet = parse(&answer[..bytes]).expect("a packet");
        assert!(packet.verify_checksum());
        assert_eq!(packet.destination(), (asker.isd_as, asker.host.ip()));
        assert_eq!(packet.upper(), Upper::Scmp(ScmpView::EchoReply(Echo { id: 77, seq: 0, data: b"are you there?" })));
        let (came, went) = (packet.dataplane().as_bytes(), along.as_bytes());
        assert_eq!((&came[12..24], &came[24..36]), (&went[24..36], &went[12..24]), "two hops, the other way round");
    }
}
