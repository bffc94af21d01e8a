//! What processes that take no part have cost: on a shared machine their work is not the tunnel's.
//!
//! Kernel threads are no strangers: they forward for us. A process that ended counts through its parent, where that
//! waited for it. One that ended otherwise takes its past with it, and the sum may fall: then nothing is known, and
//! nothing is taken off.

use std::fs;
use std::time::Duration;

use crate::error::LabError;

/// The parent of all kernel threads. Source: kernel/kthread.c, kthreadd.
const KTHREADD: u32 = 2;
/// Fields of /proc/PID/stat, counted from the field after the name (the third): parent, and user and system time, own
/// and of children that ended. Source: proc_pid_stat(5).
const PARENT: usize = 4 - 3;
const TIMES: std::ops::RangeInclusive<usize> = 14 - 3..=17 - 3;
/// /proc counts in hundredths of a second (USER_HZ, 100 on every Linux architecture in use).
const TICK: Duration = Duration::from_millis(10);

/// Processor time of all processes so far, but for those of these ids, this one and the kernel's.
pub(crate) fn so_far(ours: &[u32]) -> Result<Duration, LabError> {
    let entries = fs::read_dir("/proc").map_err(|error| LabError::system("read /proc", error))?;
    let mut total = Duration::ZERO;
    for entry in entries.flatten() {
        let id = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        let Some(id) = id.filter(|id| *id != std::process::id() && !ours.contains(id)) else { continue };
        // A process that has just ended cannot be read.
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        total += strangers(id, &stat).unwrap_or_default();
    }
    Ok(total)
}

/// What a process that is none of the kernel's has cost.
fn strangers(id: u32, stat: &str) -> Option<Duration> {
    // The name stands in parentheses and may contain anything, parentheses too.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let parent: u32 = fields.get(PARENT)?.parse().ok()?;
    if id == KTHREADD || parent == KTHREADD {
        return None;
    }
    let ticks = fields.get(TIMES)?.iter().map(|field| field.parse::<u32>().ok()).sum::<Option<u32>>()?;
    Some(TICK * ticks)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn ended_children_count_and_kernel_threads_do_not() {
        let stat = |parent| format!("42 (a) (b c) S {parent} 2 3 4 5 6 7 8 9 10 150 50 20 30 20 0 4 0 1000");
        assert_eq!(strangers(42, &stat(7)), Some(Duration::from_millis(2500)));
        assert_eq!(strangers(42, &stat(2)), None, "a kernel thread");
        assert_eq!(strangers(2, &stat(0)), None, "their parent");
        assert_eq!(strangers(42, ""), None, "it has ended");
    }

    #[test]
    fn a_busy_stranger_shows() {
        let before = so_far(&[]).expect("reads");
        let mut child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("a shell");
        let late = Instant::now() + Duration::from_secs(20);
        let all = || so_far(&[]).expect("reads");
        let but_it = || so_far(&[child.id()]).expect("reads");
        let mut shows = false;
        while !shows && Instant::now() < late {
            std::thread::sleep(Duration::from_millis(50));
            // Read in this order, what others do meanwhile cannot make the first the greater.
            let (with, without) = (all(), but_it());
            shows = with > without && with > before;
        }
        child.kill().expect("it is ours to end");
        child.wait().expect("it ends");
        assert!(shows);
    }
}
