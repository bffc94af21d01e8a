//! The control socket: what a portal says about itself, and how it is asked. A shim has one of the same kind.
//!
//! One JSON object a line in both directions over a Unix socket: `{"get":"status"}` is answered with a [`Status`],
//! `{"get":"events"}` with [`Events`], `{"get":"history"}` with [`History`], `{"get":"flows"}` with [`Flows`],
//! `{"do":"reload"}` with `{"done":"reload"}`, anything wrong with `{"error":"…"}`. A connection may ask again and
//! again.

mod client;
mod events;
mod flows;
mod history;
mod hub;
mod live;
mod request;
mod server;
mod speed;
mod status;

use serde::{Deserialize, Serialize};

pub use client::Client;
pub use events::{Event, EventKind, Events};
pub use flows::{FLOWS_SCHEMA, FlowPathStatus, FlowStatus, Flows};
pub use hawser_net::daemon::{ClientError, ControlSocket, Program, ServeError};
pub use history::{History, HistoryQuestion, METRICS, PathHistory, Span};
pub use hub::{EtcdStatus, HubList, HubMember, HubPeer, HubRevoked, HubStatus, NAMESAKE_HINT};
pub use live::{Condition, Live};
pub use request::{Deed, Document};
pub use server::{Answering, Answers, Asked, FlowQuestions, Orders};
pub use speed::{SpeedDirection, SpeedOrder};
pub use status::{
    DataCapStatus, DnsStatus, FecStatus, LinkStatus, NOTHING_COMES_BACK, NameStatus, PEER_SAYS_DOWN, PathLoad,
    PathState, PathStatus, PeerStatus, RuleStatus, SCHEMA, ScionStatus, Status, WebStatus,
};

/// It was done. Plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Done {
    /// The deed's word.
    done: String,
    /// What came of it, where it is more than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<serde_json::Value>,
}
