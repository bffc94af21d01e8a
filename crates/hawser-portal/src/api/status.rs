//! The status document (docs/monitoring.md). Its field names are a contract with scripts.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{EtcdStatus, HubStatus, Live};
use crate::limits::Limit;

/// The version of the document (docs/monitoring.md): it grows by one where a field comes, goes or changes its meaning.
pub const SCHEMA: u32 = 2;

/// The reason of a path that is down because nothing comes back.
pub const NOTHING_COMES_BACK: &str = "nothing comes back";
/// The reason of a path that is down because the peer says so.
pub const PEER_SAYS_DOWN: &str = "the peer says that it is down";

/// A portal at one moment. The default is a portal without peers that has just started; plain data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// [`SCHEMA`] of who wrote it; zero before there was one.
    #[serde(default)]
    pub schema: u32,
    /// Version of the running program.
    pub version: String,
    /// Since it started, in seconds.
    pub uptime_s: f64,
    /// Version of the protocol that it speaks (docs/wire.md).
    #[serde(default)]
    pub protocol: String,
    /// The peers, in the order of the configuration.
    pub peers: Vec<PeerStatus>,
    /// Packets dropped since the start, by reason.
    pub drops: BTreeMap<String, u64>,
    /// What chooses the paths of packets that no rule matches.
    #[serde(default)]
    pub scheduler: String,
    /// The links, in the order of the configuration.
    #[serde(default)]
    pub links: Vec<LinkStatus>,
    /// The rules, in the order of the configuration, and last what holds where none matches; none where there is no
    /// rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleStatus>,
    /// The largest number of an event.
    #[serde(default)]
    pub events_latest: u64,
    /// The page, while it is served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<WebStatus>,
    /// The name servers that the system asks while the portal runs, where any are set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns: Option<DnsStatus>,
    /// For how long altogether the packet thread had a processor or waited for one, in seconds.
    #[serde(default)]
    pub packet_busy_s: f64,
    /// The same of each thread that seals and opens beside it, where there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worker_busy_s: Vec<f64>,
    /// This member of a hub asks its peers to go to their other one, and ends then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draining: bool,
    /// Etcd, where the peers of this member of a hub are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<EtcdStatus>,
}

/// A rule, and what it did. Plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleStatus {
    /// What matches, in a few words.
    pub matches: String,
    /// What chooses the paths of that, in the configuration's word; empty past the tunnel.
    pub scheduler: String,
    /// It goes past the tunnel.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub direct: bool,
    /// The sets of nftables (`inet hawser_hawser0_rules`) that hold the addresses of its domains: of IPv4, and of IPv6.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<String>,
    /// The addresses that were learned for its domains, with the seconds that they still count.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub addresses: BTreeMap<String, u64>,
    /// The links that it goes by: the first that works.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<String>,
    /// Or all of these, by shares.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<String, u8>,
    /// By those, or not at all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
    /// When it leaves, against others: higher first.
    #[serde(default)]
    pub priority: i8,
    /// Bytes of IP packets that carried it, copies and what was retransmitted too, by link, since the session with each
    /// peer began.
    pub sent_bytes: BTreeMap<String, u64>,
}

/// The page that is served. Plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebStatus {
    /// Where it listens.
    pub listen: String,
    /// Pages that are open.
    pub streams: usize,
    /// What was refused, by reason.
    pub refused: BTreeMap<String, u64>,
}

/// Name servers that are set for the TUN device. Plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DnsStatus {
    /// The servers, the preferred one first.
    pub servers: Vec<std::net::IpAddr>,
    /// Their domains, in the words of resolvectl(1); `~.` is every name.
    pub domains: Vec<String>,
    /// With whom they are set: `systemd-resolved` or `resolvconf`.
    pub set_by: String,
}

/// What is asked of a link. Plain data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// Its name.
    pub name: String,
    /// Its part of what `weighted` sends.
    pub weight: u8,
    /// The most that it may carry in each direction, in Mbit/s; none: what it can.
    pub max_rate_mbps: Option<f64>,
    /// What it may carry in a month; none: what it can.
    pub data_cap: Option<DataCapStatus>,
    /// Its tier.
    #[serde(default)]
    pub metric: u16,
    /// Somebody paused it: it carries no inner packets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// What of a link's cap is used. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataCapStatus {
    /// Bytes of IP packets this month, both directions.
    pub used_bytes: u64,
    /// The most of them.
    pub cap_bytes: u64,
    /// It carries no inner packets until the month ends.
    pub reached: bool,
}

/// A peer at one moment. Plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerStatus {
    /// Its name in the configuration.
    pub name: String,
    /// Since the last completed handshake, in seconds; none before the first.
    pub handshake_age_s: Option<f64>,
    /// What is done to inner packets, in the configuration's word; none before the first handshake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protection: Option<String>,
    /// By which cipher, in the configuration's word; none before the first handshake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cipher: Option<String>,
    /// Version of the protocol that it speaks; none before the first handshake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Why it has no session with this portal although it answers: `unknown_key`, where it does not know this portal's
    /// public key, or `preshared_key`, where it has another one; none otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Bytes of inner packets received from it.
    pub rx_bytes: u64,
    /// Bytes of inner packets sent to it.
    pub tx_bytes: u64,
    /// Its paths, one a link.
    pub paths: Vec<PathStatus>,
    /// The names that it is reached by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<NameStatus>,
    /// Forward error correction.
    #[serde(default)]
    pub fec: FecStatus,
    /// Bytes of inner packets that wait for a path to it.
    #[serde(default)]
    pub queued_bytes: u64,
    /// What limits what this portal sends to it; none in the first seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// It would not send for the last speed test: another one is on, or there were too many.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub speed_refused: bool,
    /// What it is in a hub, or this portal is to it as a member of one; none where there is no hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub: Option<HubStatus>,
}

/// A name that a peer is reached by. Plain data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameStatus {
    /// The name and the port, as they are configured.
    pub endpoint: String,
    /// The addresses that are in use for it; none before the first answer.
    pub addresses: Vec<std::net::IpAddr>,
    /// Why it was not resolved when it was asked for last; none where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What repairs did for the flows of rules with `fec`. Nothing at first; plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FecStatus {
    /// Packets sent to the peer that repairs cover.
    pub protected_packets: u64,
    /// Repairs sent to it.
    pub repairs: u64,
    /// Bytes of the datagrams that they went in.
    pub repair_bytes: u64,
    /// Repairs for each hundred protected packets now; zero while nothing is lost, or nothing is to be protected.
    pub overhead_pct: f64,
    /// Packets from the peer that were lost and came back.
    pub repaired_packets: u64,
}

/// A path at one moment. The default is a new one without a name; plain data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathStatus {
    /// Its link's name.
    pub name: String,
    /// How it carries packets, in the configuration's word.
    pub transport: String,
    /// Its state.
    pub state: PathState,
    /// Why it carries nothing, in a few words; none while it does, or where nothing is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The interface that it leaves by, where its link has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Where it leads, as an address and port; none before there is a path, and over SCION.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Its tier.
    pub metric: u16,
    /// Smoothed round-trip time in milliseconds; none before the first sample.
    pub rtt_ms: Option<f64>,
    /// Rate of what was acknowledged lately, in Mbit/s.
    pub rate_mbps: f64,
    /// Datagrams lost lately, in per cent of those sent.
    pub loss_pct: f64,
    /// Congestion window in bytes.
    pub cwnd_bytes: u64,
    /// Largest datagram it carries, in bytes.
    pub mtu: u16,
    /// Bytes of datagrams received by it.
    pub rx_bytes: u64,
    /// Bytes of datagrams sent by it.
    pub tx_bytes: u64,
    /// Its datagrams leave one by one, without UDP GSO: trains of them did not arrive.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_gso: bool,
    /// What its link would rather go by, which does not pass now; none where it goes by the best that it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<String>,
    /// Its SCION path, where this portal chose one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scion: Option<ScionStatus>,
    /// What is seen of it while the portal runs.
    #[serde(default)]
    pub live: Live,
    /// How it is used.
    #[serde(default)]
    pub load: PathLoad,
}

/// How a path is used by what this portal sends. An unused path by default; plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathLoad {
    /// Bytes of datagrams that were sent and not acknowledged yet.
    pub in_flight_bytes: u64,
    /// For how long altogether it could have sent and had nothing to send, in seconds.
    pub idle_s: f64,
    /// One side says that it carries no inner packets: its data cap is reached.
    pub barred: bool,
    /// One-way delay to the peer in milliseconds, on a scale that all paths to it share and nobody else.
    pub delay_ms: f64,
    /// How much of that one way is a queue: beyond the least of the last ten seconds.
    pub queue_ms: f64,
    /// The largest rate of the last minute, in Mbit/s.
    pub peak_mbps: f64,
    /// Its queue rises and falls with that of another path: they share a line.
    pub shares_queue: bool,
    /// Bytes of IP packets that speed tests sent by it and the peer acknowledged.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub filler_delivered_bytes: u64,
    /// Bytes of IP packets that came by it for speed tests.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub filler_received_bytes: u64,
}

fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// A SCION path. Plain data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScionStatus {
    /// Where it leads.
    pub endpoint: String,
    /// The ASes and interfaces on it, as `scion showpaths` writes them; empty within one AS.
    pub path: String,
    /// ASes on it, both ends counted.
    pub hops: usize,
    /// Bytes that a packet may have from its SCION header on.
    pub mtu: u16,
}

/// What a path is (docs/monitoring.md). Starts as `New`; plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PathState {
    /// Nothing was sent by it yet.
    #[default]
    #[serde(rename = "new")]
    New,
    /// Its far end is being challenged.
    #[serde(rename = "validating")]
    Validating,
    /// It carries data.
    #[serde(rename = "active")]
    Active,
    /// A probe timeout passed without any acknowledgement.
    #[serde(rename = "suspect")]
    Suspect,
    /// It carries nothing, and is probed.
    #[serde(rename = "down")]
    Down,
    /// The system has no route for it.
    #[serde(rename = "no route")]
    NoRoute,
}

impl PathState {
    /// Whether the path's far end is there as far as is known: a timer alone says nothing against it.
    pub fn works(self) -> bool {
        matches!(self, Self::Active | Self::Suspect)
    }
}

impl fmt::Display for PathState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::New => "new",
            Self::Validating => "validating",
            Self::Active => "active",
            Self::Suspect => "suspect",
            Self::Down => "down",
            Self::NoRoute => "no route",
        })
    }
}

#[cfg(test)]
mod tests;
