//! SCION networks of the reference services. Needs root, and go to build the services once (`make scion`).

mod networks;

use hawser_lab::localnet::{LinkKind, Topology};

const PAGE: &str = include_str!("../../../../docs/scion.md");

#[test]
fn the_documentations_topology_is_right() {
    let section = PAGE.split("## A SCION network on one machine").nth(1).expect("it has the section");
    let example = section.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let example = example.expect("it has an example");
    let topology = Topology::parse(example, "docs/scion.md", None, None).unwrap_or_else(|error| panic!("{error:#?}"));
    assert_eq!((topology.ases.len(), topology.links.len()), (3, 3));
}

#[test]
fn topologies_that_come_along_are_found_by_name_and_others_are_not() {
    let two = Topology::named("two-cores", Some(4)).expect("it comes along");
    let names: Vec<&str> = two.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(names, ["c1", "c2", "c3", "c4"]);
    let six = Topology::named("six-as", None).expect("it comes along");
    let of = |kind| six.links.iter().filter(|link| link.kind == kind).count();
    assert_eq!((six.ases.len(), of(LinkKind::Core), of(LinkKind::Child), of(LinkKind::Peer)), (6, 3, 5, 1));
    let error = Topology::named("six-ass", None).expect_err("there is none");
    assert_eq!(error.hint().as_deref(), Some("did you mean six-as?"));
    let error = Topology::named("elsewhere/net.toml", None).expect_err("there is none");
    assert_eq!(error.to_string(), "read topology elsewhere/net.toml");
}
