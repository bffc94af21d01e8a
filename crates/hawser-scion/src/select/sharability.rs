//! The set of paths that share the least (Zheng et al., "Finding minimum-cost paths with minimum sharability", 2007).
//!
//! A set's cost is, first, how often an interface is used beyond once; second, how often an AS between the ends is
//! crossed beyond once; third, its interfaces in all. What a path adds to a set only grows with the set:
//!
//! 1. [`greedy`] begins with the first path listed and adds, again and again, the one that adds least.
//! 2. [`least_shared`] goes through the sets in the order of the list, and leaves out those that cannot become cheaper
//!    than the best so far, even if all that is still missing added no more than it would now.
//! 3. The search stops after [`MOST_WORK`] looks at a path, and then the best so far stands; [`Exactness`] tells.
//!
//! Equal costs: greedy takes the path listed first; the search keeps what greedy found, or the first of what is
//! cheaper.

use std::collections::BTreeMap;
use std::ops::Add;

use super::hop::hops;
use crate::addr::IsdAs;
use crate::path::{Fingerprint, PathInterface};

/// Looks at a path that a search may cost: some tens of milliseconds.
const MOST_WORK: usize = 500_000;

/// What a set costs: less is better, compared from the first to the last. Plain data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    interfaces: usize,
    ases: usize,
    length: usize,
}

/// Whether a set is known to be the best. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exactness {
    /// No set is better.
    Best,
    /// There were too many to look at.
    Unproven,
}

/// A set of paths that share little. Plain data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeastShared {
    /// Where they stand in the list, in its order.
    pub chosen: Vec<usize>,
    /// Whether no set is better.
    pub exactness: Exactness,
}

/// What the paths of a set use, how often. Nothing at first. Owned by one search.
struct Used<'p> {
    paths: &'p [Way],
    interfaces: Vec<usize>,
    ases: Vec<usize>,
}

/// A path as numbers of interfaces and of the ASes between its ends.
struct Way {
    interfaces: Vec<usize>,
    ases: Vec<usize>,
}

/// Step 1. The paths are as listed, and differ.
pub fn greedy(paths: &[&Fingerprint], count: usize) -> Vec<usize> {
    let ways = ways(paths);
    cheapest_one_by_one(&mut Used::new(&ways), count).0
}

/// The set of this many paths that share least; all, if there are no more. The paths are as listed, and differ.
pub fn least_shared(paths: &[&Fingerprint], count: usize) -> LeastShared {
    let ways = ways(paths);
    let count = count.min(ways.len());
    let (chosen, cost) = cheapest_one_by_one(&mut Used::new(&ways), count);
    let mut search =
        Search { used: Used::new(&ways), count, set: Vec::new(), best: chosen, best_cost: cost, work: MOST_WORK };
    let done = search.extend(0, Cost::default());
    LeastShared { chosen: search.best, exactness: if done { Exactness::Best } else { Exactness::Unproven } }
}

/// A search through all sets. Begins with what greedy found. Owned by one call.
struct Search<'p> {
    used: Used<'p>,
    count: usize,
    set: Vec<usize>,
    best: Vec<usize>,
    best_cost: Cost,
    work: usize,
}

impl Search<'_> {
    /// Looks at every set that has the paths chosen so far and others from `first` on. `false` when the work is used
    /// up.
    fn extend(&mut self, first: usize, cost: Cost) -> bool {
        let missing = self.count - self.set.len();
        if missing == 0 {
            if cost < self.best_cost {
                (self.best, self.best_cost) = (self.set.clone(), cost);
            }
            return true;
        }
        let rest = first..self.used.paths.len();
        let added: Vec<Cost> = rest.clone().map(|path| self.used.added_by(path)).collect();
        for path in rest {
            let others = &added[path - first..];
            let Some(work) = self.work.checked_sub(others.len()) else { return false };
            self.work = work;
            // Not enough are left, or the cheapest of them are too dear: so are all sets that begin later.
            if others.len() < missing || cost + sum_of_least(others, missing) >= self.best_cost {
                return true;
            }
            self.used.add(path);
            self.set.push(path);
            let done = self.extend(path + 1, cost + others[0]);
            self.set.pop();
            self.used.remove(path);
            if !done {
                return false;
            }
        }
        true
    }
}

fn cheapest_one_by_one(used: &mut Used<'_>, count: usize) -> (Vec<usize>, Cost) {
    let mut left: Vec<usize> = (0..used.paths.len()).collect();
    let (mut chosen, mut cost) = (Vec::new(), Cost::default());
    while chosen.len() < count {
        let Some(at) = (0..left.len()).min_by_key(|&at| used.added_by(left[at])) else { break };
        let path = left.remove(at);
        cost = cost + used.added_by(path);
        used.add(path);
        chosen.push(path);
    }
    chosen.sort_unstable();
    (chosen, cost)
}

fn sum_of_least(costs: &[Cost], count: usize) -> Cost {
    let mut costs = costs.to_vec();
    costs.sort_unstable();
    costs[..count].iter().fold(Cost::default(), |sum, &cost| sum + cost)
}

impl<'p> Used<'p> {
    fn new(paths: &'p [Way]) -> Used<'p> {
        let most =
            |numbers: fn(&Way) -> &Vec<usize>| paths.iter().flat_map(numbers).max().map_or(0, |number| number + 1);
        let (interfaces, ases) = (most(|way| &way.interfaces), most(|way| &way.ases));
        Used { paths, interfaces: vec![0; interfaces], ases: vec![0; ases] }
    }

    /// What a set becomes dearer by with this path.
    fn added_by(&self, path: usize) -> Cost {
        let way = &self.paths[path];
        let again = |numbers: &[usize], uses: &[usize]| numbers.iter().filter(|&&number| uses[number] > 0).count();
        Cost {
            interfaces: again(&way.interfaces, &self.interfaces),
            ases: again(&way.ases, &self.ases),
            length: way.interfaces.len(),
        }
    }

    fn add(&mut self, path: usize) {
        self.paths[path].interfaces.iter().for_each(|&number| self.interfaces[number] += 1);
        self.paths[path].ases.iter().for_each(|&number| self.ases[number] += 1);
    }

    fn remove(&mut self, path: usize) {
        self.paths[path].interfaces.iter().for_each(|&number| self.interfaces[number] -= 1);
        self.paths[path].ases.iter().for_each(|&number| self.ases[number] -= 1);
    }
}

/// Interfaces and ASes get numbers, so that counting is quick.
fn ways(paths: &[&Fingerprint]) -> Vec<Way> {
    let (mut interfaces, mut ases) = (BTreeMap::<PathInterface, usize>::new(), BTreeMap::<IsdAs, usize>::new());
    let way = |path: &&Fingerprint| {
        let ends = path.interfaces().len() / 2;
        let between = hops(path).skip(1).take(ends.saturating_sub(1));
        let of_interfaces = path.interfaces().iter().map(|interface| {
            let next = interfaces.len();
            *interfaces.entry(*interface).or_insert(next)
        });
        let interfaces = of_interfaces.collect();
        let ases = between.map(|hop| {
            let next = ases.len();
            *ases.entry(hop.isd_as).or_insert(next)
        });
        Way { interfaces, ases: ases.collect() }
    };
    paths.iter().map(way).collect()
}

impl Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        Cost {
            interfaces: self.interfaces + other.interfaces,
            ases: self.ases + other.ases,
            length: self.length + other.length,
        }
    }
}
