//! A half-duplex medium, as the air is: one transmission at a time among all ways that name it.

use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use super::thread::Thread;
use crate::error::WireError;

/// 802.11n at 5 GHz. Source: IEEE 802.11-2020: HT PHY (slot, SIFS, the HT-mixed preamble of one stream), default EDCA
/// parameters (best effort waits three slots after SIFS, and draws from these windows); a compressed block
/// acknowledgement of 32 bytes at 24 Mbit/s takes 20 µs of preamble and three symbols.
const SLOT: Duration = Duration::from_micros(9);
const SIFS: Duration = Duration::from_micros(16);
const IDLE_SLOTS: u32 = 3;
const PREAMBLE: Duration = Duration::from_micros(36);
const BLOCK_ACK: Duration = Duration::from_micros(32);
const WINDOW: u32 = 15;
const WINDOW_MOST: u32 = 1023;
/// Packets that one transmission carries: what an access point of the time aggregates under load. Source: an estimate;
/// the standard allows 64.
const AGGREGATED: u32 = 16;

/// How those on a medium take turns. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// What a transmission takes beside its packets' bits: interframe spaces, preamble, acknowledgement.
    pub overhead: Duration,
    /// Packets that one transmission carries at most, as 802.11's aggregation does; at least one.
    pub burst: u32,
    /// How turns are drawn; without it whoever has waited longest since its last turn is next, at once.
    pub backoff: Option<Backoff>,
    /// Where chance starts.
    pub seed: u64,
}

/// Turns by chance, as 802.11's distributed coordination: each draws a number of slots, the least goes first, the
/// others keep what they have left. Two that draw the same collide: both take the air in vain, and draw again from
/// twice as many. Plain data. Source: IEEE 802.11-2020, 10.3.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The length of a slot.
    pub slot: Duration,
    /// Slots are drawn from 0 to this at first (CWmin).
    pub window: u32,
    /// And after collisions to this at most (CWmax).
    pub window_most: u32,
}

impl Access {
    /// One packet at a time, in turns, at no cost.
    #[must_use]
    pub const fn turns() -> Self {
        Self { overhead: Duration::ZERO, burst: 1, backoff: None, seed: 0 }
    }

    /// 802.11n at 5 GHz, best effort, with 16 packets a transmission.
    #[must_use]
    pub const fn wifi_n() -> Self {
        let idle = SIFS.saturating_add(SLOT.saturating_mul(IDLE_SLOTS));
        Self {
            overhead: idle.saturating_add(PREAMBLE).saturating_add(SIFS).saturating_add(BLOCK_ACK),
            burst: AGGREGATED,
            backoff: Some(Backoff { slot: SLOT, window: WINDOW, window_most: WINDOW_MOST }),
            seed: 0,
        }
    }
}

/// A medium. Ways of links name it by a clone ([`super::Direction::medium`]); all links that do are carried by one
/// thread. Starts idle; may be used from any thread.
#[derive(Clone, Debug)]
pub struct Medium(Arc<Inner>);

/// What the clones share. No lock is taken while another is held.
#[derive(Debug)]
struct Inner {
    access: Mutex<Access>,
    /// The thread, while a link is on the medium.
    thread: Mutex<Weak<Thread>>,
}

impl Medium {
    /// A medium that nobody uses yet.
    #[must_use]
    pub fn new(access: Access) -> Self {
        Self(Arc::new(Inner { access: Mutex::new(access), thread: Mutex::default() }))
    }

    /// How turns are taken now.
    #[must_use]
    pub fn access(&self) -> Access {
        *lock(&self.0.access)
    }

    /// Changes how turns are taken, from the next turn on; its chance goes on.
    pub fn set(&self, access: Access) {
        *lock(&self.0.access) = access;
    }

    /// The thread that carries its links; started by `start` where there is none.
    pub(crate) fn thread(
        &self,
        start: impl FnOnce() -> Result<Arc<Thread>, WireError>,
    ) -> Result<Arc<Thread>, WireError> {
        let mut thread = lock(&self.0.thread);
        if let Some(running) = thread.upgrade() {
            return Ok(running);
        }
        let started = start()?;
        *thread = Arc::downgrade(&started);
        Ok(started)
    }
}

impl PartialEq for Medium {
    /// Clones are equal, and nothing else is.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Locks what only whole values are written to: a panic elsewhere has not broken it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
