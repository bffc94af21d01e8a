//! The kernel's MPTCP: subflows are counted where they are, among the client's connections.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use hawser_lab::LabError;
use hawser_lab::contender::{Offer, Transport};
use hawser_lab::stage::Stage;
use hawser_wire::Namespace;
use socket2::{Domain, Protocol, Socket, Type};

use super::ground::{Contest, Ground, HOUSEKEEPING, Shape, ip, run};

const PORT: u16 = 5002;
const CHUNK: usize = 64 << 10;
const PATIENCE: Duration = Duration::from_secs(10);
const GLANCE: Duration = Duration::from_millis(50);

/// An MPTCP connection whose client sends as fast as it may. Ended on drop.
struct Stream {
    /// Subflows join by it: it stays as long as the connection.
    _listener: Socket,
    outbound: TcpStream,
    sender: Option<thread::JoinHandle<()>>,
    receiver: Option<thread::JoinHandle<u64>>,
}

impl Stream {
    /// With this many subflows.
    fn start(stage: &Stage, offer: &Offer, subflows: usize) -> Self {
        assert_eq!(offer.socket, Transport::Mptcp);
        let server = SocketAddr::new(offer.ends.server, PORT);
        let listener = stage.server.run(|| {
            // Subflows join at every address of the server.
            let any: IpAddr =
                if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
            let listener = socket(server);
            listener.set_reuse_address(true).expect("it is set");
            listener.bind(&SocketAddr::new(any, PORT).into()).expect("binds");
            listener.listen(1).map(|()| listener).expect("listens")
        });
        let listener = listener.expect("enters");
        let outbound = stage.client.run(|| {
            // As workloads do, which bind nothing.
            let outbound = socket(server);
            outbound.connect(&server.into()).map(|()| outbound).expect("connects")
        });
        let outbound: TcpStream = outbound.expect("enters").into();
        let mut inbound: TcpStream = listener.accept().expect("accepts").0.into();
        let mut sending = outbound.try_clone().expect("a second handle");
        let sender = thread::spawn(move || while sending.write_all(&[0; CHUNK]).is_ok() {});
        let receiver = thread::spawn(move || {
            let (mut chunk, mut bytes) = ([0; CHUNK], 0);
            while let Ok(length @ 1..) = inbound.read(&mut chunk) {
                bytes += length as u64;
            }
            bytes
        });
        let stream = Self { _listener: listener, outbound, sender: Some(sender), receiver: Some(receiver) };
        await_subflows(&stage.client, subflows);
        stream
    }

    /// Ends it; bytes that arrived.
    fn end(&mut self) -> u64 {
        let _ = self.outbound.shutdown(Shutdown::Both);
        if let Some(sender) = self.sender.take() {
            sender.join().expect("it sends to the end");
        }
        self.receiver.take().map_or(0, |receiver| receiver.join().expect("it receives to the end"))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.end();
    }
}

/// With its congestion control set, and read back.
fn socket(address: SocketAddr) -> Socket {
    let socket =
        Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::MPTCP)).expect("this kernel has MPTCP");
    socket.set_tcp_congestion(b"cubic").expect("it is set");
    assert!(socket.tcp_congestion().expect("it is read").starts_with(b"cubic"));
    socket
}

/// Waits until there are this many subflows, and names their ends if that does not come.
fn await_subflows(client: &Namespace, wanted: usize) {
    let late = Instant::now() + PATIENCE;
    loop {
        let said = run(client, &format!("ss -Htn state established dport = :{PORT}"));
        if said.lines().count() == wanted {
            return;
        }
        assert!(Instant::now() < late, "{wanted} subflows wanted, but:\n{said}");
        thread::sleep(GLANCE);
    }
}

/// Sends for so long once all subflows are there, and gives Mbit/s.
fn rate(contest: &Contest<'_>, stage: &Stage, subflows: usize, duration: Duration) -> f64 {
    let start = Instant::now();
    let mut stream = Stream::start(stage, &contest.offer, subflows);
    thread::sleep(duration.saturating_sub(start.elapsed()));
    let elapsed = start.elapsed();
    stream.end() as f64 * 8.0 / 1e6 / elapsed.as_secs_f64()
}

#[test]
fn fullmesh_has_a_subflow_on_each_link_and_carries_more_than_one_link() {
    for shape in [Shape::default(), Shape { ipv6: true, ..Shape::default() }] {
        let ground = Ground::new(&shape, &[("wifi", 20.0), ("eth", 20.0)]);
        let contest = ground.up("mptcp", "");
        contest.assert_both_ways();
        let mbps = rate(&contest, &ground.stage, 2, Duration::from_secs(4));
        assert!(mbps > 24.0, "{mbps} Mbit/s over two links of 20: {shape:?}");
        contest.down();
    }
}

#[test]
fn a_server_with_an_address_for_each_link_gets_a_subflow_for_each_pair() {
    let shape = Shape { server_links: true, ..Shape::default() };
    let ground = Ground::new(&shape, &[("wifi", 20.0), ("eth", 20.0)]);
    let contest = ground.up("mptcp", "path-manager = \"fullmesh\"\nlink = \"eth\"");
    drop(Stream::start(&ground.stage, &contest.offer, 4));
    contest.down();
}

#[test]
fn a_translated_client_has_a_subflow_on_each_link() {
    let ground = Ground::new(&Shape { nat: true, ..Shape::default() }, &[("wifi", 20.0), ("eth", 20.0)]);
    let contest = ground.up("mptcp", "");
    drop(Stream::start(&ground.stage, &contest.offer, 2));
    contest.down();
}

#[test]
fn ndiffports_has_three_subflows_on_one_link() {
    let ground = Ground::new(&Shape::default(), &[("wifi", 20.0), ("eth", 20.0)]);
    for (options, subflows) in [("", 3), ("subflows = 2\nchecksums = true", 2)] {
        let contest = ground.up("mptcp", &format!("path-manager = \"ndiffports\"\nlink = \"eth\"\n{options}"));
        let stream = Stream::start(&ground.stage, &contest.offer, subflows);
        contest.await_carried("eth", 200_000);
        drop(stream);
        assert!(contest.carried("wifi") < HOUSEKEEPING, "all are on one link: {}", contest.carried("wifi"));
        contest.down();
    }
}

#[test]
fn a_link_that_comes_gets_a_subflow_and_one_that_goes_loses_it() {
    let shape = Shape { absent: vec!["eth"], ..Shape::default() };
    let ground = Ground::new(&shape, &[("wifi", 20.0), ("eth", 20.0)]);
    let contest = ground.up("mptcp", "");
    let stream = Stream::start(&ground.stage, &contest.offer, 1);
    let eth = ground.stage.index("eth").expect("it is a link");
    ground.stage.restore(eth).expect("it comes");
    await_subflows(&ground.stage.client, 2);
    ground.stage.cut(eth).expect("it goes");
    await_subflows(&ground.stage.client, 1);
    drop(stream);
    contest.down();
}

#[test]
fn the_named_link_is_the_first_whenever_it_is_up() {
    for ipv6 in [false, true] {
        let shape = Shape { ipv6, absent: vec!["eth"], ..Shape::default() };
        let ground = Ground::new(&shape, &[("wifi", 20.0), ("eth", 20.0)]);
        let contest = ground.up("mptcp", "path-manager = \"default\"\nlink = \"eth\"");
        let eth = ground.stage.index("eth").expect("it is a link");
        let first = || ip(&ground.stage.client, &format!("route get {}", contest.offer.ends.server));
        for _ in 0..2 {
            assert!(first().contains("dev wifi"), "{}", first());
            ground.stage.restore(eth).expect("it comes");
            assert!(first().contains("dev eth"), "{}", first());
            ground.stage.cut(eth).expect("it goes");
        }
        contest.down();
    }
}

#[test]
fn settings_are_the_kernels_while_it_is_up() {
    let ground = Ground::new(&Shape::default(), &[("wifi", 20.0)]);
    let contest = ground.up("mptcp", "checksums = true\nsyn-retries = 2\nscheduler = \"default\"");
    for host in [&ground.stage.client, &ground.stage.server] {
        let table = [("mptcp/checksum_enabled", "1"), ("ipv4/tcp_syn_retries", "2"), ("mptcp/scheduler", "default")];
        for (key, value) in table {
            assert_eq!(host.sysctl(key).expect("this kernel has it"), value, "{key}");
        }
        assert_eq!(ip(host, "mptcp limits").trim_end(), "add_addr_accepted 8 subflows 8");
    }
    contest.down();
    let error = ground.refused("mptcp", "scheduler = \"nobody-wrote-it\"");
    assert_eq!(error.to_string(), "the kernel's MPTCP scheduler nobody-wrote-it is missing");
}

#[test]
fn hosts_behind_portals_cannot_have_it() {
    let ground = Ground::new(&Shape { lan: true, ..Shape::default() }, &[("wifi", 20.0), ("eth", 20.0)]);
    let error = ground.refused("mptcp", "");
    assert!(matches!(error, LabError::Missing { .. }), "{error}");
}
