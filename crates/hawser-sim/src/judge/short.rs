//! Short flows: how long transfers of some size take, alone and beside a download.
//!
//! 1. [`run`] begins ten transfers on a stage, spread over the time.
//! 2. [`judge`] does so on the bond and on each link alone; the link with the least median is the best.

use super::{FROM, Network, Question, Stage, put_transfers, quantile};
use crate::situation::second;
use crate::tcp::Transfer;
use crate::tcp::hosts::ReceiverHost;
use hawser_core::units::Time;

/// The sizes that are looked at, bytes: a page, its pictures, a file.
pub const SIZES: [u64; 3] = [30_000, 300_000, 3_000_000];
/// The number of transfers, from then on and until this share of the time.
const TRANSFERS: usize = 10;
const BEGIN: f64 = 3.0;
const END: f64 = 0.85;

/// How long transfers took, s; those that were not done by the end count until then. A plain value.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// Each of them.
    pub took: Vec<f64>,
    /// The number that was not done.
    pub unfinished: usize,
}

/// Of one size, alone or beside a download. A plain value.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Over the bond.
    pub bond: Times,
    /// Over the best link alone.
    pub best: Times,
}

/// Step 1.
pub fn run<S: Stage>(mut stage: S, network: &Network, question: Question, bytes: u64, beside: bool) -> Times {
    let step = (network.seconds * END - BEGIN) / TRANSFERS as f64;
    let begins: Vec<Time> = (0..TRANSFERS).map(|index| second(BEGIN + step * index as f64)).collect();
    let plans: Vec<Transfer> = begins.iter().map(|begin| Transfer::of(bytes, *begin)).collect();
    if beside {
        let plan = Transfer::bulk(second(FROM), second(network.seconds));
        put_transfers(&mut stage, question, 10, &[plan], network.seed);
    }
    let (_, receiver) = put_transfers(&mut stage, question, 12, &plans, network.seed);
    stage.pass(second(network.seconds));
    let receivers = &stage.see::<ReceiverHost>(receiver).receivers;
    let took = |(begin, done): (&Time, Option<Time>)| done.unwrap_or(second(network.seconds)).since(*begin);
    let all = begins.iter().zip(receivers.iter().map(|receiver| receiver.done));
    Times {
        unfinished: all.clone().filter(|(_, done)| done.is_none()).count(),
        took: all.map(|one| took(one).as_secs_f64()).collect(),
    }
}

/// Step 2.
pub fn judge(network: &Network, question: Question, bytes: u64, beside: bool) -> Verdict {
    let alone = (0..network.links.len()).map(|link| run(network.alone(link), network, question, bytes, beside));
    let best = alone.min_by(|one, other| one.median().total_cmp(&other.median())).unwrap_or_default();
    Verdict { bond: run(network.bond(), network, question, bytes, beside), best }
}

impl Times {
    /// Of the half of them at most this, s.
    pub fn median(&self) -> f64 {
        quantile(&self.took, 0.5)
    }

    /// Of nine of ten of them.
    pub fn late(&self) -> f64 {
        quantile(&self.took, 0.89)
    }
}

impl Verdict {
    /// How many times as long as over the best link: the median, and nine of ten.
    pub fn ratios(&self) -> [f64; 2] {
        [self.bond.median() / self.best.median(), self.bond.late() / self.best.late()]
    }
}
