//! CLAIM and CLAIM_ACK: a peer tells the members of its hub whose it is, and they answer. What they hold is the hub's
//! own (`hawser-hub`, `claim::message`): here it is some bytes. CARRIED goes with a CLAIM by each path: what its link
//! brought from the member that carries the peer's packets, in bytes a second, and where the path to this one starts
//! ([`Start`]). Of the types that are skipped by who does not know them.
//!
//! ```text
//! +------+---------------+-----------+
//! | 0x43 | length varint | CLAIM     |   acknowledged: it asks whether the member is there
//! | 0x60 | length varint | CLAIM_ACK |   not: it answers
//! | 0x61 | length varint | CARRIED   |   not: start 1, rate 8
//! +------+---------------+-----------+
//! ```

use super::{EncodeError, ReservedFrame, Writer};
use crate::units::{Rate, Start};

/// Bytes of CARRIED.
const CARRIED_LEN: usize = 1 + size_of::<u64>();

/// Which of them it is. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum HubFrameType {
    /// From a peer.
    Claim = 0x43,
    /// From a member.
    ClaimAck = 0x60,
    /// From a peer, beside a CLAIM.
    Carried = 0x61,
}

/// A CLAIM, CLAIM_ACK or CARRIED frame: 1 to [`HubFrame::MOST`] bytes of contents. No zero value; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct HubFrame {
    kind: HubFrameType,
    len: u8,
    bytes: [u8; HubFrame::MOST],
}

impl HubFrame {
    /// Bytes of the contents at most: what is said today, and half as much again.
    pub const MOST: usize = 40;

    /// One that holds these bytes; none where they are too many, or none.
    pub fn new(kind: HubFrameType, contents: &[u8]) -> Option<Self> {
        let len = u8::try_from(contents.len()).ok().filter(|len| (1..=Self::MOST).contains(&usize::from(*len)))?;
        let mut bytes = [0; Self::MOST];
        bytes[..contents.len()].copy_from_slice(contents);
        Some(HubFrame { kind, len, bytes })
    }

    /// CARRIED.
    pub fn carried(start: Start, rate: Rate) -> Self {
        let mut bytes = [0; Self::MOST];
        bytes[0] = start as u8;
        bytes[1..CARRIED_LEN].copy_from_slice(&rate.0.to_be_bytes());
        HubFrame { kind: HubFrameType::Carried, len: CARRIED_LEN as u8, bytes }
    }

    /// What CARRIED says; none for another frame, or one that says something else.
    pub fn start(&self) -> Option<(Start, Rate)> {
        let (start, rate) = self.contents().split_first().filter(|_| self.kind == HubFrameType::Carried)?;
        let start = [Start::Careful, Start::Beside, Start::Known].into_iter().find(|known| *known as u8 == *start)?;
        Some((start, Rate(u64::from_be_bytes(rate.try_into().ok()?))))
    }

    /// Which of them it is.
    pub fn kind(&self) -> HubFrameType {
        self.kind
    }

    /// What it holds.
    pub fn contents(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Whether a datagram with it is to be acknowledged.
    pub fn is_acked(&self) -> bool {
        self.kind == HubFrameType::Claim
    }

    /// Appends the frame.
    ///
    /// # Errors
    /// [`EncodeError`] where it does not fit.
    pub fn encode(&self, out: &mut Writer<'_>) -> Result<(), EncodeError> {
        ReservedFrame::new(self.kind as u8, self.contents()).ok_or(EncodeError::OutOfRange)?.encode(out)
    }

    /// What a frame of a range that may be skipped says, if it is one of these.
    pub fn of(frame: &ReservedFrame<'_>) -> Option<Self> {
        let kinds = [HubFrameType::Claim, HubFrameType::ClaimAck, HubFrameType::Carried];
        let kind = kinds.into_iter().find(|kind| *kind as u8 == frame.kind())?;
        HubFrame::new(kind, frame.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Frame, Frames};
    use super::*;

    fn read(bytes: &[u8]) -> (Option<HubFrame>, bool) {
        match Frames::new(bytes).next() {
            Some(Ok(frame @ Frame::Reserved(reserved))) => (HubFrame::of(&reserved), frame.is_acked()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn all_have_their_golden_bytes_and_what_is_none_is_skipped() {
        let all = [
            (HubFrameType::Claim, 0x43, true),
            (HubFrameType::ClaimAck, 0x60, false),
            (HubFrameType::Carried, 0x61, false),
        ];
        for (kind, first, acked) in all {
            let frame = HubFrame::new(kind, &[7, 8, 9]).expect("three bytes");
            let mut bytes = [0; 5];
            frame.encode(&mut Writer::new(&mut bytes)).expect("room");
            assert_eq!(bytes, [first, 3, 7, 8, 9]);
            assert_eq!(read(&bytes), (Some(frame), acked));
            assert_eq!((frame.is_acked(), frame.contents()), (acked, &[7, 8, 9][..]));
            assert_eq!(frame.encode(&mut Writer::new(&mut [0; 4])), Err(EncodeError::NoRoom));
        }
        let longest = [1; HubFrame::MOST + 1];
        assert!(HubFrame::new(HubFrameType::Claim, &longest[1..]).is_some());
        for none in [&[][..], &longest] {
            assert_eq!(HubFrame::new(HubFrameType::Claim, none), None);
        }
        let too_long = [&[0x43, 41][..], &longest].concat();
        for (other, acked) in [(&[0x43, 0][..], true), (&too_long, true), (&[0x44, 1, 1], true), (&[0x62, 1, 1], false)]
        {
            assert_eq!(read(other), (None, acked), "{other:x?}");
        }
        let rate = Rate(0x0102_0304_0506_0708);
        for (start, first) in [(Start::Careful, 0), (Start::Beside, 1), (Start::Known, 2)] {
            let carried = HubFrame::carried(start, rate);
            assert_eq!(
                (carried.contents(), carried.start()),
                (&[first, 1, 2, 3, 4, 5, 6, 7, 8][..], Some((start, rate)))
            );
        }
        for (kind, contents) in
            [(HubFrameType::Carried, &[1; 8][..]), (HubFrameType::Carried, &[3; 9]), (HubFrameType::Claim, &[1; 9])]
        {
            assert_eq!(HubFrame::new(kind, contents).and_then(|frame| frame.start()), None, "{kind:?}");
        }
    }
}
