//! The packet path allocates nothing once it has run for a while: trains are admitted, queued,
//! pulled, cut, reordered, lost, resequenced, reassembled and coalesced, and the allocator is
//! watched all the while.

use crate::allocator::allocations_of;
use hawser_core::packet::train::MAX_HEAD;
use hawser_core::packet::{Coalescer, FlowKey, FlowSequence, Gso, Offload, SegmentRef, TrainStore};
use hawser_core::queue::{Choice, Pulled, Queue, QueueParams};
use hawser_core::resequence::{Arrival, Reassembler, Resequencer};
use hawser_core::units::{ByteCount, Time};
use std::time::Duration;

/// Rounds until every buffer has been needed once, and every flow has lost a packet; and rounds that are watched.
const WARM_UP: u32 = 2_000;
const WATCHED: u32 = 200;
/// How long the resequencer waits.
const HOLD: Duration = Duration::from_millis(20);

/// A TCP super-packet over IPv4 and its description; `payload` zero makes an acknowledgement.
fn tcp(port: u16, payload: usize) -> (Vec<u8>, Offload) {
    let len = (40 + payload) as u16;
    let mut packet = vec![0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    packet.extend(port.to_be_bytes());
    packet.extend([1, 187, 0, 0, 0, 0, 0, 0, 0, 9, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    packet.resize(usize::from(len), port as u8);
    let sum = hawser_core::packet::checksum::sum(&packet[..20]);
    packet[10..12].copy_from_slice(&(!sum).to_be_bytes());
    let offload = Offload {
        needs_csum: true,
        csum_start: 20,
        csum_offset: 16,
        gso: if payload > 1_400 { Gso::TcpV4 } else { Gso::None },
        gso_size: 1_400,
    };
    (packet, offload)
}

/// Both ends of a session, without what lies between.
struct Bench {
    store: TrainStore,
    queue: Queue,
    resequencer: Resequencer,
    reassembler: Reassembler,
    coalescer: Coalescer,
    sequences: Vec<FlowSequence>,
    /// Segments under way, in buffers of their own.
    under_way: Vec<(Arrival, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
    sent: u64,
    delivered: u64,
    dropped: u64,
}

impl Bench {
    fn new() -> Bench {
        Bench {
            store: TrainStore::new(FlowKey::new(7, 9)),
            queue: Queue::new(QueueParams::default()),
            resequencer: Resequencer::new(),
            reassembler: Reassembler::new(),
            coalescer: Coalescer::new(true),
            sequences: vec![FlowSequence(0); 4_096],
            under_way: Vec::with_capacity(4_096),
            spare: (0..4_096).map(|_| Vec::with_capacity(2_048)).collect(),
            sent: 0,
            delivered: 0,
            dropped: 0,
        }
    }

    fn round(&mut self, round: u32, packets: &[(Vec<u8>, Offload)]) {
        let now = Time::ZERO + Duration::from_millis(8) * round;
        for (packet, offload) in packets {
            self.store.read_buffer()[..packet.len()].copy_from_slice(packet);
            let id = self.store.admit(packet.len(), *offload).unwrap();
            let dropped = &mut self.dropped;
            self.queue.enqueue(now, id, &mut self.store, &mut |_| *dropped += 1);
        }
        // What waits for the next round has CoDel at work.
        while self.queue.len() > 600 {
            let choose = &mut |_: &_| Choice::Take { max_bytes: ByteCount(9_000), max_segments: 5 };
            let dropped = &mut self.dropped;
            match self.queue.pull(now, &mut self.store, choose, &mut |_| *dropped += 1) {
                Some(pulled) => self.send(pulled),
                None => break,
            }
        }
        self.arrive(now, round);
        self.coalescer.flush(&mut |_, _| self.delivered += 1);
        if round.is_multiple_of(10) && round < WARM_UP / 4 {
            self.store.trim();
        }
    }

    fn send(&mut self, pulled: Pulled) {
        for i in pulled.first..pulled.first + pulled.count {
            let train = self.store.train(pulled.train);
            let mut buffer = self.spare.pop().unwrap();
            buffer.resize(MAX_HEAD, 0);
            let head = train.head(i, &mut buffer);
            buffer.truncate(head);
            buffer.extend_from_slice(train.body(i));
            let sequence = &mut self.sequences[pulled.bucket.index()];
            let arrival =
                Arrival { bucket: pulled.bucket, sequence: *sequence, partial: train.partial(), unordered: false };
            *sequence = sequence.next();
            self.under_way.push((arrival, buffer));
            self.store.release(SegmentRef { train: pulled.train, segment: i });
            self.sent += 1;
        }
    }

    /// All arrives, in some disorder, but for one in 97; one in 50 in two pieces.
    fn arrive(&mut self, now: Time, round: u32) {
        for pair in self.under_way.chunks_mut(7) {
            pair.reverse();
        }
        self.resequencer.handle_timeout(now, &mut self.coalescer);
        for (n, (arrival, packet)) in (round..).zip(self.under_way.drain(..)) {
            if n % 50 == 0 && packet.len() > 100 {
                let (id, half) = (n as u16, 50);
                let first = (0, true, &packet[..half]);
                let second = (half as u16, false, &packet[half..]);
                for (offset, more, bytes) in [first, second] {
                    let whole = self.reassembler.on_piece(now, id, offset, more, arrival, bytes, HOLD).unwrap();
                    if let Some(w) = whole {
                        let sink = &mut self.coalescer;
                        self.resequencer.on_packet(now, w.arrival, w.packet, HOLD, sink);
                    }
                }
            } else if n % 97 != 0 {
                let sink = &mut self.coalescer;
                self.resequencer.on_packet(now, arrival, &packet, HOLD, sink);
            }
            self.spare.push(packet);
        }
    }
}

#[test]
fn the_packet_path_allocates_nothing_in_steady_state() {
    let packets: Vec<_> =
        (0..6).flat_map(|port| [tcp(port, 42_000), tcp(100 + port, 0), tcp(port, 20_000), tcp(port, 900)]).collect();
    let mut bench = Bench::new();
    for round in 0..WARM_UP {
        bench.round(round, &packets);
    }
    let before = (bench.sent, bench.delivered, bench.resequencer.stats(Time::ZERO));
    let counted = allocations_of(|| (WARM_UP..WARM_UP + WATCHED).for_each(|round| bench.round(round, &packets)));
    let after = bench.resequencer.stats(Time::ZERO);
    assert!(bench.sent > before.0 + u64::from(WATCHED) * 200);
    assert!(bench.delivered > before.1 && bench.dropped > 0);
    assert!(after.reordered > before.2.reordered, "packets were held");
    assert!(after.expired_gaps > before.2.expired_gaps, "packets were lost");
    assert_eq!(counted, 0, "allocations in {WATCHED} rounds");
    let copy = vec![0u8; 9];
    assert_eq!(allocations_of(|| drop(std::hint::black_box(copy.clone()))), 1, "the counter counts");
}
