//! Whether the machine stood still while something was measured.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often it is looked at, and by how much a look may be late on a busy machine that does not stand still.
const LOOK: Duration = Duration::from_millis(20);
const BUSY: Duration = Duration::from_millis(100);

/// Runs it; gives what it gives, and for how long nothing else ran meanwhile.
pub fn watched<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut halted = Duration::ZERO;
            while !over.load(Ordering::Relaxed) {
                let look = Instant::now();
                thread::sleep(LOOK);
                let late = look.elapsed() - LOOK;
                halted += if late > BUSY { late } else { Duration::ZERO };
            }
            halted
        });
        let result = run();
        over.store(true, Ordering::Relaxed);
        (result, watch.join().expect("it only sleeps"))
    })
}
