//! The queue from the receiving thread: two piles of payloads. The thread adds to one while callers take from the
//! other; when theirs is empty they change places.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::super::error::RecvError;

/// Payloads back to back. Empty at first. For one thread, behind a lock.
#[derive(Debug)]
struct Pile {
    bytes: Box<[u8]>,
    used: usize,
    /// Where each payload ends.
    ends: Vec<usize>,
    /// The next to be taken, and where it begins.
    next: usize,
    from: usize,
}

impl Pile {
    fn new(bytes: usize, packets: usize) -> Pile {
        Pile { bytes: vec![0; bytes].into(), used: 0, ends: Vec::with_capacity(packets), next: 0, from: 0 }
    }

    fn push(&mut self, payload: &[u8]) -> bool {
        let room = self.bytes.get_mut(self.used..self.used + payload.len());
        let Some(room) = room.filter(|_| self.ends.len() < self.ends.capacity()) else { return false };
        room.copy_from_slice(payload);
        self.used += payload.len();
        self.ends.push(self.used);
        true
    }

    fn first(&self) -> Option<&[u8]> {
        Some(&self.bytes[self.from..*self.ends.get(self.next)?])
    }

    fn pop(&mut self) {
        self.from = self.ends[self.next];
        self.next += 1;
        if self.next == self.ends.len() {
            (self.used, self.next, self.from) = (0, 0, 0);
            self.ends.clear();
        }
    }
}

/// Packets that wait to be received. Empty at first. For one thread that adds and several that take.
#[derive(Debug)]
pub(super) struct Incoming {
    /// Taken from; locked before the other.
    taking: Mutex<Pile>,
    adding: Mutex<Adding>,
    something: Condvar,
}

#[derive(Debug)]
struct Adding {
    pile: Pile,
    /// Callers that wait for something.
    waiting: usize,
    dropped: u64,
    ends: bool,
    /// Why the thread had to end.
    error: Option<io::Error>,
}

impl Incoming {
    /// Each pile holds half of what may wait.
    pub(super) fn new(bytes: usize, packets: usize) -> Incoming {
        let pile = || Pile::new(bytes / 2, packets.div_ceil(2));
        let adding = Adding { pile: pile(), waiting: 0, dropped: 0, ends: false, error: None };
        Incoming { taking: Mutex::new(pile()), adding: Mutex::new(adding), something: Condvar::new() }
    }

    /// Adds a payload, or drops and counts it.
    pub(super) fn push(&self, payload: &[u8]) {
        let mut adding = self.adding();
        if !adding.pile.push(payload) {
            adding.dropped += 1;
        }
        if adding.waiting > 0 {
            self.something.notify_one();
        }
    }

    /// Takes a payload; waits until `end`, or for ever.
    pub(super) fn pop(&self, payload: &mut [u8], end: Option<Instant>) -> Result<usize, RecvError> {
        loop {
            if let Some(got) = self.try_pop(payload) {
                return got;
            }
            let mut adding = self.adding();
            while adding.pile.first().is_none() {
                if let Some(error) = adding.error.take() {
                    return Err(error.into());
                }
                let left = end.map(|end| end.saturating_duration_since(Instant::now()));
                if adding.ends || left.is_some_and(|left| left.is_zero()) {
                    return Err(RecvError::TimedOut);
                }
                adding.waiting += 1;
                adding = match left {
                    None => self.something.wait(adding).unwrap_or_else(PoisonError::into_inner),
                    Some(left) => self.something.wait_timeout(adding, left).unwrap_or_else(PoisonError::into_inner).0,
                };
                adding.waiting -= 1;
            }
        }
    }

    fn try_pop(&self, payload: &mut [u8]) -> Option<Result<usize, RecvError>> {
        let mut taking = self.taking.lock().unwrap_or_else(PoisonError::into_inner);
        if taking.first().is_none() {
            std::mem::swap(&mut *taking, &mut self.adding().pile);
        }
        let first = taking.first()?;
        let (bytes, room) = (first.len(), payload.len());
        let Some(into) = payload.get_mut(..bytes) else { return Some(Err(RecvError::TooShort { bytes, room })) };
        into.copy_from_slice(first);
        taking.pop();
        Some(Ok(bytes))
    }

    /// Payloads dropped.
    pub(super) fn dropped(&self) -> u64 {
        self.adding().dropped
    }

    /// Nothing will be added any more, perhaps because of an error.
    pub(super) fn end(&self, error: Option<io::Error>) {
        let mut adding = self.adding();
        adding.ends = true;
        adding.error = error;
        drop(adding);
        self.something.notify_all();
    }

    /// Whether nothing is to be added any more.
    pub(super) fn ends(&self) -> bool {
        self.adding().ends
    }

    fn adding(&self) -> MutexGuard<'_, Adding> {
        self.adding.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_come_in_order_through_both_piles_and_those_without_room_are_counted() {
        let incoming = Incoming::new(8, 6);
        for payload in [&[1][..], &[2, 2], &[], &[4], &[3; 5]] {
            incoming.push(payload);
        }
        assert_eq!(incoming.dropped(), 2, "three packets, and four bytes");
        let mut room = [0; 2];
        let take = |room: &mut [u8]| incoming.pop(room, Some(Instant::now())).map_err(|error| error.to_string());
        assert_eq!((take(&mut room), room[0]), (Ok(1), 1));
        incoming.push(&[5]);
        assert!(take(&mut room[..1]).expect_err("too short").contains("2 bytes, room for 1"));
        assert_eq!((take(&mut room), room), (Ok(2), [2, 2]));
        assert_eq!(take(&mut room), Ok(0));
        assert_eq!((take(&mut room), room[0]), (Ok(1), 5));
        assert!(take(&mut room).expect_err("empty").contains("nothing came in time"));
        incoming.end(Some(io::ErrorKind::NotConnected.into()));
        assert!(matches!(incoming.pop(&mut room, None), Err(RecvError::Socket(_))));
        assert!(matches!(incoming.pop(&mut room, None), Err(RecvError::TimedOut)), "not for ever");
    }
}
