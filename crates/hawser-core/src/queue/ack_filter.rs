//! The ACK filter of bulk (RFC 3449 section 5.2.1): where they follow each other closely, one in each gap.
//!
//! A bond delivers in order what came by several paths, so acknowledgements go on while its thinnest path still sends.
//! Linux's HyStart takes a train of them that lasts half a round trip for a full pipe, and a gap of 2 ms for the
//! train's end (Ha and Rhee, "Taming the elephants: new TCP slow start", 2011; `tcp_cubic.c`): a slow start over two
//! paths ended at a fifth of what fills them. With gaps in it only a growing delay ends it. A thin way back has less to
//! carry besides (RFC 3449 section 5.2.1).
//!
//! 1. The first of them go at once, so that a short answer is not delayed.
//! 2. From then on one is held, and gives way to the next.
//! 3. It goes when its time is over, or before anything else of its flow.

use super::{Dropped, Queue, drop_filtered};
use crate::packet::{FlowBucket, TrainId, TrainStore};
use crate::units::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// A flow's acknowledgements. None came at first. Owned by its flow.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Acks {
    /// When the first one came, for a while.
    began: Time,
    /// When the last one came or went.
    last: Time,
    /// How many came closely behind each other.
    burst: u16,
    /// The one that is held.
    held: Option<TrainId>,
}

/// How far apart acknowledgements of bulk are. Zero: each goes at once. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct AckSpacing {
    /// The time between two.
    pub gap: Duration,
    /// This long after a flow began, or began anew after a pause as long: its slow start.
    pub within: Duration,
    /// As many go at once after a pause.
    pub burst: u16,
}

/// What is held of all flows. Holds nothing, and lets all go at once, at first. Owned by the queue.
#[derive(Debug, Default)]
pub(super) struct AckFilter {
    spacing: AckSpacing,
    /// When each goes, the first first; of those that went before their time too.
    due: VecDeque<(Time, FlowBucket)>,
}

impl Acks {
    /// One came: whether it is to be held.
    fn is_to_wait(&mut self, now: Time, spacing: AckSpacing) -> bool {
        let pause = now.since(self.last);
        self.last = now;
        if pause >= spacing.within {
            self.began = now;
        }
        self.burst = if pause < spacing.gap { self.burst.saturating_add(1) } else { 1 };
        self.burst > spacing.burst && now.since(self.began) < spacing.within
    }

    fn release(&mut self, now: Time) -> Option<TrainId> {
        self.last = now;
        self.held.take()
    }
}

impl Queue {
    /// Acknowledgements of bulk are this far apart from now on; zero: each goes at once, but those that are held
    /// already.
    pub fn set_ack_spacing(&mut self, spacing: AckSpacing) {
        self.ack_filter.spacing = spacing;
    }

    /// When an acknowledgement is to be let go.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.ack_filter.due.front().map(|&(at, _)| at)
    }

    /// Step 3, for those whose time is over.
    pub fn handle_timeout(&mut self, now: Time, store: &mut TrainStore, dropped: &mut dyn FnMut(Dropped)) {
        self.release_acks(now, now, store, dropped);
    }

    /// The same for those whose time is over at `upto`.
    pub fn release_acks(&mut self, now: Time, upto: Time, store: &mut TrainStore, dropped: &mut dyn FnMut(Dropped)) {
        while let Some((_, bucket)) = self.ack_filter.due.pop_front_if(|(at, _)| *at <= upto) {
            if let Some(held) = self.flows.get_mut(bucket).acks.release(now) {
                self.admit(now, held, bucket, store, dropped);
            }
        }
    }

    /// Steps 1 to 3 for a train that comes: whether it is held.
    pub(super) fn holds(
        &mut self,
        now: Time,
        id: TrainId,
        bucket: FlowBucket,
        store: &mut TrainStore,
        dropped: &mut dyn FnMut(Dropped),
    ) -> bool {
        let train = store.train(id);
        let spacing = self.ack_filter.spacing;
        let acks = &mut self.flows.get_mut(bucket).acks;
        if let Some(older) = acks.held {
            if train.treatment() == store.train(older).treatment() && train.supersedes(store.train(older)) {
                acks.held = Some(id);
                acks.last = now;
                drop_filtered(older, bucket, store, dropped);
                return true;
            }
            acks.held = None;
            self.admit(now, older, bucket, store, dropped);
        }
        let train = store.train(id);
        let acks = &mut self.flows.get_mut(bucket).acks;
        if spacing.gap.is_zero() || !train.is_bare_ack() || !acks.is_to_wait(now, spacing) {
            return false;
        }
        acks.held = Some(id);
        self.ack_filter.due.push_back((now + spacing.gap, bucket));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Choice, QueueParams};
    use super::*;
    use crate::packet::samples::{KEY, Sample, admit};
    use crate::units::ByteCount;

    const US: Duration = Duration::from_micros(1);
    const GAP: Duration = Duration::from_millis(3);
    const WITHIN: Duration = Duration::from_millis(500);

    /// A queue whose packets leave as soon as they may, and when each left: time in µs, acknowledgement number, whether
    /// it was nothing but that.
    struct Bench {
        queue: Queue,
        store: TrainStore,
        now: Time,
        left: Vec<(u64, u32, bool)>,
    }

    impl Bench {
        fn new() -> Bench {
            let mut queue = Queue::new(QueueParams::default());
            queue.set_ack_spacing(AckSpacing { gap: GAP, within: WITHIN, burst: 16 });
            let now = Time::ZERO + Duration::from_secs(1);
            Bench { queue, store: TrainStore::new(KEY), now, left: Vec::new() }
        }

        /// One packet of a flow comes: an acknowledgement up to `ack`, with so much payload.
        fn comes(&mut self, ack: u32, payload: usize) {
            let (packet, offload) = Sample { ack, payload, ..Sample::default() }.partial();
            let id = admit(&mut self.store, &packet, offload);
            self.queue.enqueue(self.now, id, &mut self.store, &mut |_| ());
            self.drain();
        }

        fn passes(&mut self, time: Duration) {
            let until = self.now + time;
            while let Some(at) = self.queue.poll_timeout().filter(|&at| at <= until) {
                self.now = self.now.max(at);
                self.queue.handle_timeout(self.now, &mut self.store, &mut |_| ());
                self.drain();
            }
            self.now = until;
        }

        fn drain(&mut self) {
            let take = Choice::Take { max_bytes: ByteCount::MAX, max_segments: u16::MAX };
            while let Some(pulled) = self.queue.pull(self.now, &mut self.store, &mut |_| take, &mut |_| ()) {
                let train = self.store.train(pulled.train);
                let at = usize::from(train.inner().transport_at) + 8;
                let ack = u32::from_be_bytes(*train.body(0)[at..].first_chunk().expect("a header of TCP"));
                self.left.push((self.now.since(Time::ZERO).as_micros() as u64, ack, train.is_bare_ack()));
                self.store.release_all(pulled.train);
            }
        }
    }

    #[test]
    fn a_run_of_acknowledgements_has_gaps_from_the_seventeenth_on_and_ends_with_the_last() {
        let mut bench = Bench::new();
        for ack in 1..=400 {
            bench.comes(ack, 0);
            bench.passes(US * 500);
        }
        bench.passes(GAP);
        let times: Vec<u64> = bench.left.iter().map(|&(at, ..)| at).collect();
        let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(gaps[..15], [500; 15]);
        assert!(gaps[15..].iter().all(|&gap| gap >= 3_000), "{gaps:?}");
        assert!((66..80).contains(&gaps.len()), "200 ms: {}", gaps.len());
        assert_eq!(bench.left.last().map(|&(_, ack, _)| ack), Some(400));
        assert_eq!((bench.queue.len(), bench.store.bytes_held()), (0, 0));
    }

    #[test]
    fn a_slow_start_lasts_so_long_and_begins_again_after_a_pause_as_long() {
        let mut bench = Bench::new();
        let run = |bench: &mut Bench, time: u32| {
            let before = bench.left.len();
            for ack in 0..time * 2 {
                bench.comes(ack, 0);
                bench.passes(US * 500);
            }
            bench.left.len() - before
        };
        assert!(run(&mut bench, 490) < 200, "spaced");
        bench.passes(US * 20_000);
        assert_eq!(run(&mut bench, 100), 200, "each goes");
        bench.passes(WITHIN);
        assert!(run(&mut bench, 100) < 60, "spaced again");
    }

    #[test]
    fn what_acknowledges_a_short_answer_goes_at_once() {
        let mut bench = Bench::new();
        for round in 0..5 {
            for ack in 0..16 {
                bench.comes(round * 16 + ack, 0);
                bench.passes(US * 100);
            }
            bench.passes(GAP);
        }
        assert_eq!(bench.left.len(), 80);
        assert_eq!(bench.left[79].0 - bench.left[64].0, 1_500);
    }

    #[test]
    fn nothing_of_its_flow_overtakes_one_that_is_held() {
        let mut bench = Bench::new();
        (0..20).for_each(|ack| bench.comes(ack, 0));
        assert_eq!(bench.left.len(), 16);
        bench.comes(20, 7);
        assert_eq!(
            bench.left[16..].iter().map(|&(_, ack, bare)| (ack, bare)).collect::<Vec<_>>(),
            [(19, true), (20, false)]
        );
        // A repeated one says that something is missing: none of them is left out.
        bench.comes(21, 0);
        (0..3).for_each(|_| bench.comes(21, 0));
        bench.passes(GAP);
        assert_eq!(bench.left[18..].iter().map(|&(_, ack, _)| ack).collect::<Vec<_>>(), [21; 4]);
    }

    #[test]
    fn a_queue_that_is_left_keeps_back_nothing() {
        let mut bench = Bench::new();
        (0..30).for_each(|ack| bench.comes(ack, 0));
        assert!(bench.queue.is_empty() && bench.store.bytes_held() > 0);
        bench.queue.release_acks(bench.now, Time::NEVER, &mut bench.store, &mut |_| ());
        bench.drain();
        assert_eq!((bench.left.last().map(|&(_, ack, _)| ack), bench.store.bytes_held()), (Some(29), 0));
    }
}
