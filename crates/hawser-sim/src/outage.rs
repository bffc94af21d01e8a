//! One link of two, or the only one, is away for a while: how soon it is used again, and what is sent on it meanwhile.
//!
//! 1. [`Outage::draw`] draws by a seed how the links are, when the outage is and how long, whether the link keeps what
//!    it holds, and what goes on beside; [`Outage::draw_alone`] the same of a link without another.
//! 2. [`Outage::run`] looks at both ends of the path every 10 ms.
//! 3. A [`Verdict`] says when both ends had it active again, and the most that a second of an inactive path had.

use crate::judge::{Network, Question, put_transfers};
use crate::net::{LinkSpec, link};
use crate::random::Seeded;
use crate::situation::second;
use crate::tcp::{Congestion, Transfer};
use crate::world::{Act, LOCAL, REMOTE, World};
use hawser_core::path::health::HealthState;
use hawser_core::units::PathId;
use std::collections::VecDeque;

/// The path must be active again within this time of its link's return, s.
pub const BACK_WITHIN: f64 = 1.0;
/// An inactive path sends at most this number of bits in any second, in either direction.
pub const INACTIVE_BITS: f64 = 10_000.0;
/// What is drawn from: Mbit/s, round trips in ms, queues in ms at the rate.
const DOWN: (f64, f64) = (1.0, 60.0);
const UP: (f64, f64) = (0.3, 20.0);
const ROUND_TRIP: (f64, f64) = (15.0, 150.0);
const QUEUE: (f64, f64) = (50.0, 300.0);
/// When it begins, s: at the start, or later; and how long it lasts.
const AT_START: (f64, f64) = (0.0, 0.5);
const LATER: (f64, f64) = (3.0, 8.0);
const LASTS: (f64, f64) = (0.3, 20.0);
/// The same of a link without another, whose path is suspect for 1.5 s before it is down.
const LASTS_ALONE: (f64, f64) = (0.1, 3.0);
/// The time between two looks at it, and how long after the return they go on, s.
const STEP: f64 = 0.01;
const AFTER: f64 = 6.0;

/// What goes on beside.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Load {
    /// Nothing.
    Idle,
    /// A download.
    Down,
    /// An upload.
    Up,
    /// Both.
    Both,
}

impl Load {
    /// The hosts' last bytes, and whether they download.
    pub fn ways(self) -> &'static [(u8, bool)] {
        match self {
            Load::Idle => &[],
            Load::Down => &[(10, true)],
            Load::Up => &[(10, false)],
            Load::Both => &[(10, true), (11, false)],
        }
    }
}

/// An outage. A plain value.
#[derive(Clone)]
pub struct Outage {
    /// Decides everything.
    pub seed: u64,
    /// The last one is away; one before it stays.
    pub links: Vec<LinkSpec>,
    /// What is sent meanwhile is kept, as far as the queue holds it; else it vanishes.
    pub keeps: bool,
    /// When it begins, s.
    pub begin: f64,
    /// How long it lasts, s.
    pub lasts: f64,
    /// What goes on beside.
    pub load: Load,
}

/// What was seen. A plain value.
#[derive(Copy, Clone, Debug, Default)]
pub struct Verdict {
    /// How long after the return both ends had the path active, s; `None`: not within 6 s.
    pub back: Option<f64>,
    /// It was taken for down again after that.
    pub down_again: bool,
    /// By the sender (local, remote): the most bits in a second while the path was not active there.
    pub bits: [f64; 2],
}

fn link_of(rng: &mut Seeded) -> LinkSpec {
    let trip = rng.log_between(ROUND_TRIP.0, ROUND_TRIP.1);
    let (down, up) = (rng.log_between(DOWN.0, DOWN.1), rng.log_between(UP.0, UP.1));
    let queue = QUEUE.0 + rng.unit() * (QUEUE.1 - QUEUE.0);
    link(down, trip).up(|way| way.set_rate(up)).queue_ms(queue)
}

impl Outage {
    /// Step 1.
    pub fn draw(seed: u64) -> Self {
        let mut rng = Seeded::new(seed);
        let links = vec![link_of(&mut rng), link_of(&mut rng)];
        let (least, most) = if rng.chance(0.5) { AT_START } else { LATER };
        Outage {
            seed,
            links,
            begin: least + rng.unit() * (most - least),
            lasts: rng.log_between(LASTS.0, LASTS.1),
            keeps: rng.chance(0.5),
            load: [Load::Idle, Load::Down, Load::Up][rng.below(3) as usize],
        }
    }

    /// Step 1, of a link that is alone.
    pub fn draw_alone(seed: u64) -> Self {
        let mut rng = Seeded::new(seed);
        Outage {
            seed,
            links: vec![link_of(&mut rng)],
            begin: LATER.0 + rng.unit() * (LATER.1 - LATER.0),
            lasts: rng.log_between(LASTS_ALONE.0, LASTS_ALONE.1),
            keeps: rng.chance(0.5),
            load: [Load::Down, Load::Up, Load::Both][rng.below(3) as usize],
        }
    }

    /// The link that is away, counted from 0.
    pub fn away(&self) -> usize {
        self.links.len() - 1
    }

    fn network(&self) -> Network {
        let away = self.away();
        let (goes, comes) =
            if self.keeps { (Act::Stall(away), Act::Resume(away)) } else { (Act::Cut(away), Act::Heal(away)) };
        Network {
            name: self.to_string(),
            seed: self.seed,
            links: self.links.clone(),
            acts: vec![(self.begin, goes), (self.begin + self.lasts, comes)],
            seconds: self.begin + self.lasts + AFTER,
            ..Network::default()
        }
    }

    /// Step 2.
    pub fn run(&self) -> Verdict {
        let network = self.network();
        let mut world = network.bond();
        let plan = Transfer::bulk(second(0.2), second(network.seconds));
        for (host, down) in self.load.ways() {
            let question = Question { congestion: Congestion::Cubic, down: *down };
            put_transfers(&mut world, question, *host, &[plan], self.seed);
        }
        let (mut verdict, mut windows) = (Verdict::default(), [Window::default(), Window::default()]);
        let returns = self.begin + self.lasts;
        for step in 0..(network.seconds / STEP) as u64 {
            let at = step as f64 * STEP;
            world.run_until(second(at));
            let states = states(&world, self.away());
            for (side, window) in windows.iter_mut().enumerate() {
                let link = &world.links[self.away()];
                let counters = if side == LOCAL { link.up.counters } else { link.down.counters };
                let inactive = states[side].is_some_and(|state| state != HealthState::Active);
                window.look(at, counters.offered_bytes, inactive);
            }
            if at >= returns {
                verdict.look(at - returns, states);
            }
        }
        verdict.bits = windows.map(|window| window.most);
        verdict
    }
}

/// How each end sees the path of the link.
fn states(world: &World, link: usize) -> [Option<HealthState>; 2] {
    let sessions = [LOCAL, REMOTE].map(|side| world.portals[side].session(world.now));
    let local = sessions[LOCAL].as_ref().and_then(|session| {
        session.paths.iter().filter(|path| usize::from(path.link.0) == link).max_by_key(|path| path.id.0)
    });
    let Some(local) = local else { return [None, None] };
    let id: PathId = local.id;
    let remote = sessions[REMOTE].as_ref().and_then(|session| session.paths.iter().find(|path| path.id == id));
    [Some(local.state), remote.map(|path| path.state)]
}

impl Verdict {
    /// Step 3, `after` seconds after the return.
    fn look(&mut self, after: f64, states: [Option<HealthState>; 2]) {
        if states == [Some(HealthState::Active); 2] {
            self.back.get_or_insert(after);
        } else if self.back.is_some() {
            self.down_again |= states.iter().any(|state| matches!(state, Some(HealthState::Down(_))));
        }
    }

    /// Whether it is as it must be.
    pub fn holds(&self) -> bool {
        self.back.is_some_and(|back| back <= BACK_WITHIN) && self.bits.iter().all(|bits| *bits <= INACTIVE_BITS)
    }
}

/// What an inactive path sent in the last second. Nothing at first.
#[derive(Default)]
struct Window {
    before: u64,
    was_inactive: bool,
    /// When, and bytes.
    sent: VecDeque<(f64, u64)>,
    most: f64,
}

impl Window {
    fn look(&mut self, at: f64, offered: u64, inactive: bool) {
        let bytes = offered - std::mem::replace(&mut self.before, offered);
        // What was sent in a step in which the state changed may have been sent before that.
        if std::mem::replace(&mut self.was_inactive, inactive) && inactive && bytes > 0 {
            self.sent.push_back((at, bytes));
        }
        while self.sent.pop_front_if(|(sent, _)| *sent <= at - 1.0).is_some() {}
        let bits = self.sent.iter().map(|(_, bytes)| bytes * 8).sum::<u64>() as f64;
        self.most = self.most.max(bits);
    }
}

impl std::fmt::Display for Outage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let link = &self.links[self.away()];
        let mbit = |bits: u64| bits as f64 / 1e6;
        write!(
            f,
            "seed {:3} {:.1}/{:.1} Mbit/s {:3.0} ms queue {:3.0} ms {} {:5.2} s from {:4.2} s, {:?}",
            self.seed,
            mbit(link.down.rate.as_bits()),
            mbit(link.up.rate.as_bits()),
            (link.up.delay * 2).as_secs_f64() * 1e3,
            link.up.rate.time_for(link.up.queue).as_secs_f64() * 1e3,
            if self.keeps { "keeps" } else { "loses" },
            self.lasts,
            self.begin,
            self.load,
        )
    }
}
