use super::*;
use crate::api::Condition;

#[test]
fn the_document_has_the_contracts_field_names() {
    let path = PathStatus {
        name: "dsl".into(),
        transport: "udp".into(),
        state: PathState::Active,
        reason: None,
        interface: Some("eth0".into()),
        endpoint: Some("198.51.100.7:4920".into()),
        metric: 0,
        rtt_ms: Some(12.5),
        rate_mbps: 48.0,
        loss_pct: 0.5,
        cwnd_bytes: 120_000,
        mtu: 1472,
        rx_bytes: 1,
        tx_bytes: 2,
        without_gso: false,
        instead_of: None,
        scion: None,
        live: Live { id: Some(3), condition: Condition::Degraded, rx_mbps: 1.5, ..Live::default() },
        load: PathLoad::default(),
    };
    let fec =
        FecStatus { protected_packets: 8, repairs: 2, repair_bytes: 600, overhead_pct: 25.0, repaired_packets: 1 };
    let peer = PeerStatus {
        name: "hub".into(),
        handshake_age_s: None,
        protection: None,
        cipher: None,
        protocol: None,
        refused: None,
        rx_bytes: 3,
        tx_bytes: 4,
        paths: vec![path],
        names: Vec::new(),
        fec,
        queued_bytes: 5,
        limit: None,
        speed_refused: false,
        hub: None,
    };
    let status = Status {
        schema: SCHEMA,
        version: "0.1.0".into(),
        uptime_s: 7.0,
        protocol: "1.1".into(),
        peers: vec![peer],
        drops: [("replay".to_owned(), 5)].into(),
        scheduler: "adaptive".into(),
        links: vec![LinkStatus {
            name: "dsl".into(),
            weight: 1,
            max_rate_mbps: Some(20.0),
            data_cap: Some(DataCapStatus { used_bytes: 6, cap_bytes: 7, reached: false }),
            metric: 2,
            paused: false,
        }],
        rules: Vec::new(),
        events_latest: 9,
        web: None,
        dns: None,
        packet_busy_s: 0.5,
        worker_busy_s: vec![0.25],
        draining: false,
        etcd: None,
    };
    let text = serde_json::to_string(&status).expect("it is plain data");
    assert_eq!(
        text,
        concat!(
            r#"{"schema":2,"version":"0.1.0","uptime_s":7.0,"protocol":"1.1","peers":[{"name":"hub","handshake_age_s":null,"#,
            r#""rx_bytes":3,"tx_bytes":4,"paths":[{"name":"dsl","transport":"udp","state":"active","interface":"eth0","endpoint":"198.51.100.7:4920","#,
            r#""metric":0,"rtt_ms":12.5,"#,
            r#""rate_mbps":48.0,"loss_pct":0.5,"cwnd_bytes":120000,"mtu":1472,"rx_bytes":1,"tx_bytes":2,"#,
            r#""live":{"id":3,"place":0,"condition":"degraded","condition_s":0.0,"rx_mbps":1.5,"tx_mbps":0.0,"share_pct":0.0,"#,
            r#""rtt_min_ms":null,"queue_ms":null,"active_set":false,"acked_packets":0,"lost_packets":0,"#,
            r#""retransmitted_bytes":0,"reinjected_bytes":0},"#,
            r#""load":{"in_flight_bytes":0,"idle_s":0.0,"barred":false,"delay_ms":0.0,"queue_ms":0.0,"#,
            r#""peak_mbps":0.0,"shares_queue":false}}],"fec":{"#,
            r#""protected_packets":8,"repairs":2,"repair_bytes":600,"overhead_pct":25.0,"repaired_packets":1},"queued_bytes":5}],"#,
            r#""drops":{"replay":5},"scheduler":"adaptive","links":[{"name":"dsl","weight":1,"max_rate_mbps":20.0,"#,
            r#""data_cap":{"used_bytes":6,"cap_bytes":7,"reached":false},"metric":2}],"events_latest":9,"packet_busy_s":0.5,"worker_busy_s":[0.25]}"#
        )
    );
    assert_eq!(serde_json::from_str::<Status>(&text).expect("it reads back"), status);
}

#[test]
fn a_path_that_is_only_late_works() {
    use PathState::{Active, Down, New, NoRoute, Suspect, Validating};
    let works = [New, Validating, Active, Suspect, Down, NoRoute].into_iter().filter(|state| state.works());
    assert!(works.eq([Active, Suspect]));
}

#[test]
fn a_state_is_shown_as_it_is_written() {
    use PathState::{Active, Down, New, NoRoute, Suspect, Validating};
    for state in [New, Validating, Active, Suspect, Down, NoRoute] {
        assert_eq!(serde_json::to_string(&state).expect("a word"), format!("\"{state}\""));
    }
}
