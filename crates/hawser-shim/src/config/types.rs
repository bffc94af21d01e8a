//! What a configuration says.

use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use hawser_config::keyword;
use hawser_scion::daemon::DaemonAddr;
use hawser_scion::select::{Criterion, Policy};
use hawser_scion::{EndpointAddr, IsdAs};
use ipnet::{IpNet, Ipv4Net};

use crate::flow::Protocol;
use crate::route::{InterfaceIndex, MAX_EGRESS, Port, Side};
use crate::translate::Layer4;

/// A shim's configuration. There is no default: it has a place in SCION. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where it is in SCION.
    pub local: Local,
    /// Whom it asks for paths; none: the environment's daemon, or that of the host.
    pub daemon: Option<DaemonAddr>,
    /// Interfaces for clients.
    pub egress: EgressCount,
    /// What makes paths the best.
    pub select: Criterion,
    /// Where its interfaces are.
    pub mode: Mode,
    /// Who asks for subflows.
    pub path_manager: PathManager,
    /// Where IPv4 addresses are derived; none: no IPv4.
    pub ipv4: Option<Ipv4Net>,
    /// What its interfaces, namespaces and state are called.
    pub name: Prefix,
    /// A file with further routes, read again when it changes.
    pub map: Option<PathBuf>,
    /// Whether names are asked for TXT records.
    pub dns: bool,
    /// The control socket.
    pub control: PathBuf,
    /// What carries segments in SCION.
    pub layer4: Layer4,
    /// Ports of servers here, to which routers may deliver TCP as they stand there.
    pub server_ports: BTreeSet<Port>,
    /// Which paths may be used.
    pub policy: Policy,
    /// What is where, in the order of the file.
    pub routes: Vec<Route>,
}

/// A shim's place in SCION. There is no default. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local {
    /// Its AS; none: that of the daemon.
    pub isd_as: Option<IsdAs>,
    /// Its host and port.
    pub host: SocketAddr,
}

/// How many interfaces a shim has for clients: 1 to [`MAX_EGRESS`], 4 by default. Plain value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EgressCount(u8);

keyword! {
    /// Where a shim's interfaces are. Plain value.
    #[derive(Default)]
    Mode {
        /// Among the host's own.
        #[default]
        Direct = "direct",
        /// In two network namespaces, for servers and for clients.
        Namespaces = "namespaces",
    }
}

keyword! {
    /// Who asks for subflows. Plain value.
    #[derive(Default)]
    PathManager {
        /// The shim, as many as there are paths.
        #[default]
        Userspace = "userspace",
        /// The kernel, by its endpoints and limits.
        Kernel = "kernel",
    }
}

/// Before the names of a shim's interfaces: letters, digits, `_` and `-`. `shim` by default. Plain data.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix(String);

/// The name of a host (RFC 1123 section 2.1), in small letters and without a dot at its end. Never empty; plain data.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(String);

keyword! {
    /// What a route is for. TCP by default: a map of before UDP crossed leads none there, and nobody's names or calls
    /// go another way than they did. Plain value.
    #[derive(Default)]
    Protocols {
        /// TCP alone.
        #[default]
        Tcp = "tcp",
        /// UDP alone.
        Udp = "udp",
        /// Both.
        Both = "both",
    }
}

impl Protocols {
    /// Which these are.
    pub const fn each(self) -> &'static [Protocol] {
        match self {
            Self::Tcp => &[Protocol::Tcp],
            Self::Udp => &[Protocol::Udp],
            Self::Both => &Protocol::ALL,
        }
    }
}

/// What is where. There is no default. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Addresses; none: the addresses derived from `scion` alone.
    pub to: Option<To>,
    /// The shim there; none: what the name's TXT records say.
    pub scion: Option<EndpointAddr>,
    /// Which flows go over SCION.
    pub side: Side,
    /// For what it is.
    pub protocol: Protocols,
}

/// Addresses of a route. Plain data.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum To {
    /// Addresses.
    Network(IpNet, Option<Port>),
    /// Those that a name has.
    Name(HostName, Option<Port>),
}

impl Config {
    /// Its SCION endpoint, where the daemon's AS is this one.
    pub fn end(&self, daemons: IsdAs) -> EndpointAddr {
        EndpointAddr::new(self.local.isd_as.unwrap_or(daemons), self.local.host)
    }

    /// The name of an interface.
    pub fn interface(&self, index: InterfaceIndex) -> String {
        match index.get() {
            0 => format!("{}-in", self.name),
            egress => format!("{}{egress}", self.name),
        }
    }
}

impl EgressCount {
    /// This many, from 1 to [`MAX_EGRESS`].
    pub fn new(count: i64) -> Option<EgressCount> {
        u8::try_from(count).ok().filter(|count| (1..=MAX_EGRESS).contains(count)).map(EgressCount)
    }

    /// How many.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Each of them.
    pub fn interfaces(self) -> impl Iterator<Item = InterfaceIndex> + Clone {
        InterfaceIndex::egresses(self.0)
    }
}

impl Default for EgressCount {
    fn default() -> Self {
        EgressCount(4)
    }
}

impl Prefix {
    /// The longest, in bytes: interfaces have 15 (`IFNAMSIZ` of linux/if.h), and `-in` is added.
    pub const MAX: usize = 12;

    /// Takes `text` where interfaces, namespaces and files can be called so.
    pub fn parse(text: &str) -> Option<Prefix> {
        let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        (plain && (1..=Prefix::MAX).contains(&text.len()) && !text.starts_with('-')).then(|| Prefix(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Prefix {
    fn default() -> Self {
        Prefix("shim".to_owned())
    }
}

impl HostName {
    /// Takes `text` where a host can be called so.
    pub fn parse(text: &str) -> Option<HostName> {
        let text = text.strip_suffix('.').unwrap_or(text);
        let number = text.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
        let name = hawser_config::HostName::parse(text).filter(|_| !number);
        name.map(|name| HostName(name.as_str().to_ascii_lowercase()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

macro_rules! shown_as_text {
    ($($name:ident)*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.0)
            }
        }
    )*};
}
shown_as_text! { Prefix HostName }
