//! The daemon's client against a daemon that stands in: what it says, says wrongly, or does not say.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use crate::daemon::{Answer, StandIn, Table, raw, router, told};
use hawser_scion::conn::PortRange;
use hawser_scion::daemon::{DaemonAddr, DaemonClient, DaemonError, DaemonFault, Lookup, Refresh, proto};
use hawser_scion::{InterfaceId, IsdAs, Path, PathInterface};
use prost::Message;
use prost_types::{Duration as ToldDuration, Timestamp};
use tokio::runtime::Runtime;

/// How long a test waits for a daemon that does not answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// How long a daemon that answers may take on a busy machine.
const LONG: Duration = Duration::from_secs(60);

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn as_number(text: &str) -> IsdAs {
    text.parse().expect("an AS")
}

/// Runs a test against the daemon at an address.
fn with_client<T>(address: std::net::SocketAddr, timeout: Duration, test: impl AsyncFnOnce(DaemonClient) -> T) -> T {
    let address: DaemonAddr = address.to_string().parse().expect("an address");
    runtime().block_on(async { test(DaemonClient::with_timeout(address, timeout).expect("a client")).await })
}

fn table(paths: Vec<proto::Path>) -> Table {
    Table {
        local: proto::AsResponse { isd_as: as_number("1-1").to_bits(), core: true, mtu: 1472 },
        paths: BTreeMap::from([(as_number("1-3"), paths)]),
        interfaces: BTreeMap::from([(1, "10.0.0.1:30042".to_owned()), (2, "[fd00::1]:30042".to_owned())]),
        ports: (31_000, 32_767),
    }
}

/// What a client makes of paths.
fn lookup(paths: Vec<proto::Path>) -> Lookup {
    let daemon = StandIn::with_table(table(paths));
    with_client(daemon.address(), LONG, async |client| client.paths(as_number("1-3"), Refresh::No).await)
        .expect("paths")
}

#[test]
fn a_path_is_read_with_all_that_is_told_of_it() {
    let duration = |seconds, nanos| ToldDuration { seconds, nanos };
    let path = proto::Path {
        latency: vec![duration(0, 10_000_000), duration(0, -1), duration(1, 0)],
        bandwidth: vec![100_000, 0, 40_000],
        interface: Some(router("[fd00::7]:30042")),
        ..told("1-1 4 5 1-2 6 7 1-3")
    };
    let read = lookup(vec![path]);
    let [path]: [Path; 1] = read.paths.try_into().expect("one path");
    assert!(read.malformed.is_empty());
    assert_eq!((path.source, path.destination), (as_number("1-1"), as_number("1-3")));
    assert_eq!(path.interfaces.to_string(), "1-1 4>5 1-2 6>7 1-3");
    assert_eq!(path.next_hop, Some("[fd00::7]:30042".parse().expect("an address")));
    assert_eq!((path.mtu, path.dataplane.as_bytes()), (1472, &raw(3)[..]));
    let ms = |ms| Some(Duration::from_millis(ms));
    assert_eq!((path.latency, path.bandwidth), (vec![ms(10), None, ms(1000)], vec![Some(100_000), None, Some(40_000)]));
    assert_eq!(path.expiry, SystemTime::UNIX_EPOCH + Duration::from_secs(1_900_000_000));
}

#[test]
fn what_is_not_announced_is_unknown() {
    let read = lookup(vec![told("1-1 4 5 1-3")]);
    assert_eq!((&read.paths[0].latency[..], &read.paths[0].bandwidth[..]), (&[None][..], &[None][..]));
}

#[test]
fn the_path_inside_an_as_is_empty() {
    let inside =
        proto::Path { raw: Vec::new(), interface: Some(router("")), interfaces: Vec::new(), ..told("1-1 4 5 1-3") };
    let path = lookup(vec![inside]).paths.remove(0);
    assert_eq!((path.source, path.destination), (as_number("1-3"), as_number("1-3")));
    assert!(path.dataplane.is_empty() && path.next_hop.is_none() && path.interfaces.interfaces().is_empty());
}

#[test]
fn paths_that_make_no_sense_are_left_out_and_told_of() {
    let good = || told("1-1 4 5 1-2 6 7 1-3");
    let interfaces = |change: &dyn Fn(&mut Vec<proto::PathInterface>)| {
        let mut path = good();
        change(&mut path.interfaces);
        path
    };
    let expires = |seconds| proto::Path { expiration: Some(Timestamp { seconds, nanos: 0 }), ..good() };
    let latency = |seconds| proto::Path { latency: vec![ToldDuration { seconds, nanos: 0 }; 3], ..good() };
    let cases: Vec<(proto::Path, &str)> = vec![
        (interfaces(&|all| all[1].isd_as = 1 << 48), "1-0 is not one AS"),
        (interfaces(&|all| all[2].id = 0), "0 is no interface"),
        (interfaces(&|all| all[2].id = 65_536), "65536 is no interface"),
        (interfaces(&|all| all.truncate(3)), "a path has 3 interfaces"),
        (interfaces(&|all| *all = vec![all[0].clone(); 130]), "a path has 130 interfaces"),
        (interfaces(&|all| all.swap(2, 3)), "a path enters 1-2 and leaves 1-3"),
        (told("1-1 4 5 1-2"), "a path leads to 1-2"),
        (proto::Path { raw: Vec::new(), ..good() }, "a path's header is malformed: "),
        (proto::Path { raw: raw(3)[..40].to_vec(), ..good() }, "a path's header is malformed: "),
        (proto::Path { raw: [raw(3), vec![0; 4]].concat(), ..good() }, "a path's header has 4 bytes too many"),
        (proto::Path { mtu: 0, ..good() }, "a path's mtu is 0"),
        (proto::Path { mtu: 100, ..good() }, "a path's mtu is 100"),
        (proto::Path { mtu: 65_536, ..good() }, "a path's mtu is 65536"),
        (proto::Path { interface: None, ..good() }, "\"\" is no IP:port of a border router"),
        (
            proto::Path { interface: Some(router("10.0.0.1")), ..good() },
            "\"10.0.0.1\" is no IP:port of a border router",
        ),
        (
            proto::Path { interface: Some(router("10.0.0.1:0")), ..good() },
            "\"10.0.0.1:0\" is no IP:port of a border router",
        ),
        (proto::Path { expiration: None, ..good() }, "a path has no expiry that can be"),
        (expires(-1), "a path has no expiry that can be"),
        (expires(i64::MAX), "a path has no expiry that can be"),
        (latency(3601), "a path's latency is 3601 s"),
        (latency(i64::MAX), "a path's latency is 9223372036854775807 s"),
        (proto::Path { bandwidth: vec![1; 4], ..good() }, "a path of 4 interfaces has 4 entries for bandwidth"),
        (
            proto::Path { latency: vec![ToldDuration::default()], ..good() },
            "a path of 4 interfaces has 1 entries for latency",
        ),
    ];
    let (mut paths, faults): (Vec<proto::Path>, Vec<&str>) = cases.into_iter().unzip();
    paths.push(good());
    let read = lookup(paths);
    assert_eq!(read.paths.len(), 1, "the good one stays: {:?}", read.paths);
    assert_eq!(read.malformed.len(), faults.len());
    for (index, (malformed, expected)) in read.malformed.iter().zip(faults).enumerate() {
        assert_eq!(malformed.index, index, "{malformed:?}");
        let fault = malformed.fault.to_string();
        assert!(
            fault == expected || expected.ends_with(": ") && fault.starts_with(expected),
            "{fault}, not {expected}"
        );
    }
}

#[test]
fn the_local_as_is_told() {
    let daemon = StandIn::with_table(table(Vec::new()));
    with_client(daemon.address(), LONG, async |client| {
        let local = client.local_as().await.expect("an AS");
        assert_eq!((local.isd_as, local.core, local.mtu), (as_number("1-1"), true, 1472));
        let interfaces = client.interfaces().await.expect("interfaces");
        let interfaces: Vec<String> = interfaces.iter().map(|(id, address)| format!("{id} {address}")).collect();
        assert_eq!(interfaces, ["1 10.0.0.1:30042", "2 [fd00::1]:30042"]);
        let range = client.port_range().await.expect("a range");
        assert_eq!(range, PortRange { first: 31_000, last: 32_767 });
        assert!(range.contains(31_000) && range.contains(32_767) && !range.contains(30_999) && !range.contains(32_768));
        let down = PathInterface { isd_as: as_number("1-1"), id: InterfaceId(1) };
        client.report_down(down).await.expect("it takes it");
    });
}

#[test]
fn an_as_may_dispatch_no_ports_or_all_and_wrong_ranges_are_refused() {
    for (ports, expected) in [
        ((0, 0), Ok(PortRange { first: 0, last: 0 })),
        ((1, 65_535), Ok(PortRange { first: 1, last: 65_535 })),
        ((2, 1), Err("ports 2 to 1 are no range")),
        ((1, 65_536), Err("65536 is no port")),
    ] {
        let daemon = StandIn::with_table(Table { ports, ..table(Vec::new()) });
        let found = with_client(daemon.address(), LONG, async |client| client.port_range().await);
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(error), Err(expected)) => assert!(words(&error).0.ends_with(expected), "{error:?}"),
            (found, expected) => panic!("{found:?}, not {expected:?}"),
        }
    }
}

#[test]
fn a_request_says_whether_to_ask_anew() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    let daemon = StandIn::start(move |_, message| {
        let request = proto::PathsRequest::decode(message).expect("a request");
        seen.lock().expect("nobody panicked").push((
            request.source_isd_as,
            request.destination_isd_as,
            request.refresh,
        ));
        Answer::Message(proto::PathsResponse::default().encode_to_vec())
    });
    with_client(daemon.address(), LONG, async |client| {
        for refresh in [Refresh::No, Refresh::Yes] {
            assert_eq!(client.paths(as_number("1-3"), refresh).await.expect("an answer"), Lookup::default());
        }
    });
    let destination = as_number("1-3").to_bits();
    assert_eq!(*asked.lock().expect("nobody panicked"), [(0, destination, false), (0, destination, true)]);
}

/// An error's words with those of its causes, and its hint.
fn words(error: &DaemonError) -> (String, String) {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    let words: Vec<String> = causes.map(ToString::to_string).collect();
    (words.join(": "), error.hint().unwrap_or_default())
}

#[test]
fn nobody_there_is_told_with_what_to_do() {
    let address =
        TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port nobody listens on");
    let error = with_client(address, LONG, async |client| client.local_as().await).expect_err("nobody is there");
    assert!(matches!(error.fault, DaemonFault::Unreachable { .. }), "{error:?}");
    let (words, hint) = words(&error);
    assert_eq!(
        words,
        format!("ask for the local as: reach the scion daemon at {address}: Connection refused (os error 111)")
    );
    assert_eq!(
        hint,
        "start it (systemctl start scion-daemon), or name the daemon's address: --daemon IP:PORT or SCION_DAEMON"
    );
}

#[test]
fn a_daemon_that_says_nothing_is_given_up_in_time() {
    let daemon = StandIn::start(|_, _| Answer::Silence);
    let begun = Instant::now();
    let error = with_client(daemon.address(), PATIENCE, async |client| client.local_as().await).expect_err("no answer");
    assert!(begun.elapsed() < LONG);
    let address = daemon.address();
    assert_eq!(
        words(&error).0,
        format!("ask for the local as: no answer from the scion daemon at {address} within 0.5 s")
    );
}

#[test]
fn what_a_daemon_cannot_do_is_told_in_its_words() {
    let daemon = StandIn::with_table(table(Vec::new()));
    let address = daemon.address();
    let error = with_client(address, LONG, async |client| client.paths(as_number("1-9"), Refresh::No).await);
    let (words, hint) = words(&error.expect_err("there are none"));
    assert_eq!(words, format!("look up paths to 1-9: the scion daemon at {address} says: no path found"));
    assert_eq!(hint, "if there is an AS 1-9, its beacons may not have come this far yet; ask again with --refresh");
}

#[test]
fn what_is_no_daemon_is_told() {
    // Another service of gRPC; and what does not speak it.
    let other = StandIn::start(|_, _| Answer::Error(12, "unknown service"));
    let deaf = TcpListener::bind("127.0.0.1:0").expect("it binds");
    let deaf_address = deaf.local_addr().expect("it has an address");
    std::thread::spawn(move || {
        let greet = |stream: std::io::Result<std::net::TcpStream>| {
            let mut stream = stream.expect("it accepts");
            let _ = std::io::Write::write_all(&mut stream, b"220 mail.example.org ESMTP\r\n");
            stream
        };
        // Nobody hangs up: what is wrong is what they say.
        let _open: Vec<_> = deaf.incoming().map(greet).collect();
    });
    for address in [other.address(), deaf_address] {
        let error = with_client(address, PATIENCE, async |client| client.local_as().await).expect_err("it is none");
        // A connection that breaks before the request is on it is made anew, until the time is over.
        if address == deaf_address && matches!(error.fault, DaemonFault::TimedOut { .. }) {
            continue;
        }
        let (words, hint) = words(&error);
        assert!(matches!(error.fault, DaemonFault::NoDaemon { .. }), "{error:?}");
        assert!(words.contains(&format!("what listens at {address} is no scion daemon (")), "{words}");
        assert!(hint.starts_with("name the daemon's address"), "{hint}");
    }
}

#[test]
fn a_message_that_is_none_is_told() {
    let daemon = StandIn::start(|_, _| Answer::Message(vec![0xff; 7]));
    let error = with_client(daemon.address(), LONG, async |client| client.local_as().await).expect_err("it is none");
    assert!(matches!(error.fault, DaemonFault::NoDaemon { .. } | DaemonFault::Refused { .. }), "{error:?}");
    let daemon =
        StandIn::start(|_, _| Answer::Message(proto::AsResponse { isd_as: 5, core: false, mtu: 1 }.encode_to_vec()));
    let error = with_client(daemon.address(), LONG, async |client| client.local_as().await).expect_err("it is none");
    assert!(words(&error).0.ends_with("0-5 is not one AS"), "{error:?}");
}

#[test]
fn a_connection_that_was_lost_is_made_anew() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let table = table(vec![told("1-1 4 5 1-3")]);
    let daemon = StandIn::start(move |method, asked| match counted.fetch_add(1, Ordering::Relaxed) {
        1 => Answer::HangUp,
        _ => table.answer(method, asked),
    });
    with_client(daemon.address(), LONG, async |client| {
        for _ in 0..3 {
            assert_eq!(client.paths(as_number("1-3"), Refresh::No).await.expect("an answer").paths.len(), 1);
        }
    });
    assert_eq!(calls.load(Ordering::Relaxed), 4, "the second one was asked twice");
}

#[test]
fn a_daemon_that_was_started_anew_is_found_again() {
    let told = || table(vec![told("1-1 4 5 1-3")]);
    let table = told();
    // An address that nobody else takes a port of meanwhile.
    let address = "127.30.25.5:0".parse().expect("an address");
    let daemon = StandIn::start_at(address, move |method, asked| table.answer(method, asked));
    let address = daemon.address();
    with_client(address, LONG, async |client| {
        client.local_as().await.expect("an answer");
        drop(daemon);
        client.local_as().await.expect_err("it is gone");
        let table = told();
        let _daemon = StandIn::start_at(address, move |method, asked| table.answer(method, asked));
        client.local_as().await.expect("an answer again");
    });
}
