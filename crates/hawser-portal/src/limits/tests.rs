use super::*;
use crate::api::{DataCapStatus, Live, PathLoad};

/// A second and a half between the two documents.
const ELAPSED: f64 = 1.5;

/// A path that sent `mbps` and was idle for this part of the time; its delay, and whether bulk flows use it.
fn path(name: &str, mbps: f64, idle: f64) -> [PathStatus; 2] {
    let was = PathStatus {
        name: name.into(),
        transport: "udp".into(),
        state: PathState::Active,
        reason: None,
        interface: None,
        endpoint: Some(format!("{name}.example")),
        metric: 0,
        rtt_ms: Some(20.0),
        rate_mbps: mbps,
        loss_pct: 0.0,
        cwnd_bytes: 0,
        mtu: 1472,
        rx_bytes: 0,
        tx_bytes: 7,
        without_gso: false,
        instead_of: None,
        scion: None,
        live: Live { active_set: true, ..Live::default() },
        load: PathLoad { idle_s: 3.0, delay_ms: 10.0, peak_mbps: mbps, ..PathLoad::default() },
    };
    let load = PathLoad { idle_s: 3.0 + idle * ELAPSED, queue_ms: 12.0, ..was.load };
    let sent = (mbps * ELAPSED * 125_000.0) as u64;
    let is = PathStatus { tx_bytes: 7 + sent, load, ..was.clone() };
    [was, is]
}

/// The verdict on these paths, of which the peer got all that they sent.
fn judged(paths: &[[PathStatus; 2]], links: Vec<LinkStatus>, busy: f64) -> Limit {
    let document = |at: usize| {
        let paths: Vec<PathStatus> = paths.iter().map(|path| path[at].clone()).collect();
        let peer = PeerStatus {
            name: "hub".into(),
            handshake_age_s: Some(1.0),
            protection: None,
            cipher: None,
            protocol: None,
            refused: None,
            rx_bytes: 0,
            tx_bytes: paths.iter().map(|path| path.tx_bytes).sum(),
            paths,
            names: Vec::new(),
            fec: Default::default(),
            queued_bytes: 0,
            limit: None,
            speed_refused: false,
            hub: None,
        };
        let at = at as f64;
        let (uptime_s, packet_busy_s) = (10.0 + at * ELAPSED, 1.0 + at * busy * ELAPSED);
        Status { peers: vec![peer], links: links.clone(), uptime_s, packet_busy_s, ..Status::default() }
    };
    judge(&document(0), &document(1), "hub").expect("a verdict")
}

fn with(mut path: [PathStatus; 2], change: impl Fn(&mut PathStatus)) -> [PathStatus; 2] {
    change(&mut path[1]);
    path
}

fn down(path: &mut PathStatus) {
    (path.state, path.reason) = (PathState::Down, Some("nothing comes back".into()));
}

#[test]
fn what_limits_is_named_with_its_links() {
    let (full, idle) = (path("one", 20.0, 0.1), path("two", 5.0, 0.8));
    let changed = |change: fn(&mut PathStatus)| with(path("two", 5.0, 0.1), change);
    let none: Vec<&str> = Vec::new();
    let table = [
        ("hardly anything", vec![path("one", 0.05, 1.0)], 0.0, Cause::Nothing, none.clone()),
        ("a path with room", vec![path("one", 5.0, 0.7)], 0.0, Cause::Sender, none.clone()),
        ("a thread that never rests", vec![full.clone()], 0.97, Cause::Processor, none.clone()),
        ("one full path", vec![full.clone()], 0.2, Cause::Links, vec!["one"]),
        ("two full paths", vec![full.clone(), path("two", 5.0, 0.1)], 0.2, Cause::Links, vec!["one", "two"]),
        (
            "a slower one with room",
            vec![full.clone(), with(idle.clone(), |p| p.load.delay_ms = 30.0)],
            0.2,
            Cause::Links,
            vec!["one"],
        ),
        (
            "the fastest with room",
            vec![with(full.clone(), |p| p.load.delay_ms = 30.0), idle],
            0.2,
            Cause::Sender,
            none.clone(),
        ),
        ("one down", vec![full.clone(), changed(down)], 0.2, Cause::Links, vec!["two"]),
        ("all down", vec![changed(down)], 0.0, Cause::Links, vec!["two"]),
        ("loss", vec![full.clone(), changed(|p| p.loss_pct = 5.0)], 0.2, Cause::Links, vec!["two"]),
        ("long", vec![full.clone(), changed(|p| p.live.active_set = false)], 0.2, Cause::Links, vec!["two"]),
        ("faded", vec![full.clone(), changed(|p| p.load.peak_mbps = 15.0)], 0.2, Cause::Links, vec!["two"]),
        ("stands by", vec![full.clone(), changed(|p| p.metric = 1)], 0.2, Cause::Links, vec!["one"]),
        ("barred", vec![full.clone(), changed(|p| p.load.barred = true)], 0.2, Cause::Links, vec!["two"]),
        (
            "down and lossy",
            vec![with(full.clone(), |p| p.loss_pct = 9.0), changed(down)],
            0.2,
            Cause::Links,
            vec!["two"],
        ),
        (
            "one queue",
            [full, path("two", 5.0, 0.1)].map(|path| with(path, |p| p.load.shares_queue = true)).to_vec(),
            0.2,
            Cause::CommonLine,
            none,
        ),
    ];
    for (what, paths, busy, cause, links) in table {
        let limit = judged(&paths, Vec::new(), busy);
        assert_eq!((limit.cause, limit.links), (cause, links.iter().map(ToString::to_string).collect()), "{what}");
    }
}

#[test]
fn a_link_that_was_told_to_is_held() {
    let link = |name: &str, max_rate_mbps, data_cap| LinkStatus {
        name: name.into(),
        weight: 1,
        max_rate_mbps,
        data_cap,
        ..LinkStatus::default()
    };
    let cap = DataCapStatus { used_bytes: 7, cap_bytes: 7, reached: true };
    let links = vec![link("one", Some(5.5), None), link("two", None, Some(cap))];
    let two = with(path("two", 0.0, 1.0), |path| path.load.barred = true);
    let limit = judged(&[path("one", 5.0, 0.1), two], links, 0.1);
    assert_eq!(limit.links, ["two"]);
    assert_eq!(
        limit.text,
        "the links: two carries nothing: its data cap is reached; one is held to its max_rate of 5.5 Mbit/s"
    );
}

#[test]
fn a_path_is_suspected_for_a_moment_without_being_down() {
    let suspect = |path: &mut PathStatus| path.state = PathState::Suspect;
    let moment = with(path("one", 5.0, 0.1), suspect);
    assert_eq!(judged(std::slice::from_ref(&moment), Vec::new(), 0.1).paths[0].reason, Reason::Full);
    let [mut was, is] = moment;
    suspect(&mut was);
    assert_eq!(judged(&[[was, is]], Vec::new(), 0.1).paths[0].reason, Reason::Down);
}

#[test]
fn paths_of_one_name_are_told_by_their_far_ends() {
    let named = |end: &str| path("0.0.0.0:4920", 5.0, 0.1).map(|p| PathStatus { endpoint: Some(end.into()), ..p });
    let mut other = named("192.0.2.2:5");
    other.iter_mut().for_each(|path| path.live.id = Some(2));
    assert_eq!(judged(&[named("192.0.2.1:5"), other], Vec::new(), 0.1).links, ["192.0.2.1:5", "192.0.2.2:5"]);
}

#[test]
fn documents_that_are_too_near_or_of_two_portals_say_nothing() {
    let document = |uptime_s| Status { uptime_s, ..Status::default() };
    assert_eq!(judge(&document(1.0), &document(3.0), "hub"), None, "there is no such peer");
    let [was, _] = path("one", 1.0, 0.0);
    let limit = |before: f64, now: f64| {
        let peer = |tx_bytes| PeerStatus { tx_bytes, paths: vec![was.clone()], ..peer() };
        let with = |uptime_s, tx_bytes| Status { peers: vec![peer(tx_bytes)], ..document(uptime_s) };
        judge(&with(before, 9), &with(now, 9), "hub")
    };
    assert!(limit(1.0, 1.5).is_none() && limit(5.0, 1.0).is_none() && limit(1.0, 3.0).is_some());
}

fn peer() -> PeerStatus {
    PeerStatus {
        name: "hub".into(),
        handshake_age_s: None,
        protection: None,
        cipher: None,
        protocol: None,
        refused: None,
        rx_bytes: 0,
        tx_bytes: 0,
        paths: Vec::new(),
        names: Vec::new(),
        fec: Default::default(),
        queued_bytes: 0,
        limit: None,
        speed_refused: false,
        hub: None,
    }
}
