//! Compares our decoder's verdict on random packets with the reference decoder's.
//!
//!     cargo run --release -p hawser-scion --example verdicts -- --packets 100000 --seed 1
//!
//! 1. Builds golden/verdicts, which reads packets with the reference's pkg/slayers (needs Go).
//! 2. Makes packets: whole ones, changed ones, noise (`packets.rs`).
//! 3. Lets both sides tell what they read, as one line a packet (`ours.rs`).
//! 4. Compares: every difference has a reason of the list in README.md, or the command fails.

mod compare;
mod ours;
mod packets;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use clap::Parser;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::compare::{Outcome, compare};

/// Unexplained differences that are shown.
const SHOWN: usize = 10;

/// Compares our decoder's verdict on random packets with the reference decoder's.
#[derive(Parser)]
struct Args {
    /// Packets to compare.
    #[arg(long, default_value_t = 100_000)]
    packets: usize,
    /// What the packets are made from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let folder = tempfile::tempdir().expect("make a folder for the reference decoder");
    let reference = build_reference(folder.path());
    let mut rng = ChaCha20Rng::seed_from_u64(args.seed);
    let packets: Vec<Vec<u8>> = (0..args.packets).map(|_| packets::any(&mut rng)).collect();
    let verdicts = ask(&reference, &packets);
    report(&packets, &verdicts)
}

fn build_reference(folder: &Path) -> PathBuf {
    let binary = folder.join("verdicts");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let status = Command::new("go").arg("build").arg("-o").arg(&binary).arg("./verdicts").current_dir(golden).status();
    let status = status.unwrap_or_else(|error| panic!("run go, which builds the reference decoder: {error}"));
    assert!(status.success(), "build the reference decoder: go build ended with {status}");
    binary
}

/// One line a packet. Packets are written while answers are read, so that neither side waits for ever.
fn ask(reference: &Path, packets: &[Vec<u8>]) -> Vec<String> {
    let mut child = Command::new(reference)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("run the reference decoder");
    let mut to = BufWriter::new(child.stdin.take().expect("its input is piped"));
    let from = BufReader::new(child.stdout.take().expect("its output is piped"));
    let verdicts: Vec<String> = std::thread::scope(|scope| {
        scope.spawn(move || {
            for packet in packets {
                to.write_all(&(packet.len() as u32).to_be_bytes()).expect("write to the reference decoder");
                to.write_all(packet).expect("write to the reference decoder");
            }
        });
        from.lines().map(|line| line.expect("read from the reference decoder")).collect()
    });
    let status = child.wait().expect("wait for the reference decoder");
    assert!(status.success(), "the reference decoder ended with {status}");
    assert_eq!(verdicts.len(), packets.len(), "the reference decoder answered another number of packets");
    verdicts
}

fn report(packets: &[Vec<u8>], verdicts: &[String]) -> ExitCode {
    let (mut accepted, mut rejected, mut unexplained) = (0, 0, 0);
    let mut reasons = BTreeMap::new();
    for (packet, theirs) in packets.iter().zip(verdicts) {
        match compare(packet, theirs) {
            Outcome::BothAccept => accepted += 1,
            Outcome::BothReject => rejected += 1,
            Outcome::Stricter(reason) => *reasons.entry(reason).or_insert(0) += 1,
            Outcome::Unexplained(ours) => {
                unexplained += 1;
                if unexplained <= SHOWN {
                    println!("packet {}\n  ours   {ours}\n  theirs {theirs}", ours::hex(packet));
                }
            }
        }
    }
    println!("{} packets: {accepted} read alike, {rejected} refused by both", packets.len());
    for (reason, count) in &reasons {
        println!("{count:>8} stricter: {reason}");
    }
    println!("{unexplained:>8} not explained");
    if unexplained == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
