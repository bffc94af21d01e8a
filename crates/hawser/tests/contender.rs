//! Hawser as a contender of the lab: two real portals on a stage. Needs root.

#[path = "../../hawser-lab/tests/contenders/ground.rs"]
#[expect(dead_code, reason = "what other contenders are asked")]
mod ground;
#[path = "../../hawser-wire/tests/common/measured.rs"]
mod measured;

use std::time::Duration;

use ground::{Ground, HOUSEKEEPING, IPV6};
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
            ("", ""),
            ("lan = true", "transport = \"tcp\"\ntcp-congestion = \"cubic\""),
            (IPV6, "transport = { eth = \"ip\" }\nscheduler = \"weighted\"\ncongestion = \"cubic\""),
            ("nat = true", "congestion = \"olia\""),
            ("server-links = true", "fec = \"auto\"\nprotection = \"authenticate\""),
        ];
        for (network, options) in table {
            measured(|| {
                let ground = Ground::new(network, &[("wifi", 20.0), ("eth", 20.0)]);
                let contest = ground.up("hawser", options);
                let roles: Vec<_> = contest.offer.programs.iter().map(|program| program.role).collect();
                assert_eq!(roles, ["local", "remote"]);
                contest.assert_both_ways();
                let mbps = contest.rate(TRANSFER);
                assert!(mbps > 22.0, "{mbps} Mbit/s over two links of 20, {options:?}: {network}");
                contest.down();
            });
        }
    }
}

/// Bytes of a full-size MTU probe each way: only an active path sends them, and challenges are small.
const MTU_PROBES: u64 = 2_900;

#[test]
fn a_link_that_is_absent_at_first_joins_when_it_comes() {
    let ground = Ground::new("", &[("wifi", 20.0), ("eth", 20.0)]);
    let eth = ground.stage.index("eth").expect("it is a link");
    ground.stage.cut(eth).expect("it is not there at first");
    let contest = ground.up("hawser", "links = { eth = { weight = 2 } }");
    contest.assert_both_ways();
    let before = contest.carried("eth");
    assert!(before < HOUSEKEEPING);
    ground.stage.restore(eth).expect("it comes");
    contest.await_carried("eth", before + MTU_PROBES);
    // The stage had the link down before.
    ground.stage.cut(eth).expect("it goes");
    contest.down();
}

#[test]
fn metrics_of_links_are_hawsers() {
    let link = |name, metric| format!("{{ name = \"{name}\", rate = \"20M\", delay = \"5ms\", metric = {metric} }}");
    let ground = Ground::new(&format!("link = [{}, {}]", link("wifi", 0), link("eth", 1)), &[]);
    let contest = ground.up("hawser", "");
    contest.assert_both_ways();
    assert!(contest.carried("wifi") > 10 * contest.carried("eth"), "the second link waits for the first to fail");
    contest.down();
}

#[test]
fn portals_that_refuse_their_configuration_say_why() {
    let ground = Ground::new("", &[("wifi", 20.0)]);
    let before = ground.state();
    let error = ground.refused("hawser", "scheduler = \"fastest\"");
    assert!(matches!(error, LabError::Process { .. }), "{error}");
    let said = error.to_string();
    assert!(said.contains("ended") && said.contains("fastest"), "{said}");
    assert_eq!(ground.state(), before);
}
