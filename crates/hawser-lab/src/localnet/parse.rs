//! Topologies by name, and from a file's text to a [`Topology`], or every fault of it.
//!
//! 1. The text becomes a tree that knows its bytes.
//! 2. The topology's own keys, its ASes, its links; `count` makes several links of one.
//! 3. What must hold of all together (`topology`).

use std::path::Path;
use std::time::Duration;

use hawser_config::reading::{self, Fault, Faults, Sited, Span, Table, boolean, did_you_mean, quoted, string};
use hawser_scion::IsdAs;
use hawser_scion::conn::PortRange;
use hawser_wire::Direction;
use toml::de::{DeTable, DeValue};

use super::topology::{self, Announced, AsPlan, Family, LinkPlan, Topology};
use crate::error::LabError;
use crate::scenario::figures::{DEFAULT_QUEUE, Figures, lay};
use crate::scenario::find::{FileError, is_file};
use crate::scenario::link::{self, Traces};
use crate::scenario::recorded::Sources;
use crate::scenario::refer::each;
use crate::scenario::values;

/// Topologies that are part of the program: name and text.
const EMBEDDED: [(&str, &str); 2] = [
    ("two-cores", include_str!("../../topologies/two-cores.toml")),
    ("six-as", include_str!("../../topologies/six-as.toml")),
];
/// As errors call it.
const WHAT: &str = "topology";

/// What an Ethernet packet of 1500 bytes leaves for SCION after IPv4 and UDP, or IPv6 and UDP. Source: RFC 894, 791,
/// 8200, 768.
const MTU_V4: u16 = 1500 - 28;
const MTU_V6: u16 = 1500 - 48;
/// The least that a link of a SCION network must carry. Source: draft-dekater-scion-dataplane, "Path MTU" (as IPv6 has
/// it).
const MTU_MIN: i64 = 1280;
/// What an emulated link carries, less IPv4 and UDP. Source: hawser-wire's buffers.
const MTU_EMULATED: u16 = 2048 - 28;
/// Hosts of an AS: each two have a veth of their own.
const HOSTS_MAX: u8 = 8;
/// Links that one section may stand for: a control service registers 20 segments for a pair of ASes. Source: the
/// reference implementation's DefaultBestSetSize.
const COUNT_MAX: u8 = 16;
/// Links: each has a network of its own in 172.16.0.0/16.
const LINKS_MAX: usize = 250;
/// What routers send straight to hosts, where the file does not say. Source: the reference implementation's
/// documentation, "Configuring an AS", `dispatched_ports`.
pub(crate) const DISPATCHED: PortRange = PortRange { first: 31000, last: 32767 };
/// How often a router asks whether a link is there. Source: the reference implementation's default for BFD.
const BFD: Duration = Duration::from_millis(200);

/// What was read so far, and where it stands, for step 3. Grows while the file is read; one owner.
pub(super) struct Draft {
    pub topology: Topology,
    /// Of each AS's `id`.
    pub as_spans: Vec<Span>,
    /// Of each link's section.
    pub link_spans: Vec<Span>,
}

impl Topology {
    /// The topology of a name or file: a path (something with a slash, or ending in .toml) is read from disk, another
    /// word is an embedded topology's name. `links` takes the place of every `count`.
    ///
    /// # Errors
    /// Where there is none of this name, it cannot be read, or has faults.
    pub fn named(name: &str, links: Option<u8>) -> Result<Self, FileError> {
        if is_file(name) {
            let path = Path::new(name);
            let text = FileError::text_of(WHAT, path)?;
            return Self::parse(&text, name, Some(path.parent().unwrap_or(Path::new(""))), links);
        }
        match EMBEDDED.iter().find(|(known, _)| *known == name) {
            Some((name, text)) => Self::parse(text, &format!("{name}.toml"), None, links),
            None => {
                let known = EMBEDDED.map(|(known, _)| known);
                let hint = format!("there are {}; a file's name ends in .toml", known.join(", "));
                Err(FileError::unknown(format!("{WHAT} {name}: there is none of this name"), name, &known, hint))
            }
        }
    }

    /// Steps 1 to 3; `file` is what its faults are reported under, `folder` where traces are, and `links` takes the
    /// place of every `count`.
    ///
    /// # Errors
    /// Every fault of the text.
    pub fn parse(text: &str, file: &str, folder: Option<&Path>, links: Option<u8>) -> Result<Self, FileError> {
        let mut faults = Faults::new(file, text);
        let tree = reading::tree(text, &mut faults);
        let topology = tree.map(|tree| parsed(tree.get_ref(), links, &Sources::new(folder, None), &mut faults));
        topology.filter(|_| faults.is_empty()).ok_or_else(|| {
            let (file, text) = (file.to_owned(), text.to_owned());
            FileError::Faulty { what: WHAT, file, text, errors: faults.into_sorted() }
        })
    }
}

impl From<FileError> for LabError {
    /// A topology that comes along is wrong.
    fn from(error: FileError) -> Self {
        Self::Refused { action: "read a topology that comes along".to_owned(), said: error.to_string() }
    }
}

/// Steps 2 and 3.
fn parsed(tree: &DeTable<'_>, links: Option<u8>, traces: Traces<'_>, faults: &mut Faults<'_>) -> Topology {
    let mut table = Table::new("the topology".to_owned(), tree, 0..0, faults);
    let name = table.required("name", "name = \"two-cores\"", values::slug);
    let remote_daemons = table.is("remote-daemons");
    for section in ["as", "link"] {
        table.optional(section, |_| Ok(()));
    }
    table.finish();
    let name = name.map(|name| name.value).unwrap_or_default();
    let topology = Topology { name, remote_daemons, ases: vec![], links: vec![] };
    let mut draft = Draft { topology, as_spans: vec![], link_spans: vec![] };
    draft.read_ases(tree, faults);
    let wrong_ases = !faults.is_empty();
    draft.read_links(tree, links, traces, faults);
    // What a wrong AS would have been is not known: what links say of it is no fault of theirs.
    if !wrong_ases {
        topology::whole(&draft, faults);
    }
    draft.topology
}

impl Draft {
    fn read_ases(&mut self, tree: &DeTable<'_>, faults: &mut Faults<'_>) {
        if !tree.contains_key("as") {
            let hint = "add one with id = \"1-ff00:0:110\", core = true";
            faults.add(0..0, Fault::new("missing section [[as]]").hint(hint));
        }
        each(tree, "as", "as", faults, |table| {
            let id = table.required("id", "id = \"1-ff00:0:110\"", isd_as);
            if let Some(Sited { value, .. }) = &id
                && self.topology.ases.iter().any(|plan| plan.id.asn() == value.asn())
            {
                let fault = Fault::new(format!("`id`: there is an AS {} already", value.asn()));
                table.fault_at("id", fault.hint("scion-pki keeps one key for each number, whatever its ISD"));
            }
            let core = table.is("core");
            let hosts = table.get("hosts", |value| number(value, 0, HOSTS_MAX)).unwrap_or(1);
            let family = table.get("hosts-ip", values::keyword).unwrap_or(Family::V4);
            let mtu = table.get("mtu", |value| values::whole(value, MTU_MIN));
            let mtu = mtu.unwrap_or(if family == Family::V4 { MTU_V4 } else { MTU_V6 });
            let dispatched = table.get("dispatched-ports", |value| string(value, ports)).unwrap_or(DISPATCHED);
            let shim = table.get("shim", boolean).unwrap_or(true);
            let Sited { value: id, span } = id?;
            self.as_spans.push(span);
            self.topology.ases.push(AsPlan { id, core, hosts, family, mtu, dispatched, shim });
            Some(())
        });
    }

    fn read_links(&mut self, tree: &DeTable<'_>, links: Option<u8>, traces: Traces<'_>, faults: &mut Faults<'_>) {
        each(tree, "link", "link", faults, |table| {
            let name = table.required("name", "name = \"c1\"", values::link_name);
            let kind = table.required("kind", "kind = \"core\"", values::keyword);
            let [a, b] = [("a", "a = \"1-ff00:0:110\""), ("b", "b = \"1-ff00:0:111\"")]
                .map(|(key, example)| table.required(key, example, |value| known(value, &self.topology)));
            let count = table.get("count", |value| number(value, 1, COUNT_MAX));
            let mtu: Option<u16> = table.get("mtu", |value| values::whole(value, MTU_MIN));
            let bfd = table.get("bfd", values::some_time).unwrap_or(BFD);
            let ways = ways(link::changes(table, traces));
            let announced = announced(table, ways.as_ref());
            if ways.is_some() && mtu.is_some_and(|mtu| mtu > MTU_EMULATED) {
                let fault = Fault::new(format!("`mtu`: an emulated link carries at most {MTU_EMULATED} bytes"));
                table.fault_at("mtu", fault.hint("a link without rate, delay and loss carries more"));
            }
            let (Sited { value: name, span }, kind, ends) = (name?, kind?.value, [a?.value, b?.value]);
            let mtu = mtu.unwrap_or(MTU_V4);
            let plan = LinkPlan { name, kind, ends, ways, mtu, announced, bfd };
            for plan in several(plan, count.map(|count| links.unwrap_or(count))) {
                claim(table, &self.topology, &plan.name, &span);
                self.link_spans.push(table.header());
                self.topology.links.push(plan);
            }
            Some(())
        });
        if self.topology.links.len() > LINKS_MAX {
            let span = self.link_spans.last().cloned().unwrap_or_default();
            faults.add(span, Fault::new(format!("there are more than {LINKS_MAX} links")));
        }
    }
}

/// Links of one section: `name`, or `name1` to `nameN`, each with its own chance.
fn several(plan: LinkPlan, count: Option<u8>) -> Vec<LinkPlan> {
    let Some(count) = count else { return vec![plan] };
    let numbered = |number: u8| {
        let seeded = |way: &Direction| Direction { seed: way.seed + 2 * u64::from(number), ..way.clone() };
        let ways = plan.ways.as_ref().map(|ways| ways.each_ref().map(seeded));
        LinkPlan { name: format!("{}{number}", plan.name), ways, ..plan.clone() }
    };
    (1..=count).map(numbered).collect()
}

fn claim(table: &mut Table<'_, '_, '_>, topology: &Topology, name: &str, span: &Span) {
    if topology.links.iter().any(|link| link.name == name) {
        let fault = Fault::new(format!("`name`: there is a link {} already", quoted(name)));
        table.fault(span.clone(), fault.hint("each has a name of its own"));
    }
    if name.len() > topology::NAME_MAX || name.starts_with(topology::HOST_PREFIX) {
        let fault = Fault::new(format!("`name`: a link cannot be called {}", quoted(name)));
        table.fault(span.clone(), fault.hint("at most 15 letters with its number, and not host…"));
    }
}

/// How an emulated link's packets go; none where the file asks for nothing.
fn ways(figures: [Figures; 2]) -> Option<[Direction; 2]> {
    if figures.iter().all(Figures::is_empty) {
        return None;
    }
    let [up, down] = figures;
    Some([(up, 1), (down, 2)].map(|(figures, seed)| {
        let mut way = Direction { queue: DEFAULT_QUEUE, seed, ..Direction::default() };
        lay(&figures, &mut way);
        way
    }))
}

/// What the file says is announced, and where it does not what the ways are.
fn announced(table: &mut Table<'_, '_, '_>, ways: Option<&[Direction; 2]>) -> [Announced; 2] {
    let latency = table.get("announce-latency", values::duration);
    let bandwidth = table.get("announce-bandwidth", values::rate);
    if !table.get("announce", boolean).unwrap_or(true) {
        return [Announced::default(); 2];
    }
    let of = |way: Option<&Direction>| Announced {
        latency: latency.or_else(|| way.map(|way| way.delay)),
        bandwidth: bandwidth.or_else(|| way.and_then(Direction::mean_rate)),
    };
    [0, 1].map(|way| of(ways.map(|ways| &ways[way])))
}

fn isd_as(value: &DeValue<'_>) -> Result<IsdAs, Fault> {
    let id = string(value, |text| text.parse::<IsdAs>().map_err(|error| Fault::new(error.to_string())))?;
    if id.is_wildcard() {
        return Err(Fault::new(format!("{id} stands for several: ISD and AS are not 0")));
    }
    Ok(id)
}

/// An AS that the file has.
fn known(value: &DeValue<'_>, topology: &Topology) -> Result<IsdAs, Fault> {
    let id = isd_as(value)?;
    if topology.find(id).is_some() {
        return Ok(id);
    }
    let names: Vec<String> = topology.ases.iter().map(|plan| plan.id.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let fault = Fault::new(format!("there is no AS {id}"));
    Err(match did_you_mean(&id.to_string(), &names) {
        Some(meant) => fault.hint(format!("did you mean {meant}?")).fix(quoted(meant)),
        None => fault.hint(format!("there are: {}", names.join(", "))),
    })
}

fn ports(text: &str) -> Result<PortRange, Fault> {
    let range = match text {
        "all" => Some(PortRange { first: 1, last: u16::MAX }),
        _ => text.split_once('-').and_then(|(first, last)| {
            let [first, last] = [first, last].map(|port| port.parse().ok().filter(|&port: &u16| port > 0));
            Some(PortRange { first: first?, last: last? })
        }),
    };
    range.filter(|range| range.first <= range.last).ok_or_else(|| {
        let hint = "\"31000-32767\", or \"all\"; for next to none name a few that nobody uses, such as \"30200-30210\"";
        Fault::new(format!("{} is no range of ports", quoted(text))).hint(hint)
    })
}

/// A number of a small range.
fn number(value: &DeValue<'_>, least: u8, most: u8) -> Result<u8, Fault> {
    let number: u8 = values::whole(value, least.into())?;
    if number <= most { Ok(number) } else { Err(Fault::new(format!("{number} is more than {most}"))) }
}
