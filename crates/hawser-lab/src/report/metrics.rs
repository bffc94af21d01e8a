//! What figures are called, what they are measured in, and which direction is good. docs/scenarios.md lists them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// Which figures are better. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// The larger ones.
    Higher,
    /// The smaller ones.
    Lower,
}

use Better::{Higher, Lower};

/// A metric as a reader knows it. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    /// In words.
    pub title: String,
    /// As text writes it; empty for a mere number.
    pub unit: &'static str,
    /// None where neither is.
    pub better: Option<Better>,
}

/// What [`KNOWN`] says of a metric. Plain data.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    words: String,
    better: Option<Better>,
}

/// Those whose words or direction do not follow from their names.
static KNOWN: LazyLock<BTreeMap<String, Words>> =
    LazyLock::new(|| toml::from_str(include_str!("metrics.toml")).expect("a test reads it"));

/// Ends of names: what follows the last of them is the unit. Longer ones first.
const UNITS: &[(&str, &str, Option<Better>)] = &[
    ("_s_per_gb", "s/GB", Some(Lower)),
    ("_mbps", "Mbit/s", Some(Higher)),
    ("_percent", "%", None),
    ("_packet_bytes", "bytes a packet", None),
    ("_packets_per_s", "packets/s", None),
    ("_per_s", "/s", Some(Higher)),
    ("_mib", "MiB", Some(Lower)),
    ("_ms", "ms", Some(Lower)),
    ("_us", "µs", Some(Lower)),
    ("_s", "s", Some(Lower)),
];

/// Beginnings of names that go on with a link's or host's own, and their words; neither direction is good.
const OWN: [(&str, &str); 7] = [
    ("share_", "share of"),
    ("link_", "carried by"),
    ("competitor_", "competitor"),
    ("then_", "goodput after"),
    ("before_", "handed before events to"),
    ("last_", "handed at last to"),
    ("queue_", "queue before"),
];

impl Metric {
    /// By its name; one that is not known is read by its unit.
    pub fn named(name: &str) -> Self {
        let (stem, unit, direction) = UNITS
            .iter()
            .find_map(|&(end, unit, better)| Some((name.strip_suffix(end)?, unit, better)))
            .unwrap_or((name, "", None));
        if let Some(Words { words, better }) = KNOWN.get(name) {
            return Self { title: words.clone(), unit, better: *better };
        }
        if let Some((own, words)) = OWN.iter().find_map(|(start, words)| Some((stem.strip_prefix(start)?, words))) {
            return Self { title: format!("{words} {own}"), unit, better: None };
        }
        Self { title: stem.replace('_', " "), unit, better: direction }
    }

    /// For an axis: with its unit, the first letter a capital.
    pub fn axis(&self) -> String {
        let mut letters = self.title.chars();
        let title: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
        if self.unit.is_empty() { title } else { format!("{title} ({})", self.unit) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_that_the_documentation_lists_is_known() {
        let text = include_str!("../../../../docs/scenarios.md");
        let findings = text.split("## Findings").nth(1).and_then(|text| text.split("\n## ").next());
        let rows = findings.expect("the list of findings").lines().filter(|line| line.starts_with("| `"));
        let columns = rows.filter_map(|row| row.split('|').nth(1));
        let names: Vec<&str> = columns.flat_map(|names| names.split('`').skip(1).step_by(2)).collect();
        assert!(names.len() > 20, "{names:?}");
        let has_own = |name: &str| name.starts_with("client_") || OWN.iter().any(|(start, _)| name.starts_with(start));
        for name in names {
            assert!(KNOWN.contains_key(name) || has_own(name), "{name} has no words");
        }
    }

    #[test]
    fn names_tell_unit_and_direction() {
        // name; axis, direction
        let rows = [
            ("goodput_mbps", "Goodput (Mbit/s)", Some(Higher)),
            ("cpu_local_s_per_gb", "Processor time, local end (s/GB)", Some(Lower)),
            ("rtt_p99_ms", "Round trip, 99th percentile (ms)", Some(Lower)),
            ("overhead_percent", "Overhead (%)", Some(Lower)),
            ("mos", "Mean opinion score", Some(Higher)),
            ("subflows", "Subflows", None),
            ("share_wifi", "Share of wifi", None),
            ("completion_p90_ms", "Completion p90 (ms)", Some(Lower)),
            ("competitor_tcp1_mbps", "Competitor tcp1 (Mbit/s)", None),
            ("link_eth_mbps", "Carried by eth (Mbit/s)", None),
            ("client_1_mbps", "Client 1 (Mbit/s)", Some(Higher)),
            ("flows", "Flows", None),
            ("requests_per_s", "Requests (/s)", Some(Higher)),
            ("before_spare_packets_per_s", "Handed before events to spare (packets/s)", None),
        ];
        for (name, axis, better) in rows {
            let metric = Metric::named(name);
            assert_eq!((metric.axis().as_str(), metric.better), (axis, better), "{name}");
        }
    }
}
