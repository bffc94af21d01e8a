//! A message under way, in few bytes: a search holds millions of them.

use super::state::clock;
use hawser_hub::claim::{Claim, ClaimAck, ClaimFrame, ClaimMessage, Role};
use hawser_hub::units::{Epoch, MemberId, Stamp};

const ROLES: [Role; 5] = [Role::None, Role::Standby, Role::Owner, Role::Lapsed, Role::Fenced];
/// More than any tick, epoch, life or start.
const RADIX: u64 = 64;

/// An envelope as a number, in which equal ones are equal. A plain number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Packed(u64);

/// A message with the session that it belongs to. A plain value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Envelope {
    /// The member, to or from.
    pub member: usize,
    /// Which of its starts has the session's keys.
    pub start: u8,
    /// Which of the peer's lives has.
    pub life: u8,
    /// What is said.
    pub message: ClaimMessage,
}

impl Envelope {
    /// To a number.
    pub fn pack(&self) -> Packed {
        let tick = |stamp: Stamp| {
            1 + (0..RADIX).find(|tick| clock(self.member, *tick as u8) == stamp.0).expect("a stamp is a tick")
        };
        let fields = match self.message {
            ClaimMessage::Claim(frame) => {
                [0, frame.claim.epoch.get(), frame.claim.owner.0, frame.echo.map_or(0, tick), 0]
            }
            ClaimMessage::Ack(ack) => {
                [1, ack.epoch.map_or(0, Epoch::get), ack.role as u64, tick(ack.stamp), u64::from(ack.draining)]
            }
        };
        let session = [self.member as u64, u64::from(self.start), u64::from(self.life)];
        Packed(session.into_iter().chain(fields).rev().fold(0, |number, field| number * RADIX + field))
    }
}

impl Packed {
    /// Back from the number.
    pub fn unpack(self) -> Envelope {
        let mut rest = self.0;
        let mut field = || {
            let field = rest % RADIX;
            rest /= RADIX;
            field
        };
        let (member, start, life) = (field() as usize, field() as u8, field() as u8);
        let (kind, epoch, who, tick, draining) = (field(), Epoch::new(field()), field(), field(), field() == 1);
        let stamp = (tick > 0).then(|| Stamp(clock(member, (tick - 1) as u8)));
        let message = if kind == 0 {
            let claim = Claim { epoch: epoch.expect("a claim has one"), owner: MemberId(who) };
            ClaimMessage::Claim(ClaimFrame { claim, echo: stamp })
        } else {
            let stamp = stamp.expect("an answer has one");
            ClaimMessage::Ack(ClaimAck {
                epoch,
                role: ROLES[who as usize],
                draining,
                brought: false,
                misses: false,
                stamp,
            })
        };
        Envelope { member, start, life, message }
    }
}
