//! What a link received: runs of equal datagrams, each in a buffer of its own.

use std::net::{IpAddr, SocketAddr};
use std::slice::ChunksMut;

use super::Ecn;

/// Runs that one batch holds at most. With 64 KiB each this is 512 KiB, once for all links of a
/// packet thread; 16 or 32 of them were no faster, merged or not (examples/udp_rate.rs).
pub const RUNS_PER_BATCH: usize = 8;

/// Room for each run, in bytes: the most the kernel merges (Linux, `GRO_LEGACY_MAX_SIZE`).
pub const RECV_BUFFER_BYTES: usize = 65_536;

/// Received datagrams, and the memory they are received into, kept from call to call.
/// Empty at first. For one thread; it may serve all links of that thread in turn.
#[derive(Debug)]
pub struct RecvBatch {
    buffers: Box<[u8]>,
    runs: [Option<Run>; RUNS_PER_BATCH],
    pub(super) kernel_drops: u64,
    pub(super) truncated: usize,
}

/// What is known of one received run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) remote: SocketAddr,
    pub(super) local: Option<IpAddr>,
    pub(super) ecn: Ecn,
    pub(super) segment_size: usize,
    /// Where in its buffer it begins: behind what the kernel put before it.
    pub(super) start: usize,
    pub(super) len: usize,
}

/// A run of datagrams from one remote address, back to back in one buffer.
/// Never made without at least one byte. Borrows the batch.
#[derive(Debug)]
pub struct Datagrams<'a> {
    /// Who sent them.
    pub remote: SocketAddr,
    /// Which of this host's addresses they were sent to: answers are to come from it.
    pub local: Option<IpAddr>,
    /// Their congestion marks.
    pub ecn: Ecn,
    /// Length of each but the last, which may be shorter, in bytes; never 0.
    pub segment_size: usize,
    /// All of them.
    pub bytes: &'a mut [u8],
}

impl<'a> Datagrams<'a> {
    /// The single datagrams, in the order in which they came.
    pub fn singles(self) -> ChunksMut<'a, u8> {
        self.bytes.chunks_mut(self.segment_size)
    }
}

impl Default for RecvBatch {
    fn default() -> Self {
        RecvBatch::new()
    }
}

impl RecvBatch {
    /// An empty batch. Its memory becomes resident only as far as it is received into.
    pub fn new() -> RecvBatch {
        RecvBatch {
            buffers: vec![0; RUNS_PER_BATCH * RECV_BUFFER_BYTES].into_boxed_slice(),
            runs: [None; RUNS_PER_BATCH],
            kernel_drops: 0,
            truncated: 0,
        }
    }

    /// The runs, in the order in which they came.
    pub fn runs(&mut self) -> impl Iterator<Item = Datagrams<'_>> {
        let buffers = self.buffers.chunks_exact_mut(RECV_BUFFER_BYTES);
        buffers.zip(&self.runs).filter_map(|(buffer, run)| {
            let run = run.as_ref()?;
            Some(Datagrams {
                remote: run.remote,
                local: run.local,
                ecn: run.ecn,
                segment_size: run.segment_size,
                bytes: buffer.get_mut(run.start..run.start + run.len)?,
            })
        })
    }

    /// Datagrams the kernel threw away as the link's receive buffer was full, between the last
    /// call and the one before.
    pub fn kernel_drops(&self) -> u64 {
        self.kernel_drops
    }

    /// Runs of the last call that were thrown away as they came incomplete.
    pub fn truncated(&self) -> usize {
        self.truncated
    }

    /// Forgets what it holds, and hands out the buffers, one for each run.
    pub(super) fn start(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.runs = [None; RUNS_PER_BATCH];
        self.kernel_drops = 0;
        self.truncated = 0;
        self.buffers.chunks_exact_mut(RECV_BUFFER_BYTES)
    }

    /// Buffer `at`, to be filled.
    pub(super) fn buffer(&mut self, at: usize) -> &mut [u8] {
        &mut self.buffers[at * RECV_BUFFER_BYTES..(at + 1) * RECV_BUFFER_BYTES]
    }

    /// The first bytes of buffer `at`.
    pub(super) fn bytes(&self, at: usize, len: usize) -> &[u8] {
        let from = at * RECV_BUFFER_BYTES;
        self.buffers.get(from..from + len.min(RECV_BUFFER_BYTES)).unwrap_or_default()
    }

    /// Says what lies in buffer `at`. Empty datagrams are nothing: no protocol of ours has them.
    /// Returns the number of runs this adds.
    pub(super) fn set(&mut self, at: usize, run: Run) -> usize {
        self.runs[at] = (run.len > 0).then_some(run);
        usize::from(run.len > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(len: usize) -> Run {
        Run {
            remote: "192.0.2.1:9".parse().expect("an address"),
            local: None,
            ecn: Ecn::Ect0,
            segment_size: 1000,
            start: 0,
            len,
        }
    }

    #[test]
    fn a_run_falls_into_equal_datagrams_and_a_shorter_last() {
        let mut batch = RecvBatch::new();
        let added: Vec<usize> =
            [2500, 0, 1000].into_iter().enumerate().map(|(at, len)| batch.set(at, run(len))).collect();
        assert_eq!(added, [1, 0, 1]);
        let lengths: Vec<Vec<usize>> =
            batch.runs().map(|run| run.singles().map(|datagram| datagram.len()).collect()).collect();
        assert_eq!(lengths, [vec![1000, 1000, 500], vec![1000]]);
    }

    #[test]
    fn a_new_start_forgets_the_runs() {
        let mut batch = RecvBatch::new();
        batch.set(0, run(2500));
        assert_eq!(batch.start().count(), RUNS_PER_BATCH);
        assert_eq!(batch.runs().count(), 0);
    }
}
