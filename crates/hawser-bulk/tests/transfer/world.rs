//! A sender, a receiver, and links between them, under virtual time.
//!
//! 1. [`Link`]: rate, delay, queue, loss, reordering, duplication, and when it is dead. 2. [`World::run`] moves from
//!    one event to the next: datagrams arrive, timers fire, blocks are read and written. 3. [`Run`]: what came of it.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use hawser_bulk::digest::Digest;
use hawser_bulk::layout::FileInfo;
use hawser_bulk::receiver::{Event as Came, MOST_ANSWER, Receiver, SessionId};
use hawser_bulk::sender::{Call, End, Event, Law, PathCounts, PathState, Sender};
use hawser_bulk::trust::{Trust, offer};
use hawser_bulk::wire::{Have, Verdict};
use hawser_bulk::{BLOCK_LEN, BlockId, Layout};
use hawser_core::units::{Random, Rate, Time};
use rand_chacha::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};

use super::source::Source;

/// When all begins.
const START: Time = Time::from_nanos(1_000_000_000);

/// How a link treats datagrams, in each direction.
#[derive(Clone, Debug)]
pub struct Link {
    pub mbps: f64,
    pub delay_ms: f64,
    /// Time of data that its queue holds.
    pub queue_ms: f64,
    pub loss: f64,
    /// Delay that chance adds at most: datagrams overtake each other.
    pub jitter_ms: f64,
    pub duplicates: f64,
    /// From when on, and until when, nothing passes, in milliseconds.
    pub dead_ms: Option<(u64, u64)>,
}

impl Link {
    pub fn new(mbps: f64, delay_ms: f64) -> Link {
        Link { mbps, delay_ms, queue_ms: 50.0, loss: 0.0, jitter_ms: 0.0, duplicates: 0.0, dead_ms: None }
    }
}

pub struct Chance(pub ChaCha12Rng);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(ChaCha12Rng::seed_from_u64(seed))
    }

    fn part(&mut self) -> f64 {
        self.0.next_u32() as f64 / f64::from(u32::MAX)
    }
}

impl Random for Chance {
    fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

/// What is sent, and how.
#[derive(Clone, Debug)]
pub struct Order {
    pub links: Vec<Link>,
    pub sizes: Vec<u64>,
    pub law: Law,
    pub ceiling: Option<Rate>,
    pub seed: u64,
    /// Bytes a second that the receiver writes.
    pub disk: f64,
    pub most_datagrams: u64,
    /// Stops after this time.
    pub patience: Duration,
}

impl Order {
    pub fn new(links: Vec<Link>, sizes: &[u64], seed: u64) -> Order {
        println!("seed {seed}");
        Order {
            links,
            sizes: sizes.to_vec(),
            law: Law::Fill,
            ceiling: None,
            seed,
            disk: 1e10,
            most_datagrams: u64::MAX,
            patience: Duration::from_secs(120),
        }
    }
}

/// What the receiver keeps: it outlives sessions.
#[derive(Clone, Default)]
pub struct Disk {
    pub files: Vec<Vec<u8>>,
    pub hashes: Vec<Vec<Digest>>,
}

/// What came of a run.
pub struct Run {
    pub end: End,
    pub seconds: f64,
    pub results: Vec<Option<Verdict>>,
    pub paths: Vec<(PathState, PathCounts)>,
    pub disk: Disk,
    /// Blocks that were in the receiver's memory at most.
    pub most_blocks: usize,
    /// Bytes that arrived in this session.
    pub arrived: u64,
}

pub fn bytes_of(file: usize, size: u64, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; size as usize];
    Chance::new(seed ^ (file as u64) << 20).fill(&mut bytes);
    bytes
}

enum Do {
    ToReceiver(usize, Vec<u8>),
    ToSender(usize, Vec<u8>),
    Written(BlockId, Vec<u8>),
}

struct World<'o> {
    order: &'o Order,
    now: Time,
    heap: BinaryHeap<Reverse<(Time, u64)>>,
    things: BTreeMap<u64, Do>,
    next: u64,
    /// When somebody wants to be called, if nothing happens before.
    wake_at: Time,
    /// When each direction of each link is free: others may share them.
    free: Rc<RefCell<Vec<[Time; 2]>>>,
    chance: Chance,
    disk: Disk,
    disk_free: Time,
    layout: Option<Layout>,
    session: Option<SessionId>,
    digests: Vec<Option<Digest>>,
    results: Vec<bool>,
    in_memory: usize,
    most_blocks: usize,
}

/// Runs a transfer, which goes on with what is on the disk.
pub fn run(order: &Order, disk: Disk) -> Run {
    let free = Rc::new(RefCell::new(vec![[START; 2]; order.links.len()]));
    let mut transfer = Transfer::new(order, disk, free);
    while !transfer.is_over() {
        transfer.step();
    }
    transfer.run()
}

/// Runs transfers over the same links, and tells how many bytes of each arrived from one moment to another.
pub fn share(orders: &[Order], [from, to]: [Duration; 2]) -> Vec<u64> {
    let free = Rc::new(RefCell::new(vec![[START; 2]; orders[0].links.len()]));
    let mut all: Vec<Transfer<'_>> =
        orders.iter().map(|order| Transfer::new(order, Disk::default(), Rc::clone(&free))).collect();
    let arrived = |all: &[Transfer<'_>]| -> Vec<u64> {
        all.iter().map(|transfer| transfer.sender.as_ref().map_or(0, Sender::arrived)).collect()
    };
    let mut before = None;
    loop {
        let next = (0..all.len()).min_by_key(|at| all[*at].world.next_at()).expect("a transfer");
        let now = all[next].world.next_at();
        if now > START + from && before.is_none() {
            before = Some(arrived(&all));
        }
        if now > START + to {
            let before = before.unwrap_or_default();
            return arrived(&all).iter().zip(before).map(|(after, before)| after - before).collect();
        }
        assert!(!all[next].is_over(), "files are longer than the time");
        all[next].step();
    }
}

/// Both ends, and what is between them.
struct Transfer<'o> {
    world: World<'o>,
    receiver: Receiver<usize>,
    call: Call,
    sender: Option<Sender>,
    source: Source,
    end: Option<End>,
}

impl<'o> Transfer<'o> {
    fn new(order: &'o Order, disk: Disk, free: Rc<RefCell<Vec<[Time; 2]>>>) -> Transfer<'o> {
        let trust = Trust::secret([7; 32]);
        let mut world = World::new(order, disk, free);
        let receiver = Receiver::new(trust.clone(), true);
        let call = Call::new(&trust, offer(true), order.links.len(), world.now, &mut world.chance);
        let call = call.expect("a receiver");
        Transfer { world, receiver, call, sender: None, source: Source::new(order), end: None }
    }

    fn is_over(&self) -> bool {
        self.end.is_some() || self.world.now >= START + self.world.order.patience
    }

    fn step(&mut self) {
        let Transfer { world, receiver, call, sender, source, end } = self;
        match world.next_thing() {
            Some(Do::ToReceiver(link, datagram)) => {
                let host = SocketAddr::from(([10, 0, 0, link as u8 + 1], 1));
                receiver.handle_datagram(world.now, link, host, &datagram, &mut world.chance);
            }
            Some(Do::ToSender(link, mut datagram)) => match sender {
                Some(sender) => {
                    sender.handle_datagram(world.now, link, &mut datagram);
                }
                None => {
                    if let Some(called) = call.handle_datagram(world.now, link, &datagram) {
                        let plan = source.plan((called.path, called.round_trip));
                        *sender = Some(Sender::new(world.now, called.keys, &plan).expect("an offer"));
                    }
                }
            },
            Some(Do::Written(block, memory)) => world.written(receiver, block, memory),
            None => {}
        }
        world.mind_receiver(receiver);
        if let Some(sender) = sender {
            *end = world.mind_sender(sender, source);
        } else {
            while let Some((link, datagram)) = call.poll_transmit(world.now, &mut world.chance) {
                world.pass(link, 0, datagram.to_vec());
            }
            world.wake(call.deadline());
        }
    }

    fn run(self) -> Run {
        let sender = self.sender.expect("somebody answered");
        Run {
            end: self.end.unwrap_or(End::Silent),
            seconds: self.world.now.since(START).as_secs_f64(),
            results: self.source.results,
            paths: sender.paths().map(|(state, _, _, counts)| (state, counts)).collect(),
            most_blocks: self.world.most_blocks,
            arrived: sender.arrived(),
            disk: self.world.disk,
        }
    }
}

impl<'o> World<'o> {
    fn new(order: &'o Order, mut disk: Disk, free: Rc<RefCell<Vec<[Time; 2]>>>) -> World<'o> {
        disk.files.resize(order.sizes.len(), Vec::new());
        disk.hashes.resize(order.sizes.len(), Vec::new());
        for (file, size) in order.sizes.iter().enumerate() {
            disk.files[file].resize(*size as usize, 0);
            disk.hashes[file].resize(size.div_ceil(BLOCK_LEN as u64) as usize, Digest::default());
        }
        let now = START;
        World {
            order,
            now,
            wake_at: now,
            heap: BinaryHeap::new(),
            things: BTreeMap::new(),
            next: 0,
            free,
            chance: Chance::new(order.seed),
            disk,
            disk_free: now,
            layout: None,
            digests: vec![None; order.sizes.len()],
            results: vec![false; order.sizes.len()],
            session: None,
            in_memory: 0,
            most_blocks: 0,
        }
    }

    /// When something happens next.
    fn next_at(&self) -> Time {
        self.heap.peek().map_or(Time::NEVER, |Reverse((at, _))| *at).min(self.wake_at)
    }

    /// What happens next; nothing but a timer's call otherwise.
    fn next_thing(&mut self) -> Option<Do> {
        let wake_at = std::mem::replace(&mut self.wake_at, Time::NEVER);
        let first = self.heap.peek().map(|Reverse((at, _))| *at).filter(|at| *at <= wake_at);
        self.now = self.now.max(first.unwrap_or(wake_at));
        first?;
        let Reverse((_, id)) = self.heap.pop()?;
        self.things.remove(&id)
    }

    fn at(&mut self, when: Time, what: Do) {
        self.next += 1;
        self.heap.push(Reverse((when, self.next)));
        self.things.insert(self.next, what);
    }

    fn wake(&mut self, when: Time) {
        self.wake_at = self.wake_at.min(when.max(self.now + Duration::from_micros(1)));
    }

    /// A datagram enters a link: direction 0 leads to the receiver.
    fn pass(&mut self, link: usize, direction: usize, datagram: Vec<u8>) {
        let plan = &self.order.links[link];
        let dead = plan.dead_ms.is_some_and(|(from, to)| {
            let ms = self.now.since(START).as_millis() as u64;
            (from..to).contains(&ms)
        });
        // 72 bytes of SCION, UDP and IP before it.
        let takes = Duration::from_secs_f64((datagram.len() + 72) as f64 * 8.0 / (plan.mbps * 1e6));
        let free = self.free.borrow()[link][direction];
        let waits = free.since(self.now);
        if dead || waits > Duration::from_secs_f64(plan.queue_ms / 1e3) || self.chance.part() < plan.loss {
            return;
        }
        let leaves = free.max(self.now) + takes;
        self.free.borrow_mut()[link][direction] = leaves;
        let copies = 1 + usize::from(self.chance.part() < plan.duplicates);
        for _ in 0..copies {
            let jitter = self.chance.part() * plan.jitter_ms;
            let arrives = leaves + Duration::from_secs_f64((plan.delay_ms + jitter) / 1e3);
            let datagram = datagram.clone();
            self.at(
                arrives,
                if direction == 0 { Do::ToReceiver(link, datagram) } else { Do::ToSender(link, datagram) },
            );
        }
    }

    fn mind_receiver(&mut self, receiver: &mut Receiver<usize>) {
        receiver.handle_timeout(self.now);
        while let Some(event) = receiver.poll_event() {
            match event {
                Came::Offer(session, files) => {
                    self.answer(receiver, session, &files.into_iter().map(|f| f.expect("a name")).collect::<Vec<_>>())
                }
                Came::Block(_, block, bytes) => {
                    self.in_memory += 1;
                    self.most_blocks = self.most_blocks.max(self.in_memory);
                    let takes = Duration::from_secs_f64(bytes.len() as f64 / self.order.disk);
                    self.disk_free = self.disk_free.max(self.now) + takes;
                    self.at(self.disk_free, Do::Written(block, bytes));
                }
                Came::Digest(session, file, digest) => {
                    self.digests[file] = Some(digest);
                    self.finish(receiver, session, file);
                }
                Came::Gone(..) => {}
            }
        }
        let mut out = [0; MOST_ANSWER];
        while let Some((link, len)) = receiver.poll_transmit(self.now, &mut out) {
            self.pass(link, 1, out[..len].to_vec());
        }
        let due = receiver.poll_timeout(self.now);
        self.wake(due);
    }

    fn answer(&mut self, receiver: &mut Receiver<usize>, session: SessionId, files: &[FileInfo]) {
        assert_eq!(files.iter().map(|file| file.size).collect::<Vec<_>>(), self.order.sizes);
        let layout = Layout::new(self.order.sizes.iter().copied(), 1000).expect("an offer");
        (self.layout, self.session) = (Some(layout), Some(session));
        let have = self.disk.hashes.iter().map(|hashes| Have::of(hashes.iter().map(|hash| !hash.is_missing())));
        receiver.answer(session, have.map(|have| (Verdict::Good, have)).collect());
    }

    fn written(&mut self, receiver: &mut Receiver<usize>, block: BlockId, memory: Vec<u8>) {
        let layout = self.layout.as_ref().expect("it was offered");
        let (file, at) = layout.place(block).expect("a block");
        let number = (block.0 - layout.blocks_of(file).start) as usize;
        assert!(self.disk.hashes[file][number].is_missing(), "a block is written once");
        self.disk.files[file][at as usize..][..memory.len()].copy_from_slice(&memory);
        self.disk.hashes[file][number] = Digest::of_block(&memory);
        self.in_memory -= 1;
        let session = self.session.expect("it was offered");
        receiver.written(self.now, session, block, memory);
        self.finish(receiver, session, file);
    }

    fn finish(&mut self, receiver: &mut Receiver<usize>, session: SessionId, file: usize) {
        let whole = self.disk.hashes[file].iter().all(|hash| !hash.is_missing());
        let Some(digest) = self.digests[file].filter(|_| whole && !self.results[file]) else { return };
        self.results[file] = true;
        let good = Digest::of_file(&self.disk.hashes[file]) == digest;
        receiver.result(session, file, if good { Verdict::Good } else { Verdict::Digest });
    }

    fn mind_sender(&mut self, sender: &mut Sender, source: &mut Source) -> Option<End> {
        sender.handle_timeout(self.now);
        if let Some(end) = self.heed(sender, source) {
            return Some(end);
        }
        while sender.wants_block() {
            let Some((block, bytes)) = source.read() else { break };
            sender.load(block, bytes);
        }
        for (file, digest) in source.digests.drain(..) {
            sender.tell_digest(file, digest);
        }
        for link in 0..self.order.links.len() {
            sender.begin_batch(link);
            while let Some(packet) = sender.poll_transmit(self.now, link) {
                let mut datagram = vec![0; packet.len];
                sender.seal(&packet, &mut datagram).expect("it fits");
                self.pass(link, 0, datagram);
            }
        }
        let end = self.heed(sender, source);
        if end.is_none() {
            let due = sender.poll_timeout(self.now);
            self.wake(due);
        }
        end
    }

    fn heed(&self, sender: &mut Sender, source: &mut Source) -> Option<End> {
        let mut end = None;
        while let Some(event) = sender.poll_event() {
            match event {
                Event::Answered(file, verdict, have) => source.answered(file, verdict, have),
                Event::Result(file, verdict) => source.results[file] = Some(verdict),
                Event::Ended(why) => end = Some(why),
                Event::Path(..) => {}
            }
        }
        end
    }
}
