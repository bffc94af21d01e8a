//! The kernel's MPTCP: subflows are counted where they are, among the client's connections.

use std::net::SocketAddr;
use std::time::Duration;

use hawser_lab::LabError;
use hawser_lab::contender::Transport;
use hawser_lab::stage::Stage;
use hawser_wire::traffic::{Congestion, ConnectedFlows, Flows, Reliable, Timeline, Towards};
use hawser_wire::{Moment, Namespace};

use super::ground::{Contest, Ground, HOUSEKEEPING, IPV6, ip, run, until};

const PORT: u16 = 5002;
const PATIENCE: Duration = Duration::from_secs(10);

/// An MPTCP connection with this many subflows, which has not sent yet.
fn connection(contest: &Contest<'_>, stage: &Stage, subflows: usize) -> ConnectedFlows {
    assert_eq!(contest.offer.socket, Transport::Mptcp);
    let flows = Flows {
        client: stage.client.clone(),
        server: stage.server.clone(),
        destination: SocketAddr::new(contest.offer.ends.server, PORT),
        kind: Reliable { stack: Transport::Mptcp, congestion: Congestion::Cubic },
        towards: Towards::Server,
        count: 1,
    };
    let flows = flows.connect().expect("connects");
    await_subflows(&stage.client, subflows);
    flows
}

/// What the server gets of one whose client sends as fast as it may for so long.
fn stream(contest: &Contest<'_>, stage: &Stage, subflows: usize, duration: Duration) -> Timeline {
    let flows = connection(contest, stage, subflows);
    flows.start(Moment::now(), duration).and_then(|running| running.finish()).expect("it runs").all
}

/// Waits until there are this many subflows, and names their ends if that does not come.
fn await_subflows(client: &Namespace, wanted: usize) {
    let mut said = String::new();
    let are_there = until(PATIENCE, || {
        said = run(client, &format!("ss -Htn state established dport = :{PORT}"));
        said.lines().count() == wanted
    });
    assert!(are_there, "{wanted} subflows wanted, but:\n{said}");
}

#[test]
fn fullmesh_has_a_subflow_on_each_link_and_carries_more_than_one_link() {
    for network in ["", IPV6] {
        let ground = Ground::new(network, &[("wifi", 20.0), ("eth", 20.0)]);
        let contest = ground.up("mptcp", "");
        contest.assert_both_ways();
        let duration = Duration::from_secs(4);
        let got = stream(&contest, &ground.stage, 2, duration);
        let mbps = got.mbps_between(got.start(), got.start() + duration);
        assert!(mbps > 24.0, "{mbps} Mbit/s over two links of 20: {network}");
        contest.down();
    }
}

#[test]
fn there_is_a_subflow_for_each_pair_of_addresses_and_on_each_link_of_a_translated_client() {
    let options = "path-manager = \"fullmesh\"\nlink = \"eth\"";
    for (network, options, subflows) in [("server-links = true", options, 4), ("nat = true", "", 2)] {
        let ground = Ground::new(network, &[("wifi", 20.0), ("eth", 20.0)]);
        let contest = ground.up("mptcp", options);
        drop(connection(&contest, &ground.stage, subflows));
        contest.down();
    }
}

#[test]
fn ndiffports_has_three_subflows_on_one_link() {
    let ground = Ground::new("", &[("wifi", 20.0), ("eth", 20.0)]);
    for (options, subflows) in [("", 3), ("subflows = 2\nchecksums = true", 2)] {
        let contest = ground.up("mptcp", &format!("path-manager = \"ndiffports\"\nlink = \"eth\"\n{options}"));
        let got = stream(&contest, &ground.stage, subflows, Duration::from_secs(1));
        assert!(got.total_bytes() > 200_000, "{} bytes", got.total_bytes());
        assert!(contest.carried("wifi") < HOUSEKEEPING, "all are on one link: {}", contest.carried("wifi"));
        contest.down();
    }
}

#[test]
fn a_link_that_comes_gets_a_subflow_and_one_that_goes_loses_it() {
    let ground = Ground::new("", &[("wifi", 20.0), ("eth", 20.0)]);
    let eth = ground.stage.index("eth").expect("it is a link");
    ground.stage.cut(eth).expect("it is not there at first");
    let contest = ground.up("mptcp", "");
    let flows = connection(&contest, &ground.stage, 1);
    ground.stage.restore(eth).expect("it comes");
    await_subflows(&ground.stage.client, 2);
    ground.stage.cut(eth).expect("it goes");
    await_subflows(&ground.stage.client, 1);
    drop(flows);
    contest.down();
}

#[test]
fn the_named_link_is_the_first_whenever_it_is_up() {
    for network in ["", IPV6] {
        let ground = Ground::new(network, &[("wifi", 20.0), ("eth", 20.0)]);
        let eth = ground.stage.index("eth").expect("it is a link");
        ground.stage.cut(eth).expect("it is not there at first");
        let contest = ground.up("mptcp", "path-manager = \"default\"\nlink = \"eth\"");
        let first = || ip(&ground.stage.client, &format!("route get {}", contest.offer.ends.server));
        for _ in 0..2 {
            assert!(first().contains("dev wifi"), "{}", first());
            ground.stage.restore(eth).expect("it comes");
            assert!(first().contains("dev eth"), "{}", first());
            ground.stage.cut(eth).expect("it goes");
        }
        contest.down();
    }
}

#[test]
fn settings_are_the_kernels_while_it_is_up() {
    let ground = Ground::new("", &[("wifi", 20.0)]);
    let contest = ground.up("mptcp", "checksums = true\nsyn-retries = 2\nscheduler = \"default\"");
    for host in [&ground.stage.client, &ground.stage.server] {
        let table = [("mptcp/checksum_enabled", "1"), ("ipv4/tcp_syn_retries", "2"), ("mptcp/scheduler", "default")];
        for (key, value) in table {
            assert_eq!(host.sysctl(key).expect("this kernel has it"), value, "{key}");
        }
        assert_eq!(ip(host, "mptcp limits").trim_end(), "add_addr_accepted 8 subflows 8");
    }
    contest.down();
    let error = ground.refused("mptcp", "scheduler = \"nobody-wrote-it\"");
    assert_eq!(error.to_string(), "the kernel's MPTCP scheduler nobody-wrote-it is missing");
}

#[test]
fn hosts_behind_portals_cannot_have_it() {
    let ground = Ground::new("lan = true", &[("wifi", 20.0), ("eth", 20.0)]);
    let error = ground.refused("mptcp", "");
    assert!(matches!(error, LabError::Missing { .. }), "{error}");
}
