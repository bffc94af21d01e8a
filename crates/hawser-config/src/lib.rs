//! Configurations: strict TOML in, a portal's [`Config`] or every fault out. Other files of Hawser's are read with the
//! same.
//!
//! 1. [`reading`] makes a tree of the text and reads it section by section, key by key (`parsers`); what nobody asked
//!    for is unknown, by the [`schema`]. `error` gives faults their places.
//! 2. Each section has its type and its reader: `sections`, `links` (`scion`), `rules` (`matching`, `marks`),
//!    `redirect`, `hub`. Their values are right as soon as they are there: `values`, `words`, `key`.
//! 3. `together` looks at what must fit together across sections.
//! 4. [`read`] does all that for a file and those of peers beside it (`load`).

mod error;
mod hub;
mod key;
mod links;
mod load;
mod marks;
mod matching;
mod parsers;
pub mod reading;
mod redirect;
mod rules;
pub mod schema;
#[cfg_attr(not(feature = "scion"), path = "scion_absent.rs")]
mod scion;
mod sections;
#[cfg(test)]
mod tests;
mod together;
mod values;
mod words;

use std::net::SocketAddr;

pub use error::{ConfigError, Span};
pub use hub::{Etcd, EtcdTls, Hub};
pub use key::{KEY_BYTES, KeyError, KeyFileError, PresharedKey, PrivateKey, PublicKey};
pub use links::{ANY_INTERFACE, DataCap, Link, NamedEndpoint, Peer};
pub use load::{LoadError, PEERS_FOLDER, TEXT_LIMIT, from_file, log_format, read, read_text};
pub use marks::{CLASS_MASK, MarkKinds, MarkMatch, class_bits};
pub use matching::{Mac, Ports};
pub use redirect::{Forward, Kept, Takeover, TakeoverRole};
pub use rules::Rule;
pub use scion::{ScionEndpoint, ScionPaths};
pub use sections::{Gateway, NameServerKeys, Portal, Traffic, Tun};
pub use values::{
    DnsDomain, Domain, EtcdUrl, HostName, InterfaceName, InterfacePattern, IpProtocol, LinkName, MTU_MIN, NameError,
    PeerName, TcpCongestion, TlsName, amount_arg,
};
pub use words::{Cipher, Congestion, Fail, Keyword, LogFormat, Protection, Scheduler, Transport, Transported};

use error::Faults;
use reading::{Document, Unique, parse, parse_into, values as alone};
use schema::SCHEMA;

/// The port portals listen on where the contract's examples say nothing else.
pub const DEFAULT_PORT: u16 = 4920;
/// Where `hawser up` looks for its configuration.
pub const DEFAULT_FILE: &str = "/etc/hawser/hawser.toml";
/// Where a portal keeps what must outlive it.
pub const DEFAULT_STATE_DIR: &str = "/var/lib/hawser";
/// Where the control socket is.
pub const DEFAULT_SOCKET: &str = "/run/hawser/hawser.sock";
/// The TUN device's name.
pub const DEFAULT_TUN_NAME: &str = "hawser0";

/// A configuration in which everything is right and carried out by this version. Plain data, made by [`Config::parse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The portal itself.
    pub portal: Portal,
    /// Its TUN device.
    pub tun: Tun,
    /// The networks behind it.
    pub gateway: Gateway,
    /// The interface behind whose address the peers' packets leave; none: no translation.
    pub nat: Option<InterfaceName>,
    /// The links, in the order of the file.
    pub links: Vec<Link>,
    /// The peers, in the order of the file; at least one, unless others come from `peers.d` or etcd.
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
    /// Where the page that shows the portal listens from the start; none: nowhere until `hawser web` asks.
    pub web: Option<SocketAddr>,
    /// The hub that it is a member of.
    pub hub: Option<Hub>,
}

impl Config {
    /// Reads a configuration; `file` is what its faults are reported under.
    ///
    /// # Errors
    /// Every fault found, in the order of the file. Where the text is no TOML, only what is wrong with that.
    pub fn parse(text: &str, file: &str) -> Result<Self, Vec<ConfigError>> {
        parse(text, file, SCHEMA, |file| Self::of(file, None))
    }

    /// What of a configuration without faults is written in an old way: it is read, and a later version may not.
    #[must_use]
    pub fn outdated(text: &str, file: &str) -> Vec<ConfigError> {
        let mut faults = Faults::new(file, text);
        // Peers may stand in other files; what is missing is no old spelling.
        parse_into(text, SCHEMA, &mut faults, |file| Self::of(file, Some(&[])));
        faults.into_outdated()
    }

    /// Reads all sections, and then looks at them together, with the peers of other files, where there is a folder for
    /// them: then this one need not have any. None only where a fault was noted.
    fn of(file: &mut Document<'_, '_, '_>, others: Option<&[Peer]>) -> Option<Self> {
        file.demand("portal", "private_key_file = \"/etc/hawser/private.key\"");
        file.demand("tun", "addresses = [\"10.77.0.2/24\"]");
        if others.is_none() && file.value("hub", "etcd").is_none() {
            file.demand("peer", "name = \"hub\", public_key = \"…\", allowed_ips = [\"10.77.0.1/32\"]");
        }
        let portal = file.one("portal", sections::portal);
        let tun = file.one("tun", sections::tun);
        let gateway = file.one("gateway", sections::gateway).unwrap_or_default();
        let nat = file.one("nat", sections::nat).flatten();
        let mut names = Unique::default();
        let links = file.each("link", |table| links::link(table, &mut names));
        let traffic = file.one("traffic", sections::traffic).unwrap_or_default();
        let (mut kinds, known) = (MarkKinds::default(), rules::known_links(file));
        let rules = file.each("rule", |table| Some(rules::rule(table, &mut kinds, known.as_deref())));
        let mut rules = rules.unwrap_or_default();
        marks::classify(&mut rules, &mut kinds, file.faults);
        let forwards = file.each("forward", redirect::forward);
        let metrics = file.one("metrics", sections::metrics).flatten();
        let section = file.one("takeover", redirect::takeover).flatten();
        let web = file.one("web", |table| table.get("listen", parsers::web_address)).flatten();
        let hub = file.one("hub", hub::section);
        // Only its faults: who begins the log asks for the format before (`log_format`).
        file.one("log", sections::log);
        let peers = links::peers(file);

        let (portal, tun, links, peers, forwards) = (portal?, tun?, links?, peers?, forwards?);
        let (links, rules, forwards) = (alone(links), alone(rules), alone(forwards));
        let peers = [&alone(peers)[..], others.unwrap_or_default()].concat();
        // Which of its two portals this is shows by the peers.
        let takeover = None;
        let mut config =
            Self { portal, tun, gateway, nat, links, peers, traffic, rules, forwards, metrics, takeover, web, hub };
        if file.faults.is_empty() {
            // Only then: what was left out because of a fault would look pointless.
            config.check(file);
            config.takeover = section.and_then(|section| section.settle(&config, file.faults));
        }
        Some(config)
    }
}
