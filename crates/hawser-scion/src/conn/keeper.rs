//! The thread that looks paths up ahead of their expiry, so that nobody who sends has to wait.
//!
//! 1. It starts with the first flow whose paths were looked up.
//! 2. [`tend`]: flows that are due get an answer, or are told that there was none; better paths get another chance.
//! 3. It sleeps until the next is due, or a path died.
//! 4. It ends with the socket, at the latest when the look-up under way is over.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::port::{Port, chance};
use super::way::Now;

/// The longest sleep: the wall's clock may be set.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// Wakes and ends the thread. Begins without one. For several threads.
#[derive(Debug, Default)]
pub(super) struct Keeper {
    state: Mutex<State>,
    wakes: Condvar,
}

#[derive(Debug, Default)]
struct State {
    runs: bool,
    woken: bool,
    ends: bool,
}

impl Keeper {
    /// Step 1: starts the thread, unless it runs.
    pub(super) fn start(self: &Arc<Keeper>, port: Weak<Port>) -> io::Result<()> {
        let mut state = self.lock();
        if !state.runs {
            let keeper = Arc::clone(self);
            thread::Builder::new().name("scion-paths".to_owned()).spawn(move || keeper.run(&port))?;
            state.runs = true;
        }
        drop(state);
        self.wake();
        Ok(())
    }

    /// Has it look at once.
    pub(super) fn wake(&self) {
        self.lock().woken = true;
        self.wakes.notify_one();
    }

    /// Step 4.
    pub(super) fn end(&self) {
        self.lock().ends = true;
        self.wakes.notify_one();
    }

    fn run(&self, port: &Weak<Port>) {
        while let Some(sleep) = port.upgrade().map(|port| tend(&port)) {
            let state = self.lock();
            let waits = |state: &mut State| !state.woken && !state.ends;
            let waited = self.wakes.wait_timeout_while(state, sleep, waits);
            let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if state.ends {
                return;
            }
            state.woken = false;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Step 2; returns how long nothing is due.
fn tend(port: &Port) -> Duration {
    let mut answers = BTreeMap::new();
    let flows = port.flows.all();
    for flow in &flows {
        let (ask_at, better_at) = flow.due();
        let around = port.around();
        if ask_at.is_some_and(|at| at <= around.now.wall) {
            flow.ask();
            let isd_as = flow.destination.isd_as;
            let answer = answers.entry(isd_as).or_insert_with(|| {
                port.paths.paths(isd_as).map_err(|error| match error.source() {
                    Some(source) => format!("{error}: {source}"),
                    None => error.to_string(),
                })
            });
            match answer {
                Ok(known) => flow.answered(port.around(), known.clone(), chance()),
                Err(reason) => flow.failed(port.around(), reason.clone()),
            }
        } else if better_at.is_some_and(|at| at <= around.now.mono) {
            flow.reconsider(around);
        }
    }
    let now = Now::read();
    let sleeps = flows.iter().flat_map(|flow| {
        let (ask_at, better_at) = flow.due();
        let until = |at: Instant| at.saturating_duration_since(now.mono);
        [ask_at.map(|at| at.duration_since(now.wall).unwrap_or_default()), better_at.map(until)]
    });
    sleeps.flatten().min().unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP)
}
