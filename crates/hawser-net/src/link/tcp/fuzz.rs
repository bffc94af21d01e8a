//! What the fuzz target `tcp_records`, and a test on machines without cargo-fuzz, run on any bytes.

use super::records::{Front, LENGTH_BYTES, front, length_of};
use std::ops::RangeInclusive;

/// Bytes of the datagrams that records may have here.
const SIZES: RangeInclusive<usize> = 1..=1_500;

/// Any bytes as a stream: the records that are read of it are what its beginning is written as, and what is left is
/// less than a record, or none.
pub fn records(bytes: &[u8]) {
    let (mut rest, mut written) = (bytes, Vec::new());
    loop {
        match front(rest, &SIZES) {
            Front::Datagram(datagram) => {
                assert!(SIZES.contains(&datagram.len()));
                written.extend(length_of(datagram));
                written.extend(datagram);
                rest = &rest[LENGTH_BYTES + datagram.len()..];
            }
            Front::Part => {
                assert!(rest.len() < LENGTH_BYTES + SIZES.end(), "a record waits for what is there");
                break;
            }
            Front::Malformed => {
                assert!(rest.len() >= LENGTH_BYTES);
                break;
            }
        }
    }
    assert_eq!([&written, rest].concat(), bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3_000))]

        #[test]
        fn records_of_changed_streams_are_read_as_they_were_written(
            lengths in prop::collection::vec(0usize..1_600, 0..8),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            cut in any::<prop::sample::Index>(),
        ) {
            let datagrams = lengths.iter().map(|len| vec![*len as u8; *len]);
            let mut bytes: Vec<u8> =
                datagrams.flat_map(|datagram| [&length_of(&datagram)[..], &datagram].concat()).collect();
            bytes.push(0);
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            records(&bytes);
            bytes.truncate(cut.index(bytes.len()));
            records(&bytes);
        }
    }
}
