//! The rule at place 0, by which every packet looks up table `local` first, moved to a later place: only a rule before
//! it can send on what is addressed to this host.
//!
//! 1. A rule alike is added at the new place. 2. The one at place 0 is deleted.
//!
//! Undone, the one at place 0 comes back first; the kernel puts it after other rules of that place. There is
//! always one of the two, so that the host never loses its own addresses.

use futures_util::TryStreamExt;
use netlink_packet_route::{
    route::RouteProtocol,
    rule::{RuleAction, RuleAttribute, RuleHeader, RuleMessage},
};
use rtnetlink::IpVersion;

use super::{
    error::NetConfigError,
    perform::{Undone, address_family, is_gone, rule_feature},
    rtnl::Rtnl,
    types::{Family, RulePriority, TableId},
};

/// Where the kernel has the rule at first (net/ipv4/fib_rules.c, net/ipv6/fib6_rules.c).
const FIRST: RulePriority = RulePriority(0);

impl Rtnl {
    /// Steps 1 and 2.
    pub(super) async fn move_local_rule(&self, family: Family, to: RulePriority) -> Result<(), NetConfigError> {
        self.add_local_rule(family, to).await?;
        self.delete_local_rule(family, FIRST).await
    }

    /// Goes back, if it still is where it was moved to.
    pub(super) async fn restore_local_rule(
        &self,
        family: Family,
        from: RulePriority,
    ) -> Result<Undone, NetConfigError> {
        if !self.has_local_rule(family, from).await? {
            return Ok(Undone::Gone);
        }
        self.add_local_rule(family, FIRST).await?;
        self.delete_local_rule(family, from).await?;
        Ok(Undone::Undone)
    }

    /// Whether the rule is where the kernel has it at first.
    pub(super) async fn local_rule_is_first(&self, family: Family) -> Result<bool, NetConfigError> {
        self.has_local_rule(family, FIRST).await
    }

    async fn has_local_rule(&self, family: Family, at: RulePriority) -> Result<bool, NetConfigError> {
        let version = match family {
            Family::V4 => IpVersion::V4,
            Family::V6 => IpVersion::V6,
        };
        let rules: Result<Vec<RuleMessage>, _> = self.handle.rule().get(version).execute().try_collect().await;
        let failed =
            |error| NetConfigError::netlink("list", format!("{family} rules"), Some(rule_feature(family)), error);
        Ok(rules.map_err(failed)?.iter().any(|rule| is_local_rule(rule, at)))
    }

    async fn add_local_rule(&self, family: Family, at: RulePriority) -> Result<(), NetConfigError> {
        let mut request = self.handle.rule().add();
        *request.message_mut() = message(family, at);
        match request.execute().await.map_err(|error| failed("set", family, at, error)) {
            Err(error) if error.errno() == Some(libc::EEXIST) => Ok(()),
            other => other,
        }
    }

    async fn delete_local_rule(&self, family: Family, at: RulePriority) -> Result<(), NetConfigError> {
        let deleted = self.handle.rule().del(message(family, at)).execute().await;
        match deleted.map_err(|error| failed("delete", family, at, error)) {
            Err(error) if is_gone(&error) => Ok(()),
            other => other,
        }
    }
}

fn failed(operation: &'static str, family: Family, at: RulePriority, error: rtnetlink::Error) -> NetConfigError {
    NetConfigError::netlink(operation, format!("{family} rule {at}: to table local"), Some(rule_feature(family)), error)
}

/// The rule as the kernel made it, with its protocol number.
fn message(family: Family, at: RulePriority) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header = RuleHeader {
        family: address_family(family),
        table: TableId::LOCAL.0 as u8,
        action: RuleAction::ToTable,
        ..RuleHeader::default()
    };
    message.attributes = vec![
        RuleAttribute::Priority(at.0),
        RuleAttribute::Table(TableId::LOCAL.0),
        RuleAttribute::Protocol(RouteProtocol::Kernel),
    ];
    message
}

/// True for a rule by which every packet looks up table `local`.
fn is_local_rule(rule: &RuleMessage, at: RulePriority) -> bool {
    let header = &rule.header;
    let mut place = FIRST;
    let everything = rule.attributes.iter().all(|attribute| match attribute {
        RuleAttribute::Priority(priority) => {
            place = RulePriority(*priority);
            true
        }
        RuleAttribute::Table(table) => *table == TableId::LOCAL.0,
        RuleAttribute::Protocol(_) | RuleAttribute::SuppressPrefixLen(u32::MAX) => true,
        _ => false,
    });
    everything
        && place == at
        && (header.src_len, header.dst_len, header.tos) == (0, 0, 0)
        && u32::from(header.table) == TableId::LOCAL.0
        && header.action == RuleAction::ToTable
        && header.flags.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_rule_for_everything_is_the_local_rule() {
        let rule = |at, more: Option<RuleAttribute>| {
            let mut rule = message(Family::V4, RulePriority(at));
            rule.attributes.extend(more);
            rule
        };
        let table = [
            (rule(0, None), true),
            (rule(1, None), false),
            (rule(0, Some(RuleAttribute::Iifname("eth0".into()))), false),
            (rule(0, Some(RuleAttribute::FwMark(1))), false),
            (rule(0, Some(RuleAttribute::Table(254))), false),
        ];
        for (rule, want) in table {
            assert_eq!(is_local_rule(&rule, FIRST), want, "{rule:?}");
        }
    }
}
