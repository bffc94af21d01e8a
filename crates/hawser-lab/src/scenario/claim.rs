//! What a scenario claims: what must hold of its figures, in every case or in enough of them.

use std::fmt;

use hawser_config::reading::{Fault, Faults, Table};
use toml::de::DeTable;

use super::parse::Known;
use super::refer::each;
use super::values;

/// A claim. Plain data.
#[derive(Clone, Debug)]
pub struct Claim {
    /// In words.
    pub says: String,
    /// Names of cases; none: all.
    pub cases: Vec<String>,
    /// Label: whose figure.
    pub contender: String,
    /// Labels: it is held against the best of them; none: against the bound alone.
    pub of: Vec<String>,
    /// In which case they are looked at; none: in the same.
    pub of_case: Option<String>,
    /// By which workload; none: by the same.
    pub of_workload: Option<String>,
    /// Label: what counts is what figures have beyond this one's.
    pub beyond: Option<String>,
    /// Name of the workload; none: the first of the case's that has the metric.
    pub workload: Option<String>,
    /// Names of workloads: it is claimed of each.
    pub each: Vec<String>,
    /// Name of the metric.
    pub metric: String,
    /// What is enough in a case.
    pub bound: Bound,
    /// How many cases are enough; none: all.
    pub enough: Option<u32>,
    /// Whether it is claimed of the median over cases, and not of each.
    pub median: bool,
    /// Whether it is claimed of every run, and not of the median of a case's.
    pub every: bool,
}

/// What is enough: the figure itself, in its metric's unit, or in relation to the best of others. Plain data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// So much, or this many times the highest of the others.
    AtLeast(f64),
    /// So much, or this many times the lowest of the others.
    AtMost(f64),
    /// At most so much above the lowest of the others.
    Within(f64),
    /// At least so much above the highest of the others.
    Above(f64),
}

impl Bound {
    /// Whether a figure is enough.
    pub(crate) fn holds(self, figure: f64) -> bool {
        match self {
            Self::AtLeast(bound) | Self::Above(bound) => figure >= bound,
            Self::AtMost(bound) | Self::Within(bound) => figure <= bound,
        }
    }

    /// A figure in relation to the best of others; none without any.
    pub(crate) fn relate(self, figure: f64, others: impl Iterator<Item = f64>) -> Option<f64> {
        Some(match self {
            Self::AtLeast(_) => figure / others.reduce(f64::max)?,
            Self::AtMost(_) => figure / others.reduce(f64::min)?,
            Self::Within(_) => figure - others.reduce(f64::min)?,
            Self::Above(_) => figure - others.reduce(f64::max)?,
        })
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(bound) => write!(f, "≥ {bound}"),
            Self::AtMost(bound) => write!(f, "≤ {bound}"),
            Self::Within(bound) => write!(f, "≤ +{bound}"),
            Self::Above(bound) => write!(f, "≥ {bound:+}"),
        }
    }
}

/// What makes a bound of a number.
type Bounding = fn(f64) -> Bound;

/// Bounds' keys, and what they make of a number.
const BOUNDS: [(&str, Bounding); 4] =
    [("at-least", Bound::AtLeast), ("at-most", Bound::AtMost), ("within", Bound::Within), ("above", Bound::Above)];

/// All claims.
pub(super) fn read(tree: &DeTable<'_>, known: &Known<'_>, faults: &mut Faults<'_>) -> Vec<Claim> {
    each(tree, "claim", "claim", faults, |table| claim(table, known))
}

fn claim(table: &mut Table<'_, '_, '_>, known: &Known<'_>) -> Option<Claim> {
    let says = table.required("says", "says = \"MPTCP carries what TCP does\"", values::text);
    let cases = known.cases.chosen(table, "cases").unwrap_or_default();
    let contender = table.required("contender", "contender = \"mptcp\"", |value| known.contenders.read(value));
    let of_case = table.get("of-case", |value| known.cases.read(value));
    let of_workload = table.get("of-workload", |value| known.workloads.read(value));
    let is_elsewhere = of_case.is_some() || of_workload.is_some();
    let own = || contender.iter().filter(|_| is_elsewhere).map(|own| own.value.clone()).collect();
    let of = known.contenders.chosen(table, "of").unwrap_or_else(own);
    if let Some(own) = contender.as_ref().filter(|own| !is_elsewhere && of.contains(&own.value)) {
        table.fault(own.span.clone(), Fault::new("`of`: nobody is held against themselves"));
    }
    let beyond = table.get("beyond", |value| known.contenders.read(value));
    let workload = table.get("workload", |value| known.workloads.read(value));
    let each = known.workloads.chosen(table, "each").unwrap_or_default();
    let metric = table.required("metric", "metric = \"goodput_mbps\"", values::name);
    let bound = bound(table, !of.is_empty());
    let enough: Option<u32> = table.get("enough", |value| values::whole(value, 1));
    let all = if cases.is_empty() { known.cases.all.len() } else { cases.len() };
    if let Some(enough) = enough.filter(|&enough| enough as usize > all) {
        table.fault_at("enough", Fault::new(format!("`enough`: {enough} is more than there are cases ({all})")));
    }
    let (median, every) = (table.is("median"), table.is("every"));
    let clashes = [
        (workload.is_some() && !each.is_empty(), "workload", "`workload` beside `each`: of which?", "one of them"),
        (median && enough.is_some(), "median", "`median`: how many cases are enough of a median?", "`enough`"),
        (every && median, "every", "`every`: a median over cases has no runs of its own", "`median`"),
    ];
    for (_, key, says, which) in clashes.into_iter().filter(|(is_one, ..)| *is_one) {
        table.fault_at(key, Fault::new(says).hint(format!("leave out {which}")));
    }
    Some(Claim {
        says: says?.value,
        cases,
        contender: contender?.value,
        of,
        of_case,
        of_workload,
        beyond,
        workload,
        each,
        metric: metric?.value,
        bound: bound?,
        enough,
        median,
        every,
    })
}

/// The one that is there.
fn bound(table: &mut Table<'_, '_, '_>, is_relative: bool) -> Option<Bound> {
    let given: Vec<_> = BOUNDS
        .iter()
        .filter_map(|(key, bound)| table.optional(key, values::number).map(|sited| (bound(sited.value), sited.span)))
        .collect();
    let [(bound, span)] = given.as_slice() else {
        let fault = Fault::new("a claim has one bound");
        table.here(fault.hint("add one of: at-least = 0.95, at-most = 1.05, within = 5, above = 5"));
        return None;
    };
    if matches!(bound, Bound::Within(_) | Bound::Above(_)) && !is_relative {
        let fault = Fault::new("`within` and `above`: of whose figure?");
        table.fault(span.clone(), fault.hint("add: of = [\"tcp\"]"));
    }
    Some(*bound)
}
