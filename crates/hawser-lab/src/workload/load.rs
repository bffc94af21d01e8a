//! A load: a bulk stream beside any other workload, as long as that. Its figures have a name of their own.

use super::Workload;
use super::beside::Both;
use super::bulk::Bulk;
use super::options::{Options, Ways};
use crate::error::LabError;
use crate::experiment::{Findings, Line};

/// The load's own figure and line, and what it is called beside another's.
const GOODPUT: &str = "goodput_mbps";
const LOAD: &str = "load_mbps";

/// The workload with what its option `load` asks for: the directions of a stream of CUBIC.
pub(super) fn beside(workload: Box<dyn Workload>, options: &mut Options) -> Result<Box<dyn Workload>, LabError> {
    let ways = [("up", Some(Ways::Up)), ("down", Some(Ways::Down)), ("both", Some(Ways::Both))];
    Ok(match options.choice("load", &ways, None)? {
        None => workload,
        Some(ways) => Box::new(Both { workload, other: Box::new(Bulk::plain(ways)), keep: renamed }),
    })
}

fn renamed(loaded: Findings) -> Findings {
    let metrics = loaded.metrics.get(GOODPUT).map(|&goodput| (LOAD.to_owned(), goodput)).into_iter().collect();
    let lines = loaded.lines.into_iter().filter(|line| line.name == GOODPUT);
    let lines = lines.map(|line| Line { name: LOAD.to_owned(), ..line }).collect();
    Findings { metrics, lines, ..Findings::default() }
}
