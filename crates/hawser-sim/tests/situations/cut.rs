//! Links that go and come back.

use crate::situations;
use hawser_sim::net::{LinkSpec, link};
use hawser_sim::situation::Case;
use hawser_sim::{Act, on};

/// The share of a link that inner packets have, for the smallest TUN MTU.
const INNER: f64 = 1280.0 / 1339.0;

fn pair() -> [LinkSpec; 2] {
    [link(50.0, 20.0), link(50.0, 20.0)]
}

/// Down and up again every second from the second on.
fn flapping(case: Case, link: usize) -> Case {
    (2..7).fold(case, |case, second| {
        let at = f64::from(second);
        case.at(at, Act::Down(link)).at(at + 0.5, Act::Up(link))
    })
}

/// A link halves, doubles, is lost and regained: within a tenth of what the links carry, three seconds after each
/// change.
fn changes(case: Case) -> Case {
    case.lasts(20.0)
        .at(4.0, Act::Rate(0, 25.0))
        .at(8.0, Act::Rate(0, 50.0))
        .at(12.0, Act::Cut(0))
        .at(16.0, Act::Heal(0))
        .rate(7.0, 8.0, 0.9 * 75.0 * INNER)
        .rate(11.0, 12.0, 0.9 * 100.0 * INNER)
        .rate(15.0, 16.0, 0.9 * 50.0 * INNER)
        .rate(19.0, 20.0, 0.9 * 100.0 * INNER)
        .disorder(0.001)
}

situations! {
    told_of_a_cut: on(&pair()).lasts(9.0).at(3.0, Act::Down(0)).at(5.0, Act::Up(0))
        .gap(2.0, 9.0, 100.0).rate(3.5, 5.0, 44.0).share_between(7.0, 9.0, 0.9).pings_lost(3);
    silent_cut: on(&pair()).lasts(9.0).at(3.0, Act::Cut(0)).at(5.0, Act::Heal(0))
        .gap(2.0, 9.0, 200.0).rate(3.5, 5.0, 44.0).share_between(7.0, 9.0, 0.9);
    silent_cut_of_the_other: on(&pair()).lasts(9.0).at(3.0, Act::Cut(1)).at(5.0, Act::Heal(1))
        .gap(2.0, 9.0, 200.0).rate(3.5, 5.0, 44.0).share_between(7.0, 9.0, 0.9);
    // BBR remembers the loss of what the cut path had in flight until it probes again.
    silent_cut_of_the_faster: on(&[link(50.0, 20.0), link(30.0, 50.0)]).lasts(9.0).at(3.0, Act::Cut(0)).at(5.0, Act::Heal(0))
        .gap(2.0, 9.0, 300.0).rate(3.5, 5.0, 22.0).share_between(7.0, 9.0, 0.85);
    silent_cut_downwards: on(&pair()).downwards().lasts(9.0).at(3.0, Act::Cut(0)).at(5.0, Act::Heal(0))
        .gap(2.0, 9.0, 200.0).rate(3.5, 5.0, 44.0).share_between(7.0, 9.0, 0.9);
    black_hole_upwards: on(&pair()).lasts(9.0).at(3.0, Act::CutUp(0)).at(5.0, Act::Heal(0))
        .gap(2.0, 9.0, 200.0).rate(3.5, 5.0, 44.0).share_between(7.0, 9.0, 0.9);
    black_hole_downwards: on(&pair()).lasts(9.0).at(3.0, Act::CutDown(0)).at(5.0, Act::Heal(0))
        .gap(2.0, 9.0, 200.0).rate(3.5, 5.0, 44.0).share_between(7.0, 9.0, 0.9);
    both_cut_and_back: on(&pair()).lasts(9.0).at(3.0, Act::Cut(0)).at(3.0, Act::Cut(1)).at(4.5, Act::Heal(0)).at(4.5, Act::Heal(1))
        .gap(4.5, 9.0, 1_500.0).share_between(7.0, 9.0, 0.9);
    only_link_cut_and_back: on(&[link(50.0, 20.0)]).lasts(9.0).at(3.0, Act::Cut(0)).at(4.0, Act::Heal(0))
        .gap(4.0, 9.0, 1_500.0).share_between(7.0, 9.0, 0.9);
    only_link_cut_for_long: on(&[link(50.0, 20.0)]).lasts(15.0).at(3.0, Act::Cut(0)).at(10.0, Act::Heal(0))
        .gap(10.0, 15.0, 1_500.0).share_between(13.0, 15.0, 0.9);
    flapping_told: flapping(on(&pair()), 0).lasts(9.0).gap(2.0, 9.0, 200.0).rate(2.0, 7.0, 40.0);
    cut_at_the_start: on(&pair()).at(0.0, Act::Cut(0)).at(3.0, Act::Heal(0)).lasts(8.0)
        .rate(1.5, 3.0, 40.0).share_between(6.0, 8.0, 0.9);
    never_there: on(&pair()).at(0.0, Act::Cut(1)).rate(1.5, 6.0, 44.0);
    link_added_late: on(&[link(50.0, 20.0)]).lasts(8.0).at(3.0, Act::Add(Box::new(link(50.0, 20.0))))
        .rate(1.5, 3.0, 44.0).share_between(5.0, 8.0, 0.9).gap(1.0, 8.0, 100.0);
    tiers_take_over_and_hand_back: on(&[link(50.0, 20.0), link(30.0, 20.0).metric(1)]).lasts(9.0)
        .at(3.0, Act::Cut(0)).at(5.0, Act::Heal(0))
        .quiet(1.0, 3.0, 1, 40_000).quiet(7.0, 9.0, 1, 40_000)
        .gap(2.0, 9.0, 200.0).rate(3.5, 5.0, 26.0).rate(7.0, 9.0, 44.0);
    tiers_told_of_a_cut: on(&[link(50.0, 20.0), link(20.0, 40.0).metric(1)]).lasts(9.0).at(3.0, Act::Down(0)).at(5.0, Act::Up(0))
        .quiet(1.0, 3.0, 1, 1_000).quiet(7.0, 9.0, 1, 1_000).gap(2.0, 9.0, 200.0).pings_lost(3);
    tiers_downwards: on(&[link(50.0, 20.0), link(20.0, 40.0).metric(1)]).downwards().lasts(9.0).at(3.0, Act::Cut(0)).at(5.0, Act::Heal(0))
        .quiet(1.0, 3.0, 1, 1_000).quiet(7.0, 9.0, 1, 1_000).gap(2.0, 9.0, 250.0);
    tiers_upwards: on(&[link(50.0, 20.0), link(20.0, 40.0).metric(1)]).lasts(9.0).at(3.0, Act::Cut(0)).at(5.0, Act::Heal(0))
        .quiet(1.0, 3.0, 1, 1_000).quiet(7.0, 9.0, 1, 1_000).gap(2.0, 9.0, 250.0);
    changes_upwards: changes(on(&pair()));
    changes_downwards: changes(on(&pair()).downwards());
}
