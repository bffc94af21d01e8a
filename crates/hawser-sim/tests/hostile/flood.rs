//! Floods: what they cost, what they get, and whether an honest peer still gets through.

use crate::memory::live;
use crate::stage::{Stage, recipes, stranger};
use hawser_core::drops::DropReason;
use hawser_core::handshake::Identity;
use hawser_core::units::Random;
use hawser_core::wire::handshake::INITIATION_LEN;
use hawser_sim::{Act, LOCAL};

/// What a flood may leave on the heap, bytes: tables that have grown once, and what the honest flow
/// has under way. The simulator's own notes of strays are cleared before.
const LEFT: i64 = 512 * 1024;

/// Bytes on the heap, less what the simulator wrote down.
fn heap(stage: &mut Stage) -> i64 {
    stage.world.strays.clear();
    stage.world.taps = [None, None];
    live()
}

#[test]
fn initiations_without_a_valid_mac() {
    let mut stage = Stage::new(20);
    let mut initiation = stage.initiation(&Identity::new([9; 32]));
    let before = (heap(&mut stage), stage.dropped(DropReason::Handshake));
    for number in 0..20_000u32 {
        initiation[20..24].copy_from_slice(&number.to_be_bytes());
        stage.inject(stranger(number), initiation.clone());
    }
    assert_eq!(stage.answered_all(), 0, "bytes came back");
    assert_eq!(stage.dropped(DropReason::Handshake) - before.1, 20_000);
    let grown = heap(&mut stage) - before.0;
    assert!(grown < LEFT, "{grown} bytes more on the heap");
}

#[test]
fn initiations_with_a_valid_mac_and_an_unknown_key() {
    let mut stage = Stage::new(21);
    let stranger_key = Identity::new([9; 32]);
    let initiations: Vec<Vec<u8>> = (0..300).map(|_| stage.initiation(&stranger_key)).collect();
    let before = heap(&mut stage);
    for number in 0..20_000u32 {
        let initiation = initiations[number as usize % initiations.len()].clone();
        stage.inject(stranger(number), initiation);
    }
    // Beyond what it works on unasked, it sends cookies: shorter than what came.
    let (sent, back) = (20_000 * INITIATION_LEN as u64, stage.answered_all());
    assert!(back > 0 && back < sent / 2, "{back} bytes for {sent}");
    let grown = heap(&mut stage) - before;
    assert!(grown < LEFT, "{grown} bytes more on the heap");
    stage.pass(1_000);
    stage.all_is_well();
}

#[test]
fn a_known_key_initiates_without_end() {
    let mut stage = Stage::new(22);
    // Somebody replays what the local portal once initiated with, or holds its key.
    let local = recipes()[LOCAL].identity.clone();
    let initiations: Vec<Vec<u8>> = (0..200).map(|_| stage.initiation(&local)).collect();
    let before = heap(&mut stage);
    let mut sent = 0;
    for round in 0..20u32 {
        for initiation in &initiations {
            sent += initiation.len() as u64;
            stage.inject(stranger(round), initiation.clone());
        }
        stage.pass(50);
    }
    let back = stage.answered_all();
    assert!(back < sent, "{back} bytes for {sent}");
    // The live session stays: its peer never used any of those keys.
    stage.all_is_well();
    let grown = heap(&mut stage) - before;
    assert!(grown < LEFT, "{grown} bytes more on the heap");
}

#[test]
fn an_honest_portal_gets_its_session_during_a_flood() {
    let mut stage = Stage::new(23);
    let stranger_key = Identity::new([9; 32]);
    let initiations: Vec<Vec<u8>> = (0..300).map(|_| stage.initiation(&stranger_key)).collect();
    let sessions = stage.sessions()[1];
    stage.world.act(Act::Kill(LOCAL));
    for millisecond in 0..4_000u32 {
        if millisecond == 1_000 {
            stage.world.act(Act::Start(LOCAL));
            stage.world.settle(LOCAL);
        }
        stage.inject(stranger(millisecond), initiations[millisecond as usize % initiations.len()].clone());
        stage.pass(1);
    }
    assert!(stage.sessions()[1] > sessions, "no new session in 3 s of flood");
    stage.all_is_well();
}

#[test]
fn a_hundred_thousand_hostile_datagrams_leave_nothing() {
    let mut stage = Stage::new(24);
    let stranger_key = Identity::new([9; 32]);
    let initiations: Vec<Vec<u8>> = (0..50).map(|_| stage.initiation(&stranger_key)).collect();
    let tape = stage.take_tape(1);
    let before = heap(&mut stage);
    for number in 0..100_000u32 {
        let bytes = match number % 4 {
            0 => initiations[number as usize / 4 % initiations.len()].clone(),
            1 => tape[number as usize / 4 % tape.len()].bytes.clone(),
            2 => {
                let mut bytes = tape[number as usize / 4 % tape.len()].bytes.clone();
                let at = stage.rng.below(bytes.len() as u64) as usize;
                bytes[at] ^= 0x40;
                bytes
            }
            _ => {
                let mut bytes = vec![0; stage.rng.below(200) as usize];
                stage.rng.fill(&mut bytes);
                bytes
            }
        };
        stage.inject(stranger(number % 1_000), bytes);
    }
    let grown = heap(&mut stage) - before;
    assert!(grown < LEFT, "{grown} bytes more on the heap");
    stage.pass(2_000);
    stage.all_is_well();
}
