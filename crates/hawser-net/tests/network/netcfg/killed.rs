//! What a kill -9 leaves is cleaned by the next run, and by nobody while the owner lives.

use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::Value;

use hawser_net::netcfg::{Change, JournalError, Mtu, NetConfig, NetConfigError, RouteKind};

use super::lab::{
    assert_restored, config, every_change, in_namespace, index, instance, ip, ip_json, on_runtime, system, veth,
};

/// Where a child finds its journal; set only in a child.
const DIRECTORY: &str = "HAWSER_TEST_JOURNAL";
/// Rounds of a child that nobody kills, of a few milliseconds each: it ends by itself after some seconds.
const ROUNDS: u32 = 5_000;
/// What a child prints once everything is set.
const READY: &str = "everything is set";
/// The test that, executed anew as a child, is the one to be killed.
const CHILD_TEST: &str = "netcfg::killed::kill_9_in_the_middle_is_cleaned_at_the_next_start";

/// Sets everything, says so, and goes on changing things until it is killed.
fn to_be_killed(directory: &Path) {
    on_runtime(async {
        let mut config = config(directory);
        for (change, ..) in every_change("v0") {
            config.apply(change).await.unwrap();
        }
        println!("{READY}");
        std::io::stdout().flush().unwrap();
        let interface = index("v0");
        let address = Change::Address { interface, address: "10.78.0.1/24".parse().unwrap() };
        for round in 0..ROUNDS {
            config.apply(Change::Mtu { interface, mtu: Mtu(1300 + round % 100) }).await.unwrap();
            config.apply(address.clone()).await.unwrap();
            config.undo(&address).await.unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
}

/// A child that has set everything in this namespace, and is still at it; dropped, it is killed.
struct Owner(Child);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn owner(directory: &Path) -> Owner {
    let child = Command::new(env::current_exe().unwrap())
        .args([CHILD_TEST, "--exact", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn();
    let mut owner = Owner(child.unwrap());
    let mut lines = BufReader::new(owner.0.stdout.take().unwrap()).lines();
    let ready = lines.any(|line| line.unwrap().contains(READY));
    assert!(ready, "the child died early");
    owner
}

fn kill_9(owner: Owner) {
    drop(owner);
}

fn journal(directory: &Path) -> PathBuf {
    let netns = fs::read_dir(directory.join("hawser0")).unwrap().next().unwrap().unwrap();
    netns.path().join("journal")
}

#[test]
fn kill_9_in_the_middle_is_cleaned_at_the_next_start() {
    if let Some(directory) = env::var_os(DIRECTORY) {
        return to_be_killed(Path::new(&directory));
    }
    in_namespace(|| async {
        let directory = tempfile::tempdir().unwrap();
        veth("v0", "v1");
        let before = system();
        for milliseconds in [0, 1, 3, 8, 21, 34, 150] {
            let owner = owner(directory.path());
            thread::sleep(Duration::from_millis(milliseconds));
            kill_9(owner);
            assert_ne!(system(), before, "the child has left something");
            let mut config = config(directory.path());
            let early = Change::LinkUp { interface: index("v1") };
            let error = config.apply(early).await.unwrap_err();
            assert!(matches!(error, NetConfigError::NotRecovered { .. }), "{error}");
            let report = config.recover().await;
            assert!(report.is_clean(), "{report:?}");
            assert!(report.undone.len() >= every_change("v0").len(), "{report:?}");
            assert_restored(&before);
            let again = config.recover().await;
            assert!(again.is_clean() && again.undone.is_empty() && again.gone.is_empty());
        }
    });
}

#[test]
fn a_torn_last_line_is_passed_over_and_a_spoilt_one_reported() {
    in_namespace(|| async {
        let directory = tempfile::tempdir().unwrap();
        veth("v0", "v1");
        let before = system();
        for (tail, unreadable) in [("{\"set\":{\"id\":77,\"chan", 0), ("\u{1}\u{2}{{{\n", 1)] {
            kill_9(owner(directory.path()));
            let mut file = fs::OpenOptions::new().append(true).open(journal(directory.path())).unwrap();
            file.write_all(tail.as_bytes()).unwrap();
            let report = config(directory.path()).recover().await;
            assert!(report.failed.is_empty(), "{report:?}");
            assert_eq!(report.unreadable_lines.len(), unreadable, "{tail:?}");
            assert_restored(&before);
        }
    });
}

#[test]
fn a_running_owners_journal_is_not_touched() {
    in_namespace(|| async {
        let directory = tempfile::tempdir().unwrap();
        veth("v0", "v1");
        let before = system();
        let owner = owner(directory.path());
        let error = NetConfig::new(directory.path(), &instance()).unwrap_err();
        let pid = owner.0.id();
        assert!(
            matches!(error, NetConfigError::Journal(JournalError::InUse { pid: Some(named), .. }) if named == pid),
            "{error}"
        );
        assert!(error.to_string().contains(&format!("running process {pid}")), "{error}");
        assert!(ip("-4 rule").contains("4920"), "what it set is still there");
        kill_9(owner);
        assert!(config(directory.path()).recover().await.is_clean());
        assert_restored(&before);
    });
}

#[test]
fn another_namespace_is_left_alone() {
    in_namespace(|| async {
        let directory = tempfile::tempdir().unwrap();
        veth("v0", "v1");
        let before = system();
        kill_9(owner(directory.path()));
        let (left, path) = (system(), directory.path().to_owned());
        in_namespace(move || async move {
            // The same names, numbers and addresses as there, but none of them Hawser's.
            veth("v0", "v1");
            ip("link set v0 up mtu 1400");
            ip("addr add 10.77.0.1/24 dev v0");
            ip("-4 rule add not fwmark 0x48 lookup 4920 priority 100 proto 72");
            let before = system();
            let mut config = config(&path);
            let report = config.recover().await;
            assert!(report.is_clean() && report.undone.is_empty() && report.gone.is_empty(), "{report:?}");
            assert_restored(&before);
        });
        assert_eq!(system(), left, "nor is anything undone here from there");
        assert!(config(directory.path()).recover().await.is_clean());
        assert_restored(&before);
    });
}

/// The journal's last word on the interface's MTU.
fn mtu_entry(journal: &str) -> Value {
    journal
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .rfind(|line| !line["set"]["change"]["mtu"].is_null())
        .expect("the child has set an mtu")
}

#[test]
fn a_kill_between_journal_and_system_is_cleaned_too() {
    in_namespace(|| async {
        let directory = tempfile::tempdir().unwrap();
        veth("v0", "v1");
        let before = system();
        kill_9(owner(directory.path()));
        let path = journal(directory.path());
        // As if the child had been killed after it journalled the next MTU, and before it set that.
        let mut entry = mtu_entry(&fs::read_to_string(&path).unwrap());
        let now = ip_json("link show dev v0")[0]["mtu"].clone();
        let mut earlier = entry["set"]["change"].clone();
        earlier["mtu"]["mtu"] = now;
        entry["set"]["earlier"] = earlier;
        entry["set"]["change"]["mtu"]["mtu"] = 1299.into();
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        writeln!(file, "{entry}").unwrap();
        let report = config(directory.path()).recover().await;
        assert!(report.is_clean(), "{report:?}");
        assert_restored(&before);
    });
}

#[test]
fn what_was_left_in_a_namespace_that_is_gone_is_not_undone_in_its_successor() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_owned();
    let first = path.clone();
    in_namespace(move || async move {
        veth("v0", "v1");
        kill_9(owner(&first));
    });
    // The kernel gives the inode of a namespace again as soon as that is gone for good, so one of these gets it.
    for _ in 0..10 {
        let path = path.clone();
        in_namespace(move || async move {
            veth("v0", "v1");
            ip("link set v0 up mtu 1400");
            ip("addr add 10.77.0.1/24 dev v0");
            let before = system();
            let report = config(&path).recover().await;
            assert!(report.is_clean() && report.undone.is_empty() && report.gone.is_empty(), "{report:?}");
            assert_restored(&before);
        });
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_interface_that_got_the_index_of_another_is_left_alone() {
    in_namespace(|| async {
        let directory = tempfile::tempdir().unwrap();
        veth("v0", "v1");
        kill_9(owner(directory.path()));
        let number = index("v0");
        ip("link del v0");
        ip(&format!("link add name w0 index {number} type veth peer name w1"));
        ip("link set w0 up mtu 1400");
        ip("addr add 10.77.0.1/24 dev w0");
        assert_eq!(index("w0"), number);
        let left = ip("addr show dev w0");
        let report = config(directory.path()).recover().await;
        assert!(report.is_clean(), "{report:?}");
        let on_none = |change: &Change| match change {
            Change::Route(route) => matches!(route.kind, RouteKind::Unreachable | RouteKind::Blackhole),
            Change::MptcpEndpoint(_) | Change::MptcpLimits(_) => true,
            change => matches!(change, Change::Rule(_) | Change::LocalRule { .. } | Change::Nft(_)),
        };
        assert!(report.undone.iter().all(on_none), "{report:?}");
        assert_eq!(ip("addr show dev w0"), left);
    });
}
