use super::*;
use crate::packet::inner::parse;
use crate::packet::samples::Sample;

/// A UDP packet of class EF from 10.77.0.1:4000 to 10.77.0.2:443, unmarked.
fn voice() -> Sample {
    Sample { udp: true, traffic_class: 46 << ECN_BITS | 1, ..Sample::default() }
}

fn net(text: &str) -> Option<IpNet> {
    Some(text.parse().expect("a network"))
}

fn whole(mark: u32) -> Mark {
    Mark::new(mark, u32::MAX)
}

fn ports(first: u16, last: u16) -> Vec<Ports> {
    vec![Ports { first: 9, last: 9 }, Ports { first, last }]
}

#[test]
fn a_rule_matches_what_it_names_and_leaves_the_rest_open() {
    let packet = voice().full();
    let inner = parse(&packet).expect("a packet");
    let table = [
        ("nothing named", Rule::default(), true),
        ("its class", Rule { dscp: Dscp::new(46), ..Rule::default() }, true),
        ("another class", Rule { dscp: Dscp::new(0), ..Rule::default() }, false),
        ("its protocol", Rule { protocol: Some(17), ..Rule::default() }, true),
        ("another protocol", Rule { protocol: Some(6), ..Rule::default() }, false),
        ("its source", Rule { source: net("10.77.0.1/32"), ..Rule::default() }, true),
        ("its destination as a source", Rule { source: net("10.77.0.2/32"), ..Rule::default() }, false),
        ("its destination", Rule { destination: net("10.77.0.0/24"), ..Rule::default() }, true),
        ("the other version", Rule { destination: net("::/0"), ..Rule::default() }, false),
        ("its source port", Rule { ports: ports(4_000, 4_000), ..Rule::default() }, true),
        ("a range around its destination port", Rule { ports: ports(400, 500), ..Rule::default() }, true),
        ("other ports", Rule { ports: ports(444, 3_999), ..Rule::default() }, false),
        ("its mark", Rule { mark: Some(whole(7)), ..Rule::default() }, true),
        ("a bit of its mark", Rule { mark: Some(Mark::new(4, 4)), ..Rule::default() }, true),
        ("another mark", Rule { mark: Some(whole(8)), ..Rule::default() }, false),
        ("one right, one wrong", Rule { dscp: Dscp::new(46), protocol: Some(6), ..Rule::default() }, false),
    ];
    for (what, rule, expected) in table {
        assert_eq!(rule.matches(&inner, whole(7)), expected, "{what}");
    }
}

#[test]
fn ports_match_no_fragment_and_no_ping() {
    let rule = Rule { ports: vec![Ports { first: 0, last: u16::MAX }], ..Rule::default() };
    let whole = parse(&voice().full()).expect("a packet");
    assert!(rule.matches(&whole, Mark::default()));
    for transport in [Transport::Fragment, Transport::Icmp] {
        assert!(!rule.matches(&Inner { transport, ..whole }, Mark::default()), "{transport:?}");
    }
    assert!(!rule.matches(&Inner { ports: None, ..whole }, Mark::default()));
}

#[test]
fn the_first_match_wins_and_the_rest_gets_what_holds_for_all() {
    let treated = |scheduler| Treatment { scheduler, ..Treatment::default() };
    let rule = |protocol, scheduler| Rule { protocol, treatment: treated(scheduler), ..Rule::default() };
    let rules = Rules::new(vec![rule(Some(17), Kind::Redundant), rule(Some(17), Kind::Flow)], treated(Kind::Weighted));
    let of = |sample: Sample| rules.treatment(&parse(&sample.full()).expect("a packet"), Mark::default()).scheduler;
    assert_eq!(of(voice()), Kind::Redundant);
    assert_eq!(of(Sample::default()), Kind::Weighted);
    let place = |sample: Sample| rules.place(&parse(&sample.full()).expect("a packet"), Mark::default());
    assert_eq!((place(voice()), place(Sample::default())), (Some(0), None));
    assert_eq!(
        Rules::default().treatment(&parse(&voice().full()).expect("a packet"), Mark::default()),
        Treatment::default()
    );
}

#[test]
fn there_are_64_classes() {
    assert_eq!((Dscp::new(0), Dscp::new(63).is_some(), Dscp::new(64)), (Some(Dscp(0)), true, None));
}
