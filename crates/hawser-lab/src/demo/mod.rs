//! `hawser demo`: two links, one line, shown in half a minute.
//!
//! 1. The topology: 50 Mbit/s and 10 ms, 30 Mbit/s and 25 ms (one way), each with 100 ms of queue.
//! 2. One TCP transfer over link 1 alone: the kernel forwards it, without a tunnel.
//! 3. Two portals start; a ping beside nothing.
//! 4. One TCP transfer over the bond, a ping beside it; in its middle link 1 goes silent (every packet vanishes), and
//!    comes back.
//! 5. The figures, all from what the server received and when; pings from what the client got back.
//!
//! What is seen meanwhile is a `view`'s business.

mod hub;
mod page;
mod view;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use hawser_wire::traffic::{PingReport, RunningTcp, Sample, Towards};
use hawser_wire::{Direction, Moment, Way};
use serde::Serialize;

pub use hub::{HubFigures, run_hub};
pub use page::run_page;
pub(crate) use view::restore_terminal;

use crate::cleanup;
use crate::error::LabError;
use crate::portals::Portals;
use crate::topology::{Bond, Over};
use crate::workload::millis;
use view::{BACK, BONDED, CUT, Now, Phase, SINGLE, View};

/// The links, their Mbit/s and latencies: a DSL line, and a slower, farther one.
const LINES: [(f64, Duration); 2] = [(50.0, Duration::from_millis(10)), (30.0, Duration::from_millis(25))];
/// What waits before a link at most: a usual home router's.
const QUEUE: Duration = Duration::from_millis(100);
/// Both links' rates, as they are on the wire, in Mbit/s.
const CAPACITY_MBPS: f64 = LINES[0].0 + LINES[1].0;

/// The transfer over link 1, and how much of its start is not counted: slow start and the first full queue.
const SINGLE_TIME: Duration = Duration::from_secs(6);
const WARM_UP: Duration = Duration::from_secs(2);
/// The ping beside nothing, and from one request to the next of either.
const IDLE_TIME: Duration = Duration::from_secs(2);
const PING_INTERVAL: Duration = Duration::from_millis(20);
/// The bonded transfer: until the cut, until the return, until the end.
const UNTIL_CUT: Duration = Duration::from_secs(8);
const CUT_TIME: Duration = Duration::from_secs(4);
const AFTER_RETURN: Duration = Duration::from_secs(7);
/// The stream has recovered when it is as fast as this share of before, over this long: a single full queue that is let
/// go is no recovery.
const RECOVERED_SHARE: f64 = 0.95;
const RECOVERED_OVER: Duration = Duration::from_secs(1);
/// How often the view is told, of which each time above is a multiple, and how long everything that is shown takes.
const STEP: Duration = Duration::from_millis(250);
const SHOWN: Duration = SINGLE_TIME.saturating_add(UNTIL_CUT).saturating_add(CUT_TIME).saturating_add(AFTER_RETURN);

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

/// Runs the demo with this `hawser` executable; whether it is shown on standard output meanwhile.
///
/// # Errors
/// Where it lacks root, a portal does not come to work, or nothing was received.
pub fn run(program: &Path, shown: bool) -> Result<Figures, LabError> {
    cleanup::start()?;
    if !shown {
        return play(program, &mut |_| ());
    }
    let figures = play(program, &mut *view::for_stdout());
    restore_terminal();
    figures
}

fn play(program: &Path, view: &mut View) -> Result<Figures, LabError> {
    let bond = Bond::new(&plans())?;
    let mut stage = Stage { bond: &bond, view, shown: Duration::ZERO };
    let single_mbps = stage.single()?;
    let _portals = Portals::start(program, &bond, "")?;
    let idle = bond.ping(PING_INTERVAL, IDLE_TIME).run()?;
    stage.bonded(single_mbps, &idle)
}

/// What the links are.
fn plans() -> [[Direction; 2]; 2] {
    LINES.map(|(mbps, one_way)| Direction::shaped(mbps, one_way, QUEUE).both_ways())
}

/// Where it is played and who looks. One owner.
struct Stage<'a> {
    bond: &'a Bond,
    view: &'a mut View,
    /// How much of [`SHOWN`] is over.
    shown: Duration,
}

impl Stage<'_> {
    /// Step 2: what the transfer over link 1 brought, in Mbit/s.
    fn single(&mut self) -> Result<f64, LabError> {
        let transfer = self.bond.transfer(Towards::Server, Over::LinkOne, SINGLE_TIME).start()?;
        let start = Moment::now();
        self.show(&transfer, SINGLE, SINGLE_TIME);
        Ok(transfer.finish()?.mbps_between(start + WARM_UP, start + SINGLE_TIME))
    }

    /// Steps 4 and 5.
    fn bonded(&mut self, single_mbps: f64, idle: &PingReport) -> Result<Figures, LabError> {
        let whole = UNTIL_CUT + CUT_TIME + AFTER_RETURN;
        let transfer = self.bond.transfer(Towards::Server, Over::Tunnel, whole).start()?;
        let ping = self.bond.ping(PING_INTERVAL, whole).start()?;
        let link = &self.bond.links[0];
        let warm = Moment::now() + WARM_UP;
        self.show(&transfer, BONDED, UNTIL_CUT);
        let cut = Moment::now();
        link.black_hole(true)?;
        self.show(&transfer, CUT, CUT_TIME);
        let back = Moment::now();
        link.black_hole(false)?;
        self.show(&transfer, BACK, AFTER_RETURN);
        let end = Moment::now();
        let (received, ping) = (transfer.finish()?, ping.finish()?);
        // While it was warm, and both links whole.
        let bonded_mbps = received.mbps_between(warm, cut);
        let recovered = received.recovered_after(back, bonded_mbps * RECOVERED_SHARE, RECOVERED_OVER);
        Ok(Figures {
            capacity_mbps: rounded(CAPACITY_MBPS),
            single_mbps: rounded(single_mbps),
            bonded_mbps: rounded(bonded_mbps),
            gap_ms: rounded(millis(received.longest_gap(cut, end))),
            recovered_s: recovered.map(|time| rounded(time.as_secs_f64())),
            ping_idle_ms: median("ping_idle_ms", &idle.round_trips())?,
            ping_loaded_ms: median("ping_loaded_ms", &ping.round_trips_between(warm, cut))?,
        })
    }

    /// Waits for a time, and tells the view what the server and the links get in each step.
    fn show(&mut self, transfer: &RunningTcp, phase: Phase, time: Duration) {
        let links = &self.bond.links;
        // What each has brought towards the server, in bytes.
        let brought = || links.iter().map(|link| link.counters(Way::AToB).bytes_out).collect::<Vec<_>>();
        let (mut from, mut before) = (Moment::now(), brought());
        let end = from + time;
        while from < end {
            let to = from + STEP;
            to.sleep_until();
            let now = brought();
            let bytes = |at: usize| now[at].saturating_sub(before[at]) as f64;
            let mbps = |at: usize| bytes(at) * 8.0 / STEP.as_secs_f64() / 1e6;
            let links = links.iter().enumerate().map(|(at, link)| (link.name().to_owned(), mbps(at))).collect();
            before = now;
            let received = transfer.progress().mbps_between(from, to);
            self.shown += STEP;
            (self.view)(&Now { phase, at: self.shown, received, links });
            from = to;
        }
    }
}

fn median(figure: &'static str, round_trips: &Sample) -> Result<f64, LabError> {
    let no_answer = || LabError::refused(format!("measure {figure}"), "no ping was answered".to_owned());
    round_trips.median().map(rounded).ok_or_else(no_answer)
}

/// To a hundredth: finer is noise.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mbps = |value: f64| format!("{value:.1} Mbit/s");
        let millis = |value: f64| format!("{value:.1} ms");
        let never = || "not within the demo".to_owned();
        let recovered = self.recovered_s.map_or_else(never, |seconds| format!("{seconds:.1} s"));
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
fn table([left, right]: [usize; 2], rows: &[(&str, String, &str)]) -> String {
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
    fn the_table_tells_every_figure_and_json_has_the_contracts_names() {
        let table = FIGURES.to_string();
        for figure in ["80.0 Mbit/s", "47.9 Mbit/s", "70.1 Mbit/s", "88.0 ms", "0.7 s", "20.9 ms", "31.5 ms"] {
            assert!(table.contains(figure), "{figure} is not in\n{table}");
        }
        assert!(Figures { recovered_s: None, ..FIGURES }.to_string().contains("not within the demo"));
        assert_eq!(
            serde_json::to_string(&FIGURES).expect("plain data"),
            r#"{"capacity_mbps":80.0,"single_mbps":47.89,"bonded_mbps":70.12,"gap_ms":88.0,"recovered_s":0.72,"ping_idle_ms":20.9,"ping_loaded_ms":31.46}"#
        );
    }
}
