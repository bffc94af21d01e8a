//! What was asked of etcd.

use super::super::spread::{Spread, spread};
use super::{Etcd, LOAD_EVERY};
use hawser_core::units::Time;
use std::iter::repeat_n;
use std::time::Duration;

/// Keys, and transactions. A plain value.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct Writes {
    /// Keys.
    pub keys: f64,
    /// Transactions, those that changed nothing too.
    pub transactions: f64,
}

/// What was asked of etcd. Plain data.
#[derive(Clone, PartialEq, Debug)]
pub struct Figures {
    /// A second, in the ten seconds before the death.
    pub at_rest: Writes,
    /// In the busiest second after it.
    pub busiest: Writes,
    /// The longest that a transaction waited at the leader until it was on the disks.
    pub longest_write: Duration,
    /// The longest that a server then took until it had told its last member.
    pub longest_telling: Duration,
    /// The longest that an answer then waited until its member had taken it in.
    pub longest_taking: Duration,
    /// Transactions that wrote the same again, as the watch was late.
    pub again: u64,
    /// When all members know an epoch of the wave, after the death, ms.
    pub known: Spread,
}

impl Etcd {
    /// What came of it, of a death at a whole second.
    pub fn figures(&self, death: Time) -> Figures {
        let dies = (death.since(Time::ZERO).as_secs() as usize).min(self.seconds.len());
        let rest = LOAD_EVERY.as_secs() as usize;
        let (before, after) = (&self.seconds[dies.saturating_sub(rest)..dies], &self.seconds[dies..]);
        let a_second = |what| column(before, what).sum::<u64>() as f64 / rest as f64;
        let most = |what| column(after, what).max().unwrap_or(0) as f64;
        let [longest_write, longest_telling, longest_taking] = self.longest;
        let after_death = |at: Time| Some(at.since(death).as_millis() as u64);
        let known = self.known.iter().flat_map(|(at, count)| repeat_n(after_death(*at), *count));
        Figures {
            at_rest: Writes { keys: a_second(0), transactions: a_second(1) },
            busiest: Writes { keys: most(0), transactions: most(1) },
            longest_write,
            longest_telling,
            longest_taking,
            again: self.again,
            known: spread(known.chain(repeat_n(None, self.left)).collect()),
        }
    }
}

/// Keys or transactions of each second.
fn column(seconds: &[[u64; 2]], what: usize) -> impl Iterator<Item = u64> {
    seconds.iter().map(move |second| second[what])
}
