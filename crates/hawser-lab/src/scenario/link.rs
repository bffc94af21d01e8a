//! Links of a scenario file.
//!
//! 1. [`says`] reads what a section says of a link: figures for both directions, and for one (`up`, `down`).
//! 2. [`settle`] lays over each other, last said first: the profile, the link's section, the case's changes.

use hawser_config::reading::{Fault, Table, boolean, quoted, string};
use hawser_wire::{Access, Direction, Rate, Spread};
use toml::de::DeValue;

use super::LinkPlan;
use super::figures::{DEFAULT_QUEUE, Discipline, Figures};
use super::profile::{Profile, profiles};
use super::recorded::{self, Sources};
use super::values;

/// Where traces are found.
pub(crate) type Traces<'a> = &'a Sources;

/// Bits a second in a Mbit/s.
const MEGABIT: f64 = 1e6;

const SPREADS: [(&str, Spread); 2] = [("normal", Spread::Normal), ("uniform", Spread::Uniform)];
const DISCIPLINES: [(&str, Discipline); 3] =
    [("drop-tail", Discipline::DropTail), ("random-drop", Discipline::RandomDrop), ("codel", Discipline::Codel)];

/// What a section says of a link. Starts with nothing; plain data.
#[derive(Clone, Debug, Default)]
pub(super) struct Says {
    profile: Option<Profile>,
    /// From the client, and to it.
    ways: [Figures; 2],
    medium: Option<String>,
    metric: Option<u16>,
}

/// Step 1, of a link.
pub(super) fn says(table: &mut Table<'_, '_, '_>, traces: Traces<'_>) -> Says {
    Says {
        profile: table.get("profile", profile),
        ways: changes(table, traces),
        medium: table.get("medium", values::name),
        metric: table.get("metric", |value| values::whole(value, 0)),
    }
}

/// Figures of the way from the client and of the way to it: of each its own, and where it has none those of both.
pub(crate) fn changes(table: &mut Table<'_, '_, '_>, traces: Traces<'_>) -> [Figures; 2] {
    let both = figures(table, traces, &Figures::default());
    let wrong = |_: &DeValue<'_>| Fault::new("expected figures of one direction").hint("such as { rate = \"10M\" }");
    ["up", "down"].map(|key| {
        let one = table.nested(key, wrong, |inner| figures(inner, traces, &both));
        one.unwrap_or_else(|| both.clone())
    })
}

/// What a table says, and where it says nothing what is under it.
fn figures(table: &mut Table<'_, '_, '_>, traces: Traces<'_>, under: &Figures) -> Figures {
    let pace = table.get("rate", values::pace);
    let trace = recorded::read(table, traces);
    if pace.is_some() && table.has("trace") {
        let fault = Fault::new("`trace` beside `rate`: a trace says when packets go");
        table.fault_at("trace", fault.hint("leave one of them out"));
    }
    let (rate, trace, share_of_other) = match pace {
        Some((rate, share)) => (rate, trace, share),
        None if trace.is_some() => (None, trace, None),
        None => (under.rate, under.trace.clone(), under.share_of_other),
    };
    let spread = |value: &DeValue<'_>| values::word(value, &SPREADS);
    Figures {
        rate,
        trace,
        share_of_other,
        overhead: table.get("overhead", |value| values::whole(value, 0)).or(under.overhead),
        queue: table.get("queue", values::queue).or(under.queue),
        discipline: table.get("discipline", |value| values::word(value, &DISCIPLINES)).or(under.discipline),
        delay: table.get("delay", values::duration).or(under.delay),
        jitter: table.get("jitter", values::duration).or(under.jitter),
        jitter_distribution: table.get("jitter-distribution", spread).or(under.jitter_distribution),
        jitter_reorders: table.get("jitter-reorders", boolean).or(under.jitter_reorders),
        loss: table.get("loss", values::loss).or(under.loss),
        reorder: table.get("reorder", values::probability).or(under.reorder),
        reorder_by: table.get("reorder-by", values::duration).or(under.reorder_by),
        duplicate: table.get("duplicate", values::probability).or(under.duplicate),
        corrupt: table.get("corrupt", values::probability).or(under.corrupt),
    }
}

fn profile(value: &DeValue<'_>) -> Result<Profile, Fault> {
    string(value, |text| {
        let all = profiles();
        let known: Vec<&str> = all.iter().map(|profile| profile.name).collect();
        all.iter().find(|profile| profile.name == text).cloned().ok_or_else(|| {
            let fault = Fault::new(format!("there is no profile {}", quoted(text)));
            fault.meant(text, &known, || format!("one of: {}", known.join(", ")))
        })
    })
}

/// A part of what the other way carries on average.
fn share(share: Option<f64>, other: &Direction) -> Option<Rate> {
    let bits = other.mean_rate()?.bits_per_second() as f64;
    share.map(|share| Rate::mbit(bits * share / MEGABIT))
}

/// Step 2.
pub(super) fn settle(name: &str, said: &[&Says]) -> LinkPlan {
    let profile = said.iter().rev().find_map(|says| says.profile.as_ref());
    let plain = Direction { queue: DEFAULT_QUEUE, ..Direction::default() };
    let (mut up, mut down) = (plain.clone(), plain);
    if let Some(profile) = profile {
        profile.up.apply(&mut up);
        profile.down.apply(&mut down);
    }
    let mut shares = [None; 2];
    for says in said {
        for ((figures, way), share) in says.ways.iter().zip([&mut up, &mut down]).zip(&mut shares) {
            figures.apply(way);
            if figures.has_pace() {
                *share = figures.share_of_other;
            }
        }
    }
    up.rate = share(shares[0], &down).or(up.rate);
    down.rate = share(shares[1], &up).or(down.rate);
    let access = profile.and_then(|profile| profile.access);
    // A medium of its own for both directions, where it shares none.
    let own = || access.map(|_| name.to_owned());
    LinkPlan {
        name: name.to_owned(),
        profile: profile.map(|profile| profile.name.to_owned()),
        up,
        down,
        medium: said.iter().rev().find_map(|says| says.medium.clone()).or_else(own),
        access: access.unwrap_or(Access::turns()),
        metric: said.iter().rev().find_map(|says| says.metric).unwrap_or(0),
    }
}
