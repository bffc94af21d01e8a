//! What both ends exchange: frames, one in each sealed datagram (README.md, "Datagrams"), and messages of the control
//! stream.
//!
//! Decoders borrow, never allocate, and take exactly what the page allows.

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod message;
mod sack;

pub use message::{Have, MESSAGE_HEAD, MOST_MESSAGE, Message, Verdict};
pub use sack::{MOST_BITMAP, Runs, write_bitmap};

use hawser_core::wire::{DATA_HEADER_LEN, EncodeError, Reader, TAG_LEN, WireError, Writer};

use crate::layout::{BlockId, ChunkId};

/// Bytes of a DATA frame before its chunk.
pub const DATA_HEAD: usize = 1 + 4 + 2;
/// Bytes of a CONTROL frame before its piece.
pub const CONTROL_HEAD: usize = 1 + 4 + 4;
/// Bytes of a MARK frame.
pub const MARK_LEN: usize = 1 + 8 + 4 + 4 + 4;
/// Bytes of a CLOSE frame.
pub const CLOSE_LEN: usize = 2;
/// Bytes of an ACK frame before its bitmap.
pub const ACK_HEAD: usize = 1 + 8 + 8 + 4 + 4 + 4 + 8;
/// Bytes of a datagram beside its frame.
pub const SEAL_LEN: usize = DATA_HEADER_LEN + TAG_LEN;
/// Bytes of a datagram beside its chunk.
pub const CHUNK_OVERHEAD: usize = SEAL_LEN + DATA_HEAD;

const DATA: u8 = 1;
const ACK: u8 = 2;
const CONTROL: u8 = 3;
const MARK: u8 = 4;
const CLOSE: u8 = 5;

/// Why a session ends. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Everything was said.
    Done = 0,
    /// An end stops: its user wants so, or it cannot go on.
    Stopped = 1,
    /// The keys have sealed as much as they may; another handshake follows.
    Rekey = 2,
    /// The other end broke a rule of the protocol.
    Protocol = 3,
}

/// What an acknowledgement says. Borrows the datagram.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Ack<'a> {
    /// All numbers from the sender's last mark up to this one have come; itself not.
    pub mark: u64,
    /// When the largest came, in microseconds on the receiver's clock.
    pub received_at_us: u64,
    /// How long ago that was, in microseconds.
    pub delay_us: u32,
    /// Bytes of the sender's control stream that have come.
    pub control: u32,
    /// Chunks of blocks below this one may be sent.
    pub limit: u32,
    /// What the bitmap's first bit stands for.
    pub first: u64,
    /// Which have come.
    pub bitmap: &'a [u8],
}

/// What a sender wants to be acknowledged, and how. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    /// Nothing below is of interest.
    pub mark: u64,
    /// An acknowledgement is due after as many bytes.
    pub ack_bytes: u32,
    /// And after these microseconds.
    pub ack_delay_us: u32,
    /// Bytes of the receiver's control stream that have come.
    pub control: u32,
}

/// A frame. Borrows the datagram.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Frame<'a> {
    /// A chunk.
    Data(ChunkId, &'a [u8]),
    /// What has come.
    Ack(Ack<'a>),
    /// A piece of the control stream.
    Control {
        /// Bytes of the other's stream that have come.
        control: u32,
        /// Where in the stream it begins.
        offset: u32,
        /// Some bytes, at least one.
        piece: &'a [u8],
    },
    /// What is to be acknowledged; asks for an acknowledgement.
    Mark(Mark),
    /// The session ends.
    Close(Reason),
}

impl Reason {
    const ALL: [Reason; 4] = [Reason::Done, Reason::Stopped, Reason::Rekey, Reason::Protocol];
}

impl<'a> Frame<'a> {
    /// Reads the one frame of a datagram.
    ///
    /// # Errors
    /// [`WireError`] for anything but a frame, byte for byte.
    pub fn decode(bytes: &'a [u8]) -> Result<Frame<'a>, WireError> {
        let mut from = Reader::new(bytes);
        let frame = match from.u8()? {
            DATA => {
                let chunk = ChunkId { block: BlockId(from.u32()?), index: from.u16()? };
                Frame::Data(chunk, some(from.rest())?)
            }
            ACK => Frame::Ack(Ack::read(&mut from)?),
            CONTROL => Frame::Control { control: from.u32()?, offset: from.u32()?, piece: some(from.rest())? },
            MARK => Frame::Mark(Mark {
                mark: from.u64()?,
                ack_bytes: from.u32()?,
                ack_delay_us: from.u32()?,
                control: from.u32()?,
            }),
            CLOSE => {
                let reason = usize::from(from.u8()?);
                Frame::Close(*Reason::ALL.get(reason).ok_or(WireError::OutOfRange)?)
            }
            other => return Err(WireError::UnknownType(other)),
        };
        from.finish().map(|()| frame)
    }

    /// Writes it, and tells how many bytes it has.
    ///
    /// # Errors
    /// [`EncodeError::NoRoom`].
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, EncodeError> {
        let mut out = Writer::new(out);
        match self {
            Frame::Data(chunk, bytes) => {
                data_head(*chunk, &mut out)?;
                out.put_bytes(bytes)?;
            }
            Frame::Ack(ack) => {
                ack.head(&mut out)?;
                out.put_bytes(ack.bitmap)?;
            }
            Frame::Control { control, offset, piece } => {
                out.put_u8(CONTROL)?;
                out.put_u32(*control)?;
                out.put_u32(*offset)?;
                out.put_bytes(piece)?;
            }
            Frame::Mark(mark) => {
                out.put_u8(MARK)?;
                out.put_u64(mark.mark)?;
                out.put_u32(mark.ack_bytes)?;
                out.put_u32(mark.ack_delay_us)?;
                out.put_u32(mark.control)?;
            }
            Frame::Close(reason) => {
                out.put_u8(CLOSE)?;
                out.put_u8(*reason as u8)?;
            }
        }
        Ok(out.len())
    }
}

/// Writes what stands before a chunk.
pub(crate) fn data_head(chunk: ChunkId, out: &mut Writer<'_>) -> Result<(), EncodeError> {
    out.put_u8(DATA)?;
    out.put_u32(chunk.block.0)?;
    out.put_u16(chunk.index)
}

impl<'a> Ack<'a> {
    fn read(from: &mut Reader<'a>) -> Result<Ack<'a>, WireError> {
        let ack = Ack {
            mark: from.u64()?,
            received_at_us: from.u64()?,
            delay_us: from.u32()?,
            control: from.u32()?,
            limit: from.u32()?,
            first: from.u64()?,
            bitmap: from.rest(),
        };
        let bits = ack.bitmap.len() as u64 * 8;
        let fits = ack.bitmap.len() <= MOST_BITMAP && ack.first >= ack.mark && ack.first.checked_add(bits).is_some();
        if !fits || ack.bitmap.last() == Some(&0) {
            return Err(WireError::OutOfRange);
        }
        Ok(ack)
    }

    fn head(&self, out: &mut Writer<'_>) -> Result<(), EncodeError> {
        out.put_u8(ACK)?;
        out.put_u64(self.mark)?;
        out.put_u64(self.received_at_us)?;
        out.put_u32(self.delay_us)?;
        out.put_u32(self.control)?;
        out.put_u32(self.limit)?;
        out.put_u64(self.first)
    }

    /// The numbers that its bitmap tells, as ranges, ascending.
    pub fn runs(&self) -> Runs<'a> {
        Runs::new(self.first, self.bitmap)
    }
}

fn some(bytes: &[u8]) -> Result<&[u8], WireError> {
    if bytes.is_empty() { Err(WireError::Truncated) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_their_golden_bytes() {
        let ack = Ack {
            mark: 3,
            received_at_us: 1 << 40,
            delay_us: 7,
            control: 9,
            limit: 128,
            first: 5,
            bitmap: &[0, 0b101],
        };
        let mark = Mark { mark: 6, ack_bytes: 256 << 10, ack_delay_us: 5000, control: 1 };
        let chunk = ChunkId { block: BlockId(0x0102_0304), index: 0x0506 };
        let table: [(Frame<'_>, &str); 5] = [
            (Frame::Data(chunk, b"ab"), "01 01020304 0506 6162"),
            (Frame::Ack(ack), "02 0000000000000003 0000010000000000 00000007 00000009 00000080 0000000000000005 0005"),
            (Frame::Control { control: 1, offset: 2, piece: b"x" }, "03 00000001 00000002 78"),
            (Frame::Mark(mark), "04 0000000000000006 00040000 00001388 00000001"),
            (Frame::Close(Reason::Rekey), "05 02"),
        ];
        for (frame, golden) in table {
            let mut out = [0; 100];
            let len = frame.encode(&mut out).expect("room");
            let hex: String = out[..len].iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, golden.replace(' ', ""), "{frame:?}");
            assert_eq!(Frame::decode(&out[..len]), Ok(frame));
            for short in 0..len {
                if let Ok(other) = Frame::decode(&out[..short]) {
                    assert!(matches!(other, Frame::Data(..) | Frame::Ack(_)), "{other:?} of {short} bytes");
                }
            }
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        let ack = |first: u64, mark: u64, bitmap: &[u8]| {
            let mut out = vec![0; ACK_HEAD + bitmap.len()];
            let ack = Ack { mark, received_at_us: 0, delay_us: 0, control: 0, limit: 0, first, bitmap };
            Frame::Ack(ack).encode(&mut out).expect("room");
            out
        };
        let table: [(Vec<u8>, WireError); 9] = [
            (vec![], WireError::Truncated),
            (vec![9], WireError::UnknownType(9)),
            (vec![1, 0, 0, 0, 0, 0, 0], WireError::Truncated),
            (vec![3, 0, 0, 0, 0, 0, 0, 0, 0], WireError::Truncated),
            (vec![5, 4], WireError::OutOfRange),
            (vec![5, 0, 0], WireError::Trailing(1)),
            (ack(5, 6, &[1]), WireError::OutOfRange),
            (ack(5, 5, &[1, 0]), WireError::OutOfRange),
            (ack(u64::MAX - 7, 0, &[1]), WireError::OutOfRange),
        ];
        for (bytes, fault) in table {
            assert_eq!(Frame::decode(&bytes), Err(fault), "{bytes:?}");
        }
        assert_eq!(Frame::decode(&ack(0, 0, &[1; MOST_BITMAP + 1])), Err(WireError::OutOfRange));
    }
}
