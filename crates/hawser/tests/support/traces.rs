//! What a program that uses the lab leaves in the system while it runs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// From one look to the next.
const GLANCE: Duration = Duration::from_millis(20);

/// Names in a folder that contain a text.
fn names(folder: &Path, text: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| name.contains(text)).collect()
}

/// What a program that uses the lab has made and what lives by it: namespaces, folders (with configurations and
/// journals), portals.
#[derive(Debug, Default, PartialEq)]
pub struct Traces {
    pub namespaces: BTreeSet<String>,
    pub folders: BTreeSet<String>,
    pub portals: BTreeSet<String>,
}

impl Traces {
    pub fn of(pid: u32) -> Self {
        let folders = names(&std::env::temp_dir(), &format!("hawser-lab-{pid}-"));
        let is_portal = |process: &String| {
            let command_line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&command_line).contains(&format!("hawser-lab-{pid}-"))
        };
        let portals = names(Path::new("/proc"), "").into_iter().filter(is_portal).collect();
        Self { namespaces: names(Path::new("/run/netns"), &format!("-{pid}-")), folders, portals }
    }
}

/// Waits until something holds; false where it does not in time.
pub fn wait(time: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let late = Instant::now() + time;
    while !holds() {
        if Instant::now() > late {
            return false;
        }
        thread::sleep(GLANCE);
    }
    true
}
