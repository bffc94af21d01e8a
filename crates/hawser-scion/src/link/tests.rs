//! Links on loopback, with a socket of the test in the router's place.

use std::net::UdpSocket;
use std::time::{Duration, Instant, SystemTime};

use hawser_net::link::{Ecn, PathError, QUOTED_BYTES, Refusal, Route};

use super::testing::{dataplane, endpoint};
use super::*;
use crate::addr::EndpointAddr;
use crate::packet::{DataplaneView, FlowId, ScmpView, Template, Upper, parse};
use crate::path::{Dataplane, Fingerprint, InterfaceId, Path};

/// A test that waits longer than this has failed.
const PATIENCE: Duration = Duration::from_secs(5);
const LINK: LinkId = LinkId(3);
const HERE: &str = "1-ff00:0:110";
const THERE: &str = "1-ff00:0:112,10.0.0.9:31000";

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().expect("an address")
}

fn bind(listens: bool) -> ScionLink {
    let listens = listens.then(|| HERE.parse().expect("an AS"));
    ScionLink::bind(ScionOpts { udp: UdpOpts::new(loopback()), link: LINK, listens }).expect("a link")
}

fn path(dataplane: Dataplane, next_hop: Option<SocketAddr>) -> Path {
    Path {
        source: HERE.parse().expect("an AS"),
        destination: endpoint(THERE).isd_as,
        dataplane,
        next_hop,
        mtu: 1472,
        interfaces: Fingerprint::default(),
        latency: Vec::new(),
        bandwidth: Vec::new(),
        expiry: SystemTime::UNIX_EPOCH,
    }
}

/// A router's socket, and what comes to it.
struct Router(UdpSocket);

impl Router {
    fn new() -> Router {
        let socket = UdpSocket::bind(loopback()).expect("a socket");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Router(socket)
    }

    fn at(&self) -> SocketAddr {
        self.0.local_addr().expect("it has one")
    }

    fn next(&self) -> Vec<u8> {
        let mut bytes = vec![0; 2000];
        let len = self.0.recv(&mut bytes).expect("a packet in time");
        bytes.truncate(len);
        bytes
    }

    /// Hands `link` a packet from one endpoint to another.
    fn hand(&self, link: &ScionLink, from: EndpointAddr, to: EndpointAddr, path: &Dataplane, payload: &[u8]) {
        let template = Template::new(from, to, path, FlowId::default()).expect("a template");
        let mut packet = [&vec![0; template.headroom()][..], payload].concat();
        template.finish(&mut packet);
        self.0.send_to(&packet, link.local_addr()).expect("sent");
    }
}

fn here(link: &ScionLink) -> EndpointAddr {
    EndpointAddr::new(HERE.parse().expect("an AS"), link.local_addr())
}

/// The way of another host's packet to us, as it looks when it has arrived.
fn arrived(path: &Dataplane) -> Dataplane {
    DataplaneView::of(path).expect("a path").reversed().expect("a way back")
}

/// A train to an alias, with the room before each datagram that a session leaves.
fn push(batch: &mut SendBatch, alias: &Alias, datagrams: &[&[u8]]) {
    let room = vec![0; alias.header()];
    let run: Vec<u8> = datagrams.iter().flat_map(|datagram| [&room[..], datagram].concat()).collect();
    let route = Route { remote: alias.address(), source: None, ecn: Ecn::Ect0 };
    let size = alias.header() + datagrams[0].len();
    let pushed = batch.push_run(route, size, run.len(), |out| {
        out[..run.len()].copy_from_slice(&run);
        run.len()
    });
    assert_eq!(pushed, Ok(run.len()));
}

/// The next datagrams that come, each with the alias that it comes from.
fn receive(link: &mut ScionLink, count: usize) -> Vec<(Alias, Vec<u8>)> {
    let (mut batch, mut seen, end) = (RecvBatch::new(), Vec::new(), Instant::now() + PATIENCE);
    while seen.len() < count {
        assert!(Instant::now() < end, "only {} of {count} came", seen.len());
        if link.recv(&mut batch).expect("receive") == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        for run in batch.runs() {
            let alias = Alias::of(&run.remote).expect("an alias");
            seen.extend(run.singles().map(|datagram| (alias, datagram.to_vec())));
        }
    }
    seen
}

/// What was received when a while has passed: nothing.
fn receive_nothing(link: &mut ScionLink) {
    std::thread::sleep(Duration::from_millis(20));
    let mut batch = RecvBatch::new();
    link.recv(&mut batch).expect("receive");
    assert_eq!(batch.runs().count(), 0);
}

#[test]
fn within_an_as_a_train_goes_there_and_an_answer_comes_back() {
    let (mut caller, mut listener) = (bind(false), bind(true));
    let there = EndpointAddr::new(HERE.parse().expect("an AS"), listener.local_addr());
    let way = Way::new(LINK, 1, false, there, path(Dataplane::Empty, None)).expect("a way");
    caller.set_ways(std::slice::from_ref(&way)).expect("in use");
    let mut batch = SendBatch::new();
    let (long, short) = ([7; 1000], [8; 300]);
    push(&mut batch, &way.alias(), &[&long, &long, &long, &short]);
    let outcome = caller.send(&mut batch).expect("send");
    assert_eq!(outcome.sent_bytes, 3300 + 4 * way.alias().header());
    let came = receive(&mut listener, 4);
    let alias = came[0].0;
    assert_eq!(came, [&long[..], &long, &long, &short].map(|bytes| (alias, bytes.to_vec())));
    assert_eq!((alias.header(), alias.largest()), (way.alias().header(), None));
    push(&mut batch, &alias, &[&short]);
    let _ = listener.send(&mut batch).expect("send");
    assert_eq!(receive(&mut caller, 1), [(way.alias(), short.to_vec())]);
}

#[test]
fn each_datagram_of_a_train_has_whole_headers_of_its_path() {
    let (mut caller, router) = (bind(false), Router::new());
    let taken = dataplane(&[41, 1, 2, 3], 7);
    let way = Way::new(LINK, 9, false, endpoint(THERE), path(taken.clone(), Some(router.at()))).expect("a way");
    assert_eq!(way.alias().largest(), Some(1472 - 36 - 48 - 8), "what is left of the path's mtu");
    caller.set_ways(std::slice::from_ref(&way)).expect("in use");
    let mut batch = SendBatch::new();
    push(&mut batch, &way.alias(), &[&[1; 900], &[2; 900], &[3; 50]]);
    let _ = caller.send(&mut batch).expect("send");
    for (byte, len) in [(1, 900), (2, 900), (3, 50)] {
        let bytes = router.next();
        let packet = parse(&bytes).expect("a packet");
        let Upper::Udp(udp) = packet.upper() else { panic!("udp") };
        assert_eq!(udp.payload(), vec![byte; len]);
        assert!(udp.verify_checksum());
        assert_eq!((udp.source_port(), udp.destination_port()), (caller.local_addr().port(), 31000));
        assert_eq!(packet.source(), (here(&caller).isd_as, caller.local_addr().ip()));
        assert_eq!(packet.dataplane().as_bytes(), taken.as_bytes());
    }
}

#[test]
fn what_comes_back_along_a_way_comes_from_its_alias_and_nothing_else_does() {
    let (mut caller, router) = (bind(false), Router::new());
    let taken = [dataplane(&[41, 1], 7), dataplane(&[42, 1], 7)];
    let ways: Vec<Way> = (0..2)
        .map(|n| Way::new(LINK, n, false, endpoint(THERE), path(taken[n as usize].clone(), Some(router.at()))))
        .collect::<Result<_, _>>()
        .expect("ways");
    caller.set_ways(&ways).expect("in use");
    let to = here(&caller);
    for way in [0, 1, 1, 0] {
        router.hand(&caller, endpoint(THERE), to, &arrived(&taken[way]), &[way as u8; 40]);
    }
    let names: Vec<(u32, u8)> = receive(&mut caller, 4).iter().map(|(alias, bytes)| (alias.name(), bytes[0])).collect();
    assert_eq!(names, [(0, 0), (1, 1), (1, 1), (0, 0)]);
    // The answers of a peer that has the renewed hop fields already.
    router.hand(&caller, endpoint(THERE), to, &arrived(&dataplane(&[42, 1], 8)), &[5; 40]);
    assert_eq!(receive(&mut caller, 1)[0].0, ways[1].alias());
    let (stranger, elsewhere) = (endpoint("1-ff00:0:112,10.0.0.8:31000"), dataplane(&[43, 1], 7));
    let mut other_port = to;
    other_port.host.set_port(1);
    router.hand(&caller, stranger, to, &arrived(&taken[0]), &[0; 40]);
    router.hand(&caller, endpoint(THERE), to, &arrived(&elsewhere), &[0; 40]);
    router.hand(&caller, endpoint(THERE), other_port, &arrived(&taken[0]), &[0; 40]);
    router.0.send_to(&[0; 300], caller.local_addr()).expect("sent");
    receive_nothing(&mut caller);
    caller.set_ways(&ways[..1]).expect("in use");
    router.hand(&caller, endpoint(THERE), to, &arrived(&taken[1]), &[0; 40]);
    receive_nothing(&mut caller);
}

#[test]
fn a_way_that_is_renewed_is_the_same_and_one_that_is_not_is_refused() {
    let (one, hop) = (dataplane(&[41, 1], 7), Some(loopback()));
    let way = Way::new(LINK, 1, false, endpoint(THERE), path(one.clone(), hop)).expect("a way");
    let renewed = way.renewed(path(dataplane(&[41, 1], 8), hop)).expect("the same");
    assert_eq!((renewed.alias(), renewed.path().dataplane == one), (way.alias(), false));
    assert_eq!(way.renewed(path(dataplane(&[41, 1, 2, 3], 8), hop)), None);
    assert_eq!(way.renewed(Path { mtu: 1300, ..path(one.clone(), hop) }), None);
    let v6 = Way::new(LINK, 1, true, endpoint(THERE), path(one, hop));
    assert!(matches!(v6, Err(WayError::Family { .. })), "{v6:?}");
    let broken = Way::new(LINK, 1, false, endpoint(THERE), path(Dataplane::Scion(vec![1, 2].into()), hop));
    assert!(matches!(broken, Err(WayError::Path(_))), "{broken:?}");
}

/// A listening link, its router, and the alias of a caller whose datagram a session has opened.
fn listening() -> (ScionLink, Router, Alias, Dataplane) {
    let (mut listener, router) = (bind(true), Router::new());
    let path = arrived(&dataplane(&[41, 1], 7));
    router.hand(&listener, endpoint(THERE), here(&listener), &path, &[1; 40]);
    let alias = receive(&mut listener, 1)[0].0;
    listener.prove(alias.address());
    (listener, router, alias, path)
}

/// Whether a datagram to that alias reaches the router, and along which path.
fn answer(listener: &mut ScionLink, router: &Router, alias: &Alias) -> Option<Vec<u8>> {
    let mut batch = SendBatch::new();
    push(&mut batch, alias, &[&[9; 60]]);
    let _ = listener.send(&mut batch).expect("send");
    if batch.failures().iter().any(|failure| failure.reason == Refusal::Unreachable) {
        return None;
    }
    let bytes = router.next();
    let packet = parse(&bytes).expect("a packet");
    Some(packet.dataplane().as_bytes().to_vec())
}

#[test]
fn strangers_cannot_drive_away_whom_a_session_knows() {
    let (mut listener, router, alias, path) = listening();
    let mut last = alias;
    for stranger in 0..3 * PLACES_FLOODED {
        let from: EndpointAddr =
            format!("1-ff00:0:112,10.1.{}.{}:31000", stranger / 250, stranger % 250).parse().expect("one");
        router.hand(&listener, from, here(&listener), &path, &[1; 40]);
        last = receive(&mut listener, 1)[0].0;
    }
    assert_ne!(last.name(), alias.name());
    assert!(answer(&mut listener, &router, &last).is_some(), "the newest stranger is answered");
    let first = Alias::new(LINK, 0, false, alias.header() as u16, 1, 1).expect("an alias");
    assert_eq!(answer(&mut listener, &router, &first), None, "the first is forgotten");
    assert!(answer(&mut listener, &router, &alias).is_some());
    let elsewhere = EndpointAddr { isd_as: endpoint(THERE).isd_as, ..here(&listener) };
    router.hand(&listener, endpoint(THERE), elsewhere, &path, &[1; 40]);
    receive_nothing(&mut listener);
}

const PLACES_FLOODED: usize = callers::PLACES;

#[test]
fn other_hop_fields_are_another_generation_of_the_same_alias() {
    let (mut listener, router, alias, path) = listening();
    let renewed = arrived(&dataplane(&[41, 1], 8));
    router.hand(&listener, endpoint(THERE), here(&listener), &renewed, &[1; 40]);
    let again = receive(&mut listener, 1)[0].0;
    assert_eq!((again.name(), again.address().ip()), (alias.name(), alias.address().ip()));
    assert_ne!(again.generation(), alias.generation());
    let back = |path: &Dataplane| Some(arrived(path).as_bytes().to_vec());
    assert_eq!(answer(&mut listener, &router, &alias), back(&path), "until the session moves, the old ones are used");
    assert_eq!(answer(&mut listener, &router, &again), back(&renewed));
    listener.prove(again.address());
    for mac in 20..60 {
        router.hand(&listener, endpoint(THERE), here(&listener), &arrived(&dataplane(&[41, 1], mac)), &[1; 40]);
        receive(&mut listener, 1);
    }
    assert_eq!(answer(&mut listener, &router, &again), back(&renewed), "a stranger's do not drive it away");
}

#[test]
fn what_routers_say_is_told_of_the_way_that_it_is_about() {
    let (mut caller, router) = (bind(false), Router::new());
    let taken = dataplane(&[41, 1, 2, 3], 7);
    let way = Way::new(LINK, 4, false, endpoint(THERE), path(taken.clone(), Some(router.at()))).expect("a way");
    caller.set_ways(std::slice::from_ref(&way)).expect("in use");
    let mut batch = SendBatch::new();
    push(&mut batch, &way.alias(), &[&[1; 1200]]);
    let _ = caller.send(&mut batch).expect("send");
    let sent = router.next();
    let down = |quoted| ScmpView::ExternalInterfaceDown {
        isd_as: "1-5".parse().expect("an AS"),
        interface: InterfaceId(2),
        quoted,
    };
    let say = |link: &mut ScionLink, message: ScmpView<'_>| {
        let template = Template::new(endpoint("1-5,10.0.0.1:0"), here(link), &Dataplane::Empty, FlowId::default());
        let mut packet = Vec::new();
        template.expect("a template").write_scmp(&message, &mut packet);
        router.0.send_to(&packet, link.local_addr()).expect("sent");
        receive_nothing(link);
        let word = link.has_word().then(|| link.next_error().expect("word").expect("some"));
        assert!(!link.has_word());
        let quoted = |word: &PathError| word.quoted.expect("a quote").as_bytes().to_vec();
        word.map(|word| (Alias::of(&word.remote).expect("an alias"), word.reason, word.mtu, quoted(&word)))
    };
    let begun = vec![1; QUOTED_BYTES];
    assert_eq!(say(&mut caller, down(&sent)), Some((way.alias(), Refusal::Unreachable, None, begun.clone())));
    let cut = &sent[..way.alias().header() + 5];
    assert_eq!(say(&mut caller, down(cut)), Some((way.alias(), Refusal::Unreachable, None, vec![1; 5])), "it is cut");
    let carried = 1300 - way.alias().header() as u32;
    let too_big = say(&mut caller, ScmpView::PacketTooBig { mtu: 1300, quoted: &sent });
    assert_eq!(too_big, Some((way.alias(), Refusal::TooBig, Some(carried + 28), begun)));
    let mut of_another = sent.clone();
    of_another[12 + 7] ^= 1;
    assert_eq!(say(&mut caller, down(&of_another)), None, "it went to another AS");
    let echo = crate::packet::Echo::default();
    assert_eq!(say(&mut caller, ScmpView::EchoReply(echo)), None);
}

#[test]
fn a_port_is_one_that_routers_send_to() {
    let link = bind(false);
    assert!(DISPATCHED_PORTS.contains(&link.local_addr().port()), "{}", link.local_addr());
}
