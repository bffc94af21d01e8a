//! The verdict as people read it.

use super::{Cause, PathLimit, Reason};
use crate::api::{PathState, PathStatus};

/// Parts of a whole in per cent.
const PER_CENT: f64 = 100.0;

/// Why a path carries no more: what follows its name.
pub(super) fn clause(reason: Reason, path: &PathStatus, rate: f64, most: Option<f64>) -> String {
    match reason {
        Reason::Down => {
            let state = if path.state == PathState::NoRoute { "has no route" } else { "is down" };
            format!("{state}{}", path.reason.as_ref().map_or_else(String::new, |why| format!(": {why}")))
        }
        Reason::DataCap => "carries nothing: its data cap is reached".to_owned(),
        Reason::Loss => format!("loses {:.1} % of its packets", path.loss_pct),
        Reason::Faded => format!("has faded: {rate:.1} Mbit/s of {:.1} within the last minute", path.load.peak_mbps),
        Reason::LeftOut => {
            let trip = path.rtt_ms.unwrap_or_default();
            format!("is left out: its round trip of {trip:.0} ms would cost a flow more than its rate brings")
        }
        Reason::MaxRate => format!("is held to its max_rate of {} Mbit/s", most.unwrap_or_default()),
        Reason::Full => format!("is full at {rate:.1} Mbit/s, {:.0} ms of it in its queue", path.load.queue_ms),
        Reason::Standby => format!("stands by: its metric is {}", path.metric),
        Reason::Room => format!("has room beside its {rate:.1} Mbit/s"),
    }
}

/// The whole verdict; the worst paths first.
pub(super) fn sentence(cause: Cause, busy: f64, paths: &[PathLimit]) -> String {
    let mut order: Vec<&PathLimit> = paths.iter().collect();
    order.sort_by_key(|path| path.reason);
    let each: Vec<String> = order.iter().map(|path| format!("{} {}", path.link, path.text)).collect();
    let each = each.join("; ");
    match cause {
        Cause::Nothing => "nothing: hardly anything is sent".to_owned(),
        Cause::Sender => "the sender: the links carry all of it at once".to_owned(),
        Cause::Processor => {
            format!("this host's processor: the packet thread is busy {:.0} % of the time", busy.min(1.0) * PER_CENT)
        }
        Cause::CommonLine => {
            format!("a line that the links share, here or at the far side: their queues move as one; {each}")
        }
        Cause::Links => format!("the links: {each}"),
    }
}
