//! What figures are called, what they are measured in, and which direction is good. docs/scenarios.md lists them.

/// Which figures are better. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// Those whose words or direction do not follow from their names: name, words, which is better.
const KNOWN: &[(&str, &str, Option<Better>)] = &[
    ("goodput_mbps", "goodput", Some(Higher)),
    ("goodput_up_mbps", "goodput, up", Some(Higher)),
    ("goodput_down_mbps", "goodput, down", Some(Higher)),
    ("load_mbps", "goodput of the load beside it", Some(Higher)),
    ("missed_percent", "lost or late", Some(Lower)),
    ("delay_p99_ms", "one-way delay, 99th percentile", Some(Lower)),
    ("added_delay_p99_ms", "one-way delay beyond the fastest packet's, 99th percentile", Some(Lower)),
    ("capacity_mbps", "what the links could carry", None),
    ("capacity_percent", "share of what the links could carry", Some(Higher)),
    ("link_up_mbps", "sent by the link", None),
    ("link_down_mbps", "received by the link", None),
    ("longest_gap_ms", "longest gap", Some(Lower)),
    ("recovery_ms", "recovery time", Some(Lower)),
    ("outage_ms", "from the failure until goodput is back", Some(Lower)),
    ("links_recovery_ms", "recovery time of all links", Some(Lower)),
    ("gap_ms", "longest gap between the first event and the last", Some(Lower)),
    ("gap_back_ms", "longest gap after the last event", Some(Lower)),
    ("back_ms", "time until goodput is what it was", Some(Lower)),
    ("lost_pings", "pings lost between the first event and the last", Some(Lower)),
    ("lost_pings_back", "pings lost after the last event", Some(Lower)),
    ("duplicates", "packets that came twice", Some(Lower)),
    ("wire_mbps", "handed to all links", None),
    ("start_ms", "works after", Some(Lower)),
    ("most_kpps", "thousand packets a second, at most", Some(Higher)),
    ("hostile_per_s", "hostile datagrams", None),
    ("dropped_per_s", "packets dropped", None),
    ("machine_s_per_gb", "processor time of the machine", Some(Lower)),
    ("others_processors", "processors that others kept busy", None),
    ("cpu_s_per_gb", "processor time, both ends", Some(Lower)),
    ("memory_idle_mib", "memory while idle", Some(Lower)),
    ("memory_mib", "memory at the end", Some(Lower)),
    ("memory_most_mib", "most memory", Some(Lower)),
    ("program_mib", "program", Some(Lower)),
    ("later_mbps", "goodput once it runs", Some(Higher)),
    ("later_up_mbps", "goodput once it runs, up", Some(Higher)),
    ("later_down_mbps", "goodput once it runs, down", Some(Higher)),
    ("least_stretch_mbps", "goodput of the worst five seconds", Some(Higher)),
    ("handover_ms", "handover time", Some(Lower)),
    ("rtt_ms", "round trip", Some(Lower)),
    ("rtt_p99_ms", "round trip, 99th percentile", Some(Lower)),
    ("round_trip_ms", "round trip", Some(Lower)),
    ("added_ms", "added latency", Some(Lower)),
    ("sent_goodput_mbps", "goodput, as sent", Some(Higher)),
    ("sent_throughput_mbps", "throughput, as sent", Some(Higher)),
    ("throughput_mbps", "throughput", Some(Higher)),
    ("kpps", "thousand packets a second", Some(Higher)),
    ("sent_kpps", "thousand packets a second, as sent", Some(Higher)),
    ("cpu_sender_us", "processor time of a packet, sending end", Some(Lower)),
    ("cpu_receiver_us", "processor time of a packet, receiving end", Some(Lower)),
    ("cpu_packet_us", "processor time of a packet, both ends", Some(Lower)),
    ("cpu_sender_s_per_gb", "processor time, sending end", Some(Lower)),
    ("cpu_receiver_s_per_gb", "processor time, receiving end", Some(Lower)),
    ("retransmissions", "retransmissions", Some(Lower)),
    ("duplicate_acks", "duplicate ACKs", Some(Lower)),
    ("reordering_packets", "reordering extent, packets", Some(Lower)),
    ("cpu_local_s_per_gb", "processor time, local end", Some(Lower)),
    ("cpu_remote_s_per_gb", "processor time, remote end", Some(Lower)),
    ("cpu_user_s", "processor time in user mode", Some(Lower)),
    ("cpu_system_s", "processor time in the kernel", Some(Lower)),
    ("cpu_local_percent", "processor load, local end", Some(Lower)),
    ("cpu_remote_percent", "processor load, remote end", Some(Lower)),
    ("cpu_user_percent", "user mode's part of processor time", None),
    ("context_switches", "context switches", Some(Lower)),
    ("overhead_percent", "overhead", Some(Lower)),
    ("jain", "Jain's fairness index", Some(Higher)),
    ("completion_ms", "completion time", Some(Lower)),
    ("connect_ms", "connection set-up time", Some(Lower)),
    ("page_ms", "page load time", Some(Lower)),
    ("mos", "mean opinion score", Some(Higher)),
    ("loss_percent", "loss", Some(Lower)),
    ("jitter_ms", "jitter", Some(Lower)),
    ("subflows", "subflows", None),
    ("mp_capable", "MP_CAPABLE", None),
    ("mp_join", "MP_JOIN", None),
    ("add_addr", "ADD_ADDR", None),
    ("data_fin", "DATA_FIN", None),
];

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
        if let Some(&(_, title, better)) = KNOWN.iter().find(|(known, _, _)| *known == name) {
            return Self { title: title.to_owned(), unit, better };
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
        let findings = findings.expect("the list of findings");
        let names = findings.lines().filter(|line| line.starts_with("| `")).flat_map(|line| {
            let names = line.trim_start_matches('|').split('|').next().unwrap_or_default();
            names.split(',').map(|name| name.trim().trim_matches('`')).collect::<Vec<_>>()
        });
        let names: Vec<&str> = names.collect();
        assert!(names.len() > 20, "{names:?}");
        let has_own = |name: &str| name.starts_with("client_") || OWN.iter().any(|(start, _)| name.starts_with(start));
        for name in names.into_iter().filter(|name| *name != "…") {
            let is_known = KNOWN.iter().any(|(known, _, _)| *known == name);
            assert!(is_known || has_own(name), "{name} has no words");
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
