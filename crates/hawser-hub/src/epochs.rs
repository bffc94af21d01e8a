//! Epochs that were never made: what a peer keeps on disk of them.
//!
//! 1. At the start a block of epochs above what the disk says is reserved, and written before the first of them is
//!    used.
//! 2. `follow`: when half of a block is used up, the next is reserved, so that no move waits for a disk.
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

    /// Step 2: the peer is at `epoch`. True when [`Reserve::to_store`] is another from now on, and to be written.
    pub fn follow(&mut self, epoch: Epoch) -> bool {
        let runs_out = self.end.saturating_sub(epoch.get()) <= BLOCK / 2;
        if runs_out {
            self.end = (epoch.get() + BLOCK).min(Epoch::LAST.get());
        }
        runs_out
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
                if reserve.follow(epoch) {
                    stored = reserve.to_store();
                }
            }
        }
        assert!(last > 1_000);
    }

    #[test]
    fn a_jump_ahead_is_followed_and_the_end_is_an_end() {
        let (mut reserve, first) = Reserve::begin(None).expect("epochs are left");
        assert!(!reserve.follow(first) && reserve.follow(Epoch::new(10_000).expect("in range")));
        assert_eq!(reserve.to_store(), Epoch::new(10_000 + BLOCK));
        assert_eq!(Reserve::begin(Some(Epoch::LAST)), None);
    }
}
