//! Step 4 of a path: which packet numbers the receiver need not acknowledge any more, and how often it is to
//! acknowledge the rest.

use std::time::Duration;

use hawser_core::path::constants::MAX_ACK_DELAY;
use hawser_core::units::{ByteCount, Time};

/// Marks are a round trip apart, and at least this: acknowledgements of what came late are still read meanwhile.
const MARK_EVERY: Duration = Duration::from_millis(10);
/// An acknowledgement is due each eighth of a window and of a round trip: as many as CUBIC's and BBR's growth need (RFC
/// 9000 section 13.2.1 leaves it to the receiver; draft-ietf-quic-ack-frequency has the sender ask).
const ACKS_A_WINDOW: u64 = 8;
/// Bytes that an acknowledgement waits for at most: four trains.
const MOST_ACK_BYTES: u64 = 256 << 10;
/// How long one waits.
const ACK_DELAYS: [Duration; 2] = [Duration::from_micros(200), MAX_ACK_DELAY];

/// When marks go, and what they say. Due at once if asked for; its path owns it.
#[derive(Debug)]
pub(super) struct Marks {
    /// The mark that was told, and the one that the next will tell.
    told: u64,
    next: u64,
    marked_at: Time,
    /// A mark is due, whatever its time.
    due: bool,
}

impl Marks {
    /// Of a path that begins now.
    pub(super) fn new(now: Time) -> Marks {
        Marks { told: 0, next: 0, marked_at: now, due: false }
    }

    /// One goes with the next batch: the other end answers it.
    pub(super) fn ask(&mut self) {
        self.due = true;
    }

    /// None is asked for any more.
    pub(super) fn forget(&mut self) {
        self.due = false;
    }

    /// Whether one was asked for.
    pub(super) fn is_asked(&self) -> bool {
        self.due
    }

    /// Whether one is due by its time. `next_number` is the packet number that is sent next.
    pub(super) fn is_time(&self, now: Time, round_trip: Duration, next_number: u64) -> bool {
        now.since(self.marked_at) >= round_trip.max(MARK_EVERY) && next_number > self.next
    }

    /// The mark that goes now; the next one is the first that is outstanding.
    pub(super) fn tell(&mut self, now: Time, first_outstanding: u64) -> u64 {
        (self.told, self.next) = (self.next, first_outstanding);
        (self.marked_at, self.due) = (now, false);
        self.told
    }

    /// What an acknowledgement of `mark` says of numbers that it does not list: all from the last told one on.
    pub(super) fn acknowledged(&self, mark: u64) -> std::ops::Range<u64> {
        self.told.min(mark)..mark
    }
}

/// Bytes and time that an acknowledgement may wait for, of a path with this window, these datagrams, and this shortest
/// round trip.
pub(super) fn ack_after(window: ByteCount, datagram: ByteCount, shortest: Duration) -> (ByteCount, Duration) {
    let least = 2 * datagram.0;
    let bytes = (window.0 / ACKS_A_WINDOW).clamp(least, MOST_ACK_BYTES.max(least));
    (ByteCount(bytes), (shortest / ACKS_A_WINDOW as u32).clamp(ACK_DELAYS[0], ACK_DELAYS[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgement_is_due_each_eighth_of_a_window_and_of_a_round_trip() {
        let (ms, us) = (Duration::from_millis, Duration::from_micros);
        for (window, shortest, bytes, delay) in [
            (80_000, ms(40), 10_000, ms(5)),
            (1_000, us(100), 2_400, us(200)),
            (100 << 20, ms(4_000), 256 << 10, MAX_ACK_DELAY),
        ] {
            let found = ack_after(ByteCount(window), ByteCount(1_200), shortest);
            assert_eq!(found, (ByteCount(bytes), delay), "{window} bytes, {shortest:?}");
        }
    }

    #[test]
    fn a_mark_is_told_a_round_trip_after_the_last_where_anything_was_sent() {
        let at = |millis: u64| Time::ZERO + Duration::from_millis(millis);
        let mut marks = Marks::new(at(0));
        let trip = Duration::from_millis(50);
        assert!(!marks.is_time(at(49), trip, 9) && marks.is_time(at(50), trip, 9));
        assert_eq!((marks.tell(at(50), 7), marks.tell(at(100), 9)), (0, 7), "the first outstanding of the time before");
        assert!(!marks.is_time(at(200), trip, 9), "nothing was sent since");
        assert_eq!(marks.acknowledged(9), 7..9);
    }
}
