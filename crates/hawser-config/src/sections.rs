//! The sections that stand once, but for `[takeover]`: what each says, and its reader. A reader asks for its keys, lets
//! the table find unknown ones, and gives a value only where everything in it is right.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use ipnet::IpNet;
use toml::de::DeValue;

use super::error::{Fault, Read};
use super::links::Endpoints;
use super::parsers::{
    any_endpoint, integer, interface_address, interface_name, ip_address, keyword, keyword_but, metrics_address,
    parsed, path, quoted, string, within,
};
use super::reading::Table;
use super::scion::{self, ScionEndpoint};
use super::values::{DnsDomain, InterfaceName, IpProtocol, MTU_MAX, MTU_MIN, ROOT, TcpCongestion};
use super::words::{Cipher, Congestion, Fail, LogFormat, Protection, Scheduler, Transport};
use super::{DEFAULT_SOCKET, DEFAULT_STATE_DIR, DEFAULT_TUN_NAME};

/// The word for what the smallest path carries, and for as many threads as pay.
const AUTO: &str = "auto";
/// Most threads of a portal: with AES-128-GCM the core's serial part is the limit from three on
/// (docs/results/threads.json).
const THREADS_MAX: i64 = 8;
/// Transports that do not listen here: SCION has addresses of its own, and who listens takes what is named.
const LATER_TRANSPORTS: &[Transport] = &[Transport::Scion, Transport::Auto];

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
    /// The packet thread and those that seal and open beside it; none: as many as pay.
    pub threads: Option<u8>,
}

impl Portal {
    /// Whether anybody may call.
    pub fn listens(&self) -> bool {
        !self.listen.is_empty() || !self.scion_listen.is_empty()
    }

    /// The UDP sockets that SCION packets come to.
    pub fn scion_sockets(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.scion_listen.iter().map(scion::host)
    }
}

/// Where something is missing that was noted, and nothing comes of the rest.
pub(super) fn portal(table: &mut Table<'_, '_, '_>) -> Portal {
    let key_file = table.required("private_key_file", "private_key_file = \"/etc/hawser/private.key\"", path);
    let listen = Endpoints::of(table.set("listen", "listens there twice", |v| string(v, any_endpoint)));
    let transports = table.set("transports", "the transport is there twice", |v| keyword_but(v, LATER_TRANSPORTS));
    let tls = table.is("tls");
    if tls && !transports.iter().flatten().any(|transport| *transport == Transport::Tcp) {
        let fault = Fault::new("`tls`: no stream comes here: `transports` has no \"tcp\"");
        table.fault_at("tls", fault.hint("write: transports = [\"udp\", \"tcp\"]"));
    }
    table.not_empty("transports", "write: transports = [\"udp\"]");
    Portal {
        private_key_file: key_file.map(|file| file.value).unwrap_or_default(),
        listen: listen.sockets,
        scion_listen: listen.scion,
        transports: transports.unwrap_or_else(|| vec![Transport::Udp]),
        tls,
        ip_protocol: table.get("ip_protocol", ip_protocol).unwrap_or(IpProtocol::EXPERIMENT),
        socket: table.get("socket", path).unwrap_or_else(|| DEFAULT_SOCKET.into()),
        keylog: table.get("keylog", path),
        state_dir: table.get("state_dir", path).unwrap_or_else(|| DEFAULT_STATE_DIR.into()),
        relay: table.is("relay"),
        threads: table.get("threads", |v| auto_or(v, 1..=THREADS_MAX, "\"auto\" takes as many as pay")).flatten(),
    }
}

fn ip_protocol(value: &DeValue<'_>) -> Read<IpProtocol> {
    let number = integer(value)?;
    IpProtocol::new(number).ok_or_else(|| {
        Fault::new(format!("{number} is not a protocol number that is free to be used"))
            .hint("253 or 254 are for everybody (RFC 3692)")
            .fix("253")
    })
}

/// `[tun]`. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tun {
    /// The device's name.
    pub name: InterfaceName,
    /// Its addresses with their networks' prefixes; at least one.
    pub addresses: Vec<IpNet>,
    /// Its MTU, bytes; none: what the smallest path carries.
    pub mtu: Option<u16>,
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

/// Name servers behind the tunnel, and which names are asked for there. No servers by default; plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameServerKeys {
    /// The servers, the preferred one first.
    pub servers: Vec<IpAddr>,
    /// Their domains; none: every name.
    pub domains: Vec<DnsDomain>,
}

pub(super) fn tun(table: &mut Table<'_, '_, '_>) -> Tun {
    let default_name = || InterfaceName::parse(DEFAULT_TUN_NAME).expect("the constant is a name");
    let name = table.get("name", interface_name).unwrap_or_else(default_name);
    let addresses = table.required_list("addresses", "addresses = [\"10.77.0.2/24\"]", interface_address);
    let addresses = addresses.unwrap_or_default();
    let was_auto = table.raw("mtu").is_some_and(|mtu| matches!(integer(mtu), Ok(0)));
    if was_auto {
        table.warn_at("mtu", Fault::new("`mtu`: 0 is written \"auto\" today").fix(quoted(AUTO)));
    }
    let mtu = |value: &DeValue<'_>| match was_auto {
        true => Ok(None),
        false => auto_or(value, MTU_MIN.into()..=MTU_MAX.into(), "\"auto\" takes what the smallest path carries"),
    };
    Tun {
        name,
        addresses: table.distinct(addresses, "the address is there twice", IpNet::addr),
        mtu: table.get("mtu", mtu).flatten(),
        default_route: table.is("default_route"),
        answer_by_link: table.is("answer_by_link"),
        fail: table.get("fail", keyword).unwrap_or(Fail::Open),
        dns: name_servers(table),
    }
}

/// None for `auto`, which `hint` explains.
fn auto_or<T: TryFrom<i64>>(value: &DeValue<'_>, range: RangeInclusive<i64>, hint: &str) -> Read<Option<T>> {
    match value.as_str() {
        Some(AUTO) => Ok(None),
        _ => within(value, range, |fault| fault.hint(hint).fix(quoted(AUTO))).map(Some),
    }
}

/// `dns` and `dns_domains`: name servers that the system asks while the portal runs.
fn name_servers(table: &mut Table<'_, '_, '_>) -> NameServerKeys {
    let servers = table.set("dns", "the name server is there twice", |v| match ip_address(v)? {
        address if address.is_loopback() => {
            Err(Fault::new(format!("{address} is this host, and not behind the tunnel")).hint("such as \"10.77.0.1\""))
        }
        address => Ok(address),
    });
    let domains = table.list("dns_domains", dns_domain).unwrap_or_default();
    if let Some(first) = domains.first().filter(|_| !table.has("dns")) {
        let fault = Fault::new("`dns_domains` without `dns`").hint("add: dns = [\"10.77.0.1\"]");
        table.fault(first.span.clone(), fault);
    }
    let domains = table.distinct(domains, "the domain is there twice", DnsDomain::clone);
    NameServerKeys { servers: servers.unwrap_or_default(), domains }
}

fn dns_domain(value: &DeValue<'_>) -> Read<DnsDomain> {
    let read = parsed(value, DnsDomain::parse, "is not a domain", "such as \"example.org\", or \"~.\" for every name");
    let every = |fault: Fault| fault.hint("every name").fix(quoted("~."));
    read.map_err(|fault| if value.as_str() == Some(ROOT) { every(fault) } else { fault })
}

/// `[gateway]`. Plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gateway {
    /// The interfaces of the networks behind this portal, whose packets go by the tunnel and back; none: it serves its
    /// host alone.
    pub serve: Vec<InterfaceName>,
    /// Whether they are behind the portal's inner address there, so that the peer need not know them.
    pub masquerade: bool,
}

pub(super) fn gateway(table: &mut Table<'_, '_, '_>) -> Gateway {
    let serve = table.set("serve", "the interface is there twice", interface_name).unwrap_or_default();
    Gateway { serve, masquerade: table.is("masquerade") }
}

/// Where the peers' packets leave; the empty string said once that there is no interface.
pub(super) fn nat(table: &mut Table<'_, '_, '_>) -> Option<InterfaceName> {
    let none = table.raw("masquerade").and_then(DeValue::as_str) == Some("");
    if none {
        table.warn_at("masquerade", Fault::new("`masquerade`: where there is no interface, leave the key out"));
    }
    let read = |v: &DeValue<'_>| if none { Ok(None) } else { interface_name(v).map(Some) };
    table.get("masquerade", read).flatten()
}

/// Where Prometheus scrapes the portal. None only where a fault was noted.
pub(super) fn metrics(table: &mut Table<'_, '_, '_>) -> Option<SocketAddr> {
    table.required("listen", "listen = \"127.0.0.1:9492\"", metrics_address).map(|listen| listen.value)
}

pub(super) fn log(table: &mut Table<'_, '_, '_>) -> LogFormat {
    table.get("format", keyword).unwrap_or(LogFormat::Text)
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
    /// The cipher of data; none: AES where both ends have the instructions, else ChaCha20.
    pub cipher: Option<Cipher>,
}

impl Default for Traffic {
    fn default() -> Self {
        let (scheduler, congestion, protection) = (Scheduler::Adaptive, Congestion::Bbr, Protection::Encrypt);
        Self { scheduler, congestion, tcp_congestion: None, protection, cipher: None }
    }
}

pub(super) fn traffic(table: &mut Table<'_, '_, '_>) -> Traffic {
    let default = Traffic::default();
    let traffic = Traffic {
        scheduler: table.get("scheduler", keyword).unwrap_or(default.scheduler),
        congestion: table.get("congestion", keyword).unwrap_or(default.congestion),
        tcp_congestion: table.get("tcp_congestion", |v| {
            let hint = "cat /proc/sys/net/ipv4/tcp_available_congestion_control";
            parsed(v, TcpCongestion::parse, "is no name of a congestion control", hint)
        }),
        protection: table.get("protection", keyword).unwrap_or(default.protection),
        cipher: table.get("cipher", keyword).unwrap_or(default.cipher),
    };
    if traffic.cipher.is_some_and(|cipher| !cipher.can(traffic.protection)) {
        let fault = Fault::new("`cipher`: blake2s does not encrypt");
        let hint = "add to [traffic]: protection = \"authenticate\"    (inner packets then go in clear), or take another cipher";
        table.fault_at("cipher", fault.hint(hint));
    }
    traffic
}
