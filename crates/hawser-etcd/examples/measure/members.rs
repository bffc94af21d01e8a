//! Members that follow etcd as in a portal, and what they write there.

use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hawser_config::{PeerName, PublicKey};
use hawser_core::units::Time;
use hawser_etcd::Access;
use hawser_etcd::driver::{Handle, Reach, Settings, View};
use hawser_etcd::keys::{MemberName, Prefix};
use hawser_etcd::record::Member;
use hawser_etcd::roster::{Cache, HubPeer};
use hawser_hub::units::Epoch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::servers::Servers;
use crate::{key, median};

/// Peers that are added one by one, and at once, this many at a time.
const ALONE: u64 = 200;
const TOGETHER: u64 = 400;
const AT_ONCE: u64 = 64;
/// Epochs of each member in a wave, and how often there is one: processor time is counted in hundredths of a second.
const WAVES: [(usize, u64); 2] = [(1, 20), (40, 5)];
const MOST: usize = 40;
/// How long etcd may take to elect, and a wave to be known.
const PATIENCE: Duration = Duration::from_secs(60);
/// Whose keys members have: none of a peer's.
const FIRST_MEMBER: u64 = 1 << 40;

/// What was measured. Plain data.
#[derive(Debug)]
pub struct Etcd {
    /// Until a peer is written that is added alone, and until another member knows it.
    pub alone_ms: f64,
    /// See `alone_ms`.
    pub known_ms: f64,
    /// Peers that are written a second where many are added at once.
    pub a_second: f64,
    /// By how many epochs each member has.
    pub waves: Vec<Wave>,
}

/// All members own epochs at once. Plain data.
#[derive(Debug)]
pub struct Wave {
    /// How many each.
    pub each: usize,
    /// Until the last knows the last.
    pub known_ms: f64,
    /// Processor time of all servers for each member and transaction.
    pub told_us: f64,
}

/// Steps 2 and 3.
pub async fn measure(count: usize) -> Etcd {
    let servers = Servers::start();
    let mut members: Vec<Handle> = (0..2).map(|number| start(&servers, number)).collect();
    for member in &members {
        until(member, |view| matches!(view.reach, Reach::Reached(_))).await;
    }
    let (alone_ms, known_ms) = alone(&members).await;
    let a_second = together(&members[0], ALONE..ALONE + TOGETHER).await;
    together(&members[0], ALONE + TOGETHER..ALONE + TOGETHER + (count * MOST) as u64).await;
    members.extend((2..count as u64).map(|number| start(&servers, number)));
    let last = peer(ALONE + TOGETHER + (count * MOST) as u64 - 1).name;
    for member in &members {
        until(member, |view| view.state.key_of(&last).is_some()).await;
    }
    let (mut waves, mut epoch) = (Vec::new(), Epoch::FIRST);
    for (each, rounds) in WAVES {
        let (before, mut known) = (servers.seconds(), Vec::new());
        for _ in 0..rounds {
            epoch = epoch.next().expect("few");
            known.push(wave(&members, each, epoch).await);
        }
        let told = (rounds as usize * members.len() * members.len()) as f64;
        let told_us = (servers.seconds() - before) * 1e6 / told;
        waves.push(Wave { each, known_ms: median(known), told_us });
    }
    Etcd { alone_ms, known_ms, a_second, waves }
}

fn start(servers: &Servers, number: u64) -> Handle {
    let name = MemberName(PeerName::parse(&format!("m{number}")).expect("a name"));
    let key = key(FIRST_MEMBER + number);
    Handle::start(Settings {
        access: Access { urls: servers.urls(), tls: None },
        prefix: Prefix::new("/hawser/hub/"),
        lease: Duration::from_secs(10),
        name,
        member: Member { key, endpoints: Vec::new(), weight: 1, rack: 0, version: "measured".to_owned() },
        cache: Cache::default(),
        clock,
    })
}

/// Any that counts on.
fn clock() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    Time::ZERO + since
}

fn peer(number: u64) -> HubPeer {
    let name = PeerName::parse(&format!("p{number}")).expect("a name");
    let [.., a, b, c] = number.to_be_bytes();
    let allowed_ips = vec![format!("10.{a}.{b}.{c}/32").parse().expect("a network")];
    HubPeer { name, key: key(number), allowed_ips }
}

/// Until a member's view is so.
async fn until(member: &Handle, holds: impl Fn(&View) -> bool) {
    let mut views = member.views();
    let wait = async {
        while !holds(&views.borrow_and_update()) {
            views.changed().await.expect("its driver runs");
        }
    };
    timeout(PATIENCE, wait).await.expect("etcd tells it in time");
}

/// Until one is written, and until another member knows it; medians, in ms.
async fn alone(members: &[Handle]) -> (f64, f64) {
    let (mut written, mut known) = (Vec::new(), Vec::new());
    for peer in (0..ALONE).map(peer) {
        let began = Instant::now();
        members[0].view().add(&peer).await.expect("it is new");
        written.push(began.elapsed().as_secs_f64() * 1e3);
        until(&members[1], |view| view.state.key_of(&peer.name).is_some()).await;
        known.push(began.elapsed().as_secs_f64() * 1e3);
    }
    (median(written), median(known))
}

/// Adds these, many at a time: how many a second.
async fn together(member: &Handle, mut numbers: std::ops::Range<u64>) -> f64 {
    let (began, count) = (Instant::now(), numbers.end - numbers.start);
    let mut adding = JoinSet::new();
    let mut add = |adding: &mut JoinSet<Result<(), String>>| {
        if let Some(peer) = numbers.next().map(peer) {
            let view = member.view();
            adding.spawn(async move { view.add(&peer).await });
        }
    };
    (0..AT_ONCE).for_each(|_| add(&mut adding));
    while let Some(added) = adding.join_next().await {
        added.expect("no panic").expect("it is new");
        add(&mut adding);
    }
    count as f64 / began.elapsed().as_secs_f64()
}

/// Each member owns as many peers in this epoch; until the last knows the last, in ms.
async fn wave(members: &[Handle], each: usize, epoch: Epoch) -> f64 {
    let owned = |at: usize| (0..each).map(move |number| key(ALONE + TOGETHER + (at * MOST + number) as u64));
    let all: Vec<PublicKey> = (0..members.len()).flat_map(owned).collect();
    let began = Instant::now();
    for (at, member) in members.iter().enumerate() {
        member.want(|own| {
            own.owned.extend(owned(at).map(|key| (key, epoch)));
            true
        });
    }
    let mut unknown: Vec<VecDeque<PublicKey>> = members.iter().map(|_| all.iter().copied().collect()).collect();
    while unknown.iter().any(|keys| !keys.is_empty()) {
        for (keys, member) in unknown.iter_mut().zip(members) {
            let view = member.view();
            let knows = |key: &PublicKey| view.state.seen(key).is_some_and(|(_, seen)| seen.epoch >= epoch);
            while keys.front().is_some_and(knows) {
                keys.pop_front();
            }
        }
        assert!(began.elapsed() < PATIENCE, "the wave is not known in time");
        sleep(Duration::from_millis(1)).await;
    }
    began.elapsed().as_secs_f64() * 1e3
}
