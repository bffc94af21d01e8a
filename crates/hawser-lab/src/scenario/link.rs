//! Links of a scenario file, and the profiles that they begin with.
//!
//! 1. [`says`] reads what a section says of a link: figures for both directions, and for one (`up`, `down`).
//! 2. [`settle`] lays over each other, last said first: the profile, the link's section, the case's changes.

use std::sync::LazyLock;

use hawser_config::reading::{self, Fault, Faults, Table, boolean, quoted, string};
use hawser_wire::{Access, Direction, Rate, Spread};
use toml::de::DeValue;

use super::figures::{self, DEFAULT_QUEUE, Figure, Figures};
use super::recorded::{self, Sources};
use super::refer::each;
use super::{LinkPlan, values};

/// Where traces are found.
pub(crate) type Traces<'a> = &'a Sources;

/// Bits a second in a Mbit/s.
const MEGABIT: f64 = 1e6;

const SPREADS: [(&str, Spread); 2] = [("normal", Spread::Normal), ("uniform", Spread::Uniform)];

/// The figures that a medium's links begin with. Plain data.
#[derive(Debug)]
pub struct Profile {
    /// As files name it.
    pub name: String,
    /// What it is, and where the figures come from.
    pub about: String,
    /// From the client, and to it.
    ways: [Figures; 2],
    /// Where both directions share a medium: how turns are taken.
    access: Option<Access>,
}

static PROFILES: LazyLock<Vec<Profile>> = LazyLock::new(|| {
    let text = include_str!("profiles.toml");
    let mut faults = Faults::new("profiles.toml", text);
    let tree = reading::tree(text, &mut faults).expect("a test reads it");
    let profiles = each(tree.get_ref(), "profile", "profile", &mut faults, |table| {
        let [name, about] = ["name", "about"].map(|key| table.get(key, values::text));
        let access = table.is("half-duplex").then(Access::wifi_n);
        let ways = changes(table, &Sources::default());
        Some(Profile { name: name?, about: about?, ways, access })
    });
    assert!(faults.is_empty(), "{faults:?}");
    profiles
});

/// Every profile, in the order of the documentation.
pub fn profiles() -> &'static [Profile] {
    &PROFILES
}

/// What a section says of a link. Plain data.
#[derive(Debug)]
pub(super) struct Says {
    profile: Option<&'static Profile>,
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

/// Figures of the way from the client and of the way to it: those of both, and after them its own.
pub(crate) fn changes(table: &mut Table<'_, '_, '_>, traces: Traces<'_>) -> [Figures; 2] {
    let both = figures(table, traces);
    let wrong = |_: &DeValue<'_>| Fault::new("expected figures of one direction").hint("such as { rate = \"10M\" }");
    ["up", "down"].map(|key| {
        let own = table.nested(key, wrong, |inner| figures(inner, traces));
        [both.clone(), own.unwrap_or_default()].concat()
    })
}

fn figures(table: &mut Table<'_, '_, '_>, traces: Traces<'_>) -> Figures {
    let pace = table.get("rate", values::pace);
    let trace = recorded::read(table, traces);
    if pace.is_some() && table.has("trace") {
        let fault = Fault::new("`trace` beside `rate`: a trace says when packets go");
        table.fault_at("trace", fault.hint("leave one of them out"));
    }
    let spread = |value: &DeValue<'_>| values::word(value, &SPREADS);
    let said = [
        pace.or(trace.map(Figure::Trace)),
        table.get("overhead", |value| values::whole(value, 0)).map(Figure::Overhead),
        table.get("queue", values::queue).map(Figure::Queue),
        table.get("discipline", values::keyword).map(Figure::Discipline),
        table.get("delay", values::duration).map(Figure::Delay),
        table.get("jitter", values::duration).map(Figure::Jitter),
        table.get("jitter-distribution", spread).map(Figure::JitterDistribution),
        table.get("jitter-reorders", boolean).map(Figure::JitterReorders),
        table.get("loss", values::loss).map(Figure::Loss),
        table.get("reorder", values::probability).map(Figure::Reorder),
        table.get("reorder-by", values::duration).map(Figure::ReorderBy),
        table.get("duplicate", values::probability).map(Figure::Duplicate),
        table.get("corrupt", values::probability).map(Figure::Corrupt),
    ];
    said.into_iter().flatten().collect()
}

fn profile(value: &DeValue<'_>) -> Result<&'static Profile, Fault> {
    string(value, |text| {
        profiles().iter().find(|profile| profile.name == text).ok_or_else(|| {
            let known: Vec<&str> = profiles().iter().map(|profile| profile.name.as_str()).collect();
            let fault = Fault::new(format!("there is no profile {}", quoted(text)));
            fault.meant(text, &known, || format!("one of: {}", known.join(", ")))
        })
    })
}

/// Step 2.
pub(super) fn settle(name: &str, said: &[&Says]) -> LinkPlan {
    let profile = said.iter().rev().find_map(|says| says.profile);
    let layers = || profile.map(|profile| &profile.ways).into_iter().chain(said.iter().map(|says| &says.ways));
    let [(up, of_down), (down, of_up)] = [0, 1].map(|way| {
        let figures: Figures = layers().flat_map(|ways| ways[way].clone()).collect();
        let mut settled = Direction { queue: DEFAULT_QUEUE, ..Direction::default() };
        figures::lay(&figures, &mut settled);
        (settled, figures::share_of_other(&figures))
    });
    let rate = |share: Option<f64>, other: &Direction| {
        let bits = other.mean_rate()?.bits_per_second() as f64;
        share.map(|share| Rate::mbit(bits * share / MEGABIT))
    };
    let access = profile.and_then(|profile| profile.access);
    // A medium of its own for both directions, where it shares none.
    let own = || access.map(|_| name.to_owned());
    LinkPlan {
        name: name.to_owned(),
        up: Direction { rate: rate(of_down, &down).or(up.rate), ..up.clone() },
        down: Direction { rate: rate(of_up, &up).or(down.rate), ..down },
        medium: said.iter().rev().find_map(|says| says.medium.clone()).or_else(own),
        access: access.unwrap_or(Access::turns()),
        metric: said.iter().rev().find_map(|says| says.metric).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use hawser_wire::Loss;

    use super::*;

    #[test]
    fn every_profile_has_a_rate_a_queue_and_a_source_and_a_name_of_its_own() {
        for profile in profiles() {
            for way in &profile.ways {
                let mut has = [false; 3];
                for figure in way {
                    match figure {
                        Figure::Rate(_) => has[0] = true,
                        Figure::Queue(_) => has[1] = true,
                        Figure::Delay(_) => has[2] = true,
                        Figure::Loss(Loss::Bursts(bursts)) => {
                            let share = bursts.to_bad.get() / (bursts.to_bad.get() + bursts.to_good.get());
                            assert!((share - 0.0099).abs() < 0.0001, "a hundredth is lost: {share}");
                        }
                        _ => {}
                    }
                }
                assert_eq!(has, [true; 3], "{profile:?}");
            }
            assert!(profile.about.contains('('), "{profile:?}");
            assert_eq!(profiles().iter().filter(|other| other.name == profile.name).count(), 1, "{profile:?}");
        }
    }
}
