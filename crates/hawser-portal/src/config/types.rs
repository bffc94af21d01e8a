//! A configuration that was read: only what is right, and what this version carries out.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use ipnet::IpNet;

use super::amounts::{BitRate, MonthDay, Volume};
use super::forward::Forward;
use super::key::PublicKey;
use super::name_servers::NameServerKeys;
use super::pattern::InterfacePattern;
use super::rules::Rule;
use super::scion::{ScionEndpoint, ScionPaths};
use super::takeover::Takeover;
use super::values::{
    Cipher, Congestion, Fail, HostName, InterfaceName, IpProtocol, LinkName, Metric, Mtu, PeerName, Protection,
    Scheduler, TcpCongestion, TlsName, Transport,
};

/// What stands for every interface.
pub const ANY_INTERFACE: &str = "*";

/// A configuration in which everything is right and carried out by this version. Plain data, made by [`Config::parse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The portal itself.
    pub portal: Portal,
    /// Its TUN device.
    pub tun: Tun,
    /// The networks behind it.
    pub gateway: Gateway,
    /// Address translation.
    pub nat: Nat,
    /// The links, in the order of the file.
    pub links: Vec<Link>,
    /// The peers, in the order of the file; at least one.
    pub peers: Vec<Peer>,
    /// How packets are treated.
    pub traffic: Traffic,
    /// What is treated otherwise; the first match wins.
    pub rules: Vec<Rule>,
    /// Ports of this host that lead to hosts behind peers.
    pub forwards: Vec<Forward>,
    /// Where Prometheus scrapes it; none: nowhere.
    pub metrics: Option<SocketAddr>,
    /// An address that a client behind the local portal has in the remote one's place; none: all keep theirs.
    pub takeover: Option<Takeover>,
    /// The page that shows the portal.
    pub web: Web,
    /// The hub that it is a member of.
    pub hub: Option<Hub>,
}

/// `[portal]`. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Portal {
    /// The file with the private key; relative to the configuration's folder.
    pub private_key_file: PathBuf,
    /// Where every transport of `transports` listens; empty for a portal that only calls.
    pub listen: Vec<SocketAddr>,
    /// Where it listens in SCION packets.
    pub scion_listen: Vec<ScionEndpoint>,
    /// The transports that listen; at least one.
    pub transports: Vec<Transport>,
    /// Whether streams that come may be inside TLS.
    pub tls: bool,
    /// The protocol number of the transport `ip`.
    pub ip_protocol: IpProtocol,
    /// The control socket.
    pub socket: PathBuf,
    /// Where the keys of sessions are written to, for `hawser decode`; none: nowhere.
    pub keylog: Option<PathBuf>,
    /// Where it keeps what must outlive it.
    pub state_dir: PathBuf,
    /// Whether packets go from one peer to another.
    pub relay: bool,
}

/// `[tun]`. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tun {
    /// The device's name.
    pub name: InterfaceName,
    /// Its addresses with their networks' prefixes; at least one.
    pub addresses: Vec<IpNet>,
    /// Its MTU; none: what the smallest path carries.
    pub mtu: Option<Mtu>,
    /// Whether everything goes by the tunnel.
    pub default_route: bool,
    /// Whether what comes in for a link's address is answered past the tunnel, as before there was one.
    pub answer_by_link: bool,
    /// What becomes of all that while the tunnel is away.
    pub fail: Fail,
    /// The name servers that the system asks.
    pub dns: NameServerKeys,
}

impl Tun {
    /// Whether it has an address of the network's IP version.
    pub fn has_family_of(&self, net: &IpNet) -> bool {
        let is_v4 = net.addr().is_ipv4();
        self.addresses.iter().any(|address| address.addr().is_ipv4() == is_v4)
    }
}

impl Config {
    /// The members of each hub that this portal is a peer of: the active one, and its standby.
    pub fn pairs(&self) -> impl Iterator<Item = [&Peer; 2]> {
        let standby = |name: &PeerName| self.peers.iter().find(|peer| peer.name == *name);
        self.peers.iter().filter_map(move |active| Some([active, standby(active.standby.as_ref()?)?]))
    }
}

/// `[hub]`. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hub {
    /// The kernel's table that the networks of peers are announced in.
    pub table: u32,
}

/// `[web]`. Plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Web {
    /// Where it listens from the start; none: nowhere until `hawser web` asks.
    pub listen: Option<SocketAddr>,
}

/// `[gateway]`. Plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gateway {
    /// The interfaces of the networks behind this portal, whose packets go by the tunnel and back; none: it serves its host alone.
    pub serve: Vec<InterfaceName>,
    /// Whether they are behind the portal's inner address there, so that the peer need not know them.
    pub masquerade: bool,
}

/// `[nat]`. Plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nat {
    /// The interface behind whose address the peers' packets leave; none: no translation.
    pub masquerade: Option<InterfaceName>,
}

/// `[[link]]`. Plain data; it has an interface or an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its name, once in a configuration.
    pub name: LinkName,
    /// The interface it binds to.
    pub interface: Option<InterfaceName>,
    /// With every interface: but these.
    pub exclude: Vec<InterfacePattern>,
    /// The source address it binds to.
    pub address: Option<IpAddr>,
    /// How its path carries packets.
    pub transport: Transport,
    /// Whether its streams go inside TLS, and the name that is asked for there.
    pub tls: Option<TlsName>,
    /// Its SCION paths, where that is its transport.
    pub scion: Option<ScionPaths>,
    /// Its tier.
    pub metric: Metric,
    /// Its part of what `weighted` sends; at least one.
    pub weight: u8,
    /// The most that it may carry in each direction.
    pub max_rate: Option<BitRate>,
    /// The most that it may carry in a month.
    pub data_cap: Option<DataCap>,
}

/// `data_cap` and `data_cap_reset`. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataCap {
    /// The volume, both directions together.
    pub volume: Volume,
    /// The day on which it begins anew.
    pub reset: MonthDay,
}

impl Portal {
    /// Whether anybody may call.
    pub fn listens(&self) -> bool {
        !self.listen.is_empty() || !self.scion_listen.is_empty()
    }

    /// The UDP sockets that SCION packets come to.
    pub fn scion_sockets(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.scion_listen.iter().map(super::scion::host)
    }
}

impl Peer {
    /// The networks behind it, those that it shares with the active member of its hub among them.
    pub fn networks(&self) -> Vec<IpNet> {
        [&self.allowed_ips[..], &self.shared_ips].concat()
    }

    /// Whether we may call it.
    pub fn has_endpoints(&self) -> bool {
        !self.endpoints.is_empty() || !self.names.is_empty() || !self.scion_endpoints.is_empty()
    }
}

impl Link {
    /// Whether it stands for every interface with a way to an endpoint: each becomes a link of its own.
    pub fn is_any(&self) -> bool {
        self.interface.as_ref().is_some_and(|name| name.as_str() == ANY_INTERFACE)
    }

    /// The link of one interface of those that this one stands for.
    pub fn of_interface(&self, interface: InterfaceName) -> Self {
        let name = self.name.with_interface(&interface);
        Self { name, interface: Some(interface), exclude: Vec::new(), ..self.clone() }
    }
}

/// `[[peer]]`. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name, once in a configuration.
    pub name: PeerName,
    /// Its public key, once in a configuration.
    pub public_key: PublicKey,
    /// The file with a preshared key; relative to the configuration's folder.
    pub preshared_key_file: Option<PathBuf>,
    /// Where it is reached by all others, as far as that is known: the addresses of the file, and of a portal that runs those of
    /// `names`, too.
    pub endpoints: Vec<SocketAddr>,
    /// How little each of them is preferred: its place in the list of the file, where all addresses of a name have one.
    pub ranks: Vec<u8>,
    /// The endpoints that are names.
    pub names: Vec<NamedEndpoint>,
    /// Where it is reached by links over SCION.
    pub scion_endpoints: Vec<ScionEndpoint>,
    /// The networks behind it, host bits zero; at least one, none of them twice. A standby has none.
    pub allowed_ips: Vec<IpNet>,
    /// The peer that is its standby in a hub.
    pub standby: Option<PeerName>,
    /// What a standby may take over: the networks of its active member.
    pub shared_ips: Vec<IpNet>,
}

/// An endpoint that is a name. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedEndpoint {
    /// The name.
    pub name: HostName,
    /// The port.
    pub port: u16,
    /// How little it is preferred.
    pub rank: u8,
}

impl std::fmt::Display for NamedEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.name, self.port)
    }
}

/// `[traffic]`. Plain data; the default is the contract's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// What chooses the path of a packet.
    pub scheduler: Scheduler,
    /// What decides how much a path may have in flight.
    pub congestion: Congestion,
    /// The kernel's congestion control below `tcp` paths; none: the system's.
    pub tcp_congestion: Option<TcpCongestion>,
    /// What is done to inner packets.
    pub protection: Protection,
    /// The cipher of data.
    pub cipher: Cipher,
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            scheduler: Scheduler::Adaptive,
            congestion: Congestion::Bbr,
            tcp_congestion: None,
            protection: Protection::Encrypt,
            cipher: Cipher::Auto,
        }
    }
}
