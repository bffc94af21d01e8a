//! What happens in the demo, and when.
//!
//! 1. Topology.  2. Link 1 alone.  3. Portals; an idle ping.  4. The bond, a cut, a return.  5. Figures.

use std::path::Path;
use std::time::Duration;

use hawser_wire::traffic::{PingReport, RunningTcp, Timeline, Towards};
use hawser_wire::{Direction, Moment, Way};

use super::figures::{self, Figures};
use super::view::{Now, Phase, View};
use crate::error::LabError;
use crate::portals::Portals;
use crate::topology::{Bond, Over};

/// The links, their Mbit/s and latencies: a DSL line, and a slower, farther one.
const LINES: [(f64, Duration); 2] = [(50.0, Duration::from_millis(10)), (30.0, Duration::from_millis(25))];
/// What waits before a link at most: a usual home router's.
const QUEUE: Duration = Duration::from_millis(100);
/// Both links' rates, as they are on the wire, in Mbit/s.
pub(super) const CAPACITY_MBPS: f64 = LINES[0].0 + LINES[1].0;

/// The transfer over link 1, and how much of its start is not counted: slow start and the first full queue.
const SINGLE_TIME: Duration = Duration::from_secs(6);
const WARM_UP: Duration = Duration::from_secs(2);
/// The ping beside nothing.
const IDLE_TIME: Duration = Duration::from_secs(2);
/// From one request to the next.
const PING_INTERVAL: Duration = Duration::from_millis(20);
/// The bonded transfer: until the cut, until the return, until the end.
const UNTIL_CUT: Duration = Duration::from_secs(8);
const CUT_TIME: Duration = Duration::from_secs(4);
const AFTER_RETURN: Duration = Duration::from_secs(7);
/// How often the view is told.
const STEP: Duration = Duration::from_millis(250);

/// How long everything that is shown takes.
pub(super) const SHOWN: Duration =
    SINGLE_TIME.saturating_add(UNTIL_CUT).saturating_add(CUT_TIME).saturating_add(AFTER_RETURN);

/// The whole demo.
pub(super) fn play(program: &Path, view: &mut View) -> Result<Figures, LabError> {
    let bond = Bond::new(&plans())?;
    let mut stage = Stage { bond: &bond, view, shown: Duration::ZERO };

    let single_mbps = stage.single()?;
    let _portals = Portals::start(program, &bond, "")?;
    let idle = bond.ping(PING_INTERVAL, IDLE_TIME).run()?;
    let bonded = stage.bonded()?;
    figures::of(single_mbps, &idle, &bonded)
}

/// What the links are.
pub(super) fn plans() -> [[Direction; 2]; 2] {
    LINES.map(|(mbps, one_way)| Direction::shaped(mbps, one_way, QUEUE).both_ways())
}

/// The bonded transfer and when what happened. Plain data.
pub(super) struct Bonded {
    pub timeline: Timeline,
    pub ping: PingReport,
    /// From when to when it was warm, and both links whole.
    pub steady: [Moment; 2],
    pub cut: Moment,
    pub back: Moment,
    pub end: Moment,
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
        self.show(&transfer, Phase::Single, SINGLE_TIME);
        Ok(transfer.finish()?.mbps_between(start + WARM_UP, start + SINGLE_TIME))
    }

    /// Step 4.
    fn bonded(&mut self) -> Result<Bonded, LabError> {
        let whole = UNTIL_CUT + CUT_TIME + AFTER_RETURN;
        let transfer = self.bond.transfer(Towards::Server, Over::Tunnel, whole).start()?;
        let ping = self.bond.ping(PING_INTERVAL, whole).start()?;
        let link = &self.bond.links()[0];
        let start = Moment::now();
        self.show(&transfer, Phase::Bonded, UNTIL_CUT);
        let cut = Moment::now();
        link.black_hole(true)?;
        self.show(&transfer, Phase::Cut, CUT_TIME);
        let back = Moment::now();
        link.black_hole(false)?;
        self.show(&transfer, Phase::Back, AFTER_RETURN);
        let end = Moment::now();
        let (timeline, ping) = (transfer.finish()?, ping.finish()?);
        Ok(Bonded { timeline, ping, steady: [start + WARM_UP, cut], cut, back, end })
    }

    /// Waits for a time, and tells the view what the server and the links get.
    fn show(&mut self, transfer: &RunningTcp, phase: Phase, time: Duration) {
        let (begin, shown) = (Moment::now(), self.shown);
        let mut from = begin;
        let mut carried = self.carried();
        while from - begin < time {
            let to = from + STEP.min(time - (from - begin));
            to.sleep_until();
            let now_carried = self.carried();
            let brought = now_carried.iter().zip(&carried).map(|(now, before)| now.saturating_sub(*before));
            let links = self.bond.links().iter().zip(brought);
            let links = links.map(|(link, bytes)| (link.name().to_owned(), mbps(bytes, to - from))).collect();
            carried = now_carried;
            let received = transfer.progress().mbps_between(from, to);
            self.shown = shown + (to - begin);
            (self.view)(&Now { phase, at: self.shown, step: to - from, received, links });
            from = to;
        }
    }

    /// What each link has brought towards the server, in bytes.
    fn carried(&self) -> Vec<u64> {
        self.bond.links().iter().map(|link| link.counters(Way::AToB).bytes_out).collect()
    }
}

/// A rate in Mbit/s.
fn mbps(bytes: u64, time: Duration) -> f64 {
    const BITS: f64 = 8.0;
    bytes as f64 * BITS / time.as_secs_f64() / 1e6
}
