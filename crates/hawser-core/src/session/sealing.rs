//! Steps 5 to 7 out for one segment: packet number, memory, seal.
//!
//! - One that fits its path leaves in a datagram of its own, which may be a source symbol too (`fec`).
//! - One that does not leaves in pieces.
//! - A redundant copy leaves whole or not at all.

use super::Session;
use super::batch::{Batch, begin};
use super::constants::{BATCH_SEGMENTS, DATA_OVERHEAD};
use super::keyring::Keyring;
use super::path::{Content, Path};
use super::retransmit::SegmentRecord;
use crate::packet::{Train, TrainStore};
use crate::units::{ByteCount, Time};
use crate::wire::{DATA_FRAME_LEN, DATA_HEADER_LEN, DataFrame, SplitFrame, TAG_LEN, Writer};

/// Bytes before the inner packet.
const DATA_PREFIX: usize = DATA_HEADER_LEN + DATA_FRAME_LEN;
/// Bytes that a piece costs beside what it carries.
const SPLIT_OVERHEAD: usize = DATA_HEADER_LEN + SplitFrame::HEAD_LEN + TAG_LEN;

/// Whether a packet of this many bytes may leave in pieces by a path whose datagrams have `mtu` bytes: all of them are
/// of one batch, and each says where it begins.
pub(super) fn fits_in_pieces(len: usize, mtu: usize) -> bool {
    let of_a_batch = mtu.saturating_sub(SPLIT_OVERHEAD) * usize::from(BATCH_SEGMENTS);
    len <= of_a_batch.min(usize::from(SplitFrame::MAX_OFFSET) + 1)
}

impl Session {
    /// Steps 5 to 7 for one segment: packet number, memory, seal. Tells the bytes on the wire.
    pub(super) fn send(
        &mut self,
        now: Time,
        index: usize,
        record: SegmentRecord,
        batch: &mut Batch<'_>,
        store: &TrainStore,
    ) -> ByteCount {
        let size = DATA_OVERHEAD + usize::from(record.len);
        if size > self.paths[index].way.mtu() {
            return self.send_in_pieces(now, index, record, batch, store);
        }
        // What may go by some paths only probes none of the others.
        if !self.scheduling.allowed.is_bound(record.rule()) {
            self.copies.note(&record);
        }
        let train = store.train(record.segment.train);
        if self.is_protected(index, &record, train) {
            return self.seal_protected(now, index, record, batch, train);
        }
        seal_segment(now, &mut self.paths[index], &mut self.keyring, &record, batch, train, Content::Segment(record))
    }

    /// The same for a segment larger than the path's datagrams (SPLIT).
    fn send_in_pieces(
        &mut self,
        now: Time,
        index: usize,
        record: SegmentRecord,
        batch: &mut Batch<'_>,
        store: &TrainStore,
    ) -> ByteCount {
        let mut packet = vec![0; usize::from(record.len)];
        let train = store.train(record.segment.train);
        let head = train.head(record.segment.segment, &mut packet);
        packet[head..].copy_from_slice(train.body(record.segment.segment));
        let piece = self.paths[index].way.mtu() - SPLIT_OVERHEAD;
        let pieces = packet.len().div_ceil(piece);
        let split = self.recovery.splits.begin(record, u16::try_from(pieces).unwrap_or(u16::MAX));
        let (mut bytes, later) = (ByteCount::ZERO, batch.seals_later());
        for (at, chunk) in packet.chunks(piece).enumerate() {
            let frame = SplitFrame {
                id: split,
                more: at + 1 < pieces,
                offset: u16::try_from(at * piece).unwrap_or(SplitFrame::MAX_OFFSET),
                bucket: record.bucket,
                flags: record.flags,
                sequence: record.sequence,
                bytes: chunk,
            };
            let path = &mut self.paths[index];
            let size = SPLIT_OVERHEAD + chunk.len();
            let (number, out) = begin(path, size, batch);
            let room = size - TAG_LEN;
            let written = frame.encode(&mut Writer::new(&mut out[DATA_HEADER_LEN..room]));
            debug_assert_eq!(written, Ok(()), "a piece fills its datagram");
            let key = &self.keyring.seal().send;
            let sealed = if later { Ok(()) } else { key.seal(path.id, number, out) };
            debug_assert_eq!(sealed, Ok(()), "a piece fills its datagram");
            let wire = path.remember(now, number, size, Content::Piece(split));
            path.counts.count(record.rule(), wire);
            bytes += wire;
        }
        batch.close();
        bytes
    }

    /// One copy, if its train still lives and the path carries it whole. Tells the bytes on the wire.
    pub(super) fn send_copy(
        &mut self,
        now: Time,
        index: usize,
        record: &SegmentRecord,
        batch: &mut Batch<'_>,
        store: &TrainStore,
    ) -> ByteCount {
        let whole = DATA_OVERHEAD + usize::from(record.len) <= self.paths[index].way.mtu();
        match store.get(record.segment.train).filter(|_| whole) {
            Some(train) => {
                seal_segment(now, &mut self.paths[index], &mut self.keyring, record, batch, train, Content::Duplicate)
            }
            None => ByteCount::ZERO,
        }
    }
}

/// A segment in a datagram of its own: packet number, memory, seal. Tells the bytes on the wire.
fn seal_segment(
    now: Time,
    path: &mut Path,
    keyring: &mut Keyring,
    record: &SegmentRecord,
    batch: &mut Batch<'_>,
    train: &Train,
    content: Content,
) -> ByteCount {
    let (size, later) = (DATA_OVERHEAD + usize::from(record.len), batch.seals_later());
    let (number, out) = begin(path, size, batch);
    out[DATA_HEADER_LEN..DATA_PREFIX].copy_from_slice(&DataFrame::head(record.bucket, record.flags, record.sequence));
    let head = train.head(record.segment.segment, &mut out[DATA_PREFIX..]);
    keyring.seal_from(later, (path.id, number), out, DATA_PREFIX + head, train.body(record.segment.segment));
    let wire = path.remember(now, number, size, content);
    path.counts.count(record.rule(), wire);
    wire
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_as_many_pieces_as_a_batch_and_none_begins_where_no_frame_can_say() {
        for (len, mtu, fits) in [
            (31_552, 528, true),
            (31_553, 528, false),
            (32_768, 548, true),
            (32_769, 548, false),
            (32_769, 1472, false),
        ] {
            assert_eq!(fits_in_pieces(len, mtu), fits, "{len} bytes by datagrams of {mtu}");
        }
    }
}
