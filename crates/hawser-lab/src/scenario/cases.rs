//! Events: what happens to links and programs while a workload runs; and cases: rows that choose among links,
//! contenders, workloads and events, and change some figures.

use std::collections::BTreeMap;

use hawser_config::reading::{Fault, Faults, Table, boolean, quoted};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::figures::share_of_other;
use super::link::{self, Says};
use super::parse::Known;
use super::refer::{Names, each};
use super::{Case, Event, Happening, LinkPlan, TunnelEnd, values};

/// The name of the one case of a file without any.
const ONLY: &str = "all";
/// Whose kernel a sysctl may be told for.
const HOSTS: [&str; 2] = ["client", "server"];

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
pub(super) fn events(tree: &DeTable<'_>, known: &mut Known<'_>, faults: &mut Faults<'_>) -> Vec<Event> {
    each(tree, "event", "event", faults, |table| {
        let name = table.required("name", "name = \"loss of wifi\"", values::name);
        let name = known.events.claim(table, name);
        let at = table.required("at", "at = \"4s\"", values::duration);
        let deed = table.required("do", "do = \"cut\"", |value| values::word(value, &DEEDS)).map(|deed| deed.value);
        let link = match deed {
            Some(Deed::Program(_)) => Some(String::new()),
            _ => table.required("link", "link = \"wifi\"", |value| known.links.read(value)).map(|link| link.value),
        };
        let what = deed.and_then(|(Deed::Link(read) | Deed::Program(read))| read(table, known));
        Some(Event { name: name?, at: at?.value, link: link?, what: what? })
    })
}

fn end(table: &mut Table<'_, '_, '_>) -> Option<TunnelEnd> {
    Some(table.required("end", "end = \"remote\"", values::keyword)?.value)
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
    let [up, down] = link::changes(table, known.traces);
    if share_of_other(&up).or(share_of_other(&down)).is_some() {
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

/// All cases; without any in the file, the one of everything.
pub(super) fn read(tree: &DeTable<'_>, known: &mut Known<'_>, faults: &mut Faults<'_>) -> Vec<Case> {
    let mut names = Names::new("case");
    let mut cases = each(tree, "case", "case", faults, |table| {
        let name = table.required("name", "name = \"A.1\"", values::name);
        let name = names.claim(table, name).unwrap_or_default();
        Some(case(table, name, known))
    });
    if !tree.contains_key("case") {
        cases.push(of_everything(ONLY.to_owned(), known, faults));
        names.add(ONLY);
    }
    known.cases = names;
    cases
}

/// The case that chooses all and changes nothing.
pub(super) fn of_everything(name: String, known: &Known<'_>, faults: &mut Faults<'_>) -> Case {
    let nothing = DeTable::new();
    case(&mut Table::new("[[case]]".to_owned(), &nothing, 0..0, faults), name, known)
}

fn case(table: &mut Table<'_, '_, '_>, name: String, known: &Known<'_>) -> Case {
    let chosen = known.links.some(table, "links");
    let changes = changes(table, &chosen, known);
    let absent = known.links.chosen(table, "absent").unwrap_or_default();
    for link in &absent {
        outside(table, "absent", link, &chosen);
    }
    if !chosen.is_empty() && chosen.iter().all(|link| absent.contains(link)) {
        table.here(Fault::new(format!("every link of case {} is absent", quoted(&name))));
    }
    Case {
        title: table.get("title", values::text).unwrap_or_default(),
        links: settle(&chosen, &changes, known),
        bystanders: settle(&known.bystanders.all, &changes, known),
        absent,
        contenders: known.contenders.chosen(table, "contenders").unwrap_or_else(|| known.contenders_over(&chosen)),
        workloads: known.workloads.some(table, "workloads"),
        events: happen(table, &chosen, known),
        sysctls: sysctls(table),
        x: table.get("x", values::number),
        quick: table.get("quick", boolean).unwrap_or(true),
        name,
    }
}

fn links_of(event: &Event) -> Vec<String> {
    match &event.what {
        Happening::Handover { to } => vec![event.link.clone(), to.clone()],
        _ if event.link.is_empty() => Vec::new(),
        _ => vec![event.link.clone()],
    }
}

/// All events that concern these links.
pub(super) fn concerning(known: &Known<'_>, links: &[String]) -> Vec<String> {
    let ours = known.happening.iter().filter(|event| links_of(event).iter().all(|link| links.contains(link)));
    ours.map(|event| event.name.clone()).collect()
}

/// Those it names, or all that concern its links.
fn happen(table: &mut Table<'_, '_, '_>, links: &[String], known: &Known<'_>) -> Vec<String> {
    let Some(chosen) = known.events.chosen(table, "events") else { return concerning(known, links) };
    for link in known.happening.iter().filter(|event| chosen.contains(&event.name)).flat_map(links_of) {
        outside(table, "events", &link, links);
    }
    chosen
}

/// A link that is named, but not one of the case's.
fn outside(table: &mut Table<'_, '_, '_>, key: &str, link: &str, links: &[String]) {
    if !links.iter().any(|known| known == link) {
        let fault = Fault::new(format!("`{key}`: link {} is none of this case's", quoted(link)));
        table.here(fault.hint(format!("its links: {}", links.join(", "))));
    }
}

/// What the case says of links, by their names.
fn changes(table: &mut Table<'_, '_, '_>, links: &[String], known: &Known<'_>) -> BTreeMap<String, Says> {
    let wrong = Fault::new("expected a table for each").hint("such as { wifi = { delay = \"100ms\" } }");
    let mut changes = BTreeMap::new();
    for (key, value) in entries(table, "change", DeValue::is_table, &wrong) {
        let name = key.get_ref().to_string();
        if !links.contains(&name) && !known.bystanders.has(&name) {
            let fault = Fault::new(format!("`change`: there is no link {} in this case", quoted(&name)));
            table.fault(key.span(), fault.hint(format!("its links: {}", links.join(", "))));
        }
        let Some(raw) = value.get_ref().as_table() else { continue };
        let mut inner = table.inner(format!("change of {name}"), raw, value.span());
        let says = link::says(&mut inner, known.traces);
        inner.finish();
        changes.insert(name, says);
    }
    changes
}

/// The entries of a table whose values are all of one kind; another is a fault, as `wrong` says.
fn entries<'a, 't>(
    table: &mut Table<'a, 't, '_>,
    key: &'static str,
    is_right: impl Fn(&DeValue<'t>) -> bool,
    wrong: &Fault,
) -> Vec<(&'a Spanned<DeString<'t>>, &'a Spanned<DeValue<'t>>)> {
    let all = |value: &DeValue<'t>| match value {
        DeValue::Table(inner) if inner.values().all(|value| is_right(value.get_ref())) => Ok(()),
        _ => Err(wrong.clone()),
    };
    let inner = table.get(key, all).and_then(|()| table.raw(key)?.as_table());
    inner.into_iter().flat_map(|inner| inner.iter()).collect()
}

/// Links as their sections have them, with changes.
pub(super) fn settle(names: &[String], changes: &BTreeMap<String, Says>, known: &Known<'_>) -> Vec<LinkPlan> {
    let said: BTreeMap<&String, &Says> = known.wires.all.iter().zip(&known.said).collect();
    let layers = |name: &String| said.get(name).copied().into_iter().chain(changes.get(name)).collect::<Vec<_>>();
    names.iter().map(|name| link::settle(name, &layers(name))).collect()
}

fn sysctls(table: &mut Table<'_, '_, '_>) -> BTreeMap<String, String> {
    let wrong = Fault::new("expected texts by key").hint("such as { \"ipv4/tcp_reordering\" = \"3\" }");
    let mut sysctls = BTreeMap::new();
    for (key, value) in entries(table, "sysctls", DeValue::is_str, &wrong) {
        let (host, path) = key.get_ref().split_once(':').unwrap_or((HOSTS[0], key.get_ref()));
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '.');
        if !HOSTS.contains(&host) || !path.contains('/') || !path.chars().all(plain) || path.contains("..") {
            let fault = Fault::new(format!("{} is no sysctl of the network", quoted(key.get_ref())));
            let hint = "below /proc/sys/net, such as \"ipv4/tcp_reordering\", or \"client:ipv4/…\"";
            table.fault(key.span(), fault.hint(hint));
        }
        let text = value.get_ref().as_str().unwrap_or_default();
        sysctls.insert(key.get_ref().to_string(), text.to_owned());
    }
    sysctls
}
