//! The policy rules that are there, and where new ones for all traffic have their place among them.
//!
//! ```text
//!       0  from all lookup local
//!   10000  from 192.0.2.5 lookup 100          of somebody who means something particular: before ours
//!   32764  ours
//!   32765  ours
//!   32766  from all lookup main               the first for everything
//!   32767  from all lookup default
//! ```

use futures_util::TryStreamExt;
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleFlags, RuleMessage};
use rtnetlink::IpVersion;

use super::{
    error::NetConfigError,
    perform::rule_feature,
    rtnl::Rtnl,
    types::{Family, RulePriority, TableId},
};

/// The priority of the rule for table main in a new namespace (`fib_default_rules_init`, linux ipv4/fib_rules.c).
const MAIN_PRIORITY: u32 = 32_766;

/// A rule as far as it matters for the place of others. There is no default. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    priority: u32,
    for_everything: bool,
}

impl Rtnl {
    /// Priorities for two rules for everything, the first asked first: after all rules that mean something particular,
    /// before the first that, like ours, takes all there is.
    ///
    /// They are the same where there is no room for two. The kernel asks rules of one priority in the order in which
    /// they were added, so that ours then come after those that have it already.
    pub async fn place_for_rules(&self, family: Family) -> Result<[RulePriority; 2], NetConfigError> {
        let version = match family {
            Family::V4 => IpVersion::V4,
            Family::V6 => IpVersion::V6,
        };
        let answers = self.handle.rule().get(version).execute().try_collect().await;
        let rules: Vec<RuleMessage> = answers.map_err(|error| {
            NetConfigError::netlink("list", format!("{family} rules"), Some(rule_feature(family)), error)
        })?;
        Ok(place(&rules.iter().map(known).collect::<Vec<_>>()))
    }
}

/// The rule for table local is asked before all others, by its nature.
fn known(message: &RuleMessage) -> Known {
    let mut known = Known { priority: 0, for_everything: message.header.tos == 0 };
    let mut table = u32::from(message.header.table);
    for attribute in &message.attributes {
        match attribute {
            RuleAttribute::Priority(priority) => known.priority = *priority,
            RuleAttribute::Table(number) => table = *number,
            RuleAttribute::SuppressPrefixLen(_) | RuleAttribute::SuppressIfGroup(_) | RuleAttribute::Protocol(_) => {}
            // All but one mark is as good as everything: others' tunnels keep their own packets off themselves by it.
            RuleAttribute::FwMark(_) | RuleAttribute::FwMask(_) => {
                known.for_everything &= message.header.flags.contains(RuleFlags::Invert);
            }
            _ => known.for_everything = false,
        }
    }
    let looks_up = message.header.action == RuleAction::ToTable && TableId(table) != TableId::LOCAL;
    known.for_everything &= looks_up;
    known
}

fn place(rules: &[Known]) -> [RulePriority; 2] {
    let first = rules.iter().filter(|rule| rule.for_everything).map(|rule| rule.priority).min();
    let last = first.unwrap_or(MAIN_PRIORITY).saturating_sub(1);
    let before = last.saturating_sub(1);
    let taken = rules.iter().any(|rule| rule.priority == last || rule.priority == before);
    [RulePriority(if taken { last } else { before }), RulePriority(last)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_come_after_what_is_particular_and_before_what_takes_everything() {
        type Rules = &'static [(u32, bool)];
        const PARTICULAR: bool = false;
        const EVERYTHING: bool = true;
        let table: [(Rules, [u32; 2]); 7] = [
            (&[(0, PARTICULAR), (32_766, EVERYTHING), (32_767, EVERYTHING)], [32_764, 32_765]),
            (&[], [32_764, 32_765]),
            (&[(0, PARTICULAR), (10_000, PARTICULAR), (32_766, EVERYTHING)], [32_764, 32_765]),
            // Another tunnel's default route.
            (&[(32_764, EVERYTHING), (32_765, EVERYTHING), (32_766, EVERYTHING)], [32_762, 32_763]),
            // No room for two beside a rule that has to stay before ours.
            (&[(32_765, PARTICULAR), (32_766, EVERYTHING)], [32_765, 32_765]),
            (&[(32_764, PARTICULAR), (32_766, EVERYTHING)], [32_765, 32_765]),
            (&[(0, PARTICULAR), (1, EVERYTHING)], [0, 0]),
        ];
        for (rules, want) in table {
            let rules: Vec<_> =
                rules.iter().map(|&(priority, for_everything)| Known { priority, for_everything }).collect();
            assert_eq!(place(&rules), want.map(RulePriority), "{rules:?}");
        }
    }
}
