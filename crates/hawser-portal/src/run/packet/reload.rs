//! A new configuration, carried out while packets flow: peers that stay do not notice.

use hawser_core::units::Time;

use super::{Parts, transmit};
use crate::run::messages::Reload;

/// Peers that go are told, then forgotten; then others change, and new ones come.
pub fn carry_out(parts: &mut Parts, reload: Reload, now: Time) {
    let Reload { removed, changed, added, metrics, rules, terms } = reload;
    if !removed.is_empty() {
        removed.iter().for_each(|peer| parts.endpoint.dismiss_peer(*peer));
        transmit::farewell(parts);
        removed.iter().for_each(|peer| parts.endpoint.remove_peer(now, *peer));
    }
    for (peer, config) in changed {
        parts.endpoint.change_peer(now, peer, config);
    }
    for (peer, config) in added {
        let place = parts.endpoint.add_peer(now, config);
        debug_assert_eq!(place, peer, "both threads count places alike");
    }
    for (link, metric) in metrics {
        parts.sockets[usize::from(link.0)].plan.metric = metric;
        parts.endpoint.set_metric(link, metric);
    }
    if let Some(rules) = rules {
        parts.endpoint.set_rules(rules);
    }
    for (group, terms) in terms {
        parts.endpoint.set_terms(group, terms);
    }
}
