//! Step 4: a data datagram is opened.
//!
//! 1. Its label names keys and path. 2. Its number is completed by the path's largest (RFC 9000 section A.3); where
//!    nothing is known of the path yet, which a capture that begins late does not tell, the first few are tried. 3. It
//!    is opened, and a number that was there before ends it.

use std::collections::HashMap;

use hawser_core::path::replay::{ReplayVerdict, ReplayWindow};
use hawser_core::units::{PacketNumber, PathId};
use hawser_core::wire::handshake::{COOKIE_REPLY_LEN, INITIATION_LEN, RESPONSE_LEN};
use hawser_core::wire::{DATA_HEADER_LEN, DataHeader, DatagramKind, Label, Reader, TAG_LEN};

use crate::keys::{Direction, Keys, Owner, StreamId};

/// High halves of a packet number that are tried for a path of which nothing is known: 68 billion packets.
const HIGH_HALVES: u64 = 16;
/// Bits of a number that are on the wire.
const LOW_BITS: u32 = 32;

/// Why a datagram was not opened. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// No key of the log has its label.
    NoKey,
    /// It does not open under the key of its label.
    Unauthentic,
    /// Its number was there before.
    Repeated,
    /// It is no datagram.
    Malformed,
}

impl Refusal {
    /// In a word.
    pub const fn name(self) -> &'static str {
        match self {
            Refusal::NoKey => "no key",
            Refusal::Unauthentic => "unauthentic",
            Refusal::Repeated => "repeated",
            Refusal::Malformed => "malformed",
        }
    }
}

/// A datagram that was opened. It borrows the opener.
#[derive(Debug)]
pub(crate) struct Opened<'o> {
    pub peer: &'o str,
    pub direction: Direction,
    pub path: PathId,
    pub number: PacketNumber,
    pub stream: StreamId,
    pub frames: &'o [u8],
}

/// What is known of a path in one direction. Nothing at first; the opener owns it.
#[derive(Default)]
struct Numbers {
    largest: Option<PacketNumber>,
    seen: ReplayWindow,
}

/// Opens datagrams. At first it saw none; the decoding owns it.
pub(crate) struct Opener {
    keys: Keys,
    paths: HashMap<(StreamId, PathId), Numbers>,
    frames: Vec<u8>,
}

impl Opener {
    pub fn new(keys: Keys) -> Self {
        Opener { keys, paths: HashMap::new(), frames: Vec::new() }
    }

    /// Whether some keys have this label.
    pub fn knows(&self, label: Label) -> bool {
        !self.keys.owners(label).is_empty()
    }

    /// Opens a datagram.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn open(&mut self, datagram: &[u8]) -> Result<Opened<'_>, Refusal> {
        let header = DataHeader::decode(&mut Reader::new(datagram)).map_err(|_| Refusal::Malformed)?;
        if datagram.len() < DATA_HEADER_LEN + TAG_LEN {
            return Err(Refusal::Malformed);
        }
        if !self.knows(header.label) {
            return Err(Refusal::NoKey);
        }
        let Opener { keys, paths, frames, .. } = self;
        frames.resize(datagram.len(), 0);
        let opened = keys.owners(header.label).iter().find_map(|owner| {
            let numbers = paths.get(&(keys.get(owner.keys).stream, owner.path));
            let (number, len) = try_open(keys, *owner, &header, numbers, datagram, frames)?;
            Some((*owner, number, len))
        });
        let (owner, number, len) = opened.ok_or(Refusal::Unauthentic)?;
        let stream = keys.get(owner.keys).stream;
        let numbers = paths.entry((stream, owner.path)).or_default();
        if numbers.seen.mark(number) == ReplayVerdict::Duplicate {
            return Err(Refusal::Repeated);
        }
        numbers.largest = numbers.largest.max(Some(number));
        keys.on_path(stream, owner.path);
        let (peer, direction) = self.keys.name(stream);
        Ok(Opened { peer, direction, path: owner.path, number, stream, frames: &self.frames[..len] })
    }
}

/// Steps 2 and 3 for one owner of the label: the number, and how many bytes of frames there are.
fn try_open(
    keys: &Keys,
    owner: Owner,
    header: &DataHeader,
    numbers: Option<&Numbers>,
    datagram: &[u8],
    frames: &mut [u8],
) -> Option<(PacketNumber, usize)> {
    let largest = numbers.and_then(|numbers| numbers.largest);
    let likely = header.number.expand(largest);
    let unknown = if largest.is_none() { HIGH_HALVES } else { 0 };
    let others = (1..unknown).map(|high| PacketNumber(likely.0 + (high << LOW_BITS)));
    std::iter::once(likely).chain(others).find_map(|number| {
        let opened = keys.get(owner.keys).open.open_into(owner.path, number, datagram, frames);
        opened.ok().map(|len| (number, len))
    })
}

/// How long a message of a handshake must be.
pub(crate) const fn handshake_len(kind: DatagramKind) -> Option<usize> {
    match kind {
        DatagramKind::Initiation => Some(INITIATION_LEN),
        DatagramKind::Response => Some(RESPONSE_LEN),
        DatagramKind::CookieReply => Some(COOKIE_REPLY_LEN),
        DatagramKind::Data => None,
    }
}
