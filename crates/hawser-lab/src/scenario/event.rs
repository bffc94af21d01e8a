//! Events: what happens to links while a workload runs.

use hawser_portal::config::reading::{Fault, Faults, Table};
use toml::de::DeTable;

use super::link::{self, Traces};
use super::parse::Known;
use super::refer::{Names, sections};
use super::{Event, Happening, values};

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
}

const DEEDS: [(&str, Do); 7] = [
    ("cut", Do::Cut),
    ("black-hole", Do::BlackHole),
    ("restore", Do::Restore),
    ("change", Do::Change),
    ("handover", Do::Handover),
    ("address", Do::Address),
    ("nat-rebind", Do::NatRebind),
];

/// All events.
pub(super) fn read(
    tree: &DeTable<'_>,
    nat: bool,
    traces: Traces<'_>,
    known: &mut Known,
    faults: &mut Faults<'_>,
) -> Vec<Event> {
    let mut events = Vec::new();
    for (raw, span) in sections(tree, "event", "event", faults) {
        let mut table = Table::new("[[event]]".to_owned(), raw, span, faults);
        let name = table.required("name", "name = \"loss of wifi\"", values::name);
        known.events.claim(&mut table, name.as_ref());
        let at = table.required("at", "at = \"4s\"", values::duration);
        let link = table.required("link", "link = \"wifi\"", |value| known.links.read(value));
        let what = happening(&mut table, raw, nat, traces, &known.links);
        table.finish();
        if let (Some(name), Some(at), Some(link), Some(what)) = (name, at, link, what) {
            events.push(Event { name: name.value, at: at.value, link: link.value, what });
        }
    }
    events
}

fn happening(
    table: &mut Table<'_, '_, '_>,
    raw: &DeTable<'_>,
    nat: bool,
    traces: Traces<'_>,
    links: &Names,
) -> Option<Happening> {
    let deed = table.required("do", "do = \"cut\"", |value| values::word(value, &DEEDS))?;
    Some(match deed.value {
        Do::Cut => Happening::Cut,
        Do::BlackHole => Happening::BlackHole,
        Do::Restore => Happening::Restore,
        Do::Address => Happening::Address,
        Do::Handover => {
            Happening::Handover { to: table.required("to", "to = \"eth\"", |value| links.read(value))?.value }
        }
        Do::Change => {
            let [up, down] = link::changes(table, raw, traces).map(Box::new);
            Happening::Change { up, down }
        }
        Do::NatRebind => {
            if !nat {
                let fault = Fault::new("`do`: no router translates addresses here");
                table.fault(deed.span, fault.hint("write nat = true under [network]"));
            }
            Happening::NatRebind
        }
    })
}
