//! Epochs that were never made: what a peer keeps on disk of them.
//!
//! 1. At the start a block of epochs above what the disk says is reserved, and written before the first of them is
//!    used.
//! 2. `follow`: when half of a block is used up, the next is reserved, so that no move waits for a disk. One that is not
//!    written is not reserved.
//!
//! A peer that restarts begins above all that it reserved, whether it made them or not.

use crate::units::Epoch;

/// Epochs reserved at once: a move a second for a minute and more, so that disks are seldom written.
const BLOCK: u64 = 128;

/// What is reserved. Begins with what the disk says; the driver owns it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Reserve {
    /// No epoch from this one on may be made.
    end: u64,
}

impl Reserve {
    /// Step 1. `stored`: what was last written, none where nothing ever was. Gives the first epoch to make;
    /// [`Reserve::to_store`] is to be written before it is. None once there are no more epochs.
    pub fn begin(stored: Option<Epoch>) -> Option<(Reserve, Epoch)> {
        let first = stored.unwrap_or(Epoch::FIRST);
        Some((Reserve { end: first.get().checked_add(BLOCK).and_then(Epoch::new)?.get() }, first))
    }

    /// What the disk is to say.
    pub fn to_store(self) -> Option<Epoch> {
        Epoch::new(self.end)
    }

    /// Step 2: the peer is at `epoch`. What is reserved from the moment on that [`Reserve::to_store`] of it is written;
    /// none where there is no need yet. Until then this one holds, and each epoch asks again.
    #[must_use]
    pub fn follow(self, epoch: Epoch) -> Option<Reserve> {
        let runs_out = self.end.saturating_sub(epoch.get()) <= BLOCK / 2;
        runs_out.then(|| Reserve { end: (epoch.get() + BLOCK).min(Epoch::LAST.get()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_epoch_is_made_twice_whenever_the_peer_dies() {
        let mut stored = None;
        let mut last = 0;
        for life in 0..50 {
            let (mut reserve, mut epoch) = Reserve::begin(stored).expect("epochs are left");
            stored = reserve.to_store();
            assert!(epoch.get() > last, "life {life} begins at {epoch:?}");
            for _ in 0..life * 7 {
                last = epoch.get();
                assert!(Some(epoch) < stored, "{epoch:?} was not reserved");
                epoch = epoch.next().expect("epochs are left");
                if let Some(next) = reserve.follow(epoch) {
                    (reserve, stored) = (next, next.to_store());
                }
            }
        }
        assert!(last > 1_000);
    }

    #[test]
    fn what_was_not_written_is_asked_for_again_with_the_next_epoch() {
        let (mut reserve, first) = Reserve::begin(None).expect("epochs are left");
        // The disk takes nothing until then.
        let written_at = BLOCK / 2 + 9;
        let mut asked = Vec::new();
        for epoch in (first.get()..=BLOCK).filter_map(Epoch::new) {
            assert!(Some(epoch) < reserve.to_store(), "{epoch:?} was not reserved");
            let Some(next) = reserve.follow(epoch) else { continue };
            asked.push(epoch.get());
            if epoch.get() >= written_at {
                reserve = next;
            }
        }
        assert_eq!(asked, (BLOCK / 2 + 1..=written_at).collect::<Vec<_>>(), "each time, until it is there");
    }

    #[test]
    fn a_jump_ahead_is_followed_and_the_end_is_an_end() {
        let (reserve, first) = Reserve::begin(None).expect("epochs are left");
        assert_eq!(reserve.follow(first), None);
        let ahead = reserve.follow(Epoch::new(10_000).expect("in range")).expect("it is far behind");
        assert_eq!(ahead.to_store(), Epoch::new(10_000 + BLOCK));
        assert_eq!(Reserve::begin(Some(Epoch::LAST)), None);
    }
}
