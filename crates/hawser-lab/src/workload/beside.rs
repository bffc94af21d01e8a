//! What goes on beside a workload: a load, a ping, other work on the processors; and its figures without its first
//! seconds.
//!
//! 1. The load, a bulk stream, is prepared with the workload. They and the ping start in the same moment; loops on each
//!    processor that never wait begin before, with an ordinary priority, as any program's, and end with them, whatever
//!    came of them.
//! 2. `after`: the workload's goodput from that time on, of both directions and of each where both are busy; and the
//!    least that five seconds of it had.
//! 3. The load's goodput gets a name of its own; what the ping found joins the workload's figures.

use std::time::Duration;
use std::{hint, io, thread};

use hawser_wire::{Namespace, traffic};
use toml::Value;

use super::bulk::Bulk;
use super::{Findings, Ground, LabError, Options, Ready, WAYS, When, Workload};
use crate::background::{Background, Stop};
use crate::experiment::Line;

/// What `least_stretch_mbps` is of: longer than an inner stream waits for one retransmission.
const STRETCH: Duration = Duration::from_secs(5);
/// The load's own figure and line, and what it is called beside another's.
const GOODPUT: &str = "goodput_mbps";
const LOAD: &str = "load_mbps";
/// Between two looks at whether a loop is to end.
const TURNS: u32 = 10_000;
/// From one echo to the next: 240 in 12 s, and 0.013 Mbit/s each way.
const INTERVAL: Duration = Duration::from_millis(50);

/// A workload with what its options ask for beside it.
pub(super) fn accompanied(workload: Workload, options: &mut Options) -> Result<Workload, LabError> {
    let ways = WAYS.map(|(name, ways)| (name, Some(ways)));
    let load = options.choice("load", &ways, None)?.map(Bulk::plain);
    let (interval, is_busy) = (interval(options)?, options.yes("busy", false)?);
    Ok(Box::new(move |ground| {
        let load = load.map(|load| load.prepare(ground)).transpose()?;
        let workload = workload(ground)?;
        let ping = interval.map(|interval| pings(ground, interval));
        Ok(Box::new(move |when: When| {
            let loops = if is_busy { loops(ground.client)? } else { Vec::new() };
            let (found, beside) = thread::scope(|scope| {
                let beside = [ping, load].map(|ready| ready.map(|run| scope.spawn(move || run(when))));
                (workload(when), beside.map(|thread| thread.map(|thread| thread.join().expect("it runs to its end"))))
            });
            drop(loops);
            let [ping, load] = beside.map(Option::transpose);
            let (ping, load, mut found) = (ping?, load?, found?);
            if !when.after.is_zero() {
                put_later(&mut found, when.after);
            }
            found.add(load.map(renamed).unwrap_or_default());
            found.add(ping.unwrap_or_default());
            Ok(found)
        }))
    }))
}

/// A ping alone, for the latency of an idle network.
pub(super) fn ping(options: &mut Options) -> Result<Workload, LabError> {
    let interval = options.time("interval")?.unwrap_or(INTERVAL);
    Ok(Box::new(move |ground| Ok(pings(ground, interval))))
}

/// The interval of the ping that another workload's option asks for: true, or an interval.
fn interval(options: &mut Options) -> Result<Option<Duration>, LabError> {
    match options.take("ping") {
        None | Some(Value::Boolean(false)) => Ok(None),
        Some(Value::Boolean(true)) => Ok(Some(INTERVAL)),
        Some(value) => options.time_of("ping", &value).map(Some),
    }
}

fn pings(ground: Ground<'_>, interval: Duration) -> Ready<'_> {
    let (from, destination) = (ground.client.clone(), ground.ends.server);
    Box::new(move |when: When| {
        let ping = traffic::Ping { from, destination, interval, duration: when.duration };
        let mut found = Findings::default();
        when.start.sleep_until();
        found.put_ping(&ping.run()?, when);
        Ok(found)
    })
}

/// A loop on each processor, until it is dropped, which a panic does, too.
fn loops(host: &Namespace) -> Result<Vec<Background<()>>, LabError> {
    let uncounted = |error| LabError::system("count processors", error);
    let processors = thread::available_parallelism().map_err(uncounted)?.get();
    (0..processors).map(|_| Background::start(host, "busy", work)).collect()
}

fn work(mut stop: Stop) -> io::Result<()> {
    let mut sum = 0_u32;
    while !stop.is_told() {
        for turn in 0..TURNS {
            sum = hint::black_box(sum.wrapping_add(turn));
        }
    }
    Ok(())
}

/// Step 2.
fn put_later(found: &mut Findings, after: Duration) {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let mut later = Vec::new();
    for line in found.lines.iter().filter(|line| line.link.is_none()) {
        let Some(rest @ ("mbps" | "up_mbps" | "down_mbps")) = line.name.strip_prefix("goodput_") else { continue };
        let values = line.from(after);
        if !values.is_empty() {
            later.push((format!("later_{rest}"), mean(values)));
        }
        let steps = (STRETCH.as_secs_f64() / line.step_s) as usize;
        let stretches = values.chunks_exact(steps).map(mean).reduce(f64::min);
        let stretch = stretches.filter(|_| line.name == GOODPUT);
        later.extend(stretch.map(|least| ("least_stretch_mbps".to_owned(), least)));
    }
    found.metrics.extend(later);
}

/// Step 3.
fn renamed(loaded: Findings) -> Findings {
    let metrics = loaded.metrics.get(GOODPUT).map(|&goodput| (LOAD.to_owned(), goodput)).into_iter().collect();
    let lines = loaded.lines.into_iter().filter(|line| line.name == GOODPUT);
    let lines = lines.map(|line| Line { name: LOAD.to_owned(), ..line }).collect();
    Findings { metrics, lines, ..Findings::default() }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn loops_end_with_what_they_run_beside_also_where_that_panics() {
        let host = Namespace::new("busy").expect("this test needs root: it makes a network namespace");
        let loops = loops(&host).expect("processors");
        let panics = AssertUnwindSafe(|| panic_beside(loops));
        let (told, ends) = mpsc::channel();
        thread::spawn(move || told.send(catch_unwind(panics).is_err()));
        assert_eq!(ends.recv_timeout(Duration::from_secs(20)), Ok(true));
    }

    fn panic_beside(_: Vec<Background<()>>) {
        panic!("of this test");
    }

    #[test]
    fn what_comes_later_is_the_mean_from_there_on_and_its_worst_five_seconds() {
        // 2 s without anything, 5 s of 10, 5 s of 4, a second more.
        let values = [(0.0, 4), (10.0, 10), (4.0, 10), (1.0, 2)];
        let values = values.iter().flat_map(|&(rate, steps)| std::iter::repeat_n(rate, steps)).collect();
        let line = Line { name: "goodput_mbps".to_owned(), link: None, step_s: 0.5, values };
        let up = Line { name: "goodput_up_mbps".to_owned(), ..line.clone() };
        let of_link = Line { link: Some("wifi".to_owned()), values: vec![99.0; 30], ..line.clone() };
        let mut found = Findings { lines: vec![line, up, of_link], ..Findings::default() };
        put_later(&mut found, Duration::from_secs(2));
        let mean = (100.0 + 40.0 + 2.0) / 22.0;
        for (name, expected) in [("later_mbps", mean), ("later_up_mbps", mean), ("least_stretch_mbps", 4.0)] {
            assert!((found.metrics[name] - expected).abs() < 1e-9, "{name}: {found:?}");
        }
        assert!(!found.metrics.contains_key("later_down_mbps"));
        let mut short = Findings::default();
        put_later(&mut short, Duration::from_secs(2));
        assert!(short.metrics.is_empty());
    }
}
