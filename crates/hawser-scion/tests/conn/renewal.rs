//! Paths that expire while packets use them.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hawser_scion::conn::{ConnOpts, Event, LookupError, Paths, RouteError, SendError};
use hawser_scion::{IsdAs, Path};

use crate::support::{Pair, in_as, number_of, numbered, on, path, until};

/// How long a path of these tests lasts: it is asked for again when two thirds are over.
const LASTS: Duration = Duration::from_millis(1200);

/// Makes a new path whenever it is asked, unless it is down.
#[derive(Debug)]
struct Fresh {
    next_hop: SocketAddr,
    asked: AtomicU32,
    down: AtomicBool,
}

impl Fresh {
    fn new(next_hop: SocketAddr) -> Arc<Fresh> {
        Arc::new(Fresh { next_hop, asked: AtomicU32::new(0), down: AtomicBool::new(false) })
    }
}

impl Paths for Fresh {
    fn paths(&self, destination: IsdAs) -> Result<Vec<Path>, LookupError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        // As long as a daemon's answer may take.
        std::thread::sleep(Duration::from_millis(20));
        if self.down.load(Ordering::Relaxed) {
            return Err(LookupError { destination, source: "the daemon is down".into() });
        }
        Ok(vec![path(1, self.next_hop, LASTS)])
    }
}

#[test]
fn under_traffic_no_packet_is_lost_or_doubled_when_the_path_is_renewed() {
    let pair = Pair::new();
    let server = pair.socket(&pair.far, ConnOpts::new(in_as("1-ff00:0:120", "10.9.0.2:31001")));
    let fresh = Fresh::new(server.local().host);
    let paths = Arc::clone(&fresh);
    let conn = pair.conn(&pair.near, on("10.9.0.1:31000"), server.local(), paths);
    let first = conn.expiry().expect("it expires");
    let (mut sent, mut got, mut seen) = (0, 0, BTreeSet::new());
    let end = Instant::now() + 3 * LASTS;
    while Instant::now() < end {
        let batch = conn.send_batch(|batch| {
            for _ in 0..20 {
                batch.copy(&numbered(sent, 300)).expect("room");
                sent += 1;
            }
        });
        assert_eq!(batch.expect("the path holds").packets, 20);
        while got < sent {
            let received = server.recv_batch(Some(Duration::from_secs(5)), |datagram| {
                assert_eq!(number_of(datagram.payload), got, "lost or doubled");
                seen.insert(datagram.packet.dataplane().as_bytes().to_vec());
                got += 1;
            });
            assert!(received.expect("receive") > 0, "lost after {got}");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let asked = fresh.asked.load(Ordering::Relaxed);
    assert!((3..=8).contains(&asked), "asked {asked} times in three lifetimes");
    assert!(seen.len() >= 3, "{} paths were seen", seen.len());
    assert!(conn.expiry().expect("it expires") > first);
    assert!(matches!(conn.next_event(), Some(Event::PathRenewed { .. })));
}

#[test]
fn a_path_that_cannot_be_renewed_holds_until_it_expires_and_a_later_one_takes_its_place() {
    let pair = Pair::new();
    let server = pair.socket(&pair.far, ConnOpts::new(in_as("1-ff00:0:120", "10.9.0.2:31001")));
    let fresh = Fresh::new(server.local().host);
    let paths = Arc::clone(&fresh);
    let conn = pair.conn(&pair.near, on("10.9.0.1:31000"), server.local(), paths);
    fresh.down.store(true, Ordering::Relaxed);
    let expiry = conn.expiry().expect("it expires");
    let event = until("the renewal to fail", || conn.next_event());
    let reason = "look up paths to 1-ff00:0:120: the daemon is down".to_owned();
    assert_eq!(event, Event::RenewalFailed { destination: server.local(), reason });
    let error = until("the path to expire", || conn.send(b"still").err());
    match error {
        SendError::Route(RouteError::Expired { since, .. }) => assert_eq!(since, expiry),
        other => panic!("{other}"),
    }
    assert!(std::time::SystemTime::now() >= expiry, "not before its time");
    fresh.down.store(false, Ordering::Relaxed);
    until("another path", || conn.send(b"again").ok());
}

#[test]
fn the_thread_that_renews_ends_with_the_connection() {
    let pair = Pair::new();
    let fresh = Fresh::new("10.9.0.2:31001".parse().expect("an address"));
    let (paths, to) = (Arc::clone(&fresh), in_as("1-ff00:0:120", "10.9.0.2:31001"));
    drop(pair.conn(&pair.near, on("10.9.0.1:0"), to, paths));
    until("nobody to hold the source of paths", || (Arc::strong_count(&fresh) == 1).then_some(()));
}
