//! Whether the packet thread keeps up, and what datagrams cost while it does not.
//!
//! 1. The thread says when it has taken all there was ([`Load::on_empty`]). 2. Every window: had it never, and did the kernel drop
//!    datagrams meanwhile ([`judge`])? Drops alone say nothing: the kernel counts wrong checksums with them, which any stranger
//!    can send; nor does the clock, for the thread may wait for a processor in poll(2).
//! 3. While the core wants to know, the thread's processor time is read after each run of datagrams ([`Meter`]).

use std::time::Duration;

use hawser_core::endpoint::{self, Endpoint};
use hawser_core::units::Time;

use super::Parts;
use crate::run::clock::Clock;

/// How often that is looked at. What is lost with the rest of a window is less than a round trip of most paths; and of
/// 1,400-byte datagrams at 1 Gbit/s the receive buffer holds some 25 ms.
const JUDGE_EVERY: Duration = Duration::from_millis(10);

/// What was known last. Nothing at first; the packet thread owns it.
#[derive(Debug, Default)]
pub struct Load {
    judged: Time,
    drops: u64,
    emptied: bool,
    measures: bool,
}

impl Load {
    /// Step 1: no socket holds more.
    pub fn on_empty(&mut self) {
        self.emptied = true;
    }
}

/// Step 2.
pub fn judge(parts: &mut Parts, now: Time) {
    let Parts { endpoint: core, sockets, load, .. } = parts;
    if now.since(load.judged) < JUDGE_EVERY {
        return;
    }
    let drops = sockets.iter().map(|socket| socket.kernel_drops()).sum();
    load.measures = core.handle_load(match load.emptied {
        true => endpoint::Load::KeepsUp,
        false if drops > load.drops => endpoint::Load::Overflow,
        false => endpoint::Load::Standing,
    });
    (load.judged, load.drops, load.emptied) = (now, drops, false);
}

/// Step 3: reads what the thread spends, if that is wanted. Begins with the present moment.
pub struct Meter(Option<Duration>);

impl Meter {
    pub fn start(load: &Load, clock: Clock) -> Meter {
        Meter(load.measures.then(|| clock.spent()))
    }

    /// What was spent since the last call is charged to whom the last datagrams came from.
    pub fn charge(&mut self, clock: Clock, endpoint: &mut Endpoint) {
        if let Some(before) = &mut self.0 {
            let spent = clock.spent();
            endpoint.charge(spent.saturating_sub(*before));
            *before = spent;
        }
    }
}
