//! Forward error correction where a session meets it.
//!
//! 1. `protection`: whether a packet that leaves is a source symbol, and under which number.
//! 2. `transmit_repair`: a repair that is due goes at once, by another path than the last packets where there is one.
//! 3. `on_protected`, `on_repair`: what comes back takes the place that it would have had.

use super::inbound::arrival;
use super::{Context, Session, Sink};
use crate::drops::DropReason;
use crate::fec::decoder::Repaired;
use crate::fec::Fec;
use crate::units::Time;
use crate::wire::{ProtectedFrame, RepairFrame};

impl Session {
    /// Step 3: a packet that repairs cover arrived. It goes before those that it brings back.
    pub(super) fn on_protected(
        &mut self,
        now: Time,
        frame: &ProtectedFrame<'_>,
        sink: &mut dyn Sink,
        cx: &mut Context<'_>,
    ) -> Result<(), DropReason> {
        let verdict = self.on_data(now, &frame.data, sink, cx);
        self.with_fec(|session, fec| fec.on_source(now, frame, |back| session.on_repaired(now, back, sink, cx)));
        verdict
    }

    /// Step 3: a repair arrived.
    pub(super) fn on_repair(&mut self, now: Time, frame: &RepairFrame<'_>, sink: &mut dyn Sink, cx: &mut Context<'_>) {
        self.with_fec(|session, fec| fec.on_repair(now, frame, |back| session.on_repaired(now, back, sink, cx)));
    }

    /// A packet came back. It is checked as one that arrived.
    fn on_repaired(&mut self, now: Time, (head, packet): Repaired<'_>, sink: &mut dyn Sink, cx: &mut Context<'_>) {
        let arrival = arrival(head.bucket, head.flags, head.sequence);
        if let Err(reason) = self.on_whole(now, arrival, packet, sink, cx) {
            cx.drops.count(reason);
        }
    }

    /// Lets the code work while what it brings back goes to the rest of the session.
    fn with_fec(&mut self, work: impl FnOnce(&mut Session, &mut Fec)) {
        let mut fec = std::mem::take(&mut self.fec);
        work(self, &mut fec);
        self.fec = fec;
    }
}
