//! Whether the packet thread keeps up, and what datagrams cost while it does not.
//!
//! 1. The thread says when it has taken all there was ([`Load::on_empty`]). 2. Every window: had it never, and did the
//!    kernel drop datagrams meanwhile ([`judge`])? Drops alone say nothing: the kernel counts wrong checksums with
//!    them, which any stranger can send; nor does the clock, for the thread may wait for a processor in poll(2).
//! 3. While the core wants to know, the thread's processor time is read after each run of datagrams ([`Meter`]).
//! 4. For the status: how long the thread had a processor, or waited for one ([`Account`]).

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use hawser_core::endpoint::{self, Endpoint};
use hawser_core::units::Time;

use super::Parts;
use crate::run::clock::Clock;

/// How often that is looked at. What is lost with the rest of a window is less than a round trip of most paths; and of
/// 1,400-byte datagrams at 1 Gbit/s the receive buffer holds some 25 ms.
const JUDGE_EVERY: Duration = Duration::from_millis(10);

/// What was known last. Nothing at first; the packet thread owns it.
#[derive(Debug, Default)]
pub struct Load {
    judged: Time,
    drops: u64,
    emptied: bool,
    measures: bool,
}

impl Load {
    /// Step 1: no socket holds more.
    pub fn on_empty(&mut self) {
        self.emptied = true;
    }
}

/// Step 2.
pub fn judge(parts: &mut Parts, now: Time) {
    let Parts { endpoint: core, sockets, load, .. } = parts;
    if now.since(load.judged) < JUDGE_EVERY {
        return;
    }
    let drops = sockets.iter().map(|socket| socket.kernel_drops()).sum();
    load.measures = core.handle_load(match load.emptied {
        true => endpoint::Load::KeepsUp,
        false if drops > load.drops => endpoint::Load::Overflow,
        false => endpoint::Load::Standing,
    });
    (load.judged, load.drops, load.emptied) = (now, drops, false);
}

/// Step 3: reads what the thread spends, if that is wanted. Begins with the present moment.
pub struct Meter(Option<Duration>);

impl Meter {
    pub fn start(load: &Load, clock: Clock) -> Meter {
        Meter(load.measures.then(|| clock.spent()))
    }

    /// What was spent since the last call is charged to whom the last datagrams came from.
    pub fn charge(&mut self, clock: Clock, endpoint: &mut Endpoint) {
        if let Some(before) = &mut self.0 {
            let spent = clock.spent();
            endpoint.charge(spent.saturating_sub(*before));
            *before = spent;
        }
    }
}

/// Step 4. What the kernel keeps of the thread: nanoseconds on a processor, nanoseconds that it waited for one, and how
/// often (Documentation/scheduler/sched-stats.rst). Of nobody at first; the packet thread owns its own.
#[derive(Debug, Default)]
pub struct Account(Option<File>);

/// Longest text of it, in bytes: three numbers.
const ACCOUNT_MAX: usize = 64;

impl Account {
    /// Of the calling thread. A kernel without it tells the processor time alone.
    pub fn of_this_thread() -> Self {
        Self(File::open("/proc/thread-self/schedstat").ok())
    }

    /// For how long altogether the thread had a processor, or waited for one; to be asked by the thread itself.
    pub fn busy(&self, clock: Clock) -> Duration {
        clock.spent() + self.0.as_ref().map_or(Duration::ZERO, |file| nanos(file, 1..2))
    }
}

/// The same of another thread, by its account; up to a tick late.
pub fn busy(account: &File) -> Duration {
    nanos(account, 0..2)
}

/// The sum of these numbers of an account.
fn nanos(account: &File, which: Range<usize>) -> Duration {
    let mut text = [0; ACCOUNT_MAX];
    let read = account.read_at(&mut text, 0).unwrap_or(0);
    let numbers = std::str::from_utf8(&text[..read]).unwrap_or_default().split_whitespace();
    let wanted = numbers.skip(which.start).take(which.len());
    Duration::from_nanos(wanted.filter_map(|number| number.parse::<u64>().ok()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_never_rests_is_busy_all_the_time_and_one_that_sleeps_is_not() {
        let busy = |work: fn(Duration)| {
            let (account, spell) = (Account::of_this_thread(), Duration::from_millis(60));
            let (start, before) = (std::time::Instant::now(), account.busy(Clock));
            work(spell);
            (account.busy(Clock) - before).as_secs_f64() / start.elapsed().as_secs_f64()
        };
        let spin = |spell| {
            let start = std::time::Instant::now();
            while start.elapsed() < spell {}
        };
        assert!(busy(spin) > 0.9, "the kernel counts what this thread waits for a processor, too");
        assert!(busy(std::thread::sleep) < 0.5);
    }
}
