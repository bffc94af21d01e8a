//! Paths as a table.

use std::fmt;
use std::time::{Duration, SystemTime};

use hawser_scion::probe::Outcome;
use hawser_scion::select::{Criterion, SetMetrics};
use hawser_scion::{IsdAs, Path};

/// Kilobits in a megabit.
const KILO: f64 = 1000.0;
/// Milliseconds in a second.
const MILLI: f64 = 1000.0;
/// Seconds in a minute, minutes in an hour.
const SIXTY: u64 = 60;
/// Headings; the last two are flush left, the others flush right. A probe's is left out where there was none.
const HEADINGS: [&str; 8] = ["", "hops", "mtu", "latency", "bandwidth", "expires in", "next hop", "path"];
const PROBE: &str = "probe";
/// Columns from this one on are flush left.
const FLUSH_LEFT_FROM: usize = 6;

/// What is listed. Plain data.
pub struct List<'p> {
    /// Where the paths begin.
    pub local: IsdAs,
    /// Where they lead.
    pub destination: IsdAs,
    /// What makes them the best.
    pub select: Criterion,
    /// In order.
    pub rows: Vec<Row<'p>>,
}

/// A path. Plain data.
pub struct Row<'p> {
    /// The path.
    pub path: &'p Path,
    /// Whether it is among the best.
    pub chosen: bool,
    /// What came of its probe.
    pub outcome: Option<&'p Outcome>,
}

impl List<'_> {
    /// What the best are like together.
    pub fn together(&self) -> SetMetrics {
        SetMetrics::of(self.rows.iter().filter(|row| row.chosen).map(|row| row.path))
    }
}

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let List { local, destination, select, rows } = self;
        if local == destination {
            return writeln!(f, "{local} is the daemon's own AS: packets go straight to the host");
        }
        writeln!(f, "paths from {local} to {destination}, * chosen by {select}")?;
        let probed = rows.iter().any(|row| row.outcome.is_some());
        let mut head: Vec<String> = HEADINGS.map(str::to_owned).into();
        if probed {
            head.insert(FLUSH_LEFT_FROM, PROBE.to_owned());
        }
        let mut table = vec![head];
        table.extend(rows.iter().map(|row| cells(row, probed)));
        aligned(f, &table)?;
        let together = self.together();
        if together.paths > 1 { tell_together(f, &together) } else { Ok(()) }
    }
}

fn cells(row: &Row<'_>, probed: bool) -> Vec<String> {
    let path = row.path;
    let unknown = || "-".to_owned();
    let mut cells = vec![
        if row.chosen { "*" } else { "" }.to_owned(),
        path.hops().to_string(),
        path.mtu.to_string(),
        path.announced_latency().map_or_else(unknown, latency),
        path.announced_bandwidth().map_or_else(unknown, |kbit| format!("{} Mbit/s", kbit as f64 / KILO)),
        left(path.expiry),
        path.next_hop.map_or_else(unknown, |hop| hop.to_string()),
        path.interfaces.to_string(),
    ];
    if probed {
        let told = row.outcome.map_or_else(unknown, |outcome| match outcome {
            Outcome::Alive { round_trip } => format!("{:.1} ms", round_trip.as_secs_f64() * MILLI),
            other => other.to_string(),
        });
        cells.insert(FLUSH_LEFT_FROM, told);
    }
    cells
}

/// Columns as wide as their widest cell.
fn aligned(f: &mut fmt::Formatter<'_>, table: &[Vec<String>]) -> fmt::Result {
    let width = |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..table[0].len()).map(width).collect();
    for row in table {
        let mut line = String::new();
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            if column > 0 {
                line.push_str("  ");
            }
            line.push_str(&if column >= FLUSH_LEFT_FROM {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            });
        }
        writeln!(f, "{}", line.trim_end())?;
    }
    Ok(())
}

fn tell_together(f: &mut fmt::Formatter<'_>, together: &SetMetrics) -> fmt::Result {
    let SetMetrics { paths, shared, mtu, longest_latency, .. } = together;
    write!(f, "together: {paths} paths, packets up to {} bytes", mtu.unwrap_or_default())?;
    if let Some(longest) = longest_latency {
        write!(f, ", latency up to {}", latency(*longest))?;
    }
    if shared.is_empty() {
        return writeln!(f, ", no interface in common");
    }
    let shared: Vec<String> = shared.iter().map(|shared| shared.interface.to_string()).collect();
    writeln!(f, ", in common: {}", shared.join(" "))
}

fn latency(latency: Duration) -> String {
    format!("{} ms", latency.as_secs_f64() * MILLI)
}

/// How long a path lasts.
fn left(expiry: SystemTime) -> String {
    let Ok(left) = expiry.duration_since(SystemTime::now()) else { return "expired".to_owned() };
    let (minutes, seconds) = (left.as_secs() / SIXTY, left.as_secs() % SIXTY);
    let (hours, minutes) = (minutes / SIXTY, minutes % SIXTY);
    match (hours, minutes) {
        (0, 0) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}
