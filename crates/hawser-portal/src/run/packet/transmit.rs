//! Sending: the core writes batches into the links' buffers, then each link sends what it has.
//!
//! 1. The core is asked for batches until it has none, or for this many; workers seal them, where there are any
//!    (`lanes`). 2. Each link sends its buffer in as few system calls as it needs. 3. What was refused as too long goes
//!    back to the core, and what streams take now (`streams`).

use std::net::SocketAddr;

use hawser_core::endpoint::Endpoint;
use hawser_core::session::Buffers;
use hawser_core::units::{LinkId, Time};

use super::socket::LinkSocket;
use super::{Parts, lanes, streams};

/// Batches in one round: up to 512 KiB.
pub const BATCHES_PER_ROUND: usize = 8;

/// Rounds in which all that is to be said at the end is said: a CLOSE for each path of 500 peers.
const CLOSE_ROUNDS: usize = 64;

/// The links' buffers, lent to the core. Lives for a round.
struct Spare<'a> {
    sockets: &'a mut [LinkSocket],
    now: Time,
}

impl Buffers for Spare<'_> {
    fn spare(&mut self, link: LinkId, remote: SocketAddr) -> Option<&mut [u8]> {
        self.sockets.get_mut(usize::from(link.0))?.spare(self.now, remote)
    }
}

/// Says what is to be said before peers are forgotten.
pub fn send_closes(parts: &mut Parts) {
    for _ in 0..CLOSE_ROUNDS {
        if !on_round(parts) {
            break;
        }
    }
}

/// Step 1, without workers. Whether there may be more to send at once.
fn fill(endpoint: &mut Endpoint, sockets: &mut [LinkSocket], now: Time) -> bool {
    for _ in 0..BATCHES_PER_ROUND {
        let Some(transmit) = endpoint.poll_transmit(now, &mut Spare { sockets, now }) else { return false };
        sockets[usize::from(transmit.link.0)].commit(&transmit);
    }
    true
}

/// One round; whether there may be more to send at once.
pub fn on_round(parts: &mut Parts) -> bool {
    let now = parts.clock.now();
    streams::tell(parts, now);
    let Parts { endpoint, sockets, workers, .. } = parts;
    let mut more = match workers {
        None => fill(endpoint, sockets, now),
        Some(workers) => lanes::fill(endpoint, sockets, workers, now),
    };
    for socket in sockets.iter_mut() {
        socket.flush(now);
        for (remote, size) in socket.too_big.drain(..) {
            endpoint.handle_too_big(socket.plan.id, remote, size);
            // The core has something smaller to send in its place.
            more = true;
        }
    }
    streams::tell(parts, now) | more
}
