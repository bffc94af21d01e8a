//! Topology files: each topologies/NAME.toml must give what NAME.golden says, what was understood or its faults.

use std::path::{Path, PathBuf};

use hawser_lab::localnet::{LinkKind, Topology};
use hawser_lab::scenario::FileError;

#[path = "../../../hawser-config/tests/support/damaged.rs"]
mod damaged;
#[path = "../../../hawser-config/tests/support/golden.rs"]
mod golden;

/// Fewer pairs than this mean that the folder was not found or not read.
const PAIRS_MIN: usize = 6;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/localnet/topologies")
}

fn read(text: &str, name: &str) -> Result<Topology, FileError> {
    Topology::parse(text, name, Some(&folder()), None)
}

#[test]
fn every_topology_gives_its_golden_answer() {
    golden::assert_golden(&golden::inputs(&folder(), PAIRS_MIN), |text, name| match read(text, name) {
        Ok(topology) => format!("{topology:#?}\n"),
        Err(FileError::Faulty { errors, .. }) => golden::render(&errors),
        Err(error) => panic!("{error}"),
    });
}

#[test]
fn a_damaged_topology_is_answered_with_places_inside_it() {
    // Four times: at each place each kind of damage.
    damaged::assert_places(&vec![folder().join("whole.toml"); 4], |damaged| match read(damaged, "damaged.toml") {
        Err(FileError::Faulty { errors, .. }) if !errors.is_empty() => errors,
        other => other.map(|_| Vec::new()).expect("it is read, or has faults"),
    });
}

#[test]
fn the_documentations_topology_is_right() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scion.md");
    let page = std::fs::read_to_string(page).expect("the documentation is there");
    let section = page.split("## A SCION network on one machine").nth(1).expect("it has the section");
    let example = section.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let example = example.expect("it has an example");
    match read(example, "docs/scion.md") {
        Ok(topology) => assert_eq!((topology.ases.len(), topology.links.len()), (3, 3)),
        Err(FileError::Faulty { errors, .. }) => panic!("{}", golden::render(&errors)),
        Err(error) => panic!("{error}"),
    }
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
