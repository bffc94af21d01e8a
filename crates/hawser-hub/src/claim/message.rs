//! What a peer and a member say to each other, inside their session. Numbers are in network byte order.
//!
//! ```text
//! CLAIM      +------+---------+---------+---------+--------+    flags: 1 there is an echo (else its bytes are zero)
//!            | 0x01 | flags 1 | epoch 8 | owner 8 | echo 8 |
//! CLAIM_ACK  +------+---------+---------+--------+---------+
//!            | 0x02 | flags 1 | epoch 8 | role 1 | stamp 8 |    flags: 1 the member drains, 2 it is brought the
//!            +------+---------+---------+--------+---------+    peer's packets, 4 it misses the owner; epoch 0: none
//! ```
//!
//! Other flags are written as zero, and ignored: a later release may define them.

use crate::units::{Epoch, MemberId, Stamp};
use hawser_core::units::Time;
use hawser_core::wire::{EncodeError, Reader, WireError, Writer};

const CLAIM: u8 = 1;
const CLAIM_ACK: u8 = 2;
const HAS_ECHO: u8 = 1;
const DRAINING: u8 = 1;
const BROUGHT: u8 = 2;
const MISSES: u8 = 4;

/// Whose an epoch is. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Claim {
    /// Which.
    pub epoch: Epoch,
    /// The member that it was given to.
    pub owner: MemberId,
}

/// CLAIM: a peer says to a member whose the peer is. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClaimFrame {
    /// What it says.
    pub claim: Claim,
    /// The newest stamp that came from this member in this session.
    pub echo: Option<Stamp>,
}

/// What a member is to a peer. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Role {
    /// Nothing: the peer has not spoken since the member started, or its session is gone.
    None = 0,
    /// The peer gave the epoch to another member.
    Standby = 1,
    /// It owns.
    Owner = 2,
    /// The epoch is its own, and its lease is over: it asks for an echo of its stamp.
    Lapsed = 3,
    /// It heard of a higher epoch, and not from the peer.
    Fenced = 4,
}

/// CLAIM_ACK: what a member knows of a peer. It answers each CLAIM, and asks for one. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClaimAck {
    /// The highest epoch that it heard of. There is one in every role but [`Role::None`], where there may be.
    pub epoch: Option<Epoch>,
    /// What it is.
    pub role: Role,
    /// It asks its peers to move.
    pub draining: bool,
    /// Routers bring it the peer's packets, although another member owns them.
    pub brought: bool,
    /// The member that owns them no longer answers other members: the peer is to ask it.
    pub misses: bool,
    /// Its clock.
    pub stamp: Stamp,
}

/// Either message. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ClaimMessage {
    /// From a peer.
    Claim(ClaimFrame),
    /// From a member.
    Ack(ClaimAck),
}

impl ClaimMessage {
    /// Bytes of the longer one.
    pub const MAX_LEN: usize = ClaimFrame::LEN;

    /// Reads one message, which must be all of `bytes`.
    ///
    /// # Errors
    /// [`WireError`] for anything that `encode` does not write, but for unknown flags: each message has one form.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut from = Reader::new(bytes);
        let message = match from.u8()? {
            CLAIM => ClaimMessage::Claim(ClaimFrame::decode(&mut from)?),
            CLAIM_ACK => ClaimMessage::Ack(ClaimAck::decode(&mut from)?),
            other => return Err(WireError::UnknownType(other)),
        };
        from.finish().map(|()| message)
    }

    /// Appends the message.
    ///
    /// # Errors
    /// [`EncodeError::NoRoom`]; [`EncodeError::OutOfRange`] for an acknowledgement of a role that needs an epoch,
    /// without one.
    pub fn encode(&self, out: &mut Writer<'_>) -> Result<(), EncodeError> {
        match self {
            ClaimMessage::Claim(frame) => frame.encode(out),
            ClaimMessage::Ack(ack) => ack.encode(out),
        }
    }
}

impl ClaimFrame {
    /// Bytes of the message.
    pub const LEN: usize = 26;

    fn encode(&self, out: &mut Writer<'_>) -> Result<(), EncodeError> {
        out.reserve(Self::LEN)?;
        out.put_bytes(&[CLAIM, if self.echo.is_some() { HAS_ECHO } else { 0 }])?;
        out.put_u64(self.claim.epoch.get())?;
        out.put_u64(self.claim.owner.0)?;
        out.put_u64(self.echo.map_or(0, |stamp| stamp.0.as_nanos()))
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, WireError> {
        let has_echo = from.u8()? & HAS_ECHO != 0;
        let epoch = epoch(from)?.ok_or(WireError::OutOfRange)?;
        let owner = MemberId(from.u64()?);
        let echo = match (has_echo, from.u64()?) {
            (true, nanos) => Some(Stamp(Time::from_nanos(nanos))),
            (false, 0) => None,
            (false, _) => return Err(WireError::Reserved),
        };
        Ok(ClaimFrame { claim: Claim { epoch, owner }, echo })
    }
}

impl ClaimAck {
    /// Bytes of the message.
    pub const LEN: usize = 19;

    fn encode(&self, out: &mut Writer<'_>) -> Result<(), EncodeError> {
        if self.epoch.is_none() && self.role != Role::None {
            return Err(EncodeError::OutOfRange);
        }
        out.reserve(Self::LEN)?;
        let flags = [(self.draining, DRAINING), (self.brought, BROUGHT), (self.misses, MISSES)];
        out.put_bytes(&[CLAIM_ACK, flags.iter().map(|(set, flag)| u8::from(*set) * flag).sum()])?;
        out.put_u64(self.epoch.map_or(0, Epoch::get))?;
        out.put_u8(self.role as u8)?;
        out.put_u64(self.stamp.0.as_nanos())
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, WireError> {
        let flags = from.u8()?;
        let epoch = epoch(from)?;
        let role = match from.u8()? {
            0 => Role::None,
            1 => Role::Standby,
            2 => Role::Owner,
            3 => Role::Lapsed,
            4 => Role::Fenced,
            _ => return Err(WireError::OutOfRange),
        };
        if epoch.is_none() && role != Role::None {
            return Err(WireError::OutOfRange);
        }
        let [draining, brought, misses] = [DRAINING, BROUGHT, MISSES].map(|flag| flags & flag != 0);
        Ok(ClaimAck { epoch, role, draining, brought, misses, stamp: Stamp(Time::from_nanos(from.u64()?)) })
    }
}

/// An epoch, or zero for none.
fn epoch(from: &mut Reader<'_>) -> Result<Option<Epoch>, WireError> {
    match from.u64()? {
        0 => Ok(None),
        number => Epoch::new(number).map(Some).ok_or(WireError::OutOfRange),
    }
}
