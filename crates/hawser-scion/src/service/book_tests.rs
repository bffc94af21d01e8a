use super::*;
use crate::path::{Dataplane, Fingerprint, InterfaceId, PathInterface};

const HOUR: Duration = Duration::from_secs(3600);

fn as_2() -> IsdAs {
    "1-2".parse().expect("an AS")
}

/// Both clocks go on alike.
fn after(begin: Now, time: Duration) -> Now {
    Now { wall: begin.wall + time, mono: begin.mono + time }
}

fn link() -> [PathInterface; 2] {
    ["1-1", "1-2"].map(|isd_as| PathInterface { isd_as: isd_as.parse().expect("an AS"), id: InterfaceId(4) })
}

/// A path that lasts so long from `now` on.
fn path(now: Now, left: Duration) -> Path {
    Path {
        source: "1-1".parse().expect("an AS"),
        destination: as_2(),
        dataplane: Dataplane::Empty,
        next_hop: None,
        mtu: 1472,
        interfaces: Fingerprint::new(link()),
        latency: vec![None],
        bandwidth: vec![None],
        expiry: now.wall + left,
    }
}

/// A book in which one path was asked for and answered.
fn answered(now: Now, left: Duration) -> Book {
    let mut book = Book::default();
    assert_eq!(book.look_up(as_2(), now), Known::Asked);
    assert_eq!(book.due(now), [(as_2(), Refresh::No)]);
    book.answered(as_2(), vec![path(now, left)], now);
    book
}

#[test]
fn what_is_known_is_told_and_asked_for_again_every_minute() {
    let now = Now::read();
    let mut book = answered(now, HOUR);
    assert_eq!(book.next_due(), Some(now.mono + EVERY));
    let later = after(now, EVERY);
    assert_eq!(book.look_up(as_2(), later), Known::Fresh(vec![path(now, HOUR)]));
    assert_eq!(book.due(later), [(as_2(), Refresh::No)]);
    assert_eq!((book.due(later), book.next_due()), (vec![], None), "it is asked once");
}

#[test]
fn the_daemon_asks_anew_ahead_of_the_first_expiry() {
    let now = Now::read();
    for (left, rest, refresh) in [
        (HOUR, EVERY, Refresh::No),
        (MARGIN + EVERY, EVERY, Refresh::No),
        (MARGIN + EVERY / 2, EVERY / 2, Refresh::Yes),
        (MARGIN + AT_MOST_EVERY / 2, AT_MOST_EVERY, Refresh::Yes),
        (MARGIN, EVERY, Refresh::Yes),
        (EVERY, EVERY, Refresh::Yes),
    ] {
        let mut book = answered(now, left);
        assert_eq!(book.next_due(), Some(now.mono + rest), "{left:?}");
        assert_eq!(book.due(after(now, rest)), [(as_2(), refresh)], "{left:?}");
    }
}

#[test]
fn whoever_asks_for_a_path_that_expires_soon_waits_for_another_but_not_twice_a_second() {
    let now = Now::read();
    let mut book = answered(now, MARGIN / 2);
    let soon = after(now, AT_MOST_EVERY / 2);
    assert!(matches!(book.look_up(as_2(), soon), Known::Fresh(paths) if paths.len() == 1));
    let later = after(now, AT_MOST_EVERY);
    assert_eq!(book.look_up(as_2(), later), Known::Asked);
    assert_eq!(book.due(later), [(as_2(), Refresh::Yes)]);
    assert_eq!(book.look_up(as_2(), later), Known::Asked, "while the daemon is asked");
}

#[test]
fn where_there_is_no_path_it_is_asked_for_every_other_second() {
    let now = Now::read();
    let mut book = answered(now, HOUR);
    book.answered(as_2(), Vec::new(), now);
    assert_eq!(book.next_due(), Some(now.mono + EVERY_WHILE_NONE));
    assert_eq!(book.look_up(as_2(), after(now, AT_MOST_EVERY)), Known::Asked);
}

#[test]
fn a_daemon_that_fails_is_asked_again_ever_later_and_what_is_known_stands() {
    let now = Now::read();
    let mut book = answered(now, HOUR);
    let mut at = after(now, EVERY + AT_MOST_EVERY);
    assert_eq!(book.due(at).len(), 1);
    for millis in [500, 1000, 2000, 4000, 8000, 10_000, 10_000] {
        book.failed(as_2(), at);
        assert_eq!(book.look_up(as_2(), at), Known::Old(vec![path(now, HOUR)]), "nobody waits meanwhile");
        at = after(at, Duration::from_millis(millis));
        assert_eq!(book.next_due(), Some(at.mono));
        assert_eq!(book.due(at).len(), 1);
    }
    book.answered(as_2(), vec![path(at, HOUR)], at);
    book.failed(as_2(), at);
    assert_eq!(book.next_due(), Some(at.mono + FIRST_RETRY), "the wait began anew");
}

#[test]
fn what_expired_is_not_told() {
    let now = Now::read();
    let book = answered(now, EVERY);
    assert_eq!(book.known(as_2(), after(now, EVERY / 2)).len(), 1);
    assert_eq!(book.known(as_2(), after(now, EVERY)), []);
}

#[test]
fn a_death_has_the_daemon_ask_anew_but_not_twice_a_second() {
    let now = Now::read();
    let mut book = answered(now, HOUR);
    let [_, far] = link();
    book.down(&DeadPart::External(PathInterface { id: InterfaceId(5), ..far }), now);
    assert_eq!(book.next_due(), Some(now.mono + EVERY), "it is on no path");
    book.down(&DeadPart::External(far), now);
    assert_eq!(book.next_due(), Some(now.mono + AT_MOST_EVERY));
    assert_eq!(book.due(after(now, AT_MOST_EVERY)), [(as_2(), Refresh::Yes)]);
}

#[test]
fn what_nobody_uses_is_forgotten() {
    let now = Now::read();
    let mut book = answered(now, HOUR);
    let late = after(now, FORGET_AFTER);
    book.keep(as_2(), after(now, EVERY));
    assert_eq!(book.due(late).len(), 1, "it was used");
    book.answered(as_2(), vec![path(late, HOUR)], late);
    assert!(book.has(as_2()));
    assert!(book.due(after(late, EVERY)).is_empty() && !book.has(as_2()));
}
