//! A stateful fuzzer: a hub, two homes, a peer that lies, somebody on the way, and a network that does what it likes.
//!
//! 1. [`run`] draws everything from one seed: what portals are given to send, what becomes of datagrams, links and
//!    portals, what is forged, replayed and said under valid keys.
//! 2. Each step is an event of the network (`net.rs`), or an act (`acts.rs`). After each the ledger (`ledger.rs`) has
//!    been asked: no nonce twice, no inner packet twice, none changed, none to anybody else.
//! 3. Now and then memory is held against its bounds, and every deadline against the next second.
//! 4. At last the acts end, and one link at least of each home heals. Within [`HEALS_WITHIN`] each home has its session
//!    over it, what is sent then arrives, and afterwards no buffer is held.
//!
//! What does not hold is a panic; the seed and the command that replays it are printed with it.

mod acts;
mod ledger;
mod liar;
mod net;
mod portal;

use crate::bounds;
use crate::random::Seeded;
use hawser_core::path::constants::DEVIATION_MAX;
use hawser_core::path::health::HealthState;
use hawser_core::units::Time;
use ledger::Ledger;
use liar::Liar;
use net::Network;
use portal::{HOMES, HUB, LINKS, Portal};
use std::time::Duration;

/// Of this many steps one is an act.
const ACT_EVERY: u64 = 6;
/// Memory and deadlines are looked at every this many steps.
const LOOK_EVERY: u64 = 128;
/// A home has its session over a healed link within this time: a handshake, a held back path (8 s at most), a search.
const HEALS_WITHIN: Duration = Duration::from_secs(30);
/// Packets that each side sends after that.
const PROOF: usize = 20;
/// What is sent then has arrived by then, and nothing is held but by a path whose probe timeout is longer.
const RESTS_WITHIN: Duration = Duration::from_secs(15);
/// Trains of a portal in bytes, at most: three peers' ingress queues of 32 MiB (`queue_limit`), and as much in flight.
const TRAINS_MAX: u64 = 192 << 20;

/// What a run did. Plain data.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Steps taken.
    pub steps: u64,
    /// Datagrams that portals sent.
    pub datagrams: u64,
    /// Inner packets given to portals, and how many of them arrived.
    pub packets: (u64, u64),
    /// Datagrams that somebody else made, or replayed.
    pub hostile: u64,
    /// Sessions that began.
    pub sessions: u64,
    /// All that was sent and delivered, as one number: the same for the same seed.
    pub digest: u64,
}

/// Portals, network and enemies of one seed.
struct Fuzz {
    now: Time,
    rng: Seeded,
    portals: Vec<Portal>,
    network: Network,
    ledger: Ledger,
    liar: Liar,
    report: Report,
}

/// Prints how a run is replayed, should it end in a panic.
struct Replay(u64, u64);

impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Replay(seed, steps) = self;
            eprintln!(
                "replay: cargo run --release -p hawser-sim --example fuzz -- --seed {seed} --seeds 1 --steps {steps}"
            );
        }
    }
}

/// One run: `steps` steps of the seed, and the proof that all heals.
///
/// # Panics
/// Where something does not hold.
pub fn run(seed: u64, steps: u64) -> Report {
    let _replay = Replay(seed, steps);
    let mut fuzz = Fuzz::new(seed);
    for step in 0..steps {
        if fuzz.rng.below(ACT_EVERY) == 0 {
            fuzz.act()
        } else {
            fuzz.next_event()
        }
        if step % LOOK_EVERY == 0 {
            fuzz.look();
        }
    }
    fuzz.heal();
    fuzz.report.steps += steps;
    fuzz.report.packets = fuzz.ledger.packets();
    fuzz.report.digest = fuzz.ledger.digest();
    fuzz.report
}

impl Fuzz {
    fn new(seed: u64) -> Self {
        let mut rng = Seeded::new(seed);
        let now = Time::from_nanos(1_000_000_000);
        let mut portals: Vec<Portal> = (0..=HOMES).map(|place| Portal::new(place, &mut rng)).collect();
        portals.iter_mut().for_each(|portal| portal.start(now, &mut rng));
        let network = Network::new(&mut rng);
        let (liar, ledger, report) = (Liar::new(&mut rng), Ledger::default(), Report::default());
        Fuzz { now, rng, portals, network, ledger, liar, report }
    }

    /// The next arrival or deadline, and all that follows at once.
    fn next_event(&mut self) {
        let timers = self.portals.iter_mut().filter_map(|portal| portal.due(self.now)).min();
        let next = timers.into_iter().chain(self.network.due()).min().unwrap_or(self.now);
        self.now = next.max(self.now);
        self.arrivals();
        self.settle();
    }

    /// Hands over what has arrived by now.
    fn arrivals(&mut self) {
        while let Some(flight) = self.network.arrived(self.now) {
            if flight.to == self.liar.address {
                self.liar.hear(&flight.bytes);
                continue;
            }
            let found = self.portals.iter_mut().find_map(|portal| Some((portal.link_at(flight.to)?, portal)));
            if let Some((link, portal)) = found {
                portal.receive(self.now, link, flight.source, flight.bytes, &mut self.ledger);
            }
        }
    }

    /// All that is due of every portal, until they rest.
    fn settle(&mut self) {
        for place in 0..self.portals.len() {
            let portal = &mut self.portals[place];
            self.report.sessions += portal.wake(self.now, &mut self.ledger);
            for flight in portal.sent.drain(..) {
                self.report.datagrams += 1;
                self.ledger.on_datagram(place, &flight.bytes);
                self.network.carry(self.now, flight, &mut self.rng);
            }
        }
    }

    /// Step 3.
    fn look(&mut self) {
        for portal in &mut self.portals {
            bounds::check(&format!("portal {}", portal.place), &mut portal.endpoint, self.now, TRAINS_MAX);
        }
    }

    fn run_for(&mut self, time: Duration, done: impl Fn(&Fuzz) -> bool) {
        let end = self.now + time;
        while self.now < end && !done(self) {
            self.report.steps += 1;
            self.next_event();
        }
    }

    /// Step 4.
    fn heal(&mut self) {
        let mut whole = Vec::new();
        for home in 1..=HOMES {
            let first = self.rng.below(LINKS as u64) as usize;
            for link in 0..LINKS {
                let heals = link == first || self.rng.chance(0.5);
                self.network.heal(home, link, heals);
                if heals {
                    self.portals[home].have(self.now, link);
                    whole.push((home, link));
                }
            }
        }
        self.settle();
        self.run_for(HEALS_WITHIN, |fuzz| (1..=HOMES).all(|home| fuzz.is_active(home)));
        for home in 1..=HOMES {
            let active = self.is_active(home);
            assert!(active, "home {home} has no path though links {whole:?} are whole:\n{}", self.state());
        }
        // What waited may still be on its way, and go first.
        self.run_for(RESTS_WITHIN, |_| false);
        self.ledger.forget();
        for _ in 0..PROOF {
            for home in 1..=HOMES {
                for (from, to) in [(home, HUB), (HUB, home)] {
                    let packet = self.ledger.packet(from, to, 300, 1);
                    self.portals[from].give(self.now, &packet);
                }
            }
            self.settle();
            self.run_for(Duration::from_millis(20), |_| false);
        }
        self.run_for(RESTS_WITHIN, |_| false);
        let missing = self.ledger.missing();
        assert!(missing.is_empty(), "over whole links {whole:?}, not arrived: {missing:?}\n{}", self.state());
        self.run_for(self.overdue_within(), |fuzz| fuzz.portals.iter().all(|portal| fuzz.held(portal) == 0));
        for portal in &self.portals {
            assert_eq!(self.held(portal), 0, "portal {} holds buffers at rest", portal.place);
        }
    }

    /// The longest probe timeout: what a path has is kept until then, where another brought it, too (seed 867156: a link
    /// that keeps what it has for six seconds).
    fn overdue_within(&self) -> Duration {
        let sessions = self.portals.iter().flat_map(|portal| portal.endpoint.snapshot(self.now).peers).flatten();
        let slowest = sessions.flat_map(|session| session.paths).map(|path| path.rtt).max().unwrap_or_default();
        slowest + slowest.max(DEVIATION_MAX)
    }

    fn held(&self, portal: &Portal) -> u64 {
        portal.endpoint.snapshot(self.now).trains.0
    }

    /// Sessions, paths and what was dropped, for whoever has to find out why.
    fn state(&self) -> String {
        let mut text = String::new();
        for portal in &self.portals {
            let snapshot = portal.endpoint.snapshot(self.now);
            let drops: Vec<_> = snapshot.drops.iter().filter(|(_, count)| *count > 0).collect();
            text += &format!("portal {}: dropped {drops:?}\n", portal.place);
            for (peer, session) in snapshot.peers.iter().enumerate() {
                let Some(session) = session else { continue };
                text += &format!("  peer {peer}: age {:?}, keys {:?}\n", session.age, session.key_age);
                for path in &session.paths {
                    let (id, link, rx, tx) = (path.id, path.link, path.rx_bytes, path.tx_bytes);
                    text += &format!("    {id:?} {link:?} {} {:?} {rx:?} {tx:?}\n", path.remote, path.state);
                }
            }
        }
        text
    }

    /// Whether a home and the hub both have a path that works between them.
    fn is_active(&self, home: usize) -> bool {
        let active = |place: usize, peer: usize| {
            let snapshot = self.portals[place].endpoint.snapshot(self.now);
            let session = snapshot.peers.into_iter().nth(peer).flatten();
            session.is_some_and(|session| session.paths.iter().any(|path| path.state == HealthState::Active))
        };
        active(home, 0) && active(HUB, home - 1)
    }
}
