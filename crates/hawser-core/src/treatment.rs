//! What a rule says of a packet, and the queue, the schedulers and a segment's record know of it.
//!
//! Here are words alone, and no imports: whoever uses them need not know rules or schedulers.

/// The most that a priority is above or below that of all other traffic.
pub const PRIORITY_MOST: i8 = 3;

/// A rule by its number, from one; zero: none. A plain number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct RuleId(pub u16);

/// What is done with the packets of a flow. The default is that of a portal without rules. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Treatment {
    /// What chooses their paths.
    pub scheduler: Kind,
    /// What is lost is retransmitted, and order is restored. Without it a packet is delivered as it comes.
    pub resend: bool,
    /// Repair symbols go along.
    pub fec: bool,
    /// When they leave the ingress queue, against others: higher first. From -[`PRIORITY_MOST`] to [`PRIORITY_MOST`].
    pub priority: i8,
    /// The rule that says so.
    pub rule: RuleId,
}

impl Default for Treatment {
    fn default() -> Treatment {
        Treatment { scheduler: Kind::Adaptive, resend: true, fec: false, priority: 0, rule: RuleId::default() }
    }
}

/// The schedulers that a user may choose. `Adaptive` by default. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Kind {
    /// Each path takes what it delivers soonest.
    #[default]
    Adaptive,
    /// Each path takes a fixed share.
    Weighted,
    /// A flow stays on one path.
    Flow,
    /// Every packet goes by the two best paths.
    Redundant,
}
