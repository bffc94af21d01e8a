use super::*;

fn key(number: u8) -> PublicKey {
    PublicKey::new([number; 32]).expect("not zero")
}

fn peer(name: &str, number: u8, net: &str) -> HubPeer {
    let name = PeerName::parse(name).expect("a name");
    HubPeer { name, key: key(number), allowed_ips: vec![net.parse().expect("a network")] }
}

fn roster(peers: Vec<HubPeer>) -> Roster {
    Roster { peers, ..Roster::default() }
}

fn names(peers: &[Peer]) -> Vec<&str> {
    peers.iter().map(|peer| peer.name.as_str()).collect()
}

#[test]
fn peers_of_the_file_come_first_and_keep_what_they_have() {
    let file = [peer("home", 1, "10.1.0.0/16").to_peer()];
    let hub = roster(vec![
        peer("branch", 2, "10.2.0.0/16"),
        peer("home", 3, "10.3.0.0/16"),
        peer("same-key", 1, "10.4.0.0/16"),
        peer("same-net", 5, "10.1.0.0/16"),
        peer("member", 9, "10.6.0.0/16"),
    ]);
    let (peers, refused) = hub.join(&file, &key(9));
    assert_eq!(names(&peers), ["home", "branch"]);
    assert_eq!(peers[0].public_key, key(1));
    let why: Vec<(&str, &str)> = refused.iter().map(|(name, why)| (name.as_str(), why.as_str())).collect();
    assert_eq!(
        why,
        [
            ("home", "its name is in this member's file"),
            ("member", "its key is in this member's file"),
            ("same-key", "its key is in this member's file"),
            ("same-net", "10.1.0.0/16 is in this member's file"),
        ]
    );
}

#[test]
fn who_is_revoked_is_out_of_the_file_too() {
    let file = [peer("home", 1, "10.1.0.0/16").to_peer(), peer("old", 2, "10.2.0.0/16").to_peer()];
    let revoked = BTreeMap::from([(key(1), PeerName::parse("home").expect("a name")), (key(3), file[1].name.clone())]);
    let hub = roster(vec![peer("branch", 3, "10.3.0.0/16"), peer("shop", 4, "10.4.0.0/16")]).without(&revoked);
    assert_eq!(names(&hub.join(&file, &key(9)).0), ["old", "shop"]);
    assert_eq!(hub.revoked, revoked);
}

#[test]
fn the_cache_reads_as_it_is_written_and_is_one_hubs() {
    let home = PeerName::parse("home").expect("a name");
    let mut roster = roster(vec![peer("branch", 2, "10.2.0.0/16")]);
    roster.revoked.insert(key(7), home.clone());
    let pending = BTreeMap::from([(key(8), home)]);
    let history = Some(History("one".to_owned()));
    let cache = Cache { roster, pending, cluster: Some(7), revision: Revision(9), history };
    let text = cache.encode("/hawser/hub/");
    assert_eq!(Cache::decode(&text, "/hawser/hub/").as_ref(), Ok(&cache));
    let older = text.replacen(",\"revision\":9,\"history\":\"one\"", "", 1);
    assert_eq!(Cache::decode(&older, "/hawser/hub/"), Ok(Cache { revision: Revision(0), history: None, ..cache }));
    assert_eq!(Cache::decode(&text, "/hawser/other/"), Ok(Cache::default()));
    let later = text.replacen("\"v\":1", "\"v\":2", 1);
    assert_eq!(Cache::decode(&later, "/hawser/hub/"), Err(RecordError::Format(2)));
    for half in [&text[..text.len() / 2], ""] {
        assert!(matches!(Cache::decode(half, "/hawser/hub/"), Err(RecordError::Shape(_))), "{half}");
    }
    let nameless = text.replacen("branch", "a b", 1);
    assert_eq!(Cache::decode(&nameless, "/hawser/hub/"), Err(RecordError::Value("name")));
}
