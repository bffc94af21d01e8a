//! A million peers over 200 members in racks of 20, in virtual time: a member dies, or a rack. Who moves, and how fast?
//! `cargo run --release -p hawser-hub --example million -- [--peers 1000000] [--json FILE]`.
//!
//! 1. Peers start within the standby's refresh, claim as placement says, and settle. Round trips are 10 to 100 ms, one
//!    message of a hundred is lost.
//! 2. Then the members of the case fall silent. Some peers send a packet each 100 ms; for some one comes: routers bring
//!    it to the standby 90 to 120 ms after the death, which says so; and some have nothing to say but their claims:
//!    another member notices, which looks each 200 ms, says so in etcd, and the standby, which tells its peers, once and by
//!    two paths.
//! 3. Each of their peers has moved when the other member has confirmed its claim.
//!
//! A member's messages are claims and their answers, both ways, and what a second link keeps of the standby's session.
#![allow(clippy::disallowed_macros, reason = "an example prints")]

#[path = "../../hawser-sim/examples/shared/json.rs"]
mod json;

use hawser_core::session::constants::IDLE_KEEPALIVE;
use hawser_core::units::Time;
use hawser_hub::claim::{ClaimAck, ClaimFrame, Claimant, Ownership, Phase, Timing};
use hawser_hub::placement::{Member, Rack, Weight, place};
use hawser_hub::units::{Epoch, MemberId, PeerTag};
use json::{array, number, object, text};
use std::time::Duration;

const MEMBERS: u32 = 200;
const RACK: u32 = 20;
/// All of these are in milliseconds: from the last start to the death, and from there to the end, less a refresh.
const SETTLED: u64 = 2_000;
const AFTER: u64 = 3_000;
const PACKETS: u64 = 100;
/// Routers bring a dead member's packets elsewhere after this and something below the other (BFD at 30 ms).
const ROUTED: [u64; 2] = [90, 31];
/// How often one member looks at another, how long an answer takes at most in round trips and at least, how many are not
/// to come (hawser-portal, `etcd/failure_detector.rs`), and how long etcd takes to tell the others (crates/hawser-hub/README.md).
const LOOKS: u64 = 200;
const ANSWERS: [u64; 2] = [2, 100];
const UNANSWERED: u64 = 2;
const ETCD: u64 = 50;
/// How long a standby waits until it says what it is brought, and says it again (`gate`, BROUGHT).
const BROUGHT: u64 = 100;

/// What dies.
type Case = (&'static str, fn(u32) -> bool);

/// What peers have to do beside their claims.
#[derive(Copy, Clone, PartialEq)]
enum Has {
    PacketsUp,
    PacketsDown,
    Nothing,
}

const KINDS: [(&str, Has); 3] = [
    ("peers send a packet each 100 ms", Has::PacketsUp),
    ("peers are sent a packet each 100 ms", Has::PacketsDown),
    ("peers have nothing but their claims", Has::Nothing),
];

impl Has {
    /// Between two claims, to the owner and to the standby.
    fn refresh(self) -> [Duration; 2] {
        let Timing { refresh, standby_refresh, .. } = Timing::DEFAULT;
        if self == Has::Nothing { [IDLE_KEEPALIVE; 2] } else { [refresh, standby_refresh] }
    }
}

/// What happens to a peer. `Brought`: its packets are brought to its standby. `Missed`: its owner answers no other member.
enum Event {
    Wake,
    Claim { side: usize, frame: ClaimFrame },
    Ack { side: usize, ack: ClaimAck },
    Packet,
    Brought,
    Missed,
}

/// One peer, and what its two members are to it.
struct Peer {
    claimant: Claimant,
    members: [u32; 2],
    ownerships: [Ownership; 2],
    one_way: [u64; 2],
    wake_at: u64,
    moved_at: Option<u64>,
}

struct World {
    peers: Vec<Peer>,
    /// Of each millisecond, which peer's.
    due: Vec<Vec<(u32, Event)>>,
    dead: fn(u32) -> bool,
    death: u64,
    random: u64,
    messages: u64,
}

impl World {
    fn new(peers: u32, dead: fn(u32) -> bool, has: Has) -> Self {
        let member = |id: u32| Member { id: MemberId(u64::from(id)), rack: Rack(id / RACK), weight: Weight(1) };
        let members: Vec<_> = (0..MEMBERS).map(member).collect();
        let [owners, refresh] = has.refresh().map(|time| time.as_millis() as u64);
        let death = refresh + SETTLED;
        let due = (0..=death + AFTER + owners).map(|_| Vec::new()).collect();
        let mut world = World { peers: Vec::new(), due, dead, death, random: 1, messages: 0 };
        for number in 0..peers {
            let placement = place(PeerTag(u64::from(number)), &members).expect("there are members");
            let ids = [placement.active, placement.standby.expect("there are racks")];
            let one_way = [(); 2].map(|()| 5 + world.below(46));
            let start = world.below(refresh);
            let mut claimant = Claimant::new(Epoch::FIRST, ids[0], ids[1], Timing::DEFAULT);
            claimant.set_pace(silence(one_way), silence(one_way) / 2, has.refresh());
            world.peers.push(Peer {
                claimant,
                members: ids.map(|id| id.0 as u32),
                ownerships: ids.map(|id| Ownership::new(id, Timing::DEFAULT)),
                one_way,
                wake_at: start,
                moved_at: None,
            });
            world.schedule(start, number, Event::Wake);
            let (first, dies) = (death + world.below(PACKETS), dead(ids[0].0 as u32));
            match has {
                Has::PacketsUp if dies => world.schedule(first, number, Event::Packet),
                Has::PacketsDown if dies => {
                    // The second packet may come just after the standby looked, and counts when it looks again.
                    let at = first + ROUTED[0] + world.below(ROUTED[1]) + 2 * BROUGHT;
                    world.schedule(at, number, Event::Brought);
                }
                Has::Nothing if dies => {
                    let round_trip = 2 * (5 + world.below(46));
                    let unheard = UNANSWERED * ANSWERS[1].max(ANSWERS[0] * round_trip);
                    let at = death + world.below(LOOKS) + unheard + ETCD;
                    world.schedule(at, number, Event::Missed);
                }
                _ => {}
            }
        }
        world
    }

    /// A number below `bound` (xorshift64: Marsaglia, "Xorshift RNGs", 2003).
    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % bound
    }

    fn schedule(&mut self, at: u64, peer: u32, event: Event) {
        if let Some(events) = self.due.get_mut(at as usize) {
            events.push((peer, event));
        }
    }

    /// Puts a message on the way, if it is not lost and nobody at its ends is dead.
    fn send(&mut self, now: u64, peer: u32, side: usize, event: Event) {
        let Peer { members, one_way, .. } = &self.peers[peer as usize];
        let (at, dead) = (now + one_way[side], now >= self.death && (self.dead)(members[side]));
        self.messages += u64::from((self.death - 1_000..self.death).contains(&now));
        if !dead && self.below(100) > 0 {
            self.schedule(at, peer, event);
        }
    }

    fn run(&mut self) {
        for now in 0..self.due.len() as u64 {
            for (peer, event) in std::mem::take(&mut self.due[now as usize]) {
                self.happen(now, peer, event);
            }
        }
    }

    fn happen(&mut self, now: u64, number: u32, event: Event) {
        let time = time(now);
        let peer = &mut self.peers[number as usize];
        let ids = peer.members.map(|id| MemberId(u64::from(id)));
        match event {
            Event::Wake if now != peer.wake_at => return,
            Event::Wake => peer.claimant.handle_timeout(time),
            Event::Packet if peer.moved_at.is_some() => return,
            Event::Packet => {
                let to = peer.claimant.carrier();
                peer.claimant.handle_sent(time, to);
                self.schedule(now + PACKETS, number, Event::Packet);
            }
            Event::Brought if peer.moved_at.is_some() || (self.dead)(peer.members[1]) => return,
            Event::Brought => {
                peer.ownerships[1].handle_brought();
                let ack = peer.ownerships[1].poll_ack(time);
                ack.into_iter().for_each(|ack| self.send(now, number, 1, Event::Ack { side: 1, ack }));
                return self.schedule(now + BROUGHT, number, Event::Brought);
            }
            Event::Missed if peer.moved_at.is_some() || (self.dead)(peer.members[1]) => return,
            Event::Missed => {
                peer.ownerships[1].handle_missed(ids[0]);
                let ack = peer.ownerships[1].poll_ack(time);
                for ack in ack.into_iter().flat_map(|ack| [ack; 2]) {
                    self.send(now, number, 1, Event::Ack { side: 1, ack });
                }
                return;
            }
            Event::Ack { side, ack } => {
                peer.claimant.handle_ack(time, ids[side], ack);
                if ack.misses {
                    peer.claimant.handle_missed(time);
                }
                if ack.brought {
                    peer.claimant.handle_move(time);
                }
            }
            Event::Claim { side, .. } if now >= self.death && (self.dead)(peer.members[side]) => return,
            Event::Claim { side, frame } => {
                let _ = peer.ownerships[side].handle_claim(time, frame);
                let ack = peer.ownerships[side].poll_ack(time).expect("each claim is answered");
                return self.send(now, number, side, Event::Ack { side, ack });
            }
        }
        let peer = &mut self.peers[number as usize];
        // What moved before the death, for losses, is counted as needless.
        if peer.moved_at.is_none() && peer.claimant.phase() == Phase::Settled && peer.claimant.claim().owner == ids[1] {
            peer.moved_at = Some(now);
        }
        self.speak(now, number, ids[0]);
    }

    /// A peer says what is due, and when it wants to be called.
    fn speak(&mut self, now: u64, number: u32, active: MemberId) {
        while let Some((to, frame)) = self.peers[number as usize].claimant.poll_transmit(time(now)) {
            let side = usize::from(to != active);
            self.send(now, number, side, Event::Claim { side, frame });
        }
        let peer = &mut self.peers[number as usize];
        let due = peer.claimant.poll_timeout().since(Time::ZERO);
        let wake = (due.as_nanos().div_ceil(1_000_000) as u64).max(now + 1);
        if std::mem::replace(&mut peer.wake_at, wake) != wake {
            self.schedule(wake, number, Event::Wake);
        }
    }

    /// The figures of a case: printed, and as an object.
    fn report(&self, case: &str) -> String {
        let lost = self.peers.iter().filter(|peer| (self.dead)(peer.members[0]) && !(self.dead)(peer.members[1]));
        let mut waits: Vec<_> =
            lost.map(|peer| peer.moved_at.map_or(u64::MAX, |at| at.saturating_sub(self.death))).collect();
        waits.sort_unstable();
        let within = waits.iter().filter(|wait| **wait <= 1_000).count() as f64 / waits.len() as f64;
        let needless =
            self.peers.iter().filter(|peer| peer.moved_at.is_some() && !(self.dead)(peer.members[0])).count();
        let mut load = vec![0; MEMBERS as usize];
        for peer in &self.peers {
            load[peer.claimant.claim().owner.0 as usize] += 1;
        }
        let living = load.iter().zip(0..).filter(|(_, member)| !(self.dead)(*member)).map(|(load, _)| *load);
        let (most, count) = (living.clone().max().unwrap_or(0), living.count());
        let (half, most_of_all, all) =
            (waits[waits.len() / 2], waits[waits.len() * 999 / 1000], waits[waits.len() - 1]);
        let load = f64::from(most) * count as f64 / self.peers.len() as f64;
        let kept = self.peers.len() as f64 / IDLE_KEEPALIVE.as_secs_f64();
        // Three members are looked at, and three look: questions and answers.
        let messages = (self.messages + kept as u64) / u64::from(MEMBERS) + 2 * 3 * 2 * 1_000 / LOOKS;
        println!(
            "{case}: {} peers lost their active member; moved: half in {half} ms, 99.9 % in {most_of_all} ms, all in {all} ms; \
             {:.2} % within 1 s; {needless} others moved; most loaded member {load:.3} of the mean; {messages} messages a second and \
             member",
            waits.len(),
            within * 100.0,
        );
        object(&[
            ("case", text(case)),
            ("lost_their_member", waits.len().to_string()),
            ("half_ms", half.to_string()),
            ("of_1000_999_ms", most_of_all.to_string()),
            ("all_ms", all.to_string()),
            ("within_1_s", number(within)),
            ("moved_without_need", needless.to_string()),
            ("most_loaded", number(load)),
            ("messages_a_second_and_member", messages.to_string()),
        ])
    }
}

/// As `pair` has it of one path: the second claim, after a third of the silence, waits for a probe timeout of one and a
/// half round trips (RFC 9002 section 6.2, of a variance that is an eighth); and at least 100 ms.
fn silence(one_way: [u64; 2]) -> Duration {
    let slowest = Duration::from_millis(one_way[0].max(one_way[1]));
    (slowest * 9 / 2).max(Duration::from_millis(100))
}

fn time(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn main() {
    let (mut peers, mut file) = (1_000_000, None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        match word.as_str() {
            "--peers" => peers = value.parse().unwrap_or_else(|_| panic!("{word} needs a number, not {value}")),
            "--json" => file = Some(value),
            _ => panic!("no argument is called {word}"),
        }
    }
    let mut runs = Vec::new();
    let cases: [Case; 2] = [("a member dies", |member| member == 0), ("a rack dies", |member| member < RACK)];
    for (case, dead) in cases {
        for (kind, has) in KINDS {
            let mut world = World::new(peers, dead, has);
            world.run();
            runs.push(world.report(&format!("{case}, {kind}")));
        }
    }
    let Some(file) = file else { return };
    let command = format!("cargo run --release -p hawser-hub --example million -- --peers {peers} --json FILE");
    json::write(
        &file,
        "hub, many peers",
        &[("command", text(&command)), ("peers", peers.to_string()), ("runs", array(runs.into_iter()))],
    );
}
