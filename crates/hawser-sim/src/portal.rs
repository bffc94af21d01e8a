//! A portal under simulated time: the core with a clock, buffers and memory of its own.
//!
//! Each portal's clock has its own epoch and may run faster: nothing may rely on equal clocks.

use crate::net::Datagram;
use crate::random::Seeded;
use hawser_core::congestion::Kind;
use hawser_core::endpoint::{Config, Endpoint, Event, Link, PeerConfig};
use hawser_core::handshake::{Identity, Psk, PublicKey};
use hawser_core::packet::Offload;
use hawser_core::policy::Tuning;
use hawser_core::rules::Rules;
use hawser_core::session::{Buffers, SessionSnapshot, Settings, Terms, Transmit};
use hawser_core::units::{LinkGroup, LinkId, Random, Time};
use hawser_core::wire::{Cipher, CipherSet, InstanceId, Offer, Protection, Version};
use ipnet::IpNet;
use std::net::SocketAddr;
use std::time::Duration;

/// Bytes of a link's buffer: what `Buffers::spare` promises.
const BUFFER: usize = 65_535;
/// The TUN's MTU before the core says otherwise (RFC 8200 section 5).
const TUN_MTU: u16 = 1280;
/// What `allowed_ips` of each side are: (IPv4, IPv6), local portal first.
const INNER: [[&str; 2]; 2] = [["10.1.0.0/16", "fd01::/16"], ["10.2.0.0/16", "fd02::/16"]];
/// Datagrams that the sockets of a frozen portal keep: 212,992 bytes (net.core.rmem_default) at 832 bytes of overhead
/// and 300 of payload.
const SOCKET_KEEPS: usize = 190;
/// Parts in a million.
const MILLION: i128 = 1_000_000;

/// A clock that started at another time, and may run fast. A plain value.
#[derive(Copy, Clone, Debug)]
pub struct Clock {
    /// What it shows at the start of the simulation.
    pub offset: Duration,
    /// How much too fast it runs, in parts per million.
    pub ppm: i32,
}

impl Clock {
    /// What it shows at that moment of the simulation.
    pub fn show(&self, world: Time) -> Time {
        // Most are exact, and are asked at each step.
        if self.ppm == 0 {
            return world + self.offset;
        }
        let elapsed = i128::from(world.as_nanos());
        let shown = elapsed + elapsed * i128::from(self.ppm) / MILLION;
        Time::from_nanos(u64::try_from(shown).unwrap_or(u64::MAX)) + self.offset
    }

    /// The first moment of the simulation at which it shows `shown` or later.
    pub fn when(&self, shown: Time) -> Time {
        let Some(since) = shown.as_nanos().checked_sub(self.offset.as_nanos() as u64) else { return Time::ZERO };
        if self.ppm == 0 {
            return Time::from_nanos(since);
        }
        let guess = i128::from(since) * MILLION / (MILLION + i128::from(self.ppm));
        // Rounding may have missed it by a nanosecond or two, either way.
        let mut at = Time::from_nanos(u64::try_from(guess).unwrap_or(u64::MAX)) - Duration::from_nanos(2);
        while at < Time::NEVER && self.show(at) < shown {
            at = at + Duration::from_nanos(1);
        }
        at
    }
}

/// What a portal is made of, again after each restart. No default.
#[derive(Clone)]
pub struct Recipe {
    /// Its key pair.
    pub identity: Identity,
    /// Its peer's key.
    pub peer: PublicKey,
    /// Where its peer listens; empty if it waits for initiations.
    pub endpoints: Vec<SocketAddr>,
    /// The prefixes of its peer.
    pub allowed_ips: Vec<IpNet>,
    /// Each path's controller.
    pub congestion: Kind,
    /// What it wishes to be done to inner packets.
    pub protection: Protection,
    /// How flows are treated.
    pub rules: Rules,
    /// The policy's constants.
    pub tuning: Tuning,
    /// What is asked of the paths of its links.
    pub terms: Vec<(LinkGroup, Terms)>,
    /// It is a member of a hub, or has one.
    pub in_hub: bool,
    /// The other members of its peer's hub, with the same prefixes: their keys, and where they listen.
    pub twins: Vec<(PublicKey, SocketAddr)>,
}

impl Recipe {
    /// The recipe of side 0 (local) or 1 (remote), which wait to be told endpoints.
    pub fn of(side: usize, congestion: Kind) -> Self {
        let identity = |side: usize| Identity::new([side as u8 + 1; 32]);
        let peer = 1 - side;
        Recipe {
            identity: identity(side),
            peer: identity(peer).public(),
            endpoints: Vec::new(),
            allowed_ips: INNER[peer].iter().map(|net| net.parse().expect("a prefix")).collect(),
            congestion,
            protection: Protection::Encrypt,
            rules: Rules::default(),
            tuning: Tuning::default(),
            terms: Vec::new(),
            in_hub: false,
            twins: Vec::new(),
        }
    }

    /// Its peer as the configuration has it.
    pub fn peer_config(&self) -> PeerConfig {
        PeerConfig {
            public_key: self.peer,
            psk: Psk::default(),
            endpoints: self.endpoints.clone(),
            ranks: Vec::new(),
            allowed_ips: self.allowed_ips.clone(),
        }
    }

    fn twin_configs(&self) -> impl Iterator<Item = PeerConfig> {
        let config = move |&(key, endpoint): &(PublicKey, SocketAddr)| PeerConfig {
            public_key: key,
            endpoints: vec![endpoint],
            ..self.peer_config()
        };
        self.twins.iter().map(config)
    }

    fn make(&self, rng: &mut Seeded) -> Endpoint {
        let ciphers = CipherSet::of(&[Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305]);
        let offer = Offer { protection: self.protection, ciphers, instance: InstanceId(rng.next_u64()) };
        let config = Config {
            identity: self.identity.clone(),
            offer: if self.in_hub { offer.speaking(Version::OURS_IN_HUB) } else { offer },
            settings: Settings { congestion: self.congestion, max_link_mtu: 1500, tuning: self.tuning },
            peers: std::iter::once(self.peer_config()).chain(self.twin_configs()).collect(),
        };
        let mut endpoint = Endpoint::new(config, Box::new(rng.fork()));
        endpoint.set_rules(Time::ZERO, self.rules.clone());
        self.terms.iter().for_each(|(group, terms)| endpoint.set_terms(*group, *terms));
        endpoint
    }
}

/// One portal. Begins without links; the world owns it.
pub struct Portal {
    /// The core.
    pub endpoint: Endpoint,
    /// What it is made of.
    pub recipe: Recipe,
    /// Its clock.
    pub clock: Clock,
    /// The TUN's MTU, as the core last set it.
    pub mtu: u16,
    /// What the core told, by the time of the simulation.
    pub told: Vec<(Time, Event)>,
    /// It was stopped, and not started again yet.
    pub stopped: bool,
    /// While its process is frozen: what its sockets keep for it.
    pub frozen: Option<Vec<(LinkId, Datagram)>>,
    links: Vec<Link>,
    rng: Seeded,
    buffer: Box<[u8]>,
}

/// The one buffer of a portal, for links that are up.
struct LinkBuffers<'a> {
    buffer: &'a mut [u8],
    links: &'a [Link],
}

impl Buffers for LinkBuffers<'_> {
    fn spare(&mut self, link: LinkId, _: SocketAddr) -> Option<&mut [u8]> {
        let up = self.links.iter().any(|known| known.id == link && known.up);
        if up { Some(self.buffer) } else { None }
    }
}

impl Portal {
    /// A portal without links.
    pub fn new(recipe: Recipe, clock: Clock, mut rng: Seeded) -> Self {
        Portal {
            endpoint: recipe.make(&mut rng),
            recipe,
            clock,
            mtu: TUN_MTU,
            told: Vec::new(),
            stopped: false,
            frozen: None,
            links: Vec::new(),
            rng,
            buffer: vec![0; BUFFER].into_boxed_slice(),
        }
    }

    /// Adds a link, or changes it.
    pub fn add_link(&mut self, now: Time, link: Link) {
        self.links.retain(|known| known.id != link.id);
        self.links.push(link);
        self.endpoint.add_link(self.clock.show(now), link);
    }

    /// A link goes up or down; its socket goes with it.
    pub fn set_up(&mut self, link: LinkId, up: bool) {
        for known in self.links.iter_mut().filter(|known| known.id == link) {
            known.up = up;
        }
    }

    /// Whether its sockets keep a datagram for later, or drop it for its process is frozen and they are full.
    pub fn keeps(&mut self, link: LinkId, datagram: &Datagram) -> bool {
        let Some(kept) = &mut self.frozen else { return false };
        if kept.len() < SOCKET_KEEPS {
            kept.push((link, datagram.clone()));
        }
        true
    }

    /// Whether a link's socket is open.
    pub fn is_up(&self, link: LinkId) -> bool {
        self.links.iter().any(|known| known.id == link && known.up)
    }

    /// Starts the portal again, as another instance: all that it knew is gone.
    pub fn restart(&mut self, now: Time) {
        self.endpoint = self.recipe.make(&mut self.rng);
        (self.stopped, self.frozen) = (false, None);
        for link in self.links.clone() {
            self.endpoint.add_link(self.clock.show(now), link);
        }
    }

    /// The next batch with its bytes.
    pub fn poll_transmit(&mut self, now: Time) -> Option<(Transmit, &[u8])> {
        if self.stopped {
            return None;
        }
        let mut buffers = LinkBuffers { buffer: &mut self.buffer, links: &self.links };
        let transmit = self.endpoint.poll_transmit(self.clock.show(now), &mut buffers)?;
        Some((transmit, &self.buffer[..transmit.len]))
    }

    /// When the core wants to be woken, by the time of the simulation.
    pub fn deadline(&mut self, now: Time) -> Option<Time> {
        if self.stopped {
            return None;
        }
        self.endpoint.poll_timeout(self.clock.show(now)).map(|(at, _)| self.clock.when(at))
    }

    /// Takes what the core has to tell.
    pub fn take_events(&mut self, now: Time) {
        while let Some(event) = self.endpoint.poll_event() {
            if let Event::PeerMtu { mtu, .. } = event {
                self.mtu = mtu;
            }
            self.told.push((now, event));
        }
    }

    /// The session, if there is one.
    pub fn session(&self, now: Time) -> Option<SessionSnapshot> {
        self.endpoint.snapshot(self.clock.show(now)).peers.into_iter().flatten().next()
    }

    /// An inner packet that `write` puts into the read buffer, of as many bytes as it says.
    pub fn send_inner(&mut self, now: Time, offload: Offload, write: impl FnOnce(&mut [u8]) -> usize) {
        let len = write(self.endpoint.read_buffer());
        if !self.stopped {
            self.endpoint.handle_inner(self.clock.show(now), len, offload);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_read_both_ways() {
        for (offset, ppm) in [(0, 0), (7_000_000_123, 200), (123, -200)] {
            let clock = Clock { offset: Duration::from_nanos(offset), ppm };
            for nanos in [0, 1, 999_999_999, 86_400_000_000_000] {
                let at = Time::from_nanos(nanos);
                let back = clock.when(clock.show(at));
                assert!(back <= at && clock.show(back) >= clock.show(at), "{clock:?} at {nanos}");
            }
        }
        let fast = Clock { offset: Duration::ZERO, ppm: 200 };
        assert_eq!(fast.show(Time::from_nanos(1_000_000_000)).as_nanos(), 1_000_200_000);
    }
}
