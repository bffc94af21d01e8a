//! Scenarios and SCION networks as files: each NAME.toml must give what NAME.golden beside it says, what was understood
//! or its faults. And the scenarios that come with Hawser: each says what it re-examines, is understood by those who
//! carry it out, and can be built.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use hawser_lab::contender::Programs;
use hawser_lab::experiment;
use hawser_lab::localnet::Topology;
use hawser_lab::scenario::{self, Case, Column, FileError, PlotKind, Profile, Published, Scenario, profiles};
use hawser_lab::stage::Stage;

#[path = "../../../hawser-config/tests/support/damaged.rs"]
mod damaged;
#[path = "../../../hawser-config/tests/support/golden.rs"]
mod golden;

const PAGE: &str = include_str!("../../../../docs/scenarios.md");
/// What is understood of a text, under this name and with this folder's files.
type Read = fn(&str, &str, &Path) -> Result<String, FileError>;
/// Below tests/; fewer pairs than this mean that the folder was not found or not read.
const FOLDERS: [(&str, usize, Read); 2] = [("scenario", 8, scenario), ("localnet/topologies", 6, topology)];
/// Cases of the MPTCP testbed. Source: Barreira 2014, section 6.1. F.1 to F.3 and G.1 to G.3 are four tests each.
const TESTBED: [(char, u32); 7] = [('A', 8), ('B', 7), ('C', 8), ('D', 8), ('E', 6), ('F', 9), ('G', 3)];
/// Ours beside them: three interfaces, where the testbed has two.
const THREE_INTERFACES: &str = "AB";
/// What each group re-examines, and how many figures its source prints that ours can stand beside, at least.
const PUBLISHED: [(&str, usize); 13] = [
    ("testbed-throughput", 10),
    ("testbed-mobile", 6),
    ("testbed-congested", 18),
    ("testbed-recovery", 9),
    ("testbed-mobile-recovery", 6),
    ("testbed-directions", 24),
    ("testbed-five-clients", 72),
    ("testbed-handovers", 9),
    ("aggregation-latency", 3),
    ("aggregation-reordering", 3),
    ("environments-http3", 94),
    ("shila-paths", 25),
    ("shila-quic", 6),
];

fn scenario(text: &str, name: &str, folder: &Path) -> Result<String, FileError> {
    let scenario = Scenario::parse(text, name, Some(folder))?;
    Ok(format!("{:#?}\n", Scenario { text: String::new(), traces: BTreeMap::new(), ..scenario }))
}

fn topology(text: &str, name: &str, folder: &Path) -> Result<String, FileError> {
    Ok(format!("{:#?}\n", Topology::parse(text, name, Some(folder), None)?))
}

fn below(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder)
}

fn all() -> Vec<Scenario> {
    scenario::all().expect("embedded scenarios")
}

fn named(name: &str) -> Scenario {
    scenario::find(name, None).unwrap_or_else(|error| panic!("{name}: {error}")).remove(0)
}

#[test]
fn every_file_gives_its_golden_answer() {
    for (folder, pairs_min, read) in FOLDERS {
        let folder = below(folder);
        golden::assert_golden(&golden::inputs(&folder, pairs_min), |text, name| match read(text, name, &folder) {
            Ok(understood) => understood,
            Err(FileError::Faulty { errors, .. }) => golden::render(&errors),
            Err(error) => panic!("{error}"),
        });
    }
}

#[test]
fn a_damaged_file_is_answered_with_places_inside_it() {
    for (folder, _, read) in FOLDERS {
        let folder = below(folder);
        // As often as there are kinds of damage: each at each place.
        damaged::assert_places(&vec![folder.join("whole.toml"); 4], |text| match read(text, "damaged.toml", &folder) {
            Err(FileError::Faulty { errors, .. }) if !errors.is_empty() => errors,
            other => other.map(|_| Vec::new()).expect("it is read, or has faults"),
        });
    }
}

#[test]
fn the_documentations_scenario_is_right() {
    let example = PAGE.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("it has an example");
    // The name of a file in it stands for any.
    let example = example.replace("file.trace", "short.trace");
    let read = Scenario::parse(&example, "docs/scenarios.md", Some(&below("scenario")));
    assert_eq!(read.unwrap_or_else(|error| panic!("{error:#?}")).name, "proxy-two-equal");
}

#[test]
fn the_documentation_names_every_profile() {
    for Profile { name, about, .. } in profiles() {
        let row = format!("\n| `{name}` | {about} |");
        assert_eq!(PAGE.matches(&row).count(), 1, "docs/scenarios.md has{row}");
    }
}

#[test]
fn each_says_what_it_re_examines_where_that_was_published_and_how_it_is_shown() {
    for scenario in all() {
        let name = &scenario.name;
        assert!(scenario.finding.trim().ends_with('.') && scenario.finding.len() > 60, "{name} states no finding");
        assert!(scenario.source.contains("20"), "{name} does not say when its source appeared: {}", scenario.source);
        assert!(!scenario.tables.is_empty(), "{name} has no table");
        assert!(!scenario.plots.is_empty(), "{name} has no plot");
        // Of the group `drives` each is a drive: `drive-download`.
        let of_group = [&scenario.group, scenario.group.trim_end_matches('s')].map(|group| format!("{group}-"));
        assert!(of_group.iter().any(|start| name.starts_with(start)), "{name} is not of group {}", scenario.group);
    }
}

#[test]
fn the_groups_are_those_that_are_promised() {
    let groups: BTreeSet<String> = all().into_iter().map(|scenario| scenario.group).collect();
    let groups = groups.into_iter().collect::<Vec<_>>().join(" ");
    let promised = "aggregation bench bond drives environments links proxy scion shila shim testbed watched";
    assert_eq!(groups, promised);
}

#[test]
fn the_testbed_has_every_case_of_the_original_with_hawser_beside_it() {
    let testbed: Vec<Scenario> = all().into_iter().filter(|scenario| scenario.group == "testbed").collect();
    let cases: BTreeSet<String> =
        testbed.iter().flat_map(|scenario| &scenario.cases).map(|case| case.name.clone()).collect();
    let of_group = |(group, last): (char, u32)| (1..=last).map(move |n| format!("{group}.{n}"));
    let wanted: BTreeSet<String> =
        TESTBED.into_iter().flat_map(of_group).chain([THREE_INTERFACES.to_owned()]).collect();
    assert_eq!(cases, wanted);
    for case in testbed.iter().flat_map(|scenario| &scenario.cases) {
        assert!(case.contenders.iter().any(|label| label == "hawser"), "{}: no Hawser in the row", case.name);
        assert!(case.contenders.len() > 1, "{}: nothing beside Hawser", case.name);
    }
}

#[test]
fn every_published_figure_is_there_and_shown_in_a_table() {
    for (name, least) in PUBLISHED {
        let there = named(name).published.len();
        assert!(there >= least, "{name}: {there} of {least} published figures");
    }
    for Scenario { name, published, tables, .. } in all() {
        for Published { case, contender, metric, .. } in &published {
            let is_theirs = |label: &Option<String>| label.as_ref().is_none_or(|label| label == contender);
            let is_its = |column: &Column| column.published && column.metric == *metric && is_theirs(&column.contender);
            let mut of_case = tables.iter().filter(|table| table.cases.is_empty() || table.cases.contains(case));
            let shown = of_case.any(|table| table.columns.iter().any(is_its));
            assert!(shown, "{name}: {metric} of {contender} in {case} is in no table");
        }
    }
}

#[test]
fn a_plot_over_x_names_its_axis_and_its_cases_have_an_x() {
    for scenario in all() {
        for plot in scenario.plots.iter().filter(|plot| plot.kind == PlotKind::Lines) {
            assert!(plot.axis.is_some(), "{}: {} names no axis", scenario.name, plot.title);
            let shown = |case: &&Case| plot.cases.is_empty() || plot.cases.contains(&case.name);
            for case in scenario.cases.iter().filter(shown) {
                assert!(case.x.is_some(), "{}: case {} has no x for {}", scenario.name, case.name, plot.title);
            }
        }
    }
}

#[test]
fn the_sixteen_environments_are_those_that_were_published() {
    let http3 = named("environments-http3");
    let mut spreads: BTreeMap<u128, Vec<&str>> = BTreeMap::new();
    for case in &http3.cases {
        let [a, b] = case.links.as_slice() else { panic!("{} has two links", case.name) };
        spreads.entry(b.down.delay.saturating_sub(a.down.delay).as_millis()).or_default().push(&case.name);
    }
    // RTT spread as the report prints it, which it takes from the one-way delays.
    let table: [(u128, &[&str]); 9] = [
        (0, &["baseline", "jit_5", "jit_20", "loss_05", "loss_2", "bw_4to1", "bw_10to1"]),
        (10, &["congested"]),
        (15, &["dual_lte", "lte_starlink"]),
        (20, &["rtt_40"]),
        (32, &["fiber_lte"]),
        (50, &["rtt_70"]),
        (100, &["rtt_120"]),
        (285, &["lte_geo"]),
        (300, &["rtt_320"]),
    ];
    assert_eq!(spreads, BTreeMap::from(table.map(|(spread, names)| (spread, names.to_vec()))));
}

#[test]
fn the_handbook_names_every_scenario() {
    let handbook = include_str!("../../../../docs/lab.md");
    for scenario in all() {
        assert!(handbook.contains(&format!("`{}`", scenario.name)), "docs/lab.md does not name {}", scenario.name);
    }
}

#[test]
fn those_who_carry_it_out_understand_every_option() {
    let programs = Programs { hawser: "hawser".into(), cache: "tools".into() };
    for scenario in all() {
        let made = experiment::executor(&scenario, Path::new("results"), &programs);
        made.map(drop).unwrap_or_else(|error| panic!("{}: {error}", scenario.name));
    }
}

/// One case of each group, those with most in their networks; the program `stages` builds them all.
#[test]
fn networks_are_built_as_their_files_say() {
    let table = [
        ("testbed-congested", "E.2", 2, 3),
        ("testbed-handovers", "F.4", 2, 0),
        ("proxy-more-links", "8x1MB", 8, 0),
        ("proxy-ipv6-over-ipv4", "2x1MB", 2, 0),
        ("aggregation-reordering", "both 300", 2, 0),
        ("environments-http3", "lte_geo", 2, 0),
    ];
    for (name, of, links, bystanders) in table {
        let scenario = named(name);
        let case = scenario.cases.iter().find(|case| case.name == of).unwrap_or_else(|| panic!("{name} has no {of}"));
        let stage = Stage::build(&scenario.network, case, 1).unwrap_or_else(|error| panic!("{name} {of}: {error}"));
        assert_eq!((stage.links.len(), stage.bystanders.len()), (links, bystanders), "{name} {of}");
        for (place, link) in stage.links.iter().enumerate() {
            assert_eq!(stage.is_up(place), !case.absent.contains(&link.name), "{name} {of}: {}", link.name);
        }
    }
}
