//! Two hosts joined by a veth pair, with sockets of every kind on them.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use hawser_scion::conn::{ConnOpts, PathTable, Paths, ScionConn, ScionSocket};
use hawser_scion::{Dataplane, EndpointAddr, Fingerprint, InterfaceId, IsdAs, Path, PathInterface};
use hawser_wire::{End, Namespace, veth};

/// How long a test waits for anything before it fails.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Lifetime of a path of the reference control service, in seconds.
pub const SIX_HOURS: Duration = Duration::from_secs(6 * 3600);

/// Hosts at both ends of a veth pair.
pub struct Pair {
    pub near: Namespace,
    pub far: Namespace,
}

impl Pair {
    pub fn new() -> Pair {
        let namespace = || Namespace::new("scion").expect("this test makes network namespaces: run it as root");
        let (near, far) = (namespace(), namespace());
        let ends = [
            End::new(&near, "near", &["10.9.0.1/24", "fd09::1/64"]),
            End::new(&far, "far", &["10.9.0.2/24", "fd09::2/64"]),
        ];
        veth(&ends[0], &ends[1], 1500).expect("a veth pair");
        let pair = Pair { near, far };
        pair.meet();
        pair
    }

    /// Has both hosts know each other's link addresses: of what is sent before, a part may be lost.
    fn meet(&self) {
        for hosts in [["10.9.0.1:0", "10.9.0.2:0"], ["[fd09::1]:0", "[fd09::2]:0"]] {
            let bind = |namespace: &Namespace, host: &str| {
                namespace.run(|| UdpSocket::bind(host)).expect("the namespace").expect("a socket")
            };
            let (near, far) = (bind(&self.near, hosts[0]), bind(&self.far, hosts[1]));
            near.send_to(b"hello", far.local_addr().expect("bound")).expect("send");
            far.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            far.recv(&mut [0; 5]).expect("receive");
        }
    }

    /// A socket without any knowledge of paths.
    pub fn socket(&self, namespace: &Namespace, opts: ConnOpts) -> ScionSocket {
        self.socket_that_asks(namespace, opts, Arc::new(PathTable::default()))
    }

    pub fn socket_that_asks(&self, namespace: &Namespace, opts: ConnOpts, paths: Arc<dyn Paths>) -> ScionSocket {
        namespace.run(|| ScionSocket::bind(opts, paths)).expect("the namespace").expect("a socket")
    }

    pub fn conn(&self, namespace: &Namespace, opts: ConnOpts, to: EndpointAddr, paths: Arc<dyn Paths>) -> ScionConn {
        namespace.run(|| ScionConn::open(opts, to, paths)).expect("the namespace").expect("a connection")
    }

    /// A connection and a socket at its other end, in one AS.
    pub fn both(&self, opts: impl Fn(&str) -> ConnOpts, v6: bool) -> (ScionConn, ScionSocket) {
        let (near, far) = if v6 { ("[fd09::1]:0", "[fd09::2]:0") } else { ("10.9.0.1:0", "10.9.0.2:0") };
        let socket = self.socket(&self.far, opts(far));
        let conn = self.conn(&self.near, opts(near), socket.local(), Arc::new(PathTable::default()));
        (conn, socket)
    }
}

/// An endpoint of AS 1-ff00:0:110.
pub fn here(host: &str) -> EndpointAddr {
    in_as("1-ff00:0:110", host)
}

pub fn in_as(isd_as: &str, host: &str) -> EndpointAddr {
    EndpointAddr::new(isd_as.parse().expect("an AS"), host.parse().expect("an address"))
}

/// Options for an endpoint of AS 1-ff00:0:110.
pub fn on(host: &str) -> ConnOpts {
    ConnOpts::new(here(host))
}

/// A path from 1-ff00:0:110 to 1-ff00:0:120 over interface `id` of both, whose first router is `next_hop`.
pub fn path(id: u16, next_hop: SocketAddr, lasts: Duration) -> Path {
    let [source, destination]: [IsdAs; 2] = ["1-ff00:0:110", "1-ff00:0:120"].map(|text| text.parse().expect("an AS"));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    // One segment of two hops; a segment id that tells renewed paths from another.
    let mut bytes = (2_u32 << 12).to_be_bytes().to_vec();
    bytes.extend([1, 0]);
    bytes.extend((now.as_millis() as u16).to_be_bytes());
    bytes.extend((now.as_secs() as u32).to_be_bytes());
    for (ingress, egress) in [(0, id), (id, 0)] {
        bytes.extend([0, 63]);
        bytes.extend(ingress.to_be_bytes());
        bytes.extend(egress.to_be_bytes());
        bytes.extend([9; 6]);
    }
    let interface = |isd_as| PathInterface { isd_as, id: InterfaceId(id) };
    Path {
        source,
        destination,
        dataplane: Dataplane::Scion(Arc::from(bytes)),
        next_hop: Some(next_hop),
        mtu: 1472,
        interfaces: Fingerprint::new([interface(source), interface(destination)]),
        latency: vec![None],
        bandwidth: vec![None],
        expiry: SystemTime::now() + lasts,
    }
}

/// Calls `step` until it returns something.
pub fn until<T>(what: &str, mut step: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(result) = step() {
            return result;
        }
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A payload that tells its number, and is as long as `bytes`.
pub fn numbered(number: u32, bytes: usize) -> Vec<u8> {
    number.to_be_bytes().into_iter().cycle().take(bytes).collect()
}

/// The number of such a payload, which must be whole.
pub fn number_of(payload: &[u8]) -> u32 {
    let number = u32::from_be_bytes(*payload.first_chunk().expect("four bytes"));
    assert_eq!(payload, numbered(number, payload.len()));
    number
}
