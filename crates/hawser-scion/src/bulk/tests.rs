//! A sender, and a receiver that does what a test says, over loopback.

use std::collections::VecDeque;
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hawser_bulk::receiver::{Event, MOST_ANSWER, Receiver};
use hawser_bulk::wire::Have;

use super::receive::cookie_host;
use super::wake::{Clock, SystemRandom};
use super::*;
use crate::addr::EndpointAddr;
use crate::conn::{ConnOpts, PathTable, ScionSocket};

/// Sends that should have ended are interrupted.
const LATE: Duration = Duration::from_secs(30);
/// A file is taken, and arrives.
const GOOD: (Verdict, Option<Verdict>) = (Verdict::Good, Some(Verdict::Good));

fn local() -> EndpointAddr {
    "1-ff00:0:110,127.0.0.1:0".parse().expect("an address")
}

fn trust() -> Trust {
    Trust::secret([7; 32])
}

/// What is answered to an offer.
struct Answer {
    after: Duration,
    /// Each file: whether it is taken, and its result, if that is told. A receiver that does not tell one begins anew.
    files: Vec<(Verdict, Option<Verdict>)>,
}

/// What is to be said to a session.
enum Word {
    Answer(SessionId, Vec<(Verdict, Have)>),
    Result(SessionId, usize, Verdict),
}

/// A receiver that answers offers of names as it is told.
fn pretend(socket: &ScionSocket, ended: &AtomicBool, mut answer: impl FnMut(Vec<String>) -> Answer) {
    let (mut receiver, clock) = (Receiver::new(trust(), true), Clock::start());
    let (mut words, mut current) = (VecDeque::new(), Answer { after: Duration::ZERO, files: Vec::new() });
    while !ended.load(Ordering::Relaxed) {
        let (now, mut anew) = (clock.now(), false);
        let took = socket.try_recv_batch_if(|came| {
            receiver.handle_datagram(now, came.source, cookie_host(&came.source), came.payload, &mut SystemRandom)
        });
        took.expect("it receives");
        receiver.handle_timeout(now);
        while let Some(event) = receiver.poll_event() {
            match event {
                Event::Offer(session, files) => {
                    current = answer(files.iter().flatten().map(|file| file.name.to_string()).collect());
                    let verdicts = current.files.iter().map(|(verdict, _)| (*verdict, Have::default())).collect();
                    words.push_back((Instant::now() + current.after, Word::Answer(session, verdicts)));
                }
                Event::Block(session, block, memory) => receiver.written(now, session, block, memory),
                Event::Digest(session, file, _) => match current.files[file].1 {
                    Some(result) => {
                        words.push_back((Instant::now() + current.after, Word::Result(session, file, result)));
                    }
                    None => anew = true,
                },
                Event::Gone(..) => {}
            }
        }
        while let Some((_, word)) = words.pop_front_if(|(at, _)| *at <= Instant::now()) {
            match word {
                Word::Answer(session, verdicts) => receiver.answer(session, verdicts),
                Word::Result(session, file, result) => receiver.result(session, file, result),
            }
        }
        let mut out = [0; MOST_ANSWER];
        while let Some((to, len)) = receiver.poll_transmit(now, &mut out) {
            socket.send_to(&out[..len], to).expect("it is sent");
        }
        if anew {
            receiver = Receiver::new(trust(), true);
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Sends files of these names to such a receiver: what came of it, and which names were offered.
fn sends(
    names: &[&str],
    patience: Duration,
    answer: impl Fn(usize) -> Answer + Sync,
) -> (Result<Sent, SendError>, Vec<Vec<String>>) {
    let from = tempfile::tempdir().expect("a folder");
    let file = |name: &&str| {
        let path = from.path().join(name);
        fs::write(&path, name).expect("it is written");
        path
    };
    let files = names.iter().map(file).collect();
    let socket = ScionSocket::bind(ConnOpts::new(local()), Arc::new(PathTable::default())).expect("a socket");
    let (ended, began, mut offers) = (AtomicBool::new(false), Instant::now(), Vec::new());
    let order = order(socket.local(), files, patience);
    let sent = thread::scope(|scope| {
        let (ended, offers, answer) = (&ended, &mut offers, &answer);
        scope.spawn(move || {
            pretend(&socket, ended, |names| {
                offers.push(names);
                answer(offers.len())
            });
        });
        let late = |_: &Progress| match began.elapsed() < LATE {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        let sent = send(&order, || None, late);
        ended.store(true, Ordering::Relaxed);
        sent
    });
    (sent, offers)
}

fn order(destination: EndpointAddr, files: Vec<PathBuf>, patience: Duration) -> SendOrder {
    SendOrder {
        files,
        destination,
        local: local(),
        dispatched: None,
        mtu: None,
        paths: Vec::new(),
        law: Law::Fill,
        ceiling: None,
        trust: trust(),
        patience,
    }
}

#[test]
fn a_receiver_that_is_at_work_for_longer_than_the_patience_is_waited_for() {
    // It looks for what is there, and later writes.
    let after = Duration::from_secs(3);
    let (sent, _) = sends(&["a"], Duration::from_secs(2), |_| Answer { after, files: vec![GOOD] });
    assert_eq!(sent.expect("it is sent").files[0].1, Verdict::Good);
}

#[test]
fn files_that_have_their_results_are_not_offered_again() {
    let (sent, offers) = sends(&["a", "b"], Duration::from_secs(10), |offer| {
        // The second one's result is lost.
        let files = [&[GOOD, (Verdict::Good, None)][..], &[GOOD]];
        Answer { after: Duration::ZERO, files: files[offer.min(2) - 1].to_vec() }
    });
    let sent = sent.expect("they are sent");
    assert_eq!(offers, [vec!["a", "b"], vec!["b"]]);
    assert!(sent.files.iter().all(|(_, verdict, digest)| *verdict == Verdict::Good && digest.is_some()), "{sent:?}");
    assert_eq!((sent.progress.bytes, sent.progress.arrived, sent.progress.resumed), (2, 2, 0));
}

#[test]
fn a_file_that_the_receiver_takes_for_another_one_is_offered_once_more() {
    let (sent, offers) = sends(&["a", "b"], Duration::from_secs(10), |offer| {
        let files = [&[GOOD, (Verdict::Good, Some(Verdict::Busy))][..], &[GOOD]];
        Answer { after: Duration::ZERO, files: files[offer.min(2) - 1].to_vec() }
    });
    let sent = sent.expect("they are sent");
    assert_eq!(offers, [vec!["a", "b"], vec!["b"]]);
    assert!(sent.files.iter().all(|(_, verdict, _)| *verdict == Verdict::Good), "{sent:?}");
}

#[test]
fn a_file_that_stays_busy_ends_it_whatever_is_said_of_others() {
    let files = || vec![GOOD, (Verdict::Busy, None)];
    let (sent, offers) =
        sends(&["a", "b"], Duration::from_secs(1), |_| Answer { after: Duration::ZERO, files: files() });
    assert!(matches!(sent, Err(SendError::Busy { .. })), "{sent:?}");
    assert!(offers.len() > 1, "it was offered again: {offers:?}");
}

#[test]
fn two_files_of_one_name_are_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let paths = ["a", "b"].map(|folder| {
        let path = dir.path().join(folder).join("x");
        fs::create_dir(dir.path().join(folder)).expect("a folder");
        fs::write(&path, folder).expect("it is written");
        path
    });
    for files in [paths.to_vec(), vec![paths[0].clone(), paths[0].clone()]] {
        let sent = send(&order(local(), files, Duration::from_secs(1)), || None, |_| ControlFlow::Continue(()));
        assert!(matches!(sent, Err(SendError::Source(SourceError::SameName { .. }))), "{sent:?}");
    }
}
