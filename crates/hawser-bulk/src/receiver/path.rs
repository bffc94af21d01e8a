//! One path of a receiver: which numbers have come, and when that is to be said.
//!
//! 1. [`RecvPath::on_number`] and [`RecvPath::on_mark`] take what comes. 2.
//!    [`RecvPath::is_due`], [`RecvPath::deadline`]: when to acknowledge. 3. [`RecvPath::ack`] says what.

use std::time::Duration;

use hawser_core::path::constants::MAX_ACK_DELAY;
use hawser_core::path::ranges::RangeSet;
use hawser_core::units::{PacketNumber, PathId, Time};
use hawser_core::wire::{DataHeader, Label, TruncatedNumber};

use crate::wire::{Ack, MOST_BITMAP, Mark, write_bitmap};

/// Bytes that the first acknowledgements wait for: two datagrams (RFC 9000 section 13.2.2).
const FIRST_ACK_BYTES: u32 = 2400;
/// What a gap makes due comes at most once in this time: where datagrams overtake each other each of them is one.
const GAP_SPACING: Duration = Duration::from_micros(250);
/// The most that a sender's wishes may put off an acknowledgement.
const MOST_ACK_BYTES: u32 = 1 << 20;

/// A path. Nothing has come at first; its session owns it. `A` is where answers go.
#[derive(Debug)]
pub(super) struct RecvPath<A> {
    pub(super) id: PathId,
    pub(super) answer_to: A,
    pub(super) largest: Option<PacketNumber>,
    label: Label,
    received: RangeSet,
    largest_at: Time,
    mark: u64,
    ack_bytes: u32,
    ack_delay: Duration,
    waiting: u32,
    waiting_since: Option<Time>,
    at_once: bool,
    acked_at: Time,
    next: PacketNumber,
}

impl<A: Copy> RecvPath<A> {
    /// A path that something came by; `label` is that of answers.
    pub(super) fn new(id: PathId, label: Label, answer_to: A, now: Time) -> RecvPath<A> {
        RecvPath {
            id,
            answer_to,
            largest: None,
            label,
            received: RangeSet::default(),
            largest_at: now,
            mark: 0,
            ack_bytes: FIRST_ACK_BYTES,
            ack_delay: MAX_ACK_DELAY,
            waiting: 0,
            waiting_since: None,
            at_once: false,
            acked_at: Time::ZERO,
            next: PacketNumber(0),
        }
    }

    /// Step 1: a datagram opened. Answers go where the newest came from.
    pub(super) fn on_number(&mut self, now: Time, number: PacketNumber, bytes: usize, from: A) {
        match self.largest {
            Some(largest) if number <= largest => self.at_once = true,
            largest => {
                self.at_once |= largest.is_some_and(|largest| largest.next() != number);
                (self.largest, self.largest_at, self.answer_to) = (Some(number), now, from);
            }
        }
        if number.0 >= self.mark {
            self.received.insert(number);
        }
        self.waiting = self.waiting.saturating_add(bytes as u32);
        self.waiting_since.get_or_insert(now);
    }

    /// Step 1: what the sender wants to hear. An old mark changes nothing; each asks for an acknowledgement.
    pub(super) fn on_mark(&mut self, mark: &Mark) {
        self.at_once = true;
        if mark.mark < self.mark || self.largest.is_none_or(|largest| mark.mark > largest.0 + 1) {
            return;
        }
        self.mark = mark.mark;
        self.received.remove_below(PacketNumber(mark.mark));
        self.ack_bytes = mark.ack_bytes.clamp(1, MOST_ACK_BYTES);
        self.ack_delay = Duration::from_micros(mark.ack_delay_us.into()).min(MAX_ACK_DELAY);
    }

    /// Something waits for the next acknowledgement.
    pub(super) fn hurry(&mut self) {
        self.at_once = true;
    }

    /// Something is to be said although nothing came.
    pub(super) fn tell(&mut self, now: Time) {
        self.waiting = self.waiting.max(1);
        self.waiting_since.get_or_insert(now);
    }

    /// Step 2.
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.waiting > 0 && (self.waiting >= self.ack_bytes || self.deadline().is_some_and(|at| at <= now))
    }

    /// Step 2: when it is due at last.
    pub(super) fn deadline(&self) -> Option<Time> {
        let since = self.waiting_since?;
        let due = since + self.ack_delay;
        Some(if self.at_once { due.min(self.acked_at + GAP_SPACING) } else { due })
    }

    /// Step 3: what has come, and with how many bytes of `bitmap` it is said.
    pub(super) fn ack<'b>(
        &mut self,
        now: Time,
        control: u32,
        limit: u32,
        bitmap: &'b mut [u8; MOST_BITMAP],
    ) -> Ack<'b> {
        (self.waiting, self.waiting_since, self.at_once, self.acked_at) = (0, None, false, now);
        let oldest = self.received.newest_first().last();
        let cumulative =
            oldest.filter(|range| range.start().0 <= self.mark).map_or(self.mark, |range| range.end().0 + 1);
        let (first, len) = write_bitmap(cumulative, self.received.newest_first(), bitmap);
        Ack {
            mark: cumulative,
            received_at_us: self.largest_at.as_micros(),
            delay_us: u32::try_from(now.since(self.largest_at).as_micros()).unwrap_or(u32::MAX),
            control,
            limit,
            first,
            bitmap: &bitmap[..len],
        }
    }

    /// The header of the next datagram that goes back.
    pub(super) fn next_number(&mut self) -> (PacketNumber, DataHeader) {
        let number = self.next;
        self.next = number.next();
        (number, DataHeader { label: self.label, number: TruncatedNumber::of(number) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::from_nanos(1_000_000_000 + us * 1000)
    }

    fn path() -> RecvPath<u8> {
        RecvPath::new(PathId(0), Label(7), 1, at(0))
    }

    fn said(path: &mut RecvPath<u8>, now: Time) -> (u64, Vec<(u64, u64)>) {
        let mut bitmap = [0; MOST_BITMAP];
        let ack = path.ack(now, 0, 0, &mut bitmap);
        (ack.mark, ack.runs().map(|run| (run.start().0, run.end().0)).collect())
    }

    #[test]
    fn what_has_come_is_said_from_the_first_gap_on() {
        let mut path = path();
        for number in [0, 1, 2, 4, 5, 9] {
            path.on_number(at(0), PacketNumber(number), 100, 1);
        }
        assert_eq!(said(&mut path, at(1)), (3, vec![(4, 5), (9, 9)]));
        path.on_mark(&Mark { mark: 5, ack_bytes: 1000, ack_delay_us: 300, control: 0 });
        assert_eq!(said(&mut path, at(1)), (6, vec![(9, 9)]));
        path.on_number(at(0), PacketNumber(3), 100, 1);
        assert_eq!(said(&mut path, at(1)), (6, vec![(9, 9)]), "below the mark nobody wants to hear of it");
        path.on_mark(&Mark { mark: 11, ack_bytes: 1, ack_delay_us: 0, control: 0 });
        assert_eq!(said(&mut path, at(1)), (6, vec![(9, 9)]), "a mark above all that came is a lie");
    }

    #[test]
    fn it_is_said_after_some_bytes_some_time_or_at_a_gap() {
        let mut path = path();
        path.on_number(at(0), PacketNumber(0), 1200, 1);
        assert_eq!((path.is_due(at(0)), path.deadline()), (false, Some(at(5000))));
        path.on_number(at(10), PacketNumber(1), 1200, 1);
        assert!(path.is_due(at(10)), "two datagrams");
        said(&mut path, at(10));
        assert_eq!((path.is_due(at(9999)), path.deadline()), (false, None));
        path.on_mark(&Mark { mark: 0, ack_bytes: 10_000, ack_delay_us: 1000, control: 0 });
        path.on_number(at(20), PacketNumber(2), 100, 1);
        assert_eq!(path.deadline(), Some(at(260)), "a mark asks at once, but not twice in a quarter of a millisecond");
        said(&mut path, at(300));
        path.on_number(at(310), PacketNumber(3), 9_999, 1);
        assert_eq!((path.is_due(at(311)), path.deadline()), (false, Some(at(1310))));
        path.on_number(at(320), PacketNumber(5), 0, 1);
        assert_eq!(path.deadline(), Some(at(550)), "a gap");
    }

    #[test]
    fn answers_go_where_the_newest_came_from() {
        let mut path = path();
        path.on_number(at(0), PacketNumber(5), 1, 2);
        path.on_number(at(0), PacketNumber(4), 1, 3);
        assert_eq!(path.answer_to, 2);
        path.on_number(at(0), PacketNumber(6), 1, 4);
        assert_eq!(path.answer_to, 4);
    }
}
