//! What was sent and must arrive: segments, and frames of control. It is kept until it is acknowledged, and what is
//! lost goes again.
//!
//! 1. `on_acked`: a datagram's content arrived; its segment is released, its frames are done.
//! 2. `on_lost`: it did not: its segment waits for `requeue`, its frames for the next control datagram.
//! 3. `requeue` gives what was lost its place among what waits to be retransmitted.

use super::kept::Kept;
use super::path::Content;
use super::reliable::Reliable;
use super::retransmit::{Retransmits, SegmentRecord};
use super::split::{Fate, Splits};
use crate::packet::TrainStore;
use crate::scheduler::Allowed;
use crate::units::{PacketNumber, PathId};

/// What the session answers for beyond its datagrams. Empty at first; the session owns it, and with it the segments
/// that wait.
#[derive(Default)]
pub(super) struct Recovery {
    /// What waits to be retransmitted.
    pub retransmit: Retransmits,
    /// Segments that went in pieces.
    pub splits: Splits,
    /// Frames that are repeated until they are acknowledged.
    pub reliable: Reliable,
    /// What arrived, and may not have been forwarded.
    pub kept: Kept,
    /// What was lost just now: empty between calls.
    lost: Vec<SegmentRecord>,
}

impl Recovery {
    /// Step 1: datagram `number` of a path arrived. `here`: it was not declared lost before; what was has been handed
    /// on then, still waits, or is answered for elsewhere.
    pub fn on_acked(
        &mut self,
        (path, number): (PathId, PacketNumber),
        content: Content,
        here: bool,
        store: &mut TrainStore,
    ) {
        match content {
            Content::Segment(record) if here => self.kept.on_acked(record, store),
            Content::Segment(record) => {
                if let Some(record) = self.retransmit.cancel(&record) {
                    self.kept.on_acked(record, store);
                }
            }
            Content::Piece(split) if here => match self.splits.settle(split, false) {
                Fate::Open => {}
                Fate::Arrived(record) => self.kept.on_acked(record, store),
                Fate::Lost(record) => self.lost.push(record),
            },
            Content::Control { .. } => self.reliable.on_acked(path, number),
            Content::Piece(_) | Content::Duplicate | Content::MtuProbe(_) | Content::Filler => {}
        }
    }

    /// Step 2.
    pub fn on_lost(&mut self, (path, number): (PathId, PacketNumber), content: Content) {
        match content {
            Content::Segment(record) => self.lost.push(record),
            Content::Piece(split) => {
                if let Fate::Lost(record) = self.splits.settle(split, true) {
                    self.lost.push(record);
                }
            }
            Content::Control { .. } => self.reliable.on_lost(path, number),
            Content::Duplicate | Content::MtuProbe(_) | Content::Filler => {}
        }
    }

    /// Step 3.
    pub fn requeue(&mut self, allowed: &Allowed) {
        self.retransmit.extend(&mut self.lost, |rule| allowed.is_bound(rule));
    }
}
