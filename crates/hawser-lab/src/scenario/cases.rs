//! Cases: rows that choose among links, contenders, workloads and events, and change some figures.

use std::collections::BTreeMap;

use hawser_config::reading::{Fault, Faults, Table, boolean, quoted};
use toml::de::{DeTable, DeValue};

use super::link::{self, Says, Traces};
use super::parse::Known;
use super::refer::{Names, each};
use super::{Case, Event, Happening, LinkPlan, values};

/// The name of the one case of a file without any.
const ONLY: &str = "all";
/// Whose kernel a sysctl may be told for.
const HOSTS: [&str; 2] = ["client", "server"];

/// All cases; without any in the file, the one of everything.
pub(super) fn read(
    tree: &DeTable<'_>,
    events: &[Event],
    traces: Traces<'_>,
    known: &mut Known,
    faults: &mut Faults<'_>,
) -> Vec<Case> {
    let mut names = Names::new("case");
    let mut cases = each(tree, "case", "case", faults, |table| {
        let name = table.required("name", "name = \"A.1\"", values::name);
        names.claim(table, name.as_ref());
        Some(case(table, name.map(|sited| sited.value).unwrap_or_default(), events, traces, known))
    });
    if !tree.contains_key("case") {
        let nothing = DeTable::new();
        let mut table = Table::new("[[case]]".to_owned(), &nothing, 0..0, faults);
        cases.push(case(&mut table, ONLY.to_owned(), events, traces, known));
        names = Names::of("case", ONLY);
    }
    known.cases = names;
    cases
}

fn case(table: &mut Table<'_, '_, '_>, name: String, events: &[Event], traces: Traces<'_>, known: &Known) -> Case {
    let chosen = known.links.some(table, "links");
    let changes = changes(table, &chosen, traces, known);
    let absent = known.links.chosen(table, "absent").unwrap_or_default();
    for link in &absent {
        outside(table, "absent", link, &chosen);
    }
    if !chosen.is_empty() && chosen.iter().all(|link| absent.contains(link)) {
        table.fault(table.header(), Fault::new(format!("every link of case {} is absent", quoted(&name))));
    }
    Case {
        title: table.get("title", values::text).unwrap_or_default(),
        links: settle(&chosen, &changes, known),
        bystanders: settle(known.bystanders.all(), &changes, known),
        absent,
        contenders: known.contenders.chosen(table, "contenders").unwrap_or_else(|| known.contenders_over(&chosen)),
        workloads: known.workloads.some(table, "workloads"),
        events: happen(table, events, &chosen, &known.events),
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
pub(super) fn concerning(events: &[Event], links: &[String]) -> Vec<String> {
    let ours = events.iter().filter(|event| links_of(event).iter().all(|link| links.contains(link)));
    ours.map(|event| event.name.clone()).collect()
}

/// Those it names, or all that concern its links.
fn happen(table: &mut Table<'_, '_, '_>, events: &[Event], links: &[String], names: &Names) -> Vec<String> {
    match names.chosen(table, "events") {
        None => concerning(events, links),
        Some(chosen) => {
            for event in events.iter().filter(|event| chosen.contains(&event.name)) {
                for link in links_of(event) {
                    outside(table, "events", &link, links);
                }
            }
            chosen
        }
    }
}

/// A link that is named, but not one of the case's.
fn outside(table: &mut Table<'_, '_, '_>, key: &str, link: &str, links: &[String]) {
    if !links.iter().any(|known| known == link) {
        let fault = Fault::new(format!("`{key}`: link {} is none of this case's", quoted(link)));
        table.fault(table.header(), fault.hint(format!("its links: {}", links.join(", "))));
    }
}

/// What the case says of links, by their names.
fn changes(
    table: &mut Table<'_, '_, '_>,
    links: &[String],
    traces: Traces<'_>,
    known: &Known,
) -> BTreeMap<String, Says> {
    let mut changes = BTreeMap::new();
    for (name, key_span, raw, span) in tables(table, "change") {
        if !links.contains(&name) && !known.bystanders.has(&name) {
            let fault = Fault::new(format!("`change`: there is no link {} in this case", quoted(&name)));
            table.fault(key_span, fault.hint(format!("its links: {}", links.join(", "))));
        }
        let Some(raw) = raw.as_table() else { continue };
        let mut inner = table.inner(format!("change of {name}"), raw, span);
        let says = link::says(&mut inner, traces);
        inner.finish();
        changes.insert(name, says);
    }
    changes
}

/// The entries of a table of tables: each with its key's place, its value, and that one's place.
fn tables<'a, 't>(
    table: &mut Table<'a, 't, '_>,
    key: &'static str,
) -> Vec<(String, std::ops::Range<usize>, &'a DeValue<'t>, std::ops::Range<usize>)> {
    let is_table = |value: &DeValue<'_>| match value {
        DeValue::Table(inner) if inner.values().all(|value| value.get_ref().is_table()) => Ok(()),
        _ => Err(Fault::new("expected a table for each").hint("such as { wifi = { delay = \"100ms\" } }")),
    };
    let inner = table.get(key, is_table).and_then(|()| table.raw(key)?.as_table());
    let entries = inner.into_iter().flat_map(|inner| inner.iter());
    entries.map(|(key, value)| (key.get_ref().to_string(), key.span(), value.get_ref(), value.span())).collect()
}

/// Links as their sections have them, with changes.
pub(super) fn settle(names: &[String], changes: &BTreeMap<String, Says>, known: &Known) -> Vec<LinkPlan> {
    let all = known.links.all().iter().chain(known.bystanders.all());
    let said: BTreeMap<&String, &Says> = all.zip(&known.said).collect();
    let plan = |name: &String| {
        let layers: Vec<&Says> = said.get(name).copied().into_iter().chain(changes.get(name)).collect();
        link::settle(name, &layers)
    };
    names.iter().map(plan).collect()
}

fn sysctls(table: &mut Table<'_, '_, '_>) -> BTreeMap<String, String> {
    let all_text = |value: &DeValue<'_>| match value {
        DeValue::Table(inner) if inner.values().all(|value| value.get_ref().is_str()) => Ok(()),
        _ => Err(Fault::new("expected texts by key").hint("such as { \"ipv4/tcp_reordering\" = \"3\" }")),
    };
    let mut sysctls = BTreeMap::new();
    let inner = table.get("sysctls", all_text).and_then(|()| table.raw("sysctls")?.as_table());
    for (key, value) in inner.into_iter().flat_map(|inner| inner.iter()) {
        let (host, path) = key.get_ref().split_once(':').unwrap_or((HOSTS[0], key.get_ref()));
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '.');
        if !HOSTS.contains(&host) || !path.contains('/') || !path.chars().all(plain) || path.contains("..") {
            let fault = Fault::new(format!("{} is no sysctl of the network", quoted(key.get_ref())));
            table.fault(
                key.span(),
                fault.hint("below /proc/sys/net, such as \"ipv4/tcp_reordering\", or \"client:ipv4/…\""),
            );
        }
        let text = value.get_ref().as_str().unwrap_or_default();
        sysctls.insert(key.get_ref().to_string(), text.to_owned());
    }
    sysctls
}
