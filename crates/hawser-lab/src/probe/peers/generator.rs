//! Many cores in one thread, each with a socket of its own and bulk to send, or a call's packets, without TUN devices.
//!
//! 1. `start`: a core for each key, told of one link and of the remote portal; of two as a hub's members, the first of
//!    which it claims.
//! 2. The thread waits for datagrams or the next deadline.
//! 3. Cores that got any, or that are due, get on: they take in, are fed, and send.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hawser_config::PrivateKey;
use hawser_core::congestion::Kind;
use hawser_core::endpoint::{Config, Endpoint, Link, PeerConfig};
use hawser_core::handshake::{Identity, Psk, PublicKey};
use hawser_core::packet::Offload;
use hawser_core::policy::Tuning;
use hawser_core::resequence::Sink;
use hawser_core::session::{Buffers, Settings, Transmit};
use hawser_core::transport::Transport;
use hawser_core::units::{ByteCount, Ecn, LinkGroup, LinkId, PeerId, Time};
use hawser_core::wire::{CipherSet, InstanceId, Offer, Protection, Version};
use hawser_hub::pair::{Member, Pair};
use hawser_hub::units::{Epoch, MemberId};
use hawser_sim::random::Seeded;
use hawser_wire::Namespace;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{ADDRESS, LabError, Remote, inner_packet};
use crate::background::{Background, Stop};
use crate::topology::ENDPOINT;

/// The largest datagram, and room for it.
const BUFFER: usize = 65_535;
/// An Ethernet packet. Source: RFC 894.
const LINK_MTU: u16 = 1500;
/// Bytes of an inner packet: every tunnel carries it (RFC 8200 section 5).
const INNER: usize = 1280;
/// What a core is kept fed with, bytes, beside what it has in flight: some tens of packets.
const BACKLOG: ByteCount = ByteCount(48_000);
/// Beside a hub the time between two packets is that of a call (RFC 3551 section 4.2): a full link would lose claims.
const CALL: Duration = Duration::from_millis(20);
/// And cores begin so long after one another, so that no portal is under load (docs/wire.md) and both answer at once.
const APART: Duration = Duration::from_millis(61);
/// How often the thread looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(50);

/// The thread. Runs from the start; stopped on drop.
pub(super) struct Generator {
    told: Arc<Mutex<Vec<Told>>>,
    thread: Background<()>,
}

/// What the thread tells of a core. Starts with zeros. Plain data.
#[derive(Clone, Copy, Default)]
pub(super) struct Told {
    /// How often its packets went to another member than before.
    pub moves: u64,
    /// Datagrams to and from the remote portal that its packets go to, and a hub's other one.
    pub datagrams: [u64; 2],
    /// The place of the remote portal that its packets go to.
    owner: usize,
}

impl Generator {
    /// Step 1, in a namespace from which the remote portals can be reached: one, or the two members of a hub.
    pub(super) fn start(namespace: &Namespace, keys: &[PrivateKey], remotes: &[&Remote]) -> Result<Self, LabError> {
        let make = || keys.iter().enumerate().map(|(number, key)| Caller::new(number, key, remotes)).collect();
        let callers: io::Result<Vec<Caller>> = namespace.run(make)?;
        let callers = callers.map_err(|error| LabError::system("open sockets of the generator", error))?;
        let told = Arc::new(Mutex::new(vec![Told::default(); callers.len()]));
        let own = Arc::clone(&told);
        let thread = Background::start(namespace, "generator", move |stop| generate(callers, &own, stop))?;
        Ok(Self { told, thread })
    }

    /// The place of the remote portal that most cores' packets go to: the first one's, unless this machine halted.
    pub(super) fn owner(&self) -> usize {
        let told = self.told();
        usize::from(2 * told.iter().map(|told| told.owner).sum::<usize>() > told.len())
    }

    /// What there is to tell of each core so far.
    pub(super) fn told(&self) -> Vec<Told> {
        self.told.lock().expect("nothing panics with it").clone()
    }

    /// Stops it, and says whether all went well.
    pub(super) fn stop(self) -> Result<(), LabError> {
        self.thread.finish().map_err(|error| LabError::system("generate sessions", error))
    }
}

/// A core with its socket. Begins with an initiation due; the thread owns it.
struct Caller {
    told: Told,
    endpoint: Endpoint,
    /// Where it has a hub.
    pair: Option<Pair>,
    remotes: Vec<SocketAddr>,
    socket: UdpSocket,
    packet: Vec<u8>,
    calls_at: Time,
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
    fn new(number: usize, key: &PrivateKey, remotes: &[&Remote]) -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.set_nonblocking(true)?;
        let addresses: Vec<_> = remotes.iter().map(|remote| SocketAddr::from((ENDPOINT, remote.port))).collect();
        let peer = |(remote, address): (&&Remote, &SocketAddr)| PeerConfig {
            public_key: PublicKey(*remote.key.as_bytes()),
            psk: Psk::default(),
            endpoints: vec![*address],
            ranks: Vec::new(),
            allowed_ips: vec![IpAddr::from(ADDRESS).into()],
        };
        let peers: Vec<_> = remotes.iter().zip(&addresses).map(peer).collect();
        let ids = peers.iter().map(|peer| MemberId::of(&peer.public_key));
        let members: Vec<_> = ids.zip(0..).map(|(id, place)| Member { id, peer: PeerId(place) }).collect();
        let seed = number as u64;
        let ciphers = CipherSet::for_machine(true);
        let offer = Offer { protection: Protection::Encrypt, ciphers, instance: InstanceId(seed) };
        let config = Config {
            identity: Identity::new(*key.as_bytes()),
            offer: if members.len() > 1 { offer.speaking(Version::OURS_IN_HUB) } else { offer },
            settings: Settings { congestion: Kind::Bbr, max_link_mtu: LINK_MTU, tuning: Tuning::default() },
            peers,
        };
        let mut endpoint = Endpoint::new(config, Box::new(Seeded::new(seed)));
        endpoint.add_link(Time::ZERO, udp_link());
        let pair = Pair::new(&mut endpoint, Epoch::FIRST, &members, seed);
        let packet = inner_packet(number, INNER);
        let calls_at = if pair.is_some() { Time::ZERO + APART * number as u32 } else { Time::ZERO };
        let (told, due) = (Told::default(), Some(calls_at));
        Ok(Self { told, endpoint, pair, remotes: addresses, socket, packet, calls_at, due })
    }

    /// Step 3.
    fn get_on(&mut self, now: Time, room: &mut Room) -> io::Result<()> {
        while let Some((len, remote)) = not_now(self.socket.recv_from(&mut room.0))? {
            self.count(remote);
            let (id, bytes) = (LinkId::default(), &mut room.0[..len]);
            self.endpoint.handle_datagram(now, id, remote, None, Ecn::NotEct, bytes, &mut Nowhere);
        }
        self.endpoint.handle_timeout(now, &mut Nowhere);
        match self.pair {
            Some(_) => self.call(now),
            None => self.fill(now),
        }
        self.decide(now);
        while let Some(Transmit { segment_size, len, remote, .. }) = self.endpoint.poll_transmit(now, room) {
            for datagram in room.0[..len].chunks(segment_size) {
                // A full socket loses it, as a full queue on the way would.
                not_now(self.socket.send_to(datagram, remote))?;
                self.count(remote);
            }
        }
        self.decide(now);
        let due = self.endpoint.poll_timeout(now).map(|(at, _)| at);
        let of_hub = self.pair.iter().flat_map(|pair| [pair.poll_timeout(), self.calls_at]);
        self.due = due.into_iter().chain(of_hub).min();
        Ok(())
    }

    /// A datagram went to this remote portal, or came from it.
    fn count(&mut self, remote: SocketAddr) {
        let other = usize::from(remote != self.remotes[self.told.owner]);
        self.told.datagrams[other] += 1;
    }

    /// What the remote portal takes, and a little more, waits.
    fn fill(&mut self, now: Time) {
        let snapshot = self.endpoint.snapshot(now);
        let Some(session) = snapshot.peers.iter().flatten().next() else { return };
        let mut waiting = session.queued;
        while waiting < BACKLOG {
            self.give(now);
            waiting += ByteCount(INNER as u64);
        }
    }

    /// The next packet of the call, if it is time.
    fn call(&mut self, now: Time) {
        while self.calls_at <= now {
            self.give(now);
            self.calls_at = self.calls_at + CALL;
        }
    }

    fn give(&mut self, now: Time) {
        self.endpoint.read_buffer()[..INNER].copy_from_slice(&self.packet);
        self.endpoint.handle_inner(now, INNER, Offload::default());
    }

    /// Whose packets are, where there is a hub.
    fn decide(&mut self, now: Time) {
        while let Some(event) = self.endpoint.poll_event() {
            self.pair.iter_mut().for_each(|pair| pair.handle_event(now, &event));
        }
        if let Some(pair) = &mut self.pair {
            pair.handle_round(now, &mut self.endpoint);
            self.told.moves += std::iter::from_fn(|| pair.poll_event()).count() as u64;
            self.told.owner = pair.status().active.peer.0 as usize;
        }
    }
}

/// By which each core goes: UDP over IPv4.
fn udp_link() -> Link {
    Link {
        id: LinkId::default(),
        group: LinkGroup::default(),
        preference: 0,
        metric: 0,
        transport: Transport::Udp,
        ipv4: true,
        ipv6: false,
        opens: true,
        up: true,
    }
}

/// Steps 2 and 3 until told to stop.
fn generate(mut callers: Vec<Caller>, told: &Mutex<Vec<Told>>, mut stop: Stop) -> io::Result<()> {
    let start = Instant::now();
    let elapsed = || Time::ZERO + start.elapsed();
    let mut room = Room(vec![0; BUFFER]);
    while !stop.is_told() {
        let next = callers.iter().filter_map(|caller| caller.due).min();
        let wait = next.map_or(GLANCE, |at| at.since(elapsed()).min(GLANCE));
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
            let now = elapsed();
            if ready || caller.due.is_some_and(|at| at <= now) {
                caller.get_on(now, &mut room)?;
            }
        }
        *told.lock().expect("nothing panics with it") = callers.iter().map(|caller| caller.told).collect();
    }
    Ok(())
}

/// None where it would only have waited, or the remote portal is not there yet.
fn not_now<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused) => Ok(None),
        Err(error) => Err(error),
    }
}
