//! Sending with workers: while the core writes a batch into a link's buffer, others seal those before it.
//!
//! 1. A socket without room for a batch sends first. 2. The core is asked for batches until one has no room any more
//!    ([`Lanes`] lends it the buffers); workers seal them. 3. When all are sealed, the buffers are the sockets' again,
//!    which send them (`transmit`).

use std::net::SocketAddr;

use hawser_core::endpoint::Endpoint;
use hawser_core::session::{Buffers, Transmit};
use hawser_core::units::{LinkId, Time};
use hawser_net::workers::{self, Workers};
use smallvec::SmallVec;

use super::socket::{Lane, LinkSocket};
use super::transmit::BATCHES_PER_ROUND;

/// A smaller batch, in bytes, is sealed at once: 11 datagrams, which take 3 µs with AES-128-GCM.
const SHARED_FROM: usize = 16 * 1024;
/// Sockets that are lent without an allocation.
const FEW: usize = 16;

/// The buffers of all sockets, lent to the core. Lives for a round of the workers.
struct Lanes<'a>(SmallVec<[Lane<'a>; FEW]>);

impl Buffers for Lanes<'_> {
    fn spare(&mut self, link: LinkId, remote: SocketAddr) -> Option<&mut [u8]> {
        self.0.get_mut(usize::from(link.0))?.spare(remote)
    }
}

/// Fills the sockets' batches, sealed. Whether there may be more to send at once.
pub fn fill(endpoint: &mut Endpoint, sockets: &mut [LinkSocket], workers: &mut Workers, now: Time) -> bool {
    let mut batches = 0;
    while batches < BATCHES_PER_ROUND {
        // Step 1.
        sockets.iter_mut().for_each(|socket| socket.make_room(now));
        // Step 2.
        let before = batches;
        let more = workers.round(|round| {
            let mut lanes = Lanes(sockets.iter_mut().map(LinkSocket::lane).collect());
            while batches < BATCHES_PER_ROUND && lanes.0.iter().all(Lane::has_room) {
                let Some((transmit, unsealed)) = endpoint.poll_unsealed(now, &mut lanes) else { return false };
                batches += 1;
                let Some(batch) = lanes.commit(&transmit) else { continue };
                let Some(how) = unsealed else { continue };
                if batch.len() < SHARED_FROM {
                    how.seal(batch);
                    continue;
                }
                for task in workers::seal(batch, how) {
                    if round.is_full() {
                        round.next();
                    }
                    round.push(task);
                }
            }
            true
        });
        if !more || batches == before {
            return more;
        }
    }
    true
}

impl<'a> Lanes<'a> {
    /// The batch that was just written, as it is sealed.
    fn commit(&mut self, transmit: &Transmit) -> Option<&'a mut [u8]> {
        let batch = self.0[usize::from(transmit.link.0)].commit(transmit);
        debug_assert!(batch.is_some(), "spare room is room for a run");
        batch
    }
}
