//! A figure in two bytes: eleven bits of it and how far they are shifted, so that none is wrong by more than 0.1 %.

/// Bits that are kept.
const BITS: u32 = 11;
/// The largest shift: figures end at 2^41, which is 2 Tbit/s in bits a second and 25 days in microseconds.
const SHIFT_MAX: u32 = 30;

/// A figure, or that there is none. Nothing by default. Plain value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compact(u16);

impl Compact {
    /// Nothing is known.
    pub const NONE: Self = Self(0);

    /// The figure, nearly; the largest there is for what is larger.
    pub fn of(figure: u64) -> Self {
        let shift = (u64::BITS - figure.leading_zeros()).saturating_sub(BITS);
        if shift > SHIFT_MAX {
            return Self(((SHIFT_MAX + 1) << BITS) as u16);
        }
        let kept = (figure >> shift) as u16;
        Self(((shift as u16) << BITS | kept) + 1)
    }

    /// The figure.
    pub fn get(self) -> Option<u64> {
        let code = self.0.checked_sub(1)?;
        Some(u64::from(code & ((1 << BITS) - 1)) << (code >> BITS))
    }
}

impl From<Option<u64>> for Compact {
    fn from(figure: Option<u64>) -> Self {
        figure.map_or(Self::NONE, Self::of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_figures_are_exact_and_large_ones_nearly() {
        for figure in (0..2_048).chain([2_048, 4_097, 50_000_000, 1_000_000_007, (1 << 41) - 1]) {
            let back = Compact::of(figure).get().expect("there is a figure");
            assert!(back <= figure && figure - back <= figure >> 10, "{figure}: {back}");
        }
        assert_eq!(Compact::of(2_047).get(), Some(2_047));
    }

    #[test]
    fn nothing_is_nothing_and_too_much_is_the_largest() {
        assert_eq!((Compact::default().get(), Compact::from(None)), (None, Compact::NONE));
        let largest = Compact::of(u64::MAX).get().expect("there is one");
        assert!((1 << 40..1 << 42).contains(&largest), "{largest}");
        assert_eq!(Compact::of(1 << 41), Compact::of(u64::MAX));
    }
}
