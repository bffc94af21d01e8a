//! Links of a scenario file, and the profiles that they begin with.
//!
//! 1. [`says`] reads what a section says of a link: figures for both directions, and for one (`up`, `down`).
//! 2. [`settle`] lays over each other, last said first: the profile, the link's section, the case's changes.

use std::sync::LazyLock;

use hawser_config::reading::{self, Fault, Faults, Table, boolean, quoted, string};
use hawser_wire::{Access, Direction, Rate, Spread};
use toml::de::DeValue;

use super::figures::{DEFAULT_QUEUE, Figures};
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
        discipline: table.get("discipline", values::keyword).or(under.discipline),
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

fn profile(value: &DeValue<'_>) -> Result<&'static Profile, Fault> {
    string(value, |text| {
        profiles().iter().find(|profile| profile.name == text).ok_or_else(|| {
            let known: Vec<&str> = profiles().iter().map(|profile| profile.name.as_str()).collect();
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
    let profile = said.iter().rev().find_map(|says| says.profile);
    let plain = Direction { queue: DEFAULT_QUEUE, ..Direction::default() };
    let (mut up, mut down) = (plain.clone(), plain);
    let mut shares = [None; 2];
    for ways in profile.map(|profile| &profile.ways).into_iter().chain(said.iter().map(|says| &says.ways)) {
        for ((figures, way), share) in ways.iter().zip([&mut up, &mut down]).zip(&mut shares) {
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
        profile: profile.map(|profile| profile.name.clone()),
        up,
        down,
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
                assert!(way.rate.is_some() && way.queue.is_some() && way.delay.is_some(), "{profile:?}");
                if let Some(Loss::Bursts(bursts)) = way.loss {
                    let share = bursts.to_bad.get() / (bursts.to_bad.get() + bursts.to_good.get());
                    assert!((share - 0.0099).abs() < 0.0001, "a hundredth is lost: {share}");
                }
            }
            assert!(profile.about.contains('('), "{profile:?}");
            assert_eq!(profiles().iter().filter(|other| other.name == profile.name).count(), 1, "{profile:?}");
        }
    }
}
