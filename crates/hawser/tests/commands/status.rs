//! `hawser status` against a control socket that answers.

use hawser_portal::api::{
    DataCapStatus, DnsStatus, FecStatus, LinkStatus, PathState, PathStatus, PeerStatus, Program, RuleStatus, SCHEMA,
    ScionStatus, Status,
};

use hawser_portal::limits::{Cause, Limit};

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use crate::asked::asked;

fn path(name: &str, state: PathState, rtt_ms: Option<f64>) -> PathStatus {
    let busy = state == PathState::Active;
    PathStatus {
        name: name.into(),
        transport: "udp".into(),
        state,
        reason: (state == PathState::NoRoute).then(|| "the interface is down".into()),
        interface: Some("eth0".into()),
        endpoint: busy.then(|| "198.51.100.7:4920".into()),
        metric: u16::from(!busy),
        rtt_ms,
        rate_mbps: if busy { 48.25 } else { 0.0 },
        loss_pct: if busy { 0.125 } else { 100.0 },
        cwnd_bytes: 123_456,
        mtu: 1472,
        rx_bytes: 5 << 30,
        tx_bytes: 999,
        without_gso: false,
        ..PathStatus::default()
    }
}

fn over_scion() -> PathStatus {
    let scion = ScionStatus {
        endpoint: "1-ff00:0:120,10.120.0.10:31000".into(),
        path: "1-ff00:0:110 1>2 1-ff00:0:120".into(),
        hops: 2,
        mtu: 1472,
    };
    PathStatus {
        transport: "scion".into(),
        endpoint: None,
        scion: Some(scion),
        ..path("as", PathState::Active, Some(20.0))
    }
}

fn status() -> Status {
    let hub = PeerStatus {
        refused: None,
        name: "hub".into(),
        handshake_age_s: Some(75.2),
        protection: Some("encrypt".into()),
        cipher: Some("aes-128-gcm".into()),
        protocol: Some("1.0".into()),
        rx_bytes: 5 << 30,
        tx_bytes: 2048,
        paths: vec![
            path("dsl", PathState::Active, Some(12.34)),
            path("lte-backup", PathState::NoRoute, None),
            over_scion(),
        ],
        names: vec![],
        fec: FecStatus {
            protected_packets: 4_000,
            repairs: 1_000,
            repair_bytes: 266_000,
            overhead_pct: 25.0,
            repaired_packets: 17,
        },
        queued_bytes: 0,
        limit: Some(limit()),
        speed_refused: false,
        hub: None,
    };
    let idle = PeerStatus {
        refused: Some("unknown_key".into()),
        name: "office".into(),
        handshake_age_s: None,
        protection: None,
        cipher: None,
        protocol: None,
        rx_bytes: 0,
        tx_bytes: 0,
        paths: vec![],
        names: vec![],
        fec: FecStatus::default(),
        queued_bytes: 0,
        limit: None,
        speed_refused: false,
        hub: None,
    };
    Status {
        schema: SCHEMA,
        version: "0.1.0".into(),
        uptime_s: 7_260.0,
        protocol: "1.1".into(),
        peers: vec![hub, idle],
        drops: [("replay".to_owned(), 3), ("unknown label".to_owned(), 1)].into(),
        scheduler: "weighted".into(),
        links: vec![
            LinkStatus { name: "dsl".into(), weight: 1, max_rate_mbps: None, data_cap: None, metric: 0, paused: false },
            LinkStatus {
                name: "lte-backup".into(),
                weight: 3,
                max_rate_mbps: Some(20.5),
                data_cap: Some(DataCapStatus { used_bytes: 6 << 30, cap_bytes: 5 << 30, reached: true }),
                metric: 0,
                paused: false,
            },
        ],
        rules: vec![
            RuleStatus {
                matches: "ef, udp".into(),
                scheduler: "adaptive".into(),
                via: vec!["dsl".into(), "lte-backup".into()],
                strict: true,
                priority: 2,
                sent_bytes: [("dsl".into(), 5 << 20), ("lte-backup".into(), 0)].into(),
                ..RuleStatus::default()
            },
            RuleStatus { matches: "everything else".into(), scheduler: "weighted".into(), ..RuleStatus::default() },
        ],
        dns: Some(DnsStatus {
            servers: ["10.77.0.1", "fd77::1"].map(|server| server.parse().expect("an address")).into(),
            domains: vec!["~.".into(), "home.example".into()],
            set_by: "systemd-resolved".into(),
        }),
        packet_busy_s: 12.5,
        ..Status::default()
    }
}

fn limit() -> Limit {
    let text = "the links: lte-backup has no route: the interface is down".to_owned();
    Limit { cause: Cause::Links, links: vec!["lte-backup".into()], text, rate_mbps: 1.5, paths: vec![] }
}

#[test]
fn people_get_a_table_with_units() {
    let out = asked(Program::Portal, status(), &["status"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let expected = "\
hawser 0.1.0, up 2 h 1 min
scheduler weighted
name servers 10.77.0.1, fd77::1 for every name, set by systemd-resolved
link lte-backup: weight 3, at most 20.5 Mbit/s, 6.0 GiB of 5.0 GiB this month, reached: no traffic until the month ends
rule ef, udp: adaptive, via dsl, lte-backup, strict, priority 2; sent 5.0 MiB by dsl, 0 B by lte-backup
rule everything else: weighted; sent nothing yet

peer hub: handshake 1 min 15 s ago, received 5.0 GiB, sent 2.0 KiB
  speaks protocol 1.0, this portal 1.1: what one of them alone knows is not used
  path        transport  state     metric      rtt         rate     loss     window   mtu  received   sent
  dsl         udp        active         0  12.3 ms  48.2 Mbit/s    0.1 %  120.6 KiB  1472   5.0 GiB  999 B
  lte-backup  udp        no route       1        -   0.0 Mbit/s  100.0 %  120.6 KiB  1472   5.0 GiB  999 B
  as          scion      active         0  20.0 ms  48.2 Mbit/s    0.1 %  120.6 KiB  1472   5.0 GiB  999 B
  dsl by eth0 to 198.51.100.7:4920
  lte-backup by eth0: the interface is down
  as by eth0
  as to 1-ff00:0:120,10.120.0.10:31000: 2 hops, mtu 1472: 1-ff00:0:110 1>2 1-ff00:0:120
  repairs: 17 packets came back; 1000 sent for 4000 packets, now 25 %
  what limits what is sent: the links: lte-backup has no route: the interface is down

peer office: no handshake yet, received 0 B, sent 0 B
  it answers, and does not know this portal's public key: on its side, sudo hawser peer list; on this one, hawser pubkey of the private key
  no paths

dropped: replay 3, unknown label 1
";
    assert_eq!(String::from_utf8_lossy(&out.stdout), expected);
}

#[test]
fn programs_get_the_document_as_it_was_sent() {
    let out = asked(Program::Portal, status(), &["status", "--json"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(serde_json::from_slice::<Status>(&out.stdout).expect("a status"), status());
}

#[test]
fn a_portal_without_peers_says_so() {
    let out = asked(Program::Portal, Status { version: "0.1.0".into(), ..Status::default() }, &["status"]);
    assert_eq!(String::from_utf8_lossy(&out.stdout), "hawser 0.1.0, up 0 s\nno peers\n");
}

#[test]
fn who_watches_goes_on_while_no_portal_is_there_and_ends_when_nobody_reads() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut watch = Command::new(env!("CARGO_BIN_EXE_hawser"));
    watch.args(["status", "--watch", "--socket"]).arg(folder.path().join("none.sock")).stdout(Stdio::piped());
    let mut watch = watch.spawn().expect("it runs");
    let mut lines = BufReader::new(watch.stdout.take().expect("a pipe")).lines();
    let asked: Vec<String> = (0..4).map(|_| lines.next().expect("a line").expect("text")).collect();
    assert!(asked[0].starts_with("error: ask portal at") && asked[2] == asked[0], "{asked:?}");
    drop(lines);
    assert!(watch.wait().expect("it ends").success());
}
