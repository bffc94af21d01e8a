//! Step 3: datagrams that the capturing host held in one (UDP segmentation and receive offload).
//!
//! A capture shows them as one datagram of up to 64 KiB. All but the last are of one size.
//!
//! 1. Messages of handshakes have a fixed length. 2. Data is of one path, and its numbers go up: where the header comes
//!    again with a number a little higher, the second one begins.

use hawser_core::wire::{DATA_HEADER_LEN, DatagramKind, TAG_LEN};

use crate::opened::handshake_len;

/// Bytes of the label, with the type before it.
const LABEL_LEN: usize = 5;
/// Numbers that may be missing between two datagrams that the kernel put together: far more than are in one.
const GAP_MAX: u32 = 4096;

/// The datagrams in one that was captured.
pub fn cut(bytes: &[u8]) -> std::slice::Chunks<'_, u8> {
    bytes.chunks(size(bytes).unwrap_or(bytes.len()).max(1))
}

/// The size of the first datagram, where there are several.
fn size(bytes: &[u8]) -> Option<usize> {
    let first = *bytes.first()?;
    if let Some(len) = DatagramKind::of(first).ok().and_then(handshake_len) {
        let all = bytes.len().is_multiple_of(len) && bytes.iter().step_by(len).all(|byte| *byte == first);
        return all.then_some(len);
    }
    let (label, first) = header(bytes)?;
    let begins = |at: &usize| {
        let Some((again, number)) = header(&bytes[*at..]) else { return false };
        again == label && (1..=GAP_MAX).contains(&number.wrapping_sub(first))
    };
    (DATA_HEADER_LEN + TAG_LEN..bytes.len()).find(begins)
}

fn header(bytes: &[u8]) -> Option<(&[u8], u32)> {
    let (label, rest) = bytes.split_at_checked(LABEL_LEN)?;
    let number = rest.first_chunk::<4>().map(|number| u32::from_be_bytes(*number))?;
    (label[0] == DatagramKind::Data.first_byte()).then_some((label, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(label: u8, number: u32, len: usize) -> Vec<u8> {
        let mut bytes = vec![0x40, label, 0, 0, 0];
        bytes.extend(number.to_be_bytes());
        bytes.resize(len, 0x40);
        bytes
    }

    #[test]
    fn datagrams_of_one_size_are_told_apart_and_the_last_may_be_shorter() {
        let all = [datagram(7, u32::MAX, 100), datagram(7, 0, 100), datagram(7, 2, 40)];
        let joined = all.concat();
        assert_eq!(cut(&joined).collect::<Vec<_>>(), all);
    }

    #[test]
    fn messages_of_handshakes_have_their_length() {
        let reply = [&[0x30][..], &[7; 60]].concat();
        assert_eq!(cut(&reply.repeat(4)).collect::<Vec<_>>(), [&reply[..]; 4]);
        assert_eq!(cut(&reply).count(), 1);
        assert_eq!(cut(&[&reply[..], &[0x40; 61]].concat()).count(), 1);
    }

    #[test]
    fn one_datagram_stays_one() {
        let other = [datagram(7, 5, 100), datagram(8, 6, 100)].concat();
        let before = [datagram(7, 5, 100), datagram(7, 5, 100)].concat();
        for whole in [datagram(7, 5, 1400), datagram(7, 5, 20), vec![0x10; 157], other, before] {
            assert_eq!(cut(&whole).count(), 1);
        }
        assert_eq!(cut(&[]).count(), 0);
    }
}
