//! What portals are and have counted: memory, descriptors, threads, processor time; drops, of which a restart forgets
//! nothing.

use std::collections::BTreeMap;
use std::fs;

use hawser_wire::Namespace;
use serde::Serialize;

use crate::lab::Portal;

/// Linux counts the time of processes in hundredths of a second (USER_HZ).
const TICKS: f64 = 100.0;
/// Columns of /proc/net/dev after the interface's name: what is received has eight.
const SENT_DROPPED: usize = 8 + 3;

/// A portal's process at one moment. Plain data.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Process {
    pub rss_kib: u64,
    /// Of these what no file backs: its heap, its stacks. The rest are the program's own pages, which come as they are
    /// first used and which the kernel takes back.
    pub anonymous_kib: u64,
    pub threads: u64,
    pub descriptors: usize,
    pub cpu_s: f64,
}

impl Process {
    /// None where it has ended.
    pub fn of(pid: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let words: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let ticks = |at: usize| words.get(at)?.parse::<f64>().ok();
        Some(Self {
            rss_kib: number("VmRSS:")?,
            anonymous_kib: number("RssAnon:")?,
            threads: number("Threads:")?,
            descriptors: fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count(),
            cpu_s: (ticks(11)? + ticks(12)?) / TICKS,
        })
    }
}

/// Counters by name, over restarts of what counts. Nothing at first.
#[derive(Debug, Default)]
pub struct Tally {
    before: BTreeMap<String, u64>,
    now: BTreeMap<String, u64>,
    pid: u32,
}

impl Tally {
    /// What the portal, and its interface, has counted; what cannot be asked now keeps its last value.
    pub fn take(&mut self, portal: &Portal, namespace: &Namespace) -> BTreeMap<String, u64> {
        if self.pid != portal.pid() {
            add(&mut self.before, &std::mem::take(&mut self.now));
            self.pid = portal.pid();
        }
        if let Some(status) = portal.status() {
            self.now.extend(status.drops);
        }
        if let Some(dropped) = dropped_by_tun(namespace) {
            self.now.insert("tun_queue_full".into(), dropped);
        }
        let mut all = self.before.clone();
        add(&mut all, &self.now);
        all
    }
}

fn add(to: &mut BTreeMap<String, u64>, counts: &BTreeMap<String, u64>) {
    for (name, count) in counts {
        *to.entry(name.clone()).or_default() += count;
    }
}

/// What grew, and by how much.
pub fn grown(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let by =
        |(name, count): (&String, &u64)| (name.clone(), count - before.get(name).copied().unwrap_or(0).min(*count));
    after.iter().map(by).filter(|(_, count)| *count > 0).collect()
}

/// Packets that the kernel dropped because the portal did not read them.
pub fn dropped_by_tun(namespace: &Namespace) -> Option<u64> {
    let read = || fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let devices = namespace.run(read).expect("the namespace can be entered");
    let line = devices.lines().find_map(|line| line.trim_start().strip_prefix("hawser0:"))?;
    line.split_whitespace().nth(SENT_DROPPED)?.parse().ok()
}
