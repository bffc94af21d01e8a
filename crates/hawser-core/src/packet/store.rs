//! Where trains live from TUN until nobody needs them any more.
//!
//! 1. `read_buffer`: the next packet is read into it.
//! 2. `admit`: it is parsed and moves to a buffer of its size; a big one takes the read buffer along.
//! 3. `train`: written to paths, perhaps more than once.
//! 4. `release`: each segment once; the last one frees the train.

use super::flow::{FlowHash, FlowKey};
use super::inner::{Inner, InnerError};
use super::pool::{LARGEST, Pool};
use super::train::{Offload, Shape, Train};
use crate::treatment::Treatment;
use thiserror::Error;

/// From here on the read buffer itself is kept, bytes: a copy would save less than half of it.
const TAKE_OVER: usize = 32_768;
/// Most bytes of buffers that trains may hold: the 32 MiB of a queue and as much again in flight,
/// with room for what rounding to buffer sizes adds.
const MAX_HELD: usize = 96 << 20;
/// What one owner may hold beside what is free, times that: a single one two thirds of all, and n greedy ones leave one
/// part in 2n + 1 free (dynamic thresholds, Choudhury and Hahne, IEEE/ACM ToN 6(2), 1998).
const SHARE: usize = 2;
/// Segments in a word of `released`.
const WORD: u16 = 64;

/// Why a packet from TUN was not admitted.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Error)]
pub enum PacketDrop {
    /// No inner packet.
    #[error(transparent)]
    Inner(#[from] InnerError),
    /// Longer than the read buffer.
    #[error("admit packet: {0} bytes are more than the read buffer has")]
    TooLong(usize),
    /// The checksum to complete lies elsewhere than the packet's kind says.
    #[error("admit packet: checksum offload does not fit the packet")]
    ChecksumPlace,
    /// The segmentation asked for is not one for this kind of packet.
    #[error("admit packet: segmentation does not fit the packet")]
    GsoKind,
    /// Segments of no size.
    #[error("admit packet: segments of zero bytes")]
    GsoSize,
    /// Headers too long to repeat.
    #[error("admit packet: {0} bytes of headers to repeat")]
    GsoHeader(usize),
    /// The store is full.
    #[error("admit packet: trains hold {MAX_HELD} bytes already")]
    Full,
}

/// The name of a train in its store, never used again for another. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TrainId {
    slot: u32,
    generation: u32,
}

/// One segment of a train. A plain value; whoever holds it owes the store one `release`.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SegmentRef {
    /// The train.
    pub train: TrainId,
    /// Which of its segments.
    pub segment: u16,
}

/// Owns all trains of a session and their buffers. Empty at first. One owner; needs `&mut` to
/// change, `&` to write segments.
#[derive(Debug)]
pub struct TrainStore {
    key: FlowKey,
    read: Vec<u8>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    pool: Pool,
    held: usize,
    /// The same by owner.
    owned: Vec<usize>,
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    /// Segments not released yet; zero when the slot is free.
    remaining: u16,
    released: Vec<u64>,
    train: Train,
    /// Who answers for its bytes, once that is known.
    owner: Option<u32>,
}

impl TrainStore {
    /// An empty store that hashes flows with `key`.
    pub fn new(key: FlowKey) -> TrainStore {
        TrainStore {
            key,
            read: vec![0; LARGEST],
            slots: Vec::new(),
            free: Vec::new(),
            pool: Pool::default(),
            held: 0,
            owned: Vec::new(),
        }
    }

    /// Where to read the next packet, without virtio_net_hdr; more than 65,536 bytes.
    pub fn read_buffer(&mut self) -> &mut [u8] {
        &mut self.read
    }

    /// Admits the packet in the first `len` bytes of the read buffer.
    ///
    /// # Errors
    /// [`PacketDrop`]; the read buffer may be filled anew.
    pub fn admit(&mut self, len: usize, offload: Offload) -> Result<TrainId, PacketDrop> {
        let packet = self.read.get_mut(..len).ok_or(PacketDrop::TooLong(len))?;
        let shape = Shape::of(packet, &offload, &self.key)?;
        if self.held + Pool::size_for(len) > MAX_HELD {
            return Err(PacketDrop::Full);
        }
        let buffer = if len > TAKE_OVER {
            let next = self.pool.take(LARGEST);
            std::mem::replace(&mut self.read, next)
        } else {
            let mut buffer = self.pool.take(len);
            buffer[..len].copy_from_slice(&self.read[..len]);
            buffer
        };
        self.held += buffer.len();
        Ok(self.place(buffer, shape))
    }

    fn place(&mut self, buffer: Vec<u8>, shape: Shape) -> TrainId {
        let words = usize::from(shape.count.div_ceil(WORD));
        let slot = match self.free.pop() {
            Some(index) => {
                self.slots[index as usize].train.renew(buffer, shape);
                index
            }
            None => {
                self.slots.push(Slot {
                    generation: 0,
                    remaining: 0,
                    released: Vec::new(),
                    train: Train::new(buffer, shape),
                    owner: None,
                });
                (self.slots.len() - 1) as u32
            }
        };
        let place = &mut self.slots[slot as usize];
        place.remaining = shape.count;
        place.owner = None;
        place.released.clear();
        place.released.resize(words, 0);
        TrainId { slot, generation: place.generation }
    }

    /// A train that was just admitted counts towards what `owner` holds. False where that is more than its share: the
    /// caller is to release it. Panics like `train`.
    #[must_use]
    pub fn charge(&mut self, id: TrainId, owner: u32) -> bool {
        let slot = &mut self.slots[id.slot as usize];
        assert!(slot.lives(id), "a train that was released");
        slot.owner = Some(owner);
        let index = owner as usize;
        if index >= self.owned.len() {
            self.owned.resize(index + 1, 0);
        }
        self.owned[index] += slot.train.buffer.len();
        self.owned[index] <= SHARE * (MAX_HELD - self.held)
    }

    /// The train of that name. Panics when all its segments have been released.
    pub fn train(&self, id: TrainId) -> &Train {
        let slot = &self.slots[id.slot as usize];
        assert!(slot.lives(id), "a train that was released");
        &slot.train
    }

    /// The train of that name, unless all its segments have been released.
    pub fn get(&self, id: TrainId) -> Option<&Train> {
        let slot = &self.slots[id.slot as usize];
        slot.lives(id).then_some(&slot.train)
    }

    /// How a train is treated that was just admitted. Panics like `train`.
    pub fn treat(&mut self, id: TrainId, treatment: Treatment) {
        let slot = &mut self.slots[id.slot as usize];
        assert!(slot.lives(id), "a train that was released");
        slot.train.treat(treatment, &self.key);
    }

    /// What a flow hashes to that is treated so.
    pub fn flow_of(&self, inner: &Inner, treatment: Treatment) -> FlowHash {
        inner.flow(&self.key, treatment.resend)
    }

    /// Marks a segment CE; every later `head` (of a single packet: its `body`) has the mark.
    /// Panics like `train`.
    pub fn mark_ce(&mut self, segment: SegmentRef) {
        let slot = &mut self.slots[segment.train.slot as usize];
        assert!(slot.lives(segment.train), "a train that was released");
        slot.train.mark_ce(segment.segment);
    }

    /// Gives a segment up. Panics when that was done before: two owners of one segment are a bug
    /// that would hand its buffer to another packet.
    pub fn release(&mut self, segment: SegmentRef) {
        let slot = &mut self.slots[segment.train.slot as usize];
        assert!(slot.lives(segment.train), "a train that was released");
        let (word, bit) = (segment.segment / WORD, 1 << (segment.segment % WORD));
        let word = &mut slot.released[usize::from(word)];
        assert!(segment.segment < slot.train.segments() && *word & bit == 0, "a segment released twice");
        *word |= bit;
        slot.remaining -= 1;
        if slot.remaining == 0 {
            slot.generation = slot.generation.wrapping_add(1);
            let buffer = std::mem::take(&mut slot.train.buffer);
            self.held -= buffer.len();
            if let Some(owner) = slot.owner {
                self.owned[owner as usize] -= buffer.len();
            }
            self.pool.put(buffer);
            self.free.push(segment.train.slot);
        }
    }

    /// Gives up every segment of a train that nobody took any of. Panics like `release`.
    pub fn release_all(&mut self, train: TrainId) {
        for segment in 0..self.train(train).segments() {
            self.release(SegmentRef { train, segment });
        }
    }

    /// Bytes of the buffers that an owner's trains hold.
    pub fn owned_by(&self, owner: u32) -> usize {
        self.owned.get(owner as usize).copied().unwrap_or(0)
    }

    /// Bytes of the buffers that trains hold.
    pub fn bytes_held(&self) -> usize {
        self.held
    }

    /// Bytes of buffers kept for later.
    pub fn bytes_pooled(&self) -> usize {
        self.pool.bytes()
    }

    /// Frees buffers that were idle since the last call. Call it about once a second.
    pub fn trim(&mut self) {
        self.pool.trim();
    }
}

impl Slot {
    fn lives(&self, id: TrainId) -> bool {
        self.generation == id.generation && self.remaining > 0
    }
}
