//! MP_CAPABLE (RFC 8684 section 3.1): a connection begins; the three segments of its beginning bear what is known by
//! then.

use super::option::{OptionError, key_of};
use super::token::{KEY_BYTES, Key};

/// The one version that is spoken (RFC 8684; version 0 is RFC 6824's).
const VERSION: u8 = 1;
/// The subtype of MP_CAPABLE (RFC 8684 section 8).
const SUBTYPE: u8 = 0;
/// Bytes of a data-level length, and of a checksum.
const HALF: usize = 2;

/// A connection begins.
/// There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capable {
    /// What the sender asks for.
    pub flags: CapableFlags,
    /// Which of the segments it stands in, and the keys there.
    pub form: CapableForm,
}

/// The flags of MP_CAPABLE. None by default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CapableFlags(pub u8);

impl CapableFlags {
    /// `A`: data has checksums.
    pub const CHECKSUM: CapableFlags = CapableFlags(0x80);
    /// `C`: no subflows to the address and port of this one.
    pub const NO_JOIN: CapableFlags = CapableFlags(0x20);
    /// `H`: HMAC-SHA256, the one algorithm.
    pub const HMAC_SHA256: CapableFlags = CapableFlags(0x01);

    /// True where all of `flags` are set.
    pub const fn has(self, flags: CapableFlags) -> bool {
        self.0 & flags.0 == flags.0
    }
}

/// Which segment of a beginning it is, by what it bears.
/// There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CapableForm {
    /// The SYN: no key yet.
    Syn,
    /// The SYN/ACK: the key of the end that answers.
    SynAck {
        /// The answering end's.
        responder: Key,
    },
    /// The third segment, or the first data after it: both keys.
    Ack {
        /// The end's that asked.
        initiator: Key,
        /// The answering end's.
        responder: Key,
        /// Bytes of data that come with it, where they do.
        data: Option<u16>,
        /// Their checksum, where flags ask for it.
        checksum: Option<u16>,
    },
}

impl Capable {
    /// What follows the subtype, of which `version` is the other half of the byte.
    pub(super) fn parse(version: u8, rest: &[u8]) -> Result<Self, OptionError> {
        if version != VERSION {
            return Err(OptionError::Version(version));
        }
        let wrong = OptionError::Length { subtype: SUBTYPE, len: rest.len() + 3 };
        let (&flags, rest) = rest.split_first().ok_or(wrong)?;
        let form = form(rest).ok_or(wrong)?;
        Ok(Self { flags: CapableFlags(flags), form })
    }
}

fn form(rest: &[u8]) -> Option<CapableForm> {
    if rest.is_empty() {
        return Some(CapableForm::Syn);
    }
    let (first, rest) = rest.split_at_checked(KEY_BYTES)?;
    let first = key_of(first)?;
    if rest.is_empty() {
        return Some(CapableForm::SynAck { responder: first });
    }
    let (second, rest) = rest.split_at_checked(KEY_BYTES)?;
    let (initiator, responder) = (first, key_of(second)?);
    let half = |at: usize| rest.get(at..at + HALF).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
    match rest.len() {
        0 | HALF => Some(CapableForm::Ack { initiator, responder, data: half(0), checksum: None }),
        len if len == 2 * HALF => Some(CapableForm::Ack { initiator, responder, data: half(0), checksum: half(HALF) }),
        _ => None,
    }
}
