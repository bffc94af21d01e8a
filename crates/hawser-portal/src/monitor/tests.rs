//! A monitor that is shown one status after the other.

use super::*;
use crate::api::{Condition, Live, PathState, Span};

const EVERY: Duration = Duration::from_millis(200);

fn moment(reports: u32) -> Moment {
    let uptime = EVERY * reports;
    Moment { uptime, wall: UNIX_EPOCH + Duration::from_secs(1_000) + uptime }
}

/// A path that has sent so much, at a steady rate.
fn path(name: &str, id: u32, sent: u64) -> PathStatus {
    PathStatus {
        name: name.into(),
        state: PathState::Active,
        endpoint: Some("198.51.100.7:4920".into()),
        rtt_ms: Some(20.0),
        rate_mbps: 20.0,
        tx_bytes: sent,
        live: Live {
            id: Some(id),
            acked_packets: sent / 1_000,
            lost_packets: sent / 100_000,
            rtt_min_ms: Some(19.0),
            queue_ms: Some(1.0),
            ..Live::default()
        },
        ..PathStatus::default()
    }
}

fn status(paths: Vec<PathStatus>) -> Status {
    let peer: PeerStatus =
        serde_json::from_str(r#"{"name":"hub","handshake_age_s":1,"rx_bytes":0,"tx_bytes":0,"paths":[]}"#)
            .expect("a peer");
    Status { peers: vec![PeerStatus { paths, ..peer }], ..Status::default() }
}

fn monitor() -> Monitor {
    Monitor::new(moment(0), "")
}

fn kinds(monitor: &Monitor) -> Vec<(EventKind, String)> {
    monitor.events(0).events.into_iter().map(|event| (event.kind, event.path)).collect()
}

#[test]
fn rates_shares_and_history_are_those_of_the_counters() {
    let mut monitor = monitor();
    let mut last = status(Vec::new());
    for report in 0..=50 {
        let sent = u64::from(report) * 50_000;
        last = status(vec![path("dsl", 0, sent * 3), path("lte", 1, sent)]);
        monitor.look_at(moment(report), &mut last);
    }
    let [dsl, lte] = &last.peers[0].paths[..] else { panic!("two paths") };
    assert!((dsl.live.tx_mbps - 6.0).abs() < 0.01 && (lte.live.tx_mbps - 2.0).abs() < 0.01, "{dsl:?}");
    assert!((dsl.live.share_pct - 75.0).abs() < 0.01, "{}", dsl.live.share_pct);
    assert_eq!(dsl.live.condition, Condition::Well);
    let history = monitor.history(&HistoryQuestion { path: Some("dsl".into()), ..Default::default() });
    let [dsl] = &history.paths[..] else { panic!("one path") };
    let column = |name: &str| {
        let at = history.metrics.iter().position(|metric| metric == name).expect("it is there");
        *dsl.columns[at].last().expect("a row")
    };
    let near =
        |figure: Option<u64>, expected: f64| figure.is_some_and(|f| (f as f64 - expected).abs() < expected * 0.01);
    assert!(near(column("tx_bps"), 6e6), "{:?}", column("tx_bps"));
    assert!(near(column("capacity_bps"), 20e6) && near(column("rtt_us"), 20e3) && near(column("share_ppm"), 75e4));
    // Seven or eight of 750 in this second.
    assert!(column("loss_ppm").is_some_and(|ppm| (9_000..11_000).contains(&ppm)), "{:?}", column("loss_ppm"));
    assert_eq!((history.step_s, history.end_unix_ms), (Span::Hour.step_s(), 1_010_000));
    assert_eq!(dsl.columns[0].len(), 10);
}

#[test]
fn a_path_is_known_by_its_number_and_a_new_one_takes_the_place_of_its_link() {
    let mut monitor = monitor();
    for report in 0..10 {
        monitor.look_at(moment(report), &mut status(vec![path("any", 1, 0), path("any", 2, 0)]));
    }
    // The first goes; the second is still the second.
    monitor.look_at(moment(10), &mut status(vec![path("any", 2, 0)]));
    let seen: Vec<_> = monitor.paths.iter().filter(|(_, (_, seen))| *seen == moment(10).uptime).collect();
    assert_eq!((seen[0].0.place, seen[0].1.0.id), (1, Some(2)));
    // A new one comes in the first one's place, and leads elsewhere.
    let other = PathStatus { endpoint: Some("192.0.2.1:4920".into()), ..path("any", 7, 0) };
    monitor.look_at(moment(11), &mut status(vec![other, path("any", 2, 0)]));
    assert_eq!(monitor.paths.keys().map(|key| key.place).collect::<Vec<_>>(), [0, 1]);
    let roamed =
        monitor.events(0).events.into_iter().find(|event| event.kind == EventKind::Roaming).expect("it roamed");
    assert_eq!(roamed.cause, "198.51.100.7:4920 became 192.0.2.1:4920");
}

#[test]
fn what_happens_is_told_with_time_and_cause_and_from_a_number_on() {
    let mut monitor = monitor();
    let cut =
        PathStatus { state: PathState::Down, reason: Some(crate::api::NOTHING_COMES_BACK.into()), ..path("dsl", 0, 0) };
    (0..10).for_each(|report| monitor.look_at(moment(report), &mut status(vec![path("dsl", 0, 0)])));
    (10..13).for_each(|report| monitor.look_at(moment(report), &mut status(vec![cut.clone()])));
    monitor.note(moment(13), EventKind::CapReached, "", "lte", "5.0 GB");
    let (dsl, lte, none) = (String::from("dsl"), String::from("lte"), String::new());
    let expected = [
        (EventKind::PortalStarted, none),
        (EventKind::LinkUp, dsl.clone()),
        (EventKind::Cut, dsl),
        (EventKind::CapReached, lte),
    ];
    assert_eq!(kinds(&monitor), expected);
    let told = monitor.events(2);
    assert_eq!((told.latest, told.started_unix_ms, told.events.len()), (4, 1_000_000, 2));
    assert_eq!((told.events[0].time_unix_ms, told.events[0].cause.as_str()), (1_002_000, "nothing comes back"));
}

#[test]
fn paths_without_end_take_no_more_memory() {
    let mut monitor = monitor();
    for report in 0..2_000 {
        let paths = (0..3).map(|at| path(&format!("link{}", report * 3 + at), at, 0)).collect();
        monitor.look_at(moment(report), &mut status(paths));
    }
    assert!(monitor.paths.len() <= 3 * 300 + 3, "{} are watched", monitor.paths.len());
    assert!(monitor.history(&HistoryQuestion::default()).paths.len() <= history::PATHS);
}
