//! What must hold all year: no nonce twice and no key beyond its end, bounds, and a live path that is used.

use super::lines::{LINES, line_of};
use hawser_core::endpoint::Snapshot;
use hawser_core::handshake::REJECT_AFTER;
use hawser_core::path::health::HealthState;
use hawser_core::units::Time;
use hawser_core::wire::{DATA_HEADER_LEN, DataHeader, Reader};
use std::collections::HashMap;
use std::time::Duration;

/// Trains of a portal in bytes, at most (`packet::store::MAX_HELD`), and a read buffer.
pub const TRAINS_MAX: u64 = (96 << 20) + (1 << 17);
/// Labels that a portal knows: of 16 ids ahead and all live paths, under three keys and those that are being made.
pub const LABELS_MAX: usize = 1_000;
/// What clocks that run differently make of the end of a key.
const SKEW: Duration = Duration::from_millis(100);
/// A label that was silent for this long is forgotten, for its key is: another key may have it.
const FORGET: Duration = Duration::from_secs(400);
/// A line that was whole for this long is used: a handshake at its slowest (5 s), and a path held back for flapping (8
/// s).
pub const SETTLED: Duration = Duration::from_secs(15);

/// What was sealed under one label.
struct Used {
    number: u32,
    first: Time,
    last: Time,
}

/// Every label of late with the last number under it. Empty at first; the world's witness and the year share it.
#[derive(Default)]
pub struct Nonces {
    used: HashMap<(usize, u32), Used>,
    /// Datagrams of data seen so far.
    pub seen: u64,
    /// Labels seen so far: paths under keys.
    pub labels: u64,
}

impl Nonces {
    /// A side sends this.
    ///
    /// # Panics
    /// Where its number is not above all before it under its label, or the label's key is beyond its end.
    pub fn note(&mut self, now: Time, side: usize, bytes: &[u8]) {
        let head = &bytes[..DATA_HEADER_LEN.min(bytes.len())];
        let Ok(DataHeader { label, number }) = DataHeader::decode(&mut Reader::new(head)) else { return };
        self.seen += 1;
        let place = self.used.entry((side, label.0));
        let used = place.and_modify(|used| {
            assert!(number.0 > used.number, "side {side} uses {number:?} under {label:?} after {}", used.number);
            (used.number, used.last) = (number.0, now);
            let age = now.since(used.first);
            assert!(age <= REJECT_AFTER + SKEW, "side {side} seals under a key of {age:?}");
        });
        used.or_insert_with(|| {
            self.labels += 1;
            Used { number: number.0, first: now, last: now }
        });
    }

    /// Forgets labels whose keys are over.
    pub fn forget(&mut self, now: Time) {
        self.used.retain(|_, used| now.since(used.last) < FORGET);
    }
}

/// The lines that have a path which both portals take for live.
pub fn live_lines(local: &Snapshot, remote: &Snapshot) -> [bool; LINES.len()] {
    let paths = |snapshot: &Snapshot| {
        let sessions = snapshot.peers.iter().flatten().flat_map(|session| session.paths.clone());
        sessions.filter(|path| path.state == HealthState::Active).collect::<Vec<_>>()
    };
    let (ours, theirs) = (paths(local), paths(remote));
    let both = ours.iter().filter(|path| theirs.iter().any(|other| other.id == path.id));
    let sockets: Vec<usize> = both.map(|path| usize::from(path.link.0)).collect();
    LINES.map(|line| sockets.iter().any(|socket| line_of(*socket) == line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(datagrams: &'static [(u64, [u8; 9])]) -> bool {
        std::panic::catch_unwind(|| {
            let mut nonces = Nonces::default();
            for (second, bytes) in datagrams {
                nonces.note(Time::ZERO + Duration::from_secs(*second), 0, bytes);
            }
        })
        .is_err()
    }

    #[test]
    fn a_number_that_comes_again_or_a_key_beyond_its_end_is_refused() {
        assert!(!refused(&[(0, [0x40, 1, 1, 1, 1, 0, 0, 0, 0]), (1, [0x40, 1, 1, 1, 1, 0, 0, 0, 1])]));
        assert!(!refused(&[(0, [0x40, 1, 1, 1, 1, 0, 0, 0, 5]), (1, [0x40, 1, 1, 1, 2, 0, 0, 0, 5])]), "other paths");
        assert!(refused(&[(0, [0x40, 1, 1, 1, 1, 0, 0, 0, 5]), (1, [0x40, 1, 1, 1, 1, 0, 0, 0, 5])]), "again");
        assert!(refused(&[(0, [0x40, 1, 1, 1, 1, 0, 0, 0, 0]), (181, [0x40, 1, 1, 1, 1, 0, 0, 0, 1])]), "too old");
    }
}
