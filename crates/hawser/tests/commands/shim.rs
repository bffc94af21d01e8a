//! `hawser shim run`, with programs as Debian has them, in a network namespace of the test's own (needs root).

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::{self, JoinHandle};

use hawser_wire::Namespace;

use crate::copied;

const HAWSER: &str = env!("CARGO_BIN_EXE_hawser");
/// A user without privileges (Debian policy 9.2.2, nobody).
const NOBODY: u32 = 65534;

fn namespace(tag: &str) -> Namespace {
    Namespace::new(tag).expect("this test needs root: it makes network namespaces")
}

fn run(namespace: &Namespace, arguments: &[&str]) -> Output {
    namespace.command(HAWSER).args(["shim", "run"]).args(arguments).output().unwrap()
}

fn assert_done(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    error.into_owned()
}

/// A counter of the kernel's, as netstat(8) reads it.
fn counter(namespace: &Namespace, name: &str) -> u64 {
    let text = namespace.run(|| fs::read_to_string("/proc/thread-self/net/netstat")).unwrap().unwrap();
    let mut rows = text.lines().filter(|line| line.starts_with("MPTcpExt:"));
    let (names, values) = (rows.next().unwrap(), rows.next().unwrap());
    let (_, value) = names.split(' ').zip(values.split(' ')).find(|(known, _)| *known == name).unwrap();
    value.parse().unwrap()
}

/// Answers one request, over plain TCP.
fn web_server(namespace: &Namespace) -> (u16, JoinHandle<()>) {
    let listener = namespace.run(|| TcpListener::bind("127.0.0.1:0")).unwrap().unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]).unwrap();
        stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello").unwrap();
    };
    (port, thread::spawn(serve))
}

/// Fetches from a plain server with curl, or a copy of it.
fn fetched(namespace: &Namespace, curl: &str) -> Output {
    let (port, server) = web_server(namespace);
    let url = format!("http://127.0.0.1:{port}/");
    let output = run(namespace, &[curl, "--silent", "--max-time", "20", "--noproxy", "*", &url]);
    assert_done(&output);
    assert_eq!(output.stdout, b"hello");
    server.join().unwrap();
    output
}

#[test]
fn iperf3_at_both_ends_talks_mptcp() {
    let namespace = namespace("shim-iperf3");
    let mut server = namespace.command(HAWSER);
    server.args(["shim", "run", "iperf3", "--server", "--one-off", "--forceflush", "--idle-timeout", "20"]);
    let mut server = server.stdout(Stdio::piped()).spawn().unwrap();
    let mut told = Vec::new();
    let mut stdout = server.stdout.take().unwrap();
    while !String::from_utf8_lossy(&told).contains("listening") {
        let mut piece = [0; 512];
        let len = stdout.read(&mut piece).unwrap();
        assert!(len > 0, "the server ended early: {}", String::from_utf8_lossy(&told));
        told.extend(&piece[..len]);
    }
    let client = run(&namespace, &["iperf3", "--client", "127.0.0.1", "--bytes", "1M"]);
    assert_eq!(assert_done(&client), "");
    assert!(server.wait().unwrap().success());
    // Control and data: two connections.
    assert_eq!(counter(&namespace, "MPCapableACKRX"), 2);
}

#[test]
fn curl_asks_for_mptcp_and_gets_along_with_a_server_without() {
    let namespace = namespace("shim-curl");
    let output = fetched(&namespace, "curl");
    assert_eq!(assert_done(&output), "");
    assert_eq!((counter(&namespace, "MPCapableSYNTX"), counter(&namespace, "MPCapableACKRX")), (1, 0));
}

#[test]
fn where_the_kernel_has_no_mptcp_programs_get_tcp_and_the_user_is_told() {
    let namespace = namespace("shim-off");
    namespace.set_sysctl("mptcp/enabled", "0").unwrap();
    let output = fetched(&namespace, "curl");
    let told = "warning: the kernel has net.mptcp.enabled = 0, and so no mptcp: curl gets plain tcp\n";
    assert_eq!(assert_done(&output), told);
    assert_eq!(counter(&namespace, "MPCapableSYNTX"), 0);
}

/// A directory of this test's own, gone with it.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn program(name: &str) -> PathBuf {
    ["/usr/bin", "/bin"].iter().map(|place| Path::new(place).join(name)).find(|file| file.is_file()).unwrap()
}

#[test]
fn a_program_that_runs_as_its_owner_is_left_alone() {
    let namespace = namespace("shim-setuid");
    let directory = directory();
    let copy = directory.path().join("curl");
    copied::program(&program("curl"), &copy);
    chown(&copy, Some(NOBODY), None).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o4755)).unwrap();
    let output = fetched(&namespace, copy.to_str().unwrap());
    assert!(assert_done(&output).contains("runs as its owner or group, and takes no preloaded library"));
    assert_eq!(counter(&namespace, "MPCapableSYNTX"), 0);
}

#[test]
fn a_static_program_runs_as_ever() {
    let namespace = namespace("shim-static");
    let output = run(&namespace, &["/sbin/ldconfig", "--version"]);
    assert!(assert_done(&output).contains("is linked statically"));
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("ldconfig"));
}

#[test]
fn what_a_program_is_told_its_status_and_other_preloaded_libraries_are_its_own() {
    let script = "echo $1; echo $LD_PRELOAD; exit 7";
    let mut command = Command::new(HAWSER);
    command.args(["shim", "run", "sh", "-c", script, "sh", "--help"]).env("LD_PRELOAD", "libother.so");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    let told = String::from_utf8(output.stdout).unwrap();
    let mut lines = told.lines();
    assert_eq!(lines.next(), Some("--help"));
    assert!(lines.next().is_some_and(|line| line.ends_with("/libhawser_preload.so:libother.so")), "{told}");
}

#[test]
fn what_is_missing_is_said() {
    let output = Command::new(HAWSER).args(["shim", "run", "no-such-program"]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(error.contains("run no-such-program: No such file or directory"), "{error}");
    let directory = directory();
    let alone = directory.path().join("hawser");
    copied::program(Path::new(HAWSER), &alone);
    let output = Command::new(&alone).args(["shim", "run", "true"]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(error.contains("find libhawser_preload.so") && error.contains("install it beside hawser"), "{error}");
}
