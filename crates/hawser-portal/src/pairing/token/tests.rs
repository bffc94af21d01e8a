//! Tokens that read back, and text that is none.

use proptest::prelude::*;

use hawser_config::KEY_BYTES;

use super::*;

fn token() -> Token {
    let endpoint = |host, port| Endpoint { host, port, udp: true, tcp: false };
    Token {
        public_key: PublicKey::new([3; KEY_BYTES]).expect("a key"),
        secret: Secret::new([5; SECRET_LEN]),
        expires: 1_764_000_000,
        name: PeerName::parse("home").expect("a name"),
        addresses: vec!["10.77.0.2/24".parse().expect("a net"), "fd77::2/64".parse().expect("a net")],
        gateways: vec!["10.77.0.1".parse().expect("an address")],
        endpoints: vec![
            endpoint(Host::parse("198.51.100.7").expect("an address"), 4920),
            endpoint(Host::parse("hub.example").expect("a name"), 443),
        ],
        name_servers: vec![],
        hub: None,
    }
}

fn member(name: &str, key: u8) -> Member {
    let (endpoints, share) = (token().endpoints, Share { weight: key.into(), rack: 1 });
    Member { name: named(name), public_key: PublicKey::new([key; KEY_BYTES]).expect("a key"), endpoints, share }
}

fn named(name: &str) -> PeerName {
    PeerName::parse(name).expect("a name")
}

fn of_hub(others: Vec<Member>) -> Result<Token, HubError> {
    let token = token();
    let own = (named("zurich"), &token.public_key, Share::default());
    Ok(Token { hub: Some(Hub::new(own, others, true)?), ..token })
}

#[test]
fn a_token_reads_back_and_fits_a_line() {
    let text = token().to_string();
    assert_eq!(text.parse(), Ok(token()));
    assert_eq!(format!(" {text}\n").parse(), Ok(token()), "as it is pasted");
    assert!(text.len() < 220, "{} characters", text.len());
}

#[test]
fn a_token_with_name_servers_has_a_version_of_its_own_and_one_without_stays_as_it_was() {
    let with = Token { name_servers: vec!["10.77.0.1".parse().expect("an address")], ..token() };
    assert_eq!(with.to_string().parse(), Ok(with.clone()));
    let (plain, with) = (token().to_bytes(), with.to_bytes());
    assert_eq!((plain[0], with[0]), (1, 2));
    let body = plain.len() - CHECKSUM_LEN;
    assert_eq!(
        (&with[1..body], &with[body..with.len() - CHECKSUM_LEN]),
        (&plain[1..body], [1, 4, 10, 77, 0, 1].as_slice())
    );
}

#[test]
fn a_token_of_a_hub_names_its_members_and_is_what_older_programs_do_not_know() {
    let token = of_hub(vec![member("geneva", 7), member("basel", 8)]).expect("it is right");
    let bytes = token.to_bytes();
    assert_eq!((bytes[0], token.to_string().parse()), (3, Ok(token.clone())), "3: programs before knew 1 and 2");
    let with = Token { name_servers: token.gateways.clone(), ..token };
    assert_eq!(with.to_string().parse(), Ok(with));
    let all: Vec<Member> = (0..7).map(|n| member(&format!("member{n}"), 10 + n)).collect();
    let text = of_hub(all).expect("as many as there may be").to_string();
    assert!(text.len() < TEXT_MAX / 2 && text.parse::<Token>().is_ok(), "{} characters", text.len());
}

#[test]
fn what_is_no_hub_is_not_made_and_not_read() {
    let unreached = Member { endpoints: Vec::new(), ..member("geneva", 7) };
    let many = (0..8).map(|n| member(&format!("member{n}"), 10 + n)).collect();
    let table = [
        (vec![], HubError::Alone),
        (many, HubError::TooMany),
        (vec![member("geneva", 7), member("geneva", 8)], HubError::Twice(named("geneva"))),
        (vec![member("zurich", 7)], HubError::Twice(named("zurich"))),
        (vec![member("geneva", 3)], HubError::Twice(named("geneva"))),
        (vec![unreached], HubError::Unreached(named("geneva"))),
    ];
    for (others, error) in table {
        assert_eq!(of_hub(others), Err(error));
    }
    let right = of_hub(vec![member("geneva", 7)]).expect("it is right").to_bytes();
    let hub = token().to_bytes().len() - CHECKSUM_LEN + 1;
    for (at, with) in [(hub, 2), (hub + 1, 0), (hub + 12, 0), (hub + 12, 9)] {
        let mut bytes = right[..right.len() - CHECKSUM_LEN].to_vec();
        bytes[at] = with;
        bytes.extend(checksum(&bytes));
        assert!(matches!(Token::from_bytes(&bytes), Err(TokenError::Malformed(_))), "{at}: {with}");
    }
}

#[test]
fn a_peers_key_orders_members_by_their_shares_where_all_know_it_at_once() {
    let hub = |weights: [u16; 3], shared| {
        let token = of_hub(vec![member("geneva", 7), member("basel", 8)]).expect("it is right");
        let share = |weight, rack| Share { weight, rack };
        let others = [("geneva", 7, 1), ("basel", 8, 2)];
        let others = others.into_iter().zip(&weights[1..]);
        let others =
            others.map(|((name, key, rack), weight)| Member { share: share(*weight, rack), ..member(name, key) });
        let own = (named("zurich"), &token.public_key, share(weights[0], 1));
        Token { hub: Some(Hub::new(own, others.collect(), shared).expect("it is right")), ..token }
    };
    let key = |number: u8| PublicKey::new([number; KEY_BYTES]).expect("a key");
    let order_of = |token: &Token, peer: u8| -> Vec<String> {
        token.members(&key(peer)).iter().map(|member| member.name.to_string()).collect()
    };
    let mut first = std::collections::BTreeMap::<String, u32>::new();
    for peer in 10..250 {
        let order = order_of(&hub([1, 1, 2], true), peer);
        assert!(order[0] == "basel" || order[1] == "basel", "the standby is in the other rack: {order:?}");
        *first.entry(order[0].clone()).or_default() += 1;
        assert_eq!(order_of(&hub([1, 1, 2], false), peer), ["zurich", "geneva", "basel"]);
        assert_eq!(order_of(&hub([1, 0, 1], true), peer)[2], "geneva", "without a weight it is the last");
    }
    assert!(first["basel"] > 100 && first["zurich"] > 40 && first["geneva"] > 40, "{first:?}");
    assert!(token().members(&key(9)).is_empty());
}

#[test]
fn of_a_large_hub_a_token_names_as_many_as_it_may_in_all_racks_and_others_for_other_peers() {
    let token = token();
    let others: Vec<Member> = (0..19).map(|n| in_rack(&format!("member{n:02}"), 10 + n, u16::from(n) % 5)).collect();
    let hub = |peer: &str| {
        let own = (named("zurich"), &token.public_key, Share { weight: 1, rack: 4 });
        Hub::of_peer(own, others.clone(), &named(peer)).expect("they are right")
    };
    let mut all = std::collections::BTreeSet::new();
    for peer in 0..60 {
        let hub = hub(&format!("peer{peer}"));
        let racks: std::collections::BTreeSet<u16> = hub.others().iter().map(|one| one.share.rack).collect();
        let is_spread = racks.is_superset(&(0..4).collect());
        assert!(hub.others().len() == MEMBERS_MAX - 1 && is_spread, "{peer}: {hub:?}");
        all.extend(hub.others().iter().map(|one| one.name.to_string()));
        let token = Token { hub: Some(hub), ..token.clone() };
        assert_eq!(token.to_string().parse(), Ok(token.clone()));
        assert_eq!(token.members(&token.public_key).len(), MEMBERS_MAX);
    }
    assert_eq!(all.len(), 19, "each of them serves somebody: {all:?}");
    assert_eq!(hub("home"), hub("home"));
    let few =
        Hub::of_peer((named("zurich"), &token.public_key, Share::default()), others[..7].to_vec(), &named("home"));
    assert_eq!(few.expect("they are right").others(), &others[..7], "of a small one all");
}

fn in_rack(name: &str, key: u8, rack: u16) -> Member {
    Member { share: Share { weight: 1, rack }, ..member(name, key) }
}

#[test]
fn the_secret_is_not_shown_for_debugging() {
    assert!(format!("{:?}", token()).contains("Secret(…)"));
}

#[test]
fn what_is_no_token_is_refused_by_its_fault() {
    let text = token().to_string();
    let other = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = token().to_bytes();
        bytes.truncate(bytes.len() - CHECKSUM_LEN);
        change(&mut bytes);
        bytes.extend(checksum(&bytes));
        format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
    };
    let table = [
        (String::new(), TokenError::Prefix),
        (text.replace("hwr1:", "hwr2:"), TokenError::Prefix),
        (text[..text.len() - 1].to_owned(), TokenError::Altered),
        (text[..30].to_owned(), TokenError::Altered),
        (format!("{text}!"), TokenError::Altered),
        (format!("{TOKEN_PREFIX}{}", "A".repeat(TEXT_MAX + 1)), TokenError::Altered),
        (other(&|bytes| bytes[0] = 9), TokenError::Version(9)),
        (other(&|bytes| bytes[1..33].fill(0)), TokenError::Malformed("public key")),
        (other(&|bytes| bytes[54] = b'/'), TokenError::Malformed("name")),
        (other(&|bytes| bytes[59] = 33), TokenError::Malformed("inner address")),
        (other(&|bytes| bytes.push(0)), TokenError::Malformed("length")),
        (other(&|bytes| bytes[0] = 2), TokenError::Malformed("name server")),
        (other(&|bytes| (bytes[0] = 2, bytes.push(0)).1), TokenError::Malformed("name server")),
        (other(&|bytes| bytes.truncate(80)), TokenError::Malformed("inner address")),
    ];
    for (text, error) in table {
        assert_eq!(text.parse::<Token>(), Err(error), "{text}");
        assert!(error.to_string().starts_with("read token: ") && !error.hint().is_empty());
    }
}

#[test]
fn a_token_is_over_when_its_time_is() {
    let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
    assert_eq!(token().expired(at(1_764_000_000)), None);
    assert_eq!(token().expired(at(1_764_000_060)), Some(Duration::from_secs(60)));
}

proptest! {
    #[test]
    fn no_text_brings_the_reader_to_its_end(text in "\\PC*") {
        let _ = text.parse::<Token>();
        let _ = format!("{TOKEN_PREFIX}{text}").parse::<Token>();
    }

    #[test]
    fn bytes_under_a_right_checksum_are_a_token_that_reads_back_or_are_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..160), whole in 0..3_u8, keep in 0..400_usize
    ) {
        let begin = match whole {
            0 => Vec::new(),
            1 => token().to_bytes()[..53].to_vec(),
            _ => {
                let whole = of_hub(vec![member("geneva", 7), member("basel", 8)]).expect("it is right").to_bytes();
                whole[..whole.len() - CHECKSUM_LEN].to_vec()
            }
        };
        let mut bytes = [&begin[..keep.min(begin.len())], &bytes].concat();
        bytes.extend(checksum(&bytes));
        if let Ok(token) = Token::from_bytes(&bytes) {
            prop_assert_eq!(token.to_bytes(), bytes);
        }
    }

    #[test]
    fn every_altered_character_is_seen(at in 5_usize..180, with in "[A-Za-z0-9_-]") {
        let text = token().to_string();
        let at = at.min(text.len() - 1);
        let mut altered = text.clone();
        altered.replace_range(at..=at, &with);
        prop_assert!(altered == text || altered.parse::<Token>() == Err(TokenError::Altered));
    }
}
