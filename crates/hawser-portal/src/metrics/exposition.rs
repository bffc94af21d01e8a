//! One status as text, in the format that was asked for.
//!
//! The library writes OpenMetrics 1.0. Prometheus' older text (version 0.0.4) differs in what a family's lines call it:
//! a counter has its `_total` there too, an info is a gauge with its `_info`; units and the end have no line.

use std::fmt;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use super::families::Families;
use crate::api::Status;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A text with its media type. Plain data.
#[derive(Clone, Debug)]
pub struct Exposition {
    /// For Content-Type.
    pub media_type: &'static str,
    /// The text.
    pub text: String,
}

/// Writes a status; `accept` is the request's header of that name.
///
/// # Errors
/// Where the library cannot write a name or a value.
pub fn exposition(status: Status, accept: Option<&str>) -> Result<Exposition, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Families(status)));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    if accept.is_some_and(prefers_open_metrics) {
        return Ok(Exposition { media_type: OPEN_METRICS, text });
    }
    Ok(Exposition { media_type: PROMETHEUS_TEXT, text: prometheus_text(&text) })
}

/// Whether OpenMetrics is asked for, and plain text not more so (RFC 9110 section 12.5.1).
fn prefers_open_metrics(accept: &str) -> bool {
    let quality = |wanted: &str| {
        let of = accept.split(',').filter_map(|part| {
            let (kind, parameters) = part.split_once(';').unwrap_or((part, ""));
            let q = parameters.split(';').find_map(|parameter| parameter.trim().strip_prefix("q="));
            kind.trim().eq_ignore_ascii_case(wanted).then(|| q.map_or(Some(1.0), |q| q.trim().parse::<f64>().ok()))?
        });
        of.fold(0.0, f64::max)
    };
    let open = quality("application/openmetrics-text");
    open > 0.0 && open >= quality("text/plain")
}

/// The same families as Prometheus' text.
fn prometheus_text(open_metrics: &str) -> String {
    // The type of a family is known only after its help.
    let types: std::collections::HashMap<&str, &str> =
        open_metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
    let renamed = |name: &str| match types.get(name) {
        Some(&"counter") => format!("{name}_total"),
        Some(&"info") => format!("{name}_info"),
        _ => name.to_owned(),
    };
    let mut text = String::with_capacity(open_metrics.len());
    for line in open_metrics.lines() {
        let line = if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            format!("# HELP {} {help}", renamed(name))
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            format!("# TYPE {} {}", renamed(name), if kind == "info" { "gauge" } else { kind })
        } else if line.starts_with('#') {
            continue;
        } else {
            line.to_owned()
        };
        text.push_str(&line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::EtcdStatus;

    /// Two paths by one link, one of them down, a link with a cap, and a name that must be escaped nowhere.
    fn status() -> Status {
        let status = r#"{"schema":1,"version":"0.2.0","uptime_s":7.5,"protocol":"1.1","scheduler":"adaptive",
            "drops":{"forged":3,"send_refused_bytes":40},
            "links":[{"name":"dsl","weight":1,"max_rate_mbps":16.0,
                "data_cap":{"used_bytes":6,"cap_bytes":7,"reached":false}}],
            "peers":[{"name":"hub","handshake_age_s":2.0,"rx_bytes":30,"tx_bytes":40,"paths":[
                {"name":"dsl","transport":"udp","state":"active","interface":"eth0","endpoint":"198.51.100.7:4920",
                 "metric":0,"rtt_ms":12.5,"rate_mbps":8.0,"loss_pct":0.5,"cwnd_bytes":12000,"mtu":1472,
                 "rx_bytes":300,"tx_bytes":400},
                {"name":"dsl","transport":"udp","state":"down","metric":0,"rtt_ms":null,"rate_mbps":0.0,
                 "loss_pct":0.0,"cwnd_bytes":0,"mtu":1200,"rx_bytes":0,"tx_bytes":0}]}]}"#;
        serde_json::from_str(status).expect("a status")
    }

    fn text(accept: Option<&str>) -> Exposition {
        exposition(status(), accept).expect("it can be written")
    }

    #[test]
    fn a_status_is_told_in_base_units_with_few_labels() {
        let Exposition { media_type, text } = text(None);
        assert_eq!(media_type, PROMETHEUS_TEXT);
        for line in [
            "# HELP hawser_path_receive_bytes_total ",
            "# TYPE hawser_path_receive_bytes_total counter\n",
            "hawser_path_receive_bytes_total{peer=\"hub\",link=\"dsl\",path=\"0\"} 300\n",
            "hawser_path_rtt_seconds{peer=\"hub\",link=\"dsl\",path=\"0\"} 0.0125\n",
            "hawser_path_loss_ratio{peer=\"hub\",link=\"dsl\",path=\"0\"} 0.005\n",
            "hawser_path_up{peer=\"hub\",link=\"dsl\",path=\"0\"} 1",
            "hawser_path_up{peer=\"hub\",link=\"dsl\",path=\"1\"} 0",
            "hawser_path_state{peer=\"hub\",link=\"dsl\",path=\"1\",state=\"down\"} 1",
            "hawser_path_delivery_rate_bytes_per_second{peer=\"hub\",link=\"dsl\",path=\"0\"} 1000000",
            "hawser_link_up{link=\"dsl\"} 1",
            "hawser_link_max_rate_bytes_per_second{link=\"dsl\"} 2000000",
            "hawser_drops_total{reason=\"forged\"} 3\n",
            "hawser_send_refused_bytes_total 40\n",
            "# TYPE hawser_build_info gauge\n",
            "hawser_build_info{version=\"0.2.0\",protocol=\"1.1\"} 1\n",
            "hawser_peer_up{peer=\"hub\"} 1",
            "process_resident_memory_bytes ",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("# UNIT") && !text.contains("# EOF"), "{text}");
        assert!(!text.contains("hawser_path_rtt_seconds{peer=\"hub\",link=\"dsl\",path=\"1\"}"), "nobody measured it");
        assert!(!text.contains("198.51.100.7"), "an address changes, and would be a label without bound");
    }

    #[test]
    fn every_sample_belongs_to_the_family_before_it_in_either_format() {
        let open = text(Some("application/openmetrics-text"));
        assert_eq!(open.media_type, OPEN_METRICS);
        assert!(open.text.ends_with("# EOF\n") && open.text.contains("# TYPE hawser_drops counter\n"));
        assert!(open.text.contains("# UNIT hawser_path_rtt_seconds seconds\n"));
        for (Exposition { text, .. }, suffixes) in [(open, &["", "_total", "_info"][..]), (text(None), &[""][..])] {
            let mut family = "";
            let mut samples = 0;
            for line in text.lines() {
                if let Some(rest) = line.strip_prefix("# TYPE ") {
                    family = rest.split(' ').next().unwrap_or_default();
                } else if !line.starts_with('#') {
                    let name = line.split(['{', ' ']).next().unwrap_or_default();
                    let of_family = suffixes.iter().any(|suffix| name == format!("{family}{suffix}"));
                    assert!(of_family, "{name} in the family {family}");
                    samples += 1;
                }
            }
            assert!(samples > 30, "only {samples} samples:\n{text}");
        }
    }

    #[test]
    fn a_member_says_whether_etcd_answers_and_how_old_is_what_it_knows_and_others_say_nothing_of_it() {
        let told = |etcd: Option<EtcdStatus>| {
            let Exposition { text, .. } = exposition(Status { etcd, ..status() }, None).expect("it can be written");
            let lines = text.lines().filter(|line| line.starts_with("hawser_etcd"));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(told(None), Vec::<String>::new());
        let never = EtcdStatus::default();
        assert_eq!(told(Some(never.clone())), ["hawser_etcd_up 0.0"]);
        let lost = EtcdStatus { in_step_age_s: Some(61.5), ..never };
        assert_eq!(told(Some(lost.clone())), ["hawser_etcd_up 0.0", "hawser_etcd_in_step_age_seconds 61.5"]);
        let there = EtcdStatus { reached: true, in_step_age_s: Some(0.5), ..lost };
        assert_eq!(told(Some(there)), ["hawser_etcd_up 1.0", "hawser_etcd_in_step_age_seconds 0.5"]);
    }

    #[test]
    fn open_metrics_is_for_who_asks_for_it() {
        let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                          text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        let table = [
            (prometheus, true),
            ("application/openmetrics-text", true),
            ("text/plain", false),
            ("*/*", false),
            ("application/openmetrics-text;q=0.2, text/plain;q=0.9", false),
            ("application/openmetrics-text;q=0", false),
            ("", false),
        ];
        for (accept, expected) in table {
            assert_eq!(prefers_open_metrics(accept), expected, "{accept}");
        }
    }

    #[test]
    fn a_portal_that_has_just_started_is_told_too() {
        let Exposition { text, .. } = exposition(Status::default(), None).expect("it can be written");
        assert!(text.contains("hawser_uptime_seconds 0"), "{text}");
    }
}
