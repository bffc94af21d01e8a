//! Sending: payloads are filled in place behind their headers, and leave as trains.
//!
//! 1. [`TxHalf::send`] takes the flow's way as it is now, and sends first what an earlier batch left over.
//! 2. The caller fills the [`Batch`], payload by payload; each gets its header at once.
//! 3. The batch goes; a full socket is waited for as long as the caller may.
//! 4. What the kernel refused is an error; the rest went.

use std::io;
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use hawser_net::link::udp::UdpLink;
use hawser_net::link::{Link, MAX_RUN_BYTES, MAX_RUN_SEGMENTS, SEND_BATCH_BYTES, SendBatch};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::Pace;
use super::error::SendError;
use super::flow::Flow;
use super::pace::Pacer;
use super::port::Port;
use super::way::Way;
use crate::addr::EndpointAddr;
use crate::packet::UDP_LEN;

/// How long a call may wait. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// Not at all.
    Never,
    /// Until then; `None` for ever.
    Until(Option<Instant>),
}

impl Wait {
    /// So long from now.
    pub(super) fn for_time(time: Option<Duration>) -> Wait {
        Wait::Until(time.and_then(|time| Instant::now().checked_add(time)))
    }

    /// Waits until one of `events` happens to a socket; says which did, none if the time is over.
    pub(super) fn wait(self, fd: impl AsFd, events: PollFlags) -> io::Result<PollFlags> {
        loop {
            let left = match self {
                Wait::Never => return Ok(PollFlags::empty()),
                Wait::Until(None) => None,
                Wait::Until(Some(end)) => match end.checked_duration_since(Instant::now()) {
                    None => return Ok(PollFlags::empty()),
                    Some(left) => Some(left.try_into().map_err(|_| Errno::INVAL)?),
                },
            };
            let mut fds = [PollFd::new(&fd, events)];
            match poll(&mut fds, left.as_ref()) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(fds[0].revents()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// What a batch came to. Plain data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct Sent {
    /// Packets added to the batch.
    pub packets: usize,
    /// Bytes of their payloads.
    pub bytes: usize,
    /// The socket is full: a part of the batch waits for the next call, or for `flush`.
    pub left_over: bool,
}

/// Why a payload was not added to a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// The batch is full: send it first.
    #[error("add to a batch: it is full")]
    Full,
    /// Longer than the path takes.
    #[error("add {bytes} bytes to a batch: the path takes {max} at most")]
    TooLong {
        /// Bytes of the payload.
        bytes: usize,
        /// The most it may have.
        max: usize,
    },
}

impl PushError {
    /// The same, of a batch to a destination.
    pub(super) fn for_destination(self, destination: EndpointAddr) -> SendError {
        match self {
            PushError::Full => SendError::Full { destination },
            PushError::TooLong { bytes, max } => SendError::TooLong { bytes, max, destination },
        }
    }
}

/// Packets being written, back to back. Begins empty. Borrowed for one call, by one thread.
#[derive(Debug)]
pub struct Batch<'a> {
    way: &'a Way,
    sealed: &'a mut SendBatch,
    /// Bytes that may still be added: what goes at once at the pace, or what makes whole trains.
    left: usize,
    packets: usize,
    bytes: usize,
}

impl<'a> Batch<'a> {
    pub(super) fn new(way: &'a Way, sealed: &'a mut SendBatch, pace: Option<Pace>) -> Batch<'a> {
        let left = pace.map_or(usize::MAX, Pace::burst_bytes);
        Batch { way, sealed, left, packets: 0, bytes: 0 }
    }

    /// Bytes that a payload may have.
    pub fn max_payload(&self) -> usize {
        self.way.max_payload
    }

    /// Packets added so far.
    pub fn packets(&self) -> usize {
        self.packets
    }

    /// Adds a packet with a payload of `bytes`, which `fill` writes; what an earlier packet left is in it at first.
    /// Payloads of one length, the last of which may be shorter, go as one train.
    ///
    /// # Errors
    /// [`PushError`], without calling `fill`.
    pub fn push(&mut self, bytes: usize, fill: impl FnOnce(&mut [u8])) -> Result<(), PushError> {
        let template = &self.way.template;
        let headroom = template.headroom();
        let seal = |packet: &mut [u8]| {
            fill(&mut packet[headroom..]);
            template.finish(packet);
        };
        self.put(headroom, bytes, self.way.max_payload, seal)
    }

    /// Adds a packet with a copy of a segment of TCP in the place of a datagram; its checksum is made, whatever stands
    /// there. `class` is its traffic class. What holds for trains holds here too.
    ///
    /// # Errors
    /// [`PushError`], with nothing added.
    ///
    /// # Panics
    /// If the segment has less than a TCP header.
    pub fn copy_tcp(&mut self, segment: &[u8], class: u8) -> Result<(), PushError> {
        let template = &self.way.template;
        let headroom = template.tcp_headroom();
        let seal = |packet: &mut [u8]| {
            packet[headroom..].copy_from_slice(segment);
            template.finish_tcp(packet, class);
        };
        self.put(headroom, segment.len(), self.way.max_payload + UDP_LEN, seal)
    }

    /// Adds a packet of `bytes`, at most `max`, behind `headroom`, which `seal` writes.
    fn put(
        &mut self,
        headroom: usize,
        bytes: usize,
        max: usize,
        seal: impl FnOnce(&mut [u8]),
    ) -> Result<(), PushError> {
        if bytes > max {
            return Err(PushError::TooLong { bytes, max });
        }
        let packet = headroom + bytes;
        if self.packets == 0 {
            self.left = self.left.min(whole_trains(packet)).max(packet);
        }
        if packet > self.left {
            return Err(PushError::Full);
        }
        let seal = |room: &mut [u8]| {
            seal(room);
            packet
        };
        self.sealed.push(self.way.route, packet, seal).map_err(|_| PushError::Full)?;
        self.left -= packet;
        self.packets += 1;
        self.bytes += bytes;
        Ok(())
    }

    /// Adds a packet with a copy of a payload.
    ///
    /// # Errors
    /// [`PushError`], with nothing added.
    pub fn copy(&mut self, payload: &[u8]) -> Result<(), PushError> {
        self.push(payload.len(), |room| room.copy_from_slice(payload))
    }

    pub(super) fn sent(&self) -> Sent {
        Sent { packets: self.packets, bytes: self.bytes, left_over: false }
    }
}

/// Bytes of as many full trains of such packets as a batch holds: a short train at its end costs as much as a long one.
fn whole_trains(packet: usize) -> usize {
    let train = packet * (MAX_RUN_BYTES / packet).clamp(1, MAX_RUN_SEGMENTS);
    (SEND_BATCH_BYTES / train).max(1) * train
}

/// One sender's half of the socket. Begins with nothing to send. For one thread: others have their own, or a lock.
#[derive(Debug)]
pub(super) struct TxHalf {
    link: UdpLink,
    batch: SendBatch,
    pacer: Option<Pacer>,
}

impl TxHalf {
    pub(super) fn new(link: UdpLink, pace: Option<Pace>) -> TxHalf {
        TxHalf { link, batch: SendBatch::new(), pacer: pace.map(|pace| Pacer::new(pace, Instant::now())) }
    }

    /// Steps 1 to 4.
    pub(super) fn send(
        &mut self,
        port: &Port,
        flow: &Flow,
        wait: Wait,
        fill: impl FnOnce(&mut Batch<'_>),
    ) -> Result<Sent, SendError> {
        let destination = flow.destination;
        let way = flow.way(SystemTime::now())?;
        if !self.flush(port, destination, wait)? || !self.keep_pace(wait) {
            return Err(SendError::Full { destination });
        }
        let mut batch = Batch::new(&way, &mut self.batch, self.pacer.as_ref().map(Pacer::pace));
        fill(&mut batch);
        let sent = batch.sent();
        port.counters.sent_packets.add(sent.packets as u64);
        port.counters.sent_bytes.add(sent.bytes as u64);
        if let Some(pacer) = &mut self.pacer {
            pacer.sent(self.batch.pending_bytes(), Instant::now());
        }
        Ok(Sent { left_over: !self.flush(port, destination, wait)?, ..sent })
    }

    /// Steps 3 and 4: sends what there is, and says whether all of it went.
    pub(super) fn flush(&mut self, port: &Port, destination: EndpointAddr, wait: Wait) -> Result<bool, SendError> {
        let mut refused: Option<SendError> = None;
        while !self.batch.is_empty() {
            let outcome = self.link.send(&mut self.batch)?;
            refused = refused.or(failure(port, destination, &self.batch));
            if outcome.blocked && wait.wait(&self.link, PollFlags::OUT)?.is_empty() {
                break;
            }
        }
        refused.map_or(Ok(self.batch.is_empty()), Err)
    }

    /// Waits until the pace lets more go; says whether it does.
    fn keep_pace(&self, wait: Wait) -> bool {
        let pause = self.pause();
        if !pause.is_zero() && wait != Wait::Never {
            thread::sleep(pause);
        }
        pause.is_zero() || wait != Wait::Never
    }

    /// How long the pace lets nothing go.
    pub(super) fn pause(&self) -> Duration {
        self.pacer.as_ref().map_or(Duration::ZERO, |pacer| pacer.wait(Instant::now()))
    }

    /// Sends packets without waiting: all of them, or (`WouldBlock`) none, or as many as go, the rest being lost.
    pub(super) fn send_or_lose<'p>(
        &mut self,
        port: &Port,
        flow: &Flow,
        payloads: impl Iterator<Item = &'p [u8]>,
    ) -> io::Result<()> {
        let Ok(way) = flow.way(SystemTime::now()) else {
            port.counters.refused_packets.add(payloads.count() as u64);
            return Ok(());
        };
        self.batch.clear();
        let mut batch = Batch::new(&way, &mut self.batch, None);
        let lost = payloads.map(|payload| batch.copy(payload)).filter(Result::is_err).count();
        let sent = batch.sent();
        let all = self.batch.pending_bytes();
        let gone = match self.flush(port, flow.destination, Wait::Never) {
            Err(SendError::Socket(error)) => return Err(error),
            Ok(true) | Err(_) => true,
            Ok(false) => false,
        };
        if !gone && self.batch.pending_bytes() == all {
            self.batch.clear();
            return Err(io::ErrorKind::WouldBlock.into());
        }
        port.counters.sent_packets.add(sent.packets as u64);
        port.counters.sent_bytes.add(sent.bytes as u64);
        port.counters.refused_packets.add(lost as u64);
        self.batch.clear();
        Ok(())
    }

    /// Whether the kernel takes trains, as far as is known.
    pub(super) fn takes_trains(&self) -> bool {
        self.link.segmentation()
    }

    /// Whether something waits.
    pub(super) fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Sends a batch that somebody else filled, in the place of the own; what is left of it stays in it.
    pub(super) fn send_sealed(
        &mut self,
        port: &Port,
        destination: EndpointAddr,
        sealed: &mut SendBatch,
        wait: Wait,
    ) -> Result<bool, SendError> {
        self.keep_pace(Wait::Until(None));
        std::mem::swap(&mut self.batch, sealed);
        let before = self.batch.pending_bytes();
        let gone = self.flush(port, destination, wait);
        if let Some(pacer) = &mut self.pacer {
            pacer.sent(before - self.batch.pending_bytes(), Instant::now());
        }
        std::mem::swap(&mut self.batch, sealed);
        gone
    }
}

/// Step 4: what the kernel refused, of the last call.
fn failure(port: &Port, destination: EndpointAddr, batch: &SendBatch) -> Option<SendError> {
    let first = batch.failures().first()?;
    let packets = batch.failures().iter().map(|failure| failure.bytes.div_ceil(failure.segment_size)).sum();
    port.counters.refused_packets.add(packets as u64);
    Some(SendError::Refused { destination, reason: first.reason, packets })
}
