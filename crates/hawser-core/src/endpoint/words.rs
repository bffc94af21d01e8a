//! What a portal's core is told, and what it tells.

use super::peer::PeerConfig;
use crate::drops::Drops;
use crate::handshake::enrolment::InvitationId;
use crate::handshake::secrets::SessionSecrets;
use crate::handshake::{Identity, PublicKey};
use crate::rules::RuleId;
use crate::session::{KeyEnd, SessionSnapshot, Settings};
use crate::transport::Transport;
use crate::units::{ByteCount, LinkGroup, LinkId, PeerId};
use crate::wire::{HubFrame, Offer, Version};
use std::net::SocketAddr;

/// What a portal is made of. No default; moved into the endpoint.
pub struct Config {
    /// This portal's key pair.
    pub identity: Identity,
    /// What it offers its peers; `instance` must be random for each start of the portal. Unless it says what is spoken,
    /// it is [`Version::OURS`].
    pub offer: Offer,
    /// How sessions behave.
    pub settings: Settings,
    /// Whom it knows; `PeerId` counts them.
    pub peers: Vec<PeerConfig>,
}

/// A link as the core sees it. A plain value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The driver's name of it.
    pub id: LinkId,
    /// The configured link that it belongs to, which keeps one path: the most preferred that works, and of equal ones
    /// the first that validates. Where endpoints are aliases it keeps one along each.
    pub group: LinkGroup,
    /// How little it is preferred among those of its group: with 0 it is used at once, else where the others fail.
    pub preference: u8,
    /// Its tier.
    pub metric: u16,
    /// How it carries datagrams.
    pub transport: Transport,
    /// It can reach IPv4 endpoints.
    pub ipv4: bool,
    /// It can reach IPv6 endpoints.
    pub ipv6: bool,
    /// Paths are opened on it; a listening socket only answers.
    pub opens: bool,
    /// It may be used now.
    pub up: bool,
}

/// What the driver is to do or to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// What goes to this peer by TUN should have no more bytes than this: larger packets go in pieces.
    PeerMtu {
        /// To whom.
        peer: PeerId,
        /// Bytes of an inner packet.
        mtu: u16,
    },
    /// A session with this peer began, as `new` or under fresh keys.
    Session {
        /// With whom.
        peer: PeerId,
        /// Not merely new keys.
        new: bool,
    },
    /// A session began with a peer of another version: what either knows alone is not used between them.
    OtherVersion {
        /// With whom.
        peer: PeerId,
        /// What it speaks.
        theirs: Version,
        /// What this portal speaks.
        ours: Version,
    },
    /// A peer answers our initiations, and no session follows.
    Refused {
        /// Who.
        peer: PeerId,
        /// Why, as far as it shows.
        refusal: Refusal,
    },
    /// The peer closed the session.
    Closed {
        /// Who.
        peer: PeerId,
    },
    /// The peer was not heard for so long that its session is over: its keys are erased.
    Silent {
        /// Who.
        peer: PeerId,
    },
    /// Nothing is sent to this peer under keys that nothing replaced in time, until a handshake succeeds.
    KeysOver {
        /// To whom.
        peer: PeerId,
        /// Which bound they came to.
        end: KeyEnd,
    },
    /// Trains do not arrive on a path, and single datagrams do: they leave one by one from now on.
    TrainsLost {
        /// Whose path.
        peer: PeerId,
        /// By which link.
        link: LinkId,
        /// Where to.
        remote: SocketAddr,
    },
    /// A peer said something of a hub: a CLAIM to a member, or the answer to one.
    HubSaid {
        /// Who.
        peer: PeerId,
        /// What; the newest of what came at once.
        frame: HubFrame,
    },
    /// Packets from or for a peer of this hub's member are held ([`super::Standing::Held`]), the first of them, or
    /// the first for a second, just now.
    Holds {
        /// Whose.
        peer: PeerId,
    },
    /// The holder of an invitation's secret has this key. It waits, and asks again: it is answered once the invitation
    /// is bound to the key ([`super::Endpoint::set_invitations`]).
    Enrolment {
        /// Whose secret.
        invitation: InvitationId,
        /// Its key.
        key: PublicKey,
    },
    /// The secrets of a session's keys, before anything is opened under them; only after
    /// [`super::Endpoint::tell_keys`].
    Keys {
        /// With whom.
        peer: PeerId,
        /// They begin a session.
        new: bool,
        /// What the keys are made of.
        secrets: Box<SessionSecrets>,
    },
}

impl Event {
    /// Whom it is about; none where that is nobody who is a peer yet.
    pub fn peer(&self) -> Option<PeerId> {
        match self {
            Event::PeerMtu { peer, .. }
            | Event::Session { peer, .. }
            | Event::OtherVersion { peer, .. }
            | Event::Refused { peer, .. }
            | Event::Closed { peer }
            | Event::Silent { peer }
            | Event::KeysOver { peer, .. }
            | Event::TrainsLost { peer, .. }
            | Event::HubSaid { peer, .. }
            | Event::Holds { peer }
            | Event::Keys { peer, .. } => Some(*peer),
            Event::Enrolment { .. } => None,
        }
    }
}

/// Why a peer that answers has no session with us. A plain value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It answers initiations with cookies alone: it does not know our public key.
    UnknownKey,
    /// Its response does not open: it has another preshared key for us.
    PresharedKey,
}

/// What a portal shows of itself.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// By `PeerId`; none while there is no session.
    pub peers: Vec<Option<SessionSnapshot>>,
    /// By `PeerId`: why a peer that answers has no session with us.
    pub refusals: Vec<Option<Refusal>>,
    /// The rules' numbers, in their order.
    pub rules: Vec<RuleId>,
    /// Everything dropped so far, by reason.
    pub drops: Drops,
    /// Bytes of trains that wait or are not yet acknowledged.
    pub trains: ByteCount,
    /// Labels by which data datagrams are told apart, of all peers.
    pub labels: usize,
}
