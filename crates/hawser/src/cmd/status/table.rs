//! The status for people: a line for the portal, a line for each peer, a table of its paths.

use std::fmt::Write as _;

use hawser_portal::api::{FecStatus, LinkStatus, PathStatus, PeerStatus, Status};

/// Headings of the paths' table. Text columns are flush left, numbers flush right.
const HEADINGS: [(&str, Align); 11] = [
    ("path", Align::Left),
    ("transport", Align::Left),
    ("state", Align::Left),
    ("metric", Align::Right),
    ("rtt", Align::Right),
    ("rate", Align::Right),
    ("loss", Align::Right),
    ("window", Align::Right),
    ("mtu", Align::Right),
    ("received", Align::Right),
    ("sent", Align::Right),
];

#[derive(Clone, Copy, PartialEq)]
enum Align {
    Left,
    Right,
}

/// The whole status as text, lines ended.
pub fn render(status: &Status) -> String {
    let mut text = format!("hawser {}, up {}\n", status.version, duration(status.uptime_s));
    // The usual one needs no word.
    if !matches!(status.scheduler.as_str(), "" | "adaptive") {
        let _ = writeln!(text, "scheduler {}", status.scheduler);
    }
    status.links.iter().filter_map(terms).for_each(|line| text.push_str(&line));
    if status.peers.is_empty() {
        text.push_str("no peers\n");
    }
    for peer in &status.peers {
        render_peer(&mut text, peer);
    }
    let drops: Vec<String> = status.drops.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    if !drops.is_empty() {
        let _ = writeln!(text, "\ndropped: {}", drops.join(", "));
    }
    text
}

/// What is asked of a link, if anything is.
fn terms(link: &LinkStatus) -> Option<String> {
    let weight = (link.weight != 1).then(|| format!("weight {}", link.weight));
    let rate = link.max_rate_mbps.map(|mbps| format!("at most {mbps} Mbit/s"));
    let cap = link.data_cap.map(|cap| {
        let reached = if cap.reached { ", reached: no traffic until the month ends" } else { "" };
        format!("{} of {} this month{reached}", bytes(cap.used_bytes), bytes(cap.cap_bytes))
    });
    let words: Vec<String> = [weight, rate, cap].into_iter().flatten().collect();
    (!words.is_empty()).then(|| format!("link {}: {}\n", link.name, words.join(", ")))
}

fn render_peer(text: &mut String, peer: &PeerStatus) {
    let handshake = match peer.handshake_age_s {
        Some(age) => format!("handshake {} ago", duration(age)),
        None => "no handshake yet".to_owned(),
    };
    let (received, sent) = (bytes(peer.rx_bytes), bytes(peer.tx_bytes));
    let _ = writeln!(text, "\npeer {}: {handshake}, received {received}, sent {sent}", peer.name);
    if peer.paths.is_empty() {
        text.push_str("  no paths\n");
        return;
    }
    let mut rows = vec![HEADINGS.map(|(heading, _)| heading.to_owned())];
    rows.extend(peer.paths.iter().map(cells));
    aligned(text, &rows);
    render_fec(text, &peer.fec);
}

/// A line for repairs, where there are any.
fn render_fec(text: &mut String, fec: &FecStatus) {
    let FecStatus { protected_packets, repairs, overhead_pct, repaired_packets, .. } = *fec;
    if protected_packets > 0 || repaired_packets > 0 {
        let _ = writeln!(
            text,
            "  repairs: {repaired_packets} packets came back; {repairs} sent for {protected_packets} packets, now {overhead_pct:.0} %"
        );
    }
}

fn cells(path: &PathStatus) -> [String; HEADINGS.len()] {
    [
        path.name.clone(),
        path.transport.clone(),
        path.state.to_string(),
        path.metric.to_string(),
        path.rtt_ms.map_or_else(|| "-".to_owned(), |rtt| format!("{rtt:.1} ms")),
        format!("{:.1} Mbit/s", path.rate_mbps),
        format!("{:.1} %", path.loss_pct),
        bytes(path.cwnd_bytes),
        path.mtu.to_string(),
        bytes(path.rx_bytes),
        bytes(path.tx_bytes),
    ]
}

/// Rows with every column as wide as its widest cell, indented by two.
fn aligned(text: &mut String, rows: &[[String; HEADINGS.len()]]) {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; HEADINGS.len()] = std::array::from_fn(width);
    for row in rows {
        let mut line = String::new();
        for ((cell, width), (_, align)) in row.iter().zip(widths).zip(HEADINGS) {
            let _ = match align {
                Align::Left => write!(line, "  {cell:<width$}"),
                Align::Right => write!(line, "  {cell:>width$}"),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// Bytes in binary units (IEC 80000-13), three or four digits.
fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    const STEP: f64 = 1024.0;
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / STEP;
    let mut unit = 0;
    while value >= STEP && unit + 1 < UNITS.len() {
        value /= STEP;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Seconds as the two largest units.
fn duration(seconds: f64) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let s = seconds.max(0.0) as u64;
    match s {
        s if s < MINUTE => format!("{s} s"),
        s if s < HOUR => format!("{} min {} s", s / MINUTE, s % MINUTE),
        s if s < DAY => format!("{} h {} min", s / HOUR, s % HOUR / MINUTE),
        s => format!("{} d {} h", s / DAY, s % DAY / HOUR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_a_unit_that_fits() {
        let table = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (48 << 20, "48.0 MiB"),
            (u64::MAX, "16.0 EiB"),
        ];
        for (count, expect) in table {
            assert_eq!(bytes(count), expect);
        }
    }

    #[test]
    fn durations_have_two_units() {
        let table = [
            (0.0, "0 s"),
            (59.9, "59 s"),
            (61.0, "1 min 1 s"),
            (3_600.0, "1 h 0 min"),
            (200_000.0, "2 d 7 h"),
            (-1.0, "0 s"),
        ];
        for (seconds, expect) in table {
            assert_eq!(duration(seconds), expect);
        }
    }
}
