//! What a member's driver wants to have written.

use hawser_core::units::Time;
use std::collections::VecDeque;

/// Epochs of one transaction (hawser-etcd, BATCH).
const BATCH: usize = 40;

/// What is written. Owned data.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum What {
    /// This number of them, and how many of these are of the wave.
    Epochs(usize, usize),
    /// The same again: it changes nothing.
    Again,
    /// With who is missed anew.
    Load(Vec<u32>),
}

/// A transaction on its way. Owned data.
pub(super) struct Request {
    pub member: usize,
    pub what: What,
    /// When it comes to the leader.
    pub came: Time,
}

/// A member's driver. Nothing is due at first; etcd's model owns it.
#[derive(Default)]
pub(super) struct Driver {
    /// Epochs that etcd does not have as far as the member knows, oldest first: whether each is of the wave.
    pub due: VecDeque<bool>,
    /// How many of these it has written.
    pub written: usize,
    pub load: bool,
    pub misses: Vec<u32>,
    pub writing: bool,
    pub pause: Time,
    pub dead: bool,
}

impl Driver {
    /// The next epochs, or the same as before, where its watch has not told them yet.
    pub fn next_epochs(&mut self) -> What {
        if self.written > 0 {
            return What::Again;
        }
        self.written = self.due.len().min(BATCH);
        What::Epochs(self.written, self.due.iter().take(self.written).filter(|wave| **wave).count())
    }
}

impl Request {
    /// Keys that it writes.
    pub fn keys(&self) -> usize {
        match &self.what {
            What::Epochs(count, _) => *count,
            What::Again => 0,
            What::Load(_) => 1,
        }
    }
}
