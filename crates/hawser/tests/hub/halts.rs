//! Whether this machine ran: one that shares its processors may keep them for some tenths of a second, and what people
//! notice then is not of what is tried.
//!
//! A thread on each processor, at real-time priority so that no load of ours looks like a halt, sleeps and looks how
//! much later than asked it woke.

use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{JoinHandle, available_parallelism, spawn};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, gettid, sched_setaffinity};

/// How often each looks.
const LOOK: Duration = Duration::from_millis(5);

/// All of them, from `start` on; each ends when its sender drops. One owner.
pub struct Halts(Vec<(Sender<()>, JoinHandle<Duration>)>);

impl Halts {
    pub fn start() -> Self {
        let processors = available_parallelism().expect("a number").get();
        let watch = |processor| {
            let (goes_on, over) = channel();
            (goes_on, spawn(move || longest(processor, &over)))
        };
        Self((0..processors).map(watch).collect())
    }

    /// The longest halt of a processor.
    pub fn finish(self) -> Duration {
        let end = |(goes_on, thread): (_, JoinHandle<_>)| {
            drop(goes_on);
            thread.join().expect("it looked")
        };
        self.0.into_iter().map(end).max().unwrap_or_default()
    }
}

fn longest(processor: usize, over: &Receiver<()>) -> Duration {
    let mut only = CpuSet::new();
    only.set(processor);
    sched_setaffinity(None, &only).expect("a processor of ours");
    let thread = gettid().as_raw_nonzero().to_string();
    let raised = Command::new("chrt").args(["--fifo", "--pid", "1", &thread]).status().expect("run chrt (util-linux)");
    assert!(raised.success(), "raise the priority of a thread that watches the machine");
    let mut longest = Duration::ZERO;
    loop {
        let asleep = Instant::now();
        if over.recv_timeout(LOOK) != Err(RecvTimeoutError::Timeout) {
            return longest;
        }
        longest = longest.max(asleep.elapsed().saturating_sub(LOOK));
    }
}
