//! One batch under construction: datagrams of one size, back to back, the last perhaps shorter. Between two of them
//! there is as much room as the link needs before each; before the first the link keeps it itself.

use super::constants::{BATCH_BYTES, BATCH_SEGMENTS};
use super::path::Path;
use crate::beside::Unsealed;
use crate::handshake::SealKey;
use crate::units::{ByteCount, PacketNumber, PathId};
use std::sync::Arc;

/// A batch that is written into a link's buffer. Empty at first; it borrows the buffer.
pub(super) struct Batch<'a> {
    buffer: &'a mut [u8],
    len: usize,
    segment_size: usize,
    segments: u16,
    room_before: usize,
    closed: bool,
    /// The number of the first datagram.
    first: PacketNumber,
    /// Its datagrams are sealed by whoever takes it, not one by one.
    seals_later: bool,
}

impl<'a> Batch<'a> {
    /// In this buffer, with this many bytes of room before each datagram.
    pub fn new(buffer: &'a mut [u8], room_before: usize) -> Self {
        let first = PacketNumber::default();
        Batch { buffer, len: 0, segment_size: 0, segments: 0, room_before, closed: false, first, seals_later: false }
    }

    /// The same, but what is in it is sealed later, if so.
    pub fn sealed_later(self, seals_later: bool) -> Self {
        Batch { seals_later, ..self }
    }

    pub fn seals_later(&self) -> bool {
        self.seals_later
    }

    /// How it is sealed under this key on the path that numbered it, where that is still to be done.
    pub fn unsealed(&self, key: &Arc<SealKey>, path: PathId) -> Option<Unsealed> {
        let Batch { first, segment_size: size, room_before, .. } = *self;
        let some = self.seals_later && !self.is_empty();
        some.then(|| Unsealed { key: Arc::clone(key), path, first, size, room_before })
    }

    /// How many more datagrams of `size` may join; a shorter one than the first ends the batch.
    pub fn room_for(&self, size: usize) -> u16 {
        let most = self.buffer.len().min(BATCH_BYTES - self.room_before);
        let room = self.room_before();
        if self.closed || self.len + room + size > most || (self.segments > 0 && size > self.segment_size) {
            return 0;
        }
        if self.segments > 0 && size < self.segment_size {
            return 1;
        }
        let whole = most + self.room_before - room - self.len;
        let by_bytes = u16::try_from(whole / (self.room_before + size).max(1)).unwrap_or(u16::MAX);
        (BATCH_SEGMENTS - self.segments).min(by_bytes)
    }

    /// The next `size` bytes, for a datagram that `room_for` allowed.
    ///
    /// # Panics
    /// For another one: the kernel, and whoever seals later, cut a batch by its first datagram's size, and would seal
    /// under numbers that others have.
    pub fn push(&mut self, size: usize) -> &mut [u8] {
        assert!(self.room_for(size) > 0, "the batch has no room");
        if self.segments == 0 {
            self.segment_size = size;
        }
        self.closed = size < self.segment_size || self.segments + 1 == BATCH_SEGMENTS;
        self.segments += 1;
        let start = self.len + if self.segments > 1 { self.room_before } else { 0 };
        self.len = start + size;
        &mut self.buffer[start..self.len]
    }

    /// Room before the next datagram.
    fn room_before(&self) -> usize {
        if self.segments > 0 { self.room_before } else { 0 }
    }

    /// Ends the batch.
    pub fn close(&mut self) {
        self.closed = true;
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn is_closed(&self) -> bool {
        self.closed
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes on the wire, with `overhead` bytes of outer headers on each datagram.
    pub fn wire_bytes(&self, overhead: usize) -> ByteCount {
        let between = usize::from(self.segments.saturating_sub(1)) * self.room_before;
        ByteCount((self.len - between + usize::from(self.segments) * overhead) as u64)
    }

    pub fn segment_size(&self) -> usize {
        self.segment_size
    }

    /// How many datagrams it has.
    pub fn segments(&self) -> u16 {
        self.segments
    }
}

/// The next datagram of a path in its batch: its number, and its bytes with the header written.
pub(super) fn begin<'b>(path: &mut Path, size: usize, batch: &'b mut Batch<'_>) -> (PacketNumber, &'b mut [u8]) {
    let number = path.flight.next_number();
    if batch.is_empty() {
        batch.first = number;
    }
    let out = batch.push(size);
    path.write_header(number, out);
    (number, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_takes_equal_datagrams_and_one_shorter_last() {
        let mut buffer = vec![0; 66_000];
        let mut batch = Batch::new(&mut buffer, 0);
        assert_eq!(batch.room_for(1_000), 64);
        batch.push(1_000);
        assert_eq!(batch.room_for(1_001), 0);
        assert_eq!(batch.room_for(1_000), 63);
        assert_eq!(batch.room_for(10), 1);
        batch.push(10);
        assert_eq!(batch.room_for(10), 0);
        assert_eq!((batch.len(), batch.segment_size()), (1_010, 1_000));
    }

    #[test]
    fn a_link_that_writes_before_each_datagram_gets_the_room_for_it() {
        let mut buffer = vec![0; 3_500];
        let mut batch = Batch::new(&mut buffer, 100);
        assert_eq!(batch.room_for(1_000), 3, "100 of the first are the link's, 1100 of each other");
        for fill in 1..=3 {
            batch.push(1_000).fill(fill);
        }
        assert_eq!((batch.len(), batch.segment_size()), (3_200, 1_000));
        assert_eq!((batch.room_for(1_000), batch.room_for(200), batch.room_for(201)), (0, 1, 0));
        assert_eq!(batch.wire_bytes(128), ByteCount(3 * 1_128));
        assert_eq!([0, 999, 1_000, 1_099, 1_100, 3_199].map(|at| buffer[at]), [1, 1, 0, 0, 2, 3]);
    }
}
