//! What FRR does, without it: the members' routes to the home are looked at as zebra does, and the router's follows
//! the one with the least metric, as BGP would have it by MED. A machine that is silent is found out as BFD does, by
//! three intervals of 30 ms.
//!
//! 1. A thread in each member reads its main table every few milliseconds. 2. What changed moves the router's route.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use hawser_wire::Namespace;

use crate::world::{HOME, MEMBERS, UPWARD, run};

/// From one look at a table to the next: zebra is told by netlink.
const LOOK: Duration = Duration::from_millis(2);
/// BFD's detection time (RFC 5880 section 6.8.4): 3 x 30 ms.
const DETECTION: Duration = Duration::from_millis(90);
/// The home's address as /proc/net/route has it.
const HOME_HEX: &str = "087100CB";

/// The threads; ended and joined on drop. One owner.
pub struct Watcher {
    over: Arc<AtomicBool>,
    silent: Vec<Arc<Mutex<Option<Instant>>>>,
    threads: Vec<JoinHandle<()>>,
}

/// Each member's metric, and the member that the router's route leads to.
#[derive(Default)]
struct Table {
    metrics: [Option<u32>; MEMBERS.len()],
    leads_to: Option<usize>,
}

impl Watcher {
    pub fn start(members: &[Namespace], router: &Namespace) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let silent: Vec<Arc<Mutex<Option<Instant>>>> = members.iter().map(|_| Arc::default()).collect();
        let table = Arc::new(Mutex::new(Table::default()));
        let watched = |at: usize| {
            let (over, silent, table, router) = (over.clone(), silent[at].clone(), table.clone(), router.clone());
            let watch = move || {
                while !over.load(Ordering::Relaxed) {
                    let since = *silent.lock().expect("nobody panicked");
                    let found = since.is_some_and(|since| since.elapsed() >= DETECTION);
                    let metric = if found { None } else { metric() };
                    table.lock().expect("nobody panicked").learn(at, metric, &router);
                    sleep(LOOK);
                }
            };
            members[at].spawn_thread("watcher", watch).expect("a thread")
        };
        let threads = (0..members.len()).map(watched).collect();
        Self { over, silent, threads }
    }

    /// A member's machine says nothing from now on; or no more.
    pub fn silence(&self, member: usize, silent: bool) {
        *self.silent[member].lock().expect("nobody panicked") = silent.then(Instant::now);
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // One that panicked said so, and the test waited in vain.
            let _ = thread.join();
        }
    }
}

/// Step 1: the least metric of a route to the home, in the calling thread's namespace.
fn metric() -> Option<u32> {
    let text = std::fs::read_to_string("/proc/thread-self/net/route").expect("it can be read");
    let columns = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    columns.filter(|columns| columns.get(1) == Some(&HOME_HEX)).filter_map(|columns| columns.get(6)?.parse().ok()).min()
}

impl Table {
    /// Step 2.
    fn learn(&mut self, member: usize, metric: Option<u32>, router: &Namespace) {
        self.metrics[member] = metric;
        let best = (0..MEMBERS.len()).filter(|at| self.metrics[*at].is_some()).min_by_key(|at| self.metrics[*at]);
        if best == self.leads_to {
            return;
        }
        let words = match best {
            Some(member) => format!("route replace {HOME}/32 via {}", UPWARD[member][0]),
            None => format!("route del {HOME}/32"),
        };
        run(router.command("ip").args(words.split(' ')));
        self.leads_to = best;
    }
}
