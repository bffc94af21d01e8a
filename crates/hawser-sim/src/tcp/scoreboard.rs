//! What is under way, segment by segment: sent, selectively acknowledged, lost, retransmitted.
//!
//! 1. `on_sent` and `on_resent` note each transmission.
//! 2. `sack` and `acknowledge` give what is newly delivered.
//! 3. `mark_lost` says what is to be retransmitted; `first_lost` is the next of that.
//!
//! A piece is named by its end, which never changes.

use super::rate::Stamp;
use hawser_core::units::Time;
use std::collections::{BTreeSet, VecDeque};

/// A segment under way. A plain value.
#[derive(Copy, Clone, Debug)]
pub struct Piece {
    /// Its first byte.
    pub start: u64,
    /// The byte behind its last.
    pub end: u64,
    /// When it was sent last.
    pub sent: Time,
    /// What was known then.
    pub stamp: Stamp,
    /// It was selectively acknowledged.
    pub sacked: bool,
    /// It is taken for lost.
    pub lost: bool,
    /// It was retransmitted since, and that is under way.
    pub resent: bool,
    /// It was sent more than once.
    pub again: bool,
}

/// A newly delivered piece, as it was before. A plain value.
#[derive(Copy, Clone, Debug)]
pub struct Delivered {
    /// The piece.
    pub piece: Piece,
    /// By the cumulative acknowledgement.
    pub cumulative: bool,
}

/// All pieces between what is acknowledged and what was sent. Empty at first; its sender owns it.
#[derive(Default)]
pub struct Scoreboard {
    pieces: VecDeque<Piece>,
    /// In the order of their last transmission: when, and the end.
    by_time: VecDeque<(Time, u64)>,
    /// Lost, and not retransmitted yet.
    pending: BTreeSet<u64>,
    /// The last acknowledgement's blocks: what is in them is known.
    known: Vec<(u64, u64)>,
    sacked: u32,
    lost: u32,
    resent: u32,
    /// The end of the highest that was selectively acknowledged.
    pub highest_sacked: u64,
}

impl Scoreboard {
    /// Segments between what is acknowledged and what was sent.
    pub fn out(&self) -> u32 {
        self.pieces.len() as u32
    }

    /// Segments that are selectively acknowledged.
    pub fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Segments that are lost, whether they were retransmitted or not.
    pub fn lost(&self) -> u32 {
        self.lost
    }

    /// Segments that were retransmitted and are under way.
    pub fn resent(&self) -> u32 {
        self.resent
    }

    /// Segments under way (RFC 6675's pipe).
    pub fn in_flight(&self) -> u32 {
        self.out() + self.resent - self.sacked - self.lost
    }

    /// The oldest piece.
    pub fn head(&self) -> Option<&Piece> {
        self.pieces.front()
    }

    /// The newest piece.
    pub fn tail(&self) -> Option<&Piece> {
        self.pieces.back()
    }

    /// Whether the oldest or any under way was retransmitted.
    pub fn any_resent(&self) -> bool {
        self.resent > 0 || self.head().is_some_and(|piece| piece.again)
    }

    /// Step 1: a new piece is sent.
    pub fn on_sent(&mut self, start: u64, end: u64, now: Time, stamp: Stamp) {
        let flags = (false, false, false, false);
        let (sacked, lost, resent, again) = flags;
        self.pieces.push_back(Piece { start, end, sent: now, stamp, sacked, lost, resent, again });
        self.by_time.push_back((now, end));
    }

    /// Step 1: a piece is retransmitted.
    pub fn on_resent(&mut self, end: u64, now: Time, stamp: Stamp) {
        let Some(index) = self.index(end) else { return };
        let piece = &mut self.pieces[index];
        self.resent += u32::from(!piece.resent);
        (piece.sent, piece.stamp, piece.resent, piece.again) = (now, stamp, true, true);
        self.pending.remove(&end);
        self.by_time.push_back((now, end));
    }

    fn index(&self, end: u64) -> Option<usize> {
        let index = self.pieces.partition_point(|piece| piece.end < end);
        self.pieces.get(index).filter(|piece| piece.end == end).map(|_| index)
    }

    /// Step 2: these blocks were received. What lay in the last acknowledgement's is not looked at again.
    pub fn sack(&mut self, blocks: &[(u64, u64)], delivered: &mut Vec<Delivered>) {
        let known = std::mem::replace(&mut self.known, blocks.to_vec());
        for &block in blocks {
            let mut rest = vec![block];
            for &(from, to) in &known {
                let cut = |(start, end): (u64, u64)| [(start, end.min(from)), (start.max(to), end)];
                rest = rest.into_iter().flat_map(cut).filter(|(start, end)| start < end).collect();
            }
            // A piece may lie across the edge of what was known: its start is not what decides.
            rest.into_iter().for_each(|(start, end)| self.sack_range(block.0.min(start), start, end, delivered));
        }
    }

    fn sack_range(&mut self, least: u64, from: u64, to: u64, delivered: &mut Vec<Delivered>) {
        let first = self.pieces.partition_point(|piece| piece.end <= from);
        for index in first..self.pieces.len() {
            let piece = &mut self.pieces[index];
            if piece.end > to {
                break;
            }
            if piece.sacked || piece.start < least {
                continue;
            }
            delivered.push(Delivered { piece: *piece, cumulative: false });
            piece.sacked = true;
            self.highest_sacked = self.highest_sacked.max(piece.end);
            self.sacked += 1;
            self.clear(index);
        }
    }

    /// Neither lost nor retransmitted any more.
    fn clear(&mut self, index: usize) {
        let piece = &mut self.pieces[index];
        self.lost -= u32::from(std::mem::take(&mut piece.lost));
        self.resent -= u32::from(std::mem::take(&mut piece.resent));
        self.pending.remove(&piece.end);
    }

    /// Step 2: everything before `upto` was received.
    pub fn acknowledge(&mut self, upto: u64, delivered: &mut Vec<Delivered>) {
        while let Some(piece) = self.pieces.front().copied().filter(|piece| piece.end <= upto) {
            delivered.push(Delivered { piece, cumulative: true });
            self.clear(0);
            self.sacked -= u32::from(piece.sacked);
            self.pieces.pop_front();
        }
        if let Some(piece) = self.pieces.front_mut() {
            piece.start = piece.start.max(upto);
        }
    }

    /// Step 3: a piece is lost. Says whether that is news.
    pub fn mark_lost(&mut self, end: u64) -> bool {
        let Some(index) = self.index(end) else { return false };
        let piece = &mut self.pieces[index];
        if piece.sacked || piece.lost && !piece.resent {
            return false;
        }
        // A retransmission is lost.
        self.resent -= u32::from(std::mem::take(&mut piece.resent));
        self.lost += u32::from(!piece.lost);
        piece.lost = true;
        self.pending.insert(end);
        true
    }

    /// Nothing is lost: all that was taken for that may only be late.
    pub fn unmark_lost(&mut self) {
        self.pieces.iter_mut().for_each(|piece| piece.lost = false);
        self.lost = 0;
        self.pending.clear();
        let mut times: Vec<_> =
            self.pieces.iter().filter(|piece| !piece.sacked).map(|piece| (piece.sent, piece.end)).collect();
        times.sort_unstable();
        self.by_time = times.into();
    }

    /// Step 3: up to `most` pieces that follow each other, from the first that is to be retransmitted.
    pub fn first_lost(&self, most: usize) -> Option<(u64, u64, Vec<u64>)> {
        let mut ends = self.pending.iter().copied();
        let index = self.index(ends.next()?)?;
        let mut run = vec![self.pieces[index].end];
        for piece in self.pieces.range(index + 1..).take(most.saturating_sub(1)) {
            if ends.next() != Some(piece.end) {
                break;
            }
            run.push(piece.end);
        }
        Some((self.pieces[index].start, run[run.len() - 1], run))
    }

    /// Pieces under way in the order of their transmission, until `visit` says that it has seen enough; those
    /// that it takes for lost are marked. Says how many.
    pub fn scan(&mut self, mut visit: impl FnMut(&Piece) -> Scan) -> u32 {
        let (mut at, mut lost) = (0, 0);
        while let Some(&(sent, end)) = self.by_time.get(at) {
            let piece = self.index(end).map(|index| self.pieces[index]);
            let live = piece.filter(|piece| piece.sent == sent && !piece.sacked && (!piece.lost || piece.resent));
            match live.map(|piece| visit(&piece)) {
                Some(Scan::Enough) => break,
                Some(Scan::Keep) => at += 1,
                Some(Scan::Lost) => lost += u32::from(self.mark_lost(end)),
                None if at > 0 => at += 1,
                None => drop(self.by_time.pop_front()),
            }
        }
        lost
    }

    /// Every piece, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Piece> {
        self.pieces.iter()
    }
}

/// What is to be done about a piece.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Scan {
    /// Nothing yet.
    Keep,
    /// It is lost.
    Lost,
    /// Neither about it nor about later ones.
    Enough,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten pieces of 100 bytes, sent at 0 to 9 ns.
    fn ten() -> Scoreboard {
        let mut board = Scoreboard::default();
        (0..10).for_each(|i| board.on_sent(i * 100, i * 100 + 100, Time::from_nanos(i), Stamp::default()));
        board
    }

    fn newly(delivered: &[Delivered]) -> Vec<u64> {
        delivered.iter().filter(|one| !one.piece.sacked).map(|one| one.piece.end / 100).collect()
    }

    #[test]
    fn each_piece_is_delivered_once() {
        let (mut board, mut got) = (ten(), Vec::new());
        board.sack(&[(200, 400)], &mut got);
        board.sack(&[(600, 700), (200, 500)], &mut got);
        assert_eq!(newly(&got), [3, 4, 7, 5]);
        got.clear();
        board.acknowledge(600, &mut got);
        assert_eq!(newly(&got), [1, 2, 6]);
        assert_eq!((board.out(), board.sacked(), board.in_flight()), (4, 1, 3));
    }

    #[test]
    fn what_is_lost_is_sent_again_in_runs_and_may_be_lost_again() {
        let mut board = ten();
        for end in [300, 400, 900] {
            assert!(board.mark_lost(end) && !board.mark_lost(end));
        }
        assert_eq!(board.in_flight(), 7);
        let (start, end, run) = board.first_lost(8).expect("lost pieces");
        assert_eq!((start, end, run.len()), (200, 400, 2));
        run.into_iter().for_each(|end| board.on_resent(end, Time::from_nanos(20), Stamp::default()));
        assert_eq!((board.in_flight(), board.lost(), board.resent()), (9, 3, 2));
        assert!(board.mark_lost(300));
        assert_eq!((board.in_flight(), board.lost(), board.resent()), (8, 3, 1));
        board.acknowledge(1_000, &mut Vec::new());
        assert_eq!((board.in_flight(), board.lost(), board.resent()), (0, 0, 0));
        assert!(board.first_lost(8).is_none());
    }

    #[test]
    fn a_scan_goes_by_the_last_transmission() {
        let mut board = ten();
        board.mark_lost(100);
        board.on_resent(100, Time::from_nanos(5), Stamp::default());
        let mut seen = Vec::new();
        let lost = board.scan(|piece| {
            seen.push(piece.end / 100);
            if piece.sent < Time::from_nanos(3) { Scan::Lost } else { Scan::Keep }
        });
        assert_eq!((lost, seen), (2, vec![2, 3, 4, 5, 6, 7, 8, 9, 10, 1]));
    }
}
