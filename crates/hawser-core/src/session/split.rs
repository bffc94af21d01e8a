//! Inner packets on a path too small for them: sent in pieces, answered for as a whole.

use super::retransmit::SegmentRecord;
use crate::wire::SplitId;

/// What a piece's fate means for its packet.
#[derive(Clone, Debug)]
pub(super) enum Fate {
    /// Other pieces are still out.
    Open,
    /// Every piece arrived.
    Arrived(SegmentRecord),
    /// All pieces are settled and at least one was lost: the packet is to be retransmitted.
    Lost(SegmentRecord),
}

struct Split {
    id: SplitId,
    packet: SegmentRecord,
    out: u16,
    lost: bool,
}

/// Packets of which pieces are out. Empty at first; one session owns it.
#[derive(Default)]
pub(super) struct Splits {
    open: Vec<Split>,
    next: u16,
}

impl Splits {
    /// Begins a packet of `pieces`, and names it.
    pub fn begin(&mut self, packet: SegmentRecord, pieces: u16) -> SplitId {
        let id = SplitId(self.next);
        self.next = self.next.wrapping_add(1);
        self.open.push(Split { id, packet, out: pieces, lost: false });
        id
    }

    /// One piece arrived or was lost.
    pub fn settle(&mut self, id: SplitId, lost: bool) -> Fate {
        let Some(at) = self.open.iter().position(|split| split.id == id) else { return Fate::Open };
        let split = &mut self.open[at];
        split.lost |= lost;
        split.out -= 1;
        if split.out > 0 {
            return Fate::Open;
        }
        let split = self.open.swap_remove(at);
        if split.lost { Fate::Lost(split.packet) } else { Fate::Arrived(split.packet) }
    }
}

#[cfg(test)]
mod tests;
