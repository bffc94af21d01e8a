//! Step 4: the keys of a key log, by the labels of their datagrams.
//!
//! 1. A line `new` begins a session with its peer, `next` goes on with it; a set of keys that is there already (the
//!    other portal's key log) is left out. 2. Each direction's labels are computed for the first path ids, and for more
//!    as paths are seen. 3. A label may have several owners: which it is, opening tells.

use std::collections::HashMap;

use hawser_core::handshake::OpenKey;
use hawser_core::handshake::secrets::{KeyLogEntry, KeyLogError, KeySecrets};
use hawser_core::units::PathId;
use hawser_core::wire::Label;

/// Path ids whose labels are known ahead of the highest that was seen: a portal itself goes no further than 16 ahead of
/// those in use, but a capture may begin late.
const PATHS_AHEAD: u32 = 1024;

/// Why a key log is none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KeyError {
    /// A line is none.
    #[error("line {line} of the key log")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        source: KeyLogError,
    },
    /// There is no line.
    #[error("read key log: no keys in it")]
    Empty,
}

/// Which of two portals sent something, seen from the one that wrote the key log. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// The one that wrote the key log.
    Sent,
    /// The other one.
    Received,
}

impl Direction {
    /// As the key log calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Sent => "sent",
            Direction::Received => "received",
        }
    }
}

/// One direction of one session: packet numbers and flow sequences count on over its keys. A plain number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct StreamId(pub usize);

/// The keys of one direction. Made when the key log is read; the decoding owns it.
pub(crate) struct DirectionKeys {
    pub open: OpenKey,
    pub stream: StreamId,
    /// Labels are known of path ids below this one.
    labelled: u32,
}

/// What a label stands for. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Owner {
    /// Its place among the keys.
    pub keys: usize,
    pub path: PathId,
}

/// What a stream is called. Plain data.
struct StreamName {
    peer: String,
    direction: Direction,
}

/// All keys of a key log. Made by [`Keys::read`]; the decoding owns it.
pub struct Keys {
    keys: Vec<DirectionKeys>,
    owners: HashMap<Label, Vec<Owner>>,
    streams: Vec<StreamName>,
}

impl Keys {
    /// Reads a key log.
    ///
    /// # Errors
    /// [`KeyError`] for the first line that is none, and where there is no line.
    pub fn read(text: &str) -> Result<Self, KeyError> {
        let mut keys = Keys { keys: Vec::new(), owners: HashMap::new(), streams: Vec::new() };
        let mut sessions: HashMap<String, StreamId> = HashMap::new();
        let mut known: Vec<KeySecrets> = Vec::new();
        for (line, entry) in KeyLogEntry::read_all(text) {
            let KeyLogEntry { peer, new, secrets } = entry.map_err(|source| KeyError::Line { line, source })?;
            if known.contains(&secrets.sent) || known.contains(&secrets.received) {
                continue;
            }
            let first = match sessions.get(&peer).filter(|_| !new) {
                Some(first) => *first,
                None => keys.begin_session(&peer),
            };
            sessions.insert(peer, first);
            keys.add(&secrets.sent, first);
            keys.add(&secrets.received, StreamId(first.0 + 1));
            known.extend([secrets.sent, secrets.received]);
        }
        if keys.keys.is_empty() { Err(KeyError::Empty) } else { Ok(keys) }
    }

    /// The first of a new session's two streams.
    fn begin_session(&mut self, peer: &str) -> StreamId {
        let first = StreamId(self.streams.len());
        let name = |direction| StreamName { peer: peer.to_owned(), direction };
        self.streams.extend([name(Direction::Sent), name(Direction::Received)]);
        first
    }

    fn add(&mut self, secrets: &KeySecrets, stream: StreamId) {
        self.keys.push(DirectionKeys { open: OpenKey::new(secrets), stream, labelled: 0 });
        self.label_up_to(self.keys.len() - 1, PATHS_AHEAD);
    }

    /// Step 2 for one direction.
    fn label_up_to(&mut self, at: usize, end: u32) {
        let keys = &mut self.keys[at];
        for path in (keys.labelled..end).map(PathId) {
            self.owners.entry(keys.open.label(path)).or_default().push(Owner { keys: at, path });
        }
        keys.labelled = keys.labelled.max(end);
    }

    /// A path was seen: its session may go on to higher ones, in either direction and under other keys.
    pub(crate) fn on_path(&mut self, stream: StreamId, path: PathId) {
        let session = stream.0 / 2;
        for at in 0..self.keys.len() {
            let keys = &self.keys[at];
            if keys.stream.0 / 2 == session && keys.labelled < path.0.saturating_add(PATHS_AHEAD / 2) {
                self.label_up_to(at, path.0.saturating_add(PATHS_AHEAD));
            }
        }
    }

    pub(crate) fn get(&self, at: usize) -> &DirectionKeys {
        &self.keys[at]
    }

    /// The owners of a label; nearly always none or one.
    pub(crate) fn owners(&self, label: Label) -> &[Owner] {
        self.owners.get(&label).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn name(&self, stream: StreamId) -> (&str, Direction) {
        let name = &self.streams[stream.0];
        (&name.peer, name.direction)
    }
}
