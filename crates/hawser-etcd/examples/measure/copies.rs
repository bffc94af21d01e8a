//! What a member does with an answer that has epochs, where it knows a million.

use std::time::Instant;

use hawser_etcd::keys::{Key, Prefix};
use hawser_etcd::record::{Record as _, Seen};
use hawser_etcd::state::{Change, Entry, Heard, Revision, State, Watched};
use hawser_hub::units::{Epoch, MemberId};

use crate::{key, median};

/// Epochs of one transaction (hawser-etcd, BATCH), and how often it is tried.
const BATCH: u64 = 40;
const ROUNDS: u64 = 20;

/// In ms. Plain data.
#[derive(Debug)]
pub struct Copies {
    /// Until the answer is taken in, and what it replaced is freed.
    pub take_in_ms: f64,
    /// Until each epoch was looked at.
    pub look_ms: f64,
}

/// Step 1.
pub fn measure(epochs: u64) -> Copies {
    let prefix = Prefix::new("/hawser/hub/");
    let entry = |name: u64, epoch: u64, at: i64| {
        let seen = Seen { epoch: Epoch::new(epoch).expect("in range"), owner: MemberId(name) };
        let (key, value) = (prefix.full(&Key::Epoch(key(name))), seen.encode());
        Entry { key, value, created: Revision(1), modified: Revision(at) }
    };
    let mut state = State::default();
    state.replace(&prefix, 1, Revision(1), (0..epochs).map(|name| entry(name, 1, 1)).collect());
    let mut took = Vec::new();
    for round in 1..=ROUNDS {
        let at = 1 + round as i64;
        let changes = (0..BATCH).map(|name| Change::Put(entry(name * epochs / BATCH, 1 + round, at))).collect();
        let held = state.clone();
        let began = Instant::now();
        let heard = state.hear(&prefix, Watched { changes, ..Watched::default() });
        drop(held);
        took.push(began.elapsed().as_secs_f64() * 1e3);
        assert!(matches!(heard, Heard::Changed(_)), "{heard:?}");
    }
    let began = Instant::now();
    let known = (0..epochs).filter(|name| state.seen(&key(*name)).is_some()).count();
    let look_ms = began.elapsed().as_secs_f64() * 1e3;
    assert_eq!(known as u64, epochs);
    Copies { take_in_ms: median(took), look_ms }
}
