//! Marks of packets, as far as they are known: a TUN device hands over no mark, but its queues can tell apart what
//! matters.

/// What nftables wrote on a packet (`meta mark`), in the bits of a mask. The default names no bit. A plain value.
///
/// Of a packet it says what is known of its mark; of a rule, what it asks for.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Mark {
    value: u32,
    mask: u32,
}

impl Mark {
    /// The bits of `value` under `mask`.
    pub const fn new(value: u32, mask: u32) -> Mark {
        Mark { value: value & mask, mask }
    }

    /// Whether every packet of which this is known has what `asked` asks for.
    pub fn is_within(self, asked: Mark) -> bool {
        asked.mask & !self.mask == 0 && self.value & asked.mask == asked.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_a_mark_decides_whether_it_fits() {
        let whole = |value| Mark::new(value, u32::MAX);
        let table = [
            ("the mark itself", whole(0x10), whole(0x10), true),
            ("another one", whole(0x11), whole(0x10), false),
            ("its highest bit counts", whole(0x8000_0010), whole(0x10), false),
            ("the bits that are asked for", whole(0x1234), Mark::new(0x34, 0xff), true),
            ("other bits there", whole(0x1235), Mark::new(0x34, 0xff), false),
            ("more is asked than is known", Mark::new(0x34, 0xff), whole(0x34), false),
            ("less is asked than is known", Mark::new(0x134, 0xfff), Mark::new(0x30, 0xf0), true),
            ("nothing is known, nothing is asked", Mark::default(), Mark::default(), true),
            ("nothing is known, no mark is asked for", Mark::default(), whole(0), false),
            ("no mark is known, and asked for", whole(0), whole(0), true),
        ];
        for (what, known, asked, expected) in table {
            assert_eq!(known.is_within(asked), expected, "{what}");
        }
        assert_eq!(Mark::new(0x1ff, 0xff), Mark::new(0xff, 0xff), "bits outside of the mask are none of it");
    }
}
