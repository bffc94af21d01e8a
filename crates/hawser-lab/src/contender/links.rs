//! What contenders ask of a stage's links.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hawser_wire::Way;
use ipnet::IpNet;

use super::undo::Undo;
use super::{ContenderPlan, Ends, LabError, Options, Stage};
use crate::scenario::Family;
use crate::stage::StageLink;

/// Before every rule of a stage. Source: ip-rule(8).
const STEERING_PREFERENCE: u32 = 10;

/// Whether client and server are hosts of their own behind the tunnel's ends.
pub(super) fn has_lan(stage: &Stage) -> bool {
    stage.client.name() != stage.local.name()
}

/// Addresses of a tunnel's device of either family, with their networks: the local end's 0, the remote one's 1.
pub(super) fn device(end: usize) -> [IpNet; 2] {
    let host: u8 = [2, 1][end];
    let v6 = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, host.into());
    [IpNet::new_assert(Ipv4Addr::new(10, 77, 0, host).into(), 24), IpNet::new_assert(v6.into(), 64)]
}

/// Where a tunnel's ends are reached: their devices' own addresses.
pub(super) fn tun_ends(inner: Family) -> Ends {
    let [client, server] = [0, 1].map(|end| device(end)[usize::from(inner == Family::V6)].addr());
    Ends { client, server }
}

/// The link that a contender goes by. Plain data.
#[derive(Debug)]
pub(super) struct Choice {
    /// The contender's label.
    pub contender: String,
    /// What its option says.
    pub link: Option<String>,
}

impl Choice {
    pub(super) fn parse(plan: &ContenderPlan, options: &mut Options) -> Result<Self, LabError> {
        Ok(Self { contender: plan.label.clone(), link: options.string("link")? })
    }

    /// The place of the link of this name; without one, of those that are up the one that carries most, both ways
    /// together.
    pub(super) fn place(&self, stage: &Stage) -> Result<usize, LabError> {
        let names = || stage.links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>().join(", ");
        let (found, fault) = match &self.link {
            Some(name) => (stage.index(name), format!("there is no link {name:?} in this case, but: {}", names())),
            // The first of equal ones: max_by_key would give the last.
            None => {
                let both = |&link: &usize| {
                    // A link without a rate is above all others.
                    let [up, down] = rates(&stage.links[link]).map(|rate| rate.unwrap_or(u64::MAX));
                    up.saturating_add(down)
                };
                let best = links_up(stage).into_iter().rev().max_by_key(both);
                (best, format!("none of these links is up: {}", names()))
            }
        };
        found.ok_or_else(|| LabError::refused(format!("set up {}", self.contender), fault))
    }
}

/// Bytes a second, up and down, where a link is shaped; of a recording its mean.
pub(super) fn rates(link: &StageLink) -> [Option<u64>; 2] {
    Way::BOTH.map(|way| link.link.settings(way).mean_rate().map(|rate| rate.bits_per_second() / 8))
}

/// The links that are up, by their places.
pub(super) fn links_up(stage: &Stage) -> Vec<usize> {
    (0..stage.links.len()).filter(|&link| stage.is_up(link)).collect()
}

/// Sends what goes to a link's far address and this UDP or TCP port by that link or not at all, whatever others'
/// metrics.
pub(super) fn steer(stage: &Stage, link: usize, port: u16, undo: &mut Undo) -> Result<(), LabError> {
    let far = stage.links[link].far_address;
    for protocol in ["udp", "tcp"] {
        lead(stage, link, far, &format!("ipproto {protocol} dport {port}"), undo)?;
    }
    Ok(())
}

/// Sends what goes to an address, all of it or this, by a link or not at all, whatever others' metrics.
pub(super) fn lead(stage: &Stage, link: usize, to: IpAddr, which: &str, undo: &mut Undo) -> Result<(), LabError> {
    let (family, to, table) = (family(to), IpNet::from(to), Stage::table(link));
    let words = format!("{family} rule add preference {STEERING_PREFERENCE} to {to} {which} lookup {table}");
    undo.ip_add(&stage.local, &words)
}

/// What `ip` is told of an address's family.
pub(super) const fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "-4" } else { "-6" }
}
