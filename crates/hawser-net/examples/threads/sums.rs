//! What a direction costs.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// What a direction cost, in nanoseconds, and for how many packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    pub packets: f64,
    pub wall: f64,
    /// Processor time of all threads.
    pub processor: f64,
    /// Processor time of AEAD, where it was timed.
    aead: f64,
}

impl Sums {
    pub fn wall(&self) -> f64 {
        self.wall / self.packets
    }

    pub fn processor(&self) -> f64 {
        self.processor / self.packets
    }

    pub fn parallel(&self) -> f64 {
        self.aead / self.packets
    }

    pub fn serial(&self) -> f64 {
        (self.processor - self.aead) / self.packets
    }

    /// Does that, and counts what it cost.
    pub fn time<R>(&mut self, work: impl FnOnce(&mut f64) -> R) -> R {
        let (wall, processor) = (Instant::now(), spent());
        let result = work(&mut self.aead);
        self.processor += (spent() - processor).as_nanos() as f64;
        self.wall += wall.elapsed().as_nanos() as f64;
        result
    }
}

/// Processor time of all threads so far.
fn spent() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), spent.tv_nsec as u32)
}

/// Adds the processor time of that.
pub fn timed(sum: &mut f64, work: impl FnOnce()) {
    let before = spent();
    work();
    *sum += (spent() - before).as_nanos() as f64;
}
