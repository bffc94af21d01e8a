use super::*;
use crate::handshake::{Identity, Initiator, Psk, Responder, SealKey, Verdict};
use crate::units::Random;
use crate::wire::handshake::HandshakeIndex;
use crate::wire::{CipherSet, InstanceId, Offer, Protection};

const TIMEOUT: Duration = Duration::from_millis(100);

struct Counted(u64);

impl Random for Counted {
    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (self.0 >> 56) as u8;
        }
    }
}

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

/// Keys of a real handshake under that name.
fn keys(id: u64, made_at: Time, ours: bool) -> KeySet {
    let offer =
        Offer { protection: Protection::Encrypt, ciphers: CipherSet::for_machine(false), instance: InstanceId(1) };
    let (us, theirs, mut rng) = (Identity::new([1; 32]), Identity::new([2; 32]), Counted(id));
    let started = Initiator::start(&us, &theirs.public(), Psk::default(), offer, HandshakeIndex(1), None, &mut rng);
    let (mut initiator, message) = started.expect("an initiation");
    let mut responder = Responder::new(theirs, offer);
    let from = "192.0.2.1:1".parse().expect("an address");
    let verdict = responder.on_initiation(
        made_at,
        &message,
        from,
        HandshakeIndex(2),
        &mut |_| Some(Psk::default().into()),
        &mut rng,
    );
    let Verdict::Accept(accepted) = verdict else { panic!("not accepted") };
    let keys = initiator.on_response(&accepted.response).expect("keys").keys;
    KeySet { id: KeyId(id), keys, made_at, ours }
}

fn names(keyring: &Keyring) -> Vec<u64> {
    keyring.ids().map(|id| id.0).collect()
}

#[test]
fn old_keys_open_for_three_timeouts_and_are_then_retired() {
    let mut keyring = Keyring::new(keys(1, at(0), true));
    assert_eq!((names(&keyring), keyring.expires()), (vec![1], None));
    let before = keyring.label(PathId(0));
    assert_eq!(keyring.install(at(1_000), keys(2, at(1_000), true), TIMEOUT), None);
    assert_ne!(keyring.label(PathId(0)), before);
    assert_eq!((names(&keyring), keyring.expires()), (vec![2, 1], Some(at(1_300))));
    assert!(keyring.open(KeyId(1)).is_some() && keyring.open(KeyId(3)).is_none());
    assert_eq!(keyring.retire(at(1_299)), None);
    assert_eq!(keyring.retire(at(1_300)), Some(KeyId(1)));
    assert_eq!(keyring.retire(at(1_300)), None);
    assert_eq!(names(&keyring), [2]);
}

#[test]
fn of_more_old_keys_than_two_the_oldest_is_retired_at_once() {
    let mut keyring = Keyring::new(keys(1, at(0), true));
    assert_eq!(keyring.install(at(10), keys(2, at(10), true), TIMEOUT), None);
    assert_eq!(keyring.install(at(20), keys(3, at(20), true), TIMEOUT), None);
    assert_eq!(keyring.install(at(30), keys(4, at(30), true), TIMEOUT), Some(KeyId(1)));
    assert_eq!(names(&keyring), [4, 2, 3]);
}

#[test]
fn keys_of_a_crossing_initiation_only_open_and_change_no_label() {
    let mut keyring = Keyring::new(keys(1, at(0), false));
    assert!(!keyring.crosses(at(0), at(0), TIMEOUT), "the peer spoke first");
    keyring.install(at(10), keys(2, at(10), true), TIMEOUT);
    assert!(keyring.crosses(at(10), at(15), TIMEOUT));
    assert!(!keyring.crosses(at(5_010), at(15), TIMEOUT), "the peer may have them no more");
    let far = Duration::from_secs(6);
    assert!(keyring.crosses(at(12_009), at(15), far), "its first datagram may be on its way yet");
    assert!(!keyring.crosses(at(12_010), at(15), far));
    let label = keyring.label(PathId(0));
    assert_eq!(keyring.admit(at(20), keys(3, at(15), false), TIMEOUT), None);
    assert_eq!((keyring.label(PathId(0)), names(&keyring)), (label, vec![2, 1, 3]));
    keyring.note_opened(at(20), KeyId(3));
    assert!(keyring.crosses(at(20), at(15), TIMEOUT));
    keyring.note_opened(at(20), KeyId(2));
    assert!(keyring.crosses(at(30), at(15), TIMEOUT), "answered before the peer was heard under ours");
    assert!(!keyring.crosses(at(30), at(21), TIMEOUT), "a later handshake");
    keyring.install(at(40), keys(4, at(40), true), TIMEOUT);
    keyring.note_opened(at(30_050), KeyId(4));
    assert!(!keyring.crosses(at(30_070), at(30_040), TIMEOUT), "a later one, though the peer was not heard before");
}

#[test]
fn new_keys_are_due_after_their_time_or_as_many_packets_either_way() {
    let table = [(0, 0, at(120_000)), (REKEY_AFTER_PACKETS, 0, Time::ZERO), (0, REKEY_AFTER_PACKETS, Time::ZERO)];
    for (sealed, opened, due) in table {
        let mut keyring = Keyring::new(keys(1, at(0), true));
        (keyring.current.sealed, keyring.current.opened) = (sealed, opened);
        assert_eq!(keyring.rekey_at(Rekey::Lead, false), due, "{sealed} sealed, {opened} opened");
        // Who follows leaves half a minute, and half as many packets again, to who leads.
        assert_eq!(keyring.rekey_at(Rekey::Follow, false), at(150_000), "{sealed} sealed, {opened} opened");
        keyring.current.opened = ASK_AFTER_PACKETS;
        assert_eq!(keyring.rekey_at(Rekey::Follow, false), Time::ZERO);
    }
    let mut keyring = Keyring::new(keys(1, at(0), true));
    keyring.seal();
    keyring.note_opened(at(1), KeyId(1));
    keyring.note_opened(at(1), KeyId(9));
    assert_eq!((keyring.current.sealed, keyring.current.opened), (1, 1));
}

#[test]
fn keys_neither_seal_nor_open_beyond_180_seconds_or_as_many_packets_as_they_may() {
    let whole = u64::from(BATCH_SEGMENTS);
    let table = [
        (179_999, 0, 0, Ok(()), true),
        (180_000, 0, 0, Err(KeyEnd::Age), false),
        (1, REJECT_AFTER_PACKETS - whole, 0, Ok(()), true),
        // A whole batch has no room any more, a single packet would.
        (1, REJECT_AFTER_PACKETS - whole + 1, 0, Err(KeyEnd::Packets), true),
        (1, 0, REJECT_AFTER_PACKETS - 1, Err(KeyEnd::Packets), true),
        (1, 0, REJECT_AFTER_PACKETS, Err(KeyEnd::Packets), false),
    ];
    for (now, sealed, opened, seals, opens) in table {
        let mut keyring = Keyring::new(keys(1, at(0), true));
        (keyring.current.sealed, keyring.current.opened) = (sealed, opened);
        assert_eq!(keyring.permit(at(now)), seals, "{now} ms, {sealed} sealed, {opened} opened");
        let opener = keyring.opener(at(now), KeyId(1));
        assert_eq!(opener.err(), (!opens).then_some(DropReason::KeyExpired), "{now} ms, {opened} opened");
    }
    // Old keys that still open have the same end.
    let mut keyring = Keyring::new(keys(1, at(0), true));
    keyring.install(at(179_990), keys(2, at(179_990), true), TIMEOUT);
    assert!(keyring.opener(at(179_999), KeyId(1)).is_ok());
    assert_eq!(keyring.opener(at(180_000), KeyId(1)).err(), Some(DropReason::KeyExpired));
    assert_eq!(keyring.opener(at(180_000), KeyId(3)).err(), Some(DropReason::UnknownLabel));
}

#[test]
#[should_panic(expected = "keys beyond their end")]
fn a_worn_out_key_is_never_sealed_with() {
    let mut keyring = Keyring::new(keys(1, at(0), true));
    keyring.current.sealed = REJECT_AFTER_PACKETS;
    keyring.seal();
}

/// What may happen to keys.
#[derive(Copy, Clone, Debug)]
enum Event {
    Install,
    Admit,
    /// Time passes: until old keys may go, or until present ones are over.
    Pass(u64),
    Retire,
}

const EVENTS: [Event; 5] = [Event::Install, Event::Admit, Event::Pass(150), Event::Pass(179_900), Event::Retire];

/// Keys as their rules say: the present one, and old ones with when they go; each with when it was made.
struct Model {
    now: u64,
    made: u64,
    current: (u64, u64),
    old: Vec<(u64, u64, u64)>,
}

impl Model {
    fn keep(&mut self, (id, made): (u64, u64)) -> Option<KeyId> {
        self.old.push((id, made, self.now + 3 * TIMEOUT.as_millis() as u64));
        (self.old.len() > 2).then(|| KeyId(self.old.remove(0).0))
    }

    /// The keyring does the same, and knows the same afterwards.
    fn step(&mut self, event: Event, keyring: &mut Keyring, next: &mut dyn FnMut(u64, Time) -> KeySet) {
        match event {
            Event::Install | Event::Admit => {
                self.made += 1;
                let (id, now) = (self.made, at(self.now));
                let keys = next(id, now);
                let (gone, expected) = match event {
                    Event::Install => {
                        let old = std::mem::replace(&mut self.current, (id, self.now));
                        (keyring.install(now, keys, TIMEOUT), self.keep(old))
                    }
                    _ => (keyring.admit(now, keys, TIMEOUT), self.keep((id, self.now))),
                };
                assert_eq!(gone, expected);
            }
            Event::Pass(ms) => self.now += ms,
            Event::Retire => {
                let due = self.old.iter().position(|(.., goes)| *goes <= self.now);
                assert_eq!(keyring.retire(at(self.now)), due.map(|place| KeyId(self.old.remove(place).0)));
            }
        }
        self.check(keyring);
    }

    fn check(&self, keyring: &Keyring) {
        let now = at(self.now);
        let lives = |made: u64| self.now - made < 180_000;
        assert_eq!(keyring.permit(now).is_ok(), lives(self.current.1), "sealing at {} ms", self.now);
        let old = self.old.iter().map(|(id, made, _)| (*id, *made));
        let known: Vec<(u64, u64)> = std::iter::once(self.current).chain(old).collect();
        assert_eq!(names(keyring), known.iter().map(|(id, _)| *id).collect::<Vec<_>>());
        for id in 1..=self.made {
            let expected = match known.iter().find(|(other, _)| *other == id) {
                None => Some(DropReason::UnknownLabel),
                Some((_, made)) => (!lives(*made)).then_some(DropReason::KeyExpired),
            };
            assert_eq!(keyring.opener(now, KeyId(id)).err(), expected, "keys {id} at {} ms", self.now);
        }
        assert_eq!(keyring.expires(), self.old.iter().map(|(.., goes)| at(*goes)).min());
    }
}

#[test]
fn every_order_of_six_events_leaves_the_keys_that_the_rules_leave() {
    // Handshakes take time: keys are made anew of the secrets of one, under other names.
    let first = keys(1, at(0), true);
    let secrets = first.keys.secrets();
    let mut next = |id: u64, made_at: Time| KeySet {
        id: KeyId(id),
        keys: TransportKeys {
            send: Arc::new(SealKey::new(&secrets.sent)),
            recv: Arc::new(OpenKey::new(&secrets.received)),
        },
        made_at,
        ours: true,
    };
    for mut order in 0..EVENTS.len().pow(6) {
        let mut keyring = Keyring::new(next(1, at(0)));
        let mut model = Model { now: 0, made: 1, current: (1, 0), old: Vec::new() };
        for _ in 0..6 {
            model.step(EVENTS[order % EVENTS.len()], &mut keyring, &mut next);
            order /= EVENTS.len();
        }
    }
}
