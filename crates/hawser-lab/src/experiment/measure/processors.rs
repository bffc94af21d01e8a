//! Processor time of the whole machine, and of processes that take no part: on a shared machine their work is not the
//! tunnel's.
//!
//! Kernel threads are no strangers: they forward for us. A process that ended counts through its parent, where that
//! waited for it. One that ended otherwise takes its past with it, and the sum may fall: then nothing is known, and
//! nothing is taken off.

use std::fs;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Columns of the line `cpu` that count; steal and guests are not ours. Source: proc_stat(5).
const COLUMNS: usize = 7;
/// The parent of all kernel threads. Source: kernel/kthread.c, kthreadd.
const KTHREADD: u32 = 2;
/// Fields of /proc/PID/stat, counted from the field after the name (the third): parent, and user and system time, own
/// and of children that ended. Source: proc_pid_stat(5).
const PARENT: usize = 4 - 3;
const TIMES: RangeInclusive<usize> = 14 - 3..=17 - 3;
/// /proc counts in hundredths of a second (USER_HZ, 100 on every Linux architecture in use), and past 2^32 of them.
const TICK_MS: u64 = 10;

/// What all processors have worked since boot, kernel and interrupts included; none where the kernel does not tell.
pub(super) fn busy() -> Option<Duration> {
    work(&fs::read_to_string("/proc/stat").ok()?)
}

fn work(stat: &str) -> Option<Duration> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks = line.split_whitespace().take(COLUMNS).map(|word| word.parse::<u64>().ok());
    let ticks = ticks.collect::<Option<Vec<_>>>()?;
    let [user, nice, system, _idle, _iowait, irq, softirq] = ticks[..] else { return None };
    Some(time(user + nice + system + irq + softirq))
}

/// What all processes have worked so far, but for those of these ids, this one and the kernel's; none as with the
/// other.
pub(super) fn others(ours: &[u32]) -> Option<Duration> {
    let mut total = Duration::ZERO;
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let id = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        let Some(id) = id.filter(|id| *id != std::process::id() && !ours.contains(id)) else { continue };
        // A process that has just ended cannot be read.
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        total += strangers(id, &stat).unwrap_or_default();
    }
    Some(total)
}

/// What a process that is none of the kernel's has cost.
fn strangers(id: u32, stat: &str) -> Option<Duration> {
    // The name stands in parentheses and may contain anything, parentheses too.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let parent: u32 = fields.get(PARENT)?.parse().ok()?;
    if id == KTHREADD || parent == KTHREADD {
        return None;
    }
    let ticks = fields.get(TIMES)?.iter().map(|field| field.parse::<u64>().ok()).sum::<Option<u64>>()?;
    Some(time(ticks))
}

fn time(ticks: u64) -> Duration {
    Duration::from_millis(ticks * TICK_MS)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn idle_time_is_no_work() {
        let text = "cpu  100 10 50 9000 400 5 35 7 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        let long = text.replace("9000", "5000000000").replace("cpu  100", "cpu  5000000100");
        let table = [
            (text, Some(Duration::from_secs(2))),
            (long.as_str(), Some(Duration::from_secs(50_000_002))),
            ("cpu  1 2 3\n", None),
            ("", None),
        ];
        for (stat, expected) in table {
            assert_eq!(work(stat), expected, "{stat}");
        }
    }

    #[test]
    fn ended_children_count_and_kernel_threads_do_not() {
        let stat = |parent| format!("42 (a) (b c) S {parent} 2 3 4 5 6 7 8 9 10 150 50 20 30 20 0 4 0 1000");
        assert_eq!(strangers(42, &stat(7)), Some(Duration::from_millis(2500)));
        let long = stat(7).replace(" 150 ", " 5000000150 ");
        assert_eq!(strangers(42, &long), Some(Duration::from_millis(50_000_002_500)));
        assert_eq!(strangers(42, &stat(2)), None, "a kernel thread");
        assert_eq!(strangers(2, &stat(0)), None, "their parent");
        assert_eq!(strangers(42, ""), None, "it has ended");
    }

    #[test]
    fn a_busy_stranger_shows() {
        let before = others(&[]).expect("reads");
        let mut child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("a shell");
        let late = Instant::now() + Duration::from_secs(20);
        let mut shows = false;
        while !shows && Instant::now() < late {
            std::thread::sleep(Duration::from_millis(50));
            // Read in this order, what others do meanwhile cannot make the first the greater.
            let (with, without) = (others(&[]).expect("reads"), others(&[child.id()]).expect("reads"));
            shows = with > without && with > before;
        }
        child.kill().expect("it is ours to end");
        child.wait().expect("it ends");
        assert!(shows);
    }
}
