//! The remote portal is killed under load, and started again: how long until traffic flows.

use std::thread;
use std::time::Duration;

use hawser_wire::Moment;

use super::bench::{Figures, Running};
use crate::error::LabError;
use crate::topology::{Flow, Over};

/// When it is killed, from the start of the stream.
const KILLED: Duration = Duration::from_secs(3);
/// How long it is gone.
const GONE: Duration = Duration::from_secs(1);
/// How long we look afterwards.
const LOOK: Duration = Duration::from_secs(8);
/// From one request to the next.
const PING_INTERVAL: Duration = Duration::from_millis(20);

/// Kills and restarts; the local portal stays as it is.
pub(super) fn restart(running: Running, flow: Flow) -> Result<Figures, LabError> {
    let Running { portals, bond } = running;
    let whole = KILLED + GONE + LOOK;
    let transfer = bond.transfer(flow, Over::Tunnel, whole).start()?;
    let ping = bond.ping(PING_INTERVAL, whole).start()?;
    thread::sleep(KILLED);
    let [local, _] = portals.ids();
    let killed = portals.kill_remote();
    thread::sleep(GONE);
    let again = Moment::now();
    let portals = killed.restart(&bond)?;
    let got = transfer.finish()?;
    let pings = ping.finish()?;
    if portals.ids()[0] != local {
        let reason = "the local portal was restarted".to_owned();
        return Err(LabError::NoFigure { figure: "ping_after_s", reason });
    }
    let answered = pings.echoes.iter().map(|echo| echo.sent + echo.round_trip).filter(|&at| at > again).min();
    let after = |moment: Option<Moment>| moment.map_or(f64::INFINITY, |moment| (moment - again).as_secs_f64());
    // The stream's gap began when the portal was killed; a longer one later would count in its place.
    let (end, gap) = (again + LOOK, got.longest_gap(again, again + LOOK));
    let stream = (got.bytes_between(again, end) > 0).then_some(gap.saturating_sub(GONE));
    Ok(Figures::from([
        ("ping_after_s", after(answered)),
        ("stream_after_s", stream.map_or(f64::INFINITY, |time| time.as_secs_f64())),
    ]))
}
