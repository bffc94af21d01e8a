//! What a worker does: it seals or opens a run of datagrams in place.

use arrayvec::ArrayVec;
use hawser_core::beside::{Opener, Opening, Outcome, Unsealed};

use crate::link::Datagrams;

/// Bytes of one task at most, or one datagram: 5 µs of work with AES-128-GCM (22 datagrams of 0.25 µs,
/// docs/results/threads.json), so that a round of 256 KiB falls into eight parts that threads can share evenly.
pub const TASK_BYTES: usize = 32 * 1024;
/// Datagrams of a task that is opened, at most: what the kernel merges (Linux, `UDP_MAX_SEGMENTS`).
pub const TASK_DATAGRAMS: usize = 64;

/// A run of datagrams, and what is to be done with it. Made by [`seal`] and [`open`]; it borrows its bytes.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "moved at once, and a box would be allocated for each 32 KiB")]
pub enum Task<'a> {
    /// Seal these.
    Seal(&'a mut [u8], Unsealed),
    /// Open these.
    Open(Opened<'a>),
}

/// Datagrams that are opened ahead of the core, or handed to it as they came.
#[derive(Debug)]
pub struct Opened<'a> {
    /// They, in clear where they opened.
    pub run: Datagrams<'a>,
    opener: Option<Opener>,
    outcomes: ArrayVec<Outcome, TASK_DATAGRAMS>,
}

/// The tasks that seal a batch.
pub fn seal(batch: &mut [u8], how: Unsealed) -> impl Iterator<Item = Task<'_>> {
    let datagrams = (TASK_BYTES / how.stride()).max(1);
    let parts = batch.chunks_mut(datagrams * how.stride());
    parts.enumerate().map(move |(at, part)| Task::Seal(part, how.after(at * datagrams)))
}

/// The tasks that open a run; without `opener` they leave that to the core.
pub fn open<'a>(run: Datagrams<'a>, opener: Option<Opener>) -> impl Iterator<Item = Task<'a>> {
    let Datagrams { remote, local, ecn, segment_size, bytes, header } = run;
    let datagrams = (TASK_BYTES / segment_size).clamp(1, TASK_DATAGRAMS);
    bytes.chunks_mut(datagrams * segment_size).map(move |bytes| {
        let run = Datagrams { remote, local, ecn, segment_size, bytes, header };
        Task::Open(Opened { run, opener: opener.clone(), outcomes: ArrayVec::new() })
    })
}

impl Task<'_> {
    /// Whether there is nothing to do.
    pub(super) fn is_done(&self) -> bool {
        matches!(self, Task::Open(Opened { opener: None, .. }))
    }

    /// Does it.
    pub(super) fn work(&mut self) {
        match self {
            Task::Seal(batch, how) => how.seal(batch),
            Task::Open(Opened { run, opener, outcomes }) => {
                let header = run.header;
                for datagram in run.bytes.chunks_mut(run.segment_size) {
                    outcomes.extend(opener.iter().map(|opener| opener.open(&mut datagram[header..])));
                }
            }
        }
    }
}

impl<'a> Opened<'a> {
    /// The datagrams, and what came of each, in the order in which they came.
    pub fn split(self) -> (Datagrams<'a>, impl Iterator<Item = Opening>) {
        let Opened { run, opener, mut outcomes } = self;
        let tried = opener.into_iter().flat_map(move |how| outcomes.take().into_iter().map(move |it| how.opening(it)));
        (run, tried.chain(std::iter::repeat(Opening::default())))
    }
}
