//! What a path counts, for whoever asks how it does.

use crate::rules::RuleId;
use crate::session::FillerCount;
use crate::units::ByteCount;

/// What a path has carried. Zero at first; its path owns it.
#[derive(Default)]
pub(in crate::session) struct Counts {
    /// Bytes of datagrams sent.
    pub tx_bytes: ByteCount,
    /// Bytes of datagrams received.
    pub rx_bytes: ByteCount,
    /// Bytes of IP packets, both ways.
    pub carried: ByteCount,
    /// Those sent with inner packets, by the rules' numbers.
    by_rule: Vec<(RuleId, ByteCount)>,
    /// Bytes of inner packets that were lost on whatever path and retransmitted on this one.
    pub retransmitted: ByteCount,
    /// Bytes on the wire of copies of what was in doubt on another path.
    pub reinjected_copies: ByteCount,
    /// Of speed tests.
    pub filler: FillerCount,
}

impl Counts {
    /// Counts by these rules from now on; what it counted of those that stay, stays.
    pub fn follow_rules(&mut self, rules: &[RuleId]) {
        let known = |rule: &RuleId| {
            let known = self.by_rule.binary_search_by_key(rule, |(known, _)| *known);
            (*rule, known.map_or(ByteCount::ZERO, |at| self.by_rule[at].1))
        };
        self.by_rule = rules.iter().map(known).collect();
    }

    /// An IP packet of this many bytes carried an inner packet of this rule.
    pub fn count(&mut self, rule: RuleId, bytes: ByteCount) {
        // As a rule the numbers are those from zero on.
        let place = usize::from(rule.0);
        let direct = self.by_rule.get(place).is_some_and(|(at, _)| *at == rule);
        let found = if direct { Ok(place) } else { self.by_rule.binary_search_by_key(&rule, |(known, _)| *known) };
        if let Ok(place) = found {
            self.by_rule[place].1 += bytes;
        }
    }

    /// Bytes of IP packets sent with inner packets, by rule.
    pub fn by_rule(&self) -> &[(RuleId, ByteCount)] {
        &self.by_rule
    }
}
