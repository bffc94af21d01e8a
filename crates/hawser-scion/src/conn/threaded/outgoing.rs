//! The queue to the sending thread: batches, of which one is being filled.
//!
//! Callers seal packets into it, so that nothing is copied again; the sending thread takes full ones, or the one being
//! filled when there is no other.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use hawser_net::link::SendBatch;

use super::super::error::SendError;
use super::super::flow::Flow;
use super::super::port::Port;
use super::super::send::{Batch, PushError};
use super::LAST_WORDS;
use crate::conn::Pace;

/// Fewest batches: one being sent, one being filled.
const FEWEST_BATCHES: usize = 2;

/// Packets that wait to be sent. Empty at first. For several threads that fill and one that takes.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// Bytes that a batch may have: what goes at once at the pace.
    most: usize,
    state: Mutex<State>,
    something: Condvar,
    room: Condvar,
}

#[derive(Debug)]
struct State {
    filling: SendBatch,
    full: VecDeque<SendBatch>,
    free: Vec<SendBatch>,
    /// The sending thread waits for something.
    idle: bool,
    /// Callers that wait for room.
    waiting: usize,
    /// When the connection was dropped.
    ended: Option<Instant>,
    /// What went wrong, not told yet.
    error: Option<SendError>,
}

impl Outgoing {
    pub(super) fn new(batches: usize, pace: Option<Pace>) -> Outgoing {
        let most = pace.map_or(usize::MAX, Pace::burst_bytes);
        let free = (1..batches.max(FEWEST_BATCHES)).map(|_| SendBatch::new()).collect::<Vec<_>>();
        let full = VecDeque::with_capacity(free.len());
        let (filling, idle, waiting) = (SendBatch::new(), false, 0);
        let state = State { filling, full, free, idle, waiting, ended: None, error: None };
        Outgoing { most, state: Mutex::new(state), something: Condvar::new(), room: Condvar::new() }
    }

    /// Adds a packet; when there is no room, waits or says so.
    pub(super) fn push(&self, port: &Port, flow: &Flow, payload: &[u8], wait: bool) -> Result<(), SendError> {
        let destination = flow.destination;
        let way = flow.way(SystemTime::now())?;
        let mut state = self.lock();
        loop {
            if let Some(error) = state.error.take() {
                return Err(error);
            }
            if state.filling.is_empty() || state.filling.pending_bytes() < self.most {
                match Batch::new(&way, &mut state.filling, None).copy(payload) {
                    Ok(()) => break,
                    Err(PushError::Full) => {}
                    Err(error) => return Err(error.for_destination(destination)),
                }
            }
            if let Some(free) = state.free.pop() {
                let full = std::mem::replace(&mut state.filling, free);
                state.full.push_back(full);
            } else if wait && state.ended.is_none() {
                state.waiting += 1;
                state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.waiting -= 1;
            } else {
                return Err(SendError::Full { destination });
            }
        }
        port.counters.sent_packets.add(1);
        port.counters.sent_bytes.add(payload.len() as u64);
        if std::mem::take(&mut state.idle) {
            self.something.notify_one();
        }
        Ok(())
    }

    /// Waits for something to send and takes it; `None` when there will be nothing more.
    pub(super) fn take(&self) -> Option<SendBatch> {
        let mut state = self.lock();
        loop {
            if let Some(batch) = state.full.pop_front() {
                return Some(batch);
            }
            if !state.filling.is_empty()
                && let Some(free) = state.free.pop()
            {
                return Some(std::mem::replace(&mut state.filling, free));
            }
            if state.ended.is_some() {
                return None;
            }
            state.idle = true;
            state = self.something.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Gives a batch back that was sent.
    pub(super) fn give_back(&self, mut batch: SendBatch) {
        batch.clear();
        let mut state = self.lock();
        state.free.push(batch);
        if state.waiting > 0 {
            self.room.notify_all();
        }
    }

    /// Keeps an error for the next caller; one that is not told yet stays.
    pub(super) fn tell(&self, error: SendError) {
        self.lock().error.get_or_insert(error);
    }

    /// Nobody will add anything more.
    pub(super) fn end(&self) {
        self.lock().ended.get_or_insert_with(Instant::now);
        self.something.notify_one();
        self.room.notify_all();
    }

    /// Whether there was time enough to send what waited.
    pub(super) fn is_over(&self) -> bool {
        self.lock().ended.is_some_and(|ended| ended.elapsed() >= LAST_WORDS)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
