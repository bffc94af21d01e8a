//! What the links carried, as their interfaces count it.
//!
//! 1. While the workload runs, a thread reads every link's counters ten times a second from its start on, and what
//!    programs have cost, once the workload's first seconds are over that shall not count.
//! 2. What a link delivered in each step is its line, for either direction; its part of all that was delivered its
//!    share; the mean of what it delivered in the workload's directions a figure of its own.
//! 3. After events: how long it takes until each link carries what it did before; what it was handed in the seconds
//!    before the first event and before the end.
//! 4. What both ends handed to the links, over what the application got, is the overhead.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hawser_wire::traffic::Towards;
use hawser_wire::{Counters, Moment, Way};

use super::programs::Meter;
use crate::experiment::{Findings, Line};
use crate::scenario::Event;
use crate::stage::StageLink;
use crate::workload::{BOTH, Ways, When, millis};

/// From one look to the next. Source: Barreira's testbed, which read interface counters this often.
const STEP: Duration = Duration::from_millis(500);
/// From one look to the next, where a recovery is told; a whole number of these is a step.
const GLANCE: Duration = Duration::from_millis(100);
const GLANCES: usize = 5;
/// Glances before the first event that tell what a link carried before.
const BEFORE: usize = 20;
/// Glances that tell what a link is handed before the first event, and before the end. Source: docs/scenarios.md.
const WATCHED: usize = 30;
/// It carries that again once half a second has this part of it. Source: docs/scenarios.md, `links_recovery_ms`.
const BACK: f64 = 0.9;
/// A whole in percent.
pub(super) const PERCENT: f64 = 100.0;
/// The workload's own figure.
pub(super) const GOODPUT: &str = "goodput_mbps";
/// The same of a load beside it.
pub(super) const LOAD: &str = "load_mbps";
/// Bits in a byte, and in a megabit.
const BYTE_BITS: f64 = 8.0;
const MEGA: f64 = 1e6;

/// A link's counters at a moment: from the local end, and to it.
type Look = [Counters; 2];

/// What the links carried over time. Plain data.
#[derive(Clone, Debug, Default)]
pub struct Carried {
    /// What the links are called.
    names: Vec<String>,
    /// At the start, and ten times a second: of each link.
    glances: Vec<Vec<Look>>,
    /// At the end, within the last step.
    last: Vec<Look>,
    /// From the start to the end.
    pub time: Duration,
    /// What programs cost.
    pub costs: Meter,
}

/// Step 1: does the work while the counters are read, or until the work is done.
pub fn watched<T>(links: &[StageLink], meter: Meter, when: When, work: impl FnOnce() -> T) -> (T, Carried) {
    let read = || links.iter().map(|link| Way::BOTH.map(|way| link.link.counters(way))).collect();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let looking = scope.spawn(|| look(&read, meter, when, &is_done));
        let done = work();
        is_done.store(true, Ordering::Release);
        let carried = looking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (done, Carried { names: links.iter().map(|link| link.name.clone()).collect(), ..carried })
    })
}

fn look(read: &dyn Fn() -> Vec<Look>, mut meter: Meter, when: When, is_done: &AtomicBool) -> Carried {
    let When { start, duration, after } = when;
    start.sleep_until();
    let mut glances = vec![read()];
    let end = start + duration;
    let mut next = start + GLANCE;
    while next <= end && !is_done.load(Ordering::Acquire) {
        next.sleep_until();
        glances.push(read());
        if next >= start + after {
            meter.begin();
        }
        next = next + GLANCE;
    }
    if !is_done.load(Ordering::Acquire) {
        end.sleep_until();
    }
    let names = Vec::new();
    Carried { names, glances, last: read(), time: Moment::now() - start, costs: meter.finish() }
}

/// Bytes delivered.
fn delivered(look: &Look, ways: &[Towards]) -> u64 {
    ways.iter().map(|&way| look[way as usize].bytes_out).sum()
}

/// Step 2; queues are of the time after the workload's first seconds.
pub fn carried(carried: &Carried, ways: Ways, after: Duration) -> Findings {
    let mut findings = Findings::default();
    let mean = |bytes: u64| (!carried.time.is_zero()).then(|| mbps(bytes, carried.time));
    let own = |link: usize| carried.between(link, |look| delivered(look, BOTH));
    let total: u64 = (0..carried.names.len()).map(own).sum();
    let steps: Vec<_> = carried.glances.iter().step_by(GLANCES).collect();
    for (link, name) in carried.names.iter().enumerate() {
        for (of, way) in [("link_up_mbps", Towards::Server), ("link_down_mbps", Towards::Client)] {
            let bytes = |pair: &[&Vec<Look>]| delivered(&pair[1][link], &[way]) - delivered(&pair[0][link], &[way]);
            let values = steps.windows(2).map(|pair| mbps(bytes(pair), STEP)).collect();
            let link = Some(name.clone());
            findings.lines.push(Line { name: of.to_owned(), link, step_s: STEP.as_secs_f64(), values });
        }
        if total > 0 {
            findings.put(format!("share_{name}"), own(link) as f64 / total as f64);
        }
        let brought = carried.between(link, |look| delivered(look, ways));
        findings.put_some(&format!("link_{name}_mbps"), mean(brought));
        if let Some(first) = carried.glances.get(place(after)) {
            let waited = |way: usize| carried.last[link][way].queue_delay_mean_since(&first[link][way]);
            let most = ways.iter().map(|&way| waited(way as usize)).max().unwrap_or_default();
            findings.put(format!("queue_{name}_ms"), millis(most));
        }
    }
    findings.put_some("wire_mbps", mean(carried.sent()));
    findings
}

/// Step 3: packets a second that were handed to each link, the busier way, and the bytes of one in the mean; in the
/// seconds before the first event, and in those before the end.
pub fn handed(carried: &Carried, events: &[Event]) -> Findings {
    let mut findings = Findings::default();
    let Some(first) = events.first() else { return findings };
    for (word, end) in [("before", place(first.at)), ("last", carried.glances.len().saturating_sub(1))] {
        let Some(begin) = end.checked_sub(WATCHED).filter(|_| end < carried.glances.len()) else { continue };
        let seconds = GLANCE.as_secs_f64() * WATCHED as f64;
        for (link, name) in carried.names.iter().enumerate() {
            let (before, after) = (&carried.glances[begin][link], &carried.glances[end][link]);
            let packets = |way: usize| (after[way].packets_in - before[way].packets_in) as f64;
            let bytes = |way: usize| (after[way].bytes_in - before[way].bytes_in) as f64 / packets(way).max(1.0);
            findings.put(format!("{word}_{name}_packets_per_s"), packets(0).max(packets(1)) / seconds);
            findings.put(format!("{word}_{name}_packet_bytes"), bytes(0).max(bytes(1)));
        }
    }
    findings
}

/// Among glances.
fn place(time: Duration) -> usize {
    usize::try_from(time.as_millis() / GLANCE.as_millis()).unwrap_or(usize::MAX)
}

/// Step 4, where the workload has a goodput.
pub fn overhead(carried: &Carried, workload: &Findings) -> Option<f64> {
    let got = application_bytes(workload, carried.time, Duration::ZERO)?;
    Some((carried.sent() as f64 / got - 1.0) * PERCENT)
}

/// What the application got from some time on, and the load beside it: goodput over time, or where there is none its
/// mean.
pub fn application_bytes(workload: &Findings, time: Duration, after: Duration) -> Option<f64> {
    let of = |name: &str| match workload.lines.iter().find(|line| line.name == name && line.link.is_none()) {
        Some(line) => Some(line.from(after).iter().sum::<f64>() * line.step_s),
        None => workload.metrics.get(name).map(|mean| mean * time.saturating_sub(after).as_secs_f64()),
    };
    let megabits = of(GOODPUT).unwrap_or_default() + of(LOAD).unwrap_or_default();
    (megabits > 0.0).then_some(megabits * MEGA / BYTE_BITS)
}

/// Step 3, where events happened after links had carried something, in milliseconds. Of links that do not come back it
/// is the rest of the run.
pub fn links_recovery(carried: &Carried, events: &[Event], ways: Ways) -> Option<f64> {
    let (first, from, count) = (place(events.first()?.at), place(events.last()?.at), carried.glances.len());
    if first < BEFORE || from + GLANCES >= count {
        return None;
    }
    let bytes = |link: usize, begin: usize, end: usize| {
        (delivered(&carried.glances[end][link], ways) - delivered(&carried.glances[begin][link], ways)) as f64
    };
    let part = BACK * GLANCES as f64 / BEFORE as f64;
    let is_back = |at: usize| {
        (0..carried.glances[0].len())
            .all(|link| bytes(link, at, at + GLANCES) >= part * bytes(link, first - BEFORE, first))
    };
    let back = (from..count - GLANCES).find(|&at| is_back(at)).unwrap_or(count - 1);
    let steps = u32::try_from(back - from).unwrap_or(u32::MAX);
    Some(millis(GLANCE * steps))
}

impl Carried {
    /// What a link counted in all.
    fn between(&self, link: usize, count: impl Fn(&Look) -> u64) -> u64 {
        let first = self.glances.first().and_then(|look| look.get(link)).map_or(0, &count);
        self.last.get(link).map_or(0, &count).saturating_sub(first)
    }

    /// Bytes handed to all links, both ways together.
    fn sent(&self) -> u64 {
        (0..self.last.len()).map(|link| self.between(link, |look| look[0].bytes_in + look[1].bytes_in)).sum()
    }
}

pub(super) fn mbps(bytes: u64, time: Duration) -> f64 {
    bytes as f64 * BYTE_BITS / MEGA / time.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::experiment::tests::event;
    use crate::scenario::{Happening, TunnelEnd};
    use crate::workload::{DOWN, ways};

    fn of(sent: u64, up: u64, down: u64) -> Look {
        let way = |bytes_in, bytes_out| Counters { bytes_in, bytes_out, ..Counters::default() };
        [way(sent, up), way(0, down)]
    }

    /// A second and a half over two links: the first carries three times what the second does.
    fn two_links() -> Carried {
        let steps = [
            vec![of(1000, 500, 500), of(0, 0, 0)],
            vec![of(126_000, 500, 125_500), of(0, 0, 0)],
            vec![of(251_000, 500, 250_500), of(62_500, 62_500, 0)],
        ];
        Carried {
            names: vec!["wifi".to_owned(), "eth".to_owned()],
            glances: steps.into_iter().flat_map(|step| std::iter::repeat_n(step, GLANCES)).collect(),
            last: vec![of(376_000, 500, 375_500), of(125_000, 125_000, 0)],
            time: Duration::from_millis(1500),
            costs: Meter::default(),
        }
    }

    #[test]
    fn each_link_has_a_line_for_either_direction_and_a_share() {
        let findings = carried(&two_links(), BOTH, Duration::ZERO);
        let lines = findings.lines.iter().map(|line| (&*line.name, line.link.as_deref(), &*line.values));
        let expected: [(&str, Option<&str>, &[f64]); 4] = [
            ("link_up_mbps", Some("wifi"), &[0.0, 0.0]),
            ("link_down_mbps", Some("wifi"), &[2.0, 2.0]),
            ("link_up_mbps", Some("eth"), &[0.0, 1.0]),
            ("link_down_mbps", Some("eth"), &[0.0, 0.0]),
        ];
        assert!(lines.eq(expected), "{findings:?}");
        assert_eq!((findings.metrics["share_wifi"], findings.metrics["share_eth"]), (0.75, 0.25));
        let nothing = Carried { names: vec!["wifi".to_owned()], ..Carried::default() };
        let nothing = carried(&nothing, BOTH, Duration::ZERO);
        assert!(nothing.metrics.is_empty(), "nothing has no shares");
        assert!((findings.metrics["wire_mbps"] - 500_000.0 * 8.0 / 1.5e6).abs() < 1e-9, "{findings:?}");
    }

    #[test]
    fn a_links_mean_is_of_the_directions_that_the_workload_has() {
        let table = [("up", 0.0, 125_000.0), ("down", 375_000.0, 0.0), ("both", 375_000.0, 125_000.0)];
        for (direction, wifi, eth) in table {
            let options = toml::Table::from_iter([("direction".to_owned(), toml::Value::from(direction))]);
            let metrics = carried(&two_links(), ways(&options), Duration::ZERO).metrics;
            let mbps = |bytes: f64| bytes * 8.0 / 1e6 / 1.5;
            assert!((metrics["link_wifi_mbps"] - mbps(wifi)).abs() < 1e-9, "{direction}: {metrics:?}");
            assert!((metrics["link_eth_mbps"] - mbps(eth)).abs() < 1e-9, "{direction}: {metrics:?}");
        }
        assert_eq!(ways(&toml::Table::new()), BOTH);
    }

    /// What a link delivers in each glance of 5 s.
    type Rates = fn(usize) -> u64;

    /// The links' recovery from events at 2 and 3 s.
    fn recovery(links: [Rates; 2]) -> Option<f64> {
        let total = |rate: Rates, glances: usize| of(0, 0, (0..glances).map(rate).sum());
        let carried = Carried {
            glances: (0..=50).map(|at| links.map(|rate| total(rate, at)).to_vec()).collect(),
            ..Carried::default()
        };
        let end = TunnelEnd::Remote;
        let events = [event(2000, Happening::Stop(end)), event(3000, Happening::Continue(end))];
        links_recovery(&carried, &events, DOWN).map(f64::round)
    }

    #[test]
    fn links_have_recovered_once_each_carries_what_it_did() {
        let table: [(&str, [Rates; 2], Option<f64>); 4] = [
            ("at once", [|_| 100, |_| 50], Some(0.0)),
            ("one a second later", [|at| if (20..40).contains(&at) { 0 } else { 100 }, |_| 50], Some(1000.0)),
            ("nine tenths do", [|at| if at < 20 { 100 } else { 90 }, |_| 50], Some(0.0)),
            ("one never", [|_| 100, |at| if at < 20 { 50 } else { 40 }], Some(2000.0)),
        ];
        for (name, links, expected) in table {
            assert_eq!(recovery(links), expected, "{name}");
        }
        assert_eq!(links_recovery(&Carried::default(), &[], DOWN), None);
    }

    #[test]
    fn what_a_link_is_handed_is_told_of_the_seconds_before_events_and_before_the_end() {
        // Ten small packets a second until 4 s, then a hundred full ones.
        let look = |at: u64| {
            let (small, full) = (at.min(40), at.saturating_sub(40) * 10);
            let way = Counters { packets_in: small + full, bytes_in: small * 60 + full * 1500, ..Counters::default() };
            vec![[way, Counters::default()]]
        };
        let names = vec!["spare".to_owned()];
        let carried = Carried { names, glances: (0..=80).map(look).collect(), ..Carried::default() };
        let metrics = handed(&carried, &[event(4000, Happening::Cut)]).metrics;
        let expected = [
            ("before_spare_packets_per_s", 10.0),
            ("before_spare_packet_bytes", 60.0),
            ("last_spare_packets_per_s", 100.0),
            ("last_spare_packet_bytes", 1500.0),
        ];
        for (name, value) in expected {
            assert!((metrics[name] - value).abs() < 1e-9, "{name}: {metrics:?}");
        }
        assert!(handed(&carried, &[]).metrics.is_empty());
    }

    #[test]
    fn overhead_is_what_was_sent_over_what_was_got() {
        let line = |values: &[f64]| Line { name: GOODPUT.to_owned(), link: None, step_s: 0.5, values: values.to_vec() };
        let by_line = Findings { lines: vec![line(&[2.0, 2.0, 2.0])], ..Findings::default() };
        let overhead_of = |workload: &Findings| overhead(&two_links(), workload);
        let percent = overhead_of(&by_line).expect("it has a goodput");
        assert!((percent - (500_000.0 / 375_000.0 - 1.0) * 100.0).abs() < 1e-9, "{percent}");
        assert_eq!(overhead_of(&Findings::named([(GOODPUT, 2.0)])), Some(percent));
        assert_eq!(overhead_of(&Findings::default()), None);
        assert_eq!(overhead_of(&Findings { lines: vec![line(&[0.0])], ..Findings::default() }), None, "got nothing");
    }

    #[test]
    fn counters_are_read_ten_times_a_second_until_the_work_is_done() {
        let count = Mutex::new(0);
        let read = || {
            let mut count = count.lock().expect("nobody panics");
            *count += 1;
            vec![of(*count, 0, 0)]
        };
        let not_done = AtomicBool::new(false);
        let when = |ms| When { start: Moment::now(), duration: Duration::from_millis(ms), after: Duration::ZERO };
        let carried = look(&read, Meter::of(&[]), when(1200), &not_done);
        assert_eq!(carried.glances.len(), 13);
        assert!(carried.time >= Duration::from_millis(1200), "{:?}", carried.time);
        assert_eq!(carried.sent(), 13);
        let done = AtomicBool::new(true);
        let carried = look(&read, Meter::of(&[]), when(60_000), &done);
        assert_eq!(carried.glances.len(), 1);
    }
}
