//! Receiving on a TCP link.
//!
//! 1. What an earlier call left over goes first. 2. One look at which sockets are ready. 3. The listening one gives
//!    connections, and the TLS acceptor those whose handshake is over (`accept.rs`).
//! 4. A call is answered; a full stream takes more; a stream is read, once.
//! 5. Whole records become runs of equal datagrams; the rest of a record waits for its end. A stream that brings
//!    something else ends.

use std::io;
use std::mem::MaybeUninit;

use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventFlags};

use super::super::Ecn;
use super::super::recv_batch::{RECV_BUFFER_BYTES, RUNS_PER_BATCH, RecvBatch, Run};
use super::records::{Front, LENGTH_BYTES, front};
use super::stream::Phase;
use super::{LISTENER, StreamNews, TLS_ACCEPTOR, TcpLink};

/// Sockets looked at in one call: what they bring is all handed out before the next.
const READY_MAX: usize = 32;
/// Not to wait.
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// What was read from a stream and not handed out: `scratch[start..end]`. Plain data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) key: u64,
    start: usize,
    end: usize,
}

pub(super) fn receive(link: &mut TcpLink, batch: &mut RecvBatch) -> io::Result<usize> {
    let _ = batch.start();
    let mut runs = hand_out(link, batch, 0);
    if link.held.is_none() && link.ready.is_empty() {
        look(link)?;
    }
    while runs < RUNS_PER_BATCH && link.held.is_none() {
        let Some((key, flags)) = link.ready.pop_front() else { break };
        if key == LISTENER {
            link.accept();
        } else if key == TLS_ACCEPTOR {
            link.take_finished();
        } else if on_ready(link, key, flags).is_err() {
            link.broken(key);
        }
        runs = hand_out(link, batch, runs);
    }
    Ok(runs)
}

/// Step 2.
fn look(link: &mut TcpLink) -> io::Result<()> {
    let mut events = [const { MaybeUninit::<Event>::uninit() }; READY_MAX];
    match epoll::wait(&link.epoll, &mut events, Some(&AT_ONCE)) {
        Ok((events, _)) => {
            link.ready.extend(events.iter().map(|event| ({ event.data }.u64(), { event.flags })));
            Ok(())
        }
        Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Step 4.
fn on_ready(link: &mut TcpLink, key: u64, flags: EventFlags) -> io::Result<()> {
    let Some(stream) = link.streams.get_mut(&key) else { return Ok(()) };
    if stream.phase == Phase::Connecting {
        stream.connected()?;
        if stream.phase == Phase::Open {
            link.news.push_back(StreamNews::Up(stream.remote));
        }
        link.stale.push(key);
        link.watch(key);
        return Ok(());
    }
    if stream.wants_tls()? {
        return link.begin_tls(key);
    }
    if flags.contains(EventFlags::OUT) {
        stream.flush()?;
        link.stale.push(key);
    }
    if flags.intersects(EventFlags::IN | EventFlags::ERR | EventFlags::HUP)
        && let Some(end) = stream.fill(&mut link.scratch)?
    {
        link.held = Some(Held { key, start: 0, end });
    }
    if stream.handshake_is_over() {
        link.news.push_back(StreamNews::Up(stream.remote));
        link.stale.push(key);
    }
    link.watch(key);
    Ok(())
}

/// Step 5, from run number `runs` on; gives the number of runs there are then.
fn hand_out(link: &mut TcpLink, batch: &mut RecvBatch, mut runs: usize) -> usize {
    let Some(Held { key, mut start, end }) = link.held.take() else { return runs };
    let Some(stream) = link.streams.get_mut(&key) else { return runs };
    while runs < RUNS_PER_BATCH {
        let (taken, run) = one_run(&link.scratch[start..end], &link.opts.sizes, batch.buffer(runs));
        start += taken;
        let Some((segment_size, len)) = run else {
            if matches!(front(&link.scratch[start..end], &link.opts.sizes), Front::Malformed) {
                link.end(key);
            } else {
                stream.keep(&link.scratch[start..end]);
            }
            return runs;
        };
        let run = Run { remote: stream.remote, local: None, ecn: Ecn::NotEct, segment_size, start: 0, len };
        runs += batch.set(runs, run);
    }
    link.held = Some(Held { key, start, end });
    runs
}

/// The first records of `bytes` that are one run, without their lengths into `buffer`: the bytes taken, and the size of
/// each datagram and of all of them; none where no whole record is there.
fn one_run(
    bytes: &[u8],
    sizes: &std::ops::RangeInclusive<usize>,
    buffer: &mut [u8],
) -> (usize, Option<(usize, usize)>) {
    let (mut taken, mut len, mut size) = (0, 0, None);
    while let Front::Datagram(datagram) = front(&bytes[taken..], sizes) {
        let size = *size.get_or_insert(datagram.len());
        if datagram.len() > size || len + datagram.len() > buffer.len().min(RECV_BUFFER_BYTES) {
            break;
        }
        buffer[len..len + datagram.len()].copy_from_slice(datagram);
        len += datagram.len();
        taken += LENGTH_BYTES + datagram.len();
        if datagram.len() < size {
            break;
        }
    }
    (taken, size.map(|size| (size, len)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_one_size_and_a_shorter_last_are_a_run() {
        let record = |size: u8| [&[0, size][..], &vec![size; usize::from(size)]].concat();
        let bytes = [record(4), record(4), record(3), record(3), record(5), record(9)].concat();
        let (mut at, mut runs) = (0, Vec::new());
        let mut buffer = [0; 64];
        while let (taken, Some(run)) = one_run(&bytes[at..], &(3..=5), &mut buffer) {
            at += taken;
            runs.push(run);
        }
        assert_eq!(runs, [(4, 11), (3, 3), (5, 5)]);
        assert_eq!(front(&bytes[at..], &(3..=5)), Front::Malformed);
        let mut small = [0; 9];
        assert_eq!(one_run(&bytes, &(3..=5), &mut small), (12, Some((4, 8))), "the third does not fit");
    }
}
