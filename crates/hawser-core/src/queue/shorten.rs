//! A drop from a long queue: its newest part goes, and what is ahead of that stays.
//!
//! CoDel drops one segment, at the head (RFC 8289 section 5). The receiver of a TCP stream then has nothing in order
//! until the retransmission has waited behind all of its flow's queue. Here:
//!
//! ```text
//!   head | kept, in order | dropped | the newest train | tail
//! ```
//!
//! 1. The kept part goes on in order meanwhile. Nothing that crossed a link is sent twice.
//! 2. The newest train, behind the one hole, tells the sender of it by selective acknowledgement (RFC 2018): one that
//!    has nothing more to send would wait for a timeout. It reduces its window once.
//! 3. What it retransmits waits for what it sent while the kept part lasted, and no longer.
//!
//! All that is dropped was sent within a round trip, queue included: no persistent congestion (RFC 9002 section 7.6).

use super::flows::Flow;
use super::line::NONE;
use super::{DropReason, Dropped, Queue};
use crate::packet::{FlowBucket, TrainStore};
use crate::units::ByteCount;
use std::time::Duration;

/// Only where three quarters of the queue go: what a steady queue may last (`aqm.target`) loses one segment, as ever.
const LONG: f64 = 4.0;

impl Queue {
    /// A drop leaves so much of a flow's queue that lasts four times as long; `Duration::MAX`: all but one segment.
    pub fn set_kept(&mut self, kept: Duration) {
        self.kept = kept;
    }

    /// Shortens a flow's queue, whose head has waited for `wait`. Says whether it was long enough for that.
    pub(super) fn shorten(
        &mut self,
        bucket: FlowBucket,
        wait: Duration,
        store: &mut TrainStore,
        dropped: &mut dyn FnMut(Dropped),
    ) -> bool {
        let Flow { head, tail, backlog, sent, .. } = *self.flows.get(bucket);
        // What left while the head waited was all ahead of it.
        let left = sent - self.line.get(head).sent_before;
        let kept = left.scale(self.kept.div_duration_f64(wait));
        if kept == ByteCount::ZERO || backlog < kept.scale(LONG) {
            return false;
        }
        let (last, before) = (self.last_within(head, kept), self.bytes);
        while last != tail && self.line.get(last).behind != tail {
            self.drop_behind(last, store, dropped);
        }
        self.bytes < before
    }

    /// The item, from `first` on in its flow, by which `bytes` wait, or the flow's last.
    fn last_within(&self, first: u32, bytes: ByteCount) -> u32 {
        let (mut last, mut ahead) = (first, ByteCount::ZERO);
        loop {
            let item = self.line.get(last);
            ahead += item.len_of(item.count());
            if ahead >= bytes || item.behind == NONE {
                return last;
            }
            last = item.behind;
        }
    }

    /// Drops the item behind this one; it must not be the last of its flow.
    fn drop_behind(&mut self, index: u32, store: &mut TrainStore, dropped: &mut dyn FnMut(Dropped)) {
        let gone = self.line.get(index).behind;
        let item = *self.line.get(gone);
        self.line.get_mut(index).behind = item.behind;
        self.line.remove(gone);
        self.bytes -= item.len_of(item.count());
        self.segments -= usize::from(item.count());
        self.flows.get_mut(item.bucket).backlog -= item.len_of(item.count());
        item.drop_whole(DropReason::Codel, store, dropped);
    }
}
