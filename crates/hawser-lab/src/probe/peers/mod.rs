//! Many peers on one port: 1,000 configured, 200 sessions of one generator through one link.
//!
//! 1. A topology with one link of 400 Mbit/s, and a [`Remote`] portal that knows 1,000 peers; or two, a hub's members.
//! 2. The [`generator`] runs 200 cores, each on a socket of its own, behind the link; each sends all that it can. Of a
//!    hub they claim the first member, the second one stands by, and each sends what a call has.
//! 3. Once all sessions are there and have settled, what each carries is counted, as the remote portal tells it; of a
//!    hub, what it costs to stand by.

mod generator;

use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use etherparse::PacketBuilder;
use hawser_config::{PrivateKey, PublicKey};
use hawser_portal::api::Status;
use hawser_wire::Direction;

use self::generator::{Generator, Told};
use super::{Asked, Findings, LabError, MEBIBYTE};
use crate::cleanup::Folder;
use crate::portals::{PORT, Portal, configure, new_key};
use crate::topology::Bond;
use crate::wait::until;
use crate::workload::jain;

/// Peers that the remote portal knows, and those that send.
const CONFIGURED: usize = 1_000;
const ACTIVE: usize = 200;
const MBPS: f64 = 400.0;
/// One way, and what waits before the link at most: an Internet path's.
const DELAY: Duration = Duration::from_millis(20);
const QUEUE: Duration = Duration::from_millis(40);
/// Until the sessions that came last have found their share.
const SETTLE: Duration = Duration::from_secs(5);

/// A remote portal's own inner address, where it is the first one, and where the bulk goes: a socket that nobody reads.
const ADDRESS: Ipv4Addr = address(0);
const SINK_PORT: u16 = 9;
const TTL: u8 = 64;
/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(30);
const GLANCE: Duration = Duration::from_millis(10);
/// Without a hub all initiate at once from one address, of which 20 a second are answered under load (docs/wire.md):
/// ten seconds, and twice as much for initiations that were lost.
const HANDSHAKES: Duration = Duration::from_secs(30);
/// How often it is asked meanwhile.
const ASKING: Duration = Duration::from_millis(200);
const NAME: &str = "remote";

/// Steps 1 and 2 done. Runs; ended on drop, the generator first. One owner.
struct Crowd {
    generator: Generator,
    remotes: Vec<Remote>,
    _bond: Bond,
}

/// Steps 1 to 3, of one remote portal.
pub(super) fn share(asked: &Asked) -> Result<Findings, LabError> {
    let crowd = Crowd::gather(asked, 1, &format!("[traffic]\n{}", asked.traffic))?;
    let remote = &crowd.remotes[0];
    let (before, from) = (remote.received()?, Instant::now());
    thread::sleep(asked.duration);
    let (after, time) = (remote.received()?, from.elapsed());
    let mbps = |(before, after): (&u64, &u64)| after.saturating_sub(*before) as f64 * 8.0 / time.as_secs_f64() / 1e6;
    let mbps: Vec<f64> = before.iter().zip(&after).take(ACTIVE).map(mbps).collect();
    let figures = Findings::named([
        ("jain", jain(&mbps).unwrap_or_default()),
        ("peer_mib", remote.peer_mib(ACTIVE)?),
        ("memory_idle_mib", remote.idle as f64 / MEBIBYTE),
        ("startup_s", remote.startup.as_secs_f64()),
        ("goodput_mbps", mbps.iter().sum()),
        ("least_mbps", mbps.iter().copied().fold(f64::INFINITY, f64::min)),
        ("most_mbps", mbps.iter().copied().fold(0.0, f64::max)),
    ]);
    crowd.generator.stop()?;
    Ok(figures)
}

/// Steps 1 to 3, of a hub's two members.
pub(super) fn stand_by(asked: &Asked) -> Result<Findings, LabError> {
    let crowd = Crowd::gather(asked, 2, &format!("[hub]\n[traffic]\n{}", asked.traffic))?;
    let (before, from) = (crowd.generator.told(), Instant::now());
    thread::sleep(asked.duration);
    let (after, time) = (crowd.generator.told(), from.elapsed());
    let more = |count: fn(&Told) -> u64| before.iter().zip(&after).map(move |(old, new)| count(new) - count(old));
    // The middle peer's: one that moved meanwhile, after a halt of this machine, shows neither.
    let [of_owner, of_standby] = [more(|told| told.datagrams[0]), more(|told| told.datagrams[1])].map(|counts| {
        let mut counts: Vec<u64> = counts.collect();
        counts.sort_unstable();
        counts[counts.len() / 2] as f64 / time.as_secs_f64()
    });
    let owner = crowd.generator.owner();
    let figures = Findings::named([
        ("peer_mib", crowd.remotes[owner].peer_mib(ACTIVE)?),
        ("standby_mib", crowd.remotes[1 - owner].peer_mib(ACTIVE)?),
        // Each session has one path here, and half of them come from the member.
        ("owner_datagrams", of_owner / 2.0),
        ("standby_datagrams", of_standby / 2.0),
        ("standby_share", of_standby / of_owner),
        ("moves", more(|told| told.moves).sum::<u64>() as f64),
    ]);
    crowd.generator.stop()?;
    Ok(figures)
}

impl Crowd {
    /// Steps 1 and 2, with one or two remote portals, until all sessions have settled.
    fn gather(asked: &Asked, remotes: u8, more: &str) -> Result<Self, LabError> {
        let way = Direction { seed: asked.seed(), ..Direction::shaped(MBPS, DELAY, QUEUE) };
        let bond = Bond::new(&[way.both_ways()])?;
        let keys: Vec<PrivateKey> = (0..CONFIGURED).map(|_| new_key()).collect::<Result<_, _>>()?;
        let start = |number| Remote::start(&asked.program, &bond, number, &keys, more);
        let mut remotes: Vec<_> = (0..remotes).map(start).collect::<Result<_, _>>()?;
        let generator = Generator::start(&bond.local, &keys[..ACTIVE], &remotes.iter().collect::<Vec<_>>())?;
        remotes.iter_mut().try_for_each(|remote| remote.await_sessions(ACTIVE))?;
        thread::sleep(SETTLE);
        Ok(Self { generator, remotes, _bond: bond })
    }
}

/// A remote portal that knows many peers, by itself or as a hub's member; two share one machine. Starts running; ended
/// on drop. One owner.
struct Remote {
    // The portal goes before the folder with what it reads.
    portal: Portal,
    key: PublicKey,
    /// Where it listens.
    port: u16,
    /// How long it took until it answered.
    startup: Duration,
    /// What it held before any session, bytes.
    idle: u64,
    _sink: UdpSocket,
    _folder: Folder,
}

/// The inner address of peer `number`.
fn inner_address(number: usize) -> Ipv4Addr {
    let [.., high, low] = u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes();
    Ipv4Addr::new(10, 78, high, low)
}

/// An inner packet of peer `number`, of this many bytes: a datagram to the sink.
fn inner_packet(number: usize, bytes: usize) -> Vec<u8> {
    let source = inner_address(number);
    let headers = PacketBuilder::ipv4(source.octets(), ADDRESS.octets(), TTL).udp(SINK_PORT, SINK_PORT);
    let payload = vec![0; bytes - headers.size(0)];
    let mut packet = Vec::new();
    headers.write(&mut packet, &payload).expect("memory takes everything");
    packet
}

impl Remote {
    /// Starts the one of this number with a peer for each key, and waits until it answers. `more` is the rest of its
    /// configuration.
    fn start(program: &Path, bond: &Bond, number: u8, peers: &[PrivateKey], more: &str) -> Result<Self, LabError> {
        let folder = Folder::new()?;
        let private = new_key()?;
        configure(folder.path(), NAME, &private, &configuration(number, peers, more))?;
        let start = Instant::now();
        let mut portal = Portal::start(program, NAME, &bond.remote, &folder)?;
        let answer = until(PATIENCE, GLANCE, || portal.process.check().map(|()| portal.status()))?;
        let silent = || portal.process.fault(format!("it did not answer within {} s", PATIENCE.as_secs()));
        answer.ok_or_else(silent)?;
        let (startup, idle) = (start.elapsed(), portal.process.usage()?.resident);
        let sink = bond.remote.run(|| UdpSocket::bind((address(number), SINK_PORT)))?;
        let sink = sink.map_err(|error| portal.process.fault(format!("no socket on its TUN device: {error}")))?;
        let (key, port) = (private.public(), PORT + u16::from(number));
        Ok(Self { portal, key, port, startup, idle, _sink: sink, _folder: folder })
    }

    /// Inner bytes that came from each peer.
    fn received(&self) -> Result<Vec<u64>, LabError> {
        Ok(self.status()?.peers.iter().map(|peer| peer.rx_bytes).collect())
    }

    /// Waits until it has a session with this many peers.
    fn await_sessions(&mut self, wanted: usize) -> Result<(), LabError> {
        let mut there = 0;
        let all = until(HANDSHAKES, ASKING, || {
            self.portal.process.check()?;
            there = self.status()?.peers.iter().filter(|peer| peer.handshake_age_s.is_some()).count();
            Ok((there >= wanted).then_some(()))
        })?;
        all.ok_or_else(|| self.portal.process.fault(format!("{there} of {wanted} sessions began")))
    }

    /// What one of this many sessions costs it at most, MiB.
    fn peer_mib(&self, sessions: usize) -> Result<f64, LabError> {
        let most = self.portal.process.usage()?.resident_most;
        Ok((most - self.idle) as f64 / MEBIBYTE / sessions as f64)
    }

    fn status(&self) -> Result<Status, LabError> {
        self.portal.status().ok_or_else(|| self.portal.process.fault("it does not tell its status"))
    }
}

const fn address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, number, 1)
}

/// From where `[portal]` has named its files.
fn configuration(number: u8, peers: &[PrivateKey], more: &str) -> String {
    let (port, address) = (PORT + u16::from(number), address(number));
    let mut text = format!(
        "listen = [\"0.0.0.0:{port}\"]\n[tun]\nname = \"many{number}\"\naddresses = [\"{address}/24\"]\n{more}\n"
    );
    for (number, key) in peers.iter().enumerate() {
        let (public, address) = (key.public(), inner_address(number));
        text += &format!(
            "[[peer]]\nname = \"peer{number}\"\npublic_key = \"{public}\"\nallowed_ips = [\"{address}/32\"]\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::portals::understood;

    #[test]
    fn portals_understand_their_configurations() {
        let keys: Vec<_> = (0..300).map(|_| PrivateKey::generate().expect("randomness")).collect();
        for (number, more) in [(0, "[traffic]\n"), (1, "[hub]\n[traffic]\n")] {
            let config = understood(&configuration(number, &keys, more));
            assert_eq!((config.peers.len(), config.hub.is_some()), (300, number == 1));
        }
        assert_eq!(inner_address(299), Ipv4Addr::new(10, 78, 1, 43));
    }
}
