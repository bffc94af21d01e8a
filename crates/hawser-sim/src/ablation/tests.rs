//! The ablation of small networks: what is planted is found, what does nothing is not.

use super::table::{NONE, table};
use super::*;
use crate::net::link;
use hawser_core::policy::tuning::Aqm;
use std::time::Duration;

/// Pairs of links, small and short enough for a test.
fn grounds() -> Vec<Ground> {
    let pair = |(seed, rate)| {
        let links = vec![link(rate, 30.0), link(rate / 2.0, 50.0)];
        let network = Network { name: format!("pair {seed}"), seed, links, seconds: 12.0, ..Network::default() };
        Ground { family: Family::Stationary, network }
    };
    [(1, 6.0), (2, 8.0), (3, 10.0), (4, 12.0)].map(pair).to_vec()
}

fn variant(name: &str, tuning: Tuning) -> Variant {
    Variant { name: name.to_owned(), about: String::new(), tuning }
}

/// CoDel drops whatever waits at all.
fn ruined() -> Tuning {
    let soon = Duration::from_micros(1);
    let aqm = Aqm { target: soon, target_varying: soon, interval_min: soon, ..Aqm::default() };
    Tuning { aqm, ..Tuning::default() }
}

#[test]
fn a_planted_tuning_that_ruins_the_ingress_queue_is_found_and_the_default_itself_is_not() {
    let variants = vec![variant("planted", ruined()), variant("nothing", Tuning::default())];
    let mut begun = Vec::new();
    let ablation = ablate(grounds(), 2, variants, |name| begun.push(name.to_owned()));
    assert_eq!(begun, ["default", "planted", "nothing"]);
    let [planted, nothing] = [0, 1].map(|index| ablation.effects(&ablation.variants[index].1, None));
    assert!(planted[0].mean < -10.0 && planted[0].is_seen(), "goodput: {planted:?}");
    assert_eq!(nothing, [Effect { mean: 0.0, half: Some(0.0) }; FIGURES], "the same seeds, the same figures");
    // A network without anything random is the same in every run.
    assert!(
        ablation.default.iter().any(|runs| runs[0] != runs[1]),
        "other runs, other figures: {:?}",
        ablation.default
    );
    let text = table(&ablation);
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).expect("a row").to_owned();
    assert!(line("planted").contains("helps goodput"), "{text}");
    assert!(line("nothing").ends_with(NONE), "{text}");
}

#[test]
fn a_family_is_looked_at_alone() {
    let mut grounds = grounds();
    grounds[3].family = Family::Changing;
    let figures = |value: f64| vec![[value; FIGURES]];
    let ablation = Ablation {
        grounds,
        runs: 1,
        default: [1.0; 4].map(figures).to_vec(),
        variants: vec![(variant("law", Tuning::default()), [1.0, 1.0, 1.0, 2.0].map(figures).to_vec())],
    };
    let measured = &ablation.variants[0].1;
    assert_eq!(ablation.effects(measured, Some(Family::Stationary))[0].mean, 0.0);
    assert!((ablation.effects(measured, Some(Family::Changing))[0].mean - 69.3147).abs() < 1e-3);
    assert_eq!(ablation.families(), [Family::Stationary, Family::Changing]);
    assert!(table(&ablation).contains("changing: networks 1, runs on each 1"));
}

#[test]
fn every_family_has_a_name_and_seeds_draw_networks_of_it() {
    for family in Family::ALL {
        assert_eq!(Family::named(family.name()), Some(family));
        assert_eq!(draw(family, 3..5).len(), 2);
    }
}
