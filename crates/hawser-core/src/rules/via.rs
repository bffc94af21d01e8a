//! The links that a rule names.

use crate::policy::Weight;
use crate::units::LinkTag;

/// The links that packets of a rule go by. None by default: they go by any. A plain value.
///
/// In order of preference: the first that works, or the first two for `redundant`. Or by shares: all that work.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Via {
    /// The links, the preferred one first.
    pub links: Vec<(LinkTag, Weight)>,
    /// All of them carry, by weight; else the first that works.
    pub shared: bool,
    /// Where none of them works, packets are lost; else any other link carries them.
    pub strict: bool,
}

impl Via {
    /// These links in their order.
    pub fn in_order(links: &[LinkTag], strict: bool) -> Via {
        Via { links: links.iter().map(|link| (*link, Weight::default())).collect(), shared: false, strict }
    }

    /// These links by their weights.
    pub fn by_weight(links: Vec<(LinkTag, Weight)>, strict: bool) -> Via {
        Via { links, shared: true, strict }
    }

    /// Whether it names any link.
    pub fn is_any(&self) -> bool {
        self.links.is_empty()
    }
}
