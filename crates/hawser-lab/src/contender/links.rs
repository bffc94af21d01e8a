//! What contenders ask of a stage's links.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hawser_wire::Way;

use super::undo::Undo;
use crate::error::LabError;
use crate::scenario::Family;
use crate::stage::{Ends, Stage, StageLink};

/// A rate for a link without one: above all others.
const UNSHAPED: u64 = u64::MAX;
/// Before every rule of a stage. Source: ip-rule(8).
const STEERING_PREFERENCE: u32 = 10;

/// Addresses of tunnels' devices, local and remote.
pub(super) const TUN_V4: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 0, 2), Ipv4Addr::new(10, 77, 0, 1)];
pub(super) const TUN_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2), Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1)];

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

/// The links that are up, by their places.
pub(super) fn links_up(stage: &Stage) -> Vec<usize> {
    (0..stage.links.len()).filter(|&link| stage.is_up(link)).collect()
}

/// The place of the link of this name; without one, of those that are up the one that carries most, both ways together.
pub(super) fn choose(stage: &Stage, name: Option<&str>, contender: &str) -> Result<usize, LabError> {
    let names = || stage.links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>().join(", ");
    let (found, fault) = match name {
        Some(name) => (stage.index(name), format!("there is no link {name:?} in this case, but: {}", names())),
        // The first of equal ones: max_by_key would give the last.
        None => {
            let best = links_up(stage).into_iter().rev().max_by_key(|&link| rate(&stage.links[link]));
            (best, format!("none of these links is up: {}", names()))
        }
    };
    found.ok_or_else(|| LabError::Option { contender: contender.to_owned(), fault })
}

fn rate(link: &StageLink) -> u64 {
    let of = |way| link.link.settings(way).mean_rate().map_or(UNSHAPED, hawser_wire::Rate::bits_per_second);
    Way::BOTH.into_iter().map(of).fold(0, u64::saturating_add)
}

/// Sends what goes to a link's far address and this UDP or TCP port by that link or not at all, whatever others'
/// metrics.
pub(super) fn steer(stage: &Stage, link: usize, port: u16, undo: &mut Undo) -> Result<(), LabError> {
    let far = stage.links[link].far_address;
    ["udp", "tcp"]
        .into_iter()
        .try_for_each(|protocol| rule(stage, link, far, &format!("ipproto {protocol} dport {port}"), undo))
}

/// Sends what goes to an address by a link or not at all, whatever others' metrics.
pub(super) fn lead(stage: &Stage, link: usize, to: IpAddr, undo: &mut Undo) -> Result<(), LabError> {
    rule(stage, link, to, "", undo)
}

fn rule(stage: &Stage, link: usize, to: IpAddr, which: &str, undo: &mut Undo) -> Result<(), LabError> {
    let (family, to, table) = (family(to), host(to), Stage::table(link));
    let words = format!("{family} rule add preference {STEERING_PREFERENCE} to {to} {which} lookup {table}");
    undo.ip_add(&stage.local, &words)
}

/// What `ip` is told of an address's family.
pub(super) const fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "-4" } else { "-6" }
}

/// A network of one address.
pub(super) fn host(address: IpAddr) -> ipnet::IpNet {
    address.into()
}
