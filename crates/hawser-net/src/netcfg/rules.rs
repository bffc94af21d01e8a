//! The policy rules that are there, and where new ones for all traffic have their place among them.
//!
//! ```text
//!       0  from all lookup local
//!    5270  from all lookup 52                 a table without a default route leaves the rest to later rules
//!   10000  from 192.0.2.5 lookup 100          of somebody who means something particular: before ours
//!   32764  ours
//!   32765  ours
//!   32766  from all lookup main               the first for everything
//!   32767  from all lookup default
//! ```

use std::{collections::BTreeSet, future::ready};

use futures_util::TryStreamExt;
use netlink_packet_route::{
    route::{RouteAttribute, RouteMessage, RouteType},
    rule::{RuleAction, RuleAttribute, RuleFlags, RuleMessage},
};
use rtnetlink::IpVersion;

use super::{
    error::NetConfigError,
    perform::{address_family, rule_feature},
    rtnl::Rtnl,
    types::{Family, RulePriority, TableId},
};

/// The priority of the rule for table main in a new namespace (`fib_default_rules_init`, linux ipv4/fib_rules.c).
const MAIN_PRIORITY: u32 = 32_766;
/// Tables that are taken for ones with a default route, whatever is in them: the links' own is there, or comes.
const OF_THE_SYSTEM: [TableId; 2] = [TableId::MAIN, TableId::DEFAULT];

/// A rule as far as it matters for the place of others. There is no default. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    priority: u32,
    /// The table in which all packets are looked up; none where it means something particular.
    everything: Option<TableId>,
}

impl Rtnl {
    /// Priorities for two rules for everything, the first asked first: after all rules that mean something particular,
    /// or whose table has no default route, before the first that, like ours, takes all there is.
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
        let rules: Vec<Known> = rules.iter().map(known).collect();
        let mut take_all = BTreeSet::from(OF_THE_SYSTEM);
        if rules.iter().any(|rule| rule.everything.is_some_and(|table| !take_all.contains(&table))) {
            take_all.extend(self.tables_with_default_route(family).await?);
        }
        Ok(place(&rules, &take_all))
    }

    /// One route is kept at a time: a router may have a million.
    async fn tables_with_default_route(&self, family: Family) -> Result<BTreeSet<TableId>, NetConfigError> {
        let mut question = RouteMessage::default();
        question.header.address_family = address_family(family);
        let routes = self.handle.route().get(question).execute();
        let tables = routes.try_filter_map(|route| ready(Ok(table_of_default_route(&route)))).try_collect().await;
        tables.map_err(|error| NetConfigError::netlink("list", format!("{family} routes"), None, error))
    }
}

/// The rule for table local is asked before all others, by its nature.
fn known(message: &RuleMessage) -> Known {
    let mut priority = 0;
    let mut table = TableId(u32::from(message.header.table));
    let mut everything = message.header.tos == 0 && message.header.action == RuleAction::ToTable;
    for attribute in &message.attributes {
        match attribute {
            RuleAttribute::Priority(number) => priority = *number,
            RuleAttribute::Table(number) => table = TableId(*number),
            RuleAttribute::SuppressPrefixLen(_) | RuleAttribute::SuppressIfGroup(_) | RuleAttribute::Protocol(_) => {}
            // All but one mark is as good as everything: others' tunnels keep their own packets off themselves by it.
            RuleAttribute::FwMark(_) | RuleAttribute::FwMask(_) => {
                everything &= message.header.flags.contains(RuleFlags::Invert);
            }
            _ => everything = false,
        }
    }
    Known { priority, everything: (everything && table != TableId::LOCAL).then_some(table) }
}

/// The table of a route that takes what no other one of its table does.
fn table_of_default_route(message: &RouteMessage) -> Option<TableId> {
    let header = &message.header;
    // Some tunnels have it in two halves. IPv6 knows routes for some sources; what `throw` takes goes on to the next
    // rule, as without it (ip-route(8)).
    if header.destination_prefix_length > 1 || header.source_prefix_length > 0 || header.kind == RouteType::Throw {
        return None;
    }
    let number = message.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Table(number) => Some(*number),
        _ => None,
    });
    Some(TableId(number.unwrap_or(u32::from(header.table))))
}

fn place(rules: &[Known], take_all: &BTreeSet<TableId>) -> [RulePriority; 2] {
    let takes_all = |rule: &&Known| rule.everything.is_some_and(|table| take_all.contains(&table));
    let first = rules.iter().filter(takes_all).map(|rule| rule.priority).min();
    let last = first.unwrap_or(MAIN_PRIORITY).saturating_sub(1);
    let before = last.saturating_sub(1);
    let taken = rules.iter().any(|rule| rule.priority == last || rule.priority == before);
    [RulePriority(if taken { last } else { before }), RulePriority(last)]
}

#[cfg(test)]
mod tests {
    use netlink_packet_route::route::RouteHeader;

    use super::*;

    /// Tailscale's.
    const OTHER: TableId = TableId(52);

    #[test]
    fn ours_come_after_what_is_particular_and_before_what_takes_everything() {
        type Rules = &'static [(u32, Option<TableId>)];
        const PARTICULAR: Option<TableId> = None;
        const EVERYTHING: Option<TableId> = Some(TableId::MAIN);
        const WITHOUT_DEFAULT: Option<TableId> = Some(OTHER);
        let table: [(Rules, [u32; 2]); 8] = [
            (&[(0, PARTICULAR), (32_766, EVERYTHING), (32_767, EVERYTHING)], [32_764, 32_765]),
            (&[], [32_764, 32_765]),
            (&[(0, PARTICULAR), (10_000, PARTICULAR), (32_766, EVERYTHING)], [32_764, 32_765]),
            (&[(0, PARTICULAR), (5_270, WITHOUT_DEFAULT), (32_766, EVERYTHING)], [32_764, 32_765]),
            // Another tunnel's default route.
            (&[(32_764, EVERYTHING), (32_765, EVERYTHING), (32_766, EVERYTHING)], [32_762, 32_763]),
            // No room for two beside a rule that has to stay before ours.
            (&[(32_765, PARTICULAR), (32_766, EVERYTHING)], [32_765, 32_765]),
            (&[(32_764, PARTICULAR), (32_766, EVERYTHING)], [32_765, 32_765]),
            (&[(0, PARTICULAR), (1, EVERYTHING)], [0, 0]),
        ];
        for (rules, want) in table {
            let rules: Vec<_> = rules.iter().map(|&(priority, everything)| Known { priority, everything }).collect();
            assert_eq!(place(&rules, &BTreeSet::from(OF_THE_SYSTEM)), want.map(RulePriority), "{rules:?}");
        }
    }

    /// What tailscaled sets, among the kernel's own.
    fn tailscale() -> Vec<Known> {
        let rule = |priority: u32, table: TableId, mark: Option<u32>| {
            let mut message = RuleMessage::default();
            message.header.action = RuleAction::ToTable;
            message.attributes = vec![RuleAttribute::Priority(priority), RuleAttribute::Table(table.0)];
            message.attributes.extend(mark.map(RuleAttribute::FwMark));
            message.attributes.extend(mark.map(|_| RuleAttribute::FwMask(0x00ff_0000)));
            message
        };
        let its_own = Some(0x0008_0000);
        let mut refused = rule(5_250, TableId(0), its_own);
        refused.header.action = RuleAction::Unreachable;
        let rules = [
            rule(0, TableId::LOCAL, None),
            rule(5_210, TableId::MAIN, its_own),
            rule(5_230, TableId::DEFAULT, its_own),
            refused,
            rule(5_270, OTHER, None),
            rule(32_766, TableId::MAIN, None),
            rule(32_767, TableId::DEFAULT, None),
        ];
        rules.iter().map(known).collect()
    }

    #[test]
    fn ours_come_after_tailscales_unless_it_has_the_default_route_for_an_exit_node() {
        let (rules, mut take_all) = (tailscale(), BTreeSet::from(OF_THE_SYSTEM));
        assert_eq!(place(&rules, &take_all), [32_764, 32_765].map(RulePriority));
        take_all.insert(OTHER);
        assert_eq!(place(&rules, &take_all), [5_268, 5_269].map(RulePriority));
    }

    #[test]
    fn a_default_route_is_one_for_all_destinations_and_sources_that_leads_to_no_other_rule() {
        const LONG: u32 = 1_213_723_041;
        for (to, from, kind, number, want) in [
            (0, 0, RouteType::Unicast, 52, Some(OTHER)),
            (0, 0, RouteType::Unreachable, LONG, Some(TableId(LONG))),
            (32, 0, RouteType::Unicast, 52, None),
            (1, 0, RouteType::Unicast, 52, Some(OTHER)),
            (2, 0, RouteType::Unicast, 52, None),
            (0, 64, RouteType::Unicast, 52, None),
            (0, 0, RouteType::Throw, 52, None),
        ] {
            let mut route = RouteMessage::default();
            route.header = RouteHeader {
                destination_prefix_length: to,
                source_prefix_length: from,
                kind,
                table: u8::try_from(number).unwrap_or(RouteHeader::RT_TABLE_UNSPEC),
                ..RouteHeader::default()
            };
            route.attributes = vec![RouteAttribute::Table(number)];
            assert_eq!(table_of_default_route(&route), want, "{route:?}");
        }
    }
}
