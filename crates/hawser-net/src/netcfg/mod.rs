//! What Hawser sets in the system's network configuration, and what the system tells about it.
//!
//! The story of a change, from the control thread (a tokio current-thread runtime):
//! 1. [`NetConfig::new`] takes the journal of its instance and network namespace, or says who has it.
//! 2. [`NetConfig::recover`] undoes what a killed predecessor left in it.
//! 3. [`NetConfig::apply`] asks what was there before, journals the [`Change`], then sets it.
//! 4. [`NetConfig::undo_all`] undoes everything in reverse order and the journal vanishes.
//!
//! [`NetConfig::apply_all`] and [`NetConfig::undo_each`] do so for thousands of routes with few calls of the kernel.
//!
//! Beside it, [`LinkWatch`] tells of interfaces, addresses and routes that come and go, and [`Rtnl`]
//! answers which route a link's packets would take.

mod apply;
mod change;
mod error;
mod events;
mod features;
mod forward;
mod journal;
mod local_rule;
mod many;
mod mptcp;
mod name_servers;
mod namespace;
mod nfnetlink;
mod nft;
mod perform;
mod program;
mod resolv_conf;
mod route;
mod rtnl;
mod rules;
mod snapshot;
mod sysctl;
mod types;
mod watch;

pub use apply::{Applied, NetConfig, UndoReport};
pub use change::{Change, IpProtocol, MarkMatch, Place, RouteKind, RouteSpec, RuleSpec};
pub use error::NetConfigError;
pub use events::{Closed, EventReceiver, EventSender, event_channel};
pub use features::{Feature, has_ipv6};
pub use forward::ForwardDrop;
pub use journal::{InstanceName, JournalError, Netns};
pub use mptcp::{
    EndpointFlags, EndpointId, MPTCP_EVENT_GROUP, MPTCP_FAMILY, MPTCP_VERSION, MptcpEndpoint, MptcpLimits, PathManager,
    address_in, encode_address,
};
pub use name_servers::{EVERY_NAME, NameServers, NameServersError, Resolver};
pub use namespace::NamespaceName;
pub use nfnetlink::{PacketLog, SetElements};
pub use nft::{NftChain, NftError, NftName, NftSet, NftTable, quoted};
pub use resolv_conf::{asked_servers, known_servers};
pub use route::{InterfaceAddress, NoRoute, RouteAnswer, RouteError, RouteQuery};
pub use rtnl::{LinkInfo, Rtnl};
pub use snapshot::{Interface, LinkEvent};
pub use sysctl::{SysctlError, SysctlKey};
pub use types::{Family, IfIndex, Mark, Metric, Mtu, RulePriority, TableId};
pub use watch::{LinkWatch, WatchOptions};
