//! `hawser scion send` and `receive`: within an AS, over several paths, broken and resumed, and against hostile ends.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use hawser_lab::localnet::{Host, Localnet, Topology};
use hawser_wire::{Direction, Loss, Namespace, Probability};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use serde_json::Value;

const ENDS: [&str; 2] = ["1-ff00:0:110", "1-ff00:0:120"];
const PORT: u16 = 31_000;
/// How long anything may take to happen on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Nothing of a link's delay is in here.
const LOCAL: &str = "1-ff00:0:110,127.0.0.1";

/// A receiver; killed on drop.
struct Receiving {
    child: Child,
    lines: Box<dyn Iterator<Item = Value> + Send>,
    address: String,
    token: String,
}

impl Receiving {
    fn start(mut command: Command, listen: &str, into: &Path, more: &[&str]) -> Receiving {
        command.args(["scion", "receive", "--json", "--listen", listen, "--into"]).arg(into).args(more);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines().map_while(Result::ok);
        let mut lines = lines.map(|line| serde_json::from_str::<Value>(&line).expect("JSON"));
        let first = lines.next().expect("it says where it listens");
        assert_eq!(first["event"], "listening");
        let word = |name: &str| first[name].as_str().unwrap_or_default().to_owned();
        Receiving { child, lines: Box::new(lines), address: word("address"), token: word("token") }
    }

    /// The next event of a kind.
    fn next(&mut self, event: &str) -> Value {
        self.lines.find(|line| line["event"] == event).unwrap_or_else(|| panic!("it ended without {event}"))
    }

    fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        // Mostly it has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn hawser(namespace: Option<&Namespace>) -> Command {
    let program = env!("CARGO_BIN_EXE_hawser");
    let mut command = namespace.map_or_else(|| Command::new(program), |namespace| namespace.command(program));
    command.env("NO_COLOR", "1");
    command
}

fn file(folder: &Path, name: &str, bytes: usize) -> PathBuf {
    let path = folder.join(name);
    let mut content = vec![0; bytes];
    ChaCha8Rng::seed_from_u64(bytes as u64).fill_bytes(&mut content);
    fs::write(&path, content).expect("it is written");
    path
}

fn same(one: &Path, other: &Path) -> bool {
    fs::read(one).expect("it is there") == fs::read(other).expect("it is there")
}

/// Sends within this host's AS, with a token.
fn send_here(receiving: &Receiving, files: &[&Path], more: &[&str]) -> Output {
    let mut command = hawser(None);
    command.args(["scion", "send", "--json"]).args(files).arg(&receiving.address);
    command.args(["--local", &format!("{LOCAL}:0"), "--timeout", "5"]).args(more).env("HAWSER_TOKEN", &receiving.token);
    command.output().expect("it starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

fn listen(port: u16) -> String {
    format!("{LOCAL}:{port}")
}

#[test]
fn files_arrive_within_an_as_and_nothing_is_overwritten() {
    let (from, into) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let files = [file(from.path(), "one", 5_000_001), file(from.path(), "empty", 0), file(from.path(), "small", 10)];
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let mut receiving = Receiving::start(hawser(None), &listen(31_701), into.path(), &["--once"]);
    let sent = send_here(&receiving, &files, &[]);
    assert!(sent.status.success(), "{}", said(&sent));
    let report: Value = serde_json::from_slice(&sent.stdout).expect("one JSON object");
    assert_eq!(report["bytes"], 5_000_011);
    assert!(report["files"].as_array().expect("files").iter().all(|file| file["error"].is_null()), "{report}");
    assert_eq!(receiving.next("end")["complete"], true);
    assert!(receiving.child.wait().expect("it ends").success());
    for path in &files {
        assert!(same(path, &into.path().join(path.file_name().expect("a name"))), "{path:?}");
    }
    assert_eq!(fs::read_dir(into.path()).expect("a folder").count(), 3, "no part is left");

    fs::write(into.path().join("small"), "mine").expect("it is written");
    let receiving = Receiving::start(hawser(None), &listen(31_702), into.path(), &[]);
    let again = send_here(&receiving, &files[2..], &[]);
    assert_eq!(again.status.code(), Some(1), "{}", said(&again));
    assert!(said(&again).contains("a file of this name exists there"), "{}", said(&again));
    assert_eq!(fs::read(into.path().join("small")).expect("it is there"), b"mine");
    drop(receiving);
    let receiving = Receiving::start(hawser(None), &listen(31_703), into.path(), &["--force"]);
    let forced = send_here(&receiving, &files[2..], &[]);
    assert!(forced.status.success(), "{}", said(&forced));
    assert!(same(files[2], &into.path().join("small")));
}

#[test]
fn keys_say_who_may_send_and_strangers_get_no_answer() {
    let (from, into) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let path = file(from.path(), "one", 100_000);
    let key = |name: &str| {
        let made = hawser(None).arg("genkey").output().expect("it starts").stdout;
        let file = from.path().join(name);
        fs::write(&file, &made).expect("it is written");
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("it is ours");
        let mut command = hawser(None);
        let public =
            command.arg("pubkey").stdin(fs::File::open(&file).expect("it is there")).output().expect("it starts");
        let public = String::from_utf8(public.stdout).expect("text").trim().to_owned();
        (file.to_string_lossy().into_owned(), public)
    };
    let ([own, receiver], [stranger, theirs]) = (["own", "receiver"].map(key), ["stranger", "theirs"].map(key));
    let trusts = ["--key", &receiver.0, "--peer", &own.1];
    let receiving = Receiving::start(hawser(None), &listen(31_711), into.path(), &trusts);
    let send = |key: &str, peer: &str| {
        let trust = ["--timeout", "2", "--key", key, "--peer", peer];
        let mut command = hawser(None);
        command.args(["scion", "send"]).arg(&path).arg(&receiving.address);
        command.args(["--local", &listen(0)]).args(trust).output().expect("it starts")
    };
    for (key, peer, why) in [(&stranger.0, &receiver.1, "a stranger"), (&own.0, &theirs.1, "another receiver's key")] {
        let refused = send(key, peer);
        assert_eq!(refused.status.code(), Some(1), "{why}: {}", said(&refused));
        assert!(said(&refused).contains("no answer for 2 s"), "{why}: {}", said(&refused));
    }
    let wrong = {
        let mut command = hawser(None);
        command.args(["scion", "send"]).arg(&path).arg(&receiving.address);
        command.args(["--local", &listen(0), "--timeout", "2"]).env("HAWSER_TOKEN", &own.1).output().expect("it starts")
    };
    assert!(said(&wrong).contains("no answer for 2 s"), "a secret for another: {}", said(&wrong));
    let sent = send(&own.0, &receiver.1);
    assert!(sent.status.success(), "{}", said(&sent));
    assert!(same(&path, &into.path().join("one")));
    let none = hawser(None).args(["scion", "send", "x", &receiving.address]).env_remove("HAWSER_TOKEN").output();
    let none = none.expect("it starts");
    assert_eq!(none.status.code(), Some(2), "{}", said(&none));
    assert!(said(&none).contains("--token"), "{}", said(&none));
}

/// Waits until a part has these bytes on the disk, without its holes.
fn wait_for_part(part: &Path, bytes: u64) {
    use std::os::unix::fs::MetadataExt as _;
    let late = Instant::now() + PATIENCE;
    while fs::metadata(part).map_or(0, |meta| meta.blocks() * 512) < bytes {
        assert!(Instant::now() < late, "waited for {bytes} bytes of {part:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_transfer_goes_on_after_either_end_was_killed() {
    const BYTES: usize = 60_000_000;
    let (from, into) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let path = file(from.path(), "big", BYTES);
    let part = into.path().join("big.part");
    let secret = from.path().join("secret");
    fs::write(&secret, hawser(None).arg("genkey").output().expect("it starts").stdout).expect("it is written");
    fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("it is ours");
    let secret = secret.to_string_lossy().into_owned();
    let trust = ["--secret", &secret];
    let send = |rate: &str| {
        let mut command = hawser(None);
        command.args(["scion", "send", "--json"]).arg(&path).args([&listen(31_721), "--local", &listen(0)]);
        command.args(trust).args(["--rate", rate, "--timeout", "20"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it starts")
    };
    let start = || Receiving::start(hawser(None), &listen(31_721), into.path(), &trust);

    // The sender is killed, and started once more.
    let mut receiving = start();
    let mut killed = send("80M");
    wait_for_part(&part, BYTES as u64 / 4);
    killed.kill().expect("it runs");
    killed.wait().expect("it ends");
    // The receiver is killed as well: nothing but the disk remembers.
    receiving.kill();
    let mut receiving = start();
    let second = send("80M");
    wait_for_part(&part, BYTES as u64 / 2);
    // This time the sender stays: it calls anew.
    receiving.kill();
    drop(receiving);
    let mut receiving = start();
    let sent = second.wait_with_output().expect("it ends");
    assert!(sent.status.success(), "{}", said(&sent));
    let report: Value = serde_json::from_slice(&sent.stdout).expect("one JSON object");
    let resumed = report["resumed_bytes"].as_u64().expect("a number");
    println!("{resumed} bytes were there: {report}");
    assert!(resumed > BYTES as u64 / 8 && resumed < BYTES as u64, "{report}");
    assert!(receiving.next("file")["error"].is_null());
    assert!(same(&path, &into.path().join("big")));
    assert!(!part.exists() && !into.path().join("big.part.map").exists());
}

/// Four links of 20 Mbit/s, 1 % loss on the third.
fn four_paths() -> Localnet {
    let mut topology = Topology::named("two-cores", Some(4)).expect("it comes along");
    "bulk".clone_into(&mut topology.name);
    topology.shape(&Direction::shaped(20.0, Duration::from_millis(5), Duration::from_millis(100)));
    for way in topology.links[2].ways.iter_mut().flatten() {
        way.loss = Loss::Random(Probability::new(0.01).expect("a part"));
    }
    Localnet::up(&topology).expect("a network (needs root and go)")
}

fn send_over(net: &Localnet, host: &Host, receiving: &Receiving, path: &Path) -> Child {
    let mut command = hawser(Some(&host.namespace));
    command.args(["scion", "send", "--json"]).arg(path).arg(&receiving.address).args(["--paths", "4"]);
    command.args(["--daemon", &host.daemon.to_string()]).env("HAWSER_TOKEN", &receiving.token);
    assert!(net.link("c1").is_ok());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

#[test]
fn four_paths_carry_a_file_together_with_loss_on_one_and_another_cut() {
    const BYTES: usize = 30_000_000;
    let net = four_paths();
    let [sender, receiver] = ENDS.map(|isd_as| net.host(isd_as).expect("a host"));
    let (from, into) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let path = file(from.path(), "big", BYTES);
    let listen = format!("{},{}:{PORT}", ENDS[1], receiver.address);
    let mut receiving = Receiving::start(hawser(Some(&receiver.namespace)), &listen, into.path(), &["--once"]);
    let sending = send_over(&net, sender, &receiving, &path);
    wait_for_part(&into.path().join("big.part"), BYTES as u64 / 3);
    net.link("c1").expect("a link").cut().expect("it is cut");
    let sent = sending.wait_with_output().expect("it ends");
    assert!(sent.status.success(), "{}", said(&sent));
    let report: Value = serde_json::from_slice(&sent.stdout).expect("one JSON object");
    println!("{report:#}");
    assert!(receiving.next("file")["error"].is_null());
    assert!(same(&path, &into.path().join("big")));
    let paths = report["paths"].as_array().expect("paths");
    let shares: Vec<u64> = paths.iter().map(|path| path["sent_bytes"].as_u64().expect("a number")).collect();
    assert_eq!(paths.len(), 4);
    assert!(shares.iter().all(|share| *share > BYTES as u64 / 20), "each carried its part: {shares:?}");
    // At the end nothing is under way, and whether the others have just answered is chance.
    let cut = paths.iter().find(|path| path["path"].as_str().is_some_and(|hops| hops.contains("1>1"))).expect("by c1");
    assert_eq!(cut["state"], "down", "{report}");
    assert_eq!(shares.iter().min(), cut["sent_bytes"].as_u64().as_ref(), "it carried least: {report}");
    let mbps = report["mbps"].as_f64().expect("a number");
    assert!(mbps > 30.0, "{mbps} Mbit/s over four paths of 20, one of which was cut");
}
