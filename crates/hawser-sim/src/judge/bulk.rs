//! Bulk: one stream from the second second on, and a ping beside it.
//!
//! 1. [`run`] lets it run on a stage.
//! 2. [`judge`] does so on the bond and on each link alone, and asks what the links could have carried meanwhile.

use super::{FROM, Network, Question, Stage, put_transfers};
use crate::host::ping::{Echo, Ping};
use crate::situation::{address, second};
use crate::tcp::Transfer;
use crate::tcp::hosts::{ReceiverHost, SenderHost};
use crate::tcp::sender::Story;
use crate::world::{LOCAL, REMOTE};
use hawser_core::units::Time;
use std::time::Duration;

/// The time between two pings.
const PING_EVERY: Duration = Duration::from_millis(100);
/// What a stream takes to open and to grow, s: no gap of it is looked at before.
const OPENING: f64 = 0.5;
/// What of a full outer packet a stream through a layer-3 tunnel can have: 1500 bytes without 59 of Hawser's and the
/// outer headers (docs/wire.md) and 52 of TCP's.
pub const LAYER3: f64 = (1500.0 - 59.0 - 52.0) / 1500.0;

/// What a stream did. Nothing by default. A plain value.
#[derive(Clone, Debug, Default)]
pub struct Bulk {
    /// Goodput, Mbit/s of TCP's data.
    pub mbit: f64,
    /// The same of each second from the first.
    pub seconds: Vec<f64>,
    /// The longest time without any byte in order, from its second half second on, ms.
    pub gap: f64,
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
    pub bond: Bulk,
    /// Each link alone.
    pub alone: Vec<Bulk>,
}

/// Step 1.
pub fn run<S: Stage>(mut stage: S, network: &Network, question: Question) -> Bulk {
    let plan = Transfer::bulk(second(FROM), second(network.seconds));
    let (sender, receiver) = put_transfers(&mut stage, question, 10, &[plan], network.seed);
    let (near, far) = (address(LOCAL, 11), address(REMOTE, 11));
    let ping = stage.put(LOCAL, near, Ping::new(near, far, PING_EVERY, second(FROM), second(network.seconds)));
    stage.put(REMOTE, far, Echo::default());
    stage.pass(second(network.seconds));
    let receiver = &stage.see::<ReceiverHost>(receiver).receivers[0];
    assert_eq!(receiver.corrupt, 0, "{}: segments came with other bytes", network.name);
    let ping: &Ping = stage.see(ping);
    let trip = |share| ping.quantile(Time::ZERO, Time::NEVER, share).as_secs_f64() * 1e3;
    let mbit = |from: f64, to: f64| receiver.bytes_between(second(from), second(to)) as f64 * 8e-6 / (to - from);
    Bulk {
        mbit: mbit(FROM, network.seconds),
        seconds: (0..network.seconds as u32).map(|at| mbit(f64::from(at), f64::from(at + 1))).collect(),
        gap: receiver.longest_gap(second(FROM + OPENING), second(network.seconds)).as_secs_f64() * 1e3,
        ping: [trip(0.5), trip(0.99)],
        pings_lost: ping.lost(second(network.seconds - 1.0)),
        story: stage.see::<SenderHost>(sender).senders[0].story,
    }
}

/// Step 2.
pub fn judge(network: &Network, question: Question) -> Verdict {
    Verdict {
        capacity: network.capacity(question),
        bond: run(network.bond(), network, question),
        alone: (0..network.links.len()).map(|link| run(network.alone(link), network, question)).collect(),
    }
}

impl Verdict {
    /// The bond's share of the capacity; [`LAYER3`] of it can be had.
    pub fn share(&self) -> f64 {
        self.bond.mbit / self.capacity
    }

    /// The best link alone, Mbit/s.
    pub fn best(&self) -> f64 {
        self.alone.iter().map(|alone| alone.mbit).fold(0.0, f64::max)
    }

    /// All links, each alone, Mbit/s: more than any multipath TCP would have.
    pub fn sum(&self) -> f64 {
        self.alone.iter().map(|alone| alone.mbit).sum()
    }
}
