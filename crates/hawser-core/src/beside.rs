//! What other threads may do of a packet's story: sealing and opening need a key, and nothing else of the core.
//!
//! ```text
//! out  Endpoint::poll_unsealed -> a batch in clear, and how it is sealed ([`Unsealed`])    anywhere: Unsealed::seal
//! in   Endpoint::opener -> how a run is opened ([`Opener`])    anywhere: Opener::open -> [`Outcome`]
//!      Endpoint::handle_opened <- each datagram in its order, with what came of it
//! ```
//!
//! Numbers are given before, and replays are checked after: order, fairness and accounts are the core's alone, and the
//! same whoever seals or opens, and when.

use crate::handshake::{OpenKey, SealKey};
use crate::units::{Owner, PacketNumber, PathId};
use crate::wire::{DataHeader, Label, Reader};
use std::sync::Arc;

/// How the datagrams of one batch are sealed, which are under one key, on one path, and numbered one by one. Made by
/// `Endpoint::poll_unsealed`; each of its datagrams is to be sealed once, and none sent before.
#[derive(Clone, Debug)]
pub struct Unsealed {
    pub(crate) key: Arc<SealKey>,
    pub(crate) path: PathId,
    /// The number of the first.
    pub(crate) first: PacketNumber,
    /// Bytes of each datagram but the last.
    pub(crate) size: usize,
    /// Bytes between two.
    pub(crate) room_before: usize,
}

impl Unsealed {
    /// Bytes from the start of one datagram to the next.
    pub fn stride(&self) -> usize {
        self.size + self.room_before
    }

    /// The same for what is behind this many datagrams.
    #[must_use]
    pub fn after(&self, datagrams: usize) -> Unsealed {
        Unsealed { first: PacketNumber(self.first.0 + datagrams as u64), ..self.clone() }
    }

    /// Seals all datagrams in `bytes`, the first of which has the first number.
    pub fn seal(&self, bytes: &mut [u8]) {
        for (number, datagram) in (self.first.0..).map(PacketNumber).zip(bytes.chunks_mut(self.stride())) {
            let len = datagram.len().min(self.size);
            let sealed = self.key.seal(self.path, number, &mut datagram[..len]);
            assert_eq!(sealed, Ok(()), "a datagram of a batch has header, frames and room for its tag");
        }
    }
}

/// How datagrams of one label are opened. Made by `Endpoint::opener`; of use until the next call of the endpoint's that
/// changes keys, and harmless afterwards.
#[derive(Clone, Debug)]
pub struct Opener {
    pub(crate) key: Arc<OpenKey>,
    pub(crate) label: Label,
    pub(crate) owner: Owner,
    /// The largest number received on the path.
    pub(crate) largest: Option<PacketNumber>,
}

impl Opener {
    /// Opens a datagram in place; one of another label stays as it is.
    pub fn open(&self, datagram: &mut [u8]) -> Outcome {
        let header = DataHeader::decode(&mut Reader::new(datagram)).ok();
        let Some(header) = header.filter(|header| header.label == self.label) else { return Outcome::Untried };
        let number = header.number.expand(self.largest);
        match self.key.open(self.owner.path, number, datagram) {
            Ok(_) => Outcome::Opened(number),
            Err(_) => Outcome::Spoilt,
        }
    }

    /// What the core is told of a datagram with this outcome of [`Opener::open`].
    pub fn opening(&self, outcome: Outcome) -> Opening {
        let owner = Some(self.owner);
        match outcome {
            Outcome::Untried => Opening::default(),
            Outcome::Opened(number) => Opening { owner, number: Some(number) },
            Outcome::Spoilt => Opening { owner, number: None },
        }
    }
}

/// What came of a datagram. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It is as it came: the core opens it.
    Untried,
    /// It is authentic, and in clear; it has this number.
    Opened(PacketNumber),
    /// It is not authentic, and its bytes are of no use any more.
    Spoilt,
}

/// The same for the core. Not tried by default; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Opening {
    /// Under whose keys it was tried.
    pub(crate) owner: Option<Owner>,
    /// Its number, where it is authentic.
    pub(crate) number: Option<PacketNumber>,
}
