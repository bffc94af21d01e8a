//! What links with a `data_cap` have carried this month, over restarts.
//!
//! 1. [`Usage::load`] reads what was counted before. 2. [`Usage::count`] adds what the packet thread reports of the
//!    paths.
//! 3. [`Usage::is_spent`] says which links may carry no more. 4. [`Usage::save`] writes it down, seldom and atomically:
//!    to another file first, which then takes the place of the old one.
//!
//! A portal that is killed loses what it counted since it wrote last, half a minute at most.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hawser_config::{Link, LinkName};
use hawser_core::endpoint::Snapshot;
use hawser_core::units::PathId;
use serde::{Deserialize, Serialize};

use super::calendar::Date;
use crate::run::plan::SocketPlan;

/// What was counted is written this often.
const SAVE_EVERY: Duration = Duration::from_secs(30);

/// What the state file holds. Empty at first; plain data.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Saved {
    links: BTreeMap<String, Count>,
}

/// One link's month. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Count {
    /// The day on which it began.
    since: Date,
    bytes: u64,
}

/// The counts of all links with a cap. Begins with what the file holds; the control thread owns it.
#[derive(Debug)]
pub struct Usage {
    file: PathBuf,
    saved: Saved,
    /// What each path of each peer had carried when it was last looked at.
    seen: BTreeMap<(usize, PathId), u64>,
    /// What paths have carried so far does not count: no link had a cap then.
    begins: bool,
    changed: bool,
    written: Instant,
    failed: bool,
}

impl Usage {
    /// The counts of the portal whose TUN device has this name.
    pub fn load(folder: &Path, tun: &str) -> Self {
        let file = folder.join(format!("{tun}.usage.json"));
        let saved = match fs::read(&file).map(|bytes| serde_json::from_slice(&bytes)) {
            Ok(Ok(saved)) => saved,
            Ok(Err(error)) => {
                tracing::warn!(file = %file.display(), %error, "data caps: what was counted is not readable, begin at zero");
                Saved::default()
            }
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::warn!(file = %file.display(), %error, "data caps: what was counted is not readable, begin at zero");
                }
                Saved::default()
            }
        };
        Self {
            file,
            saved,
            seen: BTreeMap::new(),
            begins: false,
            changed: false,
            written: Instant::now(),
            failed: false,
        }
    }

    /// The first link with a cap has come: what was carried before it had one does not count.
    pub fn begin(&mut self) {
        self.begins = true;
    }

    /// Adds what paths have carried since the last call to the month of `today`.
    pub fn count(&mut self, today: Date, links: &[Link], plans: &[SocketPlan], core: &Snapshot) {
        for link in links {
            self.begin_month(today, link);
        }
        let mut seen = BTreeMap::new();
        for (peer, session) in core.peers.iter().enumerate() {
            for path in session.iter().flat_map(|session| &session.paths) {
                let fresh = self.fresh((peer, path.id), path.carried.0);
                seen.insert((peer, path.id), path.carried.0);
                let name = plans.iter().find(|plan| plan.id == path.link).map(|plan| plan.name.as_str());
                if let Some(count) = name.and_then(|name| self.saved.links.get_mut(name)).filter(|_| fresh > 0) {
                    count.bytes += fresh;
                    self.changed = true;
                }
            }
        }
        self.seen = seen;
        self.begins = false;
    }

    /// What of all that a path has carried was not counted before.
    fn fresh(&self, path: (usize, PathId), carried: u64) -> u64 {
        // Less than before: a new session has begun, and counts from zero.
        let before = self.seen.get(&path).copied().filter(|before| *before <= carried);
        if self.begins { 0 } else { carried - before.unwrap_or(0) }
    }

    /// A link's month begins on its day. A clock that goes back begins none.
    fn begin_month(&mut self, today: Date, link: &Link) {
        let Some(cap) = link.data_cap else { return };
        let since = today.month_since(cap.reset);
        let count = self.saved.links.entry(link.name.to_string()).or_insert(Count { since, bytes: 0 });
        if count.since < since {
            *count = Count { since, bytes: 0 };
            self.changed = true;
        }
    }

    /// Bytes that the link has carried this month.
    pub fn used(&self, link: &LinkName) -> u64 {
        self.saved.links.get(link.as_str()).map_or(0, |count| count.bytes)
    }

    /// Whether the link has carried all that it may.
    pub fn is_spent(&self, link: &Link) -> bool {
        link.data_cap.is_some_and(|cap| self.used(&link.name) >= cap.volume)
    }

    /// Writes it down when that is due.
    pub fn save_if_due(&mut self) {
        if self.changed && self.written.elapsed() >= SAVE_EVERY {
            self.save();
        }
    }

    /// Writes it down, if there is anything new.
    pub fn save(&mut self) {
        if !self.changed {
            return;
        }
        self.written = Instant::now();
        match self.write() {
            Ok(()) => (self.changed, self.failed) = (false, false),
            // Once: the next try comes soon.
            Err(error) if !self.failed => {
                self.failed = true;
                tracing::warn!(file = %self.file.display(), %error, "data caps: counts not written, a restart forgets them");
            }
            Err(_) => {}
        }
    }

    fn write(&self) -> io::Result<()> {
        if let Some(folder) = self.file.parent() {
            fs::create_dir_all(folder)?;
        }
        let fresh = self.file.with_extension("json.new");
        let mut out = File::create(&fresh)?;
        out.write_all(&serde_json::to_vec(&self.saved)?)?;
        out.sync_all()?;
        fs::rename(&fresh, &self.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hawser_config::{DataCap, Transport};

    const CAP: u64 = 5_000_000;

    fn lte() -> Link {
        Link {
            name: LinkName::parse("lte").expect("a name"),
            interface: None,
            address: None,
            transport: Transport::Udp,
            tls: None,
            scion: None,
            exclude: Vec::new(),
            metric: 0,
            weight: 1,
            max_rate: None,
            data_cap: Some(DataCap { volume: CAP, reset: 10 }),
        }
    }

    fn day(text: &str) -> Date {
        serde_json::from_value(text.into()).expect("a date")
    }

    /// Counts as if the link's paths had carried so much.
    fn carry(usage: &mut Usage, today: &str, bytes: u64) {
        usage.begin_month(day(today), &lte());
        let count = usage.saved.links.get_mut("lte").expect("it has a cap");
        count.bytes += bytes;
        usage.changed = true;
    }

    #[test]
    fn what_was_counted_outlives_a_restart_and_ends_with_the_month() {
        let folder = tempfile::tempdir().expect("a folder");
        let load = || Usage::load(folder.path(), "hawser0");
        let mut usage = load();
        carry(&mut usage, "2026-03-10", CAP - 1);
        assert!(!usage.is_spent(&lte()));
        usage.save();
        let mut usage = load();
        assert_eq!(usage.used(&lte().name), CAP - 1);
        carry(&mut usage, "2026-04-09", 1);
        assert!(usage.is_spent(&lte()), "the last day");
        usage.save();
        let mut usage = load();
        carry(&mut usage, "2026-04-09", 0);
        assert!(usage.is_spent(&lte()), "after a restart");
        carry(&mut usage, "2026-04-10", 7);
        assert_eq!(usage.used(&lte().name), 7, "the first day");
        carry(&mut usage, "2026-03-31", 1);
        assert_eq!(usage.used(&lte().name), 8, "a clock that went back");
        assert!(folder.path().read_dir().expect("readable").count() == 1, "nothing is left beside the file");
    }

    #[test]
    fn each_byte_of_a_path_counts_once_and_a_new_session_begins_at_zero() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut usage = Usage::load(folder.path(), "hawser0");
        usage.begin();
        for (carried, fresh) in [(5_000, 0), (6_000, 1_000), (6_000, 0), (300, 300), (400, 100)] {
            let path = (1, PathId(2));
            assert_eq!(usage.fresh(path, carried), fresh, "a path that has carried {carried}");
            usage.seen.insert(path, carried);
            usage.begins = false;
        }
    }

    #[test]
    fn a_broken_file_begins_at_zero_and_nothing_is_written_without_need() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("hawser0.usage.json");
        fs::write(&file, "{\"links\":{\"lte\":{\"since\":\"2026-02-3").expect("writable");
        let mut usage = Usage::load(folder.path(), "hawser0");
        assert_eq!(usage.used(&lte().name), 0);
        usage.save();
        assert!(fs::read_to_string(&file).expect("readable").ends_with("02-3"), "nothing new, nothing written");
    }
}
