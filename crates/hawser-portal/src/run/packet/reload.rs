//! A new configuration, carried out while packets flow: peers that stay do not notice.

use hawser_core::units::{LinkId, Time};

use super::socket::LinkSocket;
use super::{Parts, netlink_loop, transmit};
use crate::run::messages::Reload;
use crate::run::plan::SocketPlan;

/// Peers that go are told, then forgotten; then others change, and new ones come. So do links.
pub fn carry_out(parts: &mut Parts, reload: Reload, now: Time) {
    let Reload { removed, changed, added, metrics, rules, terms, links_removed, links_added } = reload;
    if !removed.is_empty() {
        removed.iter().for_each(|peer| parts.endpoint.dismiss_peer(*peer));
        transmit::send_closes(parts);
        for peer in removed {
            parts.endpoint.remove_peer(now, peer);
            parts.hub.iter_mut().for_each(|hub| hub.remove_peer(peer));
        }
    }
    for (peer, config) in changed {
        parts.endpoint.change_peer(now, peer, config);
    }
    for (peer, config) in added {
        let place = parts.endpoint.add_peer(now, config);
        debug_assert_eq!(place, peer, "both threads count places alike");
        let Parts { hub, endpoint, home, .. } = &mut *parts;
        hub.iter_mut().for_each(|hub| hub.add_peer(now, place, endpoint, home));
    }
    for (link, metric) in metrics {
        parts.sockets[usize::from(link.0)].plan.metric = metric;
        parts.endpoint.set_metric(link, metric);
    }
    for link in links_removed {
        let place = &mut parts.sockets[usize::from(link.0)];
        place.close(None);
        let gone = std::mem::replace(place, LinkSocket::new(SocketPlan::nothing(link)));
        gone.add_lost(&mut parts.lost);
        parts.endpoint.remove_link(now, link);
        tracing::info!(link = gone.plan.name, "link gone: it is not configured any more, or its interface is no more");
    }
    if let Some(rules) = rules {
        parts.endpoint.set_rules(now, rules);
    }
    for (group, terms) in terms {
        parts.endpoint.set_terms(group, terms);
    }
    for plan in links_added {
        add(parts, plan, now);
    }
}

/// A new socket, opened at once where its place exists.
fn add(parts: &mut Parts, plan: SocketPlan, now: Time) {
    let place = usize::from(plan.id.0);
    for id in (0..).map(LinkId).take(place + 1).skip(parts.sockets.len()) {
        parts.sockets.push(LinkSocket::new(SocketPlan::nothing(id)));
    }
    parts.sockets[place] = LinkSocket::new(plan);
    netlink_loop::follow(parts, place, now);
}
