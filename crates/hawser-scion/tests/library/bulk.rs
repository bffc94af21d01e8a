//! Files from one thread of this process to another, over loopback.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use hawser_scion::EndpointAddr;
use hawser_scion::bulk::{
    Law, Progress, ReceiveOrder, Received, SendError, SendOrder, Sent, SourceError, Trust, Verdict,
};
use hawser_scion::bulk::{receive, send};

/// How long nothing may get on.
const PATIENCE: Duration = Duration::from_secs(10);

fn local(port: u16) -> EndpointAddr {
    format!("1-ff00:0:110,127.0.0.1:{port}").parse().expect("an address")
}

fn trust() -> Trust {
    Trust::secret([7; 32])
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 % 253) as u8 ^ (at >> 12) as u8).collect()
}

fn order(destination: EndpointAddr, files: Vec<PathBuf>) -> SendOrder {
    SendOrder {
        files,
        destination,
        local: local(0),
        dispatched: None,
        mtu: None,
        paths: Vec::new(),
        law: Law::Fill,
        ceiling: None,
        trust: trust(),
        patience: PATIENCE,
    }
}

/// Runs `act` beside a receiver, which it is told the address of.
fn beside_receiver<T>(into: &Path, force: bool, act: impl FnOnce(EndpointAddr) -> T) -> T {
    let (ended, order) = (
        AtomicBool::new(false),
        ReceiveOrder { local: local(0), dispatched: None, folder: into.to_owned(), force, trust: trust() },
    );
    let (listening, listens) = channel();
    thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            receive(&order, |what| {
                if let Some(Received::Listening(address, _)) = what {
                    listening.send(address).expect("somebody waits");
                }
                if ended.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
        });
        let done = act(listens.recv().expect("it listens"));
        ended.store(true, Ordering::Relaxed);
        receiving.join().expect("no panic").expect("it receives");
        done
    })
}

fn sends(order: &SendOrder) -> Result<Sent, SendError> {
    send(order, || None, |_| ControlFlow::Continue(()))
}

#[test]
fn files_arrive_and_have_their_names_when_they_are_whole() {
    let (from, into) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let sizes = [("big", 40_000_001), ("empty", 0), ("block", 1 << 20)];
    let files = sizes.map(|(name, len)| {
        let path = from.path().join(name);
        fs::write(&path, bytes(len)).expect("it is written");
        path
    });
    beside_receiver(into.path(), false, |address| {
        let began = Instant::now();
        let sent = sends(&order(address, files.to_vec())).expect("they are sent");
        println!("{:.0} Mbit/s", 41.0 * 8.0 / began.elapsed().as_secs_f64());
        assert!(
            sent.files.iter().all(|(_, verdict, digest)| *verdict == Verdict::Good && digest.is_some()),
            "{sent:?}"
        );
        assert_eq!(sent.progress.bytes, 41_048_577);
    });
    for (name, len) in sizes {
        assert!(fs::read(into.path().join(name)).expect("it is there") == bytes(len), "{name}");
    }
    assert_eq!(fs::read_dir(into.path()).expect("a folder").count(), 3);
}

#[test]
fn one_that_was_ended_goes_on_where_it_stopped() {
    let (from, into) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let path = from.path().join("big");
    fs::write(&path, bytes(80_000_000)).expect("it is written");
    beside_receiver(into.path(), false, |address| {
        let order = order(address, vec![path.clone()]);
        let half = |progress: &Progress| match progress.arrived > progress.bytes / 4 && progress.bytes > 0 {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let slowly = SendOrder { ceiling: Some(hawser_scion::bulk::Rate::from_bits(300_000_000)), ..order };
        let ended = send(&slowly, || None, half);
        assert!(matches!(ended, Err(SendError::Interrupted)), "{ended:?}");
        let sent = sends(&SendOrder { ceiling: None, ..slowly }).expect("it is sent");
        let resumed = sent.progress.resumed;
        assert!((10_000_000..80_000_000).contains(&resumed), "{resumed} bytes were there");
    });
    assert!(fs::read(into.path().join("big")).expect("it is there") == bytes(80_000_000));
}

#[test]
fn what_cannot_be_sent_is_told() {
    let (from, into) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let path = from.path().join("file");
    fs::write(&path, bytes(10)).expect("it is written");
    fs::write(into.path().join("file"), "mine").expect("it is written");
    let nowhere = SendOrder { patience: Duration::from_secs(1), ..order(local(9), vec![path.clone()]) };
    assert!(matches!(sends(&nowhere), Err(SendError::NoAnswer { unreachable: true, .. })));
    let folder = sends(&order(local(9), vec![from.path().to_owned()]));
    assert!(matches!(folder, Err(SendError::Source(SourceError::NotAFile { .. }))), "{folder:?}");
    let part = from.path().join("file.part");
    fs::write(&part, bytes(10)).expect("it is written");
    let named = sends(&order(local(9), vec![part]));
    assert!(matches!(named, Err(SendError::Source(SourceError::Name { .. }))), "{named:?}");
    beside_receiver(into.path(), false, |address| {
        let sent = sends(&order(address, vec![path.clone()])).expect("it is answered");
        assert_eq!(sent.files[0].1, Verdict::Exists);
        let other = SendOrder {
            trust: Trust::secret([8; 32]),
            patience: Duration::from_secs(1),
            ..order(address, vec![path.clone()])
        };
        assert!(matches!(sends(&other), Err(SendError::NoAnswer { .. })));
    });
    assert_eq!(fs::read(into.path().join("file")).expect("it is there"), b"mine");
    beside_receiver(into.path(), true, |address| {
        assert_eq!(sends(&order(address, vec![path.clone()])).expect("it is sent").files[0].1, Verdict::Good);
    });
    assert_eq!(fs::read(into.path().join("file")).expect("it is there"), bytes(10));
}
