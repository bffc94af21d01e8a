//! What is to happen, in the order of its time; what is due at one time happens in the order it was added.

use hawser_core::units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Future events. Empty at first; one owner.
pub struct EventQueue<T> {
    /// When, which in order, and where it waits: a heap moves what it holds, and an event may be a whole datagram.
    heap: BinaryHeap<Reverse<(Time, u64, usize)>>,
    waiting: Vec<Option<T>>,
    /// Places where nothing waits.
    free: Vec<usize>,
    number: u64,
}

impl<T> Default for EventQueue<T> {
    fn default() -> Self {
        EventQueue { heap: BinaryHeap::new(), waiting: Vec::new(), free: Vec::new(), number: 0 }
    }
}

impl<T> EventQueue<T> {
    /// `what` happens at `at`.
    pub fn push(&mut self, at: Time, what: T) {
        self.number += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.waiting.push(None);
            self.waiting.len() - 1
        });
        self.waiting[place] = Some(what);
        self.heap.push(Reverse((at, self.number, place)));
    }

    /// When the next event is due.
    pub fn next_at(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// Takes the next event if it is due by `now`.
    pub fn pop_due(&mut self, now: Time) -> Option<T> {
        self.next_at().filter(|at| *at <= now)?;
        let Reverse((_, _, place)) = self.heap.pop()?;
        self.free.push(place);
        self.waiting[place].take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_by_the_order_they_were_added() {
        let mut queue = EventQueue::default();
        for (at, what) in [(5, 'c'), (1, 'a'), (5, 'd'), (1, 'b')] {
            queue.push(Time::from_nanos(at), what);
        }
        let mut order = String::new();
        assert_eq!(queue.next_at(), Some(Time::from_nanos(1)));
        while let Some(what) = queue.pop_due(Time::from_nanos(4)) {
            order.push(what);
        }
        assert_eq!(order, "ab");
        while let Some(what) = queue.pop_due(Time::from_nanos(5)) {
            order.push(what);
        }
        assert_eq!(order, "abcd");
    }
}
