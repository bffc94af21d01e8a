//! How true the emulation is, in short; `make measure CASE=fidelity` tells the figures. Needs root.

use crate::common::measured::measured;
use crate::common::ms;
use hawser_wire::Spread;
use hawser_wire::fidelity::{RATES_MBIT, of_jitter, of_rate};

#[test]
fn rate_delay_and_loss_are_what_was_told_from_1_to_500_mbit() {
    for (seed, mbit) in (0..).zip(RATES_MBIT) {
        measured(|| {
            let found = of_rate(mbit, ms(900), seed).expect("it can be measured (this test needs root)");
            println!("{found:?}");
            assert!(found.is_true(), "{found:?}");
        });
    }
}

#[test]
fn a_jitter_has_the_distribution_that_was_told() {
    for spread in [Spread::Uniform, Spread::Normal] {
        measured(|| {
            let found = of_jitter(spread, 1).expect("it can be measured (this test needs root)");
            println!("{spread:?}: {found:?}");
            assert!(found.is_true(), "{spread:?}: {found:?}");
        });
    }
}
