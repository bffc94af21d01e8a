//! How the trains of a flow are treated: the first rule that matches says it, else what holds for all traffic.
//!
//! 1. A train is admitted; [`Rules::treatment`] looks at what was parsed of it. Without rules there is nothing to look
//!    at.
//! 2. The train keeps its [`Treatment`]; the queue shows it to the paths, and whoever answers for a segment knows it.
//!
//! A rule may name the links that its packets go by ([`Via`]); which paths those are, the scheduler knows. Each rule
//! has a number ([`RuleId`]) that its packets bear; it keeps it while the portal runs, so that rules can change under
//! traffic.
//!
//! A rule looks at one packet, so all packets of a 5-tuple match alike, but for class and mark, which may change.
//! Fragments have no ports that could be told, the first one neither: a rule with `ports` matches none of them, so that
//! all fragments of a packet are treated alike.

use crate::packet::{Inner, Transport};
use crate::treatment::Kind;
use crate::units::Time;
use ipnet::IpNet;
use std::fmt;
use std::time::Duration;

mod mark;
#[cfg(test)]
mod tests;
mod via;

pub use crate::treatment::{PRIORITY_MOST, RuleId, Treatment};
pub use mark::Mark;
pub use via::Via;

/// Bits of ECN below those of DSCP in the traffic class (RFC 3168 section 5).
const ECN_BITS: u32 = 2;

/// The packets of a rule that went are under way for less than this.
const UNDER_WAY: Duration = Duration::from_secs(60);

/// The class of a packet in the first six bits of its traffic class (RFC 2474). Zero is the default class. A plain
/// value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Dscp(u8);

impl Dscp {
    /// The highest class.
    pub const MAX: u8 = 63;

    /// The class of that number, if there is one.
    pub const fn new(number: u8) -> Option<Dscp> {
        if number <= Dscp::MAX { Some(Dscp(number)) } else { None }
    }
}

/// Ports from the first to the last. No zero value; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Ports {
    /// The first.
    pub first: u16,
    /// The last, not below the first.
    pub last: u16,
}

impl Ports {
    /// Whether this port is one of them.
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

/// `443`, or `5000-5999`.
impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ports { first, last } = self;
        if first == last { first.fmt(f) } else { write!(f, "{first}-{last}") }
    }
}

/// A rule: what it leaves open matches everything. By default it matches all. A plain value.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rule {
    /// The class.
    pub dscp: Option<Dscp>,
    /// The protocol's number.
    pub protocol: Option<u8>,
    /// The network that it comes from.
    pub source: Option<IpNet>,
    /// The network that it goes to.
    pub destination: Option<IpNet>,
    /// One of its ports is among these; empty: any.
    pub ports: Vec<Ports>,
    /// Its mark.
    pub mark: Option<Mark>,
    /// The links that what matches goes by; none: any.
    pub via: Via,
    /// What is done with what matches; [`Rules`] give it its number.
    pub treatment: Treatment,
}

impl Rule {
    /// Whether it says the same, whatever its number.
    fn is_same(&self, other: &Rule) -> bool {
        let treatment = Treatment { rule: other.treatment.rule, ..self.treatment };
        let alike = |rule: &Rule| (rule.dscp, rule.protocol, rule.source, rule.destination, rule.mark);
        alike(self) == alike(other)
            && (&self.ports, &self.via, &treatment) == (&other.ports, &other.via, &other.treatment)
    }

    fn matches(&self, inner: &Inner, mark: Mark) -> bool {
        self.dscp.is_none_or(|dscp| dscp.0 == inner.traffic_class >> ECN_BITS)
            && self.protocol.is_none_or(|protocol| protocol == inner.protocol)
            && self.mark.is_none_or(|asked| mark.is_within(asked))
            && self.source.is_none_or(|net| net.contains(&inner.source))
            && self.destination.is_none_or(|net| net.contains(&inner.destination))
            && (self.ports.is_empty() || self.has_port(inner))
    }

    fn has_port(&self, inner: &Inner) -> bool {
        let named = |port: u16| self.ports.iter().any(|ports| ports.contains(port));
        let ports = inner.ports.filter(|_| !matches!(inner.transport, Transport::Fragment | Transport::Icmp));
        ports.is_some_and(|(source, destination)| named(source) || named(destination))
    }
}

/// All rules in order, and what holds where none matches. None by default; one endpoint owns them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rules {
    rules: Box<[Rule]>,
    otherwise: Treatment,
    by_flow: bool,
    /// Rules that went, and when: packets of theirs may be under way.
    gone: Vec<(Time, Rule)>,
}

impl Rules {
    /// These rules, and `otherwise` for all that they do not match.
    pub fn new(rules: Vec<Rule>, otherwise: Treatment) -> Rules {
        let mut rules = Rules { rules: rules.into_boxed_slice(), otherwise, by_flow: false, gone: Vec::new() };
        rules.by_flow = rules.uses(Kind::Flow);
        rules.rules.iter_mut().zip(1..).for_each(|(rule, number)| rule.treatment.rule = RuleId(number));
        rules
    }

    /// These in the place of those from now on: a rule that was among them keeps its number, and no other gets a number
    /// that packets under way bear.
    #[must_use]
    pub fn following(mut self, now: Time, before: Rules) -> Rules {
        self.gone = before.gone.into_iter().filter(|(since, _)| now.since(*since) < UNDER_WAY).collect();
        let mut known: Vec<Option<Rule>> = before.rules.into_vec().into_iter().map(Some).collect();
        self.rules.iter_mut().for_each(|rule| rule.treatment.rule = RuleId::default());
        for rule in &mut self.rules {
            let same = |known: &&mut Option<Rule>| known.as_ref().is_some_and(|known| known.is_same(rule));
            if let Some(known) = known.iter_mut().find(same).and_then(Option::take) {
                rule.treatment.rule = known.treatment.rule;
            }
        }
        self.gone.extend(known.into_iter().flatten().map(|rule| (now, rule)));
        for at in 0..self.rules.len() {
            if self.rules[at].treatment.rule == RuleId::default() {
                self.rules[at].treatment.rule = self.free_number();
            }
        }
        self
    }

    fn free_number(&self) -> RuleId {
        let taken = |number: &RuleId| self.known().any(|rule| rule.treatment.rule == *number);
        // Nobody writes 65,535 rules in a minute.
        (1..=u16::MAX).map(RuleId).find(|number| !taken(number)).unwrap_or_default()
    }

    /// All rules whose packets may be under way.
    pub fn known(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().chain(self.gone.iter().map(|(_, rule)| rule))
    }

    /// The rules' numbers, in their order.
    pub fn numbers(&self) -> impl Iterator<Item = RuleId> + '_ {
        self.rules.iter().map(|rule| rule.treatment.rule)
    }

    /// What is done with a packet that no rule matches.
    pub fn otherwise(&self) -> Treatment {
        self.otherwise
    }

    /// Whether packets may get this scheduler.
    fn uses(&self, kind: Kind) -> bool {
        self.otherwise.scheduler == kind || self.rules.iter().any(|rule| rule.treatment.scheduler == kind)
    }

    /// Whether any flow stays on a path.
    pub fn by_flow(&self) -> bool {
        self.by_flow
    }

    /// Whether any flow is spread as paths deliver it soonest.
    pub fn adaptive(&self) -> bool {
        self.uses(Kind::Adaptive)
    }

    /// What is done with this packet, of whose mark so much is known: the first match wins.
    pub fn treatment(&self, inner: &Inner, mark: Mark) -> Treatment {
        self.rules.iter().find(|rule| rule.matches(inner, mark)).map_or(self.otherwise, |rule| rule.treatment)
    }

    /// The place of the rule that says so; none: what holds where none matches.
    pub fn place(&self, inner: &Inner, mark: Mark) -> Option<usize> {
        self.rules.iter().position(|rule| rule.matches(inner, mark))
    }
}
