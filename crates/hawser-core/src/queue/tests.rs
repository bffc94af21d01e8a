//! Fairness, order and conservation of the queue.

use super::*;
use crate::packet::SegmentRef;
use crate::packet::samples::{KEY, Sample, admit};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

mod ack_filter;
mod codel;
mod priorities;
mod shorten;
mod ways;

const MS: Duration = Duration::from_millis(1);
const ALL: Choice = Choice::Take { max_bytes: ByteCount::MAX, max_segments: u16::MAX };

fn segments(max_segments: u16) -> Choice {
    Choice::Take { max_bytes: ByteCount::MAX, max_segments }
}

/// A queue, its store, the time, and a model of what must wait where.
struct Bench {
    queue: Queue,
    store: TrainStore,
    now: Time,
    model: BTreeMap<FlowBucket, VecDeque<(SegmentRef, u64)>>,
    dropped: Vec<Dropped>,
}

impl Bench {
    fn new(params: QueueParams) -> Bench {
        Bench {
            queue: Queue::new(params),
            store: TrainStore::new(KEY),
            now: Time::ZERO,
            model: BTreeMap::new(),
            dropped: Vec::new(),
        }
    }

    /// Enqueues a train of `count` segments of 1,000 bytes of payload and returns its bucket.
    fn enqueue(&mut self, port: u16, count: usize, ect: bool) -> FlowBucket {
        self.enqueue_bytes(port, count * 1_000, ect)
    }

    fn enqueue_bytes(&mut self, port: u16, payload: usize, ect: bool) -> FlowBucket {
        let sample =
            Sample { ports: (port, 1), payload, gso_size: 1_000, traffic_class: u8::from(ect), ..Sample::default() };
        let (packet, offload) = sample.partial();
        let id = admit(&mut self.store, &packet, offload);
        let train = self.store.train(id);
        let bucket = self.queue.place(self.now, train.flow());
        let waiting = self.model.entry(bucket).or_default();
        for segment in 0..train.segments() {
            let len = train.segment_len(segment) as u64;
            waiting.push_back((SegmentRef { train: id, segment }, len));
        }
        let mut dropped = Vec::new();
        self.queue.enqueue(self.now, id, &mut self.store, &mut |d| dropped.push(d));
        self.lose(dropped);
        bucket
    }

    fn lose(&mut self, dropped: Vec<Dropped>) {
        for d in &dropped {
            match d.reason {
                DropReason::Codel | DropReason::Overflow => self.leave_anywhere(d.bucket, d.segment, d.bytes),
                _ => self.leave(d.bucket, d.segment, d.bytes),
            }
        }
        self.dropped.extend(dropped);
    }

    /// A segment left, which waited in its bucket: CoDel drops from the middle of a long queue, and overflow what
    /// comes.
    fn leave_anywhere(&mut self, bucket: FlowBucket, segment: SegmentRef, bytes: ByteCount) {
        let waiting = self.model.get_mut(&bucket).expect("it had something waiting");
        let at = waiting.iter().position(|w| *w == (segment, bytes.0)).expect("it waited");
        waiting.remove(at);
    }

    /// A segment left: it must have been the first of its bucket.
    fn leave(&mut self, bucket: FlowBucket, segment: SegmentRef, bytes: ByteCount) {
        let first = self.model.get_mut(&bucket).and_then(VecDeque::pop_front);
        assert_eq!(first, Some((segment, bytes.0)), "in order, exactly once");
    }

    fn pull(&mut self, choose: &mut dyn FnMut(&FlowView) -> Choice) -> Option<Pulled> {
        let (mut dropped, mut asked) = (Vec::new(), None);
        let ask = &mut |view: &FlowView| {
            asked = Some((view.bucket, view.head_len.0));
            choose(view)
        };
        let pulled = self.queue.pull(self.now, &mut self.store, ask, &mut |d| dropped.push(d));
        self.lose(dropped);
        if let Some(p) = pulled {
            assert!(p.count > 0);
            let len = self.store.train(p.train).segment_len(p.first) as u64;
            assert_eq!(asked, Some((p.bucket, len)), "what is given was asked for");
            let mut bytes = 0;
            for segment in p.first..p.first + p.count {
                let segment = SegmentRef { train: p.train, segment };
                let len = self.store.train(p.train).segment_len(segment.segment) as u64;
                self.leave(p.bucket, segment, ByteCount(len));
                self.store.release(segment);
                bytes += len;
            }
            assert_eq!(p.bytes.0, bytes);
        }
        pulled
    }

    fn drain(&mut self) {
        while self.pull(&mut |_| ALL).is_some() {}
        assert!(self.queue.is_empty());
        assert_eq!(self.queue.bytes(), ByteCount::ZERO);
        assert_eq!(self.store.bytes_held(), 0);
    }

    fn check(&mut self) {
        let waiting = || self.model.values().flatten();
        assert_eq!(self.queue.len(), waiting().count());
        assert_eq!(self.queue.bytes().0, waiting().map(|w| w.1).sum::<u64>());
        assert!(self.queue.bytes() <= self.queue.limit);
        let mut views = Vec::new();
        self.pull(&mut |view| {
            views.push(*view);
            Choice::Skip
        });
        let backlogged = self.model.values().filter(|w| !w.is_empty()).count();
        assert_eq!(views.len(), backlogged.min(usize::from(looks::MAX_LOOKS)));
        for view in views {
            let waiting = &self.model[&view.bucket];
            assert_eq!(view.backlog.0, waiting.iter().map(|w| w.1).sum::<u64>());
            assert_eq!((view.head_len.0, view.flows), (waiting[0].1, backlogged));
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Enqueue { port: u16, payload: usize, ect: bool },
    Pull { answers: Vec<Choice> },
    Wait { ms: u32 },
}

fn any_step() -> impl Strategy<Value = Step> {
    let answer = prop_oneof![
        (0..8_000u64, 0..6u16)
            .prop_map(|(bytes, max_segments)| Choice::Take { max_bytes: ByteCount(bytes), max_segments }),
        Just(Choice::Skip),
        Just(Choice::Stop),
        Just(ALL),
    ];
    prop_oneof![
        (0..24u16, 0..9_000usize, any::<bool>()).prop_map(|(port, payload, ect)| Step::Enqueue { port, payload, ect }),
        proptest::collection::vec(answer, 1..5).prop_map(|answers| Step::Pull { answers }),
        (0..60u32).prop_map(|ms| Step::Wait { ms }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn everything_is_pulled_or_dropped_once_and_in_order(
        steps in proptest::collection::vec(any_step(), 1..150),
        kept in 0..80u32,
    ) {
        let mut bench = Bench::new(QueueParams { limit: ByteCount(60_000), ..QueueParams::default() });
        bench.queue.set_kept(MS * kept);
        for step in steps {
            match step {
                Step::Enqueue { port, payload, ect } => {
                    bench.enqueue_bytes(port, payload, ect);
                }
                Step::Pull { answers } => {
                    let mut answers = answers.into_iter().cycle();
                    bench.pull(&mut |_| answers.next().unwrap());
                }
                Step::Wait { ms } => bench.now = bench.now + MS * ms,
            }
            bench.check();
        }
        bench.drain();
    }
}

#[test]
fn flows_share_by_bytes_whatever_their_packets() {
    let mut bench = Bench::new(QueueParams::default());
    let (big, small) = (bench.enqueue(1, 60, false), {
        for _ in 0..600 {
            bench.enqueue_bytes(2, 100, false);
        }
        bench.enqueue_bytes(2, 100, false)
    });
    let mut sent = BTreeMap::new();
    while bench.queue.bytes().0 > 80_000 {
        let pulled = bench.pull(&mut |_| segments(4)).unwrap();
        *sent.entry(pulled.bucket).or_insert(0) += pulled.bytes.0;
    }
    let (big, small) = (sent[&big] as f64, sent[&small] as f64);
    assert!((0.8..1.25).contains(&(big / small)), "{big} against {small}");
}

#[test]
fn a_sparse_flow_goes_before_a_bulk_flow() {
    let mut bench = Bench::new(QueueParams::default());
    let bulk = bench.enqueue(1, 60, false);
    for _ in 0..3 {
        let pulled = bench.pull(&mut |_| segments(2)).unwrap();
        assert_eq!(pulled.bucket, bulk);
    }
    let sparse = bench.enqueue_bytes(2, 100, false);
    let mut view = None;
    let pulled = bench.pull(&mut |v| {
        view = Some(*v);
        ALL
    });
    assert_eq!(pulled.unwrap().bucket, sparse);
    assert!(view.unwrap().sparse);
}

#[test]
fn a_skipped_flow_keeps_its_turn() {
    let mut bench = Bench::new(QueueParams::default());
    let first = bench.enqueue(1, 3, false);
    let second = bench.enqueue(2, 3, false);
    let pulled = bench.pull(&mut |v| {
        if v.bucket == first { Choice::Skip } else { segments(1) }
    });
    assert_eq!(pulled.unwrap().bucket, second);
    let pulled = bench.pull(&mut |_| segments(1));
    assert_eq!(pulled.unwrap().bucket, first);
}

#[test]
fn a_pull_looks_at_sixteen_flows_and_stops_when_told() {
    let mut bench = Bench::new(QueueParams::default());
    for port in 0..40 {
        bench.enqueue(port, 1, false);
    }
    let mut looks = 0;
    assert_eq!(
        bench.pull(&mut |_| {
            looks += 1;
            Choice::Skip
        }),
        None
    );
    assert_eq!(looks, 16);
    assert_eq!(
        bench.pull(&mut |_| {
            looks += 1;
            Choice::Stop
        }),
        None
    );
    assert_eq!(looks, 17);
}

#[test]
fn flows_of_other_paths_are_passed_by_up_to_a_bound() {
    for (others, found) in [(MAX_PASSED - 1, true), (MAX_PASSED, false)] {
        let mut bench = Bench::new(QueueParams::default());
        let mut foreign = std::collections::BTreeSet::new();
        for port in 2.. {
            if foreign.len() == others {
                break;
            }
            foreign.insert(bench.enqueue(port, 1, false));
        }
        let own = (60_000..).map(|port| bench.enqueue(port, 1, false)).find(|bucket| !foreign.contains(bucket));
        let choose = &mut |v: &FlowView| if Some(v.bucket) == own { ALL } else { Choice::Foreign };
        assert_eq!(bench.pull(choose).is_some(), found, "behind {others}");
    }
}

#[test]
fn a_train_is_cut_where_the_path_says() {
    let mut bench = Bench::new(QueueParams::default());
    bench.enqueue_bytes(1, 4_500, false);
    let take = |bytes| Choice::Take { max_bytes: ByteCount(bytes), max_segments: u16::MAX };
    let mut got = Vec::new();
    for choice in [take(1_051), take(1_052), take(2_200), take(1_603), take(1_604)] {
        got.push(bench.pull(&mut |_| choice).map(|p| (p.first, p.count, p.bytes.0)));
    }
    let expected = [None, Some((0, 1, 1_052)), Some((1, 2, 2_104)), Some((3, 1, 1_052)), Some((4, 1, 552))];
    assert_eq!(got, expected);
}

#[test]
fn a_view_tells_waits_and_bursts() {
    let mut bench = Bench::new(QueueParams::default());
    let bucket = bench.enqueue(1, 2, false);
    bench.now = bench.now + MS * 3;
    bench.enqueue(2, 1, false);
    bench.pull(&mut |_| segments(1));
    bench.now = bench.now + MS;
    let mut view = None;
    bench.pull(&mut |v| {
        view = Some(*v);
        Choice::Stop
    });
    assert_eq!(
        view,
        Some(FlowView {
            bucket,
            tag: bench.queue.tag(bucket),
            backlog: ByteCount(1_052),
            queue_backlog: ByteCount(2_104),
            sparse: true,
            head_wait: MS * 4,
            head_len: ByteCount(1_052),
            backlogged_for: MS * 4,
            sent_in_burst: ByteCount(1_052),
            flows: 2,
            treatment: crate::rules::Treatment::default(),
        })
    );
    assert_eq!(bench.queue.head_wait(bench.now), MS * 4);
    bench.drain();
    assert_eq!(bench.queue.head_wait(bench.now), Duration::ZERO);
}

#[test]
fn overflow_costs_the_fattest_flow_what_comes_and_its_head_where_others_come() {
    let mut bench = Bench::new(QueueParams { limit: ByteCount(200_000), ..QueueParams::default() });
    let sparse: Vec<FlowBucket> = (2..10).map(|port| bench.enqueue(port, 1, false)).collect();
    let mut oldest = None;
    let fat = loop {
        let fat = bench.enqueue(1, 20, false);
        if !bench.dropped.is_empty() {
            break fat;
        }
        oldest = oldest.or_else(|| bench.model[&fat].front().map(|(segment, _)| segment.train));
    };
    let of_fat = |dropped: &[Dropped]| dropped.iter().all(|d| (d.bucket, d.reason) == (fat, DropReason::Overflow));
    assert!(!sparse.contains(&fat));
    let refused = std::mem::take(&mut bench.dropped);
    assert!(of_fat(&refused));
    let newest = refused[0].segment.train;
    let whole: Vec<SegmentRef> = (0..20).map(|segment| SegmentRef { train: newest, segment }).collect();
    assert_eq!(refused.iter().map(|d| d.segment).collect::<Vec<_>>(), whole);
    let other = bench.enqueue(11, 20, false);
    assert!(other != fat && of_fat(&bench.dropped));
    let head: Vec<_> = (0..16).map(|segment| SegmentRef { train: oldest.expect("some wait"), segment }).collect();
    assert_eq!(bench.dropped.iter().map(|d| d.segment).take(16).collect::<Vec<_>>(), head);
    bench.check();
    bench.drain();
}

#[test]
fn a_flow_walks_new_old_idle_and_new_again() {
    let mut bench = Bench::new(QueueParams::default());
    let bucket = bench.enqueue(1, 4, false);
    let place = |bench: &Bench| bench.queue.flows.get(bucket).place;
    assert_eq!(place(&bench), Place::New);
    bench.pull(&mut |_| segments(2));
    bench.pull(&mut |_| segments(1));
    assert_eq!(place(&bench), Place::Old, "the quantum is used up");
    bench.pull(&mut |_| segments(1));
    bench.pull(&mut |_| ALL);
    assert_eq!(place(&bench), Place::Idle, "its turn came with nothing waiting");
    bench.enqueue(1, 1, false);
    assert_eq!(place(&bench), Place::New);
    let other = bench.enqueue(2, 1, false);
    bench.pull(&mut |v| {
        if v.bucket == other { Choice::Skip } else { segments(1) }
    });
    bench.pull(&mut |_| Choice::Stop);
    assert_eq!(place(&bench), Place::Old, "empty, and others wait");
}

#[test]
fn a_sparse_flow_goes_first_until_it_has_used_up_a_quantum() {
    let mut bench = Bench::new(QueueParams::default());
    let fat = bench.enqueue(2, 40, false);
    bench.pull(&mut |_| segments(2));
    let mut firsts = 0;
    // Packets of 700 bytes or so: a quantum holds few of them.
    let sparse = loop {
        let sparse = bench.enqueue(1, 1, false);
        let mut asked = None;
        bench.pull(&mut |view| {
            asked.get_or_insert(view.bucket);
            segments(1)
        });
        if asked != Some(sparse) {
            break sparse;
        }
        firsts += 1;
        // Its turn with nothing waiting, beside a flow that waits.
        bench.pull(&mut |_| Choice::Stop);
        assert!(firsts < 40, "it never used up its quantum");
    };
    assert!(firsts >= 2 && sparse != fat, "{firsts}");
    bench.check();
}

#[test]
fn a_sparse_flow_that_lasts_goes_first_in_every_round() {
    let mut bench = Bench::new(QueueParams::default());
    bench.queue.set_quantum(ByteCount(20_000));
    let fill = |bench: &mut Bench| (2..42).for_each(|port| _ = bench.enqueue(port, 20, false));
    fill(&mut bench);
    (0..40).for_each(|_| _ = bench.pull(&mut |_| ALL));
    for packet in 0..200 {
        let sparse = bench.enqueue(1, 1, false);
        let first = bench.pull(&mut |_| ALL).expect("something waits");
        assert_eq!(first.bucket, sparse, "packet {packet}");
        // The fat flows have a turn each before its next packet.
        fill(&mut bench);
        (0..40).for_each(|_| assert_ne!(bench.pull(&mut |_| ALL).expect("something waits").bucket, sparse));
    }
    bench.check();
}
