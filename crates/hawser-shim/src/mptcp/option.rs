//! MPTCP's option: a subtype each, and what it says (RFC 8684 section 3; the registry of subtypes in section 8).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::capable::Capable;
use super::dss::{DataSequence, Dss};
use super::join::Join;
use super::segment::Flags;
use super::token::{KEY_BYTES, Key};

/// Subtypes of the option (RFC 8684 section 8).
const MP_CAPABLE: u8 = 0x0;
const MP_JOIN: u8 = 0x1;
const DSS: u8 = 0x2;
const ADD_ADDR: u8 = 0x3;
const REMOVE_ADDR: u8 = 0x4;
const MP_PRIO: u8 = 0x5;
const MP_FAIL: u8 = 0x6;
const MP_FASTCLOSE: u8 = 0x7;
const MP_TCPRST: u8 = 0x8;
/// ADD_ADDR's flag of an echo (RFC 8684 section 3.4.1), and MP_PRIO's of a backup (section 3.3.8).
const ECHO: u8 = 0x1;
const BACKUP: u8 = 0x1;
/// Bytes of addresses, of a port, and of ADD_ADDR's truncated HMAC (RFC 8684 section 3.4.1).
const V4: usize = 4;
const V6: usize = 16;
const PORT: usize = 2;
const ADD_ADDR_HMAC: usize = 8;

/// Why an option of MPTCP says nothing. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OptionError {
    /// Shorter than its own header.
    #[error("read an mptcp option: it is cut short")]
    Truncated,
    /// No form of the subtype has this length with these flags.
    #[error("read an mptcp option: subtype {subtype:#x} has no form of {len} bytes")]
    Length {
        /// The subtype.
        subtype: u8,
        /// Bytes, with kind and length.
        len: usize,
    },
    /// A version of MPTCP that nobody here speaks.
    #[error("read an mptcp option: version {0}")]
    Version(u8),
}

/// Names an address of one end of a connection; zero is the first subflow's (RFC 8684 section 3.2).
/// Zero by default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct AddressId(pub u8);

/// What MPTCP says in one option. Borrows from its packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MptcpOption<'p> {
    /// A connection begins (section 3.1).
    Capable(Capable),
    /// A subflow joins a connection (section 3.2).
    Join(Join),
    /// Where data belongs in the connection, what arrived of it, and its end (section 3.3).
    Dss(Dss),
    /// Another address of the sender (section 3.4.1).
    AddAddr(AddAddr),
    /// Addresses that the sender no longer has; one at least (section 3.4.2).
    RemoveAddr(&'p [u8]),
    /// The subflow is from now on a backup, or no more (section 3.3.8).
    Priority {
        /// It is one.
        backup: bool,
    },
    /// A checksum failed: the connection goes on without MPTCP, or this subflow ends (section 3.7).
    Fail {
        /// From which byte of the connection on.
        from: DataSequence,
    },
    /// The whole connection ends at once (section 3.5).
    FastClose {
        /// The key of the end that is told.
        receiver: Key,
    },
    /// Why a subflow is reset (section 3.6).
    Reset {
        /// How it is meant.
        flags: ResetFlags,
        /// The reason.
        reason: ResetReason,
    },
    /// Another subtype.
    Other(u8),
}

/// Another address of the sender; it counts once the echo has come back.
/// There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddAddr {
    /// What the sender calls it.
    pub id: AddressId,
    /// The address.
    pub address: IpAddr,
    /// Another port than the first subflow's.
    pub port: Option<u16>,
    /// Proof that the sender has the keys; an echo bears none.
    pub hmac: Option<[u8; ADD_ADDR_HMAC]>,
}

impl AddAddr {
    /// It only says that an address was heard of.
    pub fn is_echo(&self) -> bool {
        self.hmac.is_none()
    }
}

/// The flags of a reset: whether the reason will pass (RFC 8684 section 3.6; `U`, `V` and `W` mean nothing yet).
/// None by default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ResetFlags(pub u8);

impl ResetFlags {
    /// `T`: the sender may be asked again.
    pub const TRANSIENT: ResetFlags = ResetFlags(0x1);

    /// True where the reason will pass.
    pub fn is_transient(self) -> bool {
        self.0 & Self::TRANSIENT.0 != 0
    }
}

/// Why a subflow was reset, by its number in RFC 8684 section 3.6.
/// Zero is "unspecified". Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ResetReason(pub u8);

impl ResetReason {
    /// Nothing is said.
    pub const UNSPECIFIED: ResetReason = ResetReason(0);
    /// Something of MPTCP's.
    pub const MPTCP_SPECIFIC: ResetReason = ResetReason(1);
    /// Too little memory or the like.
    pub const LACK_OF_RESOURCES: ResetReason = ResetReason(2);
    /// Against the rules of whoever administers it.
    pub const PROHIBITED: ResetReason = ResetReason(3);
    /// Too much data is on its way.
    pub const TOO_MUCH_OUTSTANDING: ResetReason = ResetReason(4);
    /// The path is too bad, or gone.
    pub const UNACCEPTABLE_PERFORMANCE: ResetReason = ResetReason(5);
    /// Something on the way changes what it should not.
    pub const MIDDLEBOX: ResetReason = ResetReason(6);
}

impl fmt::Display for ResetReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::UNSPECIFIED => "unspecified",
            Self::MPTCP_SPECIFIC => "mptcp-specific",
            Self::LACK_OF_RESOURCES => "lack of resources",
            Self::PROHIBITED => "administratively prohibited",
            Self::TOO_MUCH_OUTSTANDING => "too much outstanding data",
            Self::UNACCEPTABLE_PERFORMANCE => "unacceptable performance",
            Self::MIDDLEBOX => "middlebox interference",
            Self(other) => return write!(f, "reason {other}"),
        })
    }
}

impl<'p> MptcpOption<'p> {
    /// What the body of an option, its subtype first, says in a segment with these flags.
    ///
    /// # Errors
    /// [`OptionError`] where it has none of the forms of its subtype.
    pub fn parse(body: &'p [u8], segment: Flags) -> Result<Self, OptionError> {
        let (&first, rest) = body.split_first().ok_or(OptionError::Truncated)?;
        let (subtype, low) = (first >> 4, first & 0xf);
        let wrong = || OptionError::Length { subtype, len: body.len() + 2 };
        match subtype {
            MP_CAPABLE => Capable::parse(low, rest).map(Self::Capable),
            MP_JOIN => Join::parse(low, rest, segment).ok_or_else(wrong).map(Self::Join),
            DSS => Dss::parse(rest).ok_or_else(wrong).map(Self::Dss),
            ADD_ADDR => AddAddr::parse(low, rest).ok_or_else(wrong).map(Self::AddAddr),
            REMOVE_ADDR if !rest.is_empty() => Ok(Self::RemoveAddr(rest)),
            MP_PRIO if rest.is_empty() => Ok(Self::Priority { backup: low & BACKUP != 0 }),
            // A reserved byte stands before the number, and before the key.
            MP_FAIL => match rest.split_first() {
                Some((_, &[a, b, c, d, e, f, g, h])) => {
                    Ok(Self::Fail { from: DataSequence::Full(u64::from_be_bytes([a, b, c, d, e, f, g, h])) })
                }
                _ => Err(wrong()),
            },
            MP_FASTCLOSE => match rest.split_first() {
                Some((_, key)) => key_of(key).map(|receiver| Self::FastClose { receiver }).ok_or_else(wrong),
                None => Err(wrong()),
            },
            MP_TCPRST => match rest {
                &[reason] => Ok(Self::Reset { flags: ResetFlags(low), reason: ResetReason(reason) }),
                _ => Err(wrong()),
            },
            REMOVE_ADDR | MP_PRIO => Err(wrong()),
            other => Ok(Self::Other(other)),
        }
    }
}

impl AddAddr {
    /// What follows the subtype. Its length tells which address it is, and whether a port stands there.
    fn parse(low: u8, rest: &[u8]) -> Option<Self> {
        let (&id, rest) = rest.split_first()?;
        let (rest, hmac) = if low & ECHO != 0 {
            (rest, None)
        } else {
            let (rest, hmac) = rest.split_last_chunk::<ADD_ADDR_HMAC>()?;
            (rest, Some(*hmac))
        };
        let (address, port) = match rest.len() {
            V4 | V6 => (rest, None),
            len if len == V4 + PORT || len == V6 + PORT => {
                let (address, port) = rest.split_last_chunk::<PORT>()?;
                (address, Some(u16::from_be_bytes(*port)))
            }
            _ => return None,
        };
        let address: IpAddr = match <[u8; V4]>::try_from(address) {
            Ok(v4) => Ipv4Addr::from(v4).into(),
            Err(_) => Ipv6Addr::from(<[u8; V6]>::try_from(address).ok()?).into(),
        };
        Some(Self { id: AddressId(id), address, port, hmac })
    }
}

/// A key, where the bytes are one.
pub(super) fn key_of(bytes: &[u8]) -> Option<Key> {
    <[u8; KEY_BYTES]>::try_from(bytes).ok().map(Key)
}
