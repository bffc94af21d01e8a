//! A symbol: an inner packet with what its DATA frame says of it, so that a repaired packet takes the
//! place that the lost one would have had.
//!
//! ```text
//! +--------------------+--------------+----------+------------------ - -+- - - -
//! | flags 4, bucket 12 | sequence   3 | length 2 | inner packet         | zeros
//! +--------------------+--------------+----------+------------------ - -+- - - -
//! ```

use crate::wire::{DataFlags, FlowBucket, FlowSequence};

/// Bytes of a symbol before its packet.
pub(crate) const SYMBOL_HEAD: usize = 7;
/// The longest packet that is protected, bytes: what an Ethernet link carries.
pub(crate) const MAX_PACKET: usize = 1500;
/// The longest symbol, bytes.
pub(crate) const MAX_SYMBOL: usize = SYMBOL_HEAD + MAX_PACKET;

/// What an inner packet's DATA frame says of it. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct SymbolHead {
    /// The flow bucket.
    pub bucket: FlowBucket,
    /// The number within it.
    pub sequence: FlowSequence,
    /// What else the receiver must know.
    pub flags: DataFlags,
}

/// Writes a symbol over `out`; the packet comes in two parts.
pub(super) fn write(out: &mut Vec<u8>, symbol: &SymbolHead, head: &[u8], body: &[u8]) {
    let length = u16::try_from(head.len() + body.len()).unwrap_or(u16::MAX);
    let [_, sequence @ ..] = symbol.sequence.get().to_be_bytes();
    out.clear();
    out.extend_from_slice(&symbol.flags.join(symbol.bucket).to_be_bytes());
    out.extend_from_slice(&sequence);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(head);
    out.extend_from_slice(body);
}

/// Reads a symbol; none where the bytes are not one.
pub(super) fn read(bytes: &[u8]) -> Option<(SymbolHead, &[u8])> {
    let (&[word_0, word_1, sequence_0, sequence_1, sequence_2, length_0, length_1], rest) =
        bytes.split_first_chunk::<SYMBOL_HEAD>()?;
    let (flags, bucket) = DataFlags::split(u16::from_be_bytes([word_0, word_1])).ok()?;
    let sequence = FlowSequence(u32::from_be_bytes([0, sequence_0, sequence_1, sequence_2]));
    let (packet, zeros) = rest.split_at_checked(usize::from(u16::from_be_bytes([length_0, length_1])))?;
    let is_one = !packet.is_empty() && zeros.iter().all(|byte| *byte == 0);
    is_one.then_some((SymbolHead { bucket, sequence, flags }, packet))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_is_read_as_it_was_written_and_nothing_else_is_one() {
        let head = SymbolHead {
            bucket: FlowBucket(0xabc),
            sequence: FlowSequence(0x01_02_03),
            flags: DataFlags { partial: true, unordered: true, ..DataFlags::default() },
        };
        let mut symbol = vec![9; 3];
        write(&mut symbol, &head, b"in", b"ner");
        assert_eq!(symbol, b"\x5a\xbc\x01\x02\x03\x00\x05inner");
        symbol.extend([0; 4]);
        assert_eq!(read(&symbol), Some((head, b"inner".as_slice())));
        for (at, byte, why) in [(15, 1, "padding"), (6, 99, "length"), (6, 0, "empty"), (0, 0x80, "reserved")] {
            let mut wrong = symbol.clone();
            wrong[at] = byte;
            assert_eq!(read(&wrong), None, "{why}");
        }
        assert_eq!(read(&symbol[..6]), None, "truncated");
    }
}
