//! The fuzz targets on seeded inputs, for machines without cargo-fuzz: the golden vectors of
//! `fuzz/seeds`, changed in the ways that a fuzzer would.

use std::path::Path;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Inputs of each target that costs no key exchange.
const INPUTS: usize = 20_000;
/// Inputs of the handshake, which costs two key exchanges a time.
const HANDSHAKE_INPUTS: usize = 500;
/// Changes made to one seed, at most.
const MAX_CHANGES: u32 = 6;

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("read {folder:?}: {error}"));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no seeds in {folder:?}");
    paths.iter().map(|path| std::fs::read(path).expect("a seed")).collect()
}

fn below(rng: &mut ChaCha20Rng, end: usize) -> usize {
    (rng.next_u64() % end.max(1) as u64) as usize
}

/// One change: a flipped bit, another byte, a cut, an insertion, a piece of another seed.
fn change(input: &mut Vec<u8>, seeds: &[Vec<u8>], rng: &mut ChaCha20Rng) {
    let at = below(rng, input.len());
    match rng.next_u32() % 6 {
        0 if !input.is_empty() => input[at] ^= 1 << (rng.next_u32() % 8),
        1 if !input.is_empty() => input[at] = [0, 0x3f, 0x40, 0x7f, 0x80, 0xff][below(rng, 6)],
        2 => input.truncate(at),
        3 => input.insert(at, rng.next_u32() as u8),
        4 => drop(input.drain(..at)),
        _ => {
            let other = &seeds[below(rng, seeds.len())];
            input.extend_from_slice(&other[below(rng, other.len())..]);
        }
    }
}

fn smoke(target: &str, run: fn(&[u8]), inputs: usize) {
    let seeds = seeds(target);
    seeds.iter().for_each(|seed| run(seed));
    let mut rng = ChaCha20Rng::seed_from_u64(20_000);
    for _ in 0..inputs {
        let mut input = seeds[below(&mut rng, seeds.len())].clone();
        for _ in 0..1 + rng.next_u32() % MAX_CHANGES {
            change(&mut input, &seeds, &mut rng);
        }
        run(&input);
    }
}

#[test]
fn frames_survive_hostile_bytes() {
    smoke("frames", crate::wire::fuzz::frames, INPUTS);
}

#[test]
fn repairs_survive_hostile_bytes() {
    smoke("repairs", crate::fec::fuzz::repairs, INPUTS);
}

#[test]
fn inner_packets_survive_hostile_bytes() {
    smoke("inner", crate::packet::fuzz::packet, INPUTS);
}

#[test]
fn coalescing_survives_hostile_packets() {
    smoke("coalesce", crate::packet::fuzz::coalesce, INPUTS);
}

#[test]
fn reassembly_survives_hostile_pieces() {
    smoke("pieces", crate::resequence::fuzz::pieces, INPUTS);
}

#[test]
fn headers_survive_hostile_bytes() {
    smoke("header", crate::wire::fuzz::header, INPUTS);
}

#[test]
fn messages_survive_hostile_bytes() {
    smoke("messages", crate::wire::fuzz::messages, INPUTS);
}

#[test]
fn handshakes_survive_hostile_bytes() {
    smoke("messages", crate::handshake::fuzz::handshake, HANDSHAKE_INPUTS);
}
