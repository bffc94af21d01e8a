//! Cases that are drawn: stretches of drives, and which links each has.
//!
//! 1. `[draw]` says how many, how long, out of which recording, and by which seed.
//! 2. Each second of every drive is as likely to begin a stretch as any other, if the stretch ends within its drive. Without a
//!    recording every stretch is of a drive of its own, made up by a seed of its own.
//! 3. How many links a case has goes round; which, is drawn. Its contenders are those whose links it has.

use std::collections::BTreeMap;
use std::time::Duration;

use hawser_portal::config::reading::{Fault, Faults, Table};
use hawser_sim::random::Seeded;
use toml::de::DeTable;

use super::link::{self, Says, Traces};
use super::parse::Known;
use super::recorded::{MADE_UP, Stretch};
use super::refer::{Names, section, sections};
use super::{Case, Event, cases, values};

/// With `--quick`, unless told: a case of each of three sizes.
const QUICK: u32 = 3;

/// What is drawn. Plain data.
#[derive(Debug)]
pub(super) struct Draw {
    stretches: Vec<Stretch>,
    /// How many links the cases have, in turn; none: all.
    sizes: Vec<usize>,
    quick: usize,
    random: Seeded,
    /// Words for the report.
    pub told: String,
}

/// Steps 1 and 2; the first stretch is what links have until cases are read.
pub(super) fn read(tree: &DeTable<'_>, traces: Traces<'_>, faults: &mut Faults<'_>) -> Option<Draw> {
    let (raw, span) = section(tree, "draw", faults)?;
    let mut table = Table::new("[draw]".to_owned(), raw, span.clone(), faults);
    let count = table.required("stretches", "stretches = 12", |value| values::whole::<u32>(value, 1));
    let length = table.required("length", "length = \"40s\"", values::some_time);
    let file = table.required("file", "file = \"drives.csv\"", values::text);
    let sizes = table.list("links", |value| values::whole::<u16>(value, 1)).unwrap_or_default();
    let seed = table.optional("seed", |value| values::whole(value, 0)).map_or(1, |sited| sited.value);
    let quick = table.optional("quick", |value| values::whole::<u32>(value, 1)).map_or(QUICK, |sited| sited.value);
    if tree.contains_key("case") {
        let fault = Fault::new("cases are drawn, and written");
        table.fault(span.clone(), fault.hint("leave out [draw], or every [[case]]"));
    }
    table.finish();
    let (count, length, file) = (count?.value, length?.value, file?.value);
    let mut random = Seeded::new(seed);
    let (stretches, from) = match traces.recording(&file) {
        Ok(Some(recording)) => {
            let drives = recording.drives().map(|(name, length)| (name.to_owned(), length)).collect::<Vec<_>>();
            (recorded(&drives, count, length, &mut random), file)
        }
        Ok(None) => (made_up(count, length, seed, &mut random), "drives made up".to_owned()),
        Err(error) => {
            faults.add(span, Fault::new(error));
            return None;
        }
    };
    let Some(first) = stretches.first() else {
        faults.add(span, Fault::new(format!("no drive of {from} lasts {} s", length.as_secs_f64())));
        return None;
    };
    traces.set_stretch(first);
    let told = format!("{count} stretches of {} s of {from}, by seed {seed}", length.as_secs_f64());
    let sizes = sizes.into_iter().map(|sited| usize::from(sited.value)).collect();
    Some(Draw { stretches, sizes, quick: quick as usize, random, told })
}

/// Step 2; none where no drive is long enough.
fn recorded(drives: &[(String, Duration)], count: u32, length: Duration, random: &mut Seeded) -> Vec<Stretch> {
    let room = |&(_, drive): &(String, Duration)| (drive.as_secs() + 1).saturating_sub(length.as_secs().max(1));
    let all: u64 = drives.iter().map(room).sum();
    let draw = |_| {
        let mut place = random.below(all);
        for drive in drives {
            if place < room(drive) {
                return Some(Stretch { drive: drive.0.clone(), offset: Duration::from_secs(place) });
            }
            place -= room(drive);
        }
        None
    };
    if all == 0 { Vec::new() } else { (0..count).filter_map(draw).collect() }
}

fn made_up(count: u32, length: Duration, seed: u64, random: &mut Seeded) -> Vec<Stretch> {
    let room = MADE_UP.as_secs().saturating_sub(length.as_secs());
    let stretch = |number: u32| Stretch {
        // Far apart, so that two scenarios' drives are different ones.
        drive: seed.wrapping_mul(1000).wrapping_add(u64::from(number)).to_string(),
        offset: Duration::from_secs(random.below(room + 1)),
    };
    if length > MADE_UP { Vec::new() } else { (0..count).map(stretch).collect() }
}

/// Step 3: a case for each stretch.
pub(super) fn cases(
    mut draw: Draw,
    tree: &DeTable<'_>,
    events: &[Event],
    traces: Traces<'_>,
    known: &mut Known,
    faults: &mut Faults<'_>,
) -> Vec<Case> {
    let all = known.links.all().to_vec();
    let all = all.as_slice();
    known.cases = Names::new("case");
    if let Some(size) = draw.sizes.iter().find(|&&size| size > all.len()) {
        let span = tree.get("draw").map_or(0..0, toml::Spanned::span);
        faults.add(span, Fault::new(format!("`links`: a case of {size} links, and there are {}", all.len())));
    }
    // What is wrong was told when it was read first.
    if !faults.is_empty() {
        return Vec::new();
    }
    let mut cases = Vec::new();
    for (index, stretch) in draw.stretches.iter().enumerate() {
        let size = draw.sizes.get(index % draw.sizes.len().max(1)).copied().unwrap_or(all.len());
        let links = subset(all, size, &mut draw.random);
        traces.set_stretch(stretch);
        let said = said(tree, traces, faults);
        let title = format!("drive {} from {} s: {}", stretch.drive, stretch.offset.as_secs(), links.join(", "));
        let plan = |name: &String| {
            let place = all.iter().position(|link| link == name).unwrap_or_default();
            link::settle(name, &said.get(place).into_iter().collect::<Vec<_>>())
        };
        let name = format!("{:02}", index + 1);
        known.cases.add(&name);
        cases.push(Case {
            name,
            title,
            bystanders: cases::settle(known.bystanders.all(), &BTreeMap::new(), known),
            absent: Vec::new(),
            contenders: known.contenders_over(&links),
            workloads: known.workloads.all().to_vec(),
            events: cases::concerning(events, &links),
            sysctls: BTreeMap::new(),
            x: None,
            quick: index < draw.quick,
            links: links.iter().map(plan).collect(),
        });
    }
    cases
}

/// What the network's section says of its links, read for the stretch of now.
fn said(tree: &DeTable<'_>, traces: Traces<'_>, faults: &mut Faults<'_>) -> Vec<Says> {
    let Some((network, _)) = section(tree, "network", faults) else { return Vec::new() };
    let mut said = Vec::new();
    for (raw, span) in sections(network, "link", "network.link", faults) {
        let mut table = Table::new("[[network.link]]".to_owned(), raw, span, faults);
        table.optional("name", |_| Ok(()));
        said.push(link::says(&mut table, raw, traces));
        table.finish();
    }
    said
}

/// So many of the names, in their order.
fn subset(all: &[String], size: usize, random: &mut Seeded) -> Vec<String> {
    let mut left = size;
    let mut chosen = Vec::new();
    for (place, name) in all.iter().enumerate() {
        let rest = all.len() - place;
        if random.below(rest as u64) < left as u64 {
            chosen.push(name.clone());
            left -= 1;
        }
    }
    chosen
}
