//! Events: what happens to links and programs while a workload runs.

use hawser_config::reading::{Fault, Faults, Table};
use toml::de::DeTable;

use super::link;
use super::parse::Known;
use super::refer::each;
use super::{Event, Happening, TunnelEnd, values};

/// What is done, to a link or to a program, as the event's other keys have it.
#[derive(Clone, Copy)]
enum Deed {
    Link(Read),
    Program(Read),
}

type Read = fn(&mut Table<'_, '_, '_>, &Known<'_>) -> Option<Happening>;

const DEEDS: [(&str, Deed); 13] = [
    ("cut", Deed::Link(|_, _| Some(Happening::Cut))),
    ("black-hole", Deed::Link(|_, _| Some(Happening::BlackHole))),
    ("restore", Deed::Link(|_, _| Some(Happening::Restore))),
    ("change", Deed::Link(change)),
    ("handover", Deed::Link(handover)),
    ("address", Deed::Link(|_, _| Some(Happening::Address))),
    ("nat-rebind", Deed::Link(rebind)),
    ("stop", Deed::Program(|table, _| end(table).map(Happening::Stop))),
    ("continue", Deed::Program(|table, _| end(table).map(Happening::Continue))),
    ("kill", Deed::Program(|table, _| end(table).map(Happening::Kill))),
    ("start", Deed::Program(|table, _| end(table).map(Happening::Start))),
    ("attack", Deed::Program(attack)),
    ("stall", Deed::Link(|_, _| Some(Happening::Stall))),
];

/// All events.
pub(super) fn read(tree: &DeTable<'_>, known: &mut Known<'_>, faults: &mut Faults<'_>) -> Vec<Event> {
    each(tree, "event", "event", faults, |table| {
        let name = table.required("name", "name = \"loss of wifi\"", values::name);
        known.events.claim(table, name.as_ref());
        let at = table.required("at", "at = \"4s\"", values::duration);
        let deed = table.required("do", "do = \"cut\"", |value| values::word(value, &DEEDS)).map(|deed| deed.value);
        let link = match deed {
            Some(Deed::Program(_)) => Some(String::new()),
            _ => table.required("link", "link = \"wifi\"", |value| known.links.read(value)).map(|link| link.value),
        };
        let what = deed.and_then(|(Deed::Link(read) | Deed::Program(read))| read(table, known));
        Some(Event { name: name?.value, at: at?.value, link: link?, what: what? })
    })
}

fn end(table: &mut Table<'_, '_, '_>) -> Option<TunnelEnd> {
    let ends = [TunnelEnd::Local, TunnelEnd::Remote].map(|end| (end.name(), end));
    Some(table.required("end", "end = \"remote\"", |value| values::word(value, &ends))?.value)
}

fn attack(table: &mut Table<'_, '_, '_>, _: &Known<'_>) -> Option<Happening> {
    let per_second = table.required("per-second", "per-second = 50000", |value| values::whole(value, 1000));
    Some(Happening::Attack(per_second?.value))
}

fn handover(table: &mut Table<'_, '_, '_>, known: &Known<'_>) -> Option<Happening> {
    let to = table.required("to", "to = \"eth\"", |value| known.links.read(value));
    Some(Happening::Handover { to: to?.value })
}

fn change(table: &mut Table<'_, '_, '_>, known: &Known<'_>) -> Option<Happening> {
    let [up, down] = link::changes(table, known.traces).map(Box::new);
    if [&up, &down].iter().any(|figures| figures.share_of_other.is_some()) {
        let fault = Fault::new("`rate`: what changes is no part of the other way");
        table.fault_at("do", fault.hint("write rate = \"5M\""));
    }
    Some(Happening::Change { up, down })
}

fn rebind(table: &mut Table<'_, '_, '_>, known: &Known<'_>) -> Option<Happening> {
    if !known.nat {
        let fault = Fault::new("`do`: no router translates addresses here");
        table.fault_at("do", fault.hint("write nat = true under [network]"));
    }
    Some(Happening::NatRebind)
}
