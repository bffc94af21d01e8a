//! What is told of paths that do this and then that.

use super::*;

/// Reports come this often.
const EVERY: Duration = Duration::from_millis(200);

/// A path at ease: 20 ms, 20 Mbit/s of which it carries 15.
fn well() -> Sight<'static> {
    Sight {
        at: Duration::ZERO,
        state: PathState::Active,
        reason: None,
        mbps: 15.0,
        capacity_mbps: 20.0,
        rtt_ms: 22.0,
        queue_ms: 2.0,
        rtt_min_ms: 20.0,
        loss_pct: 0.1,
        fresh: true,
    }
}

fn down(reason: &'static str) -> Sight<'static> {
    Sight { state: PathState::Down, reason: Some(reason), fresh: false, ..well() }
}

fn state(state: PathState) -> Sight<'static> {
    Sight { state, fresh: false, ..well() }
}

/// What happens, for how many milliseconds each, and what is told of it.
type Story<'a> = (&'a str, &'a [(u64, Sight<'static>)], &'a [EventKind]);

fn told(story: &[(u64, Sight<'_>)]) -> Vec<(Duration, EventKind)> {
    let (mut judge, mut at, mut told) = (Judge::default(), Duration::ZERO, Vec::new());
    for (millis, sight) in story {
        let end = at + Duration::from_millis(*millis);
        while at < end {
            told.extend(judge.look(&Sight { at, ..*sight }).map(|change| (at, change.kind)));
            at += EVERY;
        }
    }
    told
}

#[test]
fn each_story_is_told_once_and_in_its_words() {
    use EventKind::{Comeback, Cut, Degraded, Fade, FadeOver, LinkDown, LinkUp, Recovered};
    let lossy = Sight { loss_pct: 5.0, ..well() };
    let slow = Sight { rtt_ms: 300.0, queue_ms: 10.0, rtt_min_ms: 290.0, ..well() };
    let faded = Sight { mbps: 2.0, rtt_ms: 150.0, queue_ms: 130.0, ..well() };
    let shrunk = Sight { mbps: 7.0, capacity_mbps: 7.0, ..well() };
    let idle = Sight { mbps: 0.0, fresh: false, ..well() };
    let idle_after_load = Sight { rtt_ms: 150.0, queue_ms: 130.0, ..idle };
    let trickle = Sight { mbps: 0.2, ..well() };
    let lacks = "its interface or address is gone";
    let table: [Story<'_>; 18] = [
        ("a path that works", &[(60_000, well())], &[LinkUp]),
        (
            "one cut and back",
            &[(5_000, well()), (3_000, down(NOTHING_COMES_BACK)), (9_000, well())],
            &[LinkUp, Cut, Comeback],
        ),
        ("the peer hears nothing", &[(5_000, well()), (900, down(PEER_SAYS_DOWN))], &[LinkUp, Cut]),
        (
            "an overdue acknowledgement",
            &[(5_000, well()), (500, state(PathState::Suspect)), (5_000, well())],
            &[LinkUp],
        ),
        (
            "the only path, silent",
            &[(5_000, well()), (1_200, state(PathState::Suspect)), (900, down(NOTHING_COMES_BACK))],
            &[LinkUp, Cut],
        ),
        (
            "an unplugged cable",
            &[(5_000, well()), (2_000, down(lacks)), (2_000, well())],
            &[LinkUp, LinkDown, Comeback],
        ),
        (
            "cut, then unplugged",
            &[(5_000, well()), (1_000, down(NOTHING_COMES_BACK)), (1_000, down(lacks))],
            &[LinkUp, Cut, LinkDown],
        ),
        ("a socket that opens late", &[(600, down(lacks)), (2_000, well())], &[LinkUp]),
        ("no route from the start", &[(3_000, state(PathState::NoRoute)), (2_000, well())], &[LinkDown, Comeback]),
        ("a wrong endpoint", &[(20_000, down(NOTHING_COMES_BACK))], &[]),
        (
            "a new session",
            &[(5_000, well()), (2_000, state(PathState::Validating)), (2_000, well())],
            &[LinkUp, LinkUp],
        ),
        (
            "loss that comes and goes",
            &[(5_000, well()), (9_000, lossy), (9_000, well())],
            &[LinkUp, Degraded, Recovered],
        ),
        ("a moment of loss", &[(5_000, well()), (800, lossy), (9_000, well())], &[LinkUp]),
        ("delay that comes and stays", &[(60_000, well()), (20_000, slow)], &[LinkUp, Degraded]),
        ("a fade and its end", &[(20_000, well()), (6_000, faded), (9_000, well())], &[LinkUp, Fade, FadeOver]),
        ("a fade without a queue", &[(20_000, well()), (4_000, shrunk)], &[LinkUp, Fade]),
        ("a flow that ends", &[(20_000, well()), (1_000, idle_after_load), (60_000, idle)], &[LinkUp]),
        ("a flow that ends and a trickle", &[(20_000, well()), (60_000, trickle), (20_000, well())], &[LinkUp]),
    ];
    for (what, story, expected) in table {
        let kinds: Vec<_> = told(story).into_iter().map(|(_, kind)| kind).collect();
        assert_eq!(kinds, expected, "{what}");
    }
}

#[test]
fn a_cut_is_told_at_once_and_a_fade_within_a_second() {
    let cut = told(&[(5_000, well()), (3_000, down(NOTHING_COMES_BACK))]);
    assert_eq!(cut[1].0, Duration::from_secs(5));
    let faded = Sight { mbps: 2.0, rtt_ms: 150.0, queue_ms: 130.0, ..well() };
    let fade = told(&[(5_000, well()), (3_000, faded)]);
    assert!(fade[1].0 <= Duration::from_millis(5_800), "{fade:?}");
    let back = told(&[(5_000, well()), (3_000, down(NOTHING_COMES_BACK)), (3_000, well())]);
    assert!(back[2].0 <= Duration::from_millis(8_600), "{back:?}");
}

#[test]
fn a_path_that_flickers_makes_no_storm() {
    let lossy = Sight { loss_pct: 5.0, ..well() };
    let faded = Sight { mbps: 2.0, rtt_ms: 150.0, queue_ms: 130.0, ..well() };
    for (what, other, length, most) in [
        ("up and down each report", down(NOTHING_COMES_BACK), 200, 2),
        ("loss each second", lossy, 1_000, 10),
        ("a fade each second", faded, 1_000, 10),
    ] {
        let minute: Vec<_> =
            (0..60_000 / length).map(|at| (length, if at % 2 == 0 { well() } else { other })).collect();
        let told = told(&minute);
        assert!(told.len() <= most, "{what}: {} events", told.len());
    }
}

#[test]
fn what_lasts_becomes_usual() {
    let faded = Sight { mbps: 5.0, capacity_mbps: 6.0, rtt_ms: 80.0, queue_ms: 60.0, ..well() };
    let told = told(&[(20_000, well()), (300_000, faded)]);
    let kinds: Vec<_> = told.iter().map(|(_, kind)| *kind).collect();
    assert_eq!(kinds, [EventKind::LinkUp, EventKind::Fade, EventKind::FadeOver], "{told:?}");
}

#[test]
fn causes_have_the_figures() {
    let mut judge = Judge::default();
    let mut at = Duration::ZERO;
    let mut causes = Vec::new();
    for sight in [well(), Sight { loss_pct: 4.25, ..well() }, down("no carrier"), well()] {
        for _ in 0..10 {
            causes.extend(judge.look(&Sight { at, ..sight }).map(|change| change.cause));
            at += EVERY;
        }
    }
    assert_eq!(causes, ["round trip 22 ms", "loses 4.2 % of its packets", "no carrier", "after 2.4 s"]);
}
