//! A made-up portal, the same for pictures without a terminal and in one.

use hawser_portal::api::{Events, Flows, Status};
use serde_json::{Value, json};

/// A path after this many seconds of these rates, received and sent.
fn path(name: &str, state: &str, second: u64, rates: (u64, u64)) -> Value {
    let down = state != "active";
    json!({
        "name": name, "transport": "udp", "state": state, "interface": format!("{name}0"),
        "endpoint": if down { Value::Null } else { json!("198.51.100.7:4920") },
        "reason": if down { json!("nothing comes back") } else { Value::Null },
        "metric": 0, "rtt_ms": if down { Value::Null } else { json!(12.34) }, "rate_mbps": 48.25,
        "loss_pct": if down { 0.0 } else { 2.5 }, "cwnd_bytes": 123_456, "mtu": 1472,
        "rx_bytes": second * rates.0, "tx_bytes": second * rates.1,
    })
}

/// The portal after this many seconds: a peer with two paths, a third one down, and one peer that was never there.
pub fn status(second: u64) -> Status {
    // The first path's rate goes up and down, so that there is something to see.
    let wave = second * 1_000_000 + second % 5 * 150_000;
    let mut dsl = path("dsl", "active", second, (0, 50_000));
    dsl["rx_bytes"] = json!(wave);
    let status = json!({
        "schema": 1, "version": "0.2.0", "uptime_s": 7_200 + second, "protocol": "1.1", "scheduler": "adaptive", "drops": {},
        "links": [
            {"name": "dsl", "weight": 1, "max_rate_mbps": null, "data_cap": null},
            {"name": "lte", "weight": 1, "max_rate_mbps": 20.0,
             "data_cap": {"used_bytes": 4u64 << 30, "cap_bytes": 5u64 << 30, "reached": false}},
        ],
        "peers": [
            {"name": "hub", "handshake_age_s": 75.2, "rx_bytes": wave + second * 450_000, "tx_bytes": second * 61_000, "paths": [
                dsl, path("lte", "active", second, (500_000, 12_000)), path("sat", "down", 0, (0, 0)),
            ]},
            {"name": "office", "handshake_age_s": null, "refused": "unknown_key", "rx_bytes": 0, "tx_bytes": 0, "paths": []},
        ],
    });
    serde_json::from_value(status).expect("a status")
}

/// A flow of a host behind the portal.
fn flow(protocol: &str, remote: (&str, u16), rule: Option<u16>, rates: (f64, f64)) -> Value {
    json!({
        "peer": "hub", "protocol": protocol, "local_address": "192.168.1.20", "local_port": 52_114,
        "remote_address": remote.0, "remote_port": remote.1, "rule": rule, "scheduler": "adaptive",
        "rx_bytes_per_s": rates.0, "tx_bytes_per_s": rates.1, "rx_bytes": 90_000_000, "tx_bytes": 2_000_000, "counted_s": 60.0,
        "paths": [{"name": "lte", "endpoint": "198.51.100.7:4920", "rx_bytes": 30_000_000, "tx_bytes": 0},
                  {"name": "dsl", "endpoint": "198.51.100.7:4920", "rx_bytes": 60_000_000, "tx_bytes": 2_000_000}],
    })
}

/// Its largest flows.
pub fn flows() -> Flows {
    let flows = json!({"schema": 1, "interval_s": 1.0, "flows": [
        flow("udp", ("203.0.113.9", 5060), Some(2), (11_000.0, 11_500.0)),
        flow("tcp", ("2001:db8:1234:5678:9abc:def0:1234:5678", 443), None, (1_300_000.0, 40_000.0)),
        flow("tcp", ("203.0.113.80", 80), None, (90_000.0, 2_000.0)),
    ]});
    serde_json::from_value(flows).expect("flows")
}

/// The present, in milliseconds since 1970.
pub const NOW_UNIX_MS: u64 = 1_700_000_000_000;

/// What happened to it until then.
pub fn events() -> Events {
    let event = |seq: u64, ago_s: u64, kind: &str, path: &str, cause: &str, count: u32| {
        json!({
            "seq": seq, "time_unix_ms": NOW_UNIX_MS - ago_s * 1_000, "kind": kind, "peer": if path.is_empty() { "" } else { "hub" },
            "path": path, "cause": cause, "count": count,
        })
    };
    let events = json!({"schema": 2, "started_unix_ms": NOW_UNIX_MS - 7_200_000, "latest": 7, "events": [
        event(1, 7_200, "portal_started", "", "", 1),
        event(2, 7_199, "link_up", "dsl", "", 1),
        event(3, 3_700, "degraded", "dsl", "loses 3.1 %", 4),
        event(5, 3_600, "recovered", "dsl", "", 1),
        event(7, 29, "cut", "sat", "nothing comes back", 1),
    ]});
    serde_json::from_value(events).expect("events")
}
