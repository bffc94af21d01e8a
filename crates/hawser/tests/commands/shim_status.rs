//! `hawser shim status` against a control socket that answers.

use hawser_net::daemon::Program;
use hawser_shim::status::{
    ConnectionStatus, FlowProtocol, FlowRole, FlowStatus, InterfaceStatus, PathStatus, ShareSample, ShimRole, Status,
};

use crate::asked::asked;

fn sample(share_pct: f64) -> ShareSample {
    ShareSample { share_pct, rate_mbps: 1.0 }
}

fn main_flow() -> FlowStatus {
    FlowStatus {
        protocol: FlowProtocol::Tcp,
        role: FlowRole::Main,
        state: "established".into(),
        local: "100.121.204.1:40000".parse().expect("it is one"),
        remote: "192.0.2.20:443".parse().expect("it is one"),
        interface: 1,
        endpoint: Some("1-ff00:0:120,10.120.0.10:31000".into()),
        path: Some(PathStatus {
            hops: "1-ff00:0:110 1>2 1-ff00:0:120".into(),
            length: 2,
            mtu: Some(1472),
            sharability: 0,
            latency_ms: Some(10.0),
            rtt_ms: Some(21.25),
            alive: true,
        }),
        moves: 1,
        rx_bytes: 3 << 20,
        tx_bytes: 999,
        rx_retransmissions: 2,
        tx_retransmissions: 1,
        share_pct: 75.0,
        share_now_pct: 60.4,
        shares: vec![sample(80.0), sample(60.0)],
    }
}

fn status() -> Status {
    let subflow = FlowStatus {
        role: FlowRole::Subflow,
        local: "100.121.204.2:40001".parse().expect("it is one"),
        interface: 2,
        path: Some(PathStatus {
            hops: String::new(),
            length: 1,
            mtu: None,
            sharability: 0,
            latency_ms: None,
            rtt_ms: None,
            alive: false,
        }),
        moves: 0,
        rx_bytes: 1 << 20,
        share_pct: 25.0,
        share_now_pct: 39.6,
        shares: vec![sample(20.0), sample(40.0)],
        ..main_flow()
    };
    let answered = FlowStatus { path: None, shares: Vec::new(), interface: 0, share_pct: 100.0, ..main_flow() };
    let connection = |token: Option<&str>, role, flows| ConnectionStatus {
        token: token.map(str::to_owned),
        role,
        peer: "1-ff00:0:120,10.120.0.10".into(),
        age_s: 75.0,
        sharability: 0,
        flows,
    };
    let interface = |index: u8, name: &str| InterfaceStatus {
        name: name.into(),
        index,
        addresses: vec![
            format!("fc00:1ff:0:1:10{index:02}:7918:a6e:a").parse().expect("it is one"),
            format!("100.121.204.{index}").parse().expect("it is one"),
        ],
    };
    Status {
        version: "0.1.0".into(),
        uptime_s: 7_260.0,
        local: "1-ff00:0:110,10.110.0.10:31000".into(),
        select: "sharability".into(),
        interfaces: vec![interface(0, "shim-in"), interface(1, "shim1"), interface(2, "shim2")],
        routes: 1,
        connections: vec![
            connection(Some("5eedc0de"), ShimRole::Client, vec![main_flow(), subflow]),
            connection(None, ShimRole::Server, vec![answered]),
        ],
        counters: [("drop_no_route".to_owned(), 3), ("probes".to_owned(), 7)].into(),
    }
}

#[test]
fn people_get_connections_with_flows_and_their_paths() {
    let out = asked(Program::Shim, status(), &["shim", "status"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let expected = "\
hawser 0.1.0, shim of 1-ff00:0:110,10.110.0.10:31000, up 2 h 1 min
paths by sharability, 1 route
  shim-in  fc00:1ff:0:1:1000:7918:a6e:a  100.121.204.0
  shim1    fc00:1ff:0:1:1001:7918:a6e:a  100.121.204.1
  shim2    fc00:1ff:0:1:1002:7918:a6e:a  100.121.204.2

connection 5eedc0de: client of 1-ff00:0:120,10.120.0.10, since 1 min 15 s, sharability 0
     flow     interface  local                remote          state        received   sent  again  share   now
  1  main     shim1      100.121.204.1:40000  192.0.2.20:443  established   3.0 MiB  999 B      3   75 %  60 %
  2  subflow  shim2      100.121.204.2:40001  192.0.2.20:443  established   1.0 MiB  999 B      3   25 %  40 %
  1: 2 ASes, mtu 1472, sharability 0, latency 10.0 ms, rtt 21.2 ms, moved 1 time: 1-ff00:0:110 1>2 1-ff00:0:120
  2: 1 AS, sharability 0, dead: within the AS
  1: share by the second in %, now last: 80 60
  2: share by the second in %, now last: 20 40

plain tcp: server of 1-ff00:0:120,10.120.0.10, since 1 min 15 s, sharability 0
     flow  interface  local                remote          state        received   sent  again  share   now
  1  main  shim-in    100.121.204.1:40000  192.0.2.20:443  established   3.0 MiB  999 B      3  100 %  60 %
  1: back the way that 1-ff00:0:120,10.120.0.10:31000 chose

counted: drop_no_route 3, probes 7
";
    assert_eq!(String::from_utf8_lossy(&out.stdout), expected);
}

#[test]
fn programs_get_the_document_as_it_was_sent() {
    let out = asked(Program::Shim, status(), &["shim", "status", "--json"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(serde_json::from_slice::<Status>(&out.stdout).expect("a status"), status());
}

#[test]
fn a_shim_without_connections_says_so() {
    let out = asked(Program::Shim, Status { connections: Vec::new(), ..status() }, &["shim", "status"]);
    assert!(String::from_utf8_lossy(&out.stdout).contains("\nno connections\n"));
}
