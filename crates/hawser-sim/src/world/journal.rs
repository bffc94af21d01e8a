//! All that leaves a portal and all that reaches a host, as one number: two runs alike have the same.
//!
//! A change that is meant to change no decision keeps that number for every seed (`examples/decisions.rs`).

use hawser_core::units::Time;
use std::fmt;

/// The FNV prime and offset basis for 64 bits (draft-eastlake-fnv).
const PRIME: u64 = 0x0000_0100_0000_01b3;
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// One thing that happened. A plain value.
#[derive(Copy, Clone, Debug)]
pub enum Event<'a> {
    /// A portal sent a datagram by a link of the local portal.
    Sent {
        /// By which side.
        side: usize,
        /// By which link.
        link: usize,
        /// All of it.
        bytes: &'a [u8],
    },
    /// A portal delivered an inner packet.
    Delivered {
        /// On which side.
        side: usize,
        /// All of it.
        bytes: &'a [u8],
    },
}

/// What happened so far. Nothing at first; its world owns it.
#[derive(Debug)]
pub struct Journal {
    /// Everything so far in one number.
    pub hash: u64,
    /// Datagrams sent and packets delivered.
    pub events: u64,
    /// A line for each, while kept.
    pub lines: Option<Vec<String>>,
}

impl Journal {
    /// An empty one, which keeps lines or not.
    pub fn new(lines: bool) -> Journal {
        Journal { hash: BASIS, events: 0, lines: lines.then(Vec::new) }
    }

    /// Notes what happened.
    pub fn note(&mut self, now: Time, event: Event<'_>) {
        let (kind, side, link, bytes) = match event {
            Event::Sent { side, link, bytes } => (0, side, link, bytes),
            Event::Delivered { side, bytes } => (1, side, 0, bytes),
        };
        for word in [now.as_nanos(), kind, side as u64, link as u64, bytes.len() as u64, hash(bytes)] {
            self.hash = (self.hash ^ word).wrapping_mul(PRIME).rotate_left(23);
        }
        self.events += 1;
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{:.9} {event}", now.as_nanos() as f64 / 1e9));
        }
    }
}

/// The bytes in one number, eight at a time.
fn hash(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(BASIS, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        (hash ^ u64::from_le_bytes(word)).wrapping_mul(PRIME).rotate_left(23)
    })
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Sent { side, link, bytes } => {
                write!(f, "side {side} sent {} bytes by link {link} ({:016x})", bytes.len(), hash(bytes))
            }
            Event::Delivered { side, bytes } => {
                write!(f, "side {side} delivered {} bytes ({:016x})", bytes.len(), hash(bytes))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_differs_shows() {
        let sent = |at, side, link, bytes: &[u8]| {
            let mut journal = Journal::new(false);
            journal.note(Time::from_nanos(at), Event::Sent { side, link, bytes });
            journal.hash
        };
        let mut delivered = Journal::new(true);
        delivered.note(Time::from_nanos(1), Event::Delivered { side: 0, bytes: &[1, 2, 3] });
        let all = [
            sent(1, 0, 0, &[1, 2, 3]),
            sent(2, 0, 0, &[1, 2, 3]),
            sent(1, 1, 0, &[1, 2, 3]),
            sent(1, 0, 1, &[1, 2, 3]),
            sent(1, 0, 0, &[1, 2, 3, 0]),
            sent(1, 0, 0, &[1, 2, 4]),
            delivered.hash,
        ];
        let differing: std::collections::BTreeSet<u64> = all.into_iter().collect();
        assert_eq!(differing.len(), all.len());
        assert_eq!(all[0], sent(1, 0, 0, &[1, 2, 3]));
        assert_eq!(delivered.lines.map(|lines| lines.len()), Some(1));
    }
}
