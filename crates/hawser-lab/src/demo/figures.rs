//! The demo's figures: what is computed from what was received, and how it is told.

use std::fmt;
use std::time::Duration;

use hawser_wire::traffic::{PingReport, Sample};
use serde::Serialize;

use super::script::{Bonded, CAPACITY_MBPS};
use crate::error::LabError;

/// The stream has recovered when it is as fast as this share of before.
const RECOVERED_SHARE: f64 = 0.95;
/// Over this long: a single full queue that is let go is no recovery.
const RECOVERED_OVER: Duration = Duration::from_secs(1);

/// What the demo found. The field names are a contract with scripts. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Of both links, raw, in Mbit/s.
    pub capacity_mbps: f64,
    /// One transfer over link 1 alone, without a tunnel.
    pub single_mbps: f64,
    /// One transfer over both, while both are whole.
    pub bonded_mbps: f64,
    /// The longest time without a byte from the cut on.
    pub gap_ms: f64,
    /// From the return of link 1 until the rate is 95 % of before for a second; none if it never was.
    pub recovered_s: Option<f64>,
    /// Median round trip by the tunnel beside nothing.
    pub ping_idle_ms: f64,
    /// The same beside the transfer.
    pub ping_loaded_ms: f64,
}

/// Step 5.
pub(super) fn of(single_mbps: f64, idle: &PingReport, bonded: &Bonded) -> Result<Figures, LabError> {
    let [from, to] = bonded.steady;
    let bonded_mbps = bonded.timeline.mbps_between(from, to);
    let recovered = bonded.timeline.recovered_after(bonded.back, bonded_mbps * RECOVERED_SHARE, RECOVERED_OVER);
    Ok(Figures {
        capacity_mbps: rounded(CAPACITY_MBPS),
        single_mbps: rounded(single_mbps),
        bonded_mbps: rounded(bonded_mbps),
        gap_ms: rounded(bonded.timeline.longest_gap(bonded.cut, bonded.end).as_secs_f64() * 1e3),
        recovered_s: recovered.map(|time| rounded(time.as_secs_f64())),
        ping_idle_ms: median("ping_idle_ms", &idle.round_trips())?,
        ping_loaded_ms: median("ping_loaded_ms", &bonded.ping.round_trips_between(from, to))?,
    })
}

fn median(figure: &'static str, round_trips: &Sample) -> Result<f64, LabError> {
    let no_answer = || LabError::NoFigure { figure, reason: "no ping was answered".to_owned() };
    round_trips.median().map(rounded).ok_or_else(no_answer)
}

/// To a hundredth: finer is noise.
pub(super) fn rounded(value: f64) -> f64 {
    const STEPS: f64 = 100.0;
    (value * STEPS).round() / STEPS
}

impl fmt::Display for Figures {
    /// The table.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mbps = |value: f64| format!("{value:.1} Mbit/s");
        let millis = |value: f64| format!("{value:.1} ms");
        let recovered = match self.recovered_s {
            Some(seconds) => format!("{seconds:.1} s"),
            None => "not within the demo".to_owned(),
        };
        let rows = [
            ("capacity", mbps(self.capacity_mbps), "both links, raw"),
            ("one link", mbps(self.single_mbps), "link 1 alone, plain TCP, no tunnel"),
            ("bonded", mbps(self.bonded_mbps), "both links, one TCP stream"),
            ("longest gap", millis(self.gap_ms), "at the server, link 1 silently cut"),
            ("recovery", recovered, "after link 1 came back, to 95 %"),
            ("ping idle", millis(self.ping_idle_ms), "by the tunnel, median"),
            ("ping under load", millis(self.ping_loaded_ms), "beside the bonded stream, median"),
        ];
        f.write_str(&table([16, 14], &rows))
    }
}

/// A line each: a name and a value, which have these widths, and a remark.
pub(super) fn table([left, right]: [usize; 2], rows: &[(&str, String, &str)]) -> String {
    let line = |(name, value, remark): &(&str, String, &str)| format!("{name:<left$}{value:>right$}   {remark}");
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIGURES: Figures = Figures {
        capacity_mbps: 80.0,
        single_mbps: 47.89,
        bonded_mbps: 70.12,
        gap_ms: 88.0,
        recovered_s: Some(0.72),
        ping_idle_ms: 20.9,
        ping_loaded_ms: 31.46,
    };

    #[test]
    fn json_has_the_contracts_names() {
        assert_eq!(
            serde_json::to_string(&FIGURES).expect("plain data"),
            r#"{"capacity_mbps":80.0,"single_mbps":47.89,"bonded_mbps":70.12,"gap_ms":88.0,"recovered_s":0.72,"ping_idle_ms":20.9,"ping_loaded_ms":31.46}"#
        );
    }

    #[test]
    fn the_table_tells_every_figure() {
        let table = FIGURES.to_string();
        for figure in ["80.0 Mbit/s", "47.9 Mbit/s", "70.1 Mbit/s", "88.0 ms", "0.7 s", "20.9 ms", "31.5 ms"] {
            assert!(table.contains(figure), "{figure} is not in\n{table}");
        }
        assert!(Figures { recovered_s: None, ..FIGURES }.to_string().contains("not within the demo"));
    }
}
