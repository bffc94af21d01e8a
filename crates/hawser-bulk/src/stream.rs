//! The control stream of each direction: bytes in order, with go-back-n.
//!
//! 1. [`Outgoing`] keeps what is not acknowledged, and says which piece is due. 2. [`Incoming`] takes pieces in order,
//!    and gives whole messages.

use std::time::Duration;

use hawser_core::units::Time;
use hawser_core::wire::WireError;

use crate::wire::{MESSAGE_HEAD, MOST_MESSAGE, Message};

/// Bytes under way at most: 16 datagrams of 1200 bytes, a little more than RFC 6928's initial window.
const WINDOW: usize = 16 * 1200;
/// Doublings of the wait end here.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// What one end says. Empty at first; its session owns it.
#[derive(Debug, Default)]
pub struct Outgoing {
    /// From the first byte that is not acknowledged.
    bytes: Vec<u8>,
    /// Where in the stream that is.
    start: usize,
    /// Bytes of `bytes` that were sent since the last return.
    sent: usize,
    /// When the first missing byte goes again.
    again_at: Option<Time>,
    /// Times that it did.
    tries: u32,
}

/// A piece that is to be sent. Borrows the stream.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Where in the stream it begins.
    pub offset: u32,
    /// Its bytes.
    pub bytes: &'a [u8],
}

impl Outgoing {
    /// Says something more.
    pub fn say(&mut self, message: &Message) {
        message.write(&mut self.bytes);
    }

    /// Whether all of it arrived.
    pub fn is_done(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether a piece is due.
    pub fn is_due(&self) -> bool {
        self.sent < self.bytes.len().min(WINDOW)
    }

    /// The next piece of at most `room` bytes; what was sent is due again after `wait`, which doubles.
    pub fn next_piece(&mut self, now: Time, room: usize, wait: Duration) -> Option<Piece<'_>> {
        let end = self.bytes.len().min(WINDOW).min(self.sent + room);
        if self.sent >= end {
            return None;
        }
        let piece = Piece { offset: (self.start + self.sent) as u32, bytes: &self.bytes[self.sent..end] };
        self.sent = end;
        let wait = (wait * (1 << self.tries.min(6))).min(LONGEST_WAIT.max(wait));
        self.again_at.get_or_insert(now + wait);
        Some(piece)
    }

    /// Bytes of the stream that were not acknowledged yet.
    pub fn bytes(&self, offset: u32, len: usize) -> Option<&[u8]> {
        let from = (offset as usize).checked_sub(self.start)?;
        self.bytes.get(from..from + len)
    }

    /// The other end has this much of the stream; what else was sent is due again after `wait`.
    ///
    /// # Errors
    /// [`WireError::OutOfRange`] where as many were never sent.
    pub fn on_received(&mut self, now: Time, total: u32, wait: Duration) -> Result<(), WireError> {
        let Some(new) = (total as usize).checked_sub(self.start).filter(|new| *new > 0) else { return Ok(()) };
        if new > self.bytes.len() {
            return Err(WireError::OutOfRange);
        }
        self.bytes.drain(..new);
        self.start += new;
        self.sent = self.sent.saturating_sub(new);
        self.again_at = (self.sent > 0).then_some(now + wait);
        self.tries = 0;
        Ok(())
    }

    /// What was sent and not acknowledged in time goes again, from the first missing byte on.
    pub fn on_timeout(&mut self, now: Time) {
        if self.again_at.is_some_and(|at| at <= now) {
            (self.sent, self.again_at) = (0, None);
            self.tries += 1;
        }
    }

    /// When that is.
    pub fn deadline(&self) -> Option<Time> {
        self.again_at.filter(|_| !self.bytes.is_empty())
    }
}

/// What the other end says. Empty at first; its session owns it.
#[derive(Debug, Default)]
pub struct Incoming {
    bytes: Vec<u8>,
    total: u32,
}

impl Incoming {
    /// Bytes that have come in order.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Takes a piece; one that is not the next goes, and comes again. Says whether anything was new.
    pub fn on_piece(&mut self, offset: u32, piece: &[u8]) -> bool {
        let known = self.total.checked_sub(offset).and_then(|known| usize::try_from(known).ok());
        let Some(new) = known.and_then(|known| piece.get(known..)).filter(|new| !new.is_empty()) else { return false };
        if self.bytes.len() + new.len() > MESSAGE_HEAD + MOST_MESSAGE + WINDOW {
            return false;
        }
        self.bytes.extend_from_slice(new);
        self.total += new.len() as u32;
        true
    }

    /// The next whole message.
    ///
    /// # Errors
    /// [`WireError`] where it is none: nothing that follows can be read.
    pub fn next_message(&mut self) -> Result<Option<Message>, WireError> {
        let Some(head) = self.bytes.first_chunk::<MESSAGE_HEAD>() else { return Ok(None) };
        let body = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if body > MOST_MESSAGE {
            return Err(WireError::OutOfRange);
        }
        let Some(whole) = self.bytes.get(..MESSAGE_HEAD + body) else { return Ok(None) };
        let message = Message::decode(whole)?;
        self.bytes.drain(..MESSAGE_HEAD + body);
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Have, Verdict};
    use proptest::prelude::*;

    const WAIT: Duration = Duration::from_millis(100);

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn what_is_not_acknowledged_goes_again_ever_later() {
        let mut out = Outgoing::default();
        out.say(&Message::Result(1, Verdict::Good));
        let all = out.next_piece(at(0), 100, WAIT).expect("a piece").bytes.to_vec();
        assert!(!out.is_due() && out.next_piece(at(1), 100, WAIT).is_none());
        let mut due = 100;
        for wait in [200, 400, 800, 1600, 2000, 2000] {
            assert_eq!(out.deadline(), Some(at(due)));
            out.on_timeout(at(due));
            assert_eq!(out.next_piece(at(due), 100, WAIT), Some(Piece { offset: 0, bytes: &all }));
            due += wait;
        }
        assert_eq!(out.on_received(at(due), 3, WAIT), Ok(()));
        assert_eq!(out.deadline(), Some(at(due + 100)), "the wait begins anew");
        assert_eq!(out.on_received(at(due), all.len() as u32 + 1, WAIT), Err(WireError::OutOfRange));
        assert_eq!(out.on_received(at(due), all.len() as u32, WAIT), Ok(()));
        assert!(out.is_done() && out.deadline().is_none());
        assert_eq!(out.on_received(at(due), 2, WAIT), Ok(()), "an old word changes nothing");
    }

    #[test]
    fn a_message_longer_than_any_ends_the_stream() {
        let mut into = Incoming::default();
        assert!(into.on_piece(0, &[1, 0xff, 0, 0, 0]));
        assert!(into.next_message().is_err());
    }

    proptest! {
        /// Pieces are lost, doubled and out of order; what is said arrives, once. Fates come round as tries do: the next
        /// piece is not kept out more than twice in a row, as it would be for ever where both go in step.
        #[test]
        fn what_is_said_arrives(
            rooms in proptest::collection::vec(1_usize..300, 1..200),
            fates in proptest::collection::vec(0_u8..4, 1..200),
        ) {
            let said: Vec<Message> = (0..8)
                .map(|file| Message::Answer(file, Verdict::Good, Have(vec![(0, 1), (5, 2)])))
                .collect();
            let (mut out, mut into) = (Outgoing::default(), Incoming::default());
            said.iter().for_each(|message| out.say(message));
            let (mut heard, mut held, mut now, mut kept_out) = (Vec::new(), None, at(0), 0);
            let mut all = Vec::new();
            said.iter().for_each(|message| message.write(&mut all));
            // At worst each byte alone comes at the third try, and all behind it goes in vain; and each try's timeout.
            for step in 0..3 * all.len() * (all.len() + 1) {
                if out.is_done() {
                    break;
                }
                let Some(piece) = out.next_piece(now, rooms[step % rooms.len()], WAIT) else {
                    now = out.deadline().expect("something is under way");
                    out.on_timeout(now);
                    continue;
                };
                let piece = (piece.offset, piece.bytes.to_vec());
                let (fate, is_next) = (fates[step % fates.len()], piece.0 == into.total());
                kept_out = if is_next && fate < 2 { kept_out + 1 } else { kept_out };
                match fate {
                    0 | 1 if is_next && kept_out > 2 => {
                        kept_out = 0;
                        into.on_piece(piece.0, &piece.1);
                    }
                    0 => {}
                    1 => held = Some(piece),
                    fate => {
                        into.on_piece(piece.0, &piece.1);
                        if let Some((offset, bytes)) = held.take().filter(|_| fate == 2) {
                            into.on_piece(offset, &bytes);
                        }
                        into.on_piece(piece.0, &piece.1);
                    }
                }
                while let Some(message) = into.next_message().expect("messages") {
                    heard.push(message);
                }
                out.on_received(now, into.total(), WAIT).expect("they were sent");
            }
            prop_assert_eq!(heard, said);
        }
    }
}
