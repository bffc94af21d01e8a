//! One queue of chunks for all paths.
//!
//! ```text
//!  chunk:   loaded --- next_chunk ---> under way --- on_acked ---> arrived
//!                                         |   ^
//!                             return_chunk v   | next_chunk: what is to be repeated goes first
//!                                         returned
//! ```
//!
//! Blocks come in order, as somebody reads them, and stay until all their chunks have arrived: nothing is read twice.

use std::collections::VecDeque;

use crate::layout::{BLOCK_LEN, BlockId, CHUNKS, ChunkId, Layout};

/// Words of a block's bits, one for each of the most chunks.
const WORDS: usize = (BLOCK_LEN / CHUNKS.start).div_ceil(64);
/// Blocks that are read ahead of what was sent: 8 ms at 1 GB/s.
const AHEAD: usize = 8;

/// A bit for each chunk of a block. None set at first. A plain value.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct ChunkBits([u64; WORDS]);

impl ChunkBits {
    /// Sets a bit; says whether it was not set.
    pub(crate) fn set(&mut self, index: u16) -> bool {
        let (word, bit) = (&mut self.0[usize::from(index) / 64], 1 << (index % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    pub(crate) fn has(&self, index: u16) -> bool {
        self.0[usize::from(index) / 64] & 1 << (index % 64) != 0
    }

    fn clear(&mut self, index: u16) {
        self.0[usize::from(index) / 64] &= !(1 << (index % 64));
    }
}

/// A block in memory.
#[derive(Debug)]
struct Block {
    id: BlockId,
    bytes: Vec<u8>,
    chunks: u16,
    /// Chunks that were sent at least once: those before this one.
    fresh: u16,
    arrived: ChunkBits,
    left: u16,
    /// Those that wait in the queue to be repeated.
    returned: ChunkBits,
}

/// What is to be sent. Without a block at first; its sender owns it.
#[derive(Debug)]
pub(super) struct Queue {
    layout: Layout,
    /// Ascending by their numbers.
    blocks: VecDeque<Block>,
    /// Where the first block is that has fresh chunks.
    fresh: usize,
    repeats: VecDeque<ChunkId>,
    /// Memory of blocks that have arrived.
    free: Vec<Vec<u8>>,
    arrived_bytes: u64,
}

impl Queue {
    pub(super) fn new(layout: Layout) -> Queue {
        Queue {
            layout,
            blocks: VecDeque::new(),
            fresh: 0,
            repeats: VecDeque::new(),
            free: Vec::new(),
            arrived_bytes: 0,
        }
    }

    /// Bytes of a whole chunk.
    pub(super) fn chunk(&self) -> usize {
        self.layout.chunk()
    }

    /// Blocks of a file.
    pub(super) fn blocks_of(&self, file: usize) -> u32 {
        self.layout.blocks_of(file).len() as u32
    }

    /// Whether all that was loaded was sent, or may not be sent yet.
    pub(super) fn is_stopped(&self, limit: u32, more: bool) -> bool {
        match self.blocks.get(self.fresh) {
            Some(block) => block.id.0 >= limit,
            None => !more,
        }
    }

    /// Whether another block should be read.
    pub(super) fn wants_block(&self) -> bool {
        self.blocks.len() - self.fresh < AHEAD
    }

    /// A block was read. Blocks come in order.
    pub(super) fn load(&mut self, id: BlockId, bytes: Vec<u8>) {
        debug_assert!(self.blocks.back().is_none_or(|last| last.id < id), "blocks come in order");
        let chunks = self.layout.chunks(id);
        let (arrived, returned) = Default::default();
        self.blocks.push_back(Block { id, bytes, chunks, fresh: 0, arrived, left: chunks, returned });
    }

    /// The next chunk to send: one that is to be repeated, or a fresh one of a block below `limit`; of a block that was
    /// not begun only if that `may_begin`.
    pub(super) fn next_chunk(&mut self, limit: u32, may_begin: bool) -> Option<ChunkId> {
        while let Some(chunk) = self.repeats.pop_front() {
            if let Some(block) = self.block(chunk.block) {
                block.returned.clear(chunk.index);
                if !block.arrived.has(chunk.index) {
                    return Some(chunk);
                }
            }
        }
        let block = self.blocks.get_mut(self.fresh).filter(|block| is_open(block, limit, may_begin))?;
        let chunk = ChunkId { block: block.id, index: block.fresh };
        block.fresh += 1;
        if block.fresh == block.chunks {
            self.fresh += 1;
        }
        Some(chunk)
    }

    /// Whether there may be a next chunk.
    pub(super) fn has_chunk(&self, limit: u32, may_begin: bool) -> bool {
        !self.repeats.is_empty() || self.blocks.get(self.fresh).is_some_and(|block| is_open(block, limit, may_begin))
    }

    /// A chunk's bytes; none if it has arrived with all of its block.
    pub(super) fn bytes(&self, chunk: ChunkId) -> Option<&[u8]> {
        let at = self.find(chunk.block)?;
        self.blocks[at].bytes.get(self.layout.range(chunk)?)
    }

    /// Bytes of a chunk.
    pub(super) fn len(&self, chunk: ChunkId) -> usize {
        self.layout.range(chunk).map_or(0, |range| range.len())
    }

    /// Whether a chunk has arrived.
    pub(super) fn has_arrived(&self, chunk: ChunkId) -> bool {
        self.find(chunk.block).is_none_or(|at| self.blocks[at].arrived.has(chunk.index))
    }

    /// A chunk was lost, or its path is given up: it is repeated, unless that is due or has arrived otherwise.
    pub(super) fn return_chunk(&mut self, chunk: ChunkId) {
        if let Some(block) = self.block(chunk.block)
            && !block.arrived.has(chunk.index)
            && block.returned.set(chunk.index)
        {
            self.repeats.push_back(chunk);
        }
    }

    /// A chunk has arrived.
    pub(super) fn on_acked(&mut self, chunk: ChunkId) {
        let bytes = self.len(chunk) as u64;
        let Some(block) = self.block(chunk.block) else { return };
        if !block.arrived.set(chunk.index) {
            return;
        }
        block.left -= 1;
        self.arrived_bytes += bytes;
        while self.blocks.front().is_some_and(|front| front.left == 0) {
            let done = self.blocks.pop_front().map(|block| block.bytes);
            self.free.extend(done);
            self.fresh -= 1;
        }
    }

    /// Bytes of chunks that have arrived.
    pub(super) fn arrived_bytes(&self) -> u64 {
        self.arrived_bytes
    }

    /// Whether all that was loaded and begun has arrived.
    pub(super) fn is_settled(&self) -> bool {
        self.blocks.front().is_none_or(|block| block.fresh == 0)
    }

    /// Whether all that was loaded has arrived.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Memory of a block that is needed no more.
    pub(super) fn take_free(&mut self) -> Option<Vec<u8>> {
        self.free.pop()
    }

    fn find(&self, id: BlockId) -> Option<usize> {
        let first = self.blocks.front()?.id.0;
        // Mostly blocks are one after the other, so that their numbers say where they are.
        let guess = id.0.checked_sub(first)? as usize;
        if self.blocks.get(guess).is_some_and(|block| block.id == id) {
            return Some(guess);
        }
        self.blocks.binary_search_by_key(&id, |block| block.id).ok()
    }

    fn block(&mut self, id: BlockId) -> Option<&mut Block> {
        let at = self.find(id)?;
        self.blocks.get_mut(at)
    }
}

fn is_open(block: &Block, limit: u32, may_begin: bool) -> bool {
    block.id.0 < limit && (may_begin || block.fresh > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(block: u32, index: u16) -> ChunkId {
        ChunkId { block: BlockId(block), index }
    }

    /// Two blocks: 3 chunks and 2.
    fn queue() -> Queue {
        let layout = Layout::new([2500, 1500], 1000).expect("an offer");
        let mut queue = Queue::new(layout);
        queue.load(BlockId(0), vec![0; 2500]);
        queue.load(BlockId(1), vec![1; 1500]);
        queue
    }

    #[test]
    fn fresh_chunks_come_in_order_up_to_the_limit() {
        let mut queue = queue();
        let sent: Vec<_> = std::iter::from_fn(|| queue.next_chunk(1, true)).collect();
        assert_eq!(sent, [chunk(0, 0), chunk(0, 1), chunk(0, 2)]);
        assert!(!queue.has_chunk(1, true) && queue.has_chunk(2, true) && !queue.has_chunk(2, false));
        assert_eq!(queue.next_chunk(2, true), Some(chunk(1, 0)));
        assert_eq!(queue.next_chunk(2, false), Some(chunk(1, 1)), "it was begun");
        assert_eq!([chunk(0, 2), chunk(1, 1)].map(|chunk| queue.len(chunk)), [500, 500]);
        assert_eq!(queue.bytes(chunk(1, 0)), Some(&[1; 1000][..]));
    }

    #[test]
    fn what_returns_is_repeated_first_and_once_unless_it_arrived() {
        let mut queue = queue();
        let first = queue.next_chunk(2, true).expect("a chunk");
        let second = queue.next_chunk(2, true).expect("a chunk");
        queue.return_chunk(first);
        queue.return_chunk(first);
        queue.return_chunk(second);
        queue.on_acked(second);
        assert_eq!(queue.next_chunk(2, true), Some(first));
        assert_eq!(queue.next_chunk(2, true), Some(chunk(0, 2)));
        queue.on_acked(first);
        queue.return_chunk(first);
        assert_eq!(queue.next_chunk(2, true), Some(chunk(1, 0)));
    }

    #[test]
    fn a_block_goes_when_all_of_it_has_arrived_and_its_memory_is_used_again() {
        let mut queue = queue();
        let sent: Vec<_> = std::iter::from_fn(|| queue.next_chunk(2, true)).collect();
        for at in [3, 4, 0, 2] {
            queue.on_acked(sent[at]);
            queue.on_acked(sent[at]);
        }
        assert!(queue.take_free().is_none() && !queue.is_settled() && !queue.is_empty());
        queue.on_acked(sent[1]);
        let free: Vec<usize> = std::iter::from_fn(|| queue.take_free().map(|free| free.len())).collect();
        assert_eq!(free, [1500, 2500]);
        assert!(queue.is_settled() && queue.is_empty() && queue.has_arrived(sent[1]) && queue.bytes(sent[1]).is_none());
        assert_eq!(queue.arrived_bytes(), 4000);
    }

    #[test]
    fn blocks_that_are_there_already_are_left_out() {
        let layout = Layout::new([5 << 20], 1000).expect("an offer");
        let mut queue = Queue::new(layout);
        for id in [0, 3, 4] {
            queue.load(BlockId(id), vec![id as u8; BLOCK_LEN]);
        }
        for id in [0, 3, 4] {
            assert_eq!(queue.bytes(chunk(id, 1)), Some(&[id as u8; 1000][..]));
        }
        assert_eq!(queue.bytes(chunk(1, 1)), None);
    }
}
