//! The resequencer against a naive model, and each of its promises by name.

use super::bucket::PAST;
use super::*;
use crate::packet::flow::{FLOW_BUCKETS, GAP_MAX};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const MS: Duration = Duration::from_millis(1);
const HOLD: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(1_000);
/// A bucket rests that is quiet for longer, in ms.
const QUIET: u64 = GAP_MAX.as_millis() as u64;

/// Packets carry their bucket and full number.
#[derive(Default)]
struct Got(Vec<(u16, u64)>);

impl Sink for Got {
    fn deliver(&mut self, packet: &[u8], partial: bool) {
        let number = u64::from_be_bytes(packet[2..10].try_into().unwrap());
        assert_eq!(partial, is_partial(number), "the flag stays with its packet");
        self.0.push((u16::from_be_bytes([packet[0], packet[1]]), number));
    }
}

fn is_partial(number: u64) -> bool {
    number.is_multiple_of(3)
}

fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

/// A resequencer and what it delivered.
struct Bench {
    resequencer: Resequencer,
    got: Got,
}

impl Bench {
    fn new() -> Bench {
        Bench { resequencer: Resequencer::new(), got: Got::default() }
    }

    /// Every bucket of `buckets` waits for `number`.
    fn starting_at(buckets: std::ops::Range<u16>, number: u64) -> Bench {
        let mut bench = Bench::new();
        for bucket in buckets {
            let mut upto = 0;
            while upto < number {
                upto = (upto + FARTHEST - 1).min(number);
                bench.gone(0, bucket, upto - 1);
            }
        }
        bench
    }

    fn packet(&mut self, ms: u64, bucket: u16, number: u64, unordered: bool, hold: Duration) -> Outcome {
        let mut packet = bucket.to_be_bytes().to_vec();
        packet.extend(number.to_be_bytes());
        packet.resize(10 + number as usize % 300, 0);
        let arrival = Arrival {
            bucket: FlowBucket(bucket),
            sequence: FlowSequence(number as u32 & 0xff_ffff),
            partial: is_partial(number),
            unordered,
        };
        self.resequencer.on_packet(at(ms), arrival, &packet, hold, &mut self.got)
    }

    fn send(&mut self, ms: u64, numbers: impl IntoIterator<Item = u64>) -> Vec<Outcome> {
        numbers.into_iter().map(|n| self.packet(ms, 0, n, false, HOLD)).collect()
    }

    fn gone(&mut self, ms: u64, bucket: u16, upto: u64) {
        let upto = FlowSequence(upto as u32 & 0xff_ffff);
        self.resequencer.on_gone(at(ms), FlowBucket(bucket), upto, &mut self.got);
    }

    fn timeout(&mut self, ms: u64) {
        self.resequencer.handle_timeout(at(ms), &mut self.got);
    }

    fn numbers(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.got.0).into_iter().map(|g| g.1).collect()
    }

    fn stats(&self, ms: u64) -> Stats {
        self.resequencer.stats(at(ms))
    }
}

/// What a bucket should do, number by number.
#[derive(Default)]
struct Model {
    first: u64,
    next: u64,
    end: u64,
    used: u64,
    delivered: BTreeSet<u64>,
    waiting: BTreeSet<u64>,
    noticed: BTreeMap<u64, u64>,
}

impl Model {
    fn packet(&mut self, ms: u64, number: u64, unordered: bool, out: &mut Vec<u64>) -> Outcome {
        self.used = ms;
        if self.delivered.contains(&number) || self.waiting.contains(&number) {
            return Outcome::Duplicate;
        }
        for missing in self.end..number {
            self.noticed.insert(missing, ms);
        }
        self.end = self.end.max(number + 1);
        if number <= self.next || unordered {
            let late = number < self.next;
            self.deliver(number, out);
            self.release(out);
            return if late { Outcome::Late } else { Outcome::Delivered };
        }
        self.waiting.insert(number);
        Outcome::Held
    }

    fn deliver(&mut self, number: u64, out: &mut Vec<u64>) {
        assert!(self.delivered.insert(number));
        out.push(number);
    }

    fn release(&mut self, out: &mut Vec<u64>) {
        loop {
            if self.waiting.remove(&self.next) {
                self.deliver(self.next, out);
            } else if !self.delivered.contains(&self.next) {
                return;
            }
            self.next += 1;
        }
    }

    fn timeout(&mut self, ms: u64, hold: u64, out: &mut Vec<u64>) {
        while self.next < self.end && self.noticed[&self.next] + hold <= ms {
            self.used = ms;
            self.next += 1;
            self.release(out);
        }
    }

    fn gone(&mut self, ms: u64, upto: u64, out: &mut Vec<u64>) {
        self.used = ms;
        while self.next <= upto {
            self.release(out);
            self.next = self.next.max((self.next + 1).min(upto + 1));
        }
        self.end = self.end.max(self.next);
        self.release(out);
    }

    /// Of one that rests nothing is late any more.
    fn shrink(&mut self, ms: u64) {
        if self.next == self.end && ms - self.used > QUIET {
            self.delivered.extend(self.first..self.next);
        }
    }
}

fn shrink(ms: u64, bench: &mut Bench, models: &mut [Model]) {
    bench.resequencer.shrink_idle(at(ms));
    models.iter_mut().for_each(|model| model.shrink(ms));
}

#[derive(Clone, Debug)]
enum Step {
    Packet { bucket: u16, number: u64, unordered: bool },
    Gone { bucket: u16, upto: u64 },
    Wait { ms: u64 },
    Hold { ms: u64 },
    Shrink,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0..3u16, 0..80u64, 0..5u8)
            .prop_map(|(bucket, number, u)| Step::Packet { bucket, number, unordered: u == 0 }),
        1 => (0..3u16, 0..80u64).prop_map(|(bucket, upto)| Step::Gone { bucket, upto }),
        3 => (0..40u64).prop_map(|ms| Step::Wait { ms }),
        1 => (QUIET - 1..QUIET + 2).prop_map(|ms| Step::Wait { ms }),
        1 => (0..90u64).prop_map(|ms| Step::Hold { ms }),
        2 => Just(Step::Shrink),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn it_does_what_the_naive_model_does(
        steps in proptest::collection::vec(any_step(), 1..300), wraps in any::<bool>()
    ) {
        let base = if wraps { (1 << 24) - 40 } else { 0 };
        let mut bench = Bench::starting_at(0..3, base);
        let mut models: Vec<Model> =
            (0..3).map(|_| Model { first: base, next: base, end: base, ..Model::default() }).collect();
        let (mut now, mut hold) = (1_000, 50);
        for step in steps {
            let mut out = vec![Vec::new(); 3];
            match step {
                Step::Packet { bucket, number, unordered } => {
                    let b = usize::from(bucket);
                    let expected = models[b].packet(now, base + number, unordered, &mut out[b]);
                    let outcome = bench.packet(now, bucket, base + number, unordered, MS * hold as u32);
                    prop_assert_eq!(outcome, expected);
                }
                Step::Gone { bucket, upto } => {
                    models[usize::from(bucket)].gone(now, base + upto, &mut out[usize::from(bucket)]);
                    bench.gone(now, bucket, base + upto);
                }
                Step::Wait { ms } => now += ms,
                Step::Hold { ms } => {
                    hold = ms;
                    bench.resequencer.set_hold(MS * ms as u32);
                }
                Step::Shrink => shrink(now, &mut bench, &mut models),
            }
            bench.timeout(now);
            for (bucket, model) in models.iter_mut().enumerate() {
                model.timeout(now, hold, &mut out[bucket]);
                let got = bench.got.0.iter().filter(|g| usize::from(g.0) == bucket);
                prop_assert_eq!(&got.map(|g| g.1).collect::<Vec<_>>(), &out[bucket]);
            }
            bench.got.0.clear();
            let waiting: usize = models.iter().map(|m| m.waiting.len()).sum();
            prop_assert_eq!(bench.stats(now).held_packets, waiting);
            let due = models.iter().filter(|m| m.next < m.end).map(|m| m.noticed[&m.next] + hold).min();
            prop_assert_eq!(bench.resequencer.poll_timeout(), due.map(at));
        }
    }

    #[test]
    fn without_loss_and_with_patience_the_order_is_exact(
        keys in proptest::collection::vec((any::<u16>(), 0..3u8), 1..400), start in 0..400u64
    ) {
        let base = (1 << 24) - start;
        let mut sent: Vec<(u16, u64)> = Vec::new();
        for (n, &(key, copies)) in keys.iter().enumerate() {
            for copy in 0..=copies {
                sent.push((key.rotate_left(u32::from(copy)), base + n as u64));
            }
        }
        sent.sort();
        let mut bench = Bench::starting_at(0..1, base);
        for (ms, (_, number)) in sent.into_iter().enumerate() {
            bench.packet(ms as u64, 0, number, false, LONG);
            bench.timeout(ms as u64);
        }
        let expected: Vec<u64> = (base..base + keys.len() as u64).collect();
        prop_assert_eq!(bench.numbers(), expected);
    }
}

#[test]
fn a_packet_ahead_waits_for_the_one_before() {
    let mut bench = Bench::new();
    use Outcome::*;
    assert_eq!(bench.send(0, [0, 2, 3, 2, 1, 1]), [Delivered, Held, Held, Duplicate, Delivered, Duplicate]);
    assert_eq!(bench.numbers(), [0, 1, 2, 3]);
    assert_eq!(bench.resequencer.poll_timeout(), None);
    let stats = bench.stats(0);
    assert_eq!((stats.duplicates, stats.reordered, stats.reordering_extent), (2, 1, 2));
}

#[test]
fn gaps_expire_each_in_its_own_time_and_what_comes_then_is_late_once() {
    let mut bench = Bench::new();
    bench.send(10, [1]);
    bench.send(30, [3]);
    assert_eq!(bench.resequencer.poll_timeout(), Some(at(60)));
    bench.timeout(59);
    assert_eq!(bench.numbers(), [0; 0]);
    bench.timeout(60);
    assert_eq!(bench.numbers(), [1]);
    assert_eq!(bench.stats(60).longest_wait, MS * 50);
    assert_eq!(bench.resequencer.poll_timeout(), Some(at(80)));
    bench.timeout(80);
    assert_eq!(bench.numbers(), [3]);
    assert_eq!(bench.send(90, [0, 0]), [Outcome::Late, Outcome::Duplicate]);
    assert_eq!(bench.numbers(), [0]);
    let stats = bench.stats(90);
    assert_eq!((stats.expired_gaps, stats.late, stats.held_packets), (2, 1, 0));
}

#[test]
fn what_is_given_up_before_its_time_has_waited_until_then_and_no_later_wait_is_measured_by_it() {
    let mut bench = Bench::new();
    bench.send(10, [1, 3]);
    bench.resequencer.give_up_all(at(30), &mut bench.got);
    assert_eq!((bench.numbers(), bench.resequencer.poll_timeout()), (vec![1, 3], None));
    assert_eq!(bench.stats(30).longest_wait, MS * 20);
    bench.send(5_000, [5]);
    bench.timeout(5_050);
    let stats = bench.stats(5_050);
    assert_eq!((stats.longest_wait, stats.expired_gaps), (MS * 50, 1), "only the last was given up for its time");
}

#[test]
fn a_changed_hold_moves_the_deadlines_that_run() {
    let mut bench = Bench::new();
    bench.send(10, [1]);
    for (hold, deadline) in [(20, 30), (90, 100)] {
        bench.resequencer.set_hold(MS * hold);
        assert_eq!(bench.resequencer.poll_timeout(), Some(at(deadline)));
    }
}

#[test]
fn a_split_gap_keeps_the_time_it_was_noticed_at() {
    let mut bench = Bench::new();
    bench.send(10, [5]);
    bench.send(40, [2]);
    bench.timeout(60);
    assert_eq!(bench.numbers(), [2, 5]);
}

#[test]
fn gone_ends_the_wait_and_loses_nothing() {
    let mut bench = Bench::new();
    bench.send(0, [2, 4, 9]);
    bench.gone(1, 0, 3);
    assert_eq!(bench.numbers(), [2, 4]);
    bench.gone(2, 0, 6);
    assert_eq!(bench.send(3, [7, 8, 3]), [Outcome::Delivered, Outcome::Delivered, Outcome::Late]);
    assert_eq!(bench.numbers(), [7, 8, 9, 3]);
    bench.gone(4, 0, 19);
    assert_eq!(bench.send(5, [20]), [Outcome::Delivered]);
    bench.gone(6, 0, 20 + 2 * FARTHEST);
    assert_eq!(bench.send(7, [21]), [Outcome::Delivered]);
}

#[test]
fn flows_do_not_wait_for_each_other() {
    let mut bench = Bench::new();
    bench.packet(0, 1, 1, false, HOLD);
    assert_eq!(bench.packet(0, 2, 0, false, HOLD), Outcome::Delivered);
    assert_eq!(bench.got.0, [(2, 0)]);
}

#[test]
fn an_unordered_packet_goes_at_once_and_only_once() {
    let mut bench = Bench::new();
    assert_eq!(bench.packet(0, 0, 1, true, HOLD), Outcome::Delivered);
    assert_eq!(bench.packet(0, 0, 1, true, HOLD), Outcome::Duplicate);
    assert_eq!(bench.send(0, [0, 2]), [Outcome::Delivered, Outcome::Delivered]);
    assert_eq!(bench.numbers(), [1, 0, 2]);
}

#[test]
fn numbers_before_the_first_and_long_ago_are_dropped() {
    let mut bench = Bench::new();
    assert_eq!(bench.send(0, [0xff_ffff, 0x80_0001]), [Outcome::Duplicate; 2]);
    bench.gone(0, 0, PAST + 1);
    assert_eq!(bench.send(0, [1, 2, 2]), [Outcome::Duplicate, Outcome::Late, Outcome::Duplicate]);
    assert_eq!(bench.stats(0).too_old, 2);
}

#[test]
fn a_bucket_holds_so_many_packets_and_no_more() {
    let mut bench = Bench::new();
    let most = MAX_HELD_PER_BUCKET as u64;
    bench.send(0, 1..=most);
    assert_eq!(bench.stats(0).held_packets, MAX_HELD_PER_BUCKET);
    bench.send(0, [most + 2]);
    assert_eq!(bench.numbers(), (1..=most).collect::<Vec<_>>());
    let stats = bench.stats(0);
    assert_eq!((stats.held_packets, stats.overrun_gaps), (1, 1));
}

#[test]
fn all_buckets_together_hold_so_many_bytes_and_no_more() {
    let mut bench = Bench::new();
    let packet = [0; 30_000];
    for n in 0..2_000u16 {
        let arrival = Arrival {
            bucket: FlowBucket(n % 300),
            sequence: FlowSequence(1 + u32::from(n / 300)),
            partial: true,
            ..Arrival::default()
        };
        let now = at(u64::from(n));
        let mut delivered = Coalescer::new(false);
        bench.resequencer.on_packet(now, arrival, &packet, LONG, &mut delivered);
        let held = bench.stats(u64::from(n)).held_bytes.0;
        assert!(held <= MAX_HELD as u64);
        assert!(n < 1_200 || held > MAX_HELD as u64 / 2);
    }
    let given_up = bench.stats(2_000).overrun_gaps;
    assert!((50..=600).contains(&given_up), "{given_up}");
}

#[test]
fn a_jump_far_ahead_gives_up_what_is_missing() {
    for jump in [SPAN, SPAN + 10, FARTHEST, 1 << 22] {
        let mut bench = Bench::new();
        bench.send(0, [1, 3]);
        assert_eq!(bench.send(0, [jump + 4]), [Outcome::Delivered], "{jump}");
        assert_eq!(bench.send(0, [jump + 6, jump + 5]), [Outcome::Held, Outcome::Delivered]);
        assert_eq!(bench.numbers(), [1, 3, jump + 4, jump + 5, jump + 6]);
    }
    let mut bench = Bench::new();
    bench.send(0, [10, SPAN + 9]);
    assert_eq!(bench.numbers(), [10], "only the first gap is in the way");
    assert_eq!(bench.stats(0).held_packets, 1);
}

#[test]
fn idle_memory_is_freed() {
    let mut bench = Bench::new();
    bench.send(0, (1..2_000).rev());
    bench.send(0, [0]);
    (0..3).for_each(|_| bench.resequencer.shrink_idle(at(0)));
    assert_eq!(bench.numbers(), (0..2_000).collect::<Vec<_>>());
    assert_eq!(bench.resequencer.shelf.memory(), 0);
    assert_eq!(bench.send(0, [2_001, 2_000]), [Outcome::Held, Outcome::Delivered]);
}

#[test]
fn a_peer_that_opens_the_longest_gap_in_every_bucket_gets_little_memory() {
    let mut resequencer = Resequencer::new();
    let mut got = Got::default();
    for hash in 0..FLOW_BUCKETS as u64 {
        let number = SPAN - 1;
        let packet = [&(hash as u16).to_be_bytes()[..], &number.to_be_bytes()].concat();
        let arrival = Arrival {
            bucket: FlowBucket::of_hash(hash),
            sequence: FlowSequence::of(number),
            partial: is_partial(number),
            unordered: false,
        };
        resequencer.on_packet(at(0), arrival, &packet, LONG, &mut got);
    }
    let bytes = 4 * resequencer.places;
    assert!(bytes <= 4 * MAX_RING_PLACES + (SPAN as usize * 4) + FLOW_BUCKETS * SMALL_SPAN as usize * 4);
    resequencer.handle_timeout(at(0) + LONG, &mut got);
    assert_eq!(got.0.len(), FLOW_BUCKETS, "each arrived all the same");
    (0..2).for_each(|_| resequencer.shrink_idle(at(0) + LONG));
    assert_eq!(resequencer.places, 0);
}

#[test]
fn what_was_given_up_comes_late_until_its_bucket_rests() {
    for (quiet, late) in [(QUIET, Outcome::Late), (QUIET + 1, Outcome::Duplicate)] {
        let mut bench = Bench::new();
        bench.send(0, [1]);
        bench.timeout(50);
        bench.resequencer.shrink_idle(at(50 + quiet));
        let outcomes = bench.send(50 + quiet, [0, 0, 1, 2]);
        assert_eq!(outcomes, [late, Outcome::Duplicate, Outcome::Duplicate, Outcome::Delivered], "{quiet} ms");
    }
}

#[test]
fn a_bucket_that_rested_counts_on_and_restores_order() {
    let mut bench = Bench::starting_at(0..3, (1 << 24) - 2);
    bench.resequencer.shrink_idle(at(QUIET + 1));
    assert_eq!(bench.resequencer.buckets.in_use(), 0);
    let first = (1 << 24) - 2;
    assert_eq!(bench.send(QUIET + 1, [first + 3, first + 1]), [Outcome::Held; 2]);
    (0..2).for_each(|_| bench.resequencer.shrink_idle(at(9 * QUIET)));
    assert_eq!(bench.resequencer.buckets.in_use(), 1, "it waits");
    assert_eq!(bench.send(9 * QUIET, [first, first + 2]), [Outcome::Delivered; 2]);
    assert_eq!(bench.numbers(), (first..first + 4).collect::<Vec<_>>());
}

#[test]
fn a_bucket_rests_though_all_of_it_was_given_up_at_once() {
    let mut bench = Bench::new();
    bench.send(0, [1]);
    bench.resequencer.give_up_all(at(1), &mut bench.got);
    for (ms, in_use) in [(1, 1), (1 + QUIET, 1), (2 + QUIET, 0)] {
        bench.resequencer.shrink_idle(at(ms));
        assert_eq!(bench.resequencer.buckets.in_use(), in_use, "at {ms} ms");
    }
}
