//! From a configuration to what runs: the core's configuration, and one plan for each socket.
//!
//! 1. [`core_config`] maps keys, peers and `[traffic]`.
//! 2. [`sockets`] gives each `[[link]]` a socket for each IP version that an endpoint needs, then each `listen` address
//!    one for each transport.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use hawser_config::{
    Config, IpProtocol, Link, Peer, PeerName, PresharedKey, ScionEndpoint, ScionPaths, TcpCongestion, TlsName, Traffic,
    Transport,
};
use hawser_core::endpoint::{Config as CoreConfig, PeerConfig};
use hawser_core::handshake::{Identity, Psk, PublicKey};
use hawser_core::policy::Tuning;
use hawser_core::session::Settings;
use hawser_core::transport::Transport as CoreTransport;
use hawser_core::units::{LinkGroup, LinkId, Random};
use hawser_core::wire::{Cipher, CipherSet, InstanceId, Offer};
use hawser_net::machine;
use hawser_net::netcfg::{Family, Mark};

mod hub;
#[cfg_attr(not(feature = "scion"), path = "plan/scion_absent.rs")]
mod scion;

pub use hub::hubs;

use super::own;
use crate::keys::Keys;

/// Largest IP packet that is looked for on any path, in bytes: Ethernet's (RFC 894). A larger one would only pay where
/// all paths have it, and each probe for it costs a path that has not a loss.
const MAX_LINK_MTU: u16 = 1500;

/// A socket to be opened when its place exists. No default; plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketPlan {
    /// The core's name of it: its place among the plans.
    pub id: LinkId,
    /// The `[[link]]` that it serves, whose sockets keep one path between them; or its own, where it listens.
    pub group: LinkGroup,
    /// What status calls it: the link's name, or the address it listens on.
    pub name: String,
    /// The interface it is bound to.
    pub interface: Option<String>,
    /// The address it is bound to; none: one of the interface's.
    pub address: Option<IpAddr>,
    /// The port it is bound to; 0: any, or none.
    pub port: u16,
    /// How it carries datagrams.
    pub carriage: Carriage,
    /// Its IP version.
    pub family: Family,
    /// How little it is preferred among the sockets of its link: 0 is used at once.
    pub preference: u8,
    /// Its tier.
    pub metric: u16,
    /// The mark of all it sends, by which policy routing keeps it off the tunnel.
    pub mark: Mark,
    /// The endpoints it may reach; empty for one that listens.
    pub endpoints: Vec<SocketAddr>,
}

impl SocketPlan {
    /// A place without a socket: its own went.
    pub fn nothing(id: LinkId) -> Self {
        Self {
            id,
            group: LinkGroup::default(),
            name: String::new(),
            // No interface is called so.
            interface: Some(String::new()),
            address: None,
            port: 0,
            carriage: Carriage::Udp,
            family: Family::V4,
            preference: 0,
            metric: 0,
            mark: Mark(0),
            endpoints: Vec::new(),
        }
    }

    /// Whether this and the other are one socket: all else can change while it is open.
    pub fn is_same(&self, other: &Self) -> bool {
        let fixed = |plan: &Self| Self {
            id: LinkId::default(),
            group: LinkGroup::default(),
            metric: 0,
            endpoints: Vec::new(),
            ..plan.clone()
        };
        self.opens() == other.opens() && fixed(self) == fixed(other)
    }

    /// Whether paths are opened from it; else it only answers.
    pub fn opens(&self) -> bool {
        !self.endpoints.is_empty() || matches!(self.carriage, Carriage::Scion(ScionRole::Calls { .. }))
    }

    /// Whether it may reach this peer.
    pub fn reaches(&self, peer: &Peer) -> bool {
        match &self.carriage {
            Carriage::Scion(ScionRole::Calls { endpoints, .. }) => {
                peer.scion_endpoints.iter().any(|endpoint| endpoints.contains(endpoint))
            }
            _ => peer.endpoints.iter().any(|endpoint| self.endpoints.contains(endpoint)),
        }
    }
}

/// How a socket carries datagrams, and what only its transport needs to know. No default; plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Carriage {
    /// In UDP datagrams.
    Udp,
    /// In IP packets of this protocol.
    Ip(IpProtocol),
    /// In records of TCP streams.
    Tcp {
        /// The kernel's congestion control; none: the system's.
        congestion: Option<TcpCongestion>,
        /// Whether its calls go inside TLS. Where it listens, whether they may; the caller decides.
        tls: Option<TlsName>,
    },
    /// In SCION packets.
    #[cfg_attr(not(feature = "scion"), expect(dead_code, reason = "without SCION nothing is planned for it"))]
    Scion(ScionRole),
}

/// What a socket for SCION packets does. No default; plain data.
#[cfg_attr(not(feature = "scion"), expect(dead_code, reason = "without SCION nothing is planned for it"))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScionRole {
    /// It reaches these endpoints by paths that are chosen so.
    Calls {
        /// Where to.
        endpoints: Vec<ScionEndpoint>,
        /// How.
        paths: ScionPaths,
    },
    /// It answers whoever calls it here.
    Listens(ScionEndpoint),
}

impl Carriage {
    fn new(transport: Transport, config: &Config, tls: Option<TlsName>) -> Self {
        match transport {
            Transport::Ip => Self::Ip(config.portal.ip_protocol),
            Transport::Tcp => Self::Tcp { congestion: config.traffic.tcp_congestion.clone(), tls },
            // SCION's sockets are planned apart, and who listens does so for each transport that is named.
            Transport::Udp | Transport::Scion | Transport::Auto => Self::Udp,
        }
    }

    /// How the sockets of a link carry datagrams, the preferred one first.
    fn of_link(link: &Link, config: &Config) -> Vec<Self> {
        let one = |transport, tls| Self::new(transport, config, tls);
        match link.transport {
            Transport::Auto => {
                vec![one(Transport::Udp, None), one(Transport::Tcp, None), one(Transport::Tcp, link.tls.clone())]
            }
            transport => vec![one(transport, link.tls.clone())],
        }
    }

    /// In the configuration's word.
    pub fn transport(&self) -> Transport {
        match self {
            Self::Udp => Transport::Udp,
            Self::Ip(_) => Transport::Ip,
            Self::Tcp { .. } => Transport::Tcp,
            Self::Scion(_) => Transport::Scion,
        }
    }

    /// In the core's.
    pub fn core(&self) -> CoreTransport {
        match self {
            Self::Udp => CoreTransport::Udp,
            Self::Ip(_) => CoreTransport::Ip,
            Self::Tcp { .. } => CoreTransport::Tcp,
            Self::Scion(_) => CoreTransport::Scion,
        }
    }
}

/// One plan for each socket, links first.
pub fn sockets(config: &Config) -> Vec<SocketPlan> {
    let endpoints: Vec<SocketAddr> = config.peers.iter().flat_map(|peer| &peer.endpoints).copied().collect();
    // No configuration has 65,536 links or sockets.
    let (mut plans, mut groups) = (Vec::new(), (0..).map(LinkGroup));
    // A link of every interface has none itself.
    for (link, group) in config.links.iter().filter(|link| !link.is_any()).zip(&mut groups) {
        if let Some(paths) = &link.scion {
            plans.extend(scion::for_link(link, group, paths, &config.peers));
            continue;
        }
        for family in [Family::V4, Family::V6] {
            let reached: Vec<_> = endpoints.iter().filter(|e| Family::of(e.ip()) == family).copied().collect();
            let bindable = link.address.is_none_or(|address| Family::of(address) == family);
            if !bindable || reached.is_empty() {
                continue;
            }
            let carriages = (0..).zip(Carriage::of_link(link, config));
            plans.extend(carriages.map(|carriage| for_link(link, group, family, reached.clone(), carriage)));
        }
    }
    let mark = own::mark(config.tun.name.as_str());
    let listening = listening(config).into_iter().zip(&mut groups);
    plans.extend(listening.map(|((address, carriage), group)| for_listen(address, group, carriage)));
    let listening = config.portal.scion_listen.iter().zip(groups);
    plans.extend(listening.map(|(endpoint, group)| scion::for_listen(endpoint, group)));
    for (index, plan) in plans.iter_mut().enumerate() {
        (plan.id, plan.mark) = (LinkId(index as u16), mark);
    }
    plans
}

/// Every address that is listened on, by each transport. One without ports listens once on each IP address.
fn listening(config: &Config) -> Vec<(SocketAddr, Carriage)> {
    let mut all: Vec<(SocketAddr, Carriage)> = Vec::new();
    for transport in &config.portal.transports {
        for address in &config.portal.listen {
            let carriage = Carriage::new(*transport, config, config.portal.tls.then(TlsName::default));
            let port = if carriage.core().has_ports() { address.port() } else { 0 };
            let place = (SocketAddr::new(address.ip(), port), carriage);
            if !all.contains(&place) {
                all.push(place);
            }
        }
    }
    all
}

fn for_link(
    link: &Link,
    group: LinkGroup,
    family: Family,
    endpoints: Vec<SocketAddr>,
    (preference, carriage): (u8, Carriage),
) -> SocketPlan {
    SocketPlan {
        id: LinkId::default(),
        group,
        preference,
        name: link.name.to_string(),
        interface: link.interface.as_ref().map(ToString::to_string),
        address: link.address,
        port: 0,
        carriage,
        family,
        metric: link.metric,
        mark: Mark(0),
        endpoints,
    }
}

fn for_listen(address: SocketAddr, group: LinkGroup, carriage: Carriage) -> SocketPlan {
    SocketPlan {
        id: LinkId::default(),
        group,
        name: if carriage.core().has_ports() { address.to_string() } else { address.ip().to_string() },
        interface: None,
        address: Some(address.ip()),
        port: address.port(),
        carriage,
        family: Family::of(address.ip()),
        preference: 0,
        metric: 0,
        mark: Mark(0),
        endpoints: Vec::new(),
    }
}

/// The core's configuration. The portal's instance is random for each start.
pub fn core_config(config: &Config, keys: &Keys, rng: &mut dyn Random) -> CoreConfig {
    CoreConfig {
        identity: Identity::new(*keys.private.as_bytes()),
        offer: hub::speaking(config, offer(&config.traffic, machine::has_aes(), InstanceId(rng.next_u64()))),
        settings: Settings {
            congestion: config.traffic.congestion,
            max_link_mtu: MAX_LINK_MTU,
            tuning: Tuning::default(),
        },
        peers: config.peers.iter().map(|peer| core_peer(peer, &keys.preshared)).collect(),
    }
}

/// A peer as the core knows it.
pub fn core_peer(peer: &Peer, preshared: &BTreeMap<PeerName, PresharedKey>) -> PeerConfig {
    let psk = preshared.get(&peer.name).map_or_else(Psk::default, |key| Psk::new(*key.as_bytes()));
    PeerConfig { psk, ..known_peer(peer) }
}

/// A peer whose keys the core knows already: what may change of it.
pub fn known_peer(peer: &Peer) -> PeerConfig {
    PeerConfig {
        public_key: PublicKey(*peer.public_key.as_bytes()),
        psk: Psk::default(),
        endpoints: peer.endpoints.clone(),
        ranks: peer.ranks.clone(),
        allowed_ips: peer.networks(),
    }
}

fn offer(traffic: &Traffic, has_aes: bool, instance: InstanceId) -> Offer {
    let protection = traffic.protection;
    let ciphers = match traffic.cipher {
        // Whoever does without encryption may meet a peer that takes nothing but BLAKE2s.
        None if Cipher::Blake2s.can(protection) => CipherSet::for_machine(has_aes).with(Cipher::Blake2s),
        None => CipherSet::for_machine(has_aes),
        Some(cipher) => CipherSet::of(&[cipher]),
    };
    Offer { protection, ciphers, instance }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: &str = "public_key = \"RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=\"";

    fn config(portal: &str, links: &str, endpoints: &str) -> Config {
        let text = format!(
            "[portal]\nprivate_key_file = \"key\"\n{portal}\n[tun]\naddresses = [\"10.77.0.2/24\"]\n{links}\n[[peer]]\n\
             name = \"hub\"\n{KEYS}\n{endpoints}\nallowed_ips = [\"10.77.0.1/32\"]\n"
        );
        Config::parse(&text, "test.toml").expect("a right configuration")
    }

    #[test]
    fn a_link_has_a_socket_for_each_ip_version_that_an_endpoint_needs() {
        let links =
            "[[link]]\nname = \"a\"\ninterface = \"eth0\"\n[[link]]\nname = \"b\"\naddress = \"192.0.2.7\"\nmetric = 3";
        let both = "endpoints = [\"198.51.100.7:4920\", \"[2001:db8::7]:4920\"]";
        let plans = sockets(&config("", links, both));
        let seen: Vec<_> =
            plans.iter().map(|p| (p.id.0, p.group.0, p.name.as_str(), p.family, p.metric, p.endpoints.len())).collect();
        assert_eq!(seen, [(0, 0, "a", Family::V4, 0, 1), (1, 0, "a", Family::V6, 0, 1), (2, 1, "b", Family::V4, 3, 1)]);
        assert!(plans.iter().all(SocketPlan::opens));
        assert!(plans.iter().all(|plan| plan.mark == own::mark("hawser0")));
    }

    #[test]
    fn a_listening_socket_opens_no_path() {
        let plans = sockets(&config("listen = [\"0.0.0.0:4920\", \"[::]:4920\"]", "", ""));
        let seen: Vec<_> = plans.iter().map(|p| (p.group.0, p.name.as_str(), p.port, p.opens())).collect();
        assert_eq!(seen, [(0, "0.0.0.0:4920", 4920, false), (1, "[::]:4920", 4920, false)]);
    }

    #[test]
    fn every_transport_listens_on_every_address_and_one_without_ports_once_on_each_host() {
        let portal = "transports = [\"udp\", \"tcp\", \"ip\"]\nip_protocol = 254\n\
                      listen = [\"0.0.0.0:4920\", \"0.0.0.0:443\", \"[::]:4920\"]";
        let plans = sockets(&config(portal, "", ""));
        let seen: Vec<_> = plans.iter().map(|p| (p.carriage.transport(), p.name.as_str(), p.port)).collect();
        let (udp, tcp, ip) = (Transport::Udp, Transport::Tcp, Transport::Ip);
        let ports = |transport| {
            [("0.0.0.0:4920", 4920), ("0.0.0.0:443", 443), ("[::]:4920", 4920)]
                .map(|(name, port)| (transport, name, port))
        };
        assert_eq!(seen, [&ports(udp)[..], &ports(tcp), &[(ip, "0.0.0.0", 0), (ip, "::", 0)]].concat());
        assert!(plans.iter().all(|p| !matches!(p.carriage, Carriage::Ip(p) if p.number() != 254)));
    }

    #[test]
    fn each_link_has_its_transport() {
        let links = "[[link]]\nname = \"a\"\ninterface = \"eth0\"\ntransport = \"tcp\"\ntls = true\n\
                     [[link]]\nname = \"b\"\ninterface = \"eth1\"\ntransport = \"ip\"";
        let plans = sockets(&config("", links, "endpoints = [\"198.51.100.7:4920\"]"));
        let tls = Some(TlsName::default());
        assert_eq!(plans[0].carriage, Carriage::Tcp { congestion: None, tls });
        assert_eq!(plans[1].carriage, Carriage::Ip(IpProtocol::EXPERIMENT));
    }

    #[test]
    fn a_link_that_chooses_by_itself_has_a_socket_for_each_transport_the_preferred_first() {
        let links =
            "[[link]]\nname = \"a\"\ninterface = \"eth0\"\ntransport = \"auto\"\ntls_name = \"www.example.com\"";
        let plans = sockets(&config("", links, "endpoints = [\"198.51.100.7:4920\"]"));
        let tcp = |tls: Option<&str>| Carriage::Tcp { congestion: None, tls: tls.and_then(TlsName::parse) };
        let seen: Vec<_> = plans.iter().map(|p| (p.group.0, p.preference, p.carriage.clone())).collect();
        assert_eq!(seen, [(0, 0, Carriage::Udp), (0, 1, tcp(None)), (0, 2, tcp(Some("www.example.com")))]);
    }

    #[test]
    fn an_explicit_cipher_is_the_only_one_offered() {
        let offered =
            |cipher, has_aes| offer(&Traffic { cipher, ..Traffic::default() }, has_aes, InstanceId(1)).ciphers;
        let (aes, chacha) = (Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305);
        assert_eq!(offered(None, true), CipherSet::of(&[aes, chacha]));
        assert_eq!(offered(None, false), CipherSet::of(&[chacha]));
        assert_eq!(offered(Some(aes), false), CipherSet::of(&[aes]));
        assert_eq!(offered(Some(chacha), true), CipherSet::of(&[chacha]));
        let clear = |cipher| {
            let traffic = Traffic { cipher, protection: hawser_config::Protection::Authenticate, ..Traffic::default() };
            offer(&traffic, true, InstanceId(1)).ciphers
        };
        assert_eq!(clear(None), CipherSet::of(&[aes, chacha, Cipher::Blake2s]));
        assert_eq!(clear(Some(aes)), CipherSet::of(&[aes]));
        assert_eq!(clear(Some(Cipher::Blake2s)), CipherSet::of(&[Cipher::Blake2s]));
    }
}
