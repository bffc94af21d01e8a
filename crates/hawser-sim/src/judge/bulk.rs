//! One TCP stream from the second second on, and a ping beside it.
//!
//! 1. [`bond`] lets it run through the bond; [`alone`] straight over one link, without portals.
//! 2. [`capacity`] is what the links could have carried meanwhile.
//! 3. [`judge`] does all of it.

use super::Network;
use crate::direct::Direct;
use crate::host::ping::{Echo, Ping};
use crate::net::LinkSpec;
use crate::situation::{address, second};
use crate::tcp::hosts::{ReceiverHost, SenderHost};
use crate::tcp::sender::Story;
use crate::tcp::{Congestion, Transfer};
use crate::world::{LOCAL, REMOTE};
use hawser_core::units::Time;
use std::time::Duration;

/// The stream begins at this second: every path is known then.
const FROM: f64 = 1.0;
/// A ping so often.
const PING_EVERY: Duration = Duration::from_millis(100);

/// What is asked. A plain value.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Question {
    /// The stream's congestion control.
    pub congestion: Congestion,
    /// It goes to the local portal.
    pub down: bool,
}

impl Question {
    /// The sides that send and receive.
    fn sides(self) -> (usize, usize) {
        if self.down { (REMOTE, LOCAL) } else { (LOCAL, REMOTE) }
    }

    fn plan(self, until: f64) -> Transfer {
        let plan = Transfer::bulk(second(FROM), second(until)).by(self.congestion);
        if self.down { plan.asked() } else { plan }
    }
}

/// What the bond did. A plain value.
#[derive(Clone, Debug, Default)]
pub struct Bond {
    /// Goodput, Mbit/s of TCP's data.
    pub mbit: f64,
    /// The same of each second from the first.
    pub seconds: Vec<f64>,
    /// The ping's median and 99th percentile, ms.
    pub ping: [f64; 2],
    /// Pings without an answer.
    pub pings_lost: usize,
    /// What happened to the sender.
    pub story: Story,
}

/// All that is said of a network. A plain value.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// What the links could have carried, Mbit/s of IP packets.
    pub capacity: f64,
    /// The bond.
    pub bond: Bond,
    /// Each link alone, Mbit/s.
    pub alone: Vec<f64>,
}

/// Step 1.
pub fn bond(network: &Network, question: Question) -> Bond {
    let mut world = network.world();
    let (from, to) = question.sides();
    let (source, sink) = (address(from, 10), address(to, 10));
    let plan = [question.plan(network.seconds)];
    let sender = world.add_host(from, source, SenderHost::new(source, sink, &plan, network.seed));
    let receiver = world.add_host(to, sink, ReceiverHost::new(sink, source, &plan, network.seed));
    let (near, far) = (address(LOCAL, 11), address(REMOTE, 11));
    let ping = Ping::new(near, far, PING_EVERY, second(FROM), second(network.seconds));
    let ping = world.add_host(LOCAL, near, ping);
    world.add_host(REMOTE, far, Echo::default());
    world.run_until(second(network.seconds));
    let receiver = &world.host::<ReceiverHost>(receiver).receivers[0];
    assert_eq!(receiver.corrupt, 0, "{}: segments came with other bytes", network.name);
    let ping: &Ping = world.host(ping);
    let trip = |share| ping.quantile(Time::ZERO, Time::NEVER, share).as_secs_f64() * 1e3;
    let mbit = |from: f64, to: f64| receiver.bytes_between(second(from), second(to)) as f64 * 8e-6 / (to - from);
    Bond {
        mbit: mbit(FROM, network.seconds),
        seconds: (0..network.seconds as u32).map(|at| mbit(f64::from(at), f64::from(at + 1))).collect(),
        ping: [trip(0.5), trip(0.99)],
        pings_lost: ping.lost(second(network.seconds - 1.0)),
        story: world.host::<SenderHost>(sender).senders[0].story,
    }
}

/// Step 1: Mbit/s of one link, to which nothing happens.
pub fn alone(network: &Network, link: &LinkSpec, question: Question) -> f64 {
    let mut world = Direct::new(link, network.seed);
    let (from, to) = question.sides();
    let (source, sink) = (address(from, 10), address(to, 10));
    let plan = [question.plan(network.seconds)];
    world.add_host(from, source, SenderHost::new(source, sink, &plan, network.seed));
    let receiver = world.add_host(to, sink, ReceiverHost::new(sink, source, &plan, network.seed));
    world.run_until(second(network.seconds));
    let receiver = &world.host::<ReceiverHost>(receiver).receivers[0];
    receiver.bytes_between(second(FROM), second(network.seconds)) as f64 * 8e-6 / (network.seconds - FROM)
}

/// Step 2, Mbit/s of IP packets.
pub fn capacity(network: &Network, question: Question) -> f64 {
    let (from, to) = (second(FROM), second(network.seconds));
    let ways = network.links.iter().map(|link| if question.down { &link.down } else { &link.up });
    let bytes: u64 = ways.map(|way| way.carries(from, to).0).sum();
    bytes as f64 * 8e-6 / (network.seconds - FROM)
}

/// Step 3.
pub fn judge(network: &Network, question: Question) -> Verdict {
    Verdict {
        capacity: capacity(network, question),
        bond: bond(network, question),
        alone: network.links.iter().map(|link| alone(network, link, question)).collect(),
    }
}

impl Verdict {
    /// The bond's share of the capacity.
    pub fn share(&self) -> f64 {
        self.bond.mbit / self.capacity
    }

    /// The best link alone, Mbit/s.
    pub fn best(&self) -> f64 {
        self.alone.iter().copied().fold(0.0, f64::max)
    }

    /// All links, each alone, Mbit/s: more than any multipath TCP would have.
    pub fn sum(&self) -> f64 {
        self.alone.iter().sum()
    }
}
