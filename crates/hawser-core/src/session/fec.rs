//! Forward error correction where a session meets it.
//!
//! 1. `seal_protected`: a packet that leaves for the first time is a source symbol too.
//! 2. `transmit_repair`: a repair that is due goes at once, by another path than the last packet where there is one.
//! 3. `on_protected`, `on_repair`: what comes back takes the place that it would have had.

use super::batch::{Batch, begin};
use super::inbound::{Delivery, Inbound, arrival};
use super::path::Content;
use super::retransmit::SegmentRecord;
use super::{Buffers, Session, Transmit};
use crate::drops::DropReason;
use crate::fec::Fec;
use crate::fec::decoder::Repaired;
use crate::fec::symbol::SymbolHead;
use crate::packet::Train;
use crate::policy::{PathSet, PathView};
use crate::units::{ByteCount, Time};
use crate::wire::{DATA_HEADER_LEN, ProtectedFrame, RepairFrame};

/// Bytes before the inner packet.
const PREFIX: usize = DATA_HEADER_LEN + ProtectedFrame::HEAD_LEN;
/// A repair may come by a path that is slower by so much, µs: what is left of 60 ms when it covers the last 50.
const DETOUR_US: i64 = 10_000;

impl Session {
    /// Whether a segment leaves as a source symbol. What is retransmitted does not: its flow waits for it anyway. All
    /// segments of a train do or none, else the shorter last one could make the longer datagram.
    pub(super) fn is_protected(&self, index: usize, record: &SegmentRecord, train: &Train) -> bool {
        let asked = record.treatment.fec && record.tries == 1;
        asked && self.fec.protects(asked, train.segment_len(0), self.paths[index].way.mtu())
    }

    /// Step 1, for a segment that `is_protected`. Tells the bytes on the wire.
    pub(super) fn seal_protected(
        &mut self,
        now: Time,
        index: usize,
        record: SegmentRecord,
        batch: &mut Batch<'_>,
        train: &Train,
    ) -> ByteCount {
        let (size, later) = (ProtectedFrame::OVERHEAD + usize::from(record.len), batch.seals_later());
        let SegmentRecord { bucket, sequence, flags, .. } = record;
        let path = &mut self.paths[index];
        let (number, out) = begin(path, size, batch);
        let head = PREFIX + train.head(record.segment.segment, &mut out[PREFIX..]);
        let body = train.body(record.segment.segment);
        let symbol = SymbolHead { bucket, sequence, flags };
        let symbol = self.fec.protect(now, index, record.rule(), &symbol, (&out[PREFIX..head], body));
        out[DATA_HEADER_LEN..PREFIX].copy_from_slice(&ProtectedFrame::head(symbol, bucket, flags, sequence));
        self.keyring.seal_from(later, (path.id, number), out, head, body);
        let wire = path.remember(now, number, size, Content::Segment(record));
        path.counts.count(record.rule(), wire);
        wire
    }

    /// Step 2. Window and pacing do not count it: it is a fixed part of what they let go, and a sparse flow's least
    /// window (four packets, draft-ietf-ccwg-bbr section 2.8) would have no room for it.
    pub(super) fn transmit_repair(&mut self, now: Time, buffers: &mut dyn Buffers) -> Option<Transmit> {
        while let Some(size) = self.fec.repair_due(now) {
            self.refresh_views(now);
            let index = self.repair_path(now, size);
            let route = index.map(|index| (index, self.paths[index].route));
            let spare = route.and_then(|(index, route)| Some((index, buffers.spare(route.link, route.remote)?)));
            let Some((index, buffer)) = spare else {
                self.fec.skip_repair();
                continue;
            };
            let path = &mut self.paths[index];
            let mut batch = Batch::new(buffer, path.room_before());
            let (number, out) = begin(path, size, &mut batch);
            self.fec.write_repair(now, out);
            let sealed = self.keyring.seal().send.seal(path.id, number, out);
            debug_assert_eq!(sealed, Ok(()), "a repair fills its datagram");
            path.remember_control(now, number, size, true, false, Content::Duplicate);
            self.liveness.note_asked(now);
            return Some(path.transmit(size, size));
        }
        None
    }

    /// The path for a repair of this many bytes: not the one that its last packet took, if another one is as good. It
    /// is one that may carry every packet of which the repair tells something.
    fn repair_path(&self, now: Time, size: usize) -> Option<usize> {
        let last = self.fec.last_path();
        let set = self.fec.rules(now).fold(PathSet::ALL, |set, rule| set.common(self.scheduling.allowed.of(rule)));
        let usable = |(index, _): &(usize, &PathView)| set.contains(*index) && size <= self.paths[*index].way.mtu();
        let usable = || self.scheduling.views.iter().enumerate().filter(usable);
        let fastest = usable().map(|(_, view)| view.delay_us).min()?;
        let cost = |(index, view): &(usize, &PathView)| {
            let detour = view.delay_us.saturating_sub(fastest) > DETOUR_US || !view.ready_in.is_zero();
            (detour, *index == last, view.delay_us)
        };
        usable().min_by_key(cost).map(|(index, _)| index)
    }
}

impl Inbound {
    /// Step 3: a packet that repairs cover arrived. It goes before those that it brings back.
    pub fn on_protected(
        &mut self,
        now: Time,
        frame: &ProtectedFrame<'_>,
        fec: &mut Fec,
        to: &mut Delivery<'_>,
    ) -> Result<(), DropReason> {
        let verdict = self.on_data(now, &frame.data, to);
        fec.on_source(now, frame, |back| self.on_repaired(now, back, to));
        verdict
    }

    /// Step 3: a repair arrived.
    pub fn on_repair(&mut self, now: Time, frame: &RepairFrame<'_>, fec: &mut Fec, to: &mut Delivery<'_>) {
        fec.on_repair(now, frame, |back| self.on_repaired(now, back, to));
    }

    /// A packet came back. It is checked as one that arrived.
    fn on_repaired(&mut self, now: Time, (head, packet): Repaired<'_>, to: &mut Delivery<'_>) {
        let arrival = arrival(head.bucket, head.flags, head.sequence);
        if let Err(reason) = self.on_whole(now, arrival, packet, to) {
            to.drops.count(reason);
        }
    }
}
