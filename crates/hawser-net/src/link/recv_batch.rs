//! What a link received: runs of equal datagrams, each in a buffer of its own.

use std::mem;
use std::net::{IpAddr, SocketAddr};

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
    /// In the order of the buffers, and of bytes in each.
    runs: Vec<Placed>,
    /// What [`RecvBatch::unwrap_each`] makes of them, kept for its memory.
    unwrapped: Vec<Placed>,
    pub(super) kernel_drops: u64,
    pub(super) truncated: usize,
    pub(super) messages: usize,
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

/// A run in its place.
#[derive(Debug, Clone, Copy)]
struct Placed {
    run: Run,
    /// Where it begins among all buffers.
    at: usize,
    /// Bytes before each datagram that are not for the caller.
    header: usize,
}

/// What a datagram's own headers say. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unwrapped {
    /// Who sent it.
    pub remote: SocketAddr,
    /// Bytes of headers before what it carries.
    pub header: usize,
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
    /// Length of each but the last, which may be shorter, in bytes, with its headers; never 0.
    pub segment_size: usize,
    /// All of them.
    pub bytes: &'a mut [u8],
    /// Bytes of headers that a link read before each.
    pub header: usize,
}

impl<'a> Datagrams<'a> {
    /// The first of them, without its headers.
    pub fn first(&mut self) -> Option<&mut [u8]> {
        self.bytes.chunks_mut(self.segment_size).next()?.get_mut(self.header..)
    }

    /// The single datagrams without those headers, in the order in which they came.
    pub fn singles(self) -> impl ExactSizeIterator<Item = &'a mut [u8]> {
        let header = self.header;
        self.bytes.chunks_mut(self.segment_size).map(move |datagram| &mut datagram[header..])
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
            runs: Vec::with_capacity(RUNS_PER_BATCH),
            unwrapped: Vec::new(),
            kernel_drops: 0,
            truncated: 0,
            messages: 0,
        }
    }

    /// Bytes of all runs.
    pub fn bytes_held(&self) -> usize {
        self.runs.iter().map(|Placed { run, .. }| run.len).sum()
    }

    /// The runs, in the order in which they came.
    pub fn runs(&mut self) -> impl Iterator<Item = Datagrams<'_>> {
        let (mut rest, mut passed) = (&mut self.buffers[..], 0);
        self.runs.iter().filter_map(move |Placed { run, at, header }| {
            let (_, here) = mem::take(&mut rest).split_at_mut_checked(at - passed)?;
            let (bytes, after) = here.split_at_mut_checked(run.len)?;
            (rest, passed) = (after, at + run.len);
            let Run { remote, local, ecn, segment_size, .. } = *run;
            Some(Datagrams { remote, local, ecn, segment_size, bytes, header: *header })
        })
    }

    /// Has `read` look at each datagram, from which remote address and for which of ours it came. Those behind headers
    /// of one length from one remote address, as it says, are runs from there on; where it gives none, the datagram is
    /// gone.
    pub fn unwrap_each(&mut self, mut read: impl FnMut(SocketAddr, Option<IpAddr>, &[u8]) -> Option<Unwrapped>) {
        self.unwrapped.clear();
        for &Placed { run, at: start, .. } in &self.runs {
            let bytes = self.buffers.get(start..start + run.len).unwrap_or_default();
            for (number, datagram) in bytes.chunks(run.segment_size).enumerate() {
                let unwrapped = read(run.remote, run.local, datagram).filter(|inner| inner.header < datagram.len());
                let Some(Unwrapped { remote, header }) = unwrapped else { continue };
                let (len, at) = (datagram.len(), start + number * run.segment_size);
                add(&mut self.unwrapped, Placed { run: Run { remote, segment_size: len, len, ..run }, at, header });
            }
        }
        mem::swap(&mut self.runs, &mut self.unwrapped);
    }

    /// The run of this number, for whoever takes datagrams out one by one; `None` behind the last.
    pub fn run(&mut self, at: usize) -> Option<Datagrams<'_>> {
        let Placed { run, at, header } = *self.runs.get(at)?;
        let bytes = self.buffers.get_mut(at..at + run.len)?;
        let Run { remote, local, ecn, segment_size, .. } = run;
        Some(Datagrams { remote, local, ecn, segment_size, bytes, header })
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

    /// Messages that the kernel gave in the last call, also those that were empty or incomplete. Streams have none.
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// Whether the kernel gave as much as one call takes, though some of it was empty, or came incomplete: there may be
    /// more.
    pub fn is_full(&self) -> bool {
        self.messages.max(self.runs.len()) >= RUNS_PER_BATCH
    }

    /// Forgets what it holds, and hands out the buffers, one for each run.
    pub(super) fn start(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.runs.clear();
        self.kernel_drops = 0;
        (self.truncated, self.messages) = (0, 0);
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

    /// Says what lies in buffer `at`, after those before it. Empty datagrams are nothing: no protocol of ours has them.
    /// Returns the number of runs this adds.
    pub(super) fn set(&mut self, at: usize, run: Run) -> usize {
        if run.len > 0 {
            self.runs.push(Placed { run, at: at * RECV_BUFFER_BYTES + run.start, header: 0 });
        }
        usize::from(run.len > 0)
    }
}

/// Adds a datagram to the last run if it continues that, else as a run behind it.
fn add(runs: &mut Vec<Placed>, new: Placed) {
    let continues = |last: &&mut Placed| {
        let (one, other) = (&last.run, &new.run);
        let same = (one.remote, one.local, one.ecn, last.header) == (other.remote, other.local, other.ecn, new.header);
        same && last.at + one.len == new.at && one.len % one.segment_size == 0 && other.len <= one.segment_size
    };
    match runs.last_mut().filter(continues) {
        Some(last) => last.run.len += new.run.len,
        None => runs.push(new),
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
        let by_place: Vec<_> = (0..4).map(|at| batch.run(at).map(|run| run.bytes.len())).collect();
        assert_eq!(by_place, [Some(2500), Some(1000), None, None]);
    }

    #[test]
    fn datagrams_with_headers_become_runs_by_what_those_say() {
        let mut batch = RecvBatch::new();
        // Who, how many bytes of headers, and how many in all.
        let came = [(1, 2, 6), (1, 2, 6), (2, 2, 6), (2, 3, 6), (0, 0, 6), (2, 3, 6), (2, 3, 5)];
        let mut bytes = Vec::new();
        for (who, header, len) in came {
            bytes.extend([who, header].into_iter().chain([who * 10 + header; 9]).take(len));
        }
        batch.buffer(0)[..bytes.len()].copy_from_slice(&bytes);
        batch.buffer(1)[..6].copy_from_slice(&[2, 3, 7, 7, 7, 7]);
        batch.set(0, Run { segment_size: 6, ..run(bytes.len()) });
        batch.set(1, Run { segment_size: 6, ..run(6) });
        let address = |who: u8| SocketAddr::from(([192, 0, 2, who], 1));
        batch.unwrap_each(|outer, _, datagram| {
            assert_eq!(outer, run(1).remote);
            let [who, header, ..] = *datagram else { panic!("a datagram of two bytes at least") };
            (who > 0).then(|| Unwrapped { remote: address(who), header: usize::from(header) })
        });
        let seen: Vec<(SocketAddr, Vec<Vec<u8>>)> =
            batch.runs().map(|run| (run.remote, run.singles().map(|one| one.to_vec()).collect())).collect();
        let (one, two, three) = (vec![12; 4], vec![22; 4], vec![23; 3]);
        let expected = [
            (address(1), vec![one.clone(), one]),
            (address(2), vec![two]),
            (address(2), vec![three.clone()]),
            (address(2), vec![three, vec![23; 2]]),
            (address(2), vec![vec![7; 3]]),
        ];
        assert_eq!(seen, expected);
        batch.unwrap_each(|_, _, datagram| Some(Unwrapped { remote: address(9), header: datagram.len() }));
        assert_eq!(batch.runs().count(), 0, "there was nothing behind the headers");
    }

    #[test]
    fn a_new_start_forgets_the_runs() {
        let mut batch = RecvBatch::new();
        batch.set(0, run(2500));
        assert_eq!(batch.start().count(), RUNS_PER_BATCH);
        assert_eq!(batch.runs().count(), 0);
    }
}
