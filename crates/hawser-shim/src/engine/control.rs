//! Control datagrams: probes and their answers, of the same length; and contexts of UDP that are acknowledged alone.
//!
//! ```text
//! 1 1 0 0 0 0 0 E | nonce (8)        E: an answer
//! 1 1 0 0 0 0 1 0 | context id (6) | zero (2)
//! ```

use super::health::Nonce;
use crate::compress::{ContextId, ID_BYTES};

/// The upper two bits of a control datagram, all that may be set, and the bit of an answer.
const KIND: u8 = 0b11 << 6;
const KIND_MASK: u8 = 0b11 << 6;
const ANSWER: u8 = 1;
/// That of an acknowledgment.
const KNOWS: u8 = 2;
/// Bytes of one.
const LEN: usize = 9;

/// A control datagram. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Control([u8; LEN]);

/// What one says. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Said {
    Probe(Nonce),
    Answer(Nonce),
    /// This context is known here.
    Knows(ContextId),
}

impl Control {
    /// As it is sent.
    pub const fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn of(said: Said) -> Self {
        let mut bytes = [0; LEN];
        let (first, rest) = (bytes.as_mut_slice()).split_at_mut(1);
        first[0] = match said {
            Said::Probe(nonce) => {
                rest.copy_from_slice(&nonce.0.to_be_bytes());
                KIND
            }
            Said::Answer(nonce) => {
                rest.copy_from_slice(&nonce.0.to_be_bytes());
                KIND | ANSWER
            }
            Said::Knows(id) => {
                rest[..ID_BYTES].copy_from_slice(&id.0);
                KIND | KNOWS
            }
        };
        Self(bytes)
    }
}

/// Whether a datagram is a control datagram, or none that makes sense.
pub(super) fn is_control(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & KIND_MASK == KIND)
}

/// What a control datagram says; none where it is malformed.
pub(super) fn parse(datagram: &[u8]) -> Option<Said> {
    let (first, rest) = datagram.split_first()?;
    let nonce = Nonce(u64::from_be_bytes(rest.try_into().ok()?));
    match *first {
        first if first == KIND => Some(Said::Probe(nonce)),
        first if first == KIND | ANSWER => Some(Said::Answer(nonce)),
        first if first == KIND | KNOWS && rest[ID_BYTES..] == [0; 2] => {
            Some(Said::Knows(ContextId(*rest.first_chunk()?)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_and_answer_are_of_one_length_and_read_as_written() {
        let id = ContextId([1, 2, 3, 4, 5, 6]);
        for said in [Said::Probe(Nonce(0x0102_0304_0506_0708)), Said::Answer(Nonce(u64::MAX)), Said::Knows(id)] {
            let control = Control::of(said);
            assert!(is_control(control.bytes()));
            assert_eq!((parse(control.bytes()), control.bytes().len()), (Some(said), 9));
        }
        assert_eq!(Control::of(Said::Answer(Nonce(1))).bytes(), [0xc1, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(Control::of(Said::Knows(id)).bytes(), [0xc2, 1, 2, 3, 4, 5, 6, 0, 0]);
    }

    #[test]
    fn nothing_else_is_one() {
        let probe = Control::of(Said::Probe(Nonce(7)));
        assert_eq!(parse(&probe.bytes()[..8]), None);
        assert_eq!(parse(&[probe.bytes(), &[0]].concat()), None);
        for first in (0..=u8::MAX).filter(|first| ![0xc0, 0xc1].contains(first)) {
            let mut bytes = probe.0;
            bytes[0] = first;
            assert_eq!(parse(&bytes), None, "{first:#x}");
            assert_eq!(is_control(&bytes), first >= 0xc0);
        }
    }
}
