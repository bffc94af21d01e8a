use proptest::prelude::*;

use super::*;

const PREFIX: &str = "/hawser/hub/";
const CLUSTER: u64 = 7;

fn prefix() -> Prefix {
    Prefix::new(PREFIX)
}

fn key(number: u8) -> PublicKey {
    PublicKey::new([number.max(1); 32]).expect("not zero")
}

fn name(text: &str) -> PeerName {
    PeerName::parse(text).expect("a name")
}

fn entry(key: &Key, value: Vec<u8>, at: i64) -> Entry {
    Entry { key: prefix().full(key), value, created: Revision(at), modified: Revision(at) }
}

fn peer(called: &str, number: u8, net: &str, at: i64) -> Entry {
    let value = Peer { key: key(number), allowed_ips: vec![net.parse().expect("a network")] };
    entry(&Key::Peer(name(called)), value.encode(), at)
}

fn member(called: &str, number: u8, rack: u32, at: i64) -> Entry {
    let value = Member { key: key(number), endpoints: Vec::new(), weight: 1, rack, version: "0.2.0".to_owned() };
    entry(&Key::Member(MemberName(name(called))), value.encode(), at)
}

fn revoked(called: &str, number: u8, at: i64) -> Entry {
    entry(&Key::Revoked(key(number)), Revocation { name: name(called) }.encode(), at)
}

fn listed(entries: Vec<Entry>) -> State {
    let mut state = State::default();
    state.replace(&prefix(), CLUSTER, Revision(10), entries);
    state
}

fn changes(changes: Vec<Change>) -> Watched {
    Watched { changes, ..Watched::default() }
}

fn served(state: &State) -> Vec<String> {
    state.roster().peers.iter().map(|peer| peer.name.to_string()).collect()
}

#[test]
fn a_list_and_then_changes_say_whom_members_serve() {
    let mut state = listed(vec![peer("home", 1, "10.1.0.0/16", 3), peer("branch", 2, "10.2.0.0/16", 2)]);
    assert_eq!(served(&state), ["branch", "home"], "in the order in which they came");
    let roster = Touched { roster: true, ..Touched::default() };
    let table = [
        ("one comes", vec![Change::Put(peer("shop", 3, "10.3.0.0/16", 11))], &["branch", "home", "shop"][..]),
        ("one is revoked", vec![Change::Put(revoked("home", 1, 12))], &["branch", "shop"]),
        (
            "one goes, and another comes at once",
            vec![
                Change::Deleted { key: prefix().full(&Key::Peer(name("branch"))), modified: Revision(13) },
                Change::Put(peer("depot", 4, "10.2.0.0/16", 13)),
            ],
            &["shop", "depot"],
        ),
        (
            "a revocation is taken back",
            vec![Change::Deleted { key: prefix().full(&Key::Revoked(key(1))), modified: Revision(14) }],
            &["home", "shop", "depot"],
        ),
    ];
    for (what, events, expected) in table {
        let heard = state.hear(&prefix(), changes(events.clone()));
        assert_eq!(heard, Heard::Changed(roster.clone()), "{what}");
        assert_eq!(served(&state), expected, "{what}");
        let again = state.hear(&prefix(), changes(events));
        assert_eq!(again, Heard::Changed(Touched::default()), "{what}: heard twice");
    }
}

#[test]
fn of_two_that_claim_the_same_the_first_has_it_everywhere() {
    let state = listed(vec![
        peer("a", 1, "10.1.0.0/16", 2),
        peer("b", 1, "10.2.0.0/16", 3),
        peer("c", 3, "10.1.0.0/16", 1),
        peer("d", 4, "10.2.0.0/16", 5),
        peer("e", 5, "10.5.0.0/16", 6),
        revoked("e", 5, 7),
    ]);
    let roster = state.roster();
    assert_eq!(served(&state), ["c", "b"]);
    let why = |of: &str| roster.refused[&name(of)].as_str();
    assert_eq!([why("a"), why("d"), why("e")], ["c has 10.1.0.0/16", "b has 10.2.0.0/16", "its key is revoked"]);
}

#[test]
fn a_peer_that_cannot_come_is_told_why() {
    let state = listed(vec![peer("a", 1, "10.1.0.0/16", 2), revoked("gone", 9, 3)]);
    let new = |called: &str, number, net: &str| {
        let allowed_ips = vec![net.parse().expect("a network")];
        state.objection(&HubPeer { name: name(called), key: key(number), allowed_ips })
    };
    assert_eq!(new("b", 2, "10.2.0.0/16"), None);
    assert_eq!(new("a", 2, "10.2.0.0/16").as_deref(), Some("the name is taken"));
    assert_eq!(new("b", 1, "10.2.0.0/16").as_deref(), Some("a has its key"));
    assert_eq!(new("b", 2, "10.1.0.0/16").as_deref(), Some("a has 10.1.0.0/16"));
    assert_eq!(new("b", 9, "10.2.0.0/16").as_deref(), Some("its key is revoked"));
}

#[test]
fn a_connection_goes_on_where_the_last_one_ended_unless_it_is_another_history() {
    let mut state = State::default();
    let mark = History::new(0xab);
    assert_eq!(mark.0, r#"{"v":1,"id":"000000000000000000000000000000ab"}"#);
    assert_eq!(state.begin(CLUSTER, Revision(5), Some(&mark)), Begin::List, "nothing is known");
    state.replace(&prefix(), CLUSTER, Revision(10), Vec::new());
    assert_eq!(state.begin(CLUSTER, Revision(10), None), Begin::From(Revision(11)));
    assert_eq!(state.begin(CLUSTER, Revision(99), None), Begin::From(Revision(11)));
    assert_eq!(state.begin(CLUSTER, Revision(99), Some(&mark)), Begin::From(Revision(11)), "it was marked since");
    assert_eq!(state.begin(CLUSTER, Revision(9), None), Begin::List, "it was restored from a copy");
    assert_eq!(state.begin(CLUSTER + 1, Revision(99), None), Begin::List, "it is another cluster");
    state.hear(&prefix(), Watched { complete: Some(Revision(40)), ..Watched::default() });
    assert_eq!(state.begin(CLUSTER, Revision(50), None), Begin::From(Revision(41)), "nothing happened up to there");
}

#[test]
fn an_etcd_that_was_made_anew_is_another_history_however_much_was_written_there() {
    let mut state = listed(Vec::new());
    let (one, other) = (History::new(1), History::new(2));
    let marked = Change::Put(entry(&Key::History, one.0.clone().into_bytes(), 11));
    let heard = state.hear(&prefix(), changes(vec![marked]));
    assert_eq!(heard, Heard::Changed(Touched { roster: true, ..Touched::default() }), "it is to be remembered");
    assert_eq!(state.history(), Some((Revision(11), &one)));
    for (history, expected) in
        [(Some(&one), Begin::From(Revision(12))), (Some(&other), Begin::List), (None, Begin::List)]
    {
        assert_eq!(state.begin(CLUSTER, Revision(99), history), expected, "{history:?}");
    }
    let gone = Change::Deleted { key: prefix().full(&Key::History), modified: Revision(12) };
    state.hear(&prefix(), changes(vec![gone]));
    assert_eq!((state.history(), state.faults().count()), (None, 0));
}

#[test]
fn a_watch_that_missed_something_says_so() {
    let mut state = listed(vec![peer("a", 1, "10.1.0.0/16", 2)]);
    let before = state.clone();
    let compacted = Watched { compacted: Some(Revision(90)), canceled: Some("compacted".into()), ..Watched::default() };
    assert_eq!(state.hear(&prefix(), compacted), Heard::ListAgain);
    let lost = Watched { canceled: Some("no leader".into()), ..Watched::default() };
    assert_eq!(state.hear(&prefix(), lost), Heard::Lost("no leader".into()));
    assert_eq!(state, before, "what was known holds");
}

#[test]
fn what_is_no_record_serves_nobody_and_is_told_and_a_revocation_counts_all_the_same() {
    let mut state = listed(vec![peer("a", 1, "10.1.0.0/16", 2), peer("b", 2, "10.2.0.0/16", 3)]);
    let garbage = |key: &Key| Change::Put(entry(key, b"{\"v\":9}".to_vec(), 11));
    let (a, b) = (Key::Peer(name("a")), Key::Revoked(key(2)));
    state.hear(&prefix(), changes(vec![garbage(&a), garbage(&b)]));
    assert_eq!(served(&state), Vec::<String>::new());
    assert_eq!(state.faults().map(|(key, _)| key.clone()).collect::<Vec<_>>(), [a, b]);
    state.hear(&prefix(), changes(vec![Change::Put(peer("a", 1, "10.1.0.0/16", 12))]));
    assert_eq!((served(&state), state.faults().count()), (vec!["a".to_owned()], 1));
    let foreign = Entry { key: b"/other/peers/a".to_vec(), ..peer("a", 1, "10.1.0.0/16", 13) };
    assert_eq!(state.hear(&prefix(), changes(vec![Change::Put(foreign)])), Heard::Changed(Touched::default()));
}

#[test]
fn members_come_and_go_and_peers_with_them() {
    let mut state = listed(vec![member("a", 11, 1, 2), member("b", 12, 1, 3), member("c", 13, 2, 4)]);
    let load = Load { active: 5, standby: 6, rate_bps: 7, ..Load::default() };
    let at_b = Key::Load(MemberName(name("b")));
    let heard = state.hear(&prefix(), changes(vec![Change::Put(entry(&at_b, load.encode(), 11))]));
    assert_eq!(heard, Heard::Changed(Touched { members: true, ..Touched::default() }));
    let loads: Vec<(String, u32)> = state.members().map(|(name, _, load)| (name.to_string(), load.active)).collect();
    assert_eq!(loads, [("a".to_owned(), 0), ("b".to_owned(), 5), ("c".to_owned(), 0)]);
    let rack = |id| state.members().find(|(_, member, _)| member_id(&member.key) == id).map(|(_, one, _)| one.rack);
    for number in 20..40 {
        let placed = state.place(&key(number)).expect("there are members");
        assert_ne!(rack(placed.active), placed.standby.and_then(rack), "active and standby fail apart");
    }
    let active = state.place(&key(20)).expect("there are members").active;
    let gone = state.named(active).expect("it is there").clone();
    let deleted = Change::Deleted { key: prefix().full(&Key::Member(gone)), modified: Revision(12) };
    state.hear(&prefix(), changes(vec![deleted]));
    assert_ne!(state.place(&key(20)).expect("two are left").active, active);
    assert_eq!(State::default().place(&key(20)), None);
}

#[test]
fn epochs_are_told_by_peer() {
    let mut state = listed(Vec::new());
    let seen = Seen { epoch: hawser_hub::units::Epoch::FIRST, owner: MemberId(3) };
    let heard = state.hear(&prefix(), changes(vec![Change::Put(entry(&Key::Epoch(key(1)), seen.encode(), 11))]));
    assert_eq!(heard, Heard::Changed(Touched { epochs: [key(1)].into(), ..Touched::default() }));
    assert_eq!((state.seen(&key(1)), state.seen(&key(2))), (Some((Revision(11), seen)), None));
}

proptest! {
    /// Whatever came in which pieces, with what was heard before repeated: the state is that of a list at the end.
    #[test]
    fn a_watch_in_pieces_is_as_good_as_a_list(
        events in proptest::collection::vec((0u8..6, 0u8..4, proptest::bool::ANY), 0..60),
        cut in 1usize..7,
        repeated in 0usize..5,
    ) {
        let (mut now, mut history) = (std::collections::BTreeMap::<Vec<u8>, Entry>::new(), Vec::new());
        for (at, (who, number, goes)) in (11..).zip(events) {
            let mut new = peer(&format!("p{who}"), number + 1, &format!("10.{number}.0.0/16"), at);
            if let Some(old) = now.get(&new.key) {
                new.created = old.created;
            }
            if goes && now.remove(&new.key).is_some() {
                history.push(Change::Deleted { key: new.key, modified: Revision(at) });
            } else {
                now.insert(new.key.clone(), new.clone());
                history.push(Change::Put(new));
            }
        }
        let mut followed = listed(Vec::new());
        for (at, piece) in history.chunks(cut).enumerate() {
            let from = (at * cut).saturating_sub(repeated);
            let again = history[from..at * cut].iter().chain(piece).cloned().collect();
            followed.hear(&prefix(), changes(again));
        }
        let last = followed.revision;
        let mut whole = State::default();
        whole.replace(&prefix(), CLUSTER, last, now.into_values().collect());
        prop_assert_eq!(followed, whole);
    }
}
