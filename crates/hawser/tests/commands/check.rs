//! `hawser check` on what is no configuration, or a very long one: it answers soon and briefly.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// An answer comes within this time, on a loaded machine too: it took 13 s, or for ever.
const SOON: Duration = Duration::from_secs(5);
/// Bytes of an answer at most: 100 faults with their lines.
const BRIEF: usize = 100_000;

/// Exit status, and what is said. A command that does not end is killed, and fails the test.
fn check(config: &Path) -> (Option<i32>, String) {
    let said = tempfile::NamedTempFile::new().expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hawser"));
    command.args(["check", "-c"]).arg(config).stdin(Stdio::null());
    let mut child = command.stderr(said.reopen().expect("it is there")).spawn().expect("the binary starts");
    let status = ended(&mut child);
    (status, fs::read_to_string(said.path()).expect("text"))
}

fn ended(child: &mut Child) -> Option<i32> {
    let end = Instant::now() + SOON;
    while Instant::now() < end {
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    panic!("no answer within {SOON:?}");
}

#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let fifo = folder.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a fifo");
    let key = folder.path().join("key.toml");
    let words = "[portal]\nprivate_key_file = \"fifo\"\nlisten = [\"0.0.0.0:4920\"]\n[tun]\naddresses = [\"10.77.0.1/24\"]\n\
                 [[peer]]\nname = \"home\"\npublic_key = \"3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=\"\n\
                 allowed_ips = [\"10.77.0.2/32\"]\n";
    fs::write(&key, words).expect("a file");
    for path in [fifo.as_path(), Path::new("/dev/zero"), key.as_path()] {
        let (code, said) = check(path);
        assert_eq!(code, Some(2), "{path:?}: {said}");
        assert!(said.contains("not a regular file") && said.contains("hint: "), "{path:?}: {said}");
    }
}

#[test]
fn a_huge_file_is_refused_and_a_huge_line_is_cut() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("long.toml");
    for (bytes, words) in [(50_000_000, "larger than 8 MiB"), (4_000_000, "expected true or false")] {
        fs::write(&path, format!("[portal]\nrelay = \"{}\"\n", "x".repeat(bytes))).expect("a file");
        let (code, said) = check(&path);
        assert_eq!(code, Some(2), "{} bytes", said.len());
        assert!(said.len() < 5_000, "{bytes} bytes bring {}", said.len());
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn thousands_of_duplicates_are_told_soon_and_the_first_hundred_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("many.toml");
    let mut words =
        "[portal]\nprivate_key_file = \"k\"\nlisten = [\"0.0.0.0:4920\"]\n[tun]\naddresses = [\"10.77.0.1/24\"]\n"
            .to_owned();
    for _ in 0..4_000 {
        let key = "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=";
        let peer = format!("[[peer]]\nname = \"home\"\npublic_key = \"{key}\"\nallowed_ips = [\"10.77.0.2/32\"]\n");
        words.write_str(&peer).expect("a string takes all");
    }
    fs::write(&path, words).expect("a file");
    let (code, said) = check(&path);
    assert_eq!(code, Some(2));
    assert!(said.contains("first in line 7\n") && said.contains("and 11897 more"), "{said}");
    assert!(said.contains("many.toml:11:8]"), "{said}");
    assert!(said.len() < BRIEF, "{} bytes", said.len());
}
