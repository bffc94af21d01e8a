//! The TUN loop: trains from the host to the core, and what came home to the host.
//!
//! 1. [`on_ready`] reads trains straight into the core's buffer, this many at a time; what bears marks that rules look
//!    at has queues of its own.
//! 2. [`flush`] writes each super-packet that the coalescer has with one system call.

use std::io::{self, IoSlice};

use hawser_core::rules::Mark;
use hawser_net::tun::{Received, Tun, WriteOutcome, header, offload};

use super::ready::Ready;
use super::{Parts, RunError, tun_failed};
use crate::run::control::TUN_QUEUE_LEN;

/// Trains and bytes read in one round: all that the device's queue and the core's hold, so that what cannot go at once
/// waits in the fair one of the two, and not where a ping waits behind all others. Reading that much takes 1 ms.
const TRAINS_PER_ROUND: usize = TUN_QUEUE_LEN as usize;
/// See `TRAINS_PER_ROUND`.
const BYTES_PER_ROUND: usize = 8 << 20;

/// Step 1. The queues that have something share the round.
pub fn on_ready(parts: &mut Parts, ready: &Ready) -> Result<(), RunError> {
    if parts.hub.as_ref().is_some_and(|hub| hub.is_member()) {
        read_all::<true>(parts, ready)
    } else {
        read_all::<false>(parts, ready)
    }
}

fn read_all<const GATED: bool>(parts: &mut Parts, ready: &Ready) -> Result<(), RunError> {
    let queues = usize::from(ready.tun) + ready.marked.len();
    if ready.tun {
        read::<GATED>(parts, queues, Mark::default(), Tun::read)?;
    }
    for &place in &ready.marked {
        let mark = parts.tun.marked().nth(place).map(|(queue, _)| Mark::new(queue.mark.0, queue.mask));
        read::<GATED>(parts, queues, mark.unwrap_or_default(), |tun, buffer| tun.read_marked(place, buffer))?;
    }
    Ok(())
}

/// One of this many queues. What is left is told of again at once. A member of a hub looks at its leases after each
/// train was read.
fn read<const GATED: bool>(
    parts: &mut Parts,
    queues: usize,
    mark: Mark,
    take: impl Fn(&mut Tun, &mut [u8]) -> io::Result<Option<Received>>,
) -> Result<(), RunError> {
    let mut now = parts.clock.now();
    let mut bytes = 0;
    for _ in 0..TRAINS_PER_ROUND / queues {
        if bytes >= BYTES_PER_ROUND / queues {
            break;
        }
        match take(&mut parts.tun, parts.endpoint.read_buffer()) {
            Ok(Some(train)) => {
                bytes += train.len;
                let packets = train.len.checked_div(train.header.gso_size.into()).unwrap_or(1);
                parts.moderation.count(packets, train.len);
                if GATED {
                    now = parts.clock.now();
                    super::hub::begin(parts, now);
                }
                parts.endpoint.handle_marked(now, train.len, offload(&train.header), mark);
            }
            Ok(None) => break,
            Err(error) => return Err(tun_failed("read from tun", error)),
        }
    }
    parts.lost.tun_malformed = parts.tun.malformed();
    Ok(())
}

/// Step 2. A member of a hub that did not run gives the host nothing of what it has in hand.
pub fn flush(parts: &mut Parts) -> Result<(), RunError> {
    let Parts { home, tun, lost, hub, clock, endpoint, .. } = parts;
    if home.is_empty() {
        return Ok(());
    }
    let mut failed = None;
    let fenced = home.flush_while(&mut |offload, packet| {
        if hub.as_mut().is_some_and(|hub| !hub.runs(clock.now())) {
            return false;
        }
        match tun.write(&header(offload, packet), &[IoSlice::new(packet)]) {
            Ok(WriteOutcome::Written) => {}
            // The host cannot take it now, and the inner sender will notice: waiting would delay all others.
            Ok(_) => lost.tun_refused += 1,
            Err(error) => failed = Some(error),
        }
        true
    });
    if let Some(hub) = hub.as_mut().filter(|_| fenced > 0) {
        endpoint.note_fenced(fenced);
        hub.before_batch(clock.now(), endpoint, home);
    }
    failed.map_or(Ok(()), |error| Err(tun_failed("write to tun", error)))
}
