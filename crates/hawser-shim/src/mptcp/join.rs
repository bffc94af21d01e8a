//! MP_JOIN (RFC 8684 section 3.2): a subflow joins a connection, by its token, and both ends prove that they have the
//! keys.

use super::option::AddressId;
use super::segment::Flags;
use super::token::Token;

/// The flag of a backup, in the byte of the subtype.
const BACKUP: u8 = 0x1;
/// Bytes of a random number, of the truncated HMAC of the answer, and of that of the third segment.
const NONCE: usize = 4;
const SHORT_HMAC: usize = 8;
const LONG_HMAC: usize = 20;

/// A subflow joins.
/// There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Join {
    /// To be used only where no other works; said in the first two segments.
    pub backup: bool,
    /// Which segment it stands in.
    pub form: JoinForm,
}

/// Which segment of a beginning it is, and what it bears.
/// There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JoinForm {
    /// The SYN.
    Syn {
        /// What the sender calls its address.
        address: AddressId,
        /// The connection, as the receiver knows it.
        token: Token,
        /// The sender's random number.
        nonce: u32,
    },
    /// The SYN/ACK.
    SynAck {
        /// What the sender calls its address.
        address: AddressId,
        /// Proof of the keys.
        hmac: [u8; SHORT_HMAC],
        /// The sender's random number.
        nonce: u32,
    },
    /// The third segment.
    Ack {
        /// Proof of the keys.
        hmac: [u8; LONG_HMAC],
    },
}

impl Join {
    /// What follows the subtype, of which `low` is the other half of the byte; which segment it is, its flags say.
    pub(super) fn parse(low: u8, rest: &[u8], segment: Flags) -> Option<Self> {
        let (&second, rest) = rest.split_first()?;
        let address = AddressId(second);
        let form = match (segment.has(Flags::SYN), segment.has(Flags::ACK)) {
            (true, false) => {
                let (token, nonce) = rest.split_first_chunk()?;
                JoinForm::Syn { address, token: Token(u32::from_be_bytes(*token)), nonce: nonce_of(nonce)? }
            }
            (true, true) => {
                let (hmac, nonce) = rest.split_first_chunk()?;
                JoinForm::SynAck { address, hmac: *hmac, nonce: nonce_of(nonce)? }
            }
            (false, _) => JoinForm::Ack { hmac: rest.try_into().ok()? },
        };
        let backup = segment.has(Flags::SYN) && low & BACKUP != 0;
        Some(Self { backup, form })
    }
}

fn nonce_of(bytes: &[u8]) -> Option<u32> {
    <[u8; NONCE]>::try_from(bytes).ok().map(u32::from_be_bytes)
}
