//! What the status says of hubs.

use serde::{Deserialize, Serialize};

/// What to do where a hub has another member of one's name.
pub const NAMESAKE_HINT: &str = "give one of the two another name in [hub]; the name of one that was installed anew, with \
                                 another key, is free once the old one's etcd_lease is over";

/// Who owns a peer of a hub. Plain data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HubStatus {
    /// Of a member that this portal is a peer of: `active`, `claiming` (active, and not confirmed yet), `standby`, or
    /// `spare` (asked where neither of these is there).
    /// Of a peer that this portal serves as a member: `owner`, `standby`, `fenced` (another member was claimed, as
    /// others say) or `none`.
    pub role: String,
    /// The highest epoch that is known of it; zero for none.
    pub epoch: u64,
    /// For how long that has been so, in seconds.
    pub since_s: f64,
    /// This portal, its member, asks it to go to its other one.
    #[serde(default)]
    pub draining: bool,
}

/// Whether etcd is reached, and what it has. Plain data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EtcdStatus {
    /// It answers.
    pub reached: bool,
    /// For how long that has been so, in seconds.
    pub since_s: f64,
    /// How long ago this member last knew all that was in it, in seconds; none before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_step_age_s: Option<f64>,
    /// Why it does not; none while it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Why it does not take what this member writes; none while it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwritten: Option<String>,
    /// Which other portal has this one's name there: nobody is told of this one then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namesake: Option<String>,
    /// Its peers are served.
    pub serving: bool,
    /// Members that are there.
    pub members: usize,
    /// Peers that are in it.
    pub peers: usize,
    /// Keys that are revoked.
    pub revoked: usize,
}

/// Members and peers as etcd has them. Plain data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HubList {
    /// The members that are there.
    pub members: Vec<HubMember>,
    /// The peers, in the order in which they came; those that are not served last.
    pub peers: Vec<HubPeer>,
    /// The keys that nobody serves.
    pub revoked: Vec<HubRevoked>,
    /// What is in etcd and cannot be read: where, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
}

/// A member. Plain data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HubMember {
    /// Its name.
    pub name: String,
    /// Its public key.
    pub public_key: String,
    /// Where peers reach it.
    pub endpoints: Vec<String>,
    /// Its share of the peers.
    pub weight: u32,
    /// What fails together with it.
    pub rack: u32,
    /// Of its program.
    pub version: String,
    /// Peers that it owns.
    pub active: u32,
    /// Peers that it stands by for.
    pub standby: u32,
    /// Inner packets of all of them, both directions, in Mbit/s.
    pub rate_mbps: f64,
}

/// A peer. Plain data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HubPeer {
    /// Its name.
    pub name: String,
    /// Its public key.
    pub public_key: String,
    /// The networks behind it.
    pub allowed_ips: Vec<String>,
    /// The member that it belongs to, by weights and racks; none where there is no member.
    pub active: Option<String>,
    /// The one that stands by.
    pub standby: Option<String>,
    /// The member that it claimed last, as far as one said; where that is away, its id.
    pub owner: Option<String>,
    /// In which epoch; zero for none.
    pub epoch: u64,
    /// Why this member does not serve it; none where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// A key that nobody serves. Plain data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HubRevoked {
    /// How the peer was called.
    pub name: String,
    /// The key.
    pub public_key: String,
}
