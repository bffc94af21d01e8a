//! Two hosts with two links between them, and connections of MPTCP.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use hawser_shim::kernel::{EndpointFlags, Event, Events, MptcpEndpoint, PathManager, Subflow};
use hawser_wire::{End, Namespace, veth};
use socket2::{Domain, Protocol, Socket, Type};

/// The port of every server here.
pub const PORT: u16 = 7000;
/// How long one look for events waits.
const GLANCE: Duration = Duration::from_millis(200);
/// Within this something comes, on a loaded machine too.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub fn ip(address: &str) -> IpAddr {
    address.parse().unwrap()
}

pub fn endpoint(address: &str, flags: EndpointFlags) -> MptcpEndpoint {
    MptcpEndpoint::new(ip(address), flags)
}

pub fn manager(namespace: &Namespace) -> PathManager {
    namespace.run(PathManager::open).unwrap().unwrap()
}

/// Two hosts with two links between them.
pub struct Pair {
    pub client: Namespace,
    pub server: Namespace,
}

impl Pair {
    pub fn new() -> Self {
        let [client, server] = ["shim-client", "shim-server"].map(|tag| Namespace::new(tag).unwrap());
        for (name, near, far) in [("a", "10.1.0.1/24", "10.1.0.2/24"), ("b", "10.2.0.1/24", "10.2.0.2/24")] {
            veth(&End::new(&client, name, &[near]), &End::new(&server, name, &[far]), 1500).unwrap();
        }
        Self { client, server }
    }

    /// A connection over the first link: the client's end, the server's, and the listener, which other subflows need
    /// too.
    pub fn connect(&self) -> (TcpStream, TcpStream, TcpListener) {
        let listener = self.server.run(|| listen("0.0.0.0")).unwrap();
        let mut near = self.client.run(|| connect("10.1.0.2")).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        // A connection is one of MPTCP for good once data has gone both ways (RFC 8684 section 3.1).
        for (one, other) in [(0, 1), (1, 0)] {
            let ends = [&mut near, &mut far];
            let [one, other] = [one, other].map(|end: usize| ends[end].try_clone().unwrap());
            say(one, other);
        }
        (near, far, listener)
    }
}

pub fn say(mut from: TcpStream, mut to: TcpStream) {
    from.write_all(b"hello").unwrap();
    to.read_exact(&mut [0; 5]).unwrap();
}

pub fn socket() -> Socket {
    Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)).unwrap()
}

pub fn listen(address: &str) -> TcpListener {
    let socket = socket();
    socket.set_reuse_address(true).unwrap();
    socket.bind(&SocketAddr::new(ip(address), PORT).into()).unwrap();
    socket.listen(16).unwrap();
    socket.into()
}

pub fn connect(address: &str) -> TcpStream {
    let socket = socket();
    socket.connect(&SocketAddr::new(ip(address), PORT).into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// All that was heard in a namespace so far, in its order.
pub struct Heard {
    events: Events,
    all: Vec<Event>,
}

impl Heard {
    /// Whether such a thing was heard so far.
    pub fn any(&self, wanted: impl Fn(&Event) -> bool) -> bool {
        self.all.iter().any(wanted)
    }

    pub fn of(namespace: &Namespace) -> Self {
        Self { events: namespace.run(Events::open).unwrap().unwrap(), all: Vec::new() }
    }

    /// The first event that is looked for, waiting for it where it has not come yet.
    pub fn until<T>(&mut self, what: &str, wanted: impl Fn(&Event) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = self.all.iter().find_map(&wanted) {
                return found;
            }
            assert!(Instant::now() < deadline, "no {what} among {:#?}", self.all);
            self.all.extend(self.events.next(GLANCE).unwrap());
        }
    }
}

/// The next subflow that is established from or to this address.
pub fn subflow(heard: &mut Heard, address: &str) -> Subflow {
    heard.until("established subflow", |event| match event {
        Event::SubflowEstablished(at) if [at.subflow.local.ip(), at.subflow.remote.ip()].contains(&ip(address)) => {
            Some(at.subflow)
        }
        _ => None,
    })
}
