//! What rules there are, and how many bytes each took on each link.

use std::collections::BTreeMap;

use hawser_config::{Config, Keyword, LinkName, Rule};
use hawser_core::rules::RuleId;
use hawser_core::session::PathSnapshot;
use hawser_core::units::LinkTag;

use crate::api::RuleStatus;
use crate::run::messages::State;
use crate::run::plan::SocketPlan;
use crate::run::terms::tag;

/// A line for each rule, and one for all that none matches; none without rules.
pub fn status(config: &Config, plans: &[SocketPlan], state: &State) -> Vec<RuleStatus> {
    if config.rules.is_empty() {
        return Vec::new();
    }
    let names = names(config);
    let sent = |rule: RuleId| {
        let mut by_link = BTreeMap::new();
        for path in state.core.peers.iter().flatten().flat_map(|session| &session.paths) {
            let bytes = path.by_rule.iter().find(|(of, _)| *of == rule).map_or(0, |(_, bytes)| bytes.0);
            *by_link.entry(link_of(path, &names, plans)).or_default() += bytes;
        }
        by_link
    };
    let of_rule = |rule: &Rule, id: RuleId| RuleStatus {
        matches: rule.matches(),
        scheduler: rule.scheduler.unwrap_or(config.traffic.scheduler).word().to_owned(),
        via: rule.via.iter().map(ToString::to_string).collect(),
        weights: rule.weights.iter().map(|(name, parts)| (name.to_string(), *parts)).collect(),
        strict: rule.strict,
        priority: rule.priority,
        sent_bytes: sent(id),
        ..RuleStatus::default()
    };
    let past = |rule: &Rule| RuleStatus { matches: rule.matches(), direct: true, ..RuleStatus::default() };
    // The core knows only what stays in the tunnel; a state from before a reload does not know the newest rules yet.
    let mut known = state.core.rules.iter();
    let rules = config.rules.iter().filter_map(|rule| match rule.direct {
        true => Some(past(rule)),
        false => known.next().map(|id| of_rule(rule, *id)),
    });
    let rest = RuleStatus {
        matches: "everything else".to_owned(),
        scheduler: config.traffic.scheduler.word().to_owned(),
        sent_bytes: sent(RuleId::default()),
        ..RuleStatus::default()
    };
    rules.chain([rest]).collect()
}

/// The links that rules name, and this portal's own.
fn names(config: &Config) -> BTreeMap<LinkTag, String> {
    let named = config.rules.iter().flat_map(|rule| rule.via.iter().chain(rule.weights.iter().map(|(name, _)| name)));
    let own = config.links.iter().map(|link| &link.name);
    let name = |name: &LinkName| (tag(name), name.without_interface().to_owned());
    named.chain(own).map(name).collect()
}

/// What a path's link is called: by its name, or by the socket that its peer came to.
fn link_of(path: &PathSnapshot, names: &BTreeMap<LinkTag, String>, plans: &[SocketPlan]) -> String {
    let plan = plans.iter().find(|plan| plan.id == path.link);
    names.get(&path.link_tag).cloned().unwrap_or_else(|| plan.map_or_else(String::new, |plan| plan.name.clone()))
}
