//! Frames by their type byte, and the walk over an opened payload.

use super::{
    AckFrame, Close, DataFrame, Gone, Hold, PathChallenge, PathInfo, PathResponse, ProtectedFrame, Reader, RepairFrame,
    ReservedFrame, SplitFrame, TermsFrame, WireError,
};

/// The type byte of a frame. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum FrameType {
    /// Nothing, to fill a datagram (a byte of its own each).
    Padding = 0x00,
    /// Nothing, to be acknowledged.
    Ping = 0x01,
    /// What arrived.
    Ack = 0x02,
    /// A token to be echoed.
    PathChallenge = 0x03,
    /// The echo.
    PathResponse = 0x04,
    /// Word about a path.
    PathInfo = 0x05,
    /// What was given up.
    Gone = 0x06,
    /// A piece of an inner packet.
    Split = 0x07,
    /// An inner packet.
    Data = 0x08,
    /// The end.
    Close = 0x09,
    /// How long to wait.
    Hold = 0x0a,
    /// What brings lost packets back.
    Repair = 0x0b,
    /// On what terms a path is offered.
    Terms = 0x0c,
    /// An inner packet that repairs cover.
    Protected = 0x0d,
}

impl FrameType {
    /// The type that a byte tells.
    ///
    /// # Errors
    /// [`WireError::UnknownType`].
    pub const fn of(byte: u8) -> Result<Self, WireError> {
        Ok(match byte {
            0x00 => FrameType::Padding,
            0x01 => FrameType::Ping,
            0x02 => FrameType::Ack,
            0x03 => FrameType::PathChallenge,
            0x04 => FrameType::PathResponse,
            0x05 => FrameType::PathInfo,
            0x06 => FrameType::Gone,
            0x07 => FrameType::Split,
            0x08 => FrameType::Data,
            0x09 => FrameType::Close,
            0x0a => FrameType::Hold,
            0x0b => FrameType::Repair,
            0x0c => FrameType::Terms,
            0x0d => FrameType::Protected,
            other => return Err(WireError::UnknownType(other)),
        })
    }
}

/// A frame of an opened payload. No zero value; it borrows the payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame<'a> {
    /// This many padding bytes in a row, at least one.
    Padding(usize),
    /// To be acknowledged.
    Ping,
    /// What arrived.
    Ack(AckFrame<'a>),
    /// A token to be echoed.
    PathChallenge(PathChallenge),
    /// The echo.
    PathResponse(PathResponse),
    /// Word about a path.
    PathInfo(PathInfo),
    /// What was given up.
    Gone(Gone),
    /// A piece of an inner packet.
    Split(SplitFrame<'a>),
    /// An inner packet.
    Data(DataFrame<'a>),
    /// The end.
    Close(Close),
    /// How long to wait.
    Hold(Hold),
    /// What brings lost packets back.
    Repair(RepairFrame<'a>),
    /// On what terms a path is offered.
    Terms(TermsFrame),
    /// An inner packet that repairs cover.
    Protected(ProtectedFrame<'a>),
    /// Something that a later version says, to be skipped.
    Reserved(ReservedFrame<'a>),
}

impl<'a> Frame<'a> {
    /// Whether a datagram with this frame is to be acknowledged.
    pub const fn is_acked(&self) -> bool {
        match self {
            Frame::Ack(_) | Frame::Close(_) | Frame::Hold(_) => false,
            Frame::Reserved(frame) => frame.is_acked(),
            _ => true,
        }
    }

    /// Reads one frame.
    ///
    /// # Errors
    /// [`WireError`] where the bytes are none; the reader's place is then of no use.
    pub fn decode(from: &mut Reader<'a>) -> Result<Self, WireError> {
        let kind = from.u8()?;
        if ReservedFrame::holds(kind) {
            return ReservedFrame::decode(kind, from).map(Frame::Reserved);
        }
        Ok(match FrameType::of(kind)? {
            FrameType::Padding => Frame::Padding(1 + skip_padding(from)?),
            FrameType::Ping => Frame::Ping,
            FrameType::Ack => Frame::Ack(AckFrame::decode(from)?),
            FrameType::PathChallenge => Frame::PathChallenge(PathChallenge::decode(from)?),
            FrameType::PathResponse => Frame::PathResponse(PathResponse::decode(from)?),
            FrameType::PathInfo => Frame::PathInfo(PathInfo::decode(from)?),
            FrameType::Gone => Frame::Gone(Gone::decode(from)?),
            FrameType::Split => Frame::Split(SplitFrame::decode(from)?),
            FrameType::Data => Frame::Data(DataFrame::decode(from)?),
            FrameType::Close => Frame::Close(Close::decode(from)?),
            FrameType::Hold => Frame::Hold(Hold::decode(from)?),
            FrameType::Repair => Frame::Repair(RepairFrame::decode(from)?),
            FrameType::Terms => Frame::Terms(TermsFrame::decode(from)?),
            FrameType::Protected => Frame::Protected(ProtectedFrame::decode(from)?),
        })
    }
}

/// Skips padding behind the first byte of it, and tells how much there was.
fn skip_padding(from: &mut Reader<'_>) -> Result<usize, WireError> {
    let bytes = from.peek();
    let len = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
    from.bytes(len).map(<[u8]>::len)
}

/// Walks the frames of an opened payload; ends after the first error. Starts at the first frame;
/// it borrows the payload.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    reader: Reader<'a>,
}

impl<'a> Frames<'a> {
    /// The frames of `payload`.
    pub fn new(payload: &'a [u8]) -> Self {
        Frames { reader: Reader::new(payload) }
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let frame = Frame::decode(&mut self.reader);
        if frame.is_err() {
            self.reader.rest();
        }
        Some(frame)
    }
}

impl std::iter::FusedIterator for Frames<'_> {}
