//! Datagrams on a stream: each is a record, its length first.
//!
//! ```text
//!  | length: u16, network order | datagram | length | datagram | …
//! ```

use std::ops::RangeInclusive;

/// Bytes of a record's length.
pub(super) const LENGTH_BYTES: usize = 2;

/// What lies at the front of received bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Front<'a> {
    /// A whole datagram.
    Datagram(&'a [u8]),
    /// A part of a record: more is to come.
    Part,
    /// A length that no record has: what follows is no record either.
    Malformed,
}

/// Looks at the front of `bytes`, where records have datagrams of `sizes` bytes.
pub(super) fn front<'a>(bytes: &'a [u8], sizes: &RangeInclusive<usize>) -> Front<'a> {
    let Some((length, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else { return Front::Part };
    let length = usize::from(u16::from_be_bytes(*length));
    if !sizes.contains(&length) {
        return Front::Malformed;
    }
    rest.get(..length).map_or(Front::Part, Front::Datagram)
}

/// The length before a datagram of this many bytes; none is longer than a record may be.
pub(super) fn length_of(datagram: &[u8]) -> [u8; LENGTH_BYTES] {
    u16::try_from(datagram.len()).unwrap_or(u16::MAX).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: RangeInclusive<usize> = 3..=5;

    #[test]
    fn a_record_is_whole_or_waits_for_more_or_ends_the_stream() {
        let table: [(&[u8], Front<'_>); 9] = [
            (&[], Front::Part),
            (&[0], Front::Part),
            (&[0, 3], Front::Part),
            (&[0, 3, 7, 8], Front::Part),
            (&[0, 3, 7, 8, 9], Front::Datagram(&[7, 8, 9])),
            (&[0, 5, 1, 2, 3, 4, 5, 0, 3], Front::Datagram(&[1, 2, 3, 4, 5])),
            (&[0, 2], Front::Malformed),
            (&[0, 6, 1, 1, 1, 1, 1, 1], Front::Malformed),
            (&[1, 3], Front::Malformed),
        ];
        for (bytes, expect) in table {
            assert_eq!(front(bytes, &SIZES), expect, "{bytes:?}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let datagram = [7; 300];
        let mut bytes = length_of(&datagram).to_vec();
        bytes.extend(datagram);
        assert_eq!(front(&bytes, &(1..=300)), Front::Datagram(&datagram));
    }
}
