//! Control frames that are repeated until they are acknowledged: GONE, PATH_INFO, TERMS, LINK_NAME and SPEED.

use crate::units::{PacketNumber, PathId};
use crate::wire::{EncodeError, Gone, LinkNameFrame, PathInfo, SpeedFrame, SpeedWord, TermsFrame, Writer};

/// Frames that one datagram carries at most, of the 64 that it may have.
pub(super) const RELIABLE_MAX: usize = 32;

/// A frame that must arrive.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Frame {
    /// A part of a flow was given up.
    Gone(Gone),
    /// Word about one of our paths.
    Info(PathInfo),
    /// On what terms one of our paths is offered.
    Terms(TermsFrame),
    /// What the link of one of our paths is called.
    Name(LinkNameFrame),
    /// Word about a speed test.
    Speed(SpeedFrame),
}

struct Entry {
    frame: Frame,
    /// The datagram that carries it now; none: it waits.
    carrier: Option<(PathId, PacketNumber)>,
}

/// Frames not yet acknowledged, oldest first. Empty at first; one session owns it.
#[derive(Default)]
pub(super) struct Reliable {
    entries: Vec<Entry>,
    /// That of the last word about a path.
    revision: u64,
}

impl Reliable {
    /// The revision of the next word about a path.
    pub fn next_revision(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }

    /// Adds a frame; it takes the place of an older one about the same thing.
    pub fn push(&mut self, frame: Frame) {
        self.entries.retain(|entry| !supersedes(&frame, &entry.frame));
        self.entries.push(Entry { frame, carrier: None });
    }

    /// Whether a frame waits for a datagram.
    pub fn waits(&self) -> bool {
        self.entries.iter().any(|entry| entry.carrier.is_none())
    }

    /// Writes waiting frames, those that fit, as carried by datagram `number` on `path`. Tells how many.
    pub fn write(&mut self, path: PathId, number: PacketNumber, out: &mut Writer<'_>) -> Result<usize, EncodeError> {
        let mut written = 0;
        for entry in self.entries.iter_mut().filter(|entry| entry.carrier.is_none()).take(RELIABLE_MAX) {
            let encoded = match &entry.frame {
                Frame::Gone(gone) => gone.encode(out),
                Frame::Info(info) => info.encode(out),
                Frame::Terms(terms) => terms.encode(out),
                Frame::Name(name) => name.encode(out),
                Frame::Speed(speed) => speed.encode(out),
            };
            match encoded {
                Ok(()) => entry.carrier = Some((path, number)),
                Err(EncodeError::NoRoom) => break,
                Err(other) => return Err(other),
            }
            written += 1;
        }
        Ok(written)
    }

    /// A datagram arrived: what it carried is done.
    pub fn on_acked(&mut self, path: PathId, number: PacketNumber) {
        self.entries.retain(|entry| entry.carrier != Some((path, number)));
    }

    /// A datagram was lost: what it carried waits again.
    pub fn on_lost(&mut self, path: PathId, number: PacketNumber) {
        for entry in &mut self.entries {
            if entry.carrier == Some((path, number)) {
                entry.carrier = None;
            }
        }
    }
}

/// Whether `new` makes `old` superfluous.
fn supersedes(new: &Frame, old: &Frame) -> bool {
    match (new, old) {
        (Frame::Gone(new), Frame::Gone(old)) => new.bucket == old.bucket && !new.upto.precedes(old.upto),
        (Frame::Info(new), Frame::Info(old)) => new.path == old.path,
        (Frame::Terms(new), Frame::Terms(old)) => new.path == old.path,
        (Frame::Name(new), Frame::Name(old)) => new.path == old.path,
        // A refusal is about a run of the peer's, the other words about one of ours.
        (Frame::Speed(new), Frame::Speed(old)) => (new.word == SpeedWord::Refused) == (old.word == SpeedWord::Refused),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{FlowBucket, FlowSequence, LinkState};

    fn gone(bucket: u64, upto: u64) -> Frame {
        Frame::Gone(Gone { bucket: FlowBucket::of_hash(bucket), upto: FlowSequence::of(upto) })
    }

    #[test]
    fn a_frame_is_repeated_until_its_datagram_is_acknowledged() {
        let mut reliable = Reliable::default();
        let mut room = [0; 100];
        reliable.push(gone(1, 5));
        assert_eq!(reliable.write(PathId(0), PacketNumber(1), &mut Writer::new(&mut room)), Ok(1));
        assert!(!reliable.waits());
        reliable.on_lost(PathId(0), PacketNumber(1));
        assert_eq!(reliable.write(PathId(2), PacketNumber(9), &mut Writer::new(&mut room)), Ok(1));
        reliable.on_acked(PathId(0), PacketNumber(9));
        reliable.on_lost(PathId(2), PacketNumber(9));
        assert!(reliable.waits());
        reliable.write(PathId(2), PacketNumber(10), &mut Writer::new(&mut room)).expect("room");
        reliable.on_acked(PathId(2), PacketNumber(10));
        reliable.on_lost(PathId(2), PacketNumber(10));
        assert!(!reliable.waits());
    }

    #[test]
    fn what_one_datagram_may_not_have_goes_with_the_next() {
        let mut reliable = Reliable::default();
        (0..70).for_each(|bucket| reliable.push(gone(bucket, 5)));
        let mut room = [0; 1_400];
        let written =
            [1, 2, 3].map(|number| reliable.write(PathId(0), PacketNumber(number), &mut Writer::new(&mut room)));
        assert_eq!(written, [Ok(RELIABLE_MAX), Ok(RELIABLE_MAX), Ok(70 - 2 * RELIABLE_MAX)]);
        assert!(!reliable.waits());
    }

    #[test]
    fn newer_word_replaces_older_word_about_the_same_thing() {
        let mut reliable = Reliable::default();
        let info =
            |path, revision| Frame::Info(PathInfo { path: PathId(path), state: LinkState::Down, metric: 0, revision });
        for frame in [gone(1, 5), gone(2, 5), gone(1, 6), info(0, 1), info(2, 1), info(0, 2)] {
            reliable.push(frame);
        }
        let left: Vec<Frame> = reliable.entries.iter().map(|entry| entry.frame).collect();
        assert_eq!(left, [gone(2, 5), gone(1, 6), info(2, 1), info(0, 2)]);
    }
}
