//! The handshake, by one path after the other until one answers.
//!
//! 1. [`Call::poll_transmit`]: an initiation each quarter of a second, by the next path. 2. [`Call::handle_datagram`]:
//!    the first answer that is right gives the keys; a cookie goes along with the next initiation by its path.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use hawser_core::handshake::{Initiator, Memory, TransportKeys, Way};
use hawser_core::units::{LinkId, Random, Time};
use hawser_core::wire::handshake::{HandshakeIndex, INITIATION_LEN};
use hawser_core::wire::{DatagramKind, Offer};

use crate::trust::Trust;

/// Between initiations: a path that is dead costs no more, and 16 paths within a second are four each.
const EVERY: Duration = Duration::from_millis(250);

/// A call that waits for its answer. No initiation was made at first; one thread owns it.
#[derive(Debug)]
pub struct Call {
    initiator: Initiator,
    /// When each path was tried last.
    tried: Vec<Option<Time>>,
    turn: usize,
    next_at: Time,
    index: u32,
}

/// A call that was answered. No default; move it.
#[derive(Debug)]
pub struct Called {
    /// The keys of data.
    pub keys: TransportKeys,
    /// The path that answered.
    pub path: usize,
    /// How long that took.
    pub round_trip: Duration,
}

impl Call {
    /// Calls the receiver of `trust`, by `paths` paths; none where trust names no receiver.
    pub fn new(trust: &Trust, offer: Offer, paths: usize, now: Time, rng: &mut dyn Random) -> Option<Call> {
        let (own, receiver, psk) = trust.calls(rng)?;
        let initiator = Initiator::new(&own, &receiver, psk, offer, Memory::default());
        let index = rng.next_u64() as u32;
        Some(Call { initiator, tried: vec![None; paths], turn: 0, next_at: now, index })
    }

    /// Step 1: an initiation, and the path that it is to go.
    pub fn poll_transmit(&mut self, now: Time, rng: &mut dyn Random) -> Option<(usize, [u8; INITIATION_LEN])> {
        if now < self.next_at || self.tried.is_empty() {
            return None;
        }
        let path = self.turn;
        self.turn = (self.turn + 1) % self.tried.len();
        self.next_at = now + EVERY;
        self.index = self.index.wrapping_add(1);
        self.initiator.begin_round(now);
        let initiation = self.initiator.initiation(now, way(path), HandshakeIndex(self.index), rng).ok()?;
        self.tried[path] = Some(now);
        Some((path, initiation))
    }

    /// Step 2: a datagram came by a path.
    pub fn handle_datagram(&mut self, now: Time, path: usize, datagram: &[u8]) -> Option<Called> {
        let tried = self.tried.get(path).copied().flatten()?;
        match DatagramKind::of(*datagram.first()?) {
            Ok(DatagramKind::CookieReply) => {
                // At once, by the path that the cookie is good for.
                if self.initiator.on_cookie(datagram).is_ok_and(|had| !had) {
                    (self.turn, self.next_at) = (path, now);
                }
                None
            }
            Ok(DatagramKind::Response) => {
                let established = self.initiator.on_response(datagram).ok()?;
                Some(Called { keys: established.keys, path, round_trip: now.since(tried) })
            }
            _ => None,
        }
    }

    /// When the next initiation is due.
    pub fn deadline(&self) -> Time {
        self.next_at
    }
}

/// What cookies are kept by.
fn way(path: usize) -> Way {
    Way { link: LinkId(path as u16), remote: SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0) }
}
