//! From a file's text to a [`Scenario`], or every fault of it.
//!
//! 1. The text becomes a tree that knows its bytes.
//! 2. The scenario's own keys; the network; contenders and workloads (here).
//! 3. Events, and cases, which choose among all these (`cases`); what must hold (`claim`); how results are shown
//!    (`show`).
//! 4. What belongs together: names that are not there are faults as they are read.

use std::time::Duration;

use hawser_config::ConfigError;
use hawser_config::reading::{self, Fault, Faults, Table, boolean};
use hawser_wire::Backend;
use serde::Deserialize as _;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::link::{self, Says, Traces};
use super::refer::{Names, each, section};
use super::{ContenderPlan, Event, Family, Network, Scenario, WorkloadPlan, cases, claim, draw, show, values};
use crate::{contender, probe, scion_bench, shila, workload};

/// How long a workload runs, where its section does not say.
const DEFAULT_DURATION: Duration = Duration::from_secs(12);

const BACKENDS: [(&str, Backend); 2] = [("thread", Backend::Thread), ("netem", Backend::Netem)];
const SECTIONS: [&str; 11] =
    ["draw", "network", "contender", "workload", "event", "case", "repeat", "published", "claim", "table", "plot"];

/// Everything that names refer to. Starts empty, and grows while the file is read; one owner.
pub(super) struct Known<'s> {
    /// Where recordings are found.
    pub traces: Traces<'s>,
    pub links: Names,
    pub bystanders: Names,
    /// Both.
    pub wires: Names,
    /// What sections say of them, in their order.
    pub said: Vec<Says>,
    /// Whether routers translate addresses.
    pub nat: bool,
    pub contenders: Names,
    /// Labels of those that are of one link, with its name.
    pub over: Vec<(String, String)>,
    pub workloads: Names,
    pub events: Names,
    /// What happens, in the order of the events' names.
    pub happening: Vec<Event>,
    pub cases: Names,
}

impl<'s> Known<'s> {
    fn new(traces: Traces<'s>) -> Self {
        let [links, bystanders, wires, contenders, workloads, events, cases] =
            ["link", "bystander", "link", "contender", "workload", "event", "case"].map(Names::new);
        let (said, nat, over, happening) = (Vec::new(), false, Vec::new(), Vec::new());
        Self { traces, links, bystanders, wires, said, nat, contenders, over, workloads, events, happening, cases }
    }

    /// Contenders of which none is of another link alone.
    pub fn contenders_over(&self, links: &[String]) -> Vec<String> {
        let is_elsewhere = |label: &String| {
            let mut own = self.over.iter().filter(|(of, _)| of == label);
            own.any(|(_, link)| self.links.has(link) && !links.contains(link))
        };
        self.contenders.all.iter().filter(|label| !is_elsewhere(label)).cloned().collect()
    }
}

/// Steps 1 to 4.
pub(super) fn parse(text: &str, file: &str, traces: Traces<'_>) -> Result<Scenario, Vec<ConfigError>> {
    let mut faults = Faults::new(file, text);
    let scenario = reading::tree(text, &mut faults).and_then(|tree| read(text, tree.get_ref(), traces, &mut faults));
    scenario.filter(|_| faults.is_empty()).ok_or_else(|| faults.into_sorted())
}

/// Steps 2 to 4. None only where there is a fault.
fn read(text: &str, tree: &DeTable<'_>, traces: Traces<'_>, faults: &mut Faults<'_>) -> Option<Scenario> {
    let mut known = Known::new(traces);
    let ([name, group, title, source, finding], counts) = head(tree, faults);
    let draw = draw::read(tree, traces, faults);
    let network = network(tree, &mut known, faults);
    let contenders = contenders(tree, &mut known, faults);
    let workloads = workloads(tree, &mut known, faults);
    known.happening = cases::events(tree, &mut known, faults);
    let (drawn, cases) = match draw {
        Some(draw) => (Some(draw.told.clone()), draw::cases(draw, tree, &mut known, faults)),
        None => (None, cases::read(tree, &mut known, faults)),
    };
    let published = show::published(tree, &known, faults);
    let (tables, plots) = show::read(tree, &known, &published, faults);
    let (traces, generated) = traces.used();
    Some(Scenario {
        name,
        group,
        title,
        finding,
        source,
        contenders,
        workloads,
        cases,
        repeat: show::repeat(tree, faults),
        published,
        claims: claim::read(tree, &known, faults),
        tables,
        plots,
        events: known.happening,
        network: network?,
        counts,
        text: text.to_owned(),
        traces,
        generated,
        drawn,
    })
}

/// Step 2: name, group, title, source, finding; what counts.
fn head(tree: &DeTable<'_>, faults: &mut Faults<'_>) -> ([String; 5], Vec<String>) {
    let mut table = Table::new("the scenario".to_owned(), tree, 0..0, faults);
    let name = table.required("name", "name = \"two-links\"", values::slug);
    let name = name.map(|name| name.value).unwrap_or_default();
    let group = table.get("group", values::slug);
    let [title, source, finding] = ["title", "source", "finding"].map(|key| table.get(key, values::text));
    let counts = table.list("counts", values::text).unwrap_or_default();
    for section in SECTIONS {
        table.optional(section, |_| Ok(()));
    }
    table.finish();
    let or_name = |text: Option<String>| text.filter(|text| !text.is_empty()).unwrap_or_else(|| name.clone());
    let (source, finding) = (source.unwrap_or_default(), finding.unwrap_or_default().trim().to_owned());
    ([name.clone(), or_name(group), or_name(title), source, finding], reading::values(counts))
}

fn network(tree: &DeTable<'_>, known: &mut Known<'_>, faults: &mut Faults<'_>) -> Option<Network> {
    let Some((raw, span)) = section(tree, "network", faults) else {
        if !tree.contains_key("network") {
            let fault = Fault::new("missing section [network]");
            faults.add(0..0, fault.hint("add [[network.link]] with a name and a rate"));
        }
        return None;
    };
    let mut table = Table::new("[network]".to_owned(), raw, span.clone(), faults);
    let [inner, outer] = ["inner", "outer"].map(|key| table.get(key, values::keyword).unwrap_or(Family::V4));
    let [lan, server_links, nat] = ["lan", "server-links", "nat"].map(|key| table.is(key));
    known.nat = nat;
    let routers = table.get("routers", boolean).unwrap_or(true);
    if !routers && (nat || server_links) {
        let fault = Fault::new("`routers`: `nat` and `server-links` need them");
        table.fault_at("routers", fault.hint("leave it out"));
    }
    let backend = table.get("backend", |value| values::word(value, &BACKENDS)).unwrap_or(Backend::Thread);
    for key in ["link", "bystander"] {
        table.optional(key, |_| Ok(()));
    }
    table.finish();
    links(raw, "link", known, faults);
    links(raw, "bystander", known, faults);
    if !raw.contains_key("link") {
        faults.add(span, Fault::new("the network has no link").hint("add [[network.link]] with a name and a rate"));
    }
    Some(Network { inner, outer, lan, server_links, nat, routers, backend })
}

/// Links, or bystanders' links, which have no metric.
fn links(raw: &DeTable<'_>, key: &str, known: &mut Known<'_>, faults: &mut Faults<'_>) {
    each(raw, key, &format!("network.{key}"), faults, |table| {
        let name = table.required("name", "name = \"wifi\"", values::link_name);
        let name = known.wires.claim(table, name);
        let said = link::says(table, known.traces);
        let names = if key == "link" { &mut known.links } else { &mut known.bystanders };
        names.add(&name?);
        known.said.push(said);
        Some(())
    });
}

fn contenders(tree: &DeTable<'_>, known: &mut Known<'_>, faults: &mut Faults<'_>) -> Vec<ContenderPlan> {
    // On a stage, then of those that bring a network of their own.
    let own = [scion_bench::CONTENDER, shila::CONTENDER, probe::SHIM];
    let kinds: Vec<&str> = contender::kinds().map(|(kind, _)| *kind).chain(own).collect();
    let plans = each(tree, "contender", "contender", faults, |table| {
        let kind = table.required("kind", "kind = \"hawser\"", |value| values::one_of(value, &kinds));
        let label = table.optional("label", values::name).or_else(|| kind.clone());
        let label = known.contenders.claim(table, label);
        let options = options(table);
        let (kind, label) = (kind?.value, label?);
        let link = options.get("link").and_then(toml::Value::as_str);
        known.over.extend(link.map(|link| (label.clone(), link.to_owned())));
        Some(ContenderPlan { kind, label, options })
    });
    demand(tree, "contender", "kind = \"hawser\"", faults);
    plans
}

fn workloads(tree: &DeTable<'_>, known: &mut Known<'_>, faults: &mut Faults<'_>) -> Vec<WorkloadPlan> {
    let own = scion_bench::WORKLOADS.into_iter().chain([shila::WORKLOAD]).chain(probe::kinds());
    let kinds: Vec<&str> = workload::KINDS.into_iter().chain(own).collect();
    let plans = each(tree, "workload", "workload", faults, |table| {
        let kind = table.required("kind", "kind = \"bulk\"", |value| values::one_of(value, &kinds));
        let name = table.optional("name", values::name).or_else(|| kind.clone());
        let name = known.workloads.claim(table, name);
        let duration = table.get("duration", values::some_time).unwrap_or(DEFAULT_DURATION);
        let options = options(table);
        Some(WorkloadPlan { kind: kind?.value, name: name?, duration, options })
    });
    demand(tree, "workload", "kind = \"bulk\"", faults);
    plans
}

/// Options of a contender or workload, which reads them itself.
fn options(table: &mut Table<'_, '_, '_>) -> toml::Table {
    let read = |value: &DeValue<'_>| {
        if !value.is_table() {
            return Err(Fault::new("expected a table").hint("such as { direction = \"down\" }"));
        }
        let given = ValueDeserializer::from(Spanned::new(0..0, value.clone()));
        toml::Table::deserialize(given).map_err(|error| Fault::new(error.message()))
    };
    table.get("options", read).unwrap_or_default()
}

fn demand(tree: &DeTable<'_>, key: &str, example: &str, faults: &mut Faults<'_>) {
    if !tree.contains_key(key) {
        faults.add(0..0, Fault::new(format!("missing section [[{key}]]")).hint(format!("add one with {example}")));
    }
}
