//! Each message has one form but for flags of later releases, and bytes from anybody are read without a panic.

use super::*;
use crate::units::{Epoch, MemberId, Stamp};
use hawser_core::units::Time;
use hawser_core::wire::{EncodeError, WireError, Writer};
use proptest::prelude::*;

fn bytes_of(message: ClaimMessage) -> Vec<u8> {
    let mut room = [0; ClaimMessage::MAX_LEN];
    let mut out = Writer::new(&mut room);
    message.encode(&mut out).expect("it fits");
    out.written().to_vec()
}

/// The flags that are not defined in a message of this type.
fn undefined_flags(kind: u8) -> u8 {
    if kind == 1 { !1 } else { !7 }
}

/// A message as we write it: without flags that are not defined.
fn as_written(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes[1] &= !undefined_flags(bytes[0]);
    bytes
}

fn without_epoch(role: Role, stamp: Stamp) -> ClaimMessage {
    ClaimMessage::Ack(ClaimAck { epoch: None, role, draining: false, brought: false, misses: false, stamp })
}

fn epochs() -> impl Strategy<Value = Epoch> {
    (1..=Epoch::LAST.get()).prop_map(|number| Epoch::new(number).expect("in range"))
}

fn claims() -> impl Strategy<Value = ClaimMessage> {
    (epochs(), any::<u64>(), any::<Option<u64>>()).prop_map(|(epoch, owner, echo)| {
        let echo = echo.map(|nanos| Stamp(Time::from_nanos(nanos)));
        ClaimMessage::Claim(ClaimFrame { claim: Claim { epoch, owner: MemberId(owner) }, echo })
    })
}

fn acks() -> impl Strategy<Value = ClaimMessage> {
    const ROLES: [Role; 5] = [Role::None, Role::Standby, Role::Owner, Role::Lapsed, Role::Fenced];
    (proptest::option::of(epochs()), proptest::sample::select(&ROLES[..]), any::<[bool; 3]>(), any::<u64>()).prop_map(
        |(epoch, role, [draining, brought, misses], stamp)| {
            let role = if epoch.is_none() { Role::None } else { role };
            let stamp = Stamp(Time::from_nanos(stamp));
            ClaimMessage::Ack(ClaimAck { epoch, role, draining, brought, misses, stamp })
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read_alike(message in prop_oneof![claims(), acks()]) {
        prop_assert_eq!(ClaimMessage::decode(&bytes_of(message)), Ok(message));
    }

    #[test]
    fn whatever_is_read_is_written_alike_but_for_unknown_flags(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(message) = ClaimMessage::decode(&bytes) {
            prop_assert_eq!(bytes_of(message), as_written(bytes));
        }
    }

    /// Random bytes hardly ever are a message: these nearly always are, but for one byte.
    #[test]
    fn one_changed_byte_is_an_error_or_another_message(message in prop_oneof![claims(), acks()], at in 0..26usize, to: u8) {
        let mut bytes = bytes_of(message);
        let at = at % bytes.len();
        bytes[at] = to;
        if let Ok(read) = ClaimMessage::decode(&bytes) {
            prop_assert_eq!(bytes_of(read), as_written(bytes));
        }
    }

    /// What a later release may say beside it is not understood, and spoils nothing.
    #[test]
    fn flags_that_are_not_defined_change_nothing(message in prop_oneof![claims(), acks()], flags: u8) {
        let mut bytes = bytes_of(message);
        bytes[1] |= flags & undefined_flags(bytes[0]);
        prop_assert_eq!(ClaimMessage::decode(&bytes), Ok(message));
    }

    #[test]
    fn a_message_that_is_cut_or_too_long_is_none(message in prop_oneof![claims(), acks()], keep in 0..26usize, more in 1..9usize) {
        let mut bytes = bytes_of(message);
        let cut = keep % bytes.len();
        prop_assert_eq!(ClaimMessage::decode(&bytes[..cut]), Err(WireError::Truncated));
        bytes.resize(bytes.len() + more, 0);
        prop_assert_eq!(ClaimMessage::decode(&bytes), Err(WireError::Trailing(more)));
    }
}

#[test]
fn what_no_correct_portal_writes_is_refused() {
    let stamp = Stamp(Time::from_nanos(7));
    let claim = Claim { epoch: Epoch::FIRST, owner: MemberId(2) };
    let claim = bytes_of(ClaimMessage::Claim(ClaimFrame { claim, echo: None }));
    let ack = bytes_of(without_epoch(Role::None, stamp));
    let table = [
        ("an unknown type", &claim, 0, 3, WireError::UnknownType(3)),
        ("a claim of epoch zero", &claim, 9, 0, WireError::OutOfRange),
        ("an epoch above the last", &claim, 2, 0x80, WireError::OutOfRange),
        ("an echo that is said to be none", &claim, 25, 1, WireError::Reserved),
        ("an unknown role", &ack, 10, 5, WireError::OutOfRange),
        ("an owner without an epoch", &ack, 10, 2, WireError::OutOfRange),
    ];
    for (what, message, at, byte, error) in table {
        let mut bytes = message.clone();
        bytes[at] = byte;
        assert_eq!(ClaimMessage::decode(&bytes), Err(error), "{what}");
    }
    assert_eq!((claim.len(), ack.len()), (ClaimFrame::LEN, ClaimAck::LEN));
}

#[test]
fn what_cannot_be_written_leaves_nothing_behind() {
    let stamp = Stamp(Time::ZERO);
    let [wrong, right] = [Role::Owner, Role::None].map(|role| without_epoch(role, stamp));
    for (message, room, error) in [(wrong, 26, EncodeError::OutOfRange), (right, 18, EncodeError::NoRoom)] {
        let mut room = vec![0; room];
        let mut out = Writer::new(&mut room);
        assert_eq!(message.encode(&mut out), Err(error));
        assert!(out.is_empty());
    }
}
