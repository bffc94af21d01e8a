//! What a speed test found: as JSON, and as people read it.

use std::fmt::Write as _;

use hawser_portal::api::SpeedDirection;
use serde::Serialize;

use crate::cmd::table::{Align, aligned, bytes};

/// Counted up when a field changes its meaning or goes.
const SCHEMA: u32 = 1;

/// Both directions. Plain data.
#[derive(Debug, Serialize)]
pub struct Report {
    schema: u32,
    peer: String,
    link: Option<String>,
    budget_bytes: u64,
    pub directions: Vec<DirectionReport>,
}

/// One direction. Plain data.
#[derive(Debug, Serialize)]
pub struct DirectionReport {
    pub direction: SpeedDirection,
    /// Of all links together, in Mbit/s of IP packets.
    pub rate_mbps: f64,
    /// Bytes of IP packets that arrived.
    pub bytes: u64,
    pub links: Vec<LinkReport>,
    /// What limits, in a sentence.
    pub limit: String,
}

/// One path. Plain data.
#[derive(Debug, Serialize)]
pub struct LinkReport {
    pub link: String,
    pub rate_mbps: f64,
    pub rtt_idle_ms: Option<f64>,
    pub rtt_loaded_ms: Option<f64>,
}

impl Report {
    pub fn new(peer: &str, link: Option<&str>, budget_bytes: u64) -> Self {
        let (peer, link) = (peer.to_owned(), link.map(str::to_owned));
        Report { schema: SCHEMA, peer, link, budget_bytes, directions: Vec::new() }
    }

    /// In a sentence.
    pub fn summary(&self) -> String {
        let link = |link: &LinkReport| format!("{} {:.1}", link.link, link.rate_mbps);
        let one = |found: &DirectionReport| {
            let links: Vec<String> = found.links.iter().map(link).collect();
            format!("{} {:.1} Mbit/s ({})", found.direction, found.rate_mbps, links.join(", "))
        };
        let directions: Vec<String> = self.directions.iter().map(one).collect();
        format!("the links to {} carry {}", self.peer, directions.join(", "))
    }
}

/// A table for each direction, and what limits it.
pub fn render(report: &Report) -> String {
    let mut text = String::new();
    let head = ["link", "Mbit/s", "RTT idle ms", "RTT loaded ms"].map(str::to_owned);
    let trip = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"));
    for found in &report.directions {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{} ({})", found.direction, bytes(found.bytes));
        let mut rows = vec![head.clone()];
        rows.extend(found.links.iter().map(|link| {
            [link.link.clone(), format!("{:.1}", link.rate_mbps), trip(link.rtt_idle_ms), trip(link.rtt_loaded_ms)]
        }));
        if report.link.is_none() {
            rows.push(["bond".to_owned(), format!("{:.1}", found.rate_mbps), String::new(), String::new()]);
        }
        aligned(&mut text, [Align::Left, Align::Right, Align::Right, Align::Right], &rows);
        let _ = writeln!(text, "  what limits: {}", found.limit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_reads_as_a_table_for_each_direction() {
        let link = |name: &str, rate_mbps, rtt_loaded_ms| LinkReport {
            link: name.to_owned(),
            rate_mbps,
            rtt_idle_ms: Some(20.0),
            rtt_loaded_ms,
        };
        let mut report = Report::new("hub", None, 100);
        report.directions.push(DirectionReport {
            direction: SpeedDirection::Down,
            rate_mbps: 60.5,
            bytes: 1 << 20,
            links: vec![link("dsl", 50.0, Some(35.25)), link("lte", 10.5, None)],
            limit: "the links: dsl is full".to_owned(),
        });
        let expected = "down (1.0 MiB)\n\
            \x20 link  Mbit/s  RTT idle ms  RTT loaded ms\n\
            \x20 dsl     50.0         20.0           35.2\n\
            \x20 lte     10.5         20.0              -\n\
            \x20 bond    60.5\n\
            \x20 what limits: the links: dsl is full\n";
        assert_eq!(render(&report), expected);
    }
}
