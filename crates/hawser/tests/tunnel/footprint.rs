//! All that a portal may change in the system of a namespace, as `ip`, `nft` and sysctls show it: to be compared before
//! and after, but for counters, lifetimes, indexes and handles.
//!
//! 1. [`Footprint::of`] asks. 2. [`Footprint::assert_same`] asks again until nothing differs, and else tells what does.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use hawser_wire::Namespace;
use serde_json::Value;

/// The kernel takes back addresses and routes of an interface that goes at its own pace, on a loaded machine too.
const PATIENCE: Duration = Duration::from_secs(5);
const GLANCE: Duration = Duration::from_millis(50);
/// What is asked: a program and its arguments.
const QUESTIONS: [(&str, &str); 6] = [
    ("ip", "-j -d addr"),
    ("ip", "-j -4 route show table all"),
    ("ip", "-j -6 route show table all"),
    ("ip", "-j -4 rule"),
    ("ip", "-j -6 rule"),
    ("nft", "-j list ruleset"),
];
/// What differs from one look to the next though nobody did anything, or is of no consequence: counters, lifetimes,
/// indexes, handles; and the queue that an interface gets when it is first set up, which stays.
const IGNORED: [&str; 19] = [
    "ifindex",
    "link_index",
    "link_netnsid",
    "handle",
    "metainfo",
    "packets",
    "bytes",
    "expires",
    "used",
    "age",
    "users",
    "valid_life_time",
    "preferred_life_time",
    "qdisc",
    "cache",
    "cstamp",
    "tstamp",
    "error",
    "operstate",
];
/// A flag that the kernel takes away from a new interface at its own pace, as it does with `operstate`.
const IGNORED_FLAG: &str = "NO-CARRIER";
/// Where the sysctls are that a portal could touch.
const SYSCTLS: [&str; 3] = ["/proc/sys/net/ipv4/conf", "/proc/sys/net/ipv6/conf", "/proc/sys/net/ipv4"];

/// What there is in a namespace: each question, or sysctl, with its answer. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Footprint(BTreeMap<String, Vec<String>>);

impl Footprint {
    /// Looks at a namespace.
    pub fn of(namespace: &Namespace) -> Self {
        let mut found = BTreeMap::new();
        for (program, arguments) in QUESTIONS {
            let output = namespace.command(program).args(arguments.split(' ')).output();
            let output = output.unwrap_or_else(|error| panic!("run {program}: {error}"));
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{program} {arguments}: {said}");
            let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            found.insert(format!("{program} {arguments}"), lines(answer));
        }
        let sysctls = namespace.run(|| {
            let mut sysctls = BTreeMap::new();
            SYSCTLS.iter().for_each(|directory| read_all(Path::new(directory), &mut sysctls));
            sysctls
        });
        found.extend(sysctls.expect("the namespace can be entered"));
        Self(found)
    }

    /// Waits until the namespace is as it was.
    pub fn assert_same(&self, namespace: &Namespace, when: &str) {
        let left = self.left_in(namespace);
        assert!(left.is_none(), "{when} {} is not as it was:{}", namespace.name(), left.unwrap_or_default());
    }

    /// The same, giving what differs in the end.
    pub fn left_in(&self, namespace: &Namespace) -> Option<String> {
        let end = Instant::now() + PATIENCE;
        loop {
            let now = Self::of(namespace);
            if now == *self {
                return None;
            }
            if Instant::now() > end {
                return Some(self.difference(&now));
            }
            sleep(GLANCE);
        }
    }

    /// What is no more (-) and what is new (+).
    fn difference(&self, now: &Self) -> String {
        let none = Vec::new();
        let mut told = String::new();
        for question in self.0.keys().chain(now.0.keys().filter(|key| !self.0.contains_key(*key))) {
            let (was, is) = (self.0.get(question).unwrap_or(&none), now.0.get(question).unwrap_or(&none));
            let lost = was.iter().filter(|line| !is.contains(line)).map(|line| format!("\n  - {line}"));
            let new = is.iter().filter(|line| !was.contains(line)).map(|line| format!("\n  + {line}"));
            let lines: String = lost.chain(new).collect();
            if was != is {
                told += &format!("\n{question}{lines}");
            }
        }
        told
    }
}

/// The objects of an answer, a line each, in the order given: the order of rules matters.
fn lines(answer: Value) -> Vec<String> {
    let objects = match answer {
        Value::Array(objects) => objects,
        Value::Object(mut ruleset) => {
            ruleset.remove("nftables").and_then(|all| all.as_array().cloned()).unwrap_or_default()
        }
        _ => Vec::new(),
    };
    let plain = |mut object: Value| {
        strip(&mut object);
        object
    };
    objects
        .into_iter()
        .map(plain)
        .filter(|object| *object != Value::Object(Default::default()))
        .map(|o| o.to_string())
        .collect()
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !IGNORED.contains(&key.as_str()));
            map.values_mut().for_each(strip);
        }
        Value::Array(items) => {
            items.retain(|item| item != IGNORED_FLAG);
            items.iter_mut().for_each(strip);
        }
        _ => {}
    }
}

/// The sysctls in a directory and those of each interface below; some can only be written.
fn read_all(directory: &Path, found: &mut BTreeMap<String, Vec<String>>) {
    for entry in fs::read_dir(directory).expect("it can be listed").flatten() {
        let path = entry.path();
        if path.is_file() {
            let value = fs::read_to_string(&path).unwrap_or_default();
            found.insert(path.display().to_string(), vec![value.trim().to_owned()]);
        } else if directory.ends_with("conf") {
            read_all(&path, found);
        }
    }
}
