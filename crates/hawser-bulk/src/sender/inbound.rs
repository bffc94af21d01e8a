//! What comes to a sender: acknowledgements and control messages.

use hawser_core::units::{PathId, Time};
use hawser_core::wire::{DataHeader, Reader};

use super::{End, Event, Phase, Sender, all_settled, take};
use crate::wire::{Ack, Frame, Message, Reason, Verdict};

/// What a datagram was. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Heard {
    /// Of this session.
    Ours,
    /// None of this session, or changed.
    Nothing,
}

impl Sender {
    /// Step 2: a datagram came by a path.
    pub fn handle_datagram(&mut self, now: Time, path: usize, datagram: &mut [u8]) -> Heard {
        let Ok(header) = DataHeader::decode(&mut Reader::new(datagram)) else { return Heard::Nothing };
        let (Some(largest), id) = (self.largest.get(path).copied(), PathId(path as u32)) else { return Heard::Nothing };
        if self.keys.recv.label(id) != header.label || self.phase == Phase::Ended {
            return Heard::Nothing;
        }
        let number = header.number.expand(largest);
        let Ok(frame) = self.keys.recv.open(id, number, datagram) else { return Heard::Nothing };
        self.largest[path] = largest.max(Some(number));
        self.heard_at = now;
        let taken = match Frame::decode(frame) {
            Ok(Frame::Ack(ack)) => self.on_ack(now, path, &ack),
            Ok(Frame::Control { control, offset, piece }) => self.on_control(now, path, control, offset, piece),
            Ok(Frame::Close(reason)) => {
                self.end(End::Closed(reason));
                Some(())
            }
            Ok(Frame::Data(..) | Frame::Mark(_)) | Err(_) => None,
        };
        if taken.is_none() {
            self.close(End::Protocol);
        }
        self.look();
        Heard::Ours
    }

    /// None: a lie.
    fn on_ack(&mut self, now: Time, at: usize, ack: &Ack<'_>) -> Option<()> {
        let queue = &mut self.queue;
        self.paths[at].on_ack(now, ack, |fate| take(queue, fate)).ok()?;
        self.limit = self.limit.max(ack.limit);
        self.out.on_received(now, ack.control, self.paths[at].pto()).ok()
    }

    /// None: it cannot be read.
    fn on_control(&mut self, now: Time, at: usize, control: u32, offset: u32, piece: &[u8]) -> Option<()> {
        self.out.on_received(now, control, self.paths[at].pto()).ok()?;
        self.into.on_piece(offset, piece);
        self.paths[at].ask_mark();
        while let Some(message) = self.into.next_message().ok()? {
            self.on_message(message)?;
        }
        if self.phase == Phase::Sending && all_settled(&self.answers, &self.results) {
            self.close(End::Done);
        }
        Some(())
    }

    fn on_message(&mut self, message: Message) -> Option<()> {
        match message {
            Message::Answer(file, verdict, have) => {
                let file = usize::from(file);
                let answer = self.answers.get_mut(file).filter(|answer| answer.is_none())?;
                *answer = Some(verdict);
                if verdict == Verdict::Good {
                    let there: u32 = have.0.iter().map(|(_, blocks)| blocks).sum();
                    self.to_load += self.queue.blocks_of(file).checked_sub(there)?;
                }
                self.events.push_back(Event::Answered(file, verdict, have));
                if self.phase == Phase::Offering && self.answers.iter().all(Option::is_some) {
                    self.phase = Phase::Sending;
                }
            }
            Message::Result(file, verdict) => {
                let file = usize::from(file);
                let taken = self.answers.get(file) == Some(&Some(Verdict::Good));
                let result = self.results.get_mut(file).filter(|result| taken && result.is_none())?;
                *result = Some(verdict);
                self.events.push_back(Event::Result(file, verdict));
            }
            Message::Offer { .. } | Message::Digest(..) => return None,
        }
        Some(())
    }

    /// Why it closes, as the other end is told.
    pub(super) fn reason(&self) -> Option<Reason> {
        match self.phase {
            Phase::Closing(End::Done) => Some(Reason::Done),
            Phase::Closing(End::Rekey) => Some(Reason::Rekey),
            Phase::Closing(End::Protocol) => Some(Reason::Protocol),
            Phase::Closing(_) => Some(Reason::Stopped),
            Phase::Offering | Phase::Sending | Phase::Ended => None,
        }
    }
}
