//! The configuration of a portal (DESIGN section 5): strict TOML in, [`Config`] or every fault out.
//!
//! 1. `toml` reads the text into a tree that knows its bytes.
//! 2. Each section is read by its reader in `sections.rs`; what nobody asked for is unknown.
//! 3. `together.rs` looks at what must fit together across sections.
//! 4. [`load()`] does all that for a file, and reads the keys it names.

mod amounts;
mod error;
mod gateway;
mod key;
mod load;
mod marks;
mod parsers;
mod parsers_transport;
mod pattern;
mod reader;
pub mod reading;
mod rules;
pub mod schema;
mod sections;
mod supported;
mod takeover;
#[cfg(test)]
mod tests;
mod together;
mod types;
mod unique;
mod values;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use amounts::{BitRate, MonthDay, Volume};
pub use error::{ConfigError, Span};
pub use key::{KEY_BYTES, KeyError, KeyFileError, PresharedKey, PrivateKey, PublicKey};
pub use load::{Keys, LoadError, load, read};
pub use marks::{MarkKinds, MarkMatch};
pub use pattern::InterfacePattern;
pub use rules::{PortRange, Rule};
pub use takeover::{Kept, KeptProtocol, Takeover, TakeoverRole};
pub use types::{ANY_INTERFACE, Config, DataCap, Gateway, Link, Nat, Peer, Portal, Traffic, Tun};
pub use values::{
    Cipher, Congestion, InterfaceName, IpProtocol, Keyword, LinkName, MTU_MIN, Metric, Mtu, NameError, PeerName,
    Protection, Scheduler, TcpCongestion, TlsName, Transport,
};

use error::{Fault, Faults, did_you_mean};
use reader::{Sited, Table, kind};
use sections::Claims;

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

impl Config {
    /// Reads a configuration; `file` is what its faults are reported under.
    ///
    /// # Errors
    /// Every fault found, in the order of the file. Where the text is no TOML, only what is wrong with that.
    pub fn parse(text: &str, file: &str) -> Result<Self, Vec<ConfigError>> {
        let mut faults = Faults::new(file, text);
        let Some(tree) = reading::tree(text, &mut faults) else { return Err(faults.into_sorted()) };
        let config = read_sections(tree.get_ref(), &mut faults);
        match config {
            Some(config) if faults.is_empty() => Ok(config),
            _ => Err(faults.into_sorted()),
        }
    }
}

/// Reads all sections, and then looks at them together. None only where a fault was noted.
fn read_sections<'t>(tree: &DeTable<'t>, faults: &mut Faults<'_>) -> Option<Config> {
    let portal = single(tree, "portal", faults).and_then(|(t, s)| sections::portal(open("portal", t, s, faults)));
    let tun = single(tree, "tun", faults).and_then(|(t, s)| sections::tun(open("tun", t, s, faults)));
    let gateway = single(tree, "gateway", faults).map(|(t, s)| sections::gateway(open("gateway", t, s, faults)));
    let nat = single(tree, "nat", faults).map(|(t, s)| sections::nat(open("nat", t, s, faults)));
    let mut claims = Claims::default();
    let links = repeated(tree, "link", faults).into_iter();
    let links: Vec<_> = links.map(|(t, s)| sections::link(open("link", t, s, faults), &mut claims)).collect();
    let peers = repeated(tree, "peer", faults).into_iter();
    let peers: Vec<_> = peers.map(|(t, s)| sections::peer(open("peer", t, s, faults), &mut claims)).collect();
    let traffic = single(tree, "traffic", faults).map(|(t, s)| sections::traffic(open("traffic", t, s, faults)));
    let rules = repeated(tree, "rule", faults).into_iter();
    let mut marks = MarkKinds::default();
    let rules: Vec<_> = rules.map(|(t, s)| rules::rule(open("rule", t, s, faults), &mut marks)).collect();
    let takeover = single(tree, "takeover", faults).and_then(|(t, s)| takeover::read(open("takeover", t, s, faults)));
    unknown_sections(tree, faults);
    missing_sections(tree, faults);

    let links: Vec<Sited<Link>> = links.into_iter().collect::<Option<_>>()?;
    let peers: Vec<Sited<Peer>> = peers.into_iter().collect::<Option<_>>()?;
    let (portal, tun) = (portal?, tun?);
    let mut settled = None;
    if faults.is_empty() {
        // Only then: what was left out because of a fault would look pointless.
        together::check(&portal, &tun, &links, &peers, faults);
        let (gateway, nat) = (gateway.as_ref(), nat.as_ref());
        gateway::check(tree, &tun, gateway, nat, &peers, faults);
        settled = takeover.and_then(|section| takeover::settle(section, &tun, &peers, faults));
    }
    Some(Config {
        portal,
        tun,
        gateway: gateway.unwrap_or_default(),
        nat: nat.unwrap_or_default(),
        links: links.into_iter().map(|l| l.value).collect(),
        peers: peers.into_iter().map(|p| p.value).collect(),
        traffic: traffic.unwrap_or_default(),
        rules: rules.into_iter().collect::<Option<_>>()?,
        takeover: settled,
    })
}

fn open<'a, 't, 'f>(name: &str, table: &'a DeTable<'t>, header: Span, faults: &'a mut Faults<'f>) -> Table<'a, 't, 'f> {
    Table::new(title(name), table, header, faults)
}

/// A section as a user writes it: `[tun]`, `[[link]]`.
fn title(name: &str) -> String {
    match schema::section(name) {
        Some(s) if s.repeated => format!("[[{name}]]"),
        _ => format!("[{name}]"),
    }
}

/// The section `[name]`; another shape is a fault.
fn single<'a, 't>(tree: &'a DeTable<'t>, name: &str, faults: &mut Faults<'_>) -> Option<(&'a DeTable<'t>, Span)> {
    let value = tree.get(name)?;
    match value.get_ref() {
        DeValue::Table(table) => Some((table, value.span())),
        DeValue::Array(items) if items.iter().all(|i| i.get_ref().is_table()) && !items.is_empty() => {
            let span = items.iter().last().map_or(value.span(), Spanned::span);
            faults.add(span, Fault::new(format!("[{name}] stands once, in single brackets")).fix(format!("[{name}]")));
            None
        }
        other => {
            let fault = Fault::new(format!("`{name}`: expected a section, found {}", kind(other)));
            faults.add(value.span(), fault.hint(format!("write it under a line [{name}]")));
            None
        }
    }
}

/// The sections `[[name]]`; another shape is a fault.
fn repeated<'a, 't>(tree: &'a DeTable<'t>, name: &str, faults: &mut Faults<'_>) -> Vec<(&'a DeTable<'t>, Span)> {
    let Some(value) = tree.get(name) else { return Vec::new() };
    match value.get_ref() {
        DeValue::Array(items) if items.iter().all(|i| i.get_ref().is_table()) => {
            items.iter().filter_map(|i| i.get_ref().as_table().map(|t| (t, i.span()))).collect()
        }
        DeValue::Table(_) => {
            let fault = Fault::new(format!("[[{name}]] stands in double brackets, because there may be several"));
            faults.add(value.span(), fault.fix(format!("[[{name}]]")));
            Vec::new()
        }
        other => {
            let fault = Fault::new(format!("`{name}`: expected sections, found {}", kind(other)));
            faults.add(value.span(), fault.hint(format!("write each under a line [[{name}]]")));
            Vec::new()
        }
    }
}

fn unknown_sections(tree: &DeTable<'_>, faults: &mut Faults<'_>) {
    let names: Vec<&str> = schema::SCHEMA.iter().map(|s| s.name).collect();
    for (key, value) in tree.iter().filter(|(k, _)| !names.contains(&k.get_ref().as_ref())) {
        let name = key.get_ref().as_ref();
        let homes: Vec<String> =
            schema::SCHEMA.iter().filter(|s| s.keys.iter().any(|k| k.name == name)).map(|s| title(s.name)).collect();
        let is_section = matches!(value.get_ref(), DeValue::Table(_) | DeValue::Array(_));
        let fault = match did_you_mean(name, &names) {
            _ if !homes.is_empty() => Fault::new(format!("key `{name}` outside of its section"))
                .hint(format!("it belongs under {}", homes.join(" or "))),
            Some(meant) => Fault::new(format!("unknown section `{name}`"))
                .hint(format!("did you mean {}?", title(meant)))
                .fix(meant),
            None if is_section => {
                Fault::new(format!("unknown section `{name}`")).hint(format!("sections: {}", names.join(", ")))
            }
            None => Fault::new(format!("unknown key `{name}`")).hint(format!("sections: {}", names.join(", "))),
        };
        faults.add(key.span(), fault);
    }
}

fn missing_sections(tree: &DeTable<'_>, faults: &mut Faults<'_>) {
    let needed = [
        ("portal", "private_key_file = \"/etc/hawser/private.key\""),
        ("tun", "addresses = [\"10.77.0.2/24\"]"),
        ("peer", "name = \"hub\", public_key = \"…\", allowed_ips = [\"10.77.0.1/32\"]"),
    ];
    for (name, with) in needed.into_iter().filter(|(name, _)| !tree.contains_key(*name)) {
        let fault = Fault::new(format!("missing section {}", title(name)));
        faults.add(0..0, fault.hint(format!("add {} with {with}", title(name))));
    }
}
