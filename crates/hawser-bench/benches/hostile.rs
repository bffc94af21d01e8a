//! What a datagram costs the portal that receives it, by what a peer with keys puts into it: the dearest decide how
//! much of the packet thread's time one peer can take (`endpoint/share.rs`). Sealing is not counted.
#![allow(missing_docs, reason = "criterion's macros make public items")]

#[path = "../../hawser-core/tests/support/mod.rs"]
mod support;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use hawser_core::units::{PacketNumber, PathId};
use hawser_core::wire::{
    AckHead, DataFlags, DataFrame, EcnCounts, FlowBucket, FlowSequence, Gone, LinkState, PathChallenge, PathInfo,
    ProtectedFrame, RepairFrame, SplitFrame, SplitId, SymbolNumber, Token, Writer,
};
use std::cell::{Cell, RefCell};
use std::time::Duration;
use support::packet;
use support::sender::{PING, Sender};
use support::world::ms;

/// After this many datagrams the portal sends what it has to.
const ROUND: u64 = 16;

fn bucket(number: u64) -> FlowBucket {
    FlowBucket::new((number % 4_096) as u16).expect("a bucket")
}

const PLAIN: DataFlags = DataFlags { partial: false, continues: false, unordered: false };

/// Frames until the datagram is full.
fn fill<E>(out: &mut Writer<'_>, mut frame: impl FnMut(&mut Writer<'_>, u64) -> Result<(), E>) -> Result<(), String> {
    let mut count = 0;
    while out.remaining() > 120 && frame(out, count).is_ok() {
        count += 1;
    }
    Ok(())
}

type Write = fn(&mut Writer<'_>, u64) -> Result<(), String>;

const KINDS: [(&str, Write); 10] = [
    ("one ping", |out, _| out.put_u8(PING).map_err(|error| error.to_string())),
    ("pings", |out, _| fill(out, |out, _| out.put_u8(PING))),
    ("challenges", |out, n| fill(out, |out, at| PathChallenge { token: Token((n + at).to_be_bytes()) }.encode(out))),
    ("path infos", |out, n| {
        fill(out, |out, at| {
            let path = PathId((at % 64) as u32);
            PathInfo { path, state: LinkState::Usable, metric: 0, revision: n * 100 + at }.encode(out)
        })
    }),
    ("words of what is gone", |out, n| {
        fill(out, |out, at| Gone { bucket: bucket(n * 97 + at), upto: FlowSequence::of(n + at) }.encode(out))
    }),
    ("acknowledgements of many ranges", |out, n| {
        let ecn = EcnCounts { ect0: 0, ect1: 0, ce: 0 };
        let head = AckHead { path: PathId(0), delay_us: 0, received_at_us: n, ecn };
        let ranges = (0..500u64).rev().map(|at| PacketNumber(2 * at)..=PacketNumber(2 * at));
        head.encode(ranges, out.remaining(), out).map(drop).map_err(|error| error.to_string())
    }),
    ("a packet out of order", |out, n| {
        let packet = packet(n as u16);
        let sequence = FlowSequence::of(2 * n + 2);
        DataFrame { bucket: bucket(n), flags: PLAIN, sequence, packet: &packet }
            .encode(out)
            .map_err(|error| error.to_string())
    }),
    ("pieces of packets", |out, n| {
        let bytes = [7; 1_200];
        let sequence = FlowSequence::of(n);
        let piece = SplitFrame {
            bucket: bucket(n),
            flags: PLAIN,
            sequence,
            id: SplitId(n as u16),
            offset: 0,
            more: true,
            bytes: &bytes,
        };
        piece.encode(out).map_err(|error| error.to_string())
    }),
    ("a protected packet", |out, n| {
        let packet = packet(n as u16);
        let data = DataFrame { bucket: bucket(n), flags: PLAIN, sequence: FlowSequence::of(n), packet: &packet };
        ProtectedFrame { symbol: SymbolNumber(n as u16), data }.encode(out).map_err(|error| error.to_string())
    }),
    ("repairs that nobody asked for", |out, n| {
        let symbol = [n as u8; 1_300];
        let (first, count) = (SymbolNumber((n * 3) as u16), RepairFrame::MAX_COUNT);
        RepairFrame { first, count, row: (n % 8) as u8, symbol: &symbol }.encode(out).map_err(|error| error.to_string())
    }),
];

fn hostile(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("a datagram of");
    group.measurement_time(Duration::from_secs(1)).warm_up_time(Duration::from_millis(300)).sample_size(20);
    for (name, write) in KINDS {
        let (sender, number) = (RefCell::new(Sender::new().handshake()), Cell::new(0));
        let seal = || {
            number.set(number.get() + 1);
            (number.get(), sender.borrow_mut().seal(0, |out| write(out, number.get())))
        };
        let take = |(number, datagram): (u64, Vec<u8>)| {
            let mut sender = sender.borrow_mut();
            sender.send(&datagram);
            if number % ROUND == 0 {
                sender.hear(ms(1));
            }
        };
        group.bench_function(name, |bencher| bencher.iter_batched(seal, take, BatchSize::SmallInput));
    }
    group.finish();
}

criterion_group!(benches, hostile);
criterion_main!(benches);
