//! The bypass's status, for people and for programs.

use std::fmt::Write as _;

use hawser_scion::xdp::{Allowed, Left, Status};
use serde_json::{Map, Value, json};

/// For people: where it runs, for whom, and what became of packets; reasons that never were are not shown.
pub fn render(status: &Status) -> String {
    if status.interfaces.is_empty() && status.ports.is_empty() {
        return "not attached\n".to_owned();
    }
    let mut text = String::new();
    if status.interfaces.is_empty() {
        text.push_str("not attached, but ports are leased\n");
    }
    let width = status.interfaces.iter().map(|on| on.interface.chars().count()).max().unwrap_or(0);
    for on in &status.interfaces {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{:<width$}  {}", on.interface, on.mode);
    }
    text.push_str("\nports\n");
    if status.ports.is_empty() {
        text.push_str("  none: every packet goes to the dispatcher\n");
    }
    status.ports.iter().for_each(|allowed| port(&mut text, allowed));
    let counters = &status.counters;
    text.push_str("\npackets\n");
    let mut rows = vec![("all".to_owned(), counters.packets), ("forwarded".to_owned(), counters.forwarded)];
    rows.push(("left to the dispatcher".to_owned(), counters.left_alone()));
    let reasons = Left::ALL.into_iter().map(|reason| (format!("  {}", reason.word()), counters.left_for(reason)));
    rows.extend(reasons.filter(|(_, count)| *count > 0));
    for (name, count) in rows {
        let _ = writeln!(text, "  {name:<23}{count:>12}");
    }
    text
}

fn port(text: &mut String, allowed: &Allowed) {
    let address = match allowed.address {
        address if address.is_unspecified() && address.is_ipv4() => "any IPv4 address".to_owned(),
        address if address.is_unspecified() => "any IPv6 address".to_owned(),
        address => address.to_string(),
    };
    let owner = allowed.process.map_or_else(|| "attach --port".to_owned(), |process| format!("process {process}"));
    let socket = if allowed.open { "" } else { ", no socket" };
    let _ = writeln!(text, "  {:<5}  {address}  {owner}{socket}", allowed.port);
}

/// For programs: one object, always with every field.
pub fn json(status: &Status) -> String {
    let counters = &status.counters;
    let reasons =
        Left::ALL.into_iter().map(|reason| (reason.word().replace(' ', "_"), counters.left_for(reason).into()));
    let reasons: Map<String, Value> = reasons.collect();
    let interfaces = status.interfaces.iter();
    let interfaces = interfaces.map(|on| json!({ "interface": on.interface, "mode": on.mode.to_string() }));
    let ports = status.ports.iter().map(|allowed| {
        json!({
            "address": allowed.address,
            "port": allowed.port,
            "process": allowed.process,
            "open": allowed.open,
        })
    });
    let object = json!({
        "interfaces": interfaces.collect::<Vec<Value>>(),
        "ports": ports.collect::<Vec<Value>>(),
        "packets": counters.packets,
        "forwarded": counters.forwarded,
        "left_alone": counters.left_alone(),
        "left": reasons,
    });
    format!("{object:#}\n")
}

#[cfg(test)]
mod tests {
    use hawser_scion::xdp::{Mode, On};

    use super::*;

    fn status() -> Status {
        let interfaces = vec![
            On { interface: "eth0".into(), mode: Mode::Native },
            On { interface: "lo".into(), mode: Mode::Generic },
        ];
        let allowed = |address: &str, port, process, open| Allowed {
            address: address.parse().expect("an address"),
            port,
            process,
            open,
        };
        let ports = vec![allowed("0.0.0.0", 443, None, false), allowed("10.0.0.1", 31000, Some(4711), true)];
        Status { interfaces, ports, ..Status::default() }
    }

    #[test]
    fn people_read_where_it_runs_and_for_whom() {
        let text = render(&status());
        let expected = "eth0  native\nlo    generic\n\nports\n  443    any IPv4 address  attach --port, no socket\n  \
                        31000  10.0.0.1  process 4711\n\npackets\n";
        assert!(text.starts_with(expected), "{text}");
        assert_eq!(render(&Status::default()), "not attached\n");
    }

    #[test]
    fn programs_read_every_field() {
        let value: Value = serde_json::from_str(&json(&status())).expect("it is JSON");
        assert_eq!(value["interfaces"][1], json!({ "interface": "lo", "mode": "generic" }));
        let port = json!({ "address": "10.0.0.1", "port": 31000, "process": 4711, "open": true });
        assert_eq!(value["ports"][1], port);
        assert_eq!((&value["packets"], &value["left"]["not_whitelisted"]), (&json!(0), &json!(0)));
        assert_eq!(value["left"].as_object().map(Map::len), Some(Left::ALL.len()));
    }
}
