//! Which paths the packets of a rule get, as links come and go.

use super::*;
use crate::rules::{Rule, Treatment};

const DSL: LinkTag = LinkTag(1);
const LTE: LinkTag = LinkTag(2);
const SAT: LinkTag = LinkTag(3);

/// How a path stands: it works, is suspect, or is down.
#[derive(Copy, Clone, PartialEq)]
enum Is {
    Up,
    Late,
    Down,
}
use Is::{Down, Late, Up};

/// Of paths, which.
type Places = &'static [usize];

fn rule(via: Via, scheduler: Kind) -> Rule {
    Rule { via, treatment: Treatment { scheduler, ..Treatment::default() }, ..Rule::default() }
}

/// What each rule gets of DSL, LTE and satellite, the last in a tier of its own, where they stand so.
fn allowed(rules: Vec<Rule>, paths: [Is; 3]) -> Allowed {
    let mut allowed = Allowed::default();
    allowed.follow(&Rules::new(rules, Treatment::default()));
    let candidates = [(DSL, 0), (LTE, 0), (SAT, 1)].into_iter().zip(paths);
    allowed.refresh(candidates.map(|((link, tier), is)| Candidate {
        link,
        works: is == Up,
        hoped_for: is != Down,
        tier,
    }));
    allowed
}

fn of(allowed: &Allowed, rule: u16) -> Vec<usize> {
    allowed.of(RuleId(rule)).iter().collect()
}

#[test]
fn a_rule_goes_by_the_first_of_its_links_that_works_and_a_strict_one_by_no_other() {
    let table: [(&str, [Is; 3], Places, Places, Places); 7] = [
        ("all work", [Up, Up, Up], &[0], &[0], &[0, 1]),
        ("the second does", [Down, Up, Up], &[1], &[1], &[1]),
        ("another does, of a higher tier", [Down, Down, Up], &[2], &[], &[2]),
        ("none does", [Down, Down, Down], &[], &[], &[]),
        ("the first is late", [Late, Up, Up], &[], &[], &[1]),
        ("the second is late", [Down, Late, Up], &[], &[], &[]),
        ("the first works, the second is late", [Up, Late, Up], &[0], &[0], &[0]),
    ];
    for (what, paths, loose, strict, rest) in table {
        let via = |strict| rule(Via::in_order(&[DSL, LTE], strict), Kind::Adaptive);
        let allowed = allowed(vec![via(false), via(true)], paths);
        assert_eq!(
            (of(&allowed, 1), of(&allowed, 2), of(&allowed, 0)),
            (loose.into(), strict.into(), rest.into()),
            "{what}"
        );
        let hopeless = !paths[..2].iter().any(|is| *is != Down);
        assert_eq!((allowed.is_hopeless(RuleId(1)), allowed.is_hopeless(RuleId(2))), (false, hopeless), "{what}");
    }
}

#[test]
fn a_rule_reaches_a_tier_that_all_other_traffic_leaves_alone() {
    let sat = || vec![rule(Via::in_order(&[SAT], true), Kind::Adaptive)];
    let all_up = allowed(sat(), [Up, Up, Up]);
    assert_eq!((of(&all_up, 1), of(&all_up, 0)), (vec![2], vec![0, 1]));
    assert_eq!(all_up.any().iter().collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn two_links_carry_what_is_redundant_and_all_that_have_a_weight_share() {
    let weight = |parts| Weight::new(parts).expect("not zero");
    let rules = || {
        let redundant = rule(Via::in_order(&[SAT, DSL, LTE], true), Kind::Redundant);
        vec![redundant, rule(Via::by_weight(vec![(SAT, weight(3)), (DSL, weight(1))], false), Kind::Weighted)]
    };
    let all_up = allowed(rules(), [Up, Up, Up]);
    assert_eq!((of(&all_up, 1), of(&all_up, 2)), (vec![0, 2], vec![0, 2]));
    assert_eq!([0, 1, 2].map(|path| all_up.weight(RuleId(2), path)), [Some(weight(1)), None, Some(weight(3))]);
    assert_eq!(all_up.weight(RuleId(1), 0), None, "its links have no weights of the rule's");
    let no_dsl = allowed(rules(), [Down, Up, Up]);
    assert_eq!((of(&no_dsl, 1), of(&no_dsl, 2)), (vec![1, 2], vec![2]));
}

#[test]
fn before_paths_were_looked_at_and_without_links_of_that_name_nothing_strict_goes() {
    let mut fresh = Allowed::default();
    fresh.follow(&Rules::new(vec![rule(Via::in_order(&[DSL], true), Kind::Adaptive)], Treatment::default()));
    assert!(fresh.of(RuleId(1)).is_empty() && fresh.is_bound(RuleId(1)) && !fresh.is_bound(RuleId(2)));
    let elsewhere = allowed(vec![rule(Via::in_order(&[LinkTag(9)], true), Kind::Adaptive)], [Up, Up, Up]);
    assert!(elsewhere.of(RuleId(1)).is_empty() && elsewhere.is_hopeless(RuleId(1)));
}
