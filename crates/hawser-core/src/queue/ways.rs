//! Which bucket a flow has: set-associative hashing, as in CAKE (Høiland-Jørgensen, Täht, Morton, "Piece of CAKE: a
//! comprehensive queue management solution for home gateways", IEEE LANMAN 2018).
//!
//! By hashes alone one call in 150 shares a bucket with one of twenty streams (of 2,944): it waits behind that, and its
//! packets are dropped for it.
//!
//! 1. A flow keeps the bucket that it has.
//! 2. A new one has, of the eight of its set, one that nobody had, its home first; or of those that rest the one that was
//!    not used for the longest. A flow rests that was silent for longer than the far side waits for a gap: nothing of it
//!    is put in order there any more, so that it may come back to another. Buckets must rest no longer than they have to:
//!    each question to a name server is a flow, and with a minute of those a set is full.
//! 3. Where there is none it shares its home.

use super::flows::{Flow, Flows};
use super::line::NONE;
use crate::packet::flow::GAP_MAX;
use crate::packet::{FlowBucket, FlowHash};
use crate::units::{ByteCount, Time};

/// Buckets of a set. As in CAKE, which has eight.
const WAYS: u16 = 8;

impl Flows {
    /// The bucket of a flow that something came of.
    pub(super) fn place(&mut self, now: Time, flow: FlowHash) -> FlowBucket {
        let has = |bucket: &FlowBucket| self.get(*bucket).tag == Some(flow.tag);
        // Most flows are at home: others are not looked at.
        let own = Some(flow.home).filter(has).or_else(|| set(flow.home).find(has));
        let bucket = own.or_else(|| self.take_free(now, flow)).unwrap_or(flow.home);
        self.get_mut(bucket).used = now;
        bucket
    }

    fn take_free(&mut self, now: Time, flow: FlowHash) -> Option<FlowBucket> {
        let free = set(flow.home).filter(|bucket| self.get(*bucket).is_free(now));
        let bucket = free.min_by_key(|bucket| (self.get(*bucket).tag.is_some(), self.get(*bucket).used))?;
        self.get_mut(bucket).begin(flow);
        Some(bucket)
    }
}

impl Flow {
    fn is_free(&self, now: Time) -> bool {
        self.tag.is_none() || self.tail == NONE && now.since(self.used) >= GAP_MAX
    }

    /// Another flow has it: what the last one did says nothing of it.
    fn begin(&mut self, flow: FlowHash) {
        self.tag = Some(flow.tag);
        self.lately = (Time::ZERO, ByteCount::ZERO);
        (self.codel, self.acks) = (Default::default(), Default::default());
    }
}

/// The buckets of a set, the flow's home first.
fn set(home: FlowBucket) -> impl Iterator<Item = FlowBucket> {
    let first = home.0 - home.0 % WAYS;
    (0..WAYS).map(move |way| FlowBucket(first + (home.0 + way) % WAYS))
}
