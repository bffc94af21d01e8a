//! What a process has cost: processor time, context switches and resident memory, from /proc.

use std::fs;
use std::io;
use std::time::Duration;

use crate::error::WireError;

/// Fields 14 and 15 of /proc/PID/stat, counted from the field after the name (the third). Source: proc_pid_stat(5).
const USER_TIME: usize = 14 - 3;
const SYSTEM_TIME: usize = 15 - 3;
/// What /proc/PID/status counts memory in. Source: proc_pid_status(5).
const KIBIBYTE: u64 = 1024;

/// What a process has cost up to a moment. Plain data; subtract the times and switches of two looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Processor time of all its threads, in user and kernel, ended ones included; exact to a clock tick (10 ms).
    pub cpu: Duration,
    /// The part of it in user space.
    pub user: Duration,
    /// The part of it in the kernel.
    pub system: Duration,
    /// What its threads that run still have run, to the nanosecond; nothing where the kernel does not tell.
    pub ran: Duration,
    /// How often its threads, those that run still, have left the processor, by their own will or not.
    pub switches: u64,
    /// Resident memory now, in bytes (VmRSS).
    pub resident: u64,
    /// The most it ever was, in bytes (VmHWM).
    pub resident_most: u64,
}

impl ProcessUsage {
    /// Looks at a process.
    ///
    /// # Errors
    /// Where there is none of this id, or it is a zombie.
    pub fn of(pid: u32) -> Result<Self, WireError> {
        let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}"));
        let look = || -> io::Result<Self> {
            let (stat, status) = (read("stat")?, read("status")?);
            let usage = parse(&stat, &status, ticks_per_second());
            let usage: Self = usage.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
            let threads: Vec<_> = fs::read_dir(format!("/proc/{pid}/task"))?.flatten().collect();
            // A thread that ends meanwhile has no files any more.
            let told = |file| threads.iter().filter_map(move |one| fs::read_to_string(one.path().join(file)).ok());
            let switches = told("status").map(|status| switches(&status)).sum();
            let ran = told("schedstat").map(|schedstat| ran(&schedstat)).sum();
            Ok(Self { switches, ran, ..usage })
        };
        look().map_err(|error| WireError::system(format!("look at process {pid}"), error))
    }
}

fn parse(stat: &str, status: &str, ticks_per_second: u64) -> Option<ProcessUsage> {
    // The name stands in parentheses and may contain anything, parentheses too.
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let time = |field: usize| {
        let ticks: u64 = fields.get(field)?.parse().ok()?;
        Some(Duration::from_nanos(ticks * (crate::clock::SECOND_NS / ticks_per_second)))
    };
    let (user, system) = (time(USER_TIME)?, time(SYSTEM_TIME)?);
    let memory = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
        Some(kibibytes * KIBIBYTE)
    };
    Some(ProcessUsage {
        cpu: user + system,
        user,
        system,
        ran: Duration::ZERO,
        switches: 0,
        resident: memory("VmRSS:")?,
        resident_most: memory("VmHWM:")?,
    })
}

/// A thread's switches, voluntary and not. Source: proc_pid_status(5).
fn switches(status: &str) -> u64 {
    let counts = status.lines().filter_map(|line| line.split_once("ctxt_switches:")?.1.trim().parse::<u64>().ok());
    counts.sum()
}

/// What a thread has run. Source: the kernel's documentation, scheduler/sched-stats.
fn ran(schedstat: &str) -> Duration {
    Duration::from_nanos(schedstat.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}

fn ticks_per_second() -> u64 {
    // SAFETY: sysconf takes a number and touches no memory of ours.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).unwrap_or(100).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let stat = "42 (a) (b c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 4 0 1000";
        let status = "Name:\ta\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        let usage = parse(stat, status, 100).expect("parses");
        assert_eq!(usage.cpu, Duration::from_secs(2));
        assert_eq!((usage.user, usage.system), (Duration::from_millis(1500), Duration::from_millis(500)));
        assert_eq!((usage.resident, usage.resident_most), (1 << 20, 2 << 20));
        assert_eq!(parse(stat, "Name:\ta\n", 100), None, "a zombie has no memory");
        assert_eq!(parse("42 (a) Z 1", status, 100), None, "cut short");
    }

    #[test]
    fn switches_of_both_kinds_count() {
        assert_eq!(switches("Name:\ta\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t7\n"), 157);
        assert_eq!(switches("Name:\ta\n"), 0);
        assert_eq!((ran("1500 30 2\n"), ran("")), (Duration::from_nanos(1500), Duration::ZERO));
    }

    #[test]
    fn this_process_has_cost_something() {
        let usage = ProcessUsage::of(std::process::id()).expect("it runs");
        assert!(usage.resident > 0 && usage.resident_most >= usage.resident);
        std::thread::sleep(Duration::from_millis(1));
        let later = ProcessUsage::of(std::process::id()).expect("it runs");
        assert!(later.switches > 0 && later.cpu >= usage.cpu, "{later:?}");
        assert!(ProcessUsage::of(0).is_err());
    }
}
