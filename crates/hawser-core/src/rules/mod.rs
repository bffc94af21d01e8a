//! How the trains of a flow are treated: the first rule that matches says it, else what holds for all traffic.
//!
//! 1. A train is admitted; [`Rules::treatment`] looks at what was parsed of it. Without rules there is nothing to look at.
//! 2. The train keeps its [`Treatment`]; the queue shows it to the paths, and whoever answers for a segment knows it.
//!
//! A rule looks at one packet, so all packets of a 5-tuple match alike, but for class and mark, which may change. Fragments
//! have no ports that could be told, the first one neither: a rule with `ports` matches none of them, so that all fragments
//! of a packet are treated alike.

use crate::packet::{Inner, Transport};
use crate::scheduler::Kind;
use ipnet::IpNet;

mod mark;
#[cfg(test)]
mod tests;

pub use mark::Mark;

/// Bits of ECN below those of DSCP in the traffic class (RFC 3168 section 5).
const ECN_BITS: u32 = 2;

/// What is done with the packets of a flow. The default is that of a portal without rules. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Treatment {
    /// What chooses their paths.
    pub scheduler: Kind,
    /// What is lost is retransmitted, and order is restored. Without it a packet is delivered as it comes.
    pub resend: bool,
    /// Repair symbols go along.
    pub fec: bool,
}

impl Default for Treatment {
    fn default() -> Treatment {
        Treatment { scheduler: Kind::Adaptive, resend: true, fec: false }
    }
}

/// The class of a packet in the first six bits of its traffic class (RFC 2474). Zero is the default class. A plain value.
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
    /// What is done with what matches.
    pub treatment: Treatment,
}

impl Rule {
    fn matches(&self, inner: &Inner, mark: Mark) -> bool {
        self.dscp.is_none_or(|dscp| dscp.0 == inner.traffic_class >> ECN_BITS)
            && self.protocol.is_none_or(|protocol| protocol == inner.protocol)
            && self.mark.is_none_or(|asked| mark.is_within(asked))
            && self.source.is_none_or(|net| net.contains(&inner.source))
            && self.destination.is_none_or(|net| net.contains(&inner.destination))
            && (self.ports.is_empty() || self.has_port(inner))
    }

    fn has_port(&self, inner: &Inner) -> bool {
        let named = |port: u16| self.ports.iter().any(|ports| (ports.first..=ports.last).contains(&port));
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
}

impl Rules {
    /// These rules, and `otherwise` for all that they do not match.
    pub fn new(rules: Vec<Rule>, otherwise: Treatment) -> Rules {
        let mut rules = Rules { rules: rules.into_boxed_slice(), otherwise, by_flow: false };
        rules.by_flow = rules.uses(Kind::Flow);
        rules
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
