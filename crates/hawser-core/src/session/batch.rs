//! One batch under construction: datagrams of one size, back to back, the last perhaps shorter.

use super::constants::{BATCH_BYTES, BATCH_SEGMENTS};
use crate::units::ByteCount;

/// A batch that is written into a link's buffer. Empty at first; it borrows the buffer.
pub(super) struct Batch<'a> {
    buffer: &'a mut [u8],
    len: usize,
    segment_size: usize,
    segments: u16,
    closed: bool,
}

impl<'a> Batch<'a> {
    pub fn new(buffer: &'a mut [u8]) -> Self {
        Batch { buffer, len: 0, segment_size: 0, segments: 0, closed: false }
    }

    /// How many more datagrams of `size` may join; a shorter one than the first ends the batch.
    pub fn room_for(&self, size: usize) -> u16 {
        let most = self.buffer.len().min(BATCH_BYTES);
        if self.closed || self.len + size > most || (self.segments > 0 && size > self.segment_size) {
            return 0;
        }
        if self.segments > 0 && size < self.segment_size {
            return 1;
        }
        let by_bytes = u16::try_from((most - self.len) / size.max(1)).unwrap_or(u16::MAX);
        (BATCH_SEGMENTS - self.segments).min(by_bytes)
    }

    /// The next `size` bytes, for a datagram that `room_for` allowed.
    pub fn push(&mut self, size: usize) -> &mut [u8] {
        debug_assert!(self.room_for(size) > 0, "the batch has no room");
        if self.segments == 0 {
            self.segment_size = size;
        }
        self.closed = size < self.segment_size || self.segments + 1 == BATCH_SEGMENTS;
        self.segments += 1;
        let start = self.len;
        self.len += size;
        &mut self.buffer[start..self.len]
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
        ByteCount((self.len + usize::from(self.segments) * overhead) as u64)
    }

    pub fn segment_size(&self) -> usize {
        self.segment_size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_takes_equal_datagrams_and_one_shorter_last() {
        let mut buffer = vec![0; 66_000];
        let mut batch = Batch::new(&mut buffer);
        assert_eq!(batch.room_for(1_000), 64);
        batch.push(1_000);
        assert_eq!(batch.room_for(1_001), 0);
        assert_eq!(batch.room_for(1_000), 63);
        assert_eq!(batch.room_for(10), 1);
        batch.push(10);
        assert_eq!(batch.room_for(10), 0);
        assert_eq!((batch.len(), batch.segment_size()), (1_010, 1_000));
    }
}
