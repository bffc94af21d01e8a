//! Events: what happens to links and programs while a workload runs.

use hawser_config::reading::{Fault, Faults, Sited, Table};
use toml::de::DeTable;

use super::link::{self, Traces};
use super::parse::Known;
use super::refer::{Names, each};
use super::{Event, Happening, TunnelEnd, values};

/// What an event does, before its other keys are read. Plain data.
#[derive(Clone, Copy)]
enum Do {
    Cut,
    BlackHole,
    Restore,
    Change,
    Handover,
    Address,
    NatRebind,
    Stop,
    Continue,
    Kill,
    Start,
    Attack,
    Stall,
}

impl Do {
    /// Whether it is done to a program, and not to a link.
    const fn is_to_program(self) -> bool {
        matches!(self, Self::Stop | Self::Continue | Self::Kill | Self::Start | Self::Attack)
    }
}

const DEEDS: [(&str, Do); 13] = [
    ("cut", Do::Cut),
    ("black-hole", Do::BlackHole),
    ("restore", Do::Restore),
    ("change", Do::Change),
    ("handover", Do::Handover),
    ("address", Do::Address),
    ("nat-rebind", Do::NatRebind),
    ("stop", Do::Stop),
    ("continue", Do::Continue),
    ("kill", Do::Kill),
    ("start", Do::Start),
    ("attack", Do::Attack),
    ("stall", Do::Stall),
];

const ENDS: [(&str, TunnelEnd); 2] = [("local", TunnelEnd::Local), ("remote", TunnelEnd::Remote)];

/// All events.
pub(super) fn read(
    tree: &DeTable<'_>,
    nat: bool,
    traces: Traces<'_>,
    known: &mut Known,
    faults: &mut Faults<'_>,
) -> Vec<Event> {
    each(tree, "event", "event", faults, |table| {
        let name = table.required("name", "name = \"loss of wifi\"", values::name);
        known.events.claim(table, name.as_ref());
        let at = table.required("at", "at = \"4s\"", values::duration);
        let deed = table.required("do", "do = \"cut\"", |value| values::word(value, &DEEDS));
        let link = if deed.as_ref().is_some_and(|deed| deed.value.is_to_program()) {
            Some(String::new())
        } else {
            table.required("link", "link = \"wifi\"", |value| known.links.read(value)).map(|link| link.value)
        };
        let what = deed.and_then(|deed| happening(table, &deed, nat, traces, &known.links));
        Some(Event { name: name?.value, at: at?.value, link: link?, what: what? })
    })
}

fn happening(
    table: &mut Table<'_, '_, '_>,
    deed: &Sited<Do>,
    nat: bool,
    traces: Traces<'_>,
    links: &Names,
) -> Option<Happening> {
    let mut end = || table.required("end", "end = \"remote\"", |value| values::word(value, &ENDS));
    Some(match deed.value {
        Do::Stop => Happening::Stop(end()?.value),
        Do::Continue => Happening::Continue(end()?.value),
        Do::Kill => Happening::Kill(end()?.value),
        Do::Start => Happening::Start(end()?.value),
        Do::Attack => {
            let per_second = table.required("per-second", "per-second = 50000", |value| values::whole(value, 1000));
            Happening::Attack(per_second?.value)
        }
        Do::Cut => Happening::Cut,
        Do::Stall => Happening::Stall,
        Do::BlackHole => Happening::BlackHole,
        Do::Restore => Happening::Restore,
        Do::Address => Happening::Address,
        Do::Handover => {
            Happening::Handover { to: table.required("to", "to = \"eth\"", |value| links.read(value))?.value }
        }
        Do::Change => {
            let [up, down] = link::changes(table, traces).map(Box::new);
            if [&up, &down].iter().any(|figures| figures.share_of_other.is_some()) {
                let fault = Fault::new("`rate`: what changes is no part of the other way");
                table.fault(deed.span.clone(), fault.hint("write rate = \"5M\""));
            }
            Happening::Change { up, down }
        }
        Do::NatRebind => {
            if !nat {
                let fault = Fault::new("`do`: no router translates addresses here");
                table.fault(deed.span.clone(), fault.hint("write nat = true under [network]"));
            }
            Happening::NatRebind
        }
    })
}
