//! What each law of the policy is worth: switched off in turn, on networks that nobody chose by hand.
//!
//! 1. [`draw`] takes networks of a [`Family`], from a seed on; recorded drives come from a folder
//!    ([`crate::family::folder`]).
//! 2. [`ablate`] measures the default tuning on each of them, then each [`Variant`], in the same runs.
//! 3. [`Ablation::effects`] compares run by run, network by network ([`effect`]), and [`table`] shows it.
//!
//! A run is another seed of what is random within a network. The same seeds give the same figures, on any machine.

pub mod effect;
pub mod table;

use crate::family;
use crate::judge::{self, Network, Question, bulk, short};
use crate::tcp::Congestion;
use effect::Effect;
use hawser_core::policy::Tuning;
use std::ops::Range;

pub use hawser_core::policy::Law;

/// How many figures a run has.
pub const FIGURES: usize = 5;
/// Each figure: what it is called, and whether more of it is better. The first is goodput (Mbit/s) of one download by
/// CUBIC, the second the 99th percentile (ms) of a ping beside it; the others are times (s) until transfers end, alone.
pub const NAMES: [(&str, bool); FIGURES] =
    [("goodput", true), ("ping p99", false), ("30 kB", false), ("300 kB", false), ("3 MB", false)];
/// What all streams are: downloads, by Linux's default controller.
const QUESTION: Question = Question { congestion: Congestion::Cubic, down: true };
/// The least goodput that is told apart, Mbit/s: one packet in the second, or no ratio could be made of nothing.
const GOODPUT_MIN: f64 = 0.01;
/// The seed of run n is the network's plus n times this: neighbouring networks share none.
const RUN_STEP: u64 = 1 << 32;

/// What a run showed, in the order of [`NAMES`].
pub type Figures = [f64; FIGURES];
/// The figures of a tuning: by network, then by run.
pub type Measured = Vec<Vec<Figures>>;

/// Where networks come from. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Family {
    /// [`family::stationary`].
    Stationary,
    /// [`family::changing`].
    Changing,
    /// [`family::impaired`].
    Impaired,
    /// Recordings, where there are any; else [`family::generated`].
    Drives,
}

impl Family {
    /// Every family.
    pub const ALL: [Family; 4] = [Family::Stationary, Family::Changing, Family::Impaired, Family::Drives];

    /// What it is called on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Family::Stationary => "stationary",
            Family::Changing => "changing",
            Family::Impaired => "impaired",
            Family::Drives => "drives",
        }
    }

    /// The family of that name.
    pub fn named(name: &str) -> Option<Family> {
        Family::ALL.into_iter().find(|family| family.name() == name)
    }
}

/// A network and its family. A plain value.
#[derive(Clone)]
pub struct Ground {
    /// Where it comes from.
    pub family: Family,
    /// The network, with the seed of run 0.
    pub network: Network,
}

/// A tuning to be compared with the default. A plain value.
#[derive(Clone, Debug)]
pub struct Variant {
    /// What it is called: the law that is switched off.
    pub name: String,
    /// What that law does.
    pub about: String,
    /// All constants.
    pub tuning: Tuning,
}

impl From<Law> for Variant {
    fn from(law: Law) -> Self {
        Variant { name: law.name.to_owned(), about: law.about.to_owned(), tuning: Tuning::neutral(law) }
    }
}

/// All that was measured. Step 2 makes it; a plain value.
#[derive(Clone)]
pub struct Ablation {
    /// The networks.
    pub grounds: Vec<Ground>,
    /// Runs on each of them.
    pub runs: u32,
    /// With the default tuning.
    pub default: Measured,
    /// With each variant.
    pub variants: Vec<(Variant, Measured)>,
}

/// Step 1: the networks of these seeds; drives are generated ones.
pub fn draw(from: Family, seeds: Range<u64>) -> Vec<Ground> {
    let networks = match from {
        Family::Stationary => family::draw(family::stationary, seeds),
        Family::Changing => family::draw(family::changing, seeds),
        Family::Impaired => family::draw(family::impaired, seeds),
        Family::Drives => family::draw(family::generated, seeds),
    };
    networks.into_iter().map(|network| Ground { family: from, network }).collect()
}

/// Step 2. `begins` is told what is measured next: "default", then each variant's name.
pub fn ablate(grounds: Vec<Ground>, runs: u32, variants: Vec<Variant>, mut begins: impl FnMut(&str)) -> Ablation {
    begins("default");
    let default = measure(&grounds, runs, Tuning::default());
    let mut one = |variant: Variant| {
        begins(&variant.name);
        let measured = measure(&grounds, runs, variant.tuning);
        (variant, measured)
    };
    let variants = variants.into_iter().map(&mut one).collect();
    Ablation { grounds, runs, default, variants }
}

/// The seed of a run on a network.
pub fn run_seed(network: &Network, run: u32) -> u64 {
    network.seed.wrapping_add(u64::from(run).wrapping_mul(RUN_STEP))
}

/// Every run on every network, on all processors.
fn measure(grounds: &[Ground], runs: u32, tuning: Tuning) -> Measured {
    let pairs: Vec<(&Ground, u32)> =
        grounds.iter().flat_map(|ground| (0..runs).map(move |run| (ground, run))).collect();
    let figures = judge::each(&pairs, |(ground, run)| {
        let seed = run_seed(&ground.network, *run);
        run_once(&Network { seed, tuning, ..ground.network.clone() })
    });
    figures.chunks(runs.max(1) as usize).map(<[Figures]>::to_vec).collect()
}

fn run_once(network: &Network) -> Figures {
    let bulk = bulk::run(network.bond(), network, QUESTION);
    let [small, middle, large] = short::SIZES.map(|bytes| {
        let times = short::run(network.bond(), network, QUESTION, bytes, false);
        // The geometric mean: its ratio is the mean ratio of transfers that began at the same moment.
        (times.took.iter().map(|took| took.ln()).sum::<f64>() / times.took.len() as f64).exp()
    });
    // Where no ping was answered at all, each took at least as long as was waited.
    [bulk.mbit.max(GOODPUT_MIN), bulk.ping[1].min(network.seconds * 1e3), small, middle, large]
}

impl Ablation {
    /// Step 3: what a variant changes of each figure, on all networks or those of a family.
    pub fn effects(&self, variant: &Measured, family: Option<Family>) -> [Effect; FIGURES] {
        let chosen = |index: &usize| family.is_none_or(|family| self.grounds[*index].family == family);
        let networks: Vec<usize> = (0..self.grounds.len()).filter(chosen).collect();
        std::array::from_fn(|figure| {
            let column = |runs: &[Figures]| runs.iter().map(|run| run[figure]).collect::<Vec<f64>>();
            let pairs = networks.iter().map(|index| (column(&self.default[*index]), column(&variant[*index])));
            Effect::of(pairs)
        })
    }

    /// The families that are there, in order.
    pub fn families(&self) -> Vec<Family> {
        let there = |family: &Family| self.grounds.iter().any(|ground| ground.family == *family);
        Family::ALL.into_iter().filter(there).collect()
    }
}

#[cfg(test)]
mod tests;
