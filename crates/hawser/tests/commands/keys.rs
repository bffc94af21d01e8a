//! Keys by the binary: made, turned into public ones, and refused where they are not kept well.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Alice's key pair of RFC 7748 section 6.1.
const ALICE_PRIVATE: &str = "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=";
const ALICE_PUBLIC: &str = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
/// Bob's public key of RFC 7748 section 6.1.
const BOB_PUBLIC: &str = "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=";

fn hawser(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_hawser"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    child.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("it reads");
    child.wait_with_output().expect("it ends")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

/// What `hawser check` says, and its status, of a configuration in `folder` whose peer has the key `peer`.
fn check(folder: &Path, peer: &str, more: &str) -> (Option<i32>, String) {
    let config = folder.join("hawser.toml");
    let words = format!(
        "[portal]\nprivate_key_file = \"private.key\"\nlisten = [\"0.0.0.0:4920\"]\n[tun]\naddresses = [\"10.77.0.1/24\"]\n\
         [[peer]]\nname = \"home\"\npublic_key = \"{peer}\"\nallowed_ips = [\"10.77.0.2/32\"]\n{more}"
    );
    fs::write(&config, words).expect("it can be written");
    let out = hawser(&["check", "-c", config.to_str().expect("text")], "");
    (out.status.code(), text(&out.stderr).to_owned())
}

fn key_file(folder: &Path, name: &str, words: &str, mode: u32) {
    let path = folder.join(name);
    fs::write(&path, words).expect("it can be written");
    fs::set_permissions(&path, Permissions::from_mode(mode)).expect("it is ours");
}

#[test]
fn a_new_key_has_a_public_one_and_no_two_are_alike() {
    let (first, second) = (hawser(&["genkey"], ""), hawser(&["genkey"], ""));
    assert!(first.status.success() && second.status.success());
    assert_ne!(first.stdout, second.stdout);
    assert_eq!(text(&first.stderr), "", "no hint where standard output is no terminal");
    let public = hawser(&["pubkey"], text(&first.stdout));
    assert!(public.status.success(), "{}", text(&public.stderr));
    assert_eq!((text(&first.stdout).len(), public.stdout.len()), (45, 45), "44 characters and the end of the line");
    assert_ne!(public.stdout, first.stdout);
}

#[test]
fn keys_that_others_can_read_are_refused_with_the_command_that_helps() {
    let folder = tempfile::tempdir().expect("a folder");
    for (mode, status) in [(0o600, 0), (0o400, 0), (0o640, 2), (0o604, 2), (0o620, 2), (0o644, 2)] {
        key_file(folder.path(), "private.key", ALICE_PRIVATE, mode);
        let (code, words) = check(folder.path(), BOB_PUBLIC, "");
        assert_eq!(code, Some(status), "{mode:04o}: {words}");
        assert_eq!(words.contains("hint: chmod 600 "), status == 2, "{mode:04o}: {words}");
    }
}

#[test]
fn preshared_keys_are_kept_as_well() {
    let folder = tempfile::tempdir().expect("a folder");
    key_file(folder.path(), "private.key", ALICE_PRIVATE, 0o600);
    let line = "preshared_key_file = \"home.psk\"\n";
    for (words, mode, status) in [(BOB_PUBLIC, 0o600, 0), (BOB_PUBLIC, 0o644, 2), ("short", 0o600, 2)] {
        key_file(folder.path(), "home.psk", words, mode);
        let (code, said) = check(folder.path(), BOB_PUBLIC, line);
        assert_eq!(code, Some(status), "{words} {mode:04o}: {said}");
    }
}

#[test]
fn a_file_without_a_key_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for words in ["", "\n", "no key", "AAAA", &"A".repeat(10_000), "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="] {
        key_file(folder.path(), "private.key", words, 0o600);
        let (code, said) = check(folder.path(), BOB_PUBLIC, "");
        assert_eq!(code, Some(2), "{words}: {said}");
    }
    fs::remove_file(folder.path().join("private.key")).expect("it is there");
    fs::create_dir(folder.path().join("private.key")).expect("it can be made");
    let (code, said) = check(folder.path(), BOB_PUBLIC, "");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("not a regular file"), "{said}");
}

#[test]
fn a_missing_key_is_told_by_check_and_refused_by_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, said) = check(folder.path(), BOB_PUBLIC, "");
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains(": correct (") && said.contains("error: read key ") && said.contains("hint: make one"),
        "{said}"
    );
    let config = folder.path().join("hawser.toml");
    let up = hawser(&["up", "-c", config.to_str().expect("text")], "");
    assert_eq!(up.status.code(), Some(2), "{}", text(&up.stderr));
    assert!(text(&up.stderr).contains("hawser genkey > "), "{}", text(&up.stderr));
}

#[test]
fn a_peer_with_our_own_key_is_refused_at_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    key_file(folder.path(), "private.key", ALICE_PRIVATE, 0o600);
    let (code, said) = check(folder.path(), ALICE_PUBLIC, "");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("hawser.toml:8:15]"), "{said}");
    assert!(said.contains("this portal's own public key"), "{said}");
}

#[test]
fn a_key_never_shows_in_what_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let almost = &ALICE_PRIVATE[..40];
    key_file(folder.path(), "private.key", almost, 0o600);
    let (_, said) = check(folder.path(), BOB_PUBLIC, "");
    assert!(!said.contains(almost), "{said}");
    let out = hawser(&["pubkey"], almost);
    assert!(!text(&out.stderr).contains(almost), "{}", text(&out.stderr));
}

#[test]
fn a_key_that_is_somebody_elses_is_refused_with_the_command_that_helps() {
    let folder = tempfile::tempdir().expect("a folder");
    key_file(folder.path(), "private.key", ALICE_PRIVATE, 0o600);
    std::os::unix::fs::chown(folder.path().join("private.key"), Some(1_000), None).expect("this test needs root");
    let (code, said) = check(folder.path(), BOB_PUBLIC, "");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("it belongs to user 1000") && said.contains("hint: chown 0 "), "{said}");
}
