//! What the links could carry while a workload ran: their rates and recordings, less the time they were away.
//!
//! 1. Every event begins a span; within one, each link has a rate or a part of its recording, or is away.
//! 2. What all links hold, in the directions that the workload sends, is the capacity: over time, and as a mean.
//! 3. What bulk brought, over that, is its share.

use std::collections::BTreeMap;
use std::time::Duration;

use hawser_wire::Direction;

use super::Sends;
use super::links::{GOODPUT, mbps};
use crate::experiment::{Findings, Line};
use crate::scenario::{Case, Event, Happening, LinkPlan, WorkloadPlan};

/// Steps of the line.
const STEP: Duration = Duration::from_millis(500);
/// Workloads that take what they get.
const BULK: [&str; 3] = ["bulk", "http3", "iperf3"];
/// What a workload's `load` brought beside it.
const LOAD: &str = "load_mbps";
/// What is found.
const CAPACITY: &str = "capacity_mbps";
const SHARE: &str = "capacity_percent";
const PERCENT: f64 = 100.0;

/// A link in a span. Plain data.
#[derive(Clone, Debug)]
struct Now {
    is_there: bool,
    /// Up and down, and since when their recordings run.
    ways: [(Direction, Duration); 2],
}

/// A span: from when on, and each link's name with what it is. Plain data.
type Span<'a> = (Duration, BTreeMap<&'a str, Now>);

/// Steps 1 to 3; nothing where a link has no bound, or shares its medium with others.
pub fn capacity(case: &Case, events: &[Event], workload: &WorkloadPlan, found: &Findings) -> Findings {
    let mut findings = Findings::default();
    let sends = Sends::of(&workload.options);
    let spans = spans(case, events);
    let held = |from, until| bytes(&spans, sends, from, until);
    let Some(all) = held(Duration::ZERO, workload.duration) else { return findings };
    let capacity = mbps(all, workload.duration);
    findings.metrics.insert(CAPACITY.to_owned(), capacity);
    let steps = u32::try_from(workload.duration.as_nanos() / STEP.as_nanos()).unwrap_or(u32::MAX);
    let values = (0..steps).filter_map(|step| Some(mbps(held(STEP * step, STEP * (step + 1))?, STEP))).collect();
    findings.lines.push(Line { name: CAPACITY.to_owned(), link: None, step_s: STEP.as_secs_f64(), values });
    let figure = |name: &str| found.metrics.get(name).copied();
    let is_bulk = BULK.contains(&workload.kind.as_str()) && !workload.options.contains_key("bytes");
    let brought = match (is_bulk, figure(LOAD)) {
        (_, Some(load)) => Some(load + figure(GOODPUT).unwrap_or_default()),
        (true, None) => figure(GOODPUT),
        (false, None) => None,
    };
    let share = brought.map(|brought| PERCENT * brought / capacity);
    findings.metrics.extend(share.map(|share| (SHARE.to_owned(), share)));
    findings
}

/// Step 1: in order, the first from the start on.
fn spans<'a>(case: &'a Case, events: &'a [Event]) -> Vec<Span<'a>> {
    let begins = |plan: &'a LinkPlan| {
        let ways = [&plan.up, &plan.down].map(|way| (way.clone(), Duration::ZERO));
        (plan.name.as_str(), Now { is_there: !case.absent.contains(&plan.name), ways })
    };
    let mut spans = vec![(Duration::ZERO, case.links.iter().map(begins).collect::<BTreeMap<_, _>>())];
    for event in events {
        let mut next = spans.last().map(|(_, links)| links.clone()).unwrap_or_default();
        happen(&mut next, event);
        spans.push((event.at, next));
    }
    spans
}

fn happen(links: &mut BTreeMap<&str, Now>, event: &Event) {
    let mut set = |name: &str, is_there| {
        if let Some(now) = links.get_mut(name) {
            now.is_there = is_there;
        }
    };
    match &event.what {
        Happening::Cut | Happening::BlackHole => set(&event.link, false),
        Happening::Restore => set(&event.link, true),
        Happening::Handover { to } => {
            set(&event.link, false);
            set(to, true);
        }
        Happening::Change { up, down } => {
            let Some(now) = links.get_mut(event.link.as_str()) else { return };
            for (figures, (way, since)) in [up, down].into_iter().zip(&mut now.ways) {
                figures.apply(way);
                if figures.trace.is_some() {
                    *since = event.at;
                }
            }
        }
        Happening::Address | Happening::NatRebind => {}
    }
}

/// Step 2: between two times; none where that has no bound.
fn bytes(spans: &[Span<'_>], sends: Sends, from: Duration, until: Duration) -> Option<u64> {
    let mut sum = 0;
    for (place, (begin, links)) in spans.iter().enumerate() {
        let end = spans.get(place + 1).map_or(until, |(next, _)| until.min(*next));
        let begin = from.max(*begin);
        if begin >= end {
            continue;
        }
        for now in links.values().filter(|now| now.is_there) {
            for way in sends.ways() {
                sum += of_way(&now.ways[way], begin, end)?;
            }
        }
    }
    Some(sum)
}

fn of_way((way, since): &(Direction, Duration), begin: Duration, end: Duration) -> Option<u64> {
    match (&way.trace, way.rate) {
        (Some(trace), _) => Some(trace.bytes_between(begin - *since, end - *since)),
        (None, rate) => rate.map(|rate| rate.bytes_in(end - begin)),
    }
}
