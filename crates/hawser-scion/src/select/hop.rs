//! Which hop of a path is meant, as SCION path policies write it: `1`, `1-0`, `1-ff00:0:110`, `1-ff00:0:110#2`,
//! `1-ff00:0:110#1,2`.

use std::fmt;
use std::str::FromStr;

use super::error::PolicyError;
use super::tokens::Tokens;
use crate::addr::IsdAs;
use crate::path::{Fingerprint, InterfaceId, PathInterface};

/// An AS on a path, with the interfaces a packet enters and leaves it by.
/// The first AS is entered, and the last one left, by none (0). Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// The AS.
    pub isd_as: IsdAs,
    /// In.
    pub ingress: InterfaceId,
    /// Out.
    pub egress: InterfaceId,
}

/// What a hop must be like. `0-0#0` by default, which is any. Plain data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct HopPredicate {
    /// The ISD and the AS; 0 is any.
    pub isd_as: IsdAs,
    /// By which interfaces.
    pub interfaces: Interfaces,
}

/// Which interfaces of a hop are meant; 0 is any, and the default. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Interfaces {
    /// In or out: `#2`.
    Either(InterfaceId),
    /// In and out: `#1,2`.
    Both {
        /// In.
        ingress: InterfaceId,
        /// Out.
        egress: InterfaceId,
    },
}

/// The way a packet crosses an interface. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Into the AS.
    In,
    /// Out of it.
    Out,
}

impl HopPredicate {
    /// Whether a hop of a sequence is like that.
    pub fn matches(&self, hop: &Hop) -> bool {
        self.isd_as.covers(hop.isd_as)
            && match self.interfaces {
                Interfaces::Either(id) => is(id, hop.ingress) || is(id, hop.egress),
                Interfaces::Both { ingress, egress } => is(ingress, hop.ingress) && is(egress, hop.egress),
            }
    }

    /// Whether an interface that a packet crosses that way belongs to such a hop, as access lists ask.
    pub fn covers(&self, interface: PathInterface, direction: Direction) -> bool {
        let asked = match (self.interfaces, direction) {
            (Interfaces::Either(id), _) => id,
            (Interfaces::Both { ingress, .. }, Direction::In) => ingress,
            (Interfaces::Both { egress, .. }, Direction::Out) => egress,
        };
        self.isd_as.covers(interface.isd_as) && is(asked, interface.id)
    }

    /// Whether every hop is like that.
    pub fn is_any(&self) -> bool {
        let any = InterfaceId::default();
        let interfaces = match self.interfaces {
            Interfaces::Either(id) => id == any,
            Interfaces::Both { ingress, egress } => ingress == any && egress == any,
        };
        interfaces && self.isd_as == IsdAs::default()
    }
}

/// Whether an interface is the one that is asked for, where 0 is any.
fn is(asked: InterfaceId, id: InterfaceId) -> bool {
    asked == InterfaceId::default() || asked == id
}

/// The hops of a path, in order; none inside an AS.
pub fn hops(path: &Fingerprint) -> impl Iterator<Item = Hop> {
    let interfaces = path.interfaces();
    let none = InterfaceId::default();
    let first = interfaces.first().map(|out| Hop { isd_as: out.isd_as, ingress: none, egress: out.id });
    let between = interfaces.get(1..).unwrap_or_default().chunks_exact(2);
    let between = between.map(|pair| Hop { isd_as: pair[0].isd_as, ingress: pair[0].id, egress: pair[1].id });
    let last = interfaces.last().map(|into| Hop { isd_as: into.isd_as, ingress: into.id, egress: none });
    first.into_iter().chain(between).chain(last)
}

impl Default for Interfaces {
    fn default() -> Self {
        Interfaces::Either(InterfaceId::default())
    }
}

impl FromStr for HopPredicate {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<HopPredicate, PolicyError> {
        let mut tokens = Tokens::read(text)?;
        let predicate = tokens.hop()?;
        tokens.end()?;
        Ok(predicate)
    }
}

impl fmt::Display for HopPredicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.interfaces {
            Interfaces::Either(InterfaceId(0)) => write!(f, "{}", self.isd_as),
            Interfaces::Either(id) => write!(f, "{}#{id}", self.isd_as),
            Interfaces::Both { ingress, egress } => write!(f, "{}#{ingress},{egress}", self.isd_as),
        }
    }
}

/// As policies write it: `1-ff00:0:110#1,2`.
impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{},{}", self.isd_as, self.ingress, self.egress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(isd_as: &str, ingress: u16, egress: u16) -> Hop {
        let isd_as = isd_as.parse().expect("an AS");
        Hop { isd_as, ingress: InterfaceId(ingress), egress: InterfaceId(egress) }
    }

    #[test]
    fn a_path_has_a_hop_for_each_as() {
        let out = |isd_as: &str, id| PathInterface { isd_as: isd_as.parse().expect("an AS"), id: InterfaceId(id) };
        let path = Fingerprint::new([out("1-1", 4), out("1-2", 5), out("1-2", 6), out("1-3", 7)]);
        let hops = |path| hops(path).map(|hop| hop.to_string()).collect::<Vec<_>>();
        assert_eq!(hops(&path), ["1-1#0,4", "1-2#5,6", "1-3#7,0"]);
        assert!(hops(&Fingerprint::default()).is_empty());
    }

    #[test]
    fn a_predicate_says_what_it_asks_for() {
        let middle = hop("1-ff00:0:110", 5, 6);
        for (text, matches) in [
            ("0", true),
            ("1", true),
            ("1-0#0,0", true),
            ("2", false),
            ("0-ff00:0:110", true),
            ("1-ff00:0:111", false),
            ("1-ff00:0:110#5", true),
            ("1-ff00:0:110#6", true),
            ("1-ff00:0:110#7", false),
            ("1-ff00:0:110#5,6", true),
            ("1-ff00:0:110#6,5", false),
            ("1-ff00:0:110#5,0", true),
            ("0-0#0,6", true),
            ("0-0#0,5", false),
        ] {
            assert_eq!(text.parse::<HopPredicate>().expect(text).matches(&middle), matches, "{text}");
        }
    }

    #[test]
    fn an_interface_is_covered_by_direction() {
        let five = PathInterface { isd_as: "1-2".parse().expect("an AS"), id: InterfaceId(5) };
        for (text, into, out) in [
            ("1-2#5", true, true),
            ("1-2#5,0", true, true),
            ("1-2#5,6", true, false),
            ("1-2#6,5", false, true),
            ("1-3#5", false, false),
        ] {
            let predicate: HopPredicate = text.parse().expect(text);
            let covers = (predicate.covers(five, Direction::In), predicate.covers(five, Direction::Out));
            assert_eq!(covers, (into, out), "{text}");
        }
    }

    #[test]
    fn a_predicate_is_read_as_it_is_written() {
        for text in ["0-0", "1-0", "1-ff00:0:110", "1-ff00:0:110#2", "1-ff00:0:110#1,2", "0-0#0,2", "1-5#3"] {
            assert_eq!(text.parse::<HopPredicate>().expect(text).to_string(), text);
        }
        let any = |text: &str| text.parse::<HopPredicate>().expect(text).is_any();
        assert!(any("0") && any("0-0#0,0") && !any("0-0#1") && !any("1") && !any("0-1"));
    }
}
