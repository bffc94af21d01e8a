//! LINK_NAME: what the sender, who opened a path, calls its link. Of the types that are skipped by who does not know
//! them.
//!
//! ```text
//! +------+---------------+-------------+--------+
//! | 0x40 | length varint | path varint | name 8 |
//! +------+---------------+-------------+--------+
//! ```

use super::{EncodeError, Reader, ReservedFrame, Writer, varint};
use crate::units::{LinkTag, PathId};

/// Bytes of a path's varint at most, and of a name.
const PATH_MOST: usize = 8;
const NAME: usize = 8;

/// A LINK_NAME frame. A path's link keeps its name. No zero value; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LinkNameFrame {
    /// Which path.
    pub path: PathId,
    /// What its link is called.
    pub name: LinkTag,
}

impl LinkNameFrame {
    const KIND: u8 = 0x40;

    /// Appends the frame.
    ///
    /// # Errors
    /// [`EncodeError`] where it does not fit.
    pub fn encode(&self, out: &mut Writer<'_>) -> Result<(), EncodeError> {
        let mut bytes = [0; PATH_MOST + NAME];
        let path = varint::len(u64::from(self.path.0))?;
        Writer::new(&mut bytes[..path]).put_varint(u64::from(self.path.0))?;
        bytes[path..path + NAME].copy_from_slice(&self.name.0.to_be_bytes());
        let frame = ReservedFrame::new(Self::KIND, &bytes[..path + NAME]).ok_or(EncodeError::OutOfRange)?;
        frame.encode(out)
    }

    /// What a frame of a range that may be skipped says, if it is one of these. What stands behind the name is a later
    /// version's.
    pub fn of(frame: &ReservedFrame<'_>) -> Option<Self> {
        let mut from = Reader::new(frame.bytes());
        let path = (frame.kind() == Self::KIND).then(|| from.varint().ok()).flatten()?;
        let name = u64::from_be_bytes(*from.bytes(NAME).ok()?.first_chunk()?);
        Some(LinkNameFrame { path: PathId(u32::try_from(path).ok()?), name: LinkTag(name) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Frame, Frames};
    use super::*;

    #[test]
    fn a_name_has_its_golden_bytes_and_what_is_none_is_skipped() {
        let frame = LinkNameFrame { path: PathId(257), name: LinkTag(0x0102_0304_0506_0708) };
        let mut bytes = [0; 12];
        frame.encode(&mut Writer::new(&mut bytes)).expect("room");
        assert_eq!(bytes, [0x40, 10, 0x41, 1, 1, 2, 3, 4, 5, 6, 7, 8]);
        let said = |bytes: &[u8]| match Frames::new(bytes).next() {
            Some(Ok(Frame::Reserved(frame))) => LinkNameFrame::of(&frame),
            other => panic!("{other:?}"),
        };
        assert_eq!(said(&bytes), Some(frame));
        assert_eq!(
            said(&[0x40, 10, 1, 1, 2, 3, 4, 5, 6, 7, 8, 99]).map(|said| said.path),
            Some(PathId(1)),
            "a later one"
        );
        for other in [&[0x40, 0][..], &[0x40, 8, 1, 1, 2, 3, 4, 5, 6, 7], &[0x41, 9, 1, 1, 2, 3, 4, 5, 6, 7, 8]] {
            assert_eq!(said(other), None, "{other:x?}");
        }
    }

    #[test]
    fn names_are_told_apart() {
        assert_eq!(LinkTag::of("dsl"), LinkTag::of("dsl"));
        assert_ne!(LinkTag::of("dsl"), LinkTag::of("lte"));
    }
}
