//! Step 2 for TCP: the records of connections (docs/wire.md).
//!
//! ```text
//! +------------+----------------- - -
//! | length   2 | datagram
//! +------------+----------------- - -
//! ```
//! 1. Segments are put in order; what came before is cut off. 2. A connection whose beginning was captured gives its
//!    records from the first byte. 3. One that was joined later, or lost bytes, gives them from the first known label
//!    on.

use std::collections::{BTreeMap, HashMap};

use hawser_core::wire::{DATA_HEADER_LEN, DatagramKind, Label, TAG_LEN};

use crate::Summary;
use crate::opened::handshake_len;
use crate::outer::{Segment, Way};

/// Bytes of a record's length.
const LENGTH_LEN: usize = 2;
/// Bytes of a record up to the end of its datagram's label.
const HEAD_LEN: usize = LENGTH_LEN + 5;
/// Bytes of a connection that may wait for a missing one: the largest receive window of Linux's defaults (tcp_rmem).
const AHEAD_MAX: usize = 6 << 20;
/// How a TLS connection begins: a handshake record of TLS 1.x (RFC 8446 section 5.1).
const TLS: [u8; 2] = [0x16, 0x03];

/// Where a connection's records begin.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Sync {
    /// Nothing is known: a known label is looked for.
    Lost,
    /// At the next byte.
    Found,
    /// There are none.
    Foreign,
}

/// One direction of a connection. Its sync is lost at first; all streams own it.
#[derive(Debug)]
struct Stream {
    sync: Sync,
    next: Option<u32>,
    ready: Vec<u8>,
    /// By how far they are ahead of `next` when it was zero.
    ahead: BTreeMap<u64, Vec<u8>>,
    ahead_bytes: usize,
    /// Bytes put in order so far.
    base: u64,
}

/// All TCP connections. None at first; the decoding owns it.
#[derive(Default)]
pub(crate) struct Streams(HashMap<Way, Stream>);

impl Streams {
    /// A segment came: the datagrams that it completes. On an `expected` connection records are believed without a
    /// known label.
    pub fn on_segment(
        &mut self,
        way: Way,
        segment: &Segment<'_>,
        expected: bool,
        known: &dyn Fn(Label) -> bool,
        summary: &mut Summary,
    ) -> Vec<Vec<u8>> {
        let stream = self.0.entry(way).or_default();
        if segment.begins {
            *stream = Stream { next: Some(segment.sequence.wrapping_add(1)), ..Stream::default() };
            stream.sync = if expected { Sync::Found } else { Sync::Lost };
            return Vec::new();
        }
        if stream.sync == Sync::Foreign || segment.bytes.is_empty() {
            return Vec::new();
        }
        let fresh = stream.base == 0 && stream.ready.is_empty();
        stream.take(segment, summary);
        if fresh && expected && stream.sync == Sync::Found && stream.ready.starts_with(&TLS) {
            summary.tls += 1;
            *stream = Stream { sync: Sync::Foreign, ..Stream::default() };
        }
        stream.records(known)
    }
}

impl Default for Stream {
    fn default() -> Self {
        let (ready, ahead) = (Vec::new(), BTreeMap::new());
        Stream { sync: Sync::Lost, next: None, ready, ahead, ahead_bytes: 0, base: 0 }
    }
}

impl Stream {
    /// Step 1.
    fn take(&mut self, segment: &Segment<'_>, summary: &mut Summary) {
        let next = *self.next.get_or_insert(segment.sequence);
        let distance = segment.sequence.wrapping_sub(next).cast_signed();
        if let Ok(ahead) = u64::try_from(distance).map(|ahead| self.base + ahead)
            && ahead > self.base
        {
            let before = self.ahead.insert(ahead, segment.bytes.to_vec());
            self.ahead_bytes += segment.bytes.len();
            self.ahead_bytes -= before.map_or(0, |before| before.len());
            if self.ahead_bytes > AHEAD_MAX {
                self.skip_gap(summary);
            }
            return;
        }
        self.append(distance.unsigned_abs() as usize, segment.bytes);
        self.append_ahead();
    }

    /// Appends bytes of which the first `old` came before.
    fn append(&mut self, old: usize, bytes: &[u8]) {
        let Some(new) = bytes.get(old..) else { return };
        self.ready.extend_from_slice(new);
        self.base += new.len() as u64;
        self.next = self.next.map(|next| next.wrapping_add(new.len() as u32));
    }

    /// What waited for the bytes that came.
    fn append_ahead(&mut self) {
        while let Some(first) = self.ahead.first_entry().filter(|first| *first.key() <= self.base) {
            let (at, bytes) = first.remove_entry();
            self.ahead_bytes -= bytes.len();
            self.append((self.base - at) as usize, &bytes);
        }
    }

    /// The missing bytes will not come: the capture lost them.
    fn skip_gap(&mut self, summary: &mut Summary) {
        let Some((&at, _)) = self.ahead.first_key_value() else { return };
        summary.gaps += 1;
        self.next = self.next.map(|next| next.wrapping_add((at - self.base) as u32));
        self.base = at;
        self.ready.clear();
        self.sync = Sync::Lost;
        self.append_ahead();
    }

    /// Steps 2 and 3: the datagrams that are whole.
    fn records(&mut self, known: &dyn Fn(Label) -> bool) -> Vec<Vec<u8>> {
        let (mut records, mut at) = (Vec::new(), 0);
        while let Some(rest) = self.ready.get(at..).filter(|rest| rest.len() >= HEAD_LEN) {
            let len = usize::from(u16::from_be_bytes([rest[0], rest[1]]));
            let datagram = rest.get(LENGTH_LEN..LENGTH_LEN + len);
            let begins = begins_record(&rest[LENGTH_LEN..], len, self.sync == Sync::Found, known);
            match (begins, datagram) {
                (false, _) => {
                    self.sync = Sync::Lost;
                    at += 1;
                }
                (true, Some(datagram)) => {
                    self.sync = Sync::Found;
                    records.push(datagram.to_vec());
                    at += LENGTH_LEN + len;
                }
                (true, None) => break,
            }
        }
        self.ready.drain(..at);
        records
    }
}

/// Whether a record of `len` bytes may begin with these. Where records are only looked for, its label must be known.
fn begins_record(bytes: &[u8], len: usize, found: bool, known: &dyn Fn(Label) -> bool) -> bool {
    match DatagramKind::of(bytes[0]) {
        Ok(DatagramKind::Data) => {
            let label = Label(u32::from_be_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]));
            len >= DATA_HEADER_LEN + TAG_LEN && (found || known(label))
        }
        Ok(kind) => found && handshake_len(kind) == Some(len),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outer::Transport;

    const LABEL: Label = Label(0x0102_0304);

    fn way() -> Way {
        let at = |port| (std::net::Ipv4Addr::LOCALHOST, port).into();
        Way { transport: Transport::Tcp, source: at(1000), destination: at(4920) }
    }

    fn record(number: u32, len: usize) -> Vec<u8> {
        let mut record = Vec::from((len as u16).to_be_bytes());
        record.push(0x40);
        record.extend(LABEL.0.to_be_bytes());
        record.extend(number.to_be_bytes());
        record.resize(LENGTH_LEN + len, number as u8);
        record
    }

    /// Feeds segments by their places in the stream; gives the numbers of the records that came out.
    fn feed(begins: bool, expected: bool, all: &[u8], order: &[(usize, usize)]) -> (Vec<u8>, Summary) {
        const FIRST: u32 = u32::MAX - 50;
        let (mut streams, mut summary) = (Streams::default(), Summary::default());
        let mut got = Vec::new();
        let mut take = |segment: Segment<'_>| {
            let records = streams.on_segment(way(), &segment, expected, &|label| label == LABEL, &mut summary);
            got.extend(records.iter().map(|record| *record.last().expect("it has bytes")));
        };
        if begins {
            take(Segment { sequence: FIRST.wrapping_sub(1), begins: true, bytes: &[] });
        }
        for (start, end) in order.iter().copied() {
            let sequence = FIRST.wrapping_add(start as u32);
            take(Segment { sequence, begins: false, bytes: &all[start..end] });
        }
        (got, summary)
    }

    #[test]
    fn records_come_whole_in_whatever_segments_they_travel() {
        let all = [record(1, 40), record(2, 90), record(3, 25)].concat();
        let orders: [&[(usize, usize)]; 5] = [
            &[(0, 161)],
            &[(0, 1), (1, 43), (43, 161)],
            &[(43, 161), (0, 43)],
            &[(0, 60), (0, 60), (30, 100), (100, 161), (90, 161)],
            &[(0, 10), (60, 161), (20, 70), (10, 20)],
        ];
        assert_eq!(all.len(), 161);
        for order in orders {
            assert_eq!(feed(true, true, &all, order).0, [1, 2, 3], "{order:?}");
        }
    }

    #[test]
    fn a_connection_that_was_joined_late_is_read_from_a_known_label_on() {
        let all = [record(1, 40), record(2, 90), record(3, 25)].concat();
        for expected in [true, false] {
            assert_eq!(feed(false, expected, &all, &[(7, 50), (50, 161)]).0, [2, 3]);
        }
    }

    #[test]
    fn bytes_that_the_capture_lost_cost_the_records_around_them() {
        let all: Vec<u8> = (0..250).flat_map(|number| record(number, 60_000)).collect();
        let order: Vec<_> =
            (0..all.len() / 10_000).filter(|at| *at != 9).map(|at| (at * 10_000, (at + 1) * 10_000)).collect();
        let (got, summary) = feed(true, true, &all, &order);
        assert_eq!(summary.gaps, 1);
        assert_eq!(got[..3], [0, 2, 3]);
        // The second was lost, and the last one's end is not in the capture.
        assert_eq!(got.len(), 248);
    }

    #[test]
    fn tls_and_other_traffic_give_nothing() {
        let tls = [&TLS[..], &[1; 300]].concat();
        let (got, summary) = feed(true, true, &tls, &[(0, 302)]);
        assert_eq!((got.len(), summary.tls), (0, 1));
        let other = b"GET / HTTP/1.1\r\n".repeat(20);
        assert_eq!(feed(true, true, &other, &[(0, 320)]).0, [0; 0]);
        assert_eq!(feed(false, false, &other, &[(0, 320)]).0, [0; 0]);
    }
}
