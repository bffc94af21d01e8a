//! What the links could carry while a workload ran: their rates and recordings, less the time they were away.
//!
//! 1. Every event begins a span; within one, each link has a rate or a part of its recording, or is away.
//! 2. What all links hold, in the directions that the workload sends, is the capacity: over time, and as a mean.
//! 3. What bulk brought, over that, is its share.

use std::collections::BTreeMap;
use std::time::Duration;

use hawser_wire::Direction;

use super::links::{GOODPUT, LOAD, PERCENT, mbps};
use crate::experiment::Findings;
use crate::scenario::figures::lay;
use crate::scenario::{Case, Event, Figure, Happening, LinkPlan, WorkloadPlan};
use crate::workload::{Ways, ways};

/// Steps of the line.
const STEP: Duration = Duration::from_millis(500);
/// Workloads that take what they get.
const BULK: [&str; 3] = ["bulk", "http3", "iperf3"];
/// What is found.
const CAPACITY: &str = "capacity_mbps";
const SHARE: &str = "capacity_percent";

/// A link in a span. Plain data.
#[derive(Clone, Debug)]
struct Now {
    is_there: bool,
    /// Since the last restore.
    has_stalled: bool,
    /// Up and down, and since when their recordings run.
    ways: [(Direction, Duration); 2],
}

/// A span: from when on, and each link's name with what it is. Plain data.
type Span<'a> = (Duration, BTreeMap<&'a str, Now>);

/// Steps 1 to 3; nothing where a link has no bound, or shares its medium with others.
pub fn capacity(case: &Case, events: &[Event], workload: &WorkloadPlan, found: &Findings) -> Findings {
    let mut findings = Findings::default();
    if case.links.iter().any(|link| link.medium.is_some()) {
        return findings;
    }
    let ways = ways(&workload.options);
    let spans = spans(case, events);
    let held = |from, until| bytes(&spans, ways, from, until);
    let Some(all) = held(Duration::ZERO, workload.duration) else { return findings };
    let capacity = mbps(all, workload.duration);
    findings.put(CAPACITY, capacity);
    let steps = u32::try_from(workload.duration.as_nanos() / STEP.as_nanos()).unwrap_or(u32::MAX);
    let values = (0..steps).filter_map(|step| Some(mbps(held(STEP * step, STEP * (step + 1))?, STEP))).collect();
    findings.put_line(CAPACITY, STEP.as_secs_f64(), values);
    let figure = |name: &str| found.metrics.get(name).copied();
    let is_bulk = BULK.contains(&workload.kind.as_str()) && !workload.options.contains_key("bytes");
    let brought = match figure(LOAD) {
        Some(load) => Some(load + figure(GOODPUT).unwrap_or_default()),
        None => figure(GOODPUT).filter(|_| is_bulk),
    };
    findings.put_some(SHARE, brought.filter(|_| capacity > 0.0).map(|brought| PERCENT * brought / capacity));
    findings
}

/// Step 1: in order, the first from the start on.
fn spans<'a>(case: &'a Case, events: &'a [Event]) -> Vec<Span<'a>> {
    let begins = |plan: &'a LinkPlan| {
        let ways = [&plan.up, &plan.down].map(|way| (way.clone(), Duration::ZERO));
        (plan.name.as_str(), Now { is_there: !case.absent.contains(&plan.name), has_stalled: false, ways })
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
        let Some(now) = links.get_mut(name) else { return };
        now.is_there = is_there;
        now.has_stalled |= matches!(event.what, Happening::Stall);
        // After a stall a recording begins anew (`Stage::restore`).
        if is_there && std::mem::take(&mut now.has_stalled) {
            now.ways.iter_mut().for_each(|(_, since)| *since = event.at);
        }
    };
    match &event.what {
        Happening::Cut | Happening::BlackHole | Happening::Stall => set(&event.link, false),
        Happening::Restore => set(&event.link, true),
        Happening::Handover { to } => {
            set(&event.link, false);
            set(to, true);
        }
        Happening::Change { up, down } => {
            let Some(now) = links.get_mut(event.link.as_str()) else { return };
            for (figures, (way, since)) in [up, down].into_iter().zip(&mut now.ways) {
                lay(figures, way);
                if figures.iter().any(|figure| matches!(figure, Figure::Trace(_))) {
                    *since = event.at;
                }
            }
        }
        // Programs' fate is none of the links'.
        _ => {}
    }
}

/// Step 2: between two times; none where that has no bound.
fn bytes(spans: &[Span<'_>], ways: Ways, from: Duration, until: Duration) -> Option<u64> {
    let mut sum = 0;
    for (place, (begin, links)) in spans.iter().enumerate() {
        let end = spans.get(place + 1).map_or(until, |(next, _)| until.min(*next));
        let begin = from.max(*begin);
        if begin >= end {
            continue;
        }
        for now in links.values().filter(|now| now.is_there) {
            for &way in ways {
                sum += of_way(&now.ways[way as usize], begin, end)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    /// A link of 8 and 2 Mbit/s, and one whose way down is 4 Mbit/s for a second and nothing for the next.
    fn scenario(rest: &str) -> Scenario {
        let text = format!(
            "name = \"s\"\n[[network.link]]\nname = \"a\"\ndown = {{ rate = \"8M\" }}\nup = {{ rate = \"2M\" }}\n\
             [[network.link]]\nname = \"b\"\nrate = \"1M\"\n\
             down = {{ trace = {{ file = \"t.csv\", column = \"x\" }} }}\n\
             [[contender]]\nkind = \"tcp\"\n[[workload]]\nkind = \"bulk\"\nduration = \"4s\"\n{rest}"
        );
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("t.csv"), "second,x\n0,4\n1,0\n").expect("it is written");
        Scenario::parse(&text, "s.toml", Some(folder.path())).unwrap_or_else(|error| panic!("{error:#?}\n{text}"))
    }

    fn found(scenario: &Scenario, options: &str, metrics: &[(&str, f64)]) -> Findings {
        let options = toml::from_str(options).expect("TOML");
        let workload = WorkloadPlan { options, ..scenario.workloads[0].clone() };
        let found = Findings::named(metrics.iter().copied());
        capacity(&scenario.cases[0], &scenario.events, &workload, &found)
    }

    fn mbps(rest: &str, direction: &str) -> f64 {
        found(&scenario(rest), &format!("direction = \"{direction}\""), &[]).metrics[CAPACITY]
    }

    #[test]
    fn it_is_what_rates_and_recordings_hold_in_the_directions_that_are_sent() {
        for (direction, expected) in [("down", 8.0 + 2.0), ("up", 2.0 + 1.0), ("both", 13.0)] {
            assert!((mbps("", direction) - expected).abs() < 1e-6, "{direction}");
        }
        let line = &found(&scenario(""), "direction = \"down\"", &[]).lines[0];
        let rounded: Vec<f64> = line.values.iter().map(|value| value.round()).collect();
        assert_eq!((line.name.as_str(), line.step_s), (CAPACITY, 0.5));
        assert_eq!(rounded, [12.0, 12.0, 8.0, 8.0, 12.0, 12.0, 8.0, 8.0]);
    }

    #[test]
    fn links_that_are_away_or_change_count_as_they_are() {
        let event = |at: &str, what: &str| format!("[[event]]\nname = \"{at}\"\nat = \"{at}\"\nlink = \"a\"\n{what}\n");
        let of_b = |events: String| events.replace("link = \"a\"", "link = \"b\"");
        let table = [
            (event("1s", "do = \"cut\""), 8.0 / 4.0 + 2.0),
            (event("1s", "do = \"black-hole\"") + &event("2s", "do = \"restore\""), 8.0 * 0.75 + 2.0),
            (event("2s", "do = \"change\"\ndown = { rate = \"4M\" }"), 6.0 + 2.0),
            (event("1s", "do = \"change\"\ndown = { trace = { file = \"t.csv\", column = \"x\" } }"), 2.0 + 2.0 + 2.0),
            (of_b(event("1s", "do = \"cut\"") + &event("3s", "do = \"restore\"")), 8.0 + 1.0),
            (of_b(event("1s", "do = \"stall\"") + &event("3s", "do = \"restore\"")), 8.0 + 2.0),
            (event("3s", "do = \"handover\"\nto = \"b\"") + "[[case]]\nname = \"A\"\nabsent = [\"b\"]\n", 6.0 + 0.0),
        ];
        for (rest, expected) in table {
            assert!((mbps(&rest, "down") - expected).abs() < 1e-6, "{rest}: {}", mbps(&rest, "down"));
        }
    }

    #[test]
    fn bulk_and_a_load_have_a_share_of_it() {
        let scenario = scenario("");
        let share = |options: &str, metrics: &[(&str, f64)]| {
            found(&scenario, options, metrics).metrics.get(SHARE).map(|share| share.round())
        };
        assert_eq!(share("direction = \"down\"", &[(GOODPUT, 9.0)]), Some(90.0));
        assert_eq!(share("load = \"down\"", &[(GOODPUT, 1.0), (LOAD, 8.0)]), Some(90.0));
        let early = share("direction = \"down\"\nbytes = 1000", &[(GOODPUT, 9.0)]);
        assert_eq!(early, None, "it ends before the time does");
        assert_eq!(share("direction = \"down\"", &[]), None);
    }

    #[test]
    fn a_link_without_a_bound_has_no_capacity() {
        let unbounded = Direction { rate: None, ..Direction::default() };
        let mut scenario = scenario("");
        scenario.cases[0].links[0].down = unbounded;
        assert!(found(&scenario, "direction = \"down\"", &[]).metrics.is_empty());
        assert!(found(&scenario, "direction = \"up\"", &[]).metrics.contains_key(CAPACITY));
        scenario.cases[0].links[1].medium = Some("air".to_owned());
        assert!(found(&scenario, "direction = \"up\"", &[]).metrics.is_empty(), "what each has of a medium is open");
    }
}
