//! What the control thread and the packet thread say to each other.

use std::net::SocketAddr;
use std::time::Duration;

#[cfg(feature = "scion")]
use hawser_core::alias::Alias;
use hawser_core::endpoint::{Event, PeerConfig, Snapshot};
use hawser_core::flows::LargestFlows;
use hawser_core::handshake::enrolment::Invitation;
use hawser_core::rules::Rules;
use hawser_core::session::{SpeedError, SpeedRun, Terms};
use hawser_core::units::{LinkGroup, LinkId, PeerId, Time};
#[cfg(feature = "etcd")]
use hawser_hub::claim::Claim;
use hawser_hub::claim::Role;
use hawser_hub::gate::Announced;
use hawser_hub::pair::{Member, Moved};
use hawser_hub::units::{Epoch, MemberId};
use hawser_net::netcfg::LinkEvent;
#[cfg(feature = "scion")]
use hawser_scion::daemon::PortRange;
#[cfg(feature = "scion")]
use hawser_scion::link::Way;
use tokio::sync::oneshot;

use super::plan::SocketPlan;

/// To the packet thread, by a channel with a bell. Owned data.
#[derive(Debug)]
pub enum Command {
    /// The kernel said so of interfaces and addresses.
    Link(LinkEvent),
    /// The configuration was read again.
    Reload(Reload),
    /// Paths were found, chosen anew or renewed.
    #[cfg(feature = "scion")]
    Ways(Ways),
    /// These may enrol from now on.
    Invitations(Vec<Invitation>),
    /// Report the present state.
    Snapshot,
    /// Count flows from now on, or no more.
    WatchFlows(bool),
    /// Report the largest flows, if they are counted.
    Flows,
    /// Begin a run of a speed test with a peer.
    MeasureSpeed {
        /// With whom.
        peer: PeerId,
        /// What is loaded.
        run: SpeedRun,
        /// Whether it began.
        answer: oneshot::Sender<Result<(), SpeedError>>,
    },
    /// End the speed test with a peer.
    EndSpeed(PeerId),
    /// Ask peers that this member of a hub owns to go to their other one, or no longer.
    Drain(Drain),
    /// What was heard of whom peers claimed, and not from them.
    #[cfg(feature = "etcd")]
    Hearsay(Vec<(PeerId, Claim)>),
    /// Other members of the hub no longer hear from this one.
    #[cfg(feature = "etcd")]
    Missed(MemberId),
    /// Close the sessions, and end.
    Stop,
}

/// What a new configuration changes while the portal runs, to be done in this order. Nothing by default. Owned data,
/// with secrets.
#[derive(Default)]
pub struct Reload {
    /// Peers that go.
    pub removed: Vec<PeerId>,
    /// Peers with other endpoints or networks.
    pub changed: Vec<(PeerId, PeerConfig)>,
    /// Peers that come, and the places that they get.
    pub added: Vec<(PeerId, PeerConfig)>,
    /// Metrics of links' sockets.
    pub metrics: Vec<(LinkId, u16)>,
    /// How flows are treated.
    pub rules: Option<Rules>,
    /// On what terms links are offered.
    pub terms: Vec<(LinkGroup, Terms)>,
    /// Sockets that go.
    pub links_removed: Vec<LinkId>,
    /// Sockets that come, under names that nobody has then.
    pub links_added: Vec<SocketPlan>,
}

impl Reload {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        let peers = self.removed.is_empty() && self.changed.is_empty() && self.added.is_empty();
        let links = self.metrics.is_empty() && self.links_removed.is_empty() && self.links_added.is_empty();
        peers && links && self.rules.is_none() && self.terms.is_empty()
    }
}

impl std::fmt::Debug for Reload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (removed, changed, added) = (self.removed.len(), self.changed.len(), self.added.len());
        write!(f, "Reload {{ {removed} removed, {changed} changed, {added} added, metrics {:?}, ", self.metrics)?;
        write!(f, "links removed {:?}, added {:?} }}", self.links_removed, self.links_added)
    }
}

/// What a portal is in hubs when it starts. In none by default. Owned data.
#[derive(Debug)]
pub struct Hubs {
    /// Above each epoch that this portal ever made.
    pub first: Epoch,
    /// The members of each hub that it is a peer of: the active one, the standby, and those after it.
    pub joined: Vec<Vec<Member>>,
    /// Its own name, where it is a member itself.
    pub member: Option<MemberId>,
    /// Decides how long after others this portal goes back to a member that it prefers (`hawser_hub::pair`).
    pub random: u64,
}

/// Whom a member of a hub asks to go. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drain {
    /// This peer; none: all of them, and those to come.
    pub peer: Option<PeerId>,
    /// From now on; else no longer.
    pub begins: bool,
}

/// What changed of who owns a peer. Plain data.
#[derive(Clone, Copy, Debug)]
pub enum News {
    /// This portal gave this epoch to a member.
    Claimed(Epoch),
    /// Its packets go to another member from now on.
    Moved(Moved),
    /// What this portal, a member, is to a peer from now on.
    Announced(Announced),
}

/// How it stands with a peer of a hub. A plain value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Packets go to this member; whether it has confirmed that it owns this portal.
    Active { epoch: Option<Epoch>, settled: bool },
    /// They go to the other one.
    Backup { epoch: Option<Epoch> },
    /// It is asked where neither of the two is there.
    Spare { epoch: Option<Epoch> },
    /// This portal is a member, and this to the peer.
    Member { role: Role, epoch: Option<Epoch> },
}

/// From the packet thread. Owned data.
#[derive(Debug)]
pub enum Report {
    /// The present state.
    State(Box<State>),
    /// The largest flows, and when that was.
    Flows(LargestFlows, Time),
    /// What the core wants done or told.
    Event(Event),
    /// Somebody else owns a peer from now on.
    Hub(News),
    /// Somebody on the way says that the one of this alias is broken.
    Broken(SocketAddr),
}

/// The SCION paths of a link from now on. Owned data.
#[cfg(feature = "scion")]
#[derive(Debug)]
pub struct Ways {
    /// The link.
    pub link: LinkId,
    /// All of them, to every endpoint.
    pub ways: Vec<Way>,
    /// Which lead to which peer; none of its own means that it has none any more.
    pub peers: Vec<(PeerId, Vec<Alias>)>,
    /// The ports that routers of this AS send to, where they were told.
    pub ports: Option<PortRange>,
}

/// The packet thread's state at one moment. Plain data.
#[derive(Debug)]
pub struct State {
    /// What the core says.
    pub core: Snapshot,
    /// Whether each socket of the plan is open and usable, by `LinkId`.
    pub usable: Vec<bool>,
    /// What was lost outside the core.
    pub lost: Lost,
    /// For how long altogether the thread had a processor, or waited for one.
    pub busy: Duration,
    /// The same of each thread that seals and opens beside it.
    pub workers: Vec<Duration>,
    /// How it stands with each peer of a hub; empty where there is none.
    pub standings: Vec<(PeerId, Standing)>,
    /// Whether no peer would miss this portal as the member that owns it.
    pub drained: bool,
}

/// Packets lost outside the core, since the start. Zero at first. Plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Inner packets from TUN whose header contradicted them.
    pub tun_malformed: u64,
    /// Inner packets that the host did not take.
    pub tun_refused: u64,
    /// Datagrams that came and the kernel threw away: a receive buffer was full, or their UDP checksum was wrong.
    pub kernel_dropped: u64,
    /// What routers said, or somebody in their name, that was not followed: it was about no datagram of ours, or no
    /// news.
    pub icmp_ignored: u64,
    /// Connections that were closed at once, as too many came.
    pub connections_refused: u64,
    /// Bytes of datagrams that the kernel refused to send.
    pub send_refused_bytes: u64,
}

impl Lost {
    /// Each count with the name that status shows it under.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("tun_malformed", self.tun_malformed),
            ("tun_refused", self.tun_refused),
            ("kernel_dropped", self.kernel_dropped),
            ("icmp_ignored", self.icmp_ignored),
            ("connections_refused", self.connections_refused),
            ("send_refused_bytes", self.send_refused_bytes),
        ]
        .into_iter()
    }
}
