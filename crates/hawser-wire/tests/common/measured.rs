//! Measuring tests take turns, and are given a second chance, which `.ci/tests` counts.

use std::any::Any;
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
        match panic::catch_unwind(AssertUnwindSafe(&test)) {
            Ok(()) => return,
            Err(said) => say_again(&text(said.as_ref())),
        }
    }
    test();
}

/// Waits for this test's turn; it ends with what is given.
pub fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Says so and why past the harness, which keeps what a test said that passes in the end.
pub fn say_again(why: &str) {
    let thread = std::thread::current();
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    let _ = writeln!(std::io::stderr(), "measured again: {} ({why})", thread.name().unwrap_or("a test"));
}

/// What a panic said.
fn text(said: &(dyn Any + Send)) -> String {
    let text = said.downcast_ref::<String>().cloned();
    text.or_else(|| said.downcast_ref::<&str>().map(|&text| text.to_owned())).unwrap_or_default()
}
