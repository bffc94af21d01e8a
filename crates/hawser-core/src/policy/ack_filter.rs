//! How far apart acknowledgements of bulk are, in a slow start over several paths. `queue/ack_filter.rs` holds them.
//!
//! *Principle*: what several paths brought is delivered in order, so the acknowledgements of a round last as long as
//! the thinnest path takes. Linux's HyStart takes a train of them that lasts half a round trip for a full pipe, and a
//! gap of 2 ms for the train's end (Ha and Rhee, "Taming the elephants: new TCP slow start", 2011; `tcp_cubic.c`). With
//! gaps in it only a growing delay ends a slow start. A thin way back has less to carry besides (ACK filtering, RFC
//! 3449 section 5.2.1). Beyond a slow start gaps only make a sender bursty; on a short round trip they would be most of
//! it.

use super::PathView;
use super::tuning::AckFilter as Tuning;
use crate::queue::AckSpacing;

/// How far apart they are; `fastest` is the fastest path, if there is any.
pub fn decide(tuning: &Tuning, fastest: Option<&PathView>, second_path: bool) -> AckSpacing {
    let round_trip = fastest.map_or_else(Default::default, |view| view.least_rtt);
    if !second_path || round_trip < tuning.gap * tuning.part {
        return AckSpacing::default();
    }
    AckSpacing { gap: tuning.gap, within: round_trip * tuning.slow_start_rounds, burst: tuning.burst }
}

#[cfg(test)]
mod tests {
    use super::super::Law;
    use super::super::tests::path;
    use super::*;
    use std::time::Duration;

    #[test]
    fn acknowledgements_are_spaced_over_several_paths_of_some_length() {
        let ms = Duration::from_millis;
        let spaced = AckSpacing { gap: ms(3), within: ms(240), burst: 16 };
        let table = [(10, true, spaced), (10, false, AckSpacing::default()), (8, true, AckSpacing::default())];
        for (delay_ms, second_path, spacing) in table {
            let fastest = path(50, delay_ms);
            assert_eq!(decide(&Tuning::default(), Some(&fastest), second_path), spacing, "{delay_ms} ms");
        }
        assert_eq!(decide(&Tuning::default(), None, true), AckSpacing::default());
        let neutral = super::super::Tuning::neutral(Law::named("ack-filter").expect("a law")).ack_filter;
        assert!(decide(&neutral, Some(&path(50, 10)), true).gap.is_zero());
    }
}
