//! What is to happen, in the order of its time; what is due at one time happens in the order it was added.

use hawser_core::units::Time;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

struct Entry<T> {
    at: Time,
    number: u64,
    what: T,
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        // A heap gives the greatest first: the earliest must be greatest.
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Entry<T> {}

/// Future events. Empty at first; one owner.
pub struct EventQueue<T> {
    heap: BinaryHeap<Entry<T>>,
    number: u64,
}

impl<T> Default for EventQueue<T> {
    fn default() -> Self {
        EventQueue { heap: BinaryHeap::new(), number: 0 }
    }
}

impl<T> EventQueue<T> {
    /// `what` happens at `at`.
    pub fn push(&mut self, at: Time, what: T) {
        self.number += 1;
        self.heap.push(Entry { at, number: self.number, what });
    }

    /// When the next event is due.
    pub fn next_at(&self) -> Option<Time> {
        self.heap.peek().map(|entry| entry.at)
    }

    /// Takes the next event if it is due by `now`.
    pub fn pop_due(&mut self, now: Time) -> Option<T> {
        let due = self.next_at().is_some_and(|at| at <= now);
        if due { self.heap.pop().map(|entry| entry.what) } else { None }
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
