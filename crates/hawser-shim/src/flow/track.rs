//! What passed one way of a flow.

use std::time::Duration;

use hawser_core::units::Time;

use crate::mptcp::{Flags, Segment, Sequence};

/// What counts as of late: this many intervals of a second.
pub const INTERVALS: usize = 8;
const INTERVAL: Duration = Duration::from_secs(1);

/// What passed one way of a flow. Starts with nothing. Plain data.
#[derive(Clone, Debug, Default)]
pub struct Track {
    /// Packets, trains counted as one.
    pub packets: u64,
    /// Data, also what is retransmitted.
    pub bytes: u64,
    /// Packets with data, SYN or FIN that had passed before.
    pub retransmissions: u64,
    /// Data in them.
    pub retransmitted: u64,
    /// Acknowledgments that say again what one before said, while data is on its way (RFC 5681 section 2), or tell of
    /// parts (RFC 6675).
    pub duplicate_acks: u64,
    recent: Recent,
    end: Option<Sequence>,
    acknowledgment: Option<Sequence>,
    window: u16,
    fin: Option<Sequence>,
}

/// Bytes of the last intervals. Starts with none. Plain data.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    bytes: [u64; INTERVALS],
    /// The number of the newest interval, since time began.
    newest: u64,
}

impl Recent {
    fn number(now: Time) -> u64 {
        now.as_nanos() / u64::try_from(INTERVAL.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Throws away what is no longer of late.
    fn turn(&mut self, now: Time) {
        let number = Self::number(now);
        while self.newest < number {
            self.newest = (self.newest + 1).max(number.saturating_sub(INTERVALS as u64));
            self.bytes[slot(self.newest)] = 0;
        }
    }

    fn add(&mut self, now: Time, bytes: u64) {
        self.turn(now);
        self.bytes[slot(self.newest)] += bytes;
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the remainder is small")]
const fn slot(number: u64) -> usize {
    (number % INTERVALS as u64) as usize
}

impl Track {
    /// Data that passed within the last 7 to 8 seconds.
    pub fn recent(&self, now: Time) -> u64 {
        let mut recent = self.recent;
        recent.turn(now);
        recent.bytes.iter().sum()
    }

    /// Data that passed in each of the last seconds, the oldest first; the last one is not over.
    pub fn intervals(&self, now: Time) -> [u64; INTERVALS] {
        let mut recent = self.recent;
        recent.turn(now);
        let mut intervals = recent.bytes;
        intervals.rotate_left(slot(recent.newest + 1));
        intervals
    }

    /// Where what passed ends.
    pub(crate) const fn end(&self) -> Option<Sequence> {
        self.end
    }

    /// What its sender expects.
    pub(super) const fn acknowledgment(&self) -> Option<Sequence> {
        self.acknowledgment
    }

    /// Where all ends.
    pub(super) const fn fin(&self) -> Option<Sequence> {
        self.fin
    }

    /// Whether all that this sender had, its FIN too, has been acknowledged the other way.
    pub(super) fn is_fin_acknowledged(&self, there: &Track) -> bool {
        self.fin.zip(there.acknowledgment).is_some_and(|(fin, acknowledged)| !fin.is_after(acknowledged))
    }

    /// Counts a segment, of which `there` is the other way; `closes` is true where its FIN is not forged.
    pub(super) fn count(&mut self, now: Time, segment: &Segment<'_>, there: &Track, closes: bool) {
        let bytes = u64::from(segment.payload);
        let end = segment.end();
        let is_new = self.end.is_none_or(|before| end.is_after(before));
        let takes_numbers = end != segment.sequence;
        self.packets += 1;
        self.bytes += bytes;
        self.recent.add(now, bytes);
        if takes_numbers && !is_new {
            self.retransmissions += 1;
            self.retransmitted += bytes;
        }
        if self.is_duplicate_ack(segment, takes_numbers, there) {
            self.duplicate_acks += 1;
        }
        if is_new && !segment.flags.has(Flags::RST) {
            self.end = Some(end);
        }
        if closes {
            self.fin = Some(end);
        }
        if segment.flags.has(Flags::ACK) {
            self.acknowledge(segment, there);
        }
    }

    /// Counts a datagram of UDP.
    pub(super) fn count_datagram(&mut self, now: Time, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
        self.recent.add(now, bytes);
    }

    /// What was never sent is acknowledged by forgers only.
    fn acknowledge(&mut self, segment: &Segment<'_>, there: &Track) {
        let was_sent = there.end.is_none_or(|end| !segment.acknowledgment.is_after(end));
        if was_sent && self.acknowledgment.is_none_or(|before| !before.is_after(segment.acknowledgment)) {
            self.acknowledgment = Some(segment.acknowledgment);
            self.window = segment.window;
        }
    }

    fn is_duplicate_ack(&self, segment: &Segment<'_>, takes_numbers: bool, there: &Track) -> bool {
        let is_bare = segment.flags.has(Flags::ACK) && !takes_numbers && !segment.flags.has(Flags::RST);
        let is_same = self.acknowledgment == Some(segment.acknowledgment);
        let is_awaited = there.end.is_some_and(|end| end.is_after(segment.acknowledgment));
        is_bare && is_same && is_awaited && (segment.window == self.window || segment.has_sack())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mptcp::samples::Draft;

    fn at(seconds: u64) -> Time {
        Time::from_nanos(seconds * 1_000_000_000)
    }

    fn shown(track: &mut Track, now: Time, draft: &Draft, there: &Track) {
        let packet = draft.packet();
        track.count(now, &Segment::parse(&packet).unwrap(), there, false);
    }

    fn data(sequence: u32, len: usize) -> Draft {
        Draft { sequence, payload: vec![0; len], ..Draft::default() }
    }

    #[test]
    fn data_counts_and_what_is_sent_again_counts_as_that_too() {
        let (mut track, there) = (Track::default(), Track::default());
        for (sequence, len) in [(1, 100), (101, 100), (101, 100), (1, 50), (151, 100)] {
            shown(&mut track, at(1), &data(sequence, len), &there);
        }
        assert_eq!((track.packets, track.bytes), (5, 450));
        assert_eq!((track.retransmissions, track.retransmitted), (2, 150), "the last one brings news as well");
    }

    #[test]
    fn an_acknowledgment_is_a_duplicate_while_data_is_on_its_way() {
        let (mut track, mut there) = (Track::default(), Track::default());
        shown(&mut there, at(0), &data(1, 200), &track);
        let ack = |number: u32, window: u16| Draft { acknowledgment: number, window, ..Draft::default() };
        for draft in [ack(101, 500), ack(101, 500), ack(101, 900), ack(201, 900), ack(201, 900)] {
            shown(&mut track, at(0), &draft, &there);
        }
        assert_eq!(track.duplicate_acks, 1, "not the one about the window, nor those after all arrived");
    }

    #[test]
    fn what_is_of_late_is_forgotten_in_time() {
        let (mut track, there) = (Track::default(), Track::default());
        shown(&mut track, at(100), &data(1, 100), &there);
        shown(&mut track, at(104), &data(101, 30), &there);
        let recent = [104, 107, 108, 111, 112, 100_000].map(|second| track.recent(at(second)));
        assert_eq!(recent, [130, 130, 30, 30, 0, 0]);
        assert_eq!(track.bytes, 130);
    }
}
