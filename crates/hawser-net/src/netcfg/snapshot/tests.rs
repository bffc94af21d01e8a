//! What facts lead to which events, as tables.

use super::*;

fn index(number: u32) -> IfIndex {
    IfIndex::new(number).unwrap()
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn link(number: u32, name: &str, up: bool) -> Fact {
    Fact::Link { index: index(number), name: name.into(), up }
}

fn gone(number: u32) -> Fact {
    Fact::LinkGone { index: index(number) }
}

fn address(number: u32, text: &str) -> Fact {
    Fact::Address { index: index(number), address: net(text), deprecated: false }
}

fn deprecated(number: u32, text: &str) -> Fact {
    Fact::Address { index: index(number), address: net(text), deprecated: true }
}

fn no_address(number: u32, text: &str) -> Fact {
    Fact::AddressGone { index: index(number), address: net(text) }
}

/// Events in a short form, so that tables stay readable.
fn short(events: &[LinkEvent]) -> Vec<String> {
    let name = |interface: &Interface| format!("{}/{}", interface.name, interface.index);
    let one = |event: &LinkEvent| match event {
        LinkEvent::Appeared(interface) => format!("appeared {}", name(interface)),
        LinkEvent::Up(interface) => format!("up {}", name(interface)),
        LinkEvent::Down(interface) => format!("down {}", name(interface)),
        LinkEvent::Gone(interface) => format!("gone {}", name(interface)),
        LinkEvent::AddressAdded(interface, net) => format!("+{net} {}", name(interface)),
        LinkEvent::AddressRemoved(interface, net) => format!("-{net} {}", name(interface)),
        LinkEvent::AddressDeprecated(interface, net) => format!("deprecated {net} {}", name(interface)),
        LinkEvent::AddressPreferred(interface, net) => format!("preferred {net} {}", name(interface)),
        LinkEvent::RoutesChanged => "routes".to_owned(),
    };
    events.iter().map(one).collect()
}

fn after(facts: Vec<Fact>) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for fact in facts {
        snapshot.learn(fact, &mut Vec::new());
    }
    snapshot
}

/// An interface that is up and has an address: where most stories begin.
fn eth0() -> Vec<Fact> {
    vec![link(2, "eth0", true), address(2, "10.0.0.1/24")]
}

#[test]
fn every_fact_tells_what_it_changes_and_no_more() {
    for (known, fact, want) in [
        (vec![], link(2, "eth0", false), vec!["appeared eth0/2"]),
        (vec![], link(2, "eth0", true), vec!["appeared eth0/2", "up eth0/2"]),
        (vec![link(2, "eth0", false)], link(2, "eth0", true), vec!["up eth0/2"]),
        (eth0(), link(2, "eth0", true), vec![]),
        (eth0(), link(2, "eth0", false), vec!["down eth0/2"]),
        (eth0(), gone(2), vec!["down eth0/2", "-10.0.0.1/24 eth0/2", "gone eth0/2"]),
        (vec![link(2, "eth0", false)], gone(2), vec!["gone eth0/2"]),
        (vec![], gone(2), vec![]),
        (eth0(), address(2, "10.0.0.1/24"), vec![]),
        (eth0(), address(2, "fd00::1/64"), vec!["+fd00::1/64 eth0/2"]),
        (eth0(), no_address(2, "10.0.0.1/24"), vec!["-10.0.0.1/24 eth0/2"]),
        (eth0(), no_address(2, "10.0.0.2/24"), vec![]),
        (vec![], address(2, "10.0.0.1/24"), vec![]),
        (vec![], no_address(2, "10.0.0.1/24"), vec![]),
        (eth0(), link(3, "eth0", true), vec!["appeared eth0/3", "up eth0/3"]),
        (
            eth0(),
            link(2, "lan", true),
            vec![
                "down eth0/2",
                "-10.0.0.1/24 eth0/2",
                "gone eth0/2",
                "appeared lan/2",
                "+10.0.0.1/24 lan/2",
                "up lan/2",
            ],
        ),
    ] {
        let (mut snapshot, mut events) = (after(known.clone()), Vec::new());
        snapshot.learn(fact.clone(), &mut events);
        assert_eq!(short(&events), want, "{known:?} then {fact:?}");
    }
}

#[test]
fn an_address_is_told_when_it_is_deprecated_and_when_it_is_no_longer() {
    let old = |more: Fact| vec![link(2, "eth0", true), more];
    for (known, fact, want) in [
        (eth0(), deprecated(2, "10.0.0.1/24"), vec!["deprecated 10.0.0.1/24 eth0/2"]),
        (old(deprecated(2, "fd00::1/64")), deprecated(2, "fd00::1/64"), vec![]),
        (old(deprecated(2, "fd00::1/64")), address(2, "fd00::1/64"), vec!["preferred fd00::1/64 eth0/2"]),
        (old(deprecated(2, "fd00::1/64")), no_address(2, "fd00::1/64"), vec!["-fd00::1/64 eth0/2"]),
        (
            vec![link(2, "eth0", true)],
            deprecated(2, "fd00::1/64"),
            vec!["+fd00::1/64 eth0/2", "deprecated fd00::1/64 eth0/2"],
        ),
        (vec![], deprecated(2, "fd00::1/64"), vec![]),
    ] {
        let (mut snapshot, mut events) = (after(known.clone()), Vec::new());
        snapshot.learn(fact.clone(), &mut events);
        assert_eq!(short(&events), want, "{known:?} then {fact:?}");
    }
}

#[test]
fn a_dump_tells_the_difference_to_what_is_known() {
    for (known, dump, want) in [
        (vec![], vec![], vec![]),
        (vec![], eth0(), vec!["appeared eth0/2", "+10.0.0.1/24 eth0/2", "up eth0/2"]),
        (eth0(), eth0(), vec![]),
        (eth0(), vec![], vec!["down eth0/2", "-10.0.0.1/24 eth0/2", "gone eth0/2"]),
        (
            eth0(),
            vec![link(2, "eth0", true), address(2, "10.0.0.9/24")],
            vec!["-10.0.0.1/24 eth0/2", "+10.0.0.9/24 eth0/2"],
        ),
        (eth0(), vec![link(2, "eth0", true), deprecated(2, "10.0.0.1/24")], vec!["deprecated 10.0.0.1/24 eth0/2"]),
        (
            vec![link(7, "eth0", true)],
            vec![link(5, "eth0", true)],
            vec!["down eth0/7", "gone eth0/7", "appeared eth0/5", "up eth0/5"],
        ),
    ] {
        let (mut snapshot, mut events) = (after(known.clone()), Vec::new());
        snapshot.replace(after(dump.clone()), &mut events);
        assert_eq!(short(&events), want, "{known:?} then {dump:?}");
        assert_eq!(snapshot, after(dump), "what is known is the dump");
    }
}
