//! What contenders ask of a stage's links, and the ways of packets over them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hawser_wire::{Namespace, Way};
use serde::Deserialize;

use super::undo::{Undo, ip};
use crate::error::LabError;
use crate::scenario::Family;
use crate::stage::{Ends, Stage, StageLink};

/// A rate for a link without one: above all others.
const UNSHAPED: u64 = u64::MAX;
/// The first routing table of ours, clear of the kernel's (253 to 255) and of what a stage takes. Source: ip-route(8).
const STEERING_TABLE: u32 = 4900;
/// Before every rule of a stage.
const STEERING_PREFERENCE: u32 = 10;

/// Addresses of tunnels' devices, local and remote. Source: DESIGN section 5.
pub(super) const TUN_V4: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 0, 2), Ipv4Addr::new(10, 77, 0, 1)];
pub(super) const TUN_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2), Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1)];

/// What `ip -json route get` says of a way. Plain data.
#[derive(Debug, Deserialize)]
struct Hop {
    gateway: Option<IpAddr>,
    dev: String,
}

/// What `ip -json link` says of an interface. Plain data.
#[derive(Debug, Deserialize)]
struct Interface {
    ifname: String,
    flags: Vec<String>,
}

/// Whether client and server are hosts of their own behind the tunnel's ends.
pub(super) fn has_lan(stage: &Stage) -> bool {
    stage.client.name() != stage.local.name()
}

/// Where a tunnel's ends are reached: their devices' own addresses.
pub(super) fn tun_ends(inner: Family) -> Ends {
    match inner {
        Family::V4 => Ends { client: TUN_V4[0].into(), server: TUN_V4[1].into() },
        Family::V6 => Ends { client: TUN_V6[0].into(), server: TUN_V6[1].into() },
    }
}

/// Names of a namespace's interfaces that are up.
pub(super) fn interfaces_up(namespace: &Namespace) -> Result<Vec<String>, LabError> {
    let said = ip(namespace, "-json link show up")?;
    let all: Vec<Interface> = parsed(&said, "ip -json link")?;
    Ok(all.into_iter().filter(|one| one.flags.iter().any(|flag| flag == "UP")).map(|one| one.ifname).collect())
}

/// The links that are up at the local end.
pub(super) fn links_up(stage: &Stage) -> Result<Vec<&StageLink>, LabError> {
    let up = interfaces_up(&stage.local)?;
    Ok(stage.links.iter().filter(|link| up.contains(&link.name)).collect())
}

/// The link of this name; without one, of those that are up the one that carries most, both ways together.
pub(super) fn choose<'a>(stage: &'a Stage, name: Option<&str>, contender: &str) -> Result<&'a StageLink, LabError> {
    let fault = |fault| LabError::Option { contender: contender.to_owned(), fault };
    let names = || stage.links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>().join(", ");
    match name {
        Some(name) => {
            let found = stage.links.iter().find(|link| link.name == name);
            found.ok_or_else(|| fault(format!("there is no link {name:?} in this case, but: {}", names())))
        }
        None => {
            // The first of equal ones: max_by_key would give the last.
            let best = links_up(stage)?.into_iter().rev().max_by_key(|link| rate(link));
            best.ok_or_else(|| fault(format!("none of these links is up: {}", names())))
        }
    }
}

fn rate(link: &StageLink) -> u64 {
    let of = |way| link.link.settings(way).rate.map_or(UNSHAPED, hawser_wire::Rate::bits_per_second);
    Way::BOTH.into_iter().map(of).fold(0, u64::saturating_add)
}

/// Forwards between two addresses over these links, as routers do, by flow where there are several.
/// Where routers translate the client's address, what comes back needs no way of its own.
pub(super) fn forward(stage: &Stage, links: &[&StageLink], ends: &Ends, undo: &mut Undo) -> Result<(), LabError> {
    let (there, back) = (host(ends.server), host(ends.client));
    let (mut ways, mut returns) = (String::new(), String::new());
    for link in links {
        let onward = hop(&link.router, link.far_address)?;
        undo.ip_add(&link.router, &format!("{} route add {there} {}", family(ends.server), onward.words(link.far_address)))?;
        let homeward = hop(&link.router, link.address)?;
        undo.ip_add(&link.router, &format!("{} route add {back} {}", family(ends.client), homeward.words(link.address)))?;
        ways += &format!(" nexthop via {} dev {}", link.gateway, link.name);
        // A remote end that knows no way back to the link's address answers the router's own.
        if let Ok(far) = hop(&stage.remote, link.address) {
            returns += &format!(" nexthop {}", far.words(link.address));
        }
    }
    undo.ip_add(&stage.local, &format!("{} route add {there}{ways}", family(ends.server)))?;
    if !returns.is_empty() {
        undo.ip_add(&stage.remote, &format!("{} route add {back}{returns}", family(ends.client)))?;
    }
    Ok(())
}

impl Hop {
    /// The hop's part of a route: by its gateway, or by the neighbour itself.
    fn words(&self, neighbour: IpAddr) -> String {
        format!("via {} dev {}", self.gateway.unwrap_or(neighbour), self.dev)
    }
}

/// Sends what goes to a link's far address and this UDP or TCP port by that link, whatever the metrics of others.
pub(super) fn steer(stage: &Stage, link: &StageLink, port: u16, undo: &mut Undo) -> Result<(), LabError> {
    let (family, far) = (family(link.far_address), host(link.far_address));
    let table = STEERING_TABLE + u32::from(port);
    let way = format!("{family} route add {far} via {} dev {} src {} table {table}", link.gateway, link.name, link.address);
    undo.ip_add(&stage.local, &way)?;
    for protocol in ["udp", "tcp"] {
        let choice = format!("to {far} ipproto {protocol} dport {port} lookup {table}");
        undo.ip_add(&stage.local, &format!("{family} rule add preference {STEERING_PREFERENCE} {choice}"))?;
    }
    Ok(())
}

/// The next hop of a namespace on the way to an address.
fn hop(namespace: &Namespace, address: IpAddr) -> Result<Hop, LabError> {
    let words = format!("{} -json route get {address}", family(address));
    let mut hops: Vec<Hop> = parsed(&ip(namespace, &words)?, &words)?;
    let said = "no way".to_owned();
    hops.pop().ok_or(LabError::Refused { action: words, said })
}

fn parsed<T: for<'a> Deserialize<'a>>(said: &str, action: &str) -> Result<T, LabError> {
    serde_json::from_str(said).map_err(|error| LabError::system(format!("understand {action}"), error))
}

/// What `ip` is told of an address's family.
pub(super) const fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "-4" } else { "-6" }
}

/// A network of one address.
pub(super) fn host(address: IpAddr) -> ipnet::IpNet {
    address.into()
}
