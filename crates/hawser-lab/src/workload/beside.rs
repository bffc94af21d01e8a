//! What goes on beside a workload: a load, a ping, other work on the processors; and its figures without its first
//! seconds.
//!
//! 1. The load, a bulk stream, is prepared with the workload. They and the ping start in the same moment; loops on each
//!    processor that never wait begin before, with an ordinary priority, as any program's, and end with them, whatever
//!    came of them.
//! 2. `after`: the workload's goodput from that time on, of both directions and of each where both are busy; and the
//!    least that five seconds of it had.
//! 3. The load's goodput gets a name of its own; what the ping found joins the workload's figures.

use std::hint;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use super::bulk::Bulk;
use super::ping::Ping;
use super::{Findings, Ground, LabError, Moment, Options, WAYS, Workload};
use crate::experiment::Line;

/// Lines, and what their later parts are called.
const LATER: [(&str, &str); 3] =
    [(GOODPUT, "later_mbps"), ("goodput_up_mbps", "later_up_mbps"), ("goodput_down_mbps", "later_down_mbps")];
/// What `least_stretch_mbps` is of: longer than an inner stream waits for one retransmission.
const STRETCH: Duration = Duration::from_secs(5);
/// The load's own figure and line, and what it is called beside another's.
const GOODPUT: &str = "goodput_mbps";
const LOAD: &str = "load_mbps";
/// Between two looks at whether a loop is to end.
const TURNS: u32 = 10_000;

/// A workload, and what its options ask for beside it. Starts idle; one owner.
pub(super) struct Accompanied {
    workload: Box<dyn Workload>,
    after: Option<Duration>,
    load: Option<Bulk>,
    ping: Option<Ping>,
    is_busy: bool,
}

impl Accompanied {
    pub(super) fn parse(
        workload: Box<dyn Workload>,
        after: Option<Duration>,
        options: &mut Options,
    ) -> Result<Self, LabError> {
        let ways = WAYS.map(|(name, ways)| (name, Some(ways)));
        let load = options.choice("load", &ways, None)?.map(Bulk::plain);
        let ping = Ping::beside(after, options)?;
        Ok(Self { workload, after, load, ping, is_busy: options.yes("busy", false)? })
    }
}

impl Workload for Accompanied {
    fn prepare(&mut self, ground: &Ground) -> Result<(), LabError> {
        if let Some(load) = &mut self.load {
            load.prepare(ground)?;
        }
        self.workload.prepare(ground)
    }

    fn run(&mut self, ground: &Ground, start: Moment) -> Result<Findings, LabError> {
        let uncounted = |error| LabError::system("count processors", error);
        let loops = if self.is_busy { thread::available_parallelism().map_err(uncounted)?.get() } else { 0 };
        let (workload, load, ping) = (&mut self.workload, self.load.as_mut(), self.ping.as_mut());
        let together = || {
            thread::scope(|scope| {
                let load = load.map(|load| scope.spawn(move || load.run(ground, start)));
                let ping = ping.map(|ping| scope.spawn(move || ping.run(ground, start)));
                (workload.run(ground, start), load.map(join), ping.map(join))
            })
        };
        let (found, load, ping) = busily(loops, together);
        let (ping, load, mut found) = (ping.transpose()?, load.transpose()?, found?);
        if let Some(after) = self.after {
            put_later(&mut found, after);
        }
        found.add(load.map(renamed).unwrap_or_default());
        found.add(ping.unwrap_or_default());
        Ok(found)
    }
}

fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Does it beside this many loops, which end with it.
fn busily<T>(loops: usize, what: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _over = Over(&is_over);
        for _ in 0..loops {
            scope.spawn(|| work(&is_over));
        }
        what()
    })
}

/// Ends the loops as it goes. After a panic, too: the scope waits for them.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn work(is_over: &AtomicBool) {
    let mut sum = 0_u32;
    while !is_over.load(Ordering::Acquire) {
        for turn in 0..TURNS {
            sum = hint::black_box(sum.wrapping_add(turn));
        }
    }
}

/// Step 2.
fn put_later(found: &mut Findings, after: Duration) {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let mut later = Vec::new();
    for line in found.lines.iter().filter(|line| line.link.is_none()) {
        let Some((name, told)) = LATER.iter().find(|(name, _)| *name == line.name) else { continue };
        let values = line.from(after);
        if !values.is_empty() {
            later.push(((*told).to_owned(), mean(values)));
        }
        let steps = (1..).take_while(|&steps| line.step_s * f64::from(steps) <= STRETCH.as_secs_f64()).count();
        let stretches = values.chunks_exact(steps.max(1)).map(mean).reduce(f64::min);
        let stretch = stretches.filter(|_| *name == GOODPUT);
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
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn loops_end_with_what_they_run_beside_also_where_that_panics() {
        let (told, ends) = mpsc::channel();
        let panics = || std::panic::catch_unwind(|| busily::<()>(2, || panic!("of this test"))).is_err();
        thread::spawn(move || told.send(panics()));
        assert_eq!(ends.recv_timeout(Duration::from_secs(20)), Ok(true));
        assert_eq!(busily(2, || 7), 7);
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
