//! What must fit together for packets that are not of this host alone: default route, networks behind it, translation.

use toml::de::DeTable;

use super::error::{Fault, Faults, Span};
use super::reader::Sited;
use super::{Fail, Gateway, InterfaceName, Nat, Peer, Tun};

/// Notes a fault for everything that can never carry a packet.
pub(super) fn check(
    tree: &DeTable<'_>,
    tun: &Tun,
    gateway: Option<&Gateway>,
    nat: Option<&Nat>,
    peers: &[Sited<Peer>],
    faults: &mut Faults<'_>,
) {
    if tun.default_route && !someone_takes_everything(tun, peers) {
        let fault = Fault::new("a default route by the tunnel, and no peer takes its packets");
        let hint =
            "add \"0.0.0.0/0\" or \"::/0\" to a peer's `allowed_ips`, and an address of that IP version to [tun]";
        faults.add(span(tree, "tun", "default_route"), fault.hint(hint));
    }
    if gateway.is_some_and(|gateway| gateway.masquerade && gateway.serve.is_empty()) {
        let fault = Fault::new("`masquerade`, and no network behind this portal to put behind it");
        faults.add(span(tree, "gateway", "masquerade"), fault.hint("add: serve = [\"lan0\"]"));
    }
    if tun.answer_by_link && !tun.default_route {
        let fault =
            Fault::new("`answer_by_link` without a `default_route`: nothing goes by the tunnel that would not anyway");
        faults.add(span(tree, "tun", "answer_by_link"), fault.hint("leave it out, or add: default_route = true"));
    }
    if tun.fail == Fail::Closed && !tun.default_route {
        let fault = Fault::new(
            "`fail = \"closed\"` without a `default_route`: the tunnel is no way for anything that could fail",
        );
        faults.add(span(tree, "tun", "fail"), fault.hint("leave it out, or add: default_route = true"));
    }
    let served = gateway.iter().flat_map(|gateway| &gateway.serve).map(|name| ("gateway", "serve", name));
    let masqueraded = nat.iter().filter_map(|nat| nat.masquerade.as_ref()).map(|name| ("nat", "masquerade", name));
    for (section, key, name) in served.chain(masqueraded) {
        if let Some(fault) = unfit(name, tun) {
            faults.add(span(tree, section, key), fault);
        }
    }
}

/// Whether the default route leads anywhere, for either IP version.
fn someone_takes_everything(tun: &Tun, peers: &[Sited<Peer>]) -> bool {
    let everything = peers.iter().flat_map(|peer| &peer.value.allowed_ips).filter(|net| net.prefix_len() == 0);
    everything.into_iter().any(|net| tun.has_family_of(net))
}

/// Why packets cannot be forwarded between the tunnel and this interface.
fn unfit(name: &InterfaceName, tun: &Tun) -> Option<Fault> {
    if *name == tun.name {
        let fault = Fault::new(format!("{name} is the tunnel itself"));
        return Some(fault.hint("name the interface at the other side of this host"));
    }
    hawser_net::netcfg::quoted(name.as_str()).err().map(|error| {
        let hint = error.hint().unwrap_or("rename the interface");
        Fault::new(error.to_string()).hint(hint)
    })
}

/// Where a key's value stands; its section was read, and has it.
fn span(tree: &DeTable<'_>, section: &str, key: &str) -> Span {
    let section = tree.get(section).and_then(|section| section.get_ref().as_table());
    section.and_then(|section| section.get(key)).map_or(0..0, toml::Spanned::span)
}
