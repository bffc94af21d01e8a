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
use super::values::{self, Pace};

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
    both: Figures,
    up: Figures,
    down: Figures,
    medium: Option<String>,
    metric: Option<u16>,
}

/// Step 1, of a link.
pub(super) fn says(table: &mut Table<'_, '_, '_>, traces: Traces<'_>) -> Says {
    let profile = table.get("profile", profile);
    let (up, down, both) = directions(table, traces);
    Says {
        profile,
        both,
        up,
        down,
        medium: table.get("medium", values::name),
        metric: table.get("metric", |value| values::whole(value, 0)),
    }
}

/// Figures of both directions and of each, as [`Figures`] for one and the other.
pub(crate) fn changes(table: &mut Table<'_, '_, '_>, traces: Traces<'_>) -> [Figures; 2] {
    let (up, down, both) = directions(table, traces);
    [up, down].map(|one| over(&both, &one))
}

/// From the client, to it, and of both.
fn directions(table: &mut Table<'_, '_, '_>, traces: Traces<'_>) -> (Figures, Figures, Figures) {
    let both = figures(table, traces);
    let wrong = |_: &DeValue<'_>| Fault::new("expected figures of one direction").hint("such as { rate = \"10M\" }");
    let [up, down] =
        ["up", "down"].map(|key| table.nested(key, wrong, |inner| figures(inner, traces)).unwrap_or_default());
    (up, down, both)
}

fn figures(table: &mut Table<'_, '_, '_>, traces: Traces<'_>) -> Figures {
    let pace = table.get("rate", values::pace);
    let trace = recorded::read(table, traces);
    if pace.is_some() && table.has("trace") {
        let fault = Fault::new("`trace` beside `rate`: a trace says when packets go");
        table.fault_at("trace", fault.hint("leave one of them out"));
    }
    let (rate, share_of_other) = match pace {
        Some(Pace::Rate(rate)) => (Some(rate), None),
        Some(Pace::ShareOfOther(share)) => (None, Some(share)),
        None => (None, None),
    };
    Figures {
        rate,
        trace,
        share_of_other,
        overhead: table.get("overhead", |value| values::whole(value, 0)),
        queue: table.get("queue", values::queue),
        discipline: table.get("discipline", |value| values::word(value, &DISCIPLINES)),
        delay: table.get("delay", values::duration),
        jitter: table.get("jitter", values::duration),
        jitter_distribution: table.get("jitter-distribution", |value| values::word(value, &SPREADS)),
        jitter_reorders: table.get("jitter-reorders", boolean),
        loss: table.get("loss", values::loss),
        reorder: table.get("reorder", values::probability),
        reorder_by: table.get("reorder-by", values::duration),
        duplicate: table.get("duplicate", values::probability),
        corrupt: table.get("corrupt", values::probability),
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

/// One's figures, and where it has none the other's.
fn over(under: &Figures, one: &Figures) -> Figures {
    let rated = one.has_pace();
    let under = under.clone();
    Figures {
        rate: if rated { one.rate } else { under.rate },
        trace: if rated { one.trace.clone() } else { under.trace },
        share_of_other: if rated { one.share_of_other } else { under.share_of_other },
        overhead: one.overhead.or(under.overhead),
        queue: one.queue.or(under.queue),
        discipline: one.discipline.or(under.discipline),
        delay: one.delay.or(under.delay),
        jitter: one.jitter.or(under.jitter),
        jitter_distribution: one.jitter_distribution.or(under.jitter_distribution),
        jitter_reorders: one.jitter_reorders.or(under.jitter_reorders),
        loss: one.loss.or(under.loss),
        reorder: one.reorder.or(under.reorder),
        reorder_by: one.reorder_by.or(under.reorder_by),
        duplicate: one.duplicate.or(under.duplicate),
        corrupt: one.corrupt.or(under.corrupt),
    }
}

/// A part of what the other way carries on average.
fn share(share: Option<f64>, other: &Direction) -> Option<Rate> {
    #[expect(clippy::cast_precision_loss, reason = "a rate of a link")]
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
    let (mut up_share, mut down_share) = (None, None);
    for says in said {
        for (one, way, share) in [(&says.up, &mut up, &mut up_share), (&says.down, &mut down, &mut down_share)] {
            let figures = over(&says.both, one);
            figures.apply(way);
            if figures.has_pace() {
                *share = figures.share_of_other;
            }
        }
    }
    up.rate = share(up_share, &down).or(up.rate);
    down.rate = share(down_share, &up).or(down.rate);
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
