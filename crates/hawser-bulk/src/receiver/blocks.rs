//! Blocks being filled.
//!
//! ```text
//!  Missing --- first chunk ---> Filling --- last chunk: handed out ---> Writing --- on_written ---> Written
//! ```
//!
//! The window begins at the first block that is not written, and has [`WINDOW`] blocks: that bounds the memory.

use std::collections::VecDeque;

use crate::layout::{BlockId, ChunkId, Layout};
use crate::sender::queue::ChunkBits;
use crate::wire::Have;

/// Blocks that may be filled or written at a time.
pub const WINDOW: u32 = 128;
/// Buffers kept for the next blocks.
const KEPT: usize = 16;

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a window's slots are few, and a chunk's bit is looked up for each datagram"
)]
enum Slot {
    Missing,
    Filling { bytes: Vec<u8>, came: ChunkBits, left: u16 },
    Writing,
    Written,
}

/// What became of a chunk.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Filled {
    /// It was new.
    New,
    /// It made its block whole.
    Whole(Vec<u8>),
    /// It has come before.
    Known,
    /// There is no such chunk, it has another length, or it may not be sent yet: a lie.
    Wrong,
}

/// The blocks of an offer. Those that are there are written at first; its session owns it.
#[derive(Debug)]
pub(super) struct Blocks {
    layout: Layout,
    /// What is there of each file; none where it is not taken.
    have: Vec<Option<Have>>,
    /// The block of the first slot.
    low: u32,
    slots: VecDeque<Slot>,
    free: Vec<Vec<u8>>,
    /// Bytes of chunks that were new.
    pub(super) came: u64,
}

impl Blocks {
    pub(super) fn new(layout: Layout, have: Vec<Option<Have>>) -> Blocks {
        let mut blocks = Blocks { layout, have, low: 0, slots: VecDeque::new(), free: Vec::new(), came: 0 };
        blocks.slide();
        blocks
    }

    /// Chunks of blocks below this one may be sent.
    pub(super) fn limit(&self) -> u32 {
        self.low + self.slots.len() as u32
    }

    /// Takes a chunk.
    pub(super) fn fill(&mut self, chunk: ChunkId, bytes: &[u8]) -> Filled {
        let Some(range) = self.layout.range(chunk).filter(|range| range.len() == bytes.len()) else {
            return Filled::Wrong;
        };
        let Some(at) = chunk.block.0.checked_sub(self.low) else { return Filled::Known };
        let Some(slot) = self.slots.get_mut(at as usize) else { return Filled::Wrong };
        if matches!(slot, Slot::Missing) {
            let mut bytes = self.free.pop().unwrap_or_default();
            bytes.resize(self.layout.block_len(chunk.block), 0);
            *slot = Slot::Filling { bytes, came: ChunkBits::default(), left: self.layout.chunks(chunk.block) };
        }
        let Slot::Filling { bytes: block, came, left } = slot else { return Filled::Known };
        if !came.set(chunk.index) {
            return Filled::Known;
        }
        block[range].copy_from_slice(bytes);
        self.came += bytes.len() as u64;
        *left -= 1;
        if *left > 0 {
            return Filled::New;
        }
        match std::mem::replace(slot, Slot::Writing) {
            Slot::Filling { bytes, .. } => Filled::Whole(bytes),
            _ => Filled::Known,
        }
    }

    /// A block was written; its memory serves others.
    pub(super) fn on_written(&mut self, block: BlockId, memory: Vec<u8>) {
        if self.free.len() < KEPT {
            self.free.push(memory);
        }
        let at = block.0.checked_sub(self.low).map(|at| at as usize);
        if let Some(slot) = at.and_then(|at| self.slots.get_mut(at)) {
            *slot = Slot::Written;
        }
        self.slide();
    }

    /// Moves the window on behind what is written.
    fn slide(&mut self) {
        while matches!(self.slots.front(), Some(Slot::Written)) {
            self.slots.pop_front();
            self.low += 1;
        }
        while self.slots.is_empty() && self.low < self.layout.blocks() && self.is_there(self.low) {
            self.low += 1;
        }
        while (self.slots.len() as u32) < WINDOW && self.limit() < self.layout.blocks() {
            let there = self.is_there(self.limit());
            self.slots.push_back(if there { Slot::Written } else { Slot::Missing });
        }
    }

    fn is_there(&self, block: u32) -> bool {
        let Some((file, _)) = self.layout.place(BlockId(block)) else { return true };
        let first = self.layout.blocks_of(file).start;
        self.have.get(file).is_none_or(|have| have.as_ref().is_none_or(|have| have.has(block - first)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::BLOCK_LEN;

    fn chunk(block: u32, index: u16) -> ChunkId {
        ChunkId { block: BlockId(block), index }
    }

    /// 300 blocks in chunks of 60,000 bytes: 18 a block.
    fn blocks(have: Option<Have>) -> Blocks {
        Blocks::new(Layout::new([300 * BLOCK_LEN as u64], 60_000).expect("an offer"), vec![have])
    }

    fn fill_all(blocks: &mut Blocks, block: u32) -> Vec<u8> {
        for index in 0..17 {
            assert_eq!(blocks.fill(chunk(block, index), &[index as u8; 60_000]), Filled::New);
            assert_eq!(blocks.fill(chunk(block, index), &[9; 60_000]), Filled::Known);
        }
        match blocks.fill(chunk(block, 17), &[17; BLOCK_LEN - 17 * 60_000]) {
            Filled::Whole(bytes) => bytes,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_arrow_of_a_block() {
        let mut blocks = blocks(Some(Have::default()));
        assert_eq!(blocks.limit(), WINDOW);
        let bytes = fill_all(&mut blocks, 0);
        assert_eq!((bytes.len(), bytes[0], bytes[60_000], bytes[BLOCK_LEN - 1]), (BLOCK_LEN, 0, 1, 17));
        assert_eq!(blocks.fill(chunk(0, 3), &[0; 60_000]), Filled::Known, "it is being written");
        assert_eq!(blocks.limit(), WINDOW, "until it is");
        blocks.on_written(BlockId(0), bytes);
        assert_eq!((blocks.limit(), blocks.came), (WINDOW + 1, BLOCK_LEN as u64));
        assert_eq!(blocks.fill(chunk(0, 3), &[0; 60_000]), Filled::Known);
    }

    #[test]
    fn what_cannot_be_is_wrong() {
        let mut blocks = blocks(Some(Have::default()));
        assert_eq!(blocks.fill(chunk(WINDOW, 0), &[0; 60_000]), Filled::Wrong, "beyond the limit");
        assert_eq!(blocks.fill(chunk(0, 0), &[0; 59_999]), Filled::Wrong, "another length");
        assert_eq!(blocks.fill(chunk(0, 18), &[0; 60_000]), Filled::Wrong, "no such chunk");
        assert_eq!(blocks.fill(chunk(300, 0), &[0; 60_000]), Filled::Wrong, "no such block");
    }

    #[test]
    fn the_window_leaves_out_what_is_there() {
        let mut blocks = blocks(Some(Have(vec![(0, 200), (202, 97)])));
        assert_eq!(blocks.limit(), 300);
        for block in [201, 200, 299] {
            let bytes = fill_all(&mut blocks, block);
            blocks.on_written(BlockId(block), bytes);
        }
        assert_eq!((blocks.low, blocks.limit()), (300, 300));
        assert_eq!(self::blocks(None).low, 300, "a file that is not taken has nothing to come");
    }
}
