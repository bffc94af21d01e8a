//! What a sender sends: control frames first, then chunks.
//!
//! 1. [`Sender::poll_transmit`]: the control stream by one path that answers, marks, chunks, copies of late ones.
//! 2. [`Sender::seal`] writes what it gave.

use hawser_core::handshake::SealError;
use hawser_core::units::{ByteCount, PacketNumber, PathId, Time};
use hawser_core::wire::{DATA_HEADER_LEN, DataHeader, Writer};

use super::path::{Content, PathState};
use super::{CLOSES, Phase, Sender};
use crate::layout::ChunkId;
use crate::wire::{CLOSE_LEN, CONTROL_HEAD, DATA_HEAD, Frame, MARK_LEN, Mark, Reason, SEAL_LEN, data_head};

/// A datagram that a path sends now, counted as sent. No default; write it before the next one is asked for.
#[derive(Copy, Clone, Debug)]
pub struct Packet {
    /// Bytes of it.
    pub len: usize,
    path: PathId,
    number: PacketNumber,
    header: DataHeader,
    body: Body,
}

/// What it carries.
#[derive(Copy, Clone, Debug)]
enum Body {
    Chunk(ChunkId),
    Control { control: u32, offset: u32, len: usize },
    Mark(Mark),
    Close(Reason),
}

impl Sender {
    /// A round of sending by a path begins.
    pub fn begin_batch(&mut self, path: usize) {
        if let Some(path) = self.paths.get_mut(path) {
            path.begin_batch();
        }
    }

    /// Step 1: what a path sends next; none when it has nothing, or has to wait.
    pub fn poll_transmit(&mut self, now: Time, at: usize) -> Option<Packet> {
        if at >= self.paths.len() || self.phase == Phase::Ended {
            return None;
        }
        if let Some(reason) = self.reason() {
            return self.closing(now, at, reason);
        }
        if self.speaks(at) {
            let (control, wait) = (self.into.total(), self.paths[at].pto());
            // It fits wherever a chunk does.
            let room = self.queue_datagram() - SEAL_LEN - CONTROL_HEAD;
            if let Some(piece) = self.out.next_piece(now, room, wait) {
                let body = Body::Control { control, offset: piece.offset, len: piece.bytes.len() };
                return Some(self.send(now, at, body));
            }
        }
        if let Some(mark) = self.paths[at].mark(now, self.into.total()) {
            return Some(self.send(now, at, Body::Mark(mark)));
        }
        if self.phase != Phase::Sending || self.paths[at].may_send(now).is_err() || !self.is_below_ceiling(now) {
            return None;
        }
        let chunk = self.queue.next_chunk(self.limit, !self.is_worn());
        let chunk = chunk.or_else(|| self.copies_late_ones().then(|| self.late_chunk(now, at)).flatten())?;
        Some(self.send(now, at, Body::Chunk(chunk)))
    }

    /// Step 2.
    ///
    /// # Errors
    /// [`SealError`] where `out` has another length than the packet.
    pub fn seal(&self, packet: &Packet, out: &mut [u8]) -> Result<(), SealError> {
        if out.len() != packet.len {
            return Err(SealError::Length);
        }
        out[..DATA_HEADER_LEN].copy_from_slice(&packet.header.encode());
        let frame = match packet.body {
            Body::Chunk(chunk) => {
                let head = DATA_HEADER_LEN + DATA_HEAD;
                data_head(chunk, &mut Writer::new(&mut out[DATA_HEADER_LEN..head])).map_err(|_| SealError::Length)?;
                let bytes = self.queue.bytes(chunk).ok_or(SealError::Length)?;
                return self.keys.send.seal_from(packet.path, packet.number, out, head, bytes);
            }
            Body::Control { control, offset, len } => {
                let piece = self.out.bytes(offset, len).ok_or(SealError::Length)?;
                Frame::Control { control, offset, piece }
            }
            Body::Mark(mark) => Frame::Mark(mark),
            Body::Close(reason) => Frame::Close(reason),
        };
        frame.encode(&mut out[DATA_HEADER_LEN..]).map_err(|_| SealError::Length)?;
        self.keys.send.seal(packet.path, packet.number, out)
    }

    fn send(&mut self, now: Time, at: usize, body: Body) -> Packet {
        let (len, content) = match body {
            Body::Chunk(chunk) => (DATA_HEAD + self.queue.len(chunk), Content::Chunk(chunk)),
            Body::Control { len, .. } => (CONTROL_HEAD + len, Content::Control),
            Body::Mark(_) => (MARK_LEN, Content::Control),
            Body::Close(_) => (CLOSE_LEN, Content::Control),
        };
        let len = SEAL_LEN + len;
        let limited = !self.queue.has_chunk(self.limit, true);
        let path = &mut self.paths[at];
        let (number, header) = path.next_number();
        path.on_sent(now, len, content, limited);
        if let Content::Chunk(_) = content {
            path.counts.sent_bytes += (len - SEAL_LEN - DATA_HEAD) as u64;
        }
        if let Some(ceiling) = &mut self.ceiling {
            ceiling.on_sent(now, ByteCount(len as u64));
        }
        self.sealed += 1;
        Packet { len, path: path.id, number, header, body }
    }

    /// CLOSE, by every path that may deliver it.
    fn closing(&mut self, now: Time, at: usize, reason: Reason) -> Option<Packet> {
        if self.paths[at].state.works() && self.closes[at] < CLOSES {
            self.closes[at] += 1;
            return Some(self.send(now, at, Body::Close(reason)));
        }
        let all = self.paths.iter().zip(&self.closes).all(|(path, closes)| !path.state.works() || *closes == CLOSES);
        if let (true, Phase::Closing(end)) = (all, self.phase) {
            self.end(end);
        }
        None
    }

    /// Whether a path carries the control stream: the one that answers soonest, and what was not acknowledged goes by
    /// all in turn.
    fn speaks(&self, at: usize) -> bool {
        self.out.is_due()
            && match self.paths[at].state {
                PathState::Active => true,
                PathState::Suspect | PathState::Untried => {
                    !self.paths.iter().any(|path| path.state == PathState::Active)
                }
                PathState::Down | PathState::Closed => false,
            }
    }

    fn is_below_ceiling(&mut self, now: Time) -> bool {
        let datagram = ByteCount(self.queue_datagram() as u64);
        self.ceiling.as_mut().is_none_or(|ceiling| ceiling.ready_at(now, datagram) <= now)
    }
}
