//! What a topology file says, parsed: docs/scion.md describes the file.

use std::time::Duration;

use hawser_scion::IsdAs;
use hawser_scion::conn::PortRange;
use hawser_wire::{Direction, Rate};

pub use crate::scenario::Family;

/// A SCION network: autonomous systems, and links between them. Plain data.
#[derive(Clone, Debug)]
pub struct Topology {
    /// What the running network is called, unless told otherwise.
    pub name: String,
    /// Whether daemons listen on all addresses of their hosts, not only on loopback.
    pub remote_daemons: bool,
    /// At least one.
    pub ases: Vec<AsPlan>,
    /// In the order of the file; interfaces are numbered in it.
    pub links: Vec<LinkPlan>,
}

/// An AS: a router and a control service in one namespace, and hosts. Plain data.
#[derive(Clone, Debug)]
pub struct AsPlan {
    /// Its number.
    pub id: IsdAs,
    /// Whether it is of its ISD's core; then it issues certificates, too.
    pub core: bool,
    /// How many hosts it has.
    pub hosts: u8,
    /// What its hosts' addresses are.
    pub family: Family,
    /// What a SCION packet may have inside it, from its SCION header on.
    pub mtu: u16,
    /// Ports that its router sends straight to, and applications receive on without a dispatcher.
    pub dispatched: PortRange,
    /// Whether its hosts run the dispatcher shim, which answers echo requests, too.
    pub shim: bool,
}

/// What a link is between its ends. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// Between two core ASes.
    Core,
    /// From a parent, the first end, to its child.
    Child,
    /// Between two ASes that are no parents of each other.
    Peer,
}

impl LinkKind {
    /// As the file has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Child => "child",
            Self::Peer => "peer",
        }
    }
}

/// A link between the routers of two ASes. Plain data.
#[derive(Clone, Debug)]
pub struct LinkPlan {
    /// Its name, and that of its interfaces.
    pub name: String,
    /// What it is.
    pub kind: LinkKind,
    /// Its ends; of a child link the parent first.
    pub ends: [IsdAs; 2],
    /// How packets go from the first end, and back; none: a veth that does not slow them.
    pub ways: Option<[Direction; 2]>,
    /// What a SCION packet may have on it.
    pub mtu: u16,
    /// What each end announces of it in beacons.
    pub announced: [Announced; 2],
    /// How often routers ask each other whether the link is there; after three unanswered ones it is down.
    pub bfd: Duration,
}

/// What an AS announces of a link. Plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Announced {
    /// One way.
    pub latency: Option<Duration>,
    /// One way.
    pub bandwidth: Option<Rate>,
}

impl Topology {
    /// The plan of an AS.
    pub fn find(&self, id: IsdAs) -> Option<&AsPlan> {
        self.ases.iter().find(|plan| plan.id == id)
    }

    /// Shapes every link the same: for measurements that begin with an embedded topology.
    pub fn shape(&mut self, way: &Direction) {
        for (link, seed) in self.links.iter_mut().zip(0_u64..) {
            link.ways = Some(Direction { seed: way.seed + 2 * seed, ..way.clone() }.both_ways());
            link.announced = [Announced { latency: Some(way.delay), bandwidth: way.mean_rate() }; 2];
        }
    }
}
