//! Measuring tests take turns, and are given a second chance, which `.ci/tests` counts.

use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, MutexGuard};

/// Held by a test that measures time: two at once would measure each other.
static TURN: Mutex<()> = Mutex::new(());

/// A machine that others share may stand still for a moment; it is asked again, this many times in all.
const ATTEMPTS: usize = 3;

/// Waits for this test's turn and measures: a pause of the machine's fails one attempt, a fault of ours fails each.
pub fn measured(test: impl Fn()) {
    let _turn = turn();
    for _ in 1..ATTEMPTS {
        if panic::catch_unwind(AssertUnwindSafe(&test)).is_ok() {
            return;
        }
        say_again();
    }
    test();
}

/// Waits for this test's turn; it ends with what is given.
pub fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Says so past the harness, which keeps what a test said that passes in the end.
pub fn say_again() {
    let thread = std::thread::current();
    let _ = writeln!(std::io::stderr(), "measured again: {}", thread.name().unwrap_or("a test"));
}
