//! What the kernel's MPTCP really sends: followed by the table, linked by tokens, compressed and brought back.

use std::io::{Read, Write};
use std::net::IpAddr;
use std::thread;
use std::time::Instant;

use hawser_core::units::Time;
use hawser_shim::compress::{Compression, Datagrams, Expanded, Offload};
use hawser_shim::flow::{Direction, End, FlowTable, Limits, Role, State};
use hawser_shim::kernel::{EndpointFlags, MptcpLimits};
use hawser_shim::mptcp::Segment;
use hawser_wire::{Look, Watch};

use super::support::{Heard, PATIENCE, Pair, endpoint, ip, manager, subflow};

/// Bytes of each transfer, and of each write: small segments, which are seen whole.
const WRITES: usize = 200;
const WRITE: usize = 20;

/// Sees all segments at the client, in their order.
struct Seen {
    table: FlowTable,
    /// The client's end, and the server's.
    ends: [Compression; 2],
    roles: Vec<Role>,
    crossed: u64,
    random: u64,
    began: Instant,
}

impl Seen {
    fn new() -> Self {
        let table = FlowTable::new(Limits { flows: 64, half_open: 16 }, Limits { flows: 1, half_open: 1 });
        let ends = [Compression::new(64), Compression::new(64)];
        Self { table, ends, roles: Vec::new(), crossed: 0, random: 0, began: Instant::now() }
    }

    fn now(&self) -> Time {
        Time::ZERO + self.began.elapsed()
    }

    /// A packet crosses as datagrams; the same comes out but for IPv4's identification.
    fn cross(&mut self, packet: &[u8], direction: Direction) {
        let [client, server] = &mut self.ends;
        let (from, to) = if direction == Direction::Out { (client, server) } else { (server, client) };
        let (mut datagrams, mut out) = (Datagrams::default(), Vec::new());
        let random = &mut self.random;
        let mut draw = || {
            *random += 1;
            *random << 32
        };
        from.shrink(Time::ZERO, packet, Offload::default(), 1360, &mut draw, &mut datagrams).unwrap();
        for datagram in datagrams.iter() {
            let taken = to.expand(Time::ZERO, datagram, |_, _, _| true, &mut out).unwrap();
            assert_eq!(taken, Expanded::Packet { partial: false });
        }
        assert_eq!(plain(&out), plain(packet));
        self.crossed += 1;
    }
}

/// Without the identification, which means nothing here (RFC 6864), and the checksum over it.
fn plain(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet[4..6].fill(0);
    packet[10..12].fill(0);
    packet
}

impl Look for Seen {
    fn look(&mut self, packet: &[u8]) {
        let Ok(segment) = Segment::parse(packet) else { return };
        let ours: [IpAddr; 2] = [ip("10.1.0.1"), ip("10.2.0.1")];
        let direction = if ours.contains(&segment.source.ip()) { Direction::Out } else { Direction::In };
        let observed = self.table.observe(self.now(), direction, &segment).unwrap();
        let flow = self.table.get(observed.flow).unwrap();
        if observed.before.is_some_and(|before| before != observed.state) && observed.state == State::Established {
            assert_eq!(flow.connection, self.table.connections().next().map(|(id, _)| id), "one connection");
            self.roles.push(flow.role);
        }
        if packet.len() == usize::from(u16::from_be_bytes([packet[2], packet[3]])) {
            self.cross(packet, direction);
        }
    }
}

#[test]
fn a_connection_with_two_subflows_is_followed_to_its_end_and_every_segment_survives() {
    let pair = Pair::new();
    for namespace in [&pair.client, &pair.server] {
        manager(namespace).set_limits(MptcpLimits { subflows: 2, accepted: 0 }).unwrap();
    }
    manager(&pair.client).add(&endpoint("10.2.0.1", EndpointFlags::SUBFLOW)).unwrap();
    let watch = Watch::start(&pair.client, Seen::new()).unwrap();
    let mut heard = Heard::of(&pair.client);
    let (mut near, mut far, _listener) = pair.connect();
    subflow(&mut heard, "10.2.0.1");
    let echo = thread::spawn(move || {
        let mut all = Vec::new();
        far.read_to_end(&mut all).unwrap();
        far.write_all(&all).unwrap();
        all.len()
    });
    near.set_nodelay(true).unwrap();
    for _ in 0..WRITES {
        near.write_all(&[7; WRITE]).unwrap();
        thread::yield_now();
    }
    near.shutdown(std::net::Shutdown::Write).unwrap();
    let mut back = Vec::new();
    near.read_to_end(&mut back).unwrap();
    assert_eq!((echo.join().unwrap(), back.len()), (WRITES * WRITE, WRITES * WRITE));
    drop(near);
    settle(&pair);
    let seen = watch.finish().unwrap();
    assert_eq!(seen.roles, [Role::Main, Role::Subflow]);
    for (_, flow) in seen.table.flows() {
        assert_eq!(flow.state, State::Ended(End::Closed), "{flow:#?}");
    }
    let bytes = |way| seen.table.flows().map(|(_, flow)| flow.track(way).bytes).sum::<u64>();
    let least = u64::try_from(WRITES * WRITE).unwrap();
    assert!(bytes(Direction::Out) >= least && bytes(Direction::In) >= least);
    assert!(seen.crossed > 20, "{} segments", seen.crossed);
    let compact: u64 = seen.ends.iter().map(|end| end.counters().compact).sum();
    assert!(compact * 2 > seen.crossed, "{compact} of {} were compact", seen.crossed);
}

/// Waits until the client's kernel has no socket left that is closing.
fn settle(pair: &Pair) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let output = pair.client.command("ss").args(["-Htan", "exclude", "time-wait"]).output().unwrap();
        assert!(output.status.success());
        if output.stdout.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "{}", String::from_utf8_lossy(&output.stdout));
        thread::sleep(std::time::Duration::from_millis(20));
    }
}
