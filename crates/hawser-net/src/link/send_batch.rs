//! What a link is to send: datagrams sealed back to back into one buffer, joined into runs.
//!
//! ```text
//!  bytes    |  sent already  | entry: 1400 1400 1400 300 | entry: 1400 1400 | free      |
//!                            ^ the front                                    ^ used
//! ```
//!
//! 1. [`SendBatch::push`] has the core seal one datagram behind the last; it joins the last entry
//!    where address, marks and length allow, so that the kernel gets it as one train.
//! 2. [`SendBatch::push_run`] takes several equal datagrams at once.
//! 3. A link that writes headers of its own into room that was left for them says where the whole goes
//!    ([`SendBatch::wrap`]).
//! 4. A link takes pieces off the front; what is refused becomes a [`SendFailure`].

use std::mem;
use std::net::{IpAddr, SocketAddr};

use super::{Ecn, Refusal};

/// Most datagrams in one train (Linux, `UDP_MAX_SEGMENTS`, before 6.9).
pub const MAX_RUN_SEGMENTS: usize = 64;

/// Most bytes in one train: an IP packet's 65,535 less headers and tunnels on the way (RFC 791
/// section 3.1), rounded down.
pub const MAX_RUN_BYTES: usize = 65_000;

/// Longest single datagram, in bytes: a train of one.
pub const MAX_DATAGRAM_BYTES: usize = MAX_RUN_BYTES;

/// Least room that [`SendBatch::spare`] gives, in bytes: any train, rounded up.
pub const SPARE_BYTES: usize = 65_536;

/// Bytes a batch holds: four full trains, about 0.2 ms at 10 Gbit/s; each link has one batch.
pub const SEND_BATCH_BYTES: usize = 4 * 65_536;

/// Entries a batch holds: a batch of 1400-byte datagrams of which no two may be joined, rounded up.
pub const SEND_BATCH_ENTRIES: usize = 256;

/// Where a datagram is to go, and how. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// To whom.
    pub remote: SocketAddr,
    /// From which of this host's addresses; `None` leaves it to the kernel.
    pub source: Option<IpAddr>,
    /// With which congestion marks.
    pub ecn: Ecn,
}

/// A train that was not sent. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendFailure {
    /// Where it was to go.
    pub route: Route,
    /// Length of each datagram but the last, in bytes.
    pub segment_size: usize,
    /// Bytes that were not sent.
    pub bytes: usize,
    /// Why.
    pub reason: Refusal,
}

/// The batch has no room for that now: send first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("add to a send batch: it is full")]
pub struct Full;

/// Datagrams to send, and the memory they are sealed into, kept from call to call.
/// Empty at first. For one thread, and one link: what a full socket leaves over stays in it.
#[derive(Debug)]
pub struct SendBatch {
    bytes: Box<[u8]>,
    used: usize,
    entries: Vec<Entry>,
    /// Entries before this one are done with.
    front: usize,
    failures: Vec<SendFailure>,
    /// What nothing could be wrapped around since the last send: failures of the next.
    unwrappable: Vec<SendFailure>,
}

/// A run of datagrams for one address: `bytes[start..end]`.
#[derive(Debug, Clone, Copy)]
struct Entry {
    route: Route,
    /// Where it goes once it is wrapped.
    hop: Option<SocketAddr>,
    segment_size: usize,
    /// It goes as single datagrams, whatever the kernel takes.
    apart: bool,
    start: usize,
    end: usize,
}

/// What one system call sends: a train, or a single datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub(super) route: &'a Route,
    /// Where the kernel is to send it.
    pub(super) to: &'a SocketAddr,
    /// Length of each datagram but the last; `None` for a single one.
    pub(super) segment_size: Option<u16>,
    pub(super) bytes: &'a [u8],
}

impl Default for SendBatch {
    fn default() -> Self {
        SendBatch::new()
    }
}

impl SendBatch {
    /// An empty batch. Its memory becomes resident only as far as it is sealed into.
    pub fn new() -> SendBatch {
        SendBatch {
            bytes: vec![0; SEND_BATCH_BYTES].into_boxed_slice(),
            used: 0,
            entries: Vec::with_capacity(SEND_BATCH_ENTRIES),
            front: 0,
            failures: Vec::with_capacity(SEND_BATCH_ENTRIES),
            unwrappable: Vec::new(),
        }
    }

    /// Whether nothing waits to be sent.
    pub fn is_empty(&self) -> bool {
        self.front == self.entries.len()
    }

    /// Bytes that wait to be sent.
    pub fn pending_bytes(&self) -> usize {
        self.entries[self.front..].iter().map(|e| e.end - e.start).sum()
    }

    /// Bytes that may still be added, as one datagram or run, before the batch is full.
    pub fn room(&self) -> usize {
        if self.entries.len() == SEND_BATCH_ENTRIES {
            return 0;
        }
        self.bytes.len() - self.used
    }

    /// Throws away everything that waits, and the failures.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.failures.clear();
        self.unwrappable.clear();
        (self.front, self.used) = (0, 0);
    }

    /// What the last [`super::Link::send`] could not send.
    pub fn failures(&self) -> &[SendFailure] {
        &self.failures
    }

    /// Adds one datagram: `seal` gets `room` bytes (with what an earlier datagram left there) and
    /// returns how many of them, from the start, the datagram takes; 0 adds nothing.
    ///
    /// # Errors
    /// [`Full`], without calling `seal`.
    pub fn push(&mut self, route: Route, room: usize, seal: impl FnOnce(&mut [u8]) -> usize) -> Result<(), Full> {
        let room = room.min(MAX_DATAGRAM_BYTES);
        self.push_run(route, room, room, seal).map(drop)
    }

    /// Where the next run is to be written before its route is known, at least [`SPARE_BYTES`];
    /// `None` when the batch is full. [`SendBatch::push_run`] then adds it: its `fill` finds those
    /// bytes where they were written.
    pub fn spare(&mut self) -> Option<&mut [u8]> {
        if self.room() < SPARE_BYTES {
            return None;
        }
        self.bytes.get_mut(self.used..)
    }

    /// Adds a run of datagrams of `segment_size` bytes each, the last of which may be shorter:
    /// `fill` gets `room` bytes as in [`SendBatch::push`] and returns how many of them are theirs.
    /// What is too long for one train is split. Returns the bytes added.
    ///
    /// # Errors
    /// [`Full`], without calling `fill`.
    pub fn push_run(
        &mut self,
        route: Route,
        segment_size: usize,
        room: usize,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<usize, Full> {
        self.push_entries(route, segment_size, room, false, fill)
    }

    /// As [`SendBatch::push_run`], but its datagrams leave one by one: trains do not arrive there.
    ///
    /// # Errors
    /// [`Full`], without calling `fill`.
    pub fn push_apart(
        &mut self,
        route: Route,
        segment_size: usize,
        room: usize,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<usize, Full> {
        self.push_entries(route, segment_size, room, true, fill)
    }

    fn push_entries(
        &mut self,
        route: Route,
        segment_size: usize,
        room: usize,
        apart: bool,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<usize, Full> {
        let mut filling = self.filling();
        filling.check(segment_size, room)?;
        let len = fill(&mut filling.free[..room]).min(room);
        filling.add(route, segment_size, len, apart).map(|run| run.len())
    }

    /// The batch while it is added to: what is added belongs to whoever adds it for as long as that lasts.
    pub fn filling(&mut self) -> Filling<'_> {
        let SendBatch { bytes, used, entries, front, .. } = self;
        Filling { free: &mut bytes[*used..], used, entries, front: *front }
    }

    /// What is to be sent next: trains, or single datagrams where the kernel takes no trains.
    pub(super) fn pieces(&self, trains: bool) -> impl Iterator<Item = Piece<'_>> + use<'_> {
        self.entries[self.front..].iter().flat_map(move |entry| {
            let bytes = &self.bytes[entry.start..entry.end];
            let step = if trains && !entry.apart { bytes.len() } else { entry.segment_size };
            bytes.chunks(step.max(1)).map(move |bytes| Piece {
                route: &entry.route,
                to: entry.hop.as_ref().unwrap_or(&entry.route.remote),
                segment_size: (bytes.len() > entry.segment_size)
                    .then(|| u16::try_from(entry.segment_size).unwrap_or(u16::MAX)),
                bytes,
            })
        })
    }

    /// Has `write` write headers into each run that has none yet, into the room before every datagram that its length
    /// counts, and say where the kernel is to send it. Its arguments are the route, the run, and the length of each
    /// datagram but the last. Where it gives none, the run cannot be sent.
    pub fn wrap(&mut self, mut write: impl FnMut(&Route, &mut [u8], usize) -> Option<SocketAddr>) {
        let mut at = self.front;
        while let Some(entry) = self.entries.get_mut(at) {
            if entry.hop.is_none() {
                entry.hop = write(&entry.route, &mut self.bytes[entry.start..entry.end], entry.segment_size);
            }
            if entry.hop.is_some() {
                at += 1;
            } else {
                let Entry { route, segment_size, start, end, .. } = self.entries.remove(at);
                let reason = Refusal::Unreachable;
                self.unwrappable.push(SendFailure { route, segment_size, bytes: end - start, reason });
            }
        }
        self.rewind();
    }

    /// Forgets the failures of the call before.
    pub(super) fn start(&mut self) {
        self.failures.clear();
        self.failures.append(&mut self.unwrappable);
    }

    /// Takes `bytes` sent bytes off the front.
    pub(super) fn consume(&mut self, mut bytes: usize) {
        while let Some(entry) = self.entries.get_mut(self.front) {
            let taken = bytes.min(entry.end - entry.start);
            entry.start += taken;
            bytes -= taken;
            if entry.start < entry.end {
                break;
            }
            self.front += 1;
        }
        self.rewind();
    }

    /// An empty batch has all its room again.
    fn rewind(&mut self) {
        if self.is_empty() {
            self.entries.clear();
            (self.front, self.used) = (0, 0);
        }
    }

    /// Gives up the first entry, or what is left of it.
    pub(super) fn refuse_first(&mut self, reason: Refusal) {
        if let Some(entry) = self.entries.get(self.front) {
            let bytes = entry.end - entry.start;
            self.failures.push(SendFailure { route: entry.route, segment_size: entry.segment_size, bytes, reason });
            self.consume(bytes);
        }
    }
}

/// A batch whose free bytes are given away run by run. Made by [`SendBatch::filling`], which it borrows.
#[derive(Debug)]
pub struct Filling<'a> {
    free: &'a mut [u8],
    used: &'a mut usize,
    entries: &'a mut Vec<Entry>,
    front: usize,
}

impl<'a> Filling<'a> {
    /// As [`SendBatch::spare`].
    pub fn spare(&mut self) -> Option<&mut [u8]> {
        self.has_room().then_some(&mut *self.free)
    }

    /// The same for good.
    pub fn into_spare(self) -> Option<&'a mut [u8]> {
        self.has_room().then_some(self.free)
    }

    /// Whether there is room for any train.
    pub fn has_room(&self) -> bool {
        self.entries.len() < SEND_BATCH_ENTRIES && self.free.len() >= SPARE_BYTES
    }

    /// Adds the first `len` spare bytes, as [`SendBatch::push_run`] does or, if they are to leave `apart`,
    /// [`SendBatch::push_apart`], and gives them away. They may be written until the batch is used again.
    ///
    /// # Errors
    /// [`Full`].
    pub fn add(&mut self, route: Route, segment_size: usize, len: usize, apart: bool) -> Result<&'a mut [u8], Full> {
        let segment_size = self.check(segment_size, len)?;
        let per_entry = segment_size * segments_per_entry(segment_size);
        let (run, free) = mem::take(&mut self.free).split_at_mut(len);
        self.free = free;
        let end = *self.used + len;
        while *self.used < end {
            let start = *self.used;
            *self.used = end.min(start + per_entry);
            let segment_size = segment_size.min(end - start);
            self.join(Entry { route, hop: None, segment_size, apart, start, end: *self.used });
        }
        Ok(run)
    }

    /// Whether a run of up to this many bytes may be added; the size of its datagrams.
    fn check(&self, segment_size: usize, room: usize) -> Result<usize, Full> {
        let segment_size = segment_size.clamp(1, MAX_DATAGRAM_BYTES);
        let entries = room.div_ceil(segment_size * segments_per_entry(segment_size));
        let fits = entries <= SEND_BATCH_ENTRIES - self.entries.len() && room <= self.free.len();
        if fits { Ok(segment_size) } else { Err(Full) }
    }

    /// Adds `new` to the last entry if the two can be one train, else behind it.
    fn join(&mut self, new: Entry) {
        let waiting = &mut self.entries[self.front..];
        if let Some(last) = waiting.last_mut() {
            let (held, added) = (last.end - last.start, new.end - new.start);
            let fits = last.route == new.route
                && last.apart == new.apart
                && last.hop.is_none()
                && held % last.segment_size == 0
                && (new.segment_size == last.segment_size || (added == new.segment_size && added < last.segment_size))
                && (held + added).div_ceil(last.segment_size) <= MAX_RUN_SEGMENTS
                && held + added <= MAX_RUN_BYTES;
            if fits {
                last.end = new.end;
                return;
            }
        }
        self.entries.push(new);
    }
}

fn segments_per_entry(segment_size: usize) -> usize {
    (MAX_RUN_BYTES / segment_size).clamp(1, MAX_RUN_SEGMENTS)
}

#[cfg(test)]
#[path = "send_batch_tests.rs"]
mod tests;
