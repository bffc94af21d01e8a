//! The flows of a queue and the two lists that deficit round robin walks (RFC 8290 section 4): a pair of lists for each
//! priority (`levels`).
//!
//! ```text
//!            enqueue                 quantum used up, or empty
//!    idle -----------> new (sparse) ---------------------------> old --+
//!      ^                   ^                                      | ^  | quantum used up:
//!      |                   +--------------------------------------+ +--+ to the tail
//!      |                     enqueue, quantum not used up yet     |
//!      +----------------------------------------------------------+
//!                     empty when its turn comes
//! ```

use super::ack_filter::Acks;
use super::codel::Codel;
use super::levels::{LEVELS, Precedence, Waiting, Walk, level};
use super::line::NONE;
use crate::packet::FlowBucket;
use crate::packet::flow::FLOW_BUCKETS;
use crate::units::{ByteCount, Time};
use std::num::NonZeroU32;
use std::time::Duration;

/// No flow: above every bucket.
const NO_FLOW: u16 = u16::MAX;

/// A flow is sparse that finds its queue empty, and of which at most [`SPARSE_MOST`] is pulled in this time, 330
/// kbit/s: a call takes 100 kbit/s, a game's state 240.
const SPARSE_WINDOW: Duration = Duration::from_millis(100);
const SPARSE_MOST: ByteCount = ByteCount(4 << 10);

/// Where a flow is in the picture above.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) enum Place {
    #[default]
    Idle,
    New,
    Old,
}

/// One flow bucket. Idle at first. Owned by [`Flows`].
#[derive(Copy, Clone, Debug)]
pub(super) struct Flow {
    /// What tells the flow that has it from others; none where none ever had it.
    pub(super) tag: Option<NonZeroU32>,
    /// When something of it last came.
    pub(super) used: Time,
    pub(super) place: Place,
    /// First and last waiting item.
    pub(super) head: u32,
    pub(super) tail: u32,
    pub(super) backlog: ByteCount,
    /// Bytes it may still send in this round; below zero when it took more.
    pub(super) deficit: i64,
    /// It has not used up what it may send in this round: a sparse flow that sends more than once in a round of many
    /// fat ones does not wait for its turn (as in CAKE).
    pub(super) sparse: bool,
    /// Turns of old flows before its round began ([`Flows::turns`]).
    pub(super) round_at: u64,
    pub(super) backlogged_since: Time,
    /// Bytes pulled since then.
    pub(super) sent: ByteCount,
    /// When the present [`SPARSE_WINDOW`] began, and the bytes pulled in it.
    pub(super) lately: (Time, ByteCount),
    pub(super) codel: Codel,
    pub(super) acks: Acks,
    /// That of the packet which it awoke with.
    level: u8,
    before: u16,
    after: u16,
}

impl Flow {
    /// `bytes` of it are pulled. Says whether it is sparse.
    pub(super) fn on_pulled(&mut self, now: Time, bytes: ByteCount) -> bool {
        self.deficit -= bytes.0 as i64;
        self.sent += bytes;
        if now.since(self.lately.0) > SPARSE_WINDOW {
            self.lately = (now, ByteCount::ZERO);
        }
        self.lately.1 += bytes;
        self.place == Place::New && self.lately.1 <= SPARSE_MOST
    }
}

#[derive(Copy, Clone, Debug)]
struct List {
    head: u16,
    tail: u16,
}

/// The flows of one priority.
#[derive(Copy, Clone, Debug)]
struct Level {
    new: List,
    old: List,
    /// Flows in the old list.
    old_len: u64,
    /// Turns that flows of the old list have had: as many as there are make a round.
    turns: u64,
}

/// Flows that come into being together: a table of all takes 600 kB of a session that may never send any.
const PAGE: usize = 64;

/// All flows. One owner. Idle flows are in no list and are never looked at.
#[derive(Debug)]
pub(super) struct Flows {
    /// None where no flow ever had anything waiting.
    pages: [Option<Box<[Flow; PAGE]>>; FLOW_BUCKETS / PAGE],
    /// What such a flow is.
    idle: Flow,
    levels: [Level; LEVELS],
    precedence: Precedence,
}

impl Flows {
    pub(super) fn new() -> Flows {
        let idle = Flow {
            tag: None,
            used: Time::ZERO,
            place: Place::Idle,
            head: NONE,
            tail: NONE,
            backlog: ByteCount::ZERO,
            deficit: 0,
            sparse: false,
            round_at: 0,
            backlogged_since: Time::ZERO,
            sent: ByteCount::ZERO,
            lately: (Time::ZERO, ByteCount::ZERO),
            codel: Codel::default(),
            acks: Acks::default(),
            level: 0,
            before: NO_FLOW,
            after: NO_FLOW,
        };
        let empty = List { head: NO_FLOW, tail: NO_FLOW };
        let level = Level { new: empty, old: empty, old_len: 0, turns: 0 };
        let pages = [const { None }; FLOW_BUCKETS / PAGE];
        Flows { pages, idle, levels: [level; LEVELS], precedence: Precedence::default() }
    }

    pub(super) fn get(&self, bucket: FlowBucket) -> &Flow {
        let page = &self.pages[bucket.index() / PAGE];
        page.as_deref().map_or(&self.idle, |page| &page[bucket.index() % PAGE])
    }

    pub(super) fn get_mut(&mut self, bucket: FlowBucket) -> &mut Flow {
        let page = &mut self.pages[bucket.index() / PAGE];
        &mut page.get_or_insert_with(|| Box::new([self.idle; PAGE]))[bucket.index() % PAGE]
    }

    /// The order in which one pull looks at priorities, where a turn is worth `quantum`.
    pub(super) fn walk(&self, quantum: ByteCount) -> Walk {
        self.precedence.walk(self.waiting(), quantum)
    }

    /// A flow sent so much.
    pub(super) fn note_served(&mut self, at: FlowBucket, bytes: ByteCount) {
        let (level, waiting) = (self.get(at).level, self.waiting());
        self.precedence.note_served(usize::from(level), waiting, bytes);
    }

    fn waiting(&self) -> Waiting {
        let wait = |level: &Level| level.new.head != NO_FLOW || level.old.head != NO_FLOW;
        let levels = self.levels.iter().enumerate().filter(|(_, level)| wait(level));
        levels.fold(Waiting::default(), |waiting, (at, _)| waiting.with(at))
    }

    /// Whose turn it is at the walk's next priority: new flows first.
    pub(super) fn first(&self, walk: &mut Walk) -> Option<FlowBucket> {
        walk.next(self.waiting()).and_then(|level| self.first_of(&self.levels[level]))
    }

    fn first_of(&self, level: &Level) -> Option<FlowBucket> {
        bucket(level.new.head).or(bucket(level.old.head))
    }

    /// Whose turn it is after `at`, of its priority.
    pub(super) fn beside(&self, at: FlowBucket) -> Option<FlowBucket> {
        let flow = self.get(at);
        match flow.place {
            Place::New => bucket(flow.after).or(bucket(self.levels[usize::from(flow.level)].old.head)),
            _ => bucket(flow.after),
        }
    }

    /// The flow with the most bytes waiting.
    pub(super) fn fattest(&self) -> Option<FlowBucket> {
        let firsts = self.levels.iter().filter_map(|level| self.first_of(level));
        let all = firsts.flat_map(|first| std::iter::successors(Some(first), |&at| self.beside(at)));
        all.max_by_key(|&at| self.get(at).backlog)
    }

    /// A flow that had nothing waiting got something of this priority. New ones, and old ones for which a round has
    /// passed, may send `quantum` before all others of theirs.
    pub(super) fn awake(&mut self, at: FlowBucket, priority: i8, quantum: ByteCount) {
        if usize::from(self.get(at).level) != level(priority) {
            self.unlink(at);
            let flow = self.get_mut(at);
            (flow.place, flow.before, flow.after) = (Place::Idle, NO_FLOW, NO_FLOW);
            flow.level = level(priority) as u8;
        }
        let Level { turns, old_len: round, .. } = *self.level_of(at);
        let flow = self.get_mut(at);
        if flow.place == Place::Idle || flow.place == Place::Old && turns - flow.round_at >= round {
            (flow.deficit, flow.sparse, flow.round_at) = (quantum.0 as i64, true, turns);
        }
        if flow.place == Place::Idle || flow.place == Place::Old && flow.sparse {
            self.move_to(at, Place::New);
        }
    }

    /// A flow's turn is over; of an old one it counts.
    pub(super) fn end_turn(&mut self, at: FlowBucket, place: Place) {
        let old = self.get(at).place == Place::Old;
        self.level_of(at).turns += u64::from(old);
        self.move_to(at, place);
    }

    /// Moves a flow to the tail of another list, or out of both.
    fn move_to(&mut self, at: FlowBucket, place: Place) {
        self.unlink(at);
        self.level_of(at).old_len += u64::from(place == Place::Old);
        let tail = match self.list(at, place) {
            Some(list) => std::mem::replace(&mut list.tail, at.0),
            None => NO_FLOW,
        };
        let flow = self.get_mut(at);
        (flow.place, flow.before, flow.after) = (place, tail, NO_FLOW);
        if let Some(tail) = bucket(tail) {
            self.get_mut(tail).after = at.0;
        } else if let Some(list) = self.list(at, place) {
            list.head = at.0;
        }
    }

    fn unlink(&mut self, at: FlowBucket) {
        let Flow { place, before, after, .. } = *self.get(at);
        self.level_of(at).old_len -= u64::from(place == Place::Old);
        if let Some(before) = bucket(before) {
            self.get_mut(before).after = after;
        } else if let Some(list) = self.list(at, place) {
            list.head = after;
        }
        if let Some(after) = bucket(after) {
            self.get_mut(after).before = before;
        } else if let Some(list) = self.list(at, place) {
            list.tail = before;
        }
    }

    fn level_of(&mut self, at: FlowBucket) -> &mut Level {
        let level = self.get(at).level;
        &mut self.levels[usize::from(level)]
    }

    fn list(&mut self, at: FlowBucket, place: Place) -> Option<&mut List> {
        let level = self.level_of(at);
        match place {
            Place::Idle => None,
            Place::New => Some(&mut level.new),
            Place::Old => Some(&mut level.old),
        }
    }
}

fn bucket(link: u16) -> Option<FlowBucket> {
    (link != NO_FLOW).then_some(FlowBucket(link))
}
