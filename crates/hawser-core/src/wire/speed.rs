//! SPEED: one portal asks the other for filler, or ends that; and FILLER, which is counted where it arrives and thrown
//! away. Of the types that are skipped by who does not know them.
//!
//! ```text
//! +------+---------------+------------+--------+--------+-----------+--------------+
//! | 0x41 | length varint | run varint | word 1 | link 8 | ms varint | bytes varint |
//! +------+---------------+------------+--------+--------+-----------+--------------+
//! | 0x42 | length varint | bytes, of no meaning                                    |
//! +------+---------------+---------------------------------------------------------+
//! ```

use super::{EncodeError, Reader, ReservedFrame, Writer};
use crate::units::LinkTag;

/// The type of FILLER.
pub(crate) const FILLER: u8 = 0x42;
/// Bytes of a FILLER frame before what it holds: its length is written in the long form of RFC 9000 section 16.
pub(crate) const FILLER_HEAD: usize = 5;
/// Bytes of a SPEED frame's contents at most: three varints of eight bytes, word and link.
const MOST: usize = 3 * 8 + 1 + 8;
/// The two bits that say that a varint has four bytes.
const LONG: u32 = 0x8000_0000;

/// What a SPEED frame says. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SpeedWord {
    /// Send filler.
    Begin,
    /// Send no more of it.
    End,
    /// What was asked for is not done: another run is on, or there were too many.
    Refused,
}

/// A SPEED frame. The numbers of one side's runs grow. No zero value; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SpeedFrame {
    /// Which run.
    pub run: u64,
    /// What is said of it.
    pub word: SpeedWord,
    /// The link whose paths are to carry it; zero: all that bulk flows may use.
    pub link: LinkTag,
    /// For how long at most.
    pub milliseconds: u64,
    /// How many bytes of IP packets at most.
    pub bytes: u64,
}

impl SpeedFrame {
    const KIND: u8 = 0x41;

    /// Appends the frame.
    ///
    /// # Errors
    /// [`EncodeError`] where it does not fit.
    pub fn encode(&self, out: &mut Writer<'_>) -> Result<(), EncodeError> {
        let mut bytes = [0; MOST];
        let mut writer = Writer::new(&mut bytes);
        writer.put_varint(self.run)?;
        writer.put_u8(match self.word {
            SpeedWord::Begin => 0,
            SpeedWord::End => 1,
            SpeedWord::Refused => 2,
        })?;
        writer.put_bytes(&self.link.0.to_be_bytes())?;
        writer.put_varint(self.milliseconds)?;
        writer.put_varint(self.bytes)?;
        let len = writer.len();
        ReservedFrame::new(Self::KIND, &bytes[..len]).ok_or(EncodeError::OutOfRange)?.encode(out)
    }

    /// What a frame of a range that may be skipped says, if it is one of these. What stands behind it is a later
    /// version's.
    pub fn of(frame: &ReservedFrame<'_>) -> Option<Self> {
        let mut from = Reader::new(frame.bytes());
        let run = (frame.kind() == Self::KIND).then(|| from.varint().ok()).flatten()?;
        let word = match from.u8().ok()? {
            0 => SpeedWord::Begin,
            1 => SpeedWord::End,
            2 => SpeedWord::Refused,
            _ => return None,
        };
        let link = LinkTag(u64::from_be_bytes(*from.bytes(8).ok()?.first_chunk()?));
        let (milliseconds, bytes) = (from.varint().ok()?, from.varint().ok()?);
        Some(SpeedFrame { run, word, link, milliseconds, bytes })
    }
}

/// Makes all of `out` one FILLER frame. What it holds is zero: it is sealed.
pub(crate) fn fill(out: &mut [u8]) {
    debug_assert!(out.len() >= FILLER_HEAD, "a path carries more than that");
    let len = u32::try_from(out.len() - FILLER_HEAD).unwrap_or(0);
    out.fill(0);
    out[0] = FILLER;
    out[1..FILLER_HEAD].copy_from_slice(&(LONG | len).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::super::{Frame, Frames};
    use super::*;

    fn said(bytes: &[u8]) -> Option<SpeedFrame> {
        match Frames::new(bytes).next() {
            Some(Ok(Frame::Reserved(frame))) => SpeedFrame::of(&frame),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_run_has_its_golden_bytes_and_what_is_none_is_skipped() {
        let link = LinkTag(0x0102_0304_0506_0708);
        let frame = SpeedFrame { run: 3, word: SpeedWord::Begin, link, milliseconds: 5_000, bytes: 63 };
        let mut bytes = [0; 15];
        frame.encode(&mut Writer::new(&mut bytes)).expect("room");
        assert_eq!(bytes, [0x41, 13, 3, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x53, 0x88, 63]);
        assert_eq!(said(&bytes), Some(frame));
        for word in [SpeedWord::End, SpeedWord::Refused] {
            let mut bytes = [0; 15];
            SpeedFrame { word, ..frame }.encode(&mut Writer::new(&mut bytes)).expect("room");
            assert_eq!(said(&bytes).map(|said| said.word), Some(word));
        }
        assert_eq!(said(&[0x41, 13, 3, 9, 1, 2, 3, 4, 5, 6, 7, 8, 0x53, 0x88, 63]), None, "an unknown word");
        assert_eq!(said(&[0x41, 2, 3, 0]), None, "too short");
    }

    #[test]
    fn filler_is_one_frame_that_is_skipped_and_acknowledged() {
        for size in [FILLER_HEAD, 70, 1_427] {
            let mut bytes = vec![0xff; size];
            fill(&mut bytes);
            let frames: Vec<_> = Frames::new(&bytes).collect();
            let [Ok(frame @ Frame::Reserved(filler))] = &frames[..] else { panic!("{frames:?}") };
            assert!(frame.is_acked());
            assert_eq!((filler.kind(), filler.bytes().len()), (FILLER, size - FILLER_HEAD));
        }
    }
}
