//! What the bond is judged by, on any links, each judge against the same traffic on one link without portals.
//!
//! 1. A [`Network`] is links and what happens to them, drawn or recorded ([`crate::family`]).
//! 2. A [`Stage`] is where hosts meet: behind the bond's portals, or at the ends of one link.
//! 3. [`bulk`]: goodput of one stream over what the links could carry, and a ping beside it.
//! 4. [`short`]: how long 30 kB, 300 kB and 3 MB take, alone and beside a download.
//! 5. [`sparse`]: calls beside a download: how late their packets are, and how many are of no use.

pub mod bulk;
pub mod short;
pub mod sparse;

use crate::direct::Direct;
use crate::host::{Host, HostId};
use crate::net::{LinkSpec, Way};
use crate::portal::Recipe;
use crate::situation::{address, second};
use crate::tcp::hosts::{ReceiverHost, SenderHost};
use crate::tcp::{Congestion, Transfer};
use crate::world::{Act, LOCAL, REMOTE, Setup, World};
use hawser_core::congestion::Kind;
use hawser_core::policy::Tuning;
use hawser_core::units::Time;
use std::net::Ipv4Addr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Streams begin at this second: every path is known then.
pub const FROM: f64 = 1.0;

/// Links, and what happens to them. None by default. A plain value.
#[derive(Clone, Default)]
pub struct Network {
    /// What it is called.
    pub name: String,
    /// Decides all that is random.
    pub seed: u64,
    /// The links.
    pub links: Vec<LinkSpec>,
    /// What happens to them, and at which second.
    pub acts: Vec<(f64, Act)>,
    /// How long it is looked at.
    pub seconds: f64,
    /// Constants of both portals' policy.
    pub tuning: Tuning,
}

/// What is asked. A plain value.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Question {
    /// The streams' congestion control.
    pub congestion: Congestion,
    /// They go to the local portal.
    pub down: bool,
}

impl Question {
    /// The sides that send and receive.
    pub fn sides(self) -> (usize, usize) {
        if self.down { (REMOTE, LOCAL) } else { (LOCAL, REMOTE) }
    }

    /// A transfer in its direction; whoever is behind the local portal opens it.
    pub fn plan(self, transfer: Transfer) -> Transfer {
        let plan = transfer.by(self.congestion);
        if self.down { plan.asked() } else { plan }
    }

    fn way(self, link: &LinkSpec) -> &Way {
        if self.down { &link.down } else { &link.up }
    }
}

/// Where hosts meet.
pub trait Stage {
    /// The name of a host.
    type Id: Copy;
    /// Puts a host on a side.
    fn put(&mut self, side: usize, address: Ipv4Addr, host: impl Host) -> Self::Id;
    /// A host that was put there.
    fn see<H: Host>(&self, id: Self::Id) -> &H;
    /// Lets the time pass.
    fn pass(&mut self, until: Time);
}

impl Stage for World {
    type Id = HostId;
    fn put(&mut self, side: usize, address: Ipv4Addr, host: impl Host) -> HostId {
        self.add_host(side, address, host)
    }
    fn see<H: Host>(&self, id: HostId) -> &H {
        self.host(id)
    }
    fn pass(&mut self, until: Time) {
        self.run_until(until);
    }
}

impl Stage for Direct {
    type Id = HostId;
    fn put(&mut self, side: usize, address: Ipv4Addr, host: impl Host) -> HostId {
        self.add_host(side, address, host)
    }
    fn see<H: Host>(&self, id: HostId) -> &H {
        self.host(id)
    }
    fn pass(&mut self, until: Time) {
        self.run_until(until);
    }
}

/// Senders and receivers of these transfers, at hosts `last` of both sides.
pub fn put_transfers<S: Stage>(
    stage: &mut S,
    question: Question,
    last: u8,
    plans: &[Transfer],
    seed: u64,
) -> (S::Id, S::Id) {
    let (from, to) = question.sides();
    let (source, sink) = (address(from, last), address(to, last));
    let plans: Vec<Transfer> = plans.iter().map(|plan| question.plan(*plan)).collect();
    let sender = stage.put(from, source, SenderHost::new(source, sink, &plans, seed));
    (sender, stage.put(to, sink, ReceiverHost::new(sink, source, &plans, seed)))
}

impl Network {
    /// A bond of its links.
    pub fn bond(&self) -> World {
        let setup = Setup {
            seed: self.seed,
            links: self.links.clone(),
            recipes: [LOCAL, REMOTE].map(|side| Recipe { tuning: self.tuning, ..Recipe::of(side, Kind::Bbr) }),
            clocks: None,
            both_initiate: false,
        };
        let mut world = World::new(setup);
        self.acts.iter().for_each(|(at, act)| world.at(second(*at), act.clone()));
        world
    }

    /// One of its links alone.
    pub fn alone(&self, link: usize) -> Direct {
        let mut direct = Direct::new(&self.links[link], self.seed);
        self.acts_on(link).for_each(|(at, act)| direct.at(at, act.clone()));
        direct
    }

    fn acts_on(&self, link: usize) -> impl Iterator<Item = (Time, &Act)> {
        let own = move |act: &Act| act.touches().is_some_and(|(touched, _)| touched == link);
        self.acts.iter().filter(move |(_, act)| own(act)).map(|(at, act)| (second(*at), act))
    }

    /// The bytes that a link could carry in a direction, but those that would vanish.
    pub fn carries(&self, link: usize, question: Question, from: Time, to: Time) -> u64 {
        let mut way = question.way(&self.links[link]).clone();
        let mut acts: Vec<(Time, &Act)> = self.acts_on(link).collect();
        acts.sort_by_key(|(at, _)| *at);
        let (mut bytes, mut now) = (0, Time::ZERO);
        let mut count = |way: &Way, start: Time, end: Time| {
            let (start, end) = (start.max(from), end.min(to));
            if start < end && !way.hole {
                bytes += way.carries(start, end).0;
            }
        };
        for (at, act) in acts {
            count(&way, now, at);
            let [up, down] = act.touches().map_or([false; 2], |(_, ways)| ways);
            if if question.down { down } else { up } {
                act.change(&mut way);
            }
            now = at;
        }
        count(&way, now, to);
        bytes
    }

    /// What all links could have carried after the streams began, Mbit/s of IP packets.
    pub fn capacity(&self, question: Question) -> f64 {
        let (from, to) = (second(FROM), second(self.seconds));
        let bytes: u64 = (0..self.links.len()).map(|link| self.carries(link, question, from, to)).sum();
        bytes as f64 * 8e-6 / (self.seconds - FROM)
    }
}

/// The value that `share` (0 to 1) of the others are not greater than; NaN of none.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() as f64 * share) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

/// `work` on each item, on all processors; the results are in the items' order, whatever the threads did.
pub fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let worker = || {
        while let Some((index, item)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, items.get(i)?)))
        {
            let result = work(item);
            done.lock().expect("no worker panics with the lock").push((index, result));
        }
    };
    std::thread::scope(|scope| {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        (0..workers).for_each(|_| drop(scope.spawn(worker)));
    });
    let mut done = done.into_inner().expect("no worker panics with the lock");
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::link;

    #[test]
    fn capacity_follows_the_acts_and_leaves_out_what_would_vanish() {
        let acts = vec![
            (3.0, Act::Rate(0, 1.0)),
            (5.0, Act::Cut(0)),
            (6.0, Act::Heal(0)),
            (7.0, Act::RateUp(0, 50.0)),
            (8.0, Act::Stall(0)),
            (9.0, Act::Resume(0)),
            (4.0, Act::Rate(1, 0.0)),
        ];
        let network = Network { seed: 1, links: vec![link(10.0, 20.0); 2], acts, seconds: 11.0, ..Network::default() };
        let down = Question { congestion: Congestion::Cubic, down: true };
        // Link 0: 2 s of 10 Mbit, 2 s of 1, nothing, 2 s of 1, nothing, 2 s of 1; link 1: 3 s of 10.
        assert!((network.capacity(down) - (26.0 + 30.0) / 10.0).abs() < 1e-6, "{}", network.capacity(down));
        let up = Question { down: false, ..down };
        assert!((network.capacity(up) - (23.0 + 150.0 + 30.0) / 10.0).abs() < 1e-6, "{}", network.capacity(up));
    }

    #[test]
    fn results_keep_their_order() {
        let items: Vec<u32> = (0..100).collect();
        assert_eq!(each(&items, |item| item * 2), items.iter().map(|item| item * 2).collect::<Vec<_>>());
    }

    #[test]
    fn quantiles_are_of_what_is_there() {
        let values = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!([0.0, 0.5, 0.9, 1.0].map(|share| quantile(&values, share)), [1.0, 3.0, 5.0, 5.0]);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
