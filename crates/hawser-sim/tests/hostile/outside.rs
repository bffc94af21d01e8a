//! Somebody who can see, repeat, change and make up datagrams, and holds no key.

use crate::stage::{Stage, stranger};
use hawser_core::drops::DropReason;
use hawser_core::units::{LinkId, Random};
use hawser_core::wire::DatagramKind;
use hawser_core::wire::handshake::INITIATION_LEN;
use hawser_sim::net::Datagram;
use hawser_sim::{LOCAL, REMOTE};

fn is_data(datagram: &Datagram) -> bool {
    DatagramKind::of(datagram.bytes[0]) == Ok(DatagramKind::Data)
}

#[test]
fn everything_recorded_is_replayed_to_the_remote_portal_from_where_it_came() {
    let mut stage = Stage::new(1);
    let tape = stage.take_tape(REMOTE);
    let data = tape.iter().filter(|datagram| is_data(datagram)).count() as u64;
    let before = stage.dropped(DropReason::Replayed);
    for datagram in tape {
        stage.inject(datagram.from, datagram.bytes);
    }
    assert!(data > 200, "{data} data datagrams on the tape");
    assert_eq!(stage.dropped(DropReason::Replayed) - before, data, "each is known as a replay");
    stage.all_is_well();
}

#[test]
fn everything_recorded_is_replayed_from_elsewhere() {
    let mut stage = Stage::new(2);
    let tape = stage.take_tape(REMOTE);
    let (mut sent, elsewhere) = (0, stranger(1));
    for datagram in tape {
        sent += if is_data(&datagram) { 0 } else { datagram.bytes.len() as u64 };
        stage.inject(elsewhere, datagram.bytes);
    }
    stage.pass(500);
    // A recorded initiation is answered by a shorter response, data by nothing.
    assert!(stage.answered(elsewhere) <= sent, "{} bytes for {sent}", stage.answered(elsewhere));
    stage.all_is_well();
}

#[test]
fn everything_recorded_is_replayed_to_the_local_portal() {
    let mut stage = Stage::new(3);
    let tape = stage.take_tape(LOCAL);
    assert!(tape.iter().any(|datagram| !is_data(datagram)), "a response is on the tape");
    for datagram in tape {
        stage.world.receive(LOCAL, LinkId(0), datagram);
    }
    stage.all_is_well();
}

#[test]
fn recorded_datagrams_are_cut_at_every_length() {
    let mut stage = Stage::new(4);
    let tape = stage.take_tape(REMOTE);
    let (initiation, data) = (&tape[0], &tape[tape.len() - 1]);
    let before = stage.honest.borrow().arrivals.len();
    let forged = stage.dropped(DropReason::Forged) + stage.dropped(DropReason::Malformed);
    let mut cuts = 0;
    for datagram in [initiation, data] {
        for len in 0..datagram.bytes.len() {
            stage.inject(stranger(4), datagram.bytes[..len].to_vec());
            cuts += 1;
        }
    }
    let dropped = [DropReason::Forged, DropReason::Malformed, DropReason::Handshake, DropReason::Replayed];
    let dropped: u64 = dropped.iter().map(|reason| stage.dropped(*reason)).sum();
    assert!(dropped - forged >= cuts, "{dropped} of {cuts} were counted");
    assert_eq!(stage.honest.borrow().arrivals.len(), before, "no inner packet came of it");
    assert_eq!(stage.answered_all(), 0, "bytes came back");
    stage.all_is_well();
}

#[test]
fn one_bit_of_recorded_datagrams_is_flipped() {
    let mut stage = Stage::new(5);
    let tape = stage.take_tape(REMOTE);
    let before = stage.honest.borrow().arrivals.len();
    for datagram in &tape {
        let mut bytes = datagram.bytes.clone();
        let bit = stage.rng.below(bytes.len() as u64 * 8);
        // The last 16 bytes of an initiation are mac2, which only matters under load.
        let counts = is_data(datagram) || bit < (INITIATION_LEN as u64 - 16) * 8;
        bytes[bit as usize / 8] ^= 1 << (bit % 8);
        if counts {
            stage.inject(stranger(5), bytes);
        }
    }
    assert_eq!(stage.honest.borrow().arrivals.len(), before, "no inner packet came of it");
    assert_eq!(stage.answered_all(), 0, "bytes came back");
    stage.all_is_well();
}

#[test]
fn every_byte_of_an_initiation_counts() {
    let mut stage = Stage::new(6);
    let tape = stage.take_tape(REMOTE);
    let before = stage.dropped(DropReason::Handshake) + stage.dropped(DropReason::Malformed);
    for at in 0..INITIATION_LEN - 16 {
        let mut bytes = tape[0].bytes.clone();
        bytes[at] ^= 1;
        stage.inject(stranger(6), bytes);
    }
    let dropped = stage.dropped(DropReason::Handshake) + stage.dropped(DropReason::Malformed) - before;
    assert_eq!((dropped, stage.answered_all()), (INITIATION_LEN as u64 - 16, 0), "dropped, bytes back");
    stage.all_is_well();
}

#[test]
fn random_datagrams_of_every_kind() {
    let mut stage = Stage::new(7);
    let before = stage.honest.borrow().arrivals.len();
    for number in 0..20_000 {
        let mut bytes = vec![0; stage.rng.below(1_500) as usize];
        stage.rng.fill(&mut bytes);
        if let Some(first) = bytes.first_mut().filter(|_| number % 4 > 0) {
            *first = (number % 4 + 1) as u8 * 16;
        }
        stage.inject(stranger(number), bytes);
    }
    assert_eq!(stage.honest.borrow().arrivals.len(), before, "no inner packet came of it");
    assert_eq!(stage.answered_all(), 0, "bytes came back");
    stage.all_is_well();
}

#[test]
fn true_labels_with_forged_frames() {
    let mut stage = Stage::new(8);
    let tape = stage.take_tape(REMOTE);
    let last = tape.iter().rev().find(|datagram| is_data(datagram)).expect("data on the tape").clone();
    let before = stage.dropped(DropReason::Forged);
    for number in 0..5_000u32 {
        let mut bytes = last.bytes.clone();
        // The packet number lies at 5 to 8 behind type and label: one that is yet to come.
        let ahead = u32::from_be_bytes([bytes[5], bytes[6], bytes[7], bytes[8]]).wrapping_add(10_000 + number);
        bytes[5..9].copy_from_slice(&ahead.to_be_bytes());
        stage.inject(stranger(8), bytes);
    }
    assert_eq!((stage.dropped(DropReason::Forged) - before, stage.answered_all()), (5_000, 0), "forged, bytes back");
    stage.all_is_well();
}

#[test]
fn a_genuine_datagram_with_a_spoofed_source_is_answered_threefold_at_most() {
    let mut stage = Stage::new(9);
    // Somebody on the path of link 0 takes datagrams away and sends them on from a victim's address.
    let victim = stranger(9);
    let (mut sent, mut taken) = (0, 0);
    stage.world.links[0].up.way.hole = true;
    stage.world.links[0].hole = Some(Vec::new());
    while taken < 20 {
        stage.pass(5);
        let batch = stage.world.links[0].hole.replace(Vec::new()).unwrap_or_default();
        for datagram in batch {
            sent += datagram.bytes.len() as u64;
            taken += 1;
            stage.inject(victim, datagram.bytes);
        }
    }
    stage.pass(3_000);
    assert!(sent > 0 && stage.answered(victim) <= 3 * sent, "{} bytes for {sent}", stage.answered(victim));
    stage.world.links[0].up.way.hole = false;
    stage.pass(3_000);
    let after = stage.answered(victim);
    stage.all_is_well();
    assert_eq!(stage.answered(victim), after, "the victim is left alone");
}
