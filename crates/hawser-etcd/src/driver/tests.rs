//! Which lists a driver takes. The rest runs against a real etcd (crates/hawser/tests).

use hawser_config::{PeerName, PublicKey};

use super::*;
use crate::client::Access;
use crate::keys::{MemberName, Prefix};
use crate::record::{Member, Peer};
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

/// A driver that remembers one peer, as of revision 20.
fn driver() -> Driver {
    let allowed_ips = vec!["10.1.0.0/16".parse().expect("a network")];
    let roster = Roster { peers: vec![HubPeer { name: name("home"), key: key(1), allowed_ips }], ..Roster::default() };
    let cache = Cache { roster, cluster: Some(CLUSTER), revision: Revision(20), ..Cache::default() };
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
    for (what, cluster, revision, peers, served) in [
        ("the last one went while it was away", CLUSTER, 21, &[][..], Some(0)),
        ("nothing happened since", CLUSTER, 20, &["home"], Some(1)),
        ("started as before, with nothing in it", CLUSTER, 1, &[], None),
        ("the same, and its members are there by now", CLUSTER, 19, &[], None),
        ("started otherwise, with nothing in it", 8, 90, &[], None),
        ("restored from a copy", CLUSTER, 15, &["home", "branch"], Some(2)),
    ] {
        let mut driver = driver();
        let entries = (1..).zip(peers).map(|(number, called)| entry(called, number)).collect();
        let taken = driver.take(Listed { cluster, revision: Revision(revision), entries });
        assert_eq!((taken.is_ok(), driver.view.roster.peers.len()), (served.is_some(), served.unwrap_or(1)), "{what}");
        let known = if served.is_some() { revision } else { 20 };
        assert_eq!(driver.view.revision, Revision(known), "{what}");
    }
}

#[test]
fn what_a_watch_told_is_known_after_it_and_who_is_deleted_goes() {
    let mut driver = driver();
    let listed = Listed { cluster: CLUSTER, revision: Revision(30), entries: vec![entry("home", 1)] };
    driver.take(listed).expect("it is the same etcd");
    let deleted = Change::Deleted { key: entry("home", 1).key, modified: Revision(40) };
    let watched = Watched { changes: vec![deleted], ..Watched::default() };
    let Heard::Changed(touched) = driver.state.hear(&driver.settings.prefix, watched) else { panic!("it goes on") };
    driver.tell(&touched);
    assert!(driver.view.roster.is_empty() && driver.view.revision == Revision(40));
}
