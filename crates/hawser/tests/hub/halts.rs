//! Whether this machine ran: one that shares its processors may keep them for some tenths of a second, and what people
//! notice then is not of what is tried.
//!
//! A thread on each processor, at real-time priority so that no load of ours looks like a halt, sleeps and looks how
//! much later than asked it woke.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, available_parallelism, sleep, spawn};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, gettid, sched_setaffinity};

/// How often each looks.
const LOOK: Duration = Duration::from_millis(5);

/// All of them, from `start` on. One owner.
pub struct Halts {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Duration>>,
}

impl Halts {
    pub fn start() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let processors = available_parallelism().expect("a number").get();
        let watch = |processor| {
            let over = Arc::clone(&over);
            spawn(move || longest(processor, &over))
        };
        let threads = (0..processors).map(watch).collect();
        Self { over, threads }
    }

    /// The longest halt of a processor.
    pub fn finish(self) -> Duration {
        self.over.store(true, Ordering::Relaxed);
        self.threads.into_iter().map(|thread| thread.join().expect("it looked")).max().unwrap_or_default()
    }
}

fn longest(processor: usize, over: &AtomicBool) -> Duration {
    let mut only = CpuSet::new();
    only.set(processor);
    sched_setaffinity(None, &only).expect("a processor of ours");
    let thread = gettid().as_raw_nonzero().to_string();
    let raised = Command::new("chrt").args(["--fifo", "--pid", "1", &thread]).status().expect("run chrt (util-linux)");
    assert!(raised.success(), "raise the priority of a thread that watches the machine");
    let mut longest = Duration::ZERO;
    while !over.load(Ordering::Relaxed) {
        let asleep = Instant::now();
        sleep(LOOK);
        longest = longest.max(asleep.elapsed().saturating_sub(LOOK));
    }
    longest
}
