//! Which lists a driver takes. The rest runs against a real etcd (crates/hawser/tests).

use std::collections::BTreeMap;

use hawser_config::{PeerName, PublicKey};

use super::*;
use crate::client::Access;
use crate::keys::{MemberName, Prefix};
use crate::record::{Member, Peer, Revocation};
use crate::roster::{Cache, HubPeer, Roster};
use crate::state::{Change, Entry};

const CLUSTER: u64 = 7;

fn key(number: u8) -> PublicKey {
    PublicKey::new([number; 32]).expect("not zero")
}

fn name(text: &str) -> PeerName {
    PeerName::parse(text).expect("a name")
}

fn entry(called: &str, number: u8) -> Entry {
    let allowed_ips = vec![format!("10.{number}.0.0/16").parse().expect("a network")];
    let value = Peer { key: key(number), allowed_ips }.encode();
    let key = Prefix::new("/hawser/hub/").full(&Key::Peer(name(called)));
    Entry { key, value, created: Revision(1), modified: Revision(1) }
}

/// Of which history they are.
fn mark(text: &str) -> Entry {
    let key = Prefix::new("/hawser/hub/").full(&Key::History);
    Entry { key, value: text.as_bytes().to_vec(), created: Revision(1), modified: Revision(1) }
}

/// A driver that remembers one peer, as of revision 20 of the history "one".
fn driver() -> Driver {
    let allowed_ips = vec!["10.1.0.0/16".parse().expect("a network")];
    let roster = Roster { peers: vec![HubPeer { name: name("home"), key: key(1), allowed_ips }], ..Roster::default() };
    let history = Some(History("one".to_owned()));
    let cache = Cache { roster, cluster: Some(CLUSTER), revision: Revision(20), history, ..Cache::default() };
    let member = Member { key: key(9), endpoints: Vec::new(), weight: 1, rack: 0, version: "0".to_owned() };
    Driver::new(Settings {
        access: Access { urls: Vec::new(), tls: None },
        prefix: Prefix::new("/hawser/hub/"),
        lease: Duration::from_secs(10),
        name: MemberName(name("zurich")),
        member,
        cache,
        clock: || Time::ZERO,
    })
    .0
}

#[test]
fn an_etcd_that_was_made_anew_sends_no_peers_away() {
    for (what, cluster, revision, history, peers, served) in [
        ("the last one went while it was away", CLUSTER, 21, Some("one"), &[][..], Some(0)),
        ("nothing happened since", CLUSTER, 20, Some("one"), &["home"], Some(1)),
        ("started as before, with nothing in it", CLUSTER, 1, None, &[], None),
        ("the same, and its members are there by now", CLUSTER, 19, Some("other"), &[], None),
        ("the same, and they have written more than the old ones", CLUSTER, 21, Some("other"), &[], None),
        ("the same, by members of older programs", CLUSTER, 21, None, &[], None),
        ("the same, and its peers are there again", CLUSTER, 90, Some("other"), &["home", "branch"], Some(2)),
        ("started otherwise, with nothing in it", 8, 90, Some("other"), &[], None),
        ("restored from a copy", CLUSTER, 15, Some("one"), &["home", "branch"], Some(2)),
    ] {
        let mut driver = driver();
        let peers = (1..).zip(peers).map(|(number, called)| entry(called, number));
        let entries = history.map(mark).into_iter().chain(peers).collect();
        let taken = driver.take(Listed { cluster, revision: Revision(revision), entries });
        assert_eq!((taken.is_ok(), driver.view.roster.peers.len()), (served.is_some(), served.unwrap_or(1)), "{what}");
        let known = if served.is_some() { revision } else { 20 };
        assert_eq!(driver.view.revision, Revision(known), "{what}");
        let known = if served.is_some() { history } else { Some("one") };
        assert_eq!(driver.view.history, known.map(|text| History(text.to_owned())), "{what}");
    }
}

#[test]
fn where_no_mark_was_known_revisions_alone_tell_another_history() {
    for (what, revision, history, is_taken) in [
        ("a member was upgraded", 21, Some("one"), true),
        ("no member is, yet", 21, None, true),
        ("made anew", 19, Some("other"), false),
    ] {
        let mut driver = driver();
        driver.view.history = None;
        let entries = history.map(mark).into_iter().collect();
        let taken = driver.take(Listed { cluster: CLUSTER, revision: Revision(revision), entries });
        assert_eq!(taken.is_ok(), is_taken, "{what}");
    }
}

#[test]
fn whom_another_history_revokes_no_more_is_told_and_a_copy_is_marked_anew() {
    for (what, cluster, revision, history, lost, is_copy) in [
        ("it was taken back while this member was away", CLUSTER, 21, Some("one"), false, false),
        ("restored from a copy", CLUSTER, 15, Some("one"), true, true),
        ("the same, with servers that were started otherwise", 8, 21, Some("one"), true, true),
        ("the same, and another member marked it", CLUSTER, 21, Some("other"), true, false),
        ("a copy from before there were marks", CLUSTER, 21, None, true, false),
    ] {
        let mut driver = driver();
        Arc::make_mut(&mut driver.view.roster).revoked =
            BTreeMap::from([(key(1), name("home")), (key(3), name("gone"))]);
        let gone = Prefix::new("/hawser/hub/").full(&Key::Revoked(key(3)));
        let gone = Entry { key: gone, value: Revocation { name: name("gone") }.encode(), ..entry("gone", 3) };
        let entries = history.map(mark).into_iter().chain([entry("home", 1), gone]).collect();
        let taken = driver.take(Listed { cluster, revision: Revision(revision), entries });
        assert_eq!(taken, Ok(is_copy), "{what}");
        let expected = lost.then(|| (key(1), name("home"))).into_iter().collect::<BTreeMap<_, _>>();
        assert_eq!(*driver.view.lost, expected, "{what}");
    }
}

#[test]
fn whom_somebody_added_anew_after_all_that_a_member_knows_or_after_the_copy_was_not_lost() {
    // When the copy was marked, when the peer was added there, and whether it is revoked still.
    for (marked, created, lost) in [(16, 12, true), (16, 17, false), (16, 25, false), (41, 19, true), (41, 21, false)] {
        let mut driver = driver();
        Arc::make_mut(&mut driver.view.roster).revoked = BTreeMap::from([(key(1), name("home"))]);
        let mark = Entry { modified: Revision(marked), ..mark("other") };
        let home = Entry { created: Revision(created), ..entry("home", 1) };
        let listed = Listed { cluster: CLUSTER, revision: Revision(50), entries: vec![mark, home] };
        assert_eq!(driver.take(listed), Ok(false));
        assert_eq!(driver.view.lost.contains_key(&key(1)), lost, "marked at {marked}, added at {created}");
    }
}

#[test]
fn who_knows_no_mark_replaces_none() {
    let mut driver = driver();
    driver.view.history = None;
    let entries = vec![mark("other"), entry("home", 1)];
    assert_eq!(driver.take(Listed { cluster: CLUSTER, revision: Revision(19), entries }), Ok(false));
}

#[test]
fn what_a_watch_told_is_known_after_it_and_who_is_deleted_goes() {
    let mut driver = driver();
    let listed = Listed { cluster: CLUSTER, revision: Revision(30), entries: vec![mark("one"), entry("home", 1)] };
    driver.take(listed).expect("it is the same etcd");
    let deleted = Change::Deleted { key: entry("home", 1).key, modified: Revision(40) };
    let watched = Watched { changes: vec![deleted], ..Watched::default() };
    let Heard::Changed(touched) = driver.state.hear(&driver.settings.prefix, watched) else { panic!("it goes on") };
    driver.tell(&touched);
    assert!(driver.view.roster.is_empty() && driver.view.revision == Revision(40));
}

#[test]
fn whether_etcd_has_a_revocation_that_it_was_given_is_unknown_until_it_tells() {
    let mut driver = driver();
    let listed = Listed { cluster: CLUSTER, revision: Revision(30), entries: vec![mark("one"), entry("home", 1)] };
    driver.take(listed).expect("it is the same etcd");
    driver.note_given(&Own { revoked: BTreeMap::from([(key(1), name("home"))]), ..Own::default() });
    assert!(driver.view.is_unknown(&key(1)) && !driver.view.is_unknown(&key(2)));
    let (at, value) = (Key::Revoked(key(1)), Revocation { name: name("home") }.encode());
    let at = driver.settings.prefix.full(&at);
    let put = Change::Put(Entry { key: at, value, created: Revision(40), modified: Revision(40) });
    let watched = Watched { changes: vec![put], ..Watched::default() };
    let Heard::Changed(touched) = driver.state.hear(&driver.settings.prefix, watched) else { panic!("it goes on") };
    driver.tell(&touched);
    assert!(driver.state.is_revoked(&key(1)) && !driver.view.is_unknown(&key(1)));
}
