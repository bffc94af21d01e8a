//! Which routing tables and rules are a shim's: told apart by the name of its interfaces.

use hawser_net::netcfg::{Mark, RulePriority, TableId};

use crate::route::InterfaceIndex;

/// Tables begin here: 'H' and 'S'. iproute2 names tables up to 255, and portals' begin with 'H' and 'W'.
const FIRST: u32 = 0x4853_0000;
/// A shim has 16 numbers: its interfaces', and one for what goes nowhere.
const NUMBERS_BITS: u32 = 4;
/// The last of them.
const CLOSED: u32 = (1 << NUMBERS_BITS) - 1;
/// FNV-1a with 32 bits (draft-eastlake-fnv, section 5).
const FNV_OFFSET: u32 = 0x811c_9dc5;
const FNV_PRIME: u32 = 0x0100_0193;

/// The first of the rules: before those of VPNs, which take everything (Tailscale's begin at 5210, wg-quick's right
/// before table main), because these are for particular addresses.
const FIRST_RULE: u32 = 4930;

/// A rule's place among the shim's, in the order in which they are asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Packets that bear the shim's mark: a question for the ordinary route.
    Question,
    /// What came in by the shim's interfaces and is not for this host.
    Closed,
    /// From an interface's own address.
    Source,
    /// More particular routes of the host's own within the range of derived addresses.
    Particular,
    /// To surrogate or derived addresses, the narrower of two.
    Narrow,
    /// The same, the wider.
    Wide,
    /// To what the map has, from an address of another interface.
    Bound,
    /// To what the map has.
    Map,
}

impl Place {
    /// As the kernel has it.
    pub fn priority(self) -> RulePriority {
        RulePriority(FIRST_RULE + self as u32)
    }
}

/// The numbers of one shim. Decided by its name; plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Numbers(u32);

impl Numbers {
    /// Those of the shim whose interfaces begin with this name.
    pub fn of(name: &str) -> Self {
        let hash = name.bytes().fold(FNV_OFFSET, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(FNV_PRIME));
        let folded = (hash >> 16) ^ (hash & 0xffff);
        Self(FIRST | (folded << NUMBERS_BITS & 0xffff))
    }

    /// The table of an interface.
    pub fn table(self, interface: InterfaceIndex) -> TableId {
        TableId(self.0 | u32::from(interface.get()))
    }

    /// The table in which everything is thrown away.
    pub fn closed(self) -> TableId {
        TableId(self.0 | CLOSED)
    }

    /// The mark of questions for the ordinary route.
    pub fn mark(self) -> Mark {
        Mark(self.0 | CLOSED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shim_has_tables_of_its_own_that_stay() {
        let (one, other) = (Numbers::of("shim"), Numbers::of("shimb"));
        let mut all: Vec<u32> = [one, other]
            .iter()
            .flat_map(|numbers| {
                let interfaces = (0..=8).filter_map(InterfaceIndex::new).map(|index| numbers.table(index).0);
                interfaces.chain([numbers.closed().0]).collect::<Vec<_>>()
            })
            .collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 20);
        assert!(all.iter().all(|number| number >> 16 == FIRST >> 16));
        assert_eq!(Numbers::of("shim"), one);
    }

    #[test]
    fn rules_stand_in_the_order_of_the_story() {
        let order = [
            Place::Question,
            Place::Closed,
            Place::Source,
            Place::Particular,
            Place::Narrow,
            Place::Wide,
            Place::Bound,
            Place::Map,
        ];
        assert!(order.windows(2).all(|two| two[0].priority() < two[1].priority()));
    }
}
