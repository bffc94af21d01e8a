//! Who owns a journal: a process (id and start time), since which boot, in which network namespace.

use std::{fs, io};

use serde::{Deserialize, Serialize};

pub use super::netns::Netns;

/// Changes with every boot, before which process ids and namespaces mean nothing (random(4)).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// Place of the start time among the fields after the command name in /proc/PID/stat: field 22, and that name is field
/// 2 (proc_pid_stat(5)).
const START_TIME_AFTER_NAME: usize = 19;

/// A process that has or had a journal. There is no default.
/// Plain data; a process id alone would name a stranger once it is used again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    /// Process id, as this process sees it.
    pub pid: u32,
    /// Start of the process, in clock ticks since boot.
    pub started: u64,
    /// The boot's id.
    pub boot: String,
    /// The network namespace.
    pub netns: Netns,
}

impl Owner {
    /// This process, in the calling thread's network namespace.
    pub fn this_process() -> io::Result<Self> {
        let pid = std::process::id();
        let started = start_time(pid)?.ok_or_else(|| io::Error::other("/proc does not show this process"))?;
        Ok(Self { pid, started, boot: fs::read_to_string(BOOT_ID)?.trim().to_owned(), netns: Netns::of_this_thread()? })
    }

    /// True if that very process still runs, as far as this process can see.
    pub fn is_alive(&self, now: &Self) -> io::Result<bool> {
        Ok(self.boot == now.boot && start_time(self.pid)? == Some(self.started))
    }
}

/// A process's start time, or none if there is no such process or only its zombie.
fn start_time(pid: u32) -> io::Result<Option<u64>> {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => parse_stat(&stat).ok_or_else(|| io::Error::other(format!("read /proc/{pid}/stat: unknown format"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The start time out of a stat line; the inner none is a zombie, which sets and undoes nothing any more.
fn parse_stat(stat: &str) -> Option<Option<u64>> {
    // The command name stands in brackets and may itself hold brackets and spaces.
    let (_, fields) = stat.rsplit_once(") ")?;
    let state = fields.split(' ').next()?;
    let started = fields.split(' ').nth(START_TIME_AFTER_NAME)?.trim().parse().ok()?;
    Some((!matches!(state, "Z" | "X")).then_some(started))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_lines() {
        let line = |name: &str, state: &str| {
            format!("42 ({name}) {state} 1 42 42 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 98765 0 0\n")
        };
        for (stat, want) in [
            (line("hawser", "S"), Some(Some(98765))),
            (line("a) R 1 (b", "R"), Some(Some(98765))),
            (line("hawser", "Z"), Some(None)),
            ("42 (hawser) S 1 2".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(parse_stat(&stat), want, "{stat:?}");
        }
    }

    #[test]
    fn this_process_is_alive_and_a_former_one_with_its_number_is_not() {
        let now = Owner::this_process().unwrap();
        assert!(now.is_alive(&now).unwrap());
        let former = Owner { started: now.started - 1, ..now.clone() };
        assert!(!former.is_alive(&now).unwrap());
        let other_boot = Owner { boot: "before".into(), ..now.clone() };
        assert!(!other_boot.is_alive(&now).unwrap());
    }
}
