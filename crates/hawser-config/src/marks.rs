//! The `mark` of a `[[rule]]`: what nftables wrote on a packet, and what the rules tell apart by it.
//!
//! Rules that ask for a device or a name have a class, a mark that nftables writes for them (docs/schedulers.md, "Past
//! the tunnel").

use std::cmp::Reverse;

use toml::de::DeValue;

use super::error::{Fault, Faults, Read};
use super::parsers::{quoted, within, wrong_kind};
use super::reading::Sited;
use super::rules::Rule;

/// Kinds of packets that rules may tell apart by marks: the TUN device has a queue for each, which the packet thread
/// looks at. There are 64 classes (RFC 2474), for comparison, and the kernel has 255 queues (drivers/net/tun.c,
/// `MAX_TAP_QUEUES`, and that of unmarked packets).
const KINDS_MAX: usize = 64;
/// Rules that stay in the tunnel and look at devices or names are told apart by this many marks at most: five bits,
/// less none.
const CLASSES_MAX: u8 = 31;
/// The bits of a packet's mark that hold them.
pub const CLASS_MASK: u32 = 0x1f00_0000;

/// A mark, and the bits of it that count; others of `value` are zero. No default; a plain value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkMatch {
    /// The value to compare with.
    pub value: u32,
    /// The bits that are compared; at least one.
    pub mask: u32,
}

impl MarkMatch {
    /// What fits both, if anything can.
    fn and(self, other: Self) -> Option<Self> {
        let common = self.mask & other.mask;
        let agree = self.value & common == other.value & common;
        agree.then_some(Self { value: self.value | other.value, mask: self.mask | other.mask })
    }
}

/// The kinds of packets that rules tell apart by marks. A packet is of the narrowest kind that it fits, which decides
/// of every rule whether it fits that too. None at first; plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkKinds(Vec<MarkMatch>);

impl MarkKinds {
    /// Those of rules.
    pub fn of(rules: &[Rule]) -> Self {
        let mut kinds = Self::default();
        rules.iter().filter_map(Rule::seen_mark).for_each(|mark| kinds.add(mark));
        kinds
    }

    /// The kinds, the narrowest first: the first that a packet fits is its own.
    pub fn narrowest_first(&self) -> &[MarkMatch] {
        &self.0
    }

    /// Whether what these rules tell apart is told apart.
    pub fn suffice(&self, rules: &[Rule]) -> bool {
        rules.iter().filter_map(Rule::seen_mark).all(|mark| self.0.contains(&mark))
    }

    /// One more mark of a rule: itself, and what fits it and another.
    fn add(&mut self, mark: MarkMatch) {
        let both: Vec<_> = self.0.iter().filter_map(|known| known.and(mark)).chain([mark]).collect();
        for kind in both {
            if !self.0.contains(&kind) {
                self.0.push(kind);
            }
        }
        self.0.sort_by_key(|kind| Reverse(kind.mask.count_ones()));
    }

    /// The same while a file is read, where there may be too many.
    pub(super) fn claim(&mut self, mark: MarkMatch) -> Read<()> {
        let mut more = self.clone();
        more.add(mark);
        if more.0.len() > KINDS_MAX {
            let fault = Fault::new(format!("by this mark the rules tell more than {KINDS_MAX} kinds of packets apart"));
            return Err(fault.hint("name fewer marks, or masks of which no two fit one packet"));
        }
        *self = more;
        Ok(())
    }
}

/// A mark: a number, or a string with a mask.
pub(super) fn mark(value: &DeValue<'_>) -> Read<MarkMatch> {
    let hint = "a mark such as 0x10, or with a mask: \"0x10/0xff\"";
    match value {
        DeValue::Integer(_) => {
            within(value, 0..=u32::MAX.into(), |fault| fault).map(|value| MarkMatch { value, mask: u32::MAX })
        }
        DeValue::String(text) => {
            let (value, mask) = text.split_once('/').unwrap_or((text, "0xffffffff"));
            match (number(value), number(mask)) {
                (Some(value), Some(mask)) => fitting(value, mask),
                _ => Err(Fault::new(format!("{} is not a mark", quoted(text))).hint(hint)),
            }
        }
        _ => Err(wrong_kind("a mark", value).hint(hint)),
    }
}

/// As nft and ip write it.
fn number(text: &str) -> Option<u32> {
    let text = text.trim();
    text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |digits| u32::from_str_radix(digits, 16).ok())
}

/// A value that some packet's mark can have under the mask.
fn fitting(value: u32, mask: u32) -> Read<MarkMatch> {
    if mask == 0 {
        return Err(Fault::new("a mask of 0 compares nothing").hint("leave `mark` out: every packet fits then"));
    }
    if value & !mask != 0 {
        let fault = Fault::new(format!("no packet fits: {value:#x} has bits outside of its mask {mask:#x}"));
        return Err(fault.fix(quoted(&format!("{:#x}/{mask:#x}", value & mask))));
    }
    Ok(MarkMatch { value, mask })
}

/// Gives each rule that stays in the tunnel, and asks for a device or a name, a class of its own: the number of its
/// mark.
pub(super) fn classify(rules: &mut [Sited<Rule>], marks: &mut MarkKinds, faults: &mut Faults<'_>) {
    let asking = rules.iter_mut().filter(|rule| rule.value.asks_for_device() && !rule.value.direct);
    for (class, rule) in (1..).zip(asking) {
        if class > CLASSES_MAX {
            let fault = Fault::new(format!("more than {CLASSES_MAX} rules with `mac`, `interface` or `domains`"));
            faults.add(rule.span.clone(), fault.hint("name several domains in one rule, or use via = \"direct\""));
            return;
        }
        rule.value.class = Some(class);
        if let Err(fault) = marks.claim(MarkMatch { value: class_bits(class), mask: CLASS_MASK }) {
            faults.add(rule.span.clone(), fault);
        }
    }
}

/// The bits of the mark of a class.
pub fn class_bits(class: u8) -> u32 {
    u32::from(class) << CLASS_MASK.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u32 = u32::MAX;

    /// A rule for each value with its mask.
    fn rules(marks: &[(u32, u32)]) -> Vec<Rule> {
        let rule = |&(value, mask): &(u32, u32)| Rule { mark: Some(MarkMatch { value, mask }), ..Rule::default() };
        marks.iter().map(rule).collect()
    }

    #[test]
    fn what_fits_two_marks_is_a_kind_of_its_own_and_comes_before_both() {
        let table = [
            (&[(7, ALL), (8, ALL), (7, ALL)][..], &[(7, ALL), (8, ALL)][..]),
            (&[], &[]),
            // One lies within the other.
            (&[(0x10, 0xf0), (0x17, ALL)], &[(0x17, ALL), (0x10, 0xf0)]),
            // They cross.
            (&[(0x10, 0xf0), (0x07, 0x0f)], &[(0x17, 0xff), (0x10, 0xf0), (0x07, 0x0f)]),
            // They exclude each other.
            (&[(0x10, 0xf0), (0x20, 0xf0)], &[(0x10, 0xf0), (0x20, 0xf0)]),
            (&[(1, 1), (2, 2), (4, 4)], &[(7, 7), (3, 3), (5, 5), (6, 6), (1, 1), (2, 2), (4, 4)]),
        ];
        for (marks, expected) in table {
            let expected: Vec<_> = expected.iter().map(|&(value, mask)| MarkMatch { value, mask }).collect();
            assert_eq!(MarkKinds::of(&rules(marks)).narrowest_first(), expected, "{marks:x?}");
        }
    }

    #[test]
    fn a_packets_kind_decides_of_every_rule() {
        let marks = [(0x10, 0xf0), (0x01, 0x0f), (0x11, 0xfff), (0x100, 0x100), (0x123, ALL), (0, ALL)];
        let kinds = MarkKinds::of(&rules(&marks));
        for mark in 0..0x800_u32 {
            let fits = |value: u32, mask: u32| mark & mask == value;
            let own = kinds.narrowest_first().iter().find(|kind| fits(kind.value, kind.mask));
            for (value, mask) in marks {
                let decided = own.is_some_and(|own| mask & !own.mask == 0 && own.value & mask == value);
                assert_eq!(decided, fits(value, mask), "mark {mark:#x}, rule {value:#x}/{mask:#x}, kind {own:x?}");
            }
        }
    }

    #[test]
    fn rules_that_know_no_other_mark_are_told_apart_as_before() {
        let kinds = MarkKinds::of(&rules(&[(0x10, 0xf0), (0x07, 0x0f)]));
        assert!(kinds.suffice(&[]) && kinds.suffice(&[Rule::default()]));
        assert!(kinds.suffice(&rules(&[(0x10, 0xf0), (0x17, 0xff)])));
        assert!(!kinds.suffice(&rules(&[(0x10, ALL)])) && !MarkKinds::default().suffice(&rules(&[(0x10, 0xf0)])));
    }
}
