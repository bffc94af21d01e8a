//! Failure detection among a hub's members (as SWIM's probes: Das et al., 2002): a peer that has nothing to say would
//! notice its owner's death when it next tells its claim, half a minute later.
//!
//! 1. Each member looks at the three that come after it by their ids, and so three look at each ([`FailureDetector::follow`]).
//! 2. [`look`]: one is asked what any stranger may ask (`probe`), five times a second, and missed once it left two
//!    questions in a row unanswered. A member that never answered is not.
//! 3. Who misses one says so in etcd, beside its load: the others hear of it there. Each tells the peers that it stands by
//!    for; these ask the owner, and move only if it does not answer them either.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs as _, UdpSocket};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use hawser_config::PublicKey;
use hawser_etcd::keys::MemberName;
use hawser_etcd::record::Member;
use hawser_etcd::state::{State, member_id};
use hawser_hub::units::MemberId;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::probe::Probe;

/// How many look at each member: two of them may die with it.
const LOOKED_AT: usize = 3;
/// Between two questions that are answered.
const EVERY: Duration = Duration::from_millis(200);
/// An answer takes two round trips at most, and no less than this.
const PATIENCE: Duration = Duration::from_millis(100);
const ROUND_TRIPS: u32 = 2;
/// Questions in a row without an answer: one may be lost.
const UNANSWERED: u32 = 2;
/// Between two questions to a member that is missed, or that cannot be asked.
const AWAY: Duration = Duration::from_secs(1);

/// A member no longer answers, or answers again. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    name: String,
    missed: bool,
}

/// The members that are looked at, and who is missed. Looks at nobody at first; the store owns it.
pub struct FailureDetector {
    looked_at: BTreeMap<String, (Member, Arc<()>)>,
    sights: (UnboundedSender<Sight>, UnboundedReceiver<Sight>),
    own: BTreeSet<String>,
    /// Who misses whom.
    missed: BTreeSet<(MemberId, MemberId)>,
}

impl Default for FailureDetector {
    fn default() -> Self {
        let (looked_at, own, missed) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Self { looked_at, sights: unbounded_channel(), own, missed }
    }
}

impl FailureDetector {
    /// Step 1: looks at whom `own` has to, as etcd has them now, and at nobody else.
    pub fn follow(&mut self, state: &State, own: &PublicKey) {
        let wanted = after(state.members().map(|(name, member, _)| (name, member)), member_id(own));
        self.looked_at.retain(|name, (member, _)| wanted.get(name) == Some(member));
        self.own.retain(|name| self.looked_at.contains_key(name));
        for (name, member) in wanted {
            self.looked_at.entry(name).or_insert_with_key(|name| {
                let looks = Arc::new(());
                let (name, sights) = (name.clone(), self.sights.0.clone());
                let tell = move |missed| drop(sights.send(Sight { name: name.clone(), missed }));
                let (asked, held) = (member.clone(), Arc::downgrade(&looks));
                thread::spawn(move || look(&asked, &held, tell));
                (member, looks)
            });
        }
    }

    /// What is seen next.
    pub async fn next(&mut self) -> Sight {
        match self.sights.1.recv().await {
            Some(sight) => sight,
            None => pending().await,
        }
    }

    /// Whom this member misses.
    pub fn own(&self) -> &BTreeSet<String> {
        &self.own
    }

    /// Step 3: one more is missed by this member, or one less.
    pub fn note(&mut self, Sight { name, missed }: Sight) {
        if missed && self.looked_at.contains_key(&name) {
            tracing::warn!(member = name, "hub member suspected: its peers are told to ask it");
            self.own.insert(name);
        } else if self.own.remove(&name) {
            tracing::info!(member = name, "hub member answers again");
        }
    }

    /// Step 3: those that somebody misses now, and the same one did not before. That another one already missed them is
    /// no reason to be silent: it may have lost only its own way there.
    pub fn news(&mut self, state: &State, own: &PublicKey) -> BTreeSet<MemberId> {
        let me = member_id(own);
        let ids = state.members().map(|(name, member, _)| (name.to_string(), member_id(&member.key)));
        let ids: BTreeMap<String, MemberId> = ids.collect();
        let theirs = state.members().map(|(_, member, load)| (member_id(&member.key), load.misses));
        // What etcd has of this member's own comes later than that does.
        let all = theirs.filter(|(by, _)| *by != me).chain([(me, self.own.clone())]);
        let pairs = all.flat_map(|(by, names)| names.into_iter().map(move |name| (by, name)));
        let missed = pairs.filter_map(|(by, name)| Some((by, *ids.get(&name)?))).collect();
        let before = std::mem::replace(&mut self.missed, missed);
        self.missed.difference(&before).map(|(_, missed)| *missed).collect()
    }
}

/// The members that come after this one, as many as it looks at.
fn after<'m>(members: impl Iterator<Item = (&'m MemberName, &'m Member)>, me: MemberId) -> BTreeMap<String, Member> {
    let mut others: Vec<_> = members.filter(|(_, member)| member_id(&member.key) != me).collect();
    others.sort_by_key(|(_, member)| {
        let id = member_id(&member.key);
        (id < me, id)
    });
    others.into_iter().take(LOOKED_AT).map(|(name, member)| (name.to_string(), member.clone())).collect()
}

/// Step 2, for as long as somebody holds what it is held by.
fn look(member: &Member, held: &Weak<()>, tell: impl Fn(bool)) {
    let (mut probe, mut patience) = (None, AWAY);
    // None before the first answer.
    let mut unanswered = None;
    while held.strong_count() > 0 {
        let Some(asked) = &mut probe else {
            probe = open(member).ok();
            thread::sleep(if probe.is_some() { Duration::ZERO } else { AWAY });
            continue;
        };
        let start = Instant::now();
        if asked.ask(patience).is_some() {
            patience = PATIENCE.max(start.elapsed() * ROUND_TRIPS);
            if unanswered.replace(0) >= Some(UNANSWERED) {
                tell(false);
            }
            thread::sleep(EVERY.saturating_sub(start.elapsed()));
            continue;
        }
        unanswered = unanswered.map(|count: u32| count.saturating_add(1));
        if unanswered == Some(UNANSWERED) {
            tell(true);
        }
        if unanswered.is_none_or(|count| count >= UNANSWERED) {
            thread::sleep(AWAY);
        }
    }
}

fn open(member: &Member) -> io::Result<Probe> {
    let address = member.endpoints.iter().find_map(|endpoint| endpoint.to_socket_addrs().ok()?.next());
    let endpoint = address.ok_or(io::ErrorKind::AddrNotAvailable)?;
    let any: IpAddr = if endpoint.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(endpoint)?;
    Probe::by(socket.into(), &member.key)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use hawser_config::{PeerName, PrivateKey};

    use hawser_etcd::keys::{Key, Prefix};
    use hawser_etcd::record::{Load, Record as _};
    use hawser_etcd::state::{Entry, Revision};

    use super::*;
    use crate::probe::stranger;

    fn member(endpoint: &str, key: PublicKey) -> Member {
        Member { key, endpoints: vec![endpoint.to_owned()], weight: 1, rack: 0, version: "0".to_owned() }
    }

    #[test]
    fn a_member_that_answered_is_missed_soon_after_it_no_longer_does_and_seen_when_it_does_again() {
        let key = PrivateKey::generate().expect("randomness");
        let place = UdpSocket::bind("127.0.0.1:0").expect("a socket").local_addr().expect("an address");
        let (looks, (tell, told)) = (Arc::new(()), mpsc::channel());
        let (asked, held) = (member(&place.to_string(), key.public()), Arc::downgrade(&looks));
        let note = move |missed| tell.send((missed, Instant::now())).expect("somebody listens");
        let looking = thread::spawn(move || look(&asked, &held, note));
        let portal = stranger::portal(place, *key.as_bytes());
        assert!(told.recv_timeout(AWAY + EVERY).is_err(), "it was never missed");
        let ended = Instant::now();
        drop(portal);
        let (missed, at) = told.recv_timeout(AWAY * 5).expect("it is noticed");
        assert!(missed && at - ended >= PATIENCE, "{missed} after {:?}", at - ended);
        let _portal = stranger::portal(place, *key.as_bytes());
        assert!(!told.recv_timeout(AWAY * 5).expect("it is noticed").0);
        drop(looks);
        looking.join().expect("it ends");
    }

    #[test]
    fn three_members_look_at_each_and_nobody_at_itself() {
        let named = |name| {
            let key = PrivateKey::generate().expect("randomness").public();
            (MemberName(PeerName::parse(name).expect("a name")), member("198.51.100.10:4920", key))
        };
        let members = ["a", "b", "c", "d", "e"].map(named);
        let all = |count: usize| members.iter().take(count).map(|(name, member)| (name, member));
        let mut looked_at = BTreeMap::new();
        for (name, member) in &members {
            let others = after(all(5), member_id(&member.key));
            assert!(others.len() == LOOKED_AT && !others.contains_key(&name.to_string()), "{name}: {others:?}");
            others.into_keys().for_each(|name| *looked_at.entry(name).or_insert(0) += 1);
        }
        assert!(after(all(1), member_id(&members[0].1.key)).is_empty(), "it is alone");
        assert!(looked_at.values().all(|by| *by == LOOKED_AT), "{looked_at:?}");
    }

    /// A hub's members, and whom each of them misses.
    fn hub(members: &[(&str, PublicKey, &[&str])]) -> State {
        let prefix = Prefix::new("/hawser/hub/");
        let entries = members.iter().flat_map(|(name, key, misses)| {
            let name = MemberName(PeerName::parse(name).expect("a name"));
            let misses = misses.iter().map(|name| (*name).to_owned()).collect();
            let load = Load { misses, ..Load::default() };
            let at = [Key::Member(name.clone()), Key::Load(name)].map(|key| prefix.full(&key));
            at.into_iter().zip([member("nowhere", *key).encode(), load.encode()])
        });
        let entry = |(key, value)| Entry { key, value, created: Revision(1), modified: Revision(1) };
        let mut state = State::default();
        state.replace(&prefix, 7, Revision(1), entries.map(entry).collect());
        state
    }

    fn keys<const N: usize>() -> [PublicKey; N] {
        [(); N].map(|()| PrivateKey::generate().expect("randomness").public())
    }

    #[test]
    fn a_member_that_one_other_cannot_reach_is_watched_by_the_others_still() {
        let [us, x, b] = keys();
        let mut detector = FailureDetector::default();
        let mut news = |misses: [&[&str]; 2], own: bool| {
            detector.own = own.then(|| "b".to_owned()).into_iter().collect();
            detector.news(&hub(&[("us", us, misses[0]), ("x", x, misses[1]), ("b", b, &[])]), &us)
        };
        let (nobody, only_b) = (BTreeSet::new(), BTreeSet::from([member_id(&b)]));
        assert_eq!(news([&[], &["b"]], false), only_b, "x has lost its way there, for good");
        assert_eq!(news([&[], &["b"]], false), nobody, "that is known");
        assert_eq!(news([&[], &["b"]], true), only_b, "it died");
        assert_eq!(news([&["b"], &["b"]], true), nobody, "etcd says what this member said");
        assert_eq!(news([&[], &["b", "c"]], false), nobody, "there is no c");
    }

    #[test]
    fn a_member_that_left_the_hub_while_it_was_missed_is_missed_anew_when_it_came_back() {
        let [us, them] = keys();
        let (whole, alone) = (hub(&[("a", us, &[]), ("b", them, &[])]), hub(&[("a", us, &[])]));
        let (nobody, missed) = (BTreeSet::new(), BTreeSet::from([member_id(&them)]));
        let mut detector = FailureDetector::default();
        for life in 0..2 {
            detector.follow(&whole, &us);
            assert_eq!(detector.news(&whole, &us), nobody, "life {life}");
            detector.note(Sight { name: "b".to_owned(), missed: true });
            assert_eq!(detector.news(&whole, &us), missed, "life {life}");
            assert_eq!(detector.news(&whole, &us), nobody, "it is known");
            detector.follow(&alone, &us);
            assert!(detector.own().is_empty() && detector.news(&alone, &us).is_empty(), "nobody says so of who left");
        }
    }
}
