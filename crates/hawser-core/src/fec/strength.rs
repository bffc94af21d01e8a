//! What the code can: encoder, channel and decoder together, over many packets with a fixed seed.

use super::decoder::Decoder;
use super::demand::{Demand, STEPS};
use super::encoder::Encoder;
use super::symbol::SymbolHead;
use crate::path::loss_meter::LossMeter;
use crate::treatment::RuleId;
use crate::units::Time;
use crate::wire::{DataFlags, DataFrame, FlowBucket, FlowSequence, Frame, Frames, ProtectedFrame, RepairFrame};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::time::Duration;

/// 200 packets a second.
const GAP: Duration = Duration::from_millis(5);
/// A repair that takes longer is of no use to a real-time flow (docs/fec.md).
const IN_TIME: Duration = Duration::from_millis(60);
/// Bytes of a packet that stands for voice, IP header included.
const PACKET: usize = 200;
/// Packets for each figure of docs/fec.md.
const TABLE_PACKETS: u64 = 20_000;
/// Outer IPv4 and UDP headers, bytes.
const OUTER: usize = 28;

/// How packets are lost.
#[derive(Copy, Clone, Debug)]
enum Channel {
    /// Each by itself.
    Independent(f64),
    /// Gilbert's model: this share, in bursts of this many packets on average.
    Bursts(f64, f64),
}

impl Channel {
    fn loses(self, rng: &mut ChaCha20Rng, bad: &mut bool) -> bool {
        let chance = f64::from(rng.next_u32()) / f64::from(u32::MAX);
        match self {
            Channel::Independent(share) => chance < share,
            Channel::Bursts(share, length) => {
                let (leave, enter) = (1.0 / length, share / (1.0 - share) / length);
                *bad = if *bad { chance >= leave } else { chance < enter };
                *bad
            }
        }
    }
}

#[derive(Debug)]
struct Outcome {
    /// The share of packets that neither came nor came back.
    lost: f64,
    /// The same, and those that took longer than 60 ms to come back.
    useless: f64,
    /// Bytes on the wire for each that there would be without.
    extra: f64,
}

fn packet_of(sequence: u64) -> Vec<u8> {
    (0..PACKET).map(|at| (sequence as usize * 31 + at * 7) as u8 | 1).collect()
}

/// A flow of `packets` through `channel`, with a repair for every `interval` packets.
fn run(channel: Channel, gap: Duration, interval: usize, packets: u64) -> Outcome {
    let mut rng = ChaCha20Rng::seed_from_u64(8_681);
    let (mut encoder, mut decoder, mut bad) = (Encoder::default(), Decoder::default(), false);
    let mut came = vec![false; packets as usize];
    let (mut late, mut plain, mut wire) = (0, 0, 0);
    let sent_at = |sequence: u64| Time::from_nanos(1_000_000_000) + gap * sequence as u32;
    for sequence in 0..packets {
        let (now, packet) = (sent_at(sequence), packet_of(sequence));
        let head =
            SymbolHead { bucket: FlowBucket(7), sequence: FlowSequence::of(sequence), flags: DataFlags::default() };
        let symbol = encoder.protect(now, RuleId::default(), &head, (&packet, &[]), interval);
        let mut back = Vec::new();
        if !channel.loses(&mut rng, &mut bad) {
            let data = DataFrame { bucket: head.bucket, flags: head.flags, sequence: head.sequence, packet: &packet };
            decoder
                .on_source(now, &ProtectedFrame { symbol, data }, |(head, packet)| back.push((head, packet.to_vec())));
            came[sequence as usize] = true;
        }
        plain += OUTER + crate::wire::DATA_OVERHEAD + PACKET;
        wire += OUTER + ProtectedFrame::OVERHEAD + PACKET;
        while encoder.is_due(now, interval) {
            let mut frame = vec![0; RepairFrame::HEAD_LEN + encoder.repair_len(now, interval)];
            encoder.repair(now, interval, &mut frame);
            wire += OUTER + crate::wire::DATA_HEADER_LEN + frame.len() + crate::wire::TAG_LEN;
            if !channel.loses(&mut rng, &mut bad) {
                let Some(Ok(Frame::Repair(frame))) = Frames::new(&frame).next() else { panic!("a repair") };
                decoder.on_repair(now, &frame, |(head, packet)| back.push((head, packet.to_vec())));
            }
        }
        for (head, packet) in back {
            let back = head.sequence.expand(sequence);
            assert!(packet == packet_of(back) && !came[back as usize], "packet {back} came back once and whole");
            came[back as usize] = true;
            late += u64::from(now.since(sent_at(back)) > IN_TIME);
        }
    }
    let lost = came.iter().filter(|came| !**came).count() as u64;
    let share = |count: u64| count as f64 / packets as f64;
    Outcome {
        lost: share(lost),
        useless: share(lost + late),
        extra: f64::from(wire as u32) / f64::from(plain as u32) - 1.0,
    }
}

/// What a block code leaves lost: a lost packet stays so if at least `repairs` others of its block are lost too.
fn block_residual(sources: u32, repairs: u32, share: f64) -> f64 {
    let others = sources + repairs - 1;
    let exactly = |lost: u32| {
        let ways = (0..lost).map(|k| f64::from(others - k) / f64::from(k + 1)).product::<f64>();
        ways * share.powi(lost as i32) * (1.0 - share).powi((others - lost) as i32)
    };
    share * (1.0 - (0..repairs).map(exactly).sum::<f64>())
}

#[test]
fn five_per_cent_of_independent_loss_becomes_less_than_a_half_within_sixty_milliseconds() {
    let outcome = run(Channel::Independent(0.05), GAP, 4, 100_000);
    assert!(outcome.lost < 0.001 && outcome.useless < 0.002, "{outcome:?}");
    assert!(outcome.extra < 0.28, "{outcome:?}");
    let block = block_residual(8, 2, 0.05);
    assert!((0.003..0.004).contains(&block), "{block}");
    assert!(outcome.useless < block * 0.75, "a block of eight and two leaves {block}, and waits for its end");
}

#[test]
fn every_step_keeps_what_it_promises() {
    for (index, (_, interval)) in STEPS.iter().enumerate() {
        let worst = STEPS.get(index + 1).map_or(0.20, |(from, _)| *from);
        let outcome = run(Channel::Independent(worst), GAP, *interval, 50_000);
        assert!(outcome.useless < worst / 6.0, "{worst}: {outcome:?}");
    }
}

/// The memory of 200 packets is short: chance alone makes 5 % look like 9 % now and then.
#[test]
fn five_per_cent_of_independent_loss_never_costs_more_than_one_repair_for_four_packets() {
    let (mut rng, mut bad) = (ChaCha20Rng::seed_from_u64(9_002), false);
    let (mut meter, mut demand, mut most) = (LossMeter::default(), Demand::default(), 0.0_f64);
    for sequence in 0..TABLE_PACKETS {
        if Channel::Independent(0.05).loses(&mut rng, &mut bad) {
            meter.on_lost(true)
        } else {
            meter.on_acked()
        }
        most = most.max(meter.to_expect());
        demand.on_loss(Time::from_nanos(1_000_000_000) + GAP * sequence as u32, meter.to_expect());
        assert_eq!(demand.interval(), Some(4), "packet {sequence}: {}", meter.to_expect());
    }
    assert!(most > 0.085, "the noise that it must bear: {most}");
}

/// The table of docs/fec.md is what comes out.
#[test]
fn more_repairs_lose_less_and_bursts_lose_more() {
    let independent = [0.01, 0.02, 0.05, 0.10].map(Channel::Independent);
    let bursts = [2.0, 3.0].map(|length| Channel::Bursts(0.05, length));
    let mut table = String::new();
    for interval in [2, 3, 4, 8, 12] {
        let useless = |channel: &Channel| run(*channel, GAP, interval, TABLE_PACKETS).useless * 100.0;
        let row: Vec<f64> = independent.iter().chain(&bursts).map(useless).collect();
        assert!(row[..independent.len()].is_sorted() && row[2] < row[4], "one for {interval}: {row:?}");
        let cells: Vec<String> = row.iter().map(|share| format!("{share:.2}")).collect();
        table += &format!("| {interval} | {} |\n", cells.join(" | "));
    }
    assert!(include_str!("../../../../docs/fec.md").contains(&table), "docs/fec.md has another table than\n{table}");
}
