//! What the status says of hubs.

use serde::{Deserialize, Serialize};

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
