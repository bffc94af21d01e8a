//! Hawser as a contender of the lab: two real portals on a stage. Needs root.

#[path = "../../hawser-lab/tests/contenders/ground.rs"]
#[expect(dead_code, reason = "what other contenders are asked")]
mod ground;
#[path = "../../hawser-wire/tests/common/measured.rs"]
mod measured;

use std::time::Duration;

use ground::{Ground, HOUSEKEEPING, Shape};
use hawser_lab::LabError;
use measured::measured;

/// Long enough for a stream to leave its start behind.
const TRANSFER: Duration = Duration::from_secs(3);

/// What `.ci/tests` runs with nothing beside.
mod alone {
    use super::*;

    #[test]
    fn two_links_carry_more_than_one_and_the_stage_is_left_as_it_was() {
        let table = [
            (Shape::default(), ""),
            (Shape { lan: true, ..Shape::default() }, "transport = \"tcp\"\ntcp-congestion = \"cubic\""),
            (
                Shape { ipv6: true, ..Shape::default() },
                "transport = { eth = \"ip\" }\nscheduler = \"weighted\"\ncongestion = \"cubic\"",
            ),
            (Shape { nat: true, ..Shape::default() }, "congestion = \"olia\""),
            (Shape { server_links: true, ..Shape::default() }, "fec = \"auto\"\nprotection = \"authenticate\""),
        ];
        for (shape, options) in &table {
            measured(|| {
                let ground = Ground::new(shape, &[("wifi", 20.0), ("eth", 20.0)]);
                let contest = ground.up("hawser", options);
                let roles: Vec<_> = contest.offer.programs.iter().map(|program| program.role).collect();
                assert_eq!(roles, ["local", "remote"]);
                contest.assert_both_ways();
                let mbps = contest.rate(TRANSFER);
                assert!(mbps > 22.0, "{mbps} Mbit/s over two links of 20, {options:?}: {shape:?}");
                contest.down();
            });
        }
    }
}

/// Bytes of a full-size MTU probe each way: only an active path sends them, and challenges are small.
const MTU_PROBES: u64 = 2_900;

#[test]
fn a_link_that_is_absent_at_first_joins_when_it_comes() {
    let shape = Shape { absent: vec!["eth"], ..Shape::default() };
    let ground = Ground::new(&shape, &[("wifi", 20.0), ("eth", 20.0)]);
    let contest = ground.up("hawser", "links = { eth = { weight = 2 } }");
    contest.assert_both_ways();
    let before = contest.carried("eth");
    assert!(before < HOUSEKEEPING);
    let eth = ground.stage.index("eth").expect("it is a link");
    ground.stage.restore(eth).expect("it comes");
    contest.await_carried("eth", before + MTU_PROBES);
    // The stage had the link down before.
    ground.stage.cut(eth).expect("it goes");
    contest.down();
}

#[test]
fn metrics_of_links_are_hawsers() {
    let shape = Shape { metrics: vec![0, 1], ..Shape::default() };
    let ground = Ground::new(&shape, &[("wifi", 20.0), ("eth", 20.0)]);
    let contest = ground.up("hawser", "");
    contest.assert_both_ways();
    assert!(contest.carried("wifi") > 10 * contest.carried("eth"), "the second link waits for the first to fail");
    contest.down();
}

#[test]
fn portals_that_refuse_their_configuration_say_why() {
    let ground = Ground::new(&Shape::default(), &[("wifi", 20.0)]);
    let before = ground.state();
    let error = ground.refused("hawser", "scheduler = \"fastest\"");
    assert!(matches!(error, LabError::Process { .. }), "{error}");
    let said = error.to_string();
    assert!(said.contains("ended") && said.contains("fastest"), "{said}");
    assert_eq!(ground.state(), before);
}
