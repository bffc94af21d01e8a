//! How soon it works, how much memory it holds, how large its program is.

use std::fs;
use std::thread;
use std::time::Duration;

use hawser_wire::Moment;

use super::contender::{Contender, Ground, Tunnel};
use crate::error::LabError;
use crate::measure::bench::Figures;
use crate::measure::cost;
use crate::process::Process;
use crate::topology::Flow;

/// From one ping to the next: what the start-up time is exact to.
const PING_INTERVAL: Duration = Duration::from_millis(2);
/// How long it may take at most.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it is left alone before its memory is looked at.
const QUIET: Duration = Duration::from_millis(500);
/// The stream after which it is looked at again.
const WARM_UP: Duration = Duration::from_millis(500);
const COUNTED: Duration = Duration::from_secs(3);
/// Bytes in a MiB.
const MIB: f64 = 1024.0 * 1024.0;

/// The ping runs from before the start of the processes; the first that is answered tells when it works.
#[expect(clippy::cast_precision_loss, reason = "bytes of files and memory")]
pub(super) fn measure(ground: &Ground<'_>, contender: Contender) -> Result<Figures, LabError> {
    let bond = contender.bond()?;
    let ping = bond.ping(PING_INTERVAL, PATIENCE).start()?;
    let begun = Moment::now();
    let tunnel = Tunnel::start(ground, contender, &bond)?;
    thread::sleep(QUIET);
    ping.stop();
    let answers = ping.finish()?;
    let first = answers.echoes.iter().map(|echo| echo.sent + echo.round_trip).min();
    let no_answer = || LabError::NoFigure { figure: "start_ms", reason: "no ping was answered".to_owned() };
    let start = first.ok_or_else(no_answer)? - begun;
    let processes = tunnel.processes();
    let most = |memory: fn(&Process) -> Result<u64, LabError>| -> Result<f64, LabError> {
        let each = processes.iter().map(|process| memory(process)).collect::<Result<Vec<_>, _>>()?;
        Ok(each.into_iter().max().unwrap_or(0) as f64 / MIB)
    };
    let idle = most(|process| Ok(process.usage()?.resident))?;
    cost::stream(&bond, &processes, Flow::Up, WARM_UP, COUNTED)?;
    let loaded = most(|process| Ok(process.usage()?.resident_most))?;
    let mut figures =
        Figures::from([("start_ms", start.as_secs_f64() * 1e3), ("idle_mib", idle), ("loaded_mib", loaded)]);
    if let Some(program) = ground.program(contender) {
        let file = fs::metadata(program).map_err(|error| LabError::system("look at a program", error))?;
        figures.insert("binary_mib", file.len() as f64 / MIB);
    }
    Ok(figures)
}
