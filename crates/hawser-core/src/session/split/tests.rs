use super::*;
use crate::packet::{FlowKey, Offload, SegmentRef, TrainStore};
use crate::units::Time;
use crate::wire::{DataFlags, FlowBucket, FlowSequence};

fn packet(len: u16) -> SegmentRecord {
    let mut store = TrainStore::new(FlowKey::new(1, 2));
    store.read_buffer()[..20].copy_from_slice(&[[0x45, 0, 0, 20].as_slice(), &[0; 16]].concat());
    let train = store.admit(20, Offload::default()).expect("a packet");
    SegmentRecord {
        segment: SegmentRef { train, segment: 0 },
        bucket: FlowBucket::default(),
        sequence: FlowSequence::of(0),
        flags: DataFlags::default(),
        len,
        tries: 1,
        order: Default::default(),
        first_sent: Time::ZERO,
        treatment: Default::default(),
    }
}

/// What becomes of a packet in three pieces, settled like this.
fn last_fate(lost: [bool; 3]) -> Fate {
    let mut splits = Splits::default();
    let (id, other) = (splits.begin(packet(1), 3), splits.begin(packet(2), 1));
    for lost in &lost[..2] {
        assert!(matches!(splits.settle(id, *lost), Fate::Open));
    }
    let fate = splits.settle(id, lost[2]);
    assert!(matches!(splits.settle(id, false), Fate::Open), "nobody answers for it any more");
    assert!(matches!(splits.settle(other, false), Fate::Arrived(packet) if packet.len == 2));
    fate
}

#[test]
fn a_packet_arrived_when_all_its_pieces_did_and_is_handed_back_once_otherwise() {
    assert!(matches!(last_fate([false, false, false]), Fate::Arrived(packet) if packet.len == 1));
    for lost in [[true, false, false], [false, true, false], [false, false, true], [true, true, true]] {
        assert!(matches!(last_fate(lost), Fate::Lost(packet) if packet.len == 1), "{lost:?}");
    }
}
