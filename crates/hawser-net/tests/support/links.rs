//! Links, numbered datagrams, and what arrives of them.

use std::net::{IpAddr, SocketAddr};

use hawser_net::link::udp::{UdpLink, UdpOpts};
use hawser_net::link::{Ecn, Link, RecvBatch, Route, SendBatch};

use super::{Namespace, until};

/// What was received of one datagram.
#[derive(Debug, Clone, PartialEq)]
pub struct Got {
    pub remote: SocketAddr,
    pub local: Option<IpAddr>,
    pub ecn: Ecn,
    pub bytes: Vec<u8>,
}

/// Parses an address.
pub fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// Opens a link in a namespace.
pub fn open(namespace: &Namespace, opts: UdpOpts) -> UdpLink {
    namespace.run(|| UdpLink::bind(opts)).expect("a link")
}

/// Options to bind to an address.
pub fn on(local: &str) -> UdpOpts {
    UdpOpts::new(address(local))
}

/// The way to `remote`, capable of marks.
pub fn to(remote: SocketAddr) -> Route {
    Route { remote, source: None, ecn: Ecn::Ect0 }
}

/// A batch of `count` datagrams of `size` bytes, each filled with its number.
pub fn numbered(route: Route, count: usize, size: usize) -> SendBatch {
    let mut batch = SendBatch::new();
    for n in 0..count {
        let seal = |room: &mut [u8]| {
            room.fill(n as u8);
            size
        };
        batch.push(route, size, seal).expect("room");
    }
    batch
}

/// Receives `count` datagrams; also returns the most that came in one run.
pub fn receive<L: Link>(link: &mut L, count: usize) -> (Vec<Got>, usize) {
    let (mut got, mut longest) = (Vec::new(), 0);
    let mut batch = RecvBatch::new();
    until(link, "datagrams", |link| {
        link.recv(&mut batch).expect("receive");
        for run in batch.runs() {
            let (remote, local, ecn) = (run.remote, run.local, run.ecn);
            let before = got.len();
            got.extend(run.singles().map(|bytes| Got { remote, local, ecn, bytes: bytes.to_vec() }));
            longest = longest.max(got.len() - before);
        }
        (got.len() >= count).then_some(())
    });
    (got, longest)
}

/// What [`numbered`] sent has arrived.
pub fn assert_numbered(got: &[Got], count: usize, size: usize) {
    assert_eq!(got.len(), count);
    for (n, got) in got.iter().enumerate() {
        assert_eq!(got.bytes, vec![n as u8; size], "datagram {n}");
    }
}
