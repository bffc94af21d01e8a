//! DATA: an inner packet, to the end of the datagram.
//!
//! ```text
//! +------+--------------------+--------------+------------- - -
//! | 0x08 | flags 4, bucket 12 | sequence   3 | inner packet
//! +------+--------------------+--------------+------------- - -
//! ```

use super::{EncodeError, FrameType, Reader, WireError, Writer};

/// Bytes of a DATA frame before its inner packet.
pub const DATA_FRAME_LEN: usize = 6;

/// Bits of a flow bucket; the flags stand above them.
const BUCKET_BITS: u32 = 12;
/// Bits of a flow sequence.
const SEQUENCE_BITS: u32 = 24;
/// Half of the sequence space: what is further ahead counts as behind (RFC 1982 section 3.2).
const SEQUENCE_HALF: u64 = 1 << (SEQUENCE_BITS - 1);
const SEQUENCE_MASK: u64 = (1 << SEQUENCE_BITS) - 1;

/// One of 4096 classes that flows are hashed to, each with an order of its own. Zero is the first.
/// A plain number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FlowBucket(pub u16);

impl FlowBucket {
    /// How many there are.
    pub const COUNT: usize = 1 << BUCKET_BITS;

    /// The bucket of that number, if there is one.
    pub const fn new(number: u16) -> Option<Self> {
        if (number as usize) < Self::COUNT { Some(FlowBucket(number)) } else { None }
    }

    /// The bucket of a flow's hash, by its low bits.
    pub const fn of_hash(hash: u64) -> Self {
        FlowBucket((hash & (Self::COUNT as u64 - 1)) as u16)
    }

    /// The number, below [`FlowBucket::COUNT`].
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The number, to index with.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A place in a flow bucket's order: the low 24 bits of a count that never ends. Zero is the first.
/// A plain number.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct FlowSequence(pub u32);

impl FlowSequence {
    /// Cuts a full count to what the wire carries.
    pub const fn of(count: u64) -> Self {
        FlowSequence((count & SEQUENCE_MASK) as u32)
    }

    /// The 24 bits.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number after this one.
    pub const fn next(self) -> Self {
        Self::of(self.0 as u64 + 1)
    }

    /// Whether this comes before `other`, if they are less than half of the space apart
    /// (RFC 1982 section 3.2).
    pub const fn precedes(self, other: FlowSequence) -> bool {
        let ahead = (other.0 as u64).wrapping_sub(self.0 as u64) & SEQUENCE_MASK;
        ahead != 0 && ahead < SEQUENCE_HALF
    }

    /// The full count with these 24 bits that is closest to `near` (the next one expected): from
    /// half of the space below it to just under half above; never below zero.
    pub const fn expand(self, near: u64) -> u64 {
        let ahead = (self.0 as u64).wrapping_sub(near) & SEQUENCE_MASK;
        let behind = SEQUENCE_MASK + 1 - ahead;
        if ahead >= SEQUENCE_HALF && near >= behind { near - behind } else { near.saturating_add(ahead) }
    }
}

/// What the receiver must know about an inner packet. All false by default; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct DataFlags {
    /// The inner TCP or UDP checksum covers the pseudo-header only, as the sender's kernel left it.
    pub partial: bool,
    /// The next sequence number is of the same train.
    pub continues: bool,
    /// Deliver at once, in no order.
    pub unordered: bool,
}

impl DataFlags {
    const PARTIAL: u16 = 1 << BUCKET_BITS;
    const CONTINUES: u16 = 2 << BUCKET_BITS;
    const UNORDERED: u16 = 4 << BUCKET_BITS;
    const SPARE: u16 = 8 << BUCKET_BITS;

    /// The two bytes that flags and bucket share.
    pub(crate) const fn join(self, bucket: FlowBucket) -> u16 {
        let mut word = bucket.get();
        if self.partial {
            word |= Self::PARTIAL;
        }
        if self.continues {
            word |= Self::CONTINUES;
        }
        if self.unordered {
            word |= Self::UNORDERED;
        }
        word
    }

    /// The flags and the bucket of two bytes.
    pub(crate) const fn split(word: u16) -> Result<(Self, FlowBucket), WireError> {
        if word & Self::SPARE != 0 {
            return Err(WireError::Reserved);
        }
        let flags = DataFlags {
            partial: word & Self::PARTIAL != 0,
            continues: word & Self::CONTINUES != 0,
            unordered: word & Self::UNORDERED != 0,
        };
        Ok((flags, FlowBucket::of_hash(word as u64)))
    }
}

/// A DATA frame: an inner packet and its place in its flow. No zero value; it borrows the packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct DataFrame<'a> {
    /// Whose order the packet keeps.
    pub bucket: FlowBucket,
    /// What else the receiver must know.
    pub flags: DataFlags,
    /// Its place in that order.
    pub sequence: FlowSequence,
    /// The inner IP packet; never empty.
    pub packet: &'a [u8],
}

impl<'a> DataFrame<'a> {
    /// The frame without its packet, for a sender that seals the packet from where it lies.
    pub fn head(bucket: FlowBucket, flags: DataFlags, sequence: FlowSequence) -> [u8; DATA_FRAME_LEN] {
        let [word_0, word_1] = flags.join(bucket).to_be_bytes();
        let [_, sequence_0, sequence_1, sequence_2] = sequence.get().to_be_bytes();
        [FrameType::Data as u8, word_0, word_1, sequence_0, sequence_1, sequence_2]
    }

    /// Bytes of the whole frame.
    pub fn encoded_len(&self) -> usize {
        DATA_FRAME_LEN + self.packet.len()
    }

    /// Appends the frame; nothing may follow it.
    ///
    /// # Errors
    /// [`EncodeError::NoRoom`]; [`EncodeError::OutOfRange`] for an empty packet.
    pub fn encode(&self, out: &mut Writer<'_>) -> Result<(), EncodeError> {
        if self.packet.is_empty() {
            return Err(EncodeError::OutOfRange);
        }
        out.reserve(self.encoded_len())?;
        out.put_bytes(&Self::head(self.bucket, self.flags, self.sequence))?;
        out.put_bytes(self.packet)
    }

    /// Reads what follows the type byte, to the end.
    pub(super) fn decode(from: &mut Reader<'a>) -> Result<Self, WireError> {
        let (flags, bucket) = DataFlags::split(from.u16()?)?;
        let sequence = FlowSequence(from.u24()?);
        let packet = from.rest();
        if packet.is_empty() {
            return Err(WireError::Truncated);
        }
        Ok(DataFrame { bucket, flags, sequence, packet })
    }
}
