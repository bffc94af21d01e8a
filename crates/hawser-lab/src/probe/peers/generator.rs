//! Many cores in one thread, each with a socket of its own and bulk to send, without TUN devices.
//!
//! 1. `start`: a core for each key, told of one link and of the hub.
//! 2. The thread waits for datagrams or the next deadline.
//! 3. Cores that got any, or that are due, get on: they take in, are fed, and send.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use etherparse::PacketBuilder;
use hawser_config::{PrivateKey, PublicKey as ConfigKey};
use hawser_core::congestion::Kind;
use hawser_core::endpoint::{Config, Endpoint, Link, PeerConfig};
use hawser_core::handshake::{Identity, Psk, PublicKey};
use hawser_core::packet::Offload;
use hawser_core::policy::Tuning;
use hawser_core::resequence::Sink;
use hawser_core::session::{Buffers, Settings, Transmit};
use hawser_core::transport::Transport;
use hawser_core::units::{ByteCount, Ecn, LinkGroup, LinkId, Time};
use hawser_core::wire::{CipherSet, InstanceId, Offer, Protection};
use hawser_sim::random::Seeded;
use hawser_wire::Namespace;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::hub::{ADDRESS, SINK_PORT, inner_address};
use crate::background::{Background, Stop};
use crate::error::LabError;
use crate::portals::PORT;
use crate::topology::ENDPOINT;

/// The largest datagram, and room for it.
const BUFFER: usize = 65_535;
/// An Ethernet packet. Source: RFC 894.
const LINK_MTU: u16 = 1500;
/// Bytes of an inner packet: every tunnel carries it (RFC 8200 section 5).
const INNER: usize = 1280;
/// What a core is kept fed with, bytes, beside what it has in flight: some tens of packets.
const BACKLOG: ByteCount = ByteCount(48_000);
/// How often the thread looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(50);
const TTL: u8 = 64;

/// The thread. Runs from the start; stopped on drop.
pub(super) struct Generator(Background<()>);

impl Generator {
    /// Step 1, in a namespace from which the hub can be reached.
    pub(super) fn start(namespace: &Namespace, keys: &[PrivateKey], hub: &ConfigKey) -> Result<Self, LabError> {
        let failed = |error| LabError::system("open sockets of the generator", error);
        let make = || keys.iter().enumerate().map(|(number, key)| Caller::new(number, key, hub)).collect();
        let callers: io::Result<Vec<Caller>> = namespace.run(make)?;
        let callers = callers.map_err(failed)?;
        Background::start(namespace, "generator", move |stop| generate(callers, stop)).map(Self)
    }

    /// Stops it, and says whether all went well.
    pub(super) fn stop(self) -> Result<(), LabError> {
        self.0.finish().map_err(|error| LabError::system("generate sessions", error))
    }
}

/// A core with its socket. Begins with an initiation due; the thread owns it.
struct Caller {
    endpoint: Endpoint,
    socket: UdpSocket,
    packet: Vec<u8>,
    due: Option<Time>,
}

/// The room for one batch.
struct Room(Vec<u8>);

impl Buffers for Room {
    fn spare(&mut self, _: LinkId, _: SocketAddr) -> Option<&mut [u8]> {
        Some(&mut self.0)
    }
}

/// Nobody reads what comes back.
struct Nowhere;

impl Sink for Nowhere {
    fn deliver(&mut self, _: &[u8], _: bool) {}
}

impl Caller {
    fn new(number: usize, key: &PrivateKey, hub: &ConfigKey) -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect((ENDPOINT, PORT))?;
        socket.set_nonblocking(true)?;
        let hub = PeerConfig {
            public_key: PublicKey(*hub.as_bytes()),
            psk: Psk::default(),
            endpoints: vec![SocketAddr::from((ENDPOINT, PORT))],
            ranks: Vec::new(),
            allowed_ips: vec![IpAddr::from(ADDRESS).into()],
        };
        let seed = number as u64;
        let config = Config {
            identity: Identity::new(*key.as_bytes()),
            offer: Offer {
                protection: Protection::Encrypt,
                ciphers: CipherSet::for_machine(true),
                instance: InstanceId(seed),
            },
            settings: Settings { congestion: Kind::Bbr, max_link_mtu: LINK_MTU, tuning: Tuning::default() },
            peers: vec![hub],
        };
        let mut endpoint = Endpoint::new(config, Box::new(Seeded::new(seed)));
        let (id, group) = (LinkId::default(), LinkGroup::default());
        endpoint.add_link(
            Time::ZERO,
            Link {
                id,
                group,
                preference: 0,
                metric: 0,
                transport: Transport::Udp,
                ipv4: true,
                ipv6: false,
                opens: true,
                up: true,
            },
        );
        Ok(Self { endpoint, socket, packet: inner_packet(inner_address(number)), due: Some(Time::ZERO) })
    }

    /// Step 3.
    fn get_on(&mut self, now: Time, room: &mut Room) -> io::Result<()> {
        self.take_in(now, room)?;
        self.endpoint.handle_timeout(now, &mut Nowhere);
        let snapshot = self.endpoint.snapshot(now);
        if let Some(session) = snapshot.peers.iter().flatten().next() {
            let mut waiting = session.queued;
            while waiting < BACKLOG {
                self.endpoint.read_buffer()[..INNER].copy_from_slice(&self.packet);
                self.endpoint.handle_inner(now, INNER, Offload::default());
                waiting += ByteCount(INNER as u64);
            }
        }
        while let Some(Transmit { segment_size, len, .. }) = self.endpoint.poll_transmit(now, room) {
            for datagram in room.0[..len].chunks(segment_size) {
                // A full socket loses it, as a full queue on the way would.
                not_now(self.socket.send(datagram))?;
            }
        }
        while self.endpoint.poll_event().is_some() {}
        self.due = self.endpoint.poll_timeout(now).map(|(at, _)| at);
        Ok(())
    }

    fn take_in(&mut self, now: Time, room: &mut Room) -> io::Result<()> {
        let hub = SocketAddr::from((ENDPOINT, PORT));
        while let Some(len) = not_now(self.socket.recv(&mut room.0))? {
            let (id, bytes) = (LinkId::default(), &mut room.0[..len]);
            self.endpoint.handle_datagram(now, id, hub, None, Ecn::NotEct, bytes, &mut Nowhere);
        }
        Ok(())
    }
}

/// Steps 2 and 3 until told to stop.
fn generate(mut callers: Vec<Caller>, mut stop: Stop) -> io::Result<()> {
    let start = Instant::now();
    let mut room = Room(vec![0; BUFFER]);
    while !stop.is_told() {
        let next = callers.iter().filter_map(|caller| caller.due).min();
        let wait = next.map_or(GLANCE, |at| at.since(elapsed(start)).min(GLANCE));
        let ready: Vec<bool> = {
            let mut fds: Vec<_> = callers.iter().map(|caller| PollFd::new(&caller.socket, PollFlags::IN)).collect();
            let wait = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
            match poll(&mut fds, Some(&wait)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            fds.iter().map(|fd| !fd.revents().is_empty()).collect()
        };
        for (caller, ready) in callers.iter_mut().zip(ready) {
            let now = elapsed(start);
            if ready || caller.due.is_some_and(|at| at <= now) {
                caller.get_on(now, &mut room)?;
            }
        }
    }
    Ok(())
}

fn elapsed(start: Instant) -> Time {
    Time::ZERO + start.elapsed()
}

/// None where a call would only have waited, or the hub is not there yet.
fn not_now(done: io::Result<usize>) -> io::Result<Option<usize>> {
    match done {
        Ok(len) => Ok(Some(len)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A datagram to the sink.
fn inner_packet(source: Ipv4Addr) -> Vec<u8> {
    let headers = PacketBuilder::ipv4(source.octets(), ADDRESS.octets(), TTL).udp(SINK_PORT, SINK_PORT);
    let payload = vec![0; INNER - headers.size(0)];
    let mut packet = Vec::new();
    headers.write(&mut packet, &payload).expect("memory takes everything");
    packet
}
