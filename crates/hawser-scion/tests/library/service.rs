//! The service that keeps paths, against a daemon that stands in.

use std::error::Error;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use crate::daemon::{Answer, StandIn, Table, told};
use hawser_scion::conn::{DeadPart, Paths};
use hawser_scion::daemon::{DaemonAddr, proto};
use hawser_scion::select::{Criterion, Policy};
use hawser_scion::service::{Change, PathService, ServiceOpts, Subscription};
use hawser_scion::{InterfaceId, IsdAs, Path, PathInterface};
use prost::Message;
use prost_types::Timestamp;

/// How long something may take that happens at once on an idle machine.
const LONG: Duration = Duration::from_secs(60);

const SHORT_WAY: &str = "1-1 4 5 1-3";
const LONG_WAY: &str = "1-1 6 7 1-2 8 9 1-3";

fn as_number(text: &str) -> IsdAs {
    text.parse().expect("an AS")
}

/// What a daemon knows and was asked; both may be looked at and changed while it runs.
#[derive(Clone, Default)]
struct Daemon(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    paths: Vec<proto::Path>,
    /// Whether paths were asked for anew, each time.
    asked: Vec<bool>,
    /// What was reported as down.
    down: Vec<(u64, u64)>,
}

impl Daemon {
    fn knowing(ways: &[&str]) -> Daemon {
        let daemon = Daemon::default();
        daemon.set(ways.iter().map(|way| told(way)).collect());
        daemon
    }

    fn set(&self, paths: Vec<proto::Path>) {
        self.state(|state| state.paths = paths);
    }

    fn state<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.0.lock().expect("nobody panicked"))
    }

    fn asked(&self) -> Vec<bool> {
        self.state(|state| state.asked.clone())
    }

    fn answer(&self, method: &str, asked: &[u8]) -> Answer {
        self.state(|state| {
            if method == "Paths" {
                state.asked.push(proto::PathsRequest::decode(asked).expect("a request").refresh);
            }
            if method == "NotifyInterfaceDown" {
                let down = proto::NotifyInterfaceDownRequest::decode(asked).expect("a request");
                state.down.push((down.isd_as, down.id));
            }
            let table = Table { paths: [(as_number("1-3"), state.paths.clone())].into(), ..Table::default() };
            table.answer(method, asked)
        })
    }

    fn start(&self) -> StandIn {
        let daemon = self.clone();
        StandIn::start(move |method, asked| daemon.answer(method, asked))
    }
}

fn service(address: std::net::SocketAddr, opts: ServiceOpts) -> PathService {
    let address: DaemonAddr = address.to_string().parse().expect("an address");
    PathService::start_with(address, opts, LONG).expect("it starts")
}

fn ways(paths: &[Path]) -> Vec<String> {
    paths.iter().map(|path| path.interfaces.to_string()).collect()
}

/// Waits until something holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let late = Instant::now() + LONG;
    while !holds() {
        assert!(Instant::now() < late, "in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The next changes.
fn next(subscription: &mut Subscription) -> Vec<Change> {
    let mut changes = Vec::new();
    until("a change", || {
        changes = subscription.fetch();
        !changes.is_empty()
    });
    changes
}

fn interface(isd_as: &str, id: u16) -> PathInterface {
    PathInterface { isd_as: as_number(isd_as), id: InterfaceId(id) }
}

#[test]
fn paths_are_told_in_order_and_the_daemon_is_asked_once() {
    let knows = Daemon::knowing(&[LONG_WAY, SHORT_WAY]);
    let daemon = knows.start();
    let service = service(daemon.address(), ServiceOpts::default());
    for _ in 0..3 {
        let paths = service.paths(as_number("1-3")).expect("paths");
        assert_eq!(ways(&paths), ["1-1 4>5 1-3", "1-1 6>7 1-2 8>9 1-3"]);
    }
    assert_eq!(knows.asked(), [false]);
}

#[test]
fn the_policy_and_the_criterion_are_heeded() {
    let big = proto::Path { mtu: 9000, ..told("1-1 1 1 1-4 2 2 1-3") };
    let knows = Daemon::default();
    knows.set(vec![told(SHORT_WAY), told(LONG_WAY), big]);
    let daemon = knows.start();
    let policy = Policy { sequence: "0 0 0".parse().expect("a sequence"), ..Policy::default() };
    let service = service(daemon.address(), ServiceOpts { policy, select: Criterion::Mtu });
    let paths = service.paths(as_number("1-3")).expect("paths");
    assert_eq!(ways(&paths), ["1-1 1>1 1-4 2>2 1-3", "1-1 6>7 1-2 8>9 1-3"]);
}

#[test]
fn a_daemon_that_is_away_is_told_of_and_found_when_it_comes() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let service = service(address, ServiceOpts::default());
    let error = service.paths(as_number("1-3")).expect_err("nobody is there");
    assert_eq!(error.to_string(), "look up paths to 1-3");
    let cause = std::iter::successors(error.source(), |&error| error.source()).last().expect("a cause").to_string();
    assert!(cause.contains("refused"), "{cause}");
    let knows = Daemon::knowing(&[SHORT_WAY]);
    let at_last = knows.clone();
    let _daemon = StandIn::start_at(address, move |method, asked| at_last.answer(method, asked));
    until("paths come", || service.paths(as_number("1-3")).is_ok_and(|paths| paths.len() == 1));
}

#[test]
fn paths_across_a_dead_interface_come_last_and_the_daemon_is_told_once_and_asked_anew() {
    let knows = Daemon::knowing(&[SHORT_WAY, LONG_WAY]);
    let daemon = knows.start();
    let service = service(daemon.address(), ServiceOpts::default());
    let mut subscription = service.subscribe(as_number("1-3")).expect("it runs");
    assert_eq!(next(&mut subscription).len(), 2);
    for _ in 0..3 {
        service.report_down(DeadPart::External(interface("1-3", 5)));
    }
    let paths = service.paths(as_number("1-3")).expect("paths");
    assert_eq!(ways(&paths), ["1-1 6>7 1-2 8>9 1-3", "1-1 4>5 1-3"]);
    until("the daemon is asked anew", || knows.asked() == [false, true]);
    until("the daemon is told", || knows.state(|state| state.down == [(as_number("1-3").to_bits(), 5)]));
    assert_eq!(subscription.fetch(), [], "the same paths in another order are no change");
    assert_eq!(ways(subscription.paths()), ways(&paths));
}

#[test]
fn subscribers_are_told_what_is_new_renewed_and_gone() {
    let knows = Daemon::knowing(&[SHORT_WAY, LONG_WAY]);
    let daemon = knows.start();
    let service = service(daemon.address(), ServiceOpts::default());
    let mut subscription = service.subscribe(as_number("1-3")).expect("it runs");
    let new = next(&mut subscription);
    assert!(matches!(&new[..], [Change::New(short), Change::New(_)] if short.interfaces.to_string() == "1-1 4>5 1-3"));
    let longer = Timestamp { seconds: 1_900_000_600, nanos: 0 };
    knows.set(vec![proto::Path { expiration: Some(longer), ..told(LONG_WAY) }, told("1-1 1 1 1-3")]);
    service.report_down(DeadPart::External(interface("1-1", 4)));
    let changes = next(&mut subscription);
    let said: Vec<(&str, String)> = changes
        .iter()
        .map(|change| match change {
            Change::New(path) => ("new", path.interfaces.to_string()),
            Change::Renewed(path) => ("renewed", path.interfaces.to_string()),
            Change::Gone(path) => ("gone", path.to_string()),
        })
        .collect();
    let expected = [("new", "1-1 1>1 1-3"), ("renewed", "1-1 6>7 1-2 8>9 1-3"), ("gone", "1-1 4>5 1-3")]
        .map(|(a, b)| (a, b.to_owned()));
    assert_eq!(said, expected);
    drop(service);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    assert_eq!(runtime.block_on(subscription.next()), None, "the service has ended");
}

#[test]
fn the_daemon_asks_anew_when_a_path_is_about_to_expire() {
    let soon = SystemTime::now() + Duration::from_secs(100);
    let knows = Daemon::default();
    knows.set(vec![proto::Path { expiration: Some(soon.into()), ..told(SHORT_WAY) }]);
    let daemon = knows.start();
    let service = service(daemon.address(), ServiceOpts::default());
    let first = service.paths(as_number("1-3")).expect("paths");
    knows.set(vec![told(SHORT_WAY)]);
    until("a path that lasts longer", || {
        service.paths(as_number("1-3")).is_ok_and(|paths| paths[0].expiry > first[0].expiry)
    });
    assert_eq!(knows.asked(), [false, true]);
}
