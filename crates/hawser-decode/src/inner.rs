//! Step 5: inner packets out of frames.
//!
//! 1. DATA and PROTECTED are inner packets, SPLIT a piece of one. 2. A flow sequence that was there before is a copy,
//!    retransmitted or by two paths. 3. A checksum that the sender's kernel left to its network card is completed (RFC
//!    9293 section 3.1, RFC 768).

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use hawser_core::packet::checksum;
use hawser_core::packet::inner::{self, Transport};
use hawser_core::path::replay::{ReplayVerdict, ReplayWindow};
use hawser_core::resequence::{Arrival, Reassembler};
use hawser_core::units::{PacketNumber, Time};
use hawser_core::wire::{DataFlags, FlowBucket, FlowSequence, Frame, Frames};

use crate::keys::StreamId;
use crate::{DecodeError, Summary};

/// Pieces of a packet wait for each other this long: longer than a portal waits, as the capture may have the paths
/// apart.
const PIECES_WAIT: Duration = Duration::from_secs(10);
/// Where the count of a flow bucket's sequence begins, so that what comes late is not below zero: the space of 24 bits.
const SEQUENCE_BASE: u64 = 1 << 24;
/// Where the checksum stands in a TCP header (RFC 9293 section 3.1), and in one of UDP (RFC 768).
const TCP_CHECKSUM_AT: usize = 16;
const UDP_CHECKSUM_AT: usize = 6;

/// What is known of one direction of a session. Nothing at first; the decoding owns it.
#[derive(Default)]
struct Stream {
    reassembler: Reassembler,
    buckets: HashMap<u16, Seen>,
}

/// The sequences of a flow bucket that came. Nothing at first; its stream owns it.
#[derive(Default)]
struct Seen {
    next: Option<u64>,
    window: ReplayWindow,
}

/// Inner packets of all sessions. Nothing was seen at first; the decoding owns it.
#[derive(Default)]
pub(crate) struct Inners {
    streams: HashMap<StreamId, Stream>,
    /// The packet whose checksum is completed.
    packet: Vec<u8>,
}

impl Inners {
    /// The frames of a datagram: what inner packets they complete goes to `on`.
    pub fn on_frames(
        &mut self,
        time: u64,
        stream: StreamId,
        frames: &[u8],
        summary: &mut Summary,
        on: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), DecodeError> {
        let Inners { streams, packet } = self;
        let Stream { reassembler, buckets } = streams.entry(stream).or_default();
        for frame in Frames::new(frames) {
            let (arrival, bytes) = match frame {
                Ok(Frame::Data(data)) => (arrival(data.bucket, data.flags, data.sequence), data.packet),
                Ok(Frame::Protected(frame)) => {
                    let data = frame.data;
                    (arrival(data.bucket, data.flags, data.sequence), data.packet)
                }
                Ok(Frame::Split(piece)) => {
                    let arrival = arrival(piece.bucket, piece.flags, piece.sequence);
                    let (id, at, now) = (piece.id.0, piece.offset, Time::from_nanos(time));
                    match reassembler.on_piece(now, id, at, piece.more, arrival, piece.bytes, PIECES_WAIT) {
                        Ok(Some(whole)) => {
                            summary.in_pieces += 1;
                            (whole.arrival, whole.packet)
                        }
                        // A piece that contradicts others was retransmitted: the first ones count.
                        Ok(None) | Err(_) => continue,
                    }
                }
                // Named one by one: a new frame may carry inner packets too.
                Ok(
                    Frame::Padding(_)
                    | Frame::Ping
                    | Frame::Ack(_)
                    | Frame::PathChallenge(_)
                    | Frame::PathResponse(_)
                    | Frame::PathInfo(_)
                    | Frame::Gone(_)
                    | Frame::Close(_)
                    | Frame::Hold(_)
                    | Frame::Repair(_)
                    | Frame::Terms(_)
                    | Frame::Reserved(_),
                ) => continue,
                Err(_) => {
                    summary.bad_frames += 1;
                    break;
                }
            };
            if !buckets.entry(arrival.bucket.get()).or_default().is_fresh(arrival.sequence) {
                summary.copies += 1;
                continue;
            }
            packet.clear();
            packet.extend_from_slice(bytes);
            if arrival.partial {
                complete(packet);
            }
            summary.inner += 1;
            on(packet).map_err(DecodeError::Write)?;
        }
        Ok(())
    }
}

impl Seen {
    fn is_fresh(&mut self, sequence: FlowSequence) -> bool {
        let near = self.next.unwrap_or(SEQUENCE_BASE + u64::from(sequence.get()));
        let count = sequence.expand(near);
        self.next = Some(near.max(count + 1));
        self.window.mark(PacketNumber(count)) == ReplayVerdict::Fresh
    }
}

fn arrival(bucket: FlowBucket, flags: DataFlags, sequence: FlowSequence) -> Arrival {
    Arrival { bucket, sequence, partial: flags.partial, unordered: flags.unordered }
}

/// Step 3: the field holds the sum of the pseudo-header, so that the sum of it all is that of the whole.
fn complete(packet: &mut [u8]) {
    let Ok(parsed) = inner::parse(packet) else { return };
    let at = match parsed.transport {
        Transport::Tcp { .. } => TCP_CHECKSUM_AT,
        Transport::Udp => UDP_CHECKSUM_AT,
        _ => return,
    };
    let transport = &mut packet[usize::from(parsed.transport_at)..];
    let checksum = match (!checksum::sum(transport), parsed.transport) {
        // Zero says that there is none (RFC 768).
        (0, Transport::Udp) => u16::MAX,
        (checksum, _) => checksum,
    };
    if let Some(field) = transport.get_mut(at..at + 2) {
        field.copy_from_slice(&checksum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_is_fresh_once_also_when_it_wraps_or_comes_late() {
        let mut seen = Seen::default();
        let last = (1 << 24) - 1;
        let table = [(5, true), (5, false), (4, true), (7, true), (6, true), (4, false)];
        for (sequence, fresh) in table {
            assert_eq!(seen.is_fresh(FlowSequence::of(sequence)), fresh, "{sequence}");
        }
        let mut seen = Seen::default();
        for (sequence, fresh) in [(last, true), (0, true), (last, false), (0, false), (1, true)] {
            assert_eq!(seen.is_fresh(FlowSequence::of(sequence)), fresh, "{sequence}");
        }
    }
}
