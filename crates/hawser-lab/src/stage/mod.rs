//! A scenario's network, running.
//!
//! ```text
//!                    ┌── link "wifi" ── router ──┐
//!  (client ──) local ┤                           ├ remote (── server)
//!                    └── link "eth" ─── router ──┘
//! ```
//!
//! Where links have no routers, they lead straight to the remote end. Without a LAN `client` and `local` are one host,
//! and so are `remote` and `server`. Where the server's end has an interface for each link, a *core* router stands
//! between the routers and them, so that every link reaches every interface.
//!
//! 1. [`Stage::build`] makes hosts, links and routes (`build`, `routes`), with the addresses of `numbering`.
//! 2. [`Stage::forward_over`] carries applications' packets without a tunnel.
//! 3. [`Timeline`] lets happen what the scenario says (`happen`, `timeline`).
//! 4. Drop removes everything.

use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard};

use hawser_wire::{EmulatedLink, Namespace, Rate, Trace, Way};

use crate::scenario::{Family, Network};

mod build;
mod happen;
mod numbering;
mod programs;
mod routes;
mod timeline;

pub(crate) use build::{LAN, MTU, UPLINK, host, router};
pub(crate) use programs::feed;
pub use timeline::Timeline;

/// The network, running; removed on drop. Starts with the case's absent links down. Links change from any thread.
/// Where a link is told by its place and there is none, it panics.
#[derive(Debug)]
pub struct Stage {
    // Links go before the namespaces they lie in.
    /// In the scenario's order.
    pub links: Vec<StageLink>,
    /// Hosts beside the client, in the scenario's order.
    pub bystanders: Vec<Bystander>,
    /// Where applications run: [`Stage::local`] where there is no LAN.
    pub client: Namespace,
    /// Where a tunnel's local end runs, and links begin.
    pub local: Namespace,
    /// Where a tunnel's remote end runs.
    pub remote: Namespace,
    /// Where applications are reached: [`Stage::remote`] where there is no LAN.
    pub server: Namespace,
    /// Recordings that begin with the workload: of which link (bystanders after the others), which way.
    recordings: Vec<(usize, Way, Trace)>,
    /// The remote end's address, reached by every link: where tunnels listen.
    pub endpoint: IpAddr,
    /// What applications use, and so what a tunnel carries.
    pub inner: Family,
    /// Where there is a LAN, the applications' own addresses, which a layer-3 tunnel is to join; else those of the
    /// first link.
    pub hosts: Ends,
    /// What it was built as.
    network: Network,
    /// The router before the remote end's interfaces, where it has one for each link.
    core: Option<Namespace>,
    state: Mutex<State>,
    /// Held while routes change, which takes several steps. Taken before the state.
    turn: Mutex<()>,
}

/// A link of the network. Owned by its stage.
#[derive(Debug)]
pub struct StageLink {
    /// The scenario's name for it, and the interface at either end.
    pub name: String,
    /// Lower is preferred.
    pub metric: u16,
    /// The link itself.
    pub link: EmulatedLink,
    /// Its router; without any, the remote end.
    pub router: Namespace,
    /// The local end's address at first; [`Stage::address`] is today's.
    pub address: IpAddr,
    /// The remote end's address for this link; [`Stage::endpoint`] where it has one for all.
    pub far_address: IpAddr,
}

/// A host beside the client, with one link of its own. Owned by its stage.
#[derive(Debug)]
pub struct Bystander {
    /// Its link: goes before the namespace it lies in.
    pub link: EmulatedLink,
    /// What the scenario calls it.
    pub name: String,
    /// The host.
    pub host: Namespace,
    /// Where its transfers start and end.
    pub ends: Ends,
}

/// Two addresses, of client and server. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Where transfers start.
    pub client: IpAddr,
    /// Where they end.
    pub server: IpAddr,
}

/// What changes while the stage runs. Starts as built; shared under the stage's lock.
#[derive(Debug, Default)]
struct State {
    links: Vec<LinkState>,
    /// The links over which applications' packets go without a tunnel.
    forwarding: Vec<usize>,
    /// The link before all others to an address, whenever it is up.
    first: Option<(usize, IpAddr)>,
}

/// What changes of a link. Starts up, with the first address and translation. Owned by the stage.
#[derive(Clone, Debug)]
struct LinkState {
    up: bool,
    /// The host part of the local end's address.
    host: u8,
    /// How often its translations were forgotten.
    rebound: u16,
    /// While it stalls: its rates or recordings before, up and down.
    stalled: Option<[(Option<Rate>, Option<Trace>); 2]>,
}

impl Stage {
    /// The place of a link in [`Stage::links`].
    pub fn index(&self, link: &str) -> Option<usize> {
        self.links.iter().position(|candidate| candidate.name == link)
    }

    /// Whether a link is there: neither absent nor cut. A black hole is there.
    pub fn is_up(&self, link: usize) -> bool {
        self.state().links[link].up
    }

    /// A link's local address now, of the links' family.
    pub fn address(&self, link: usize) -> IpAddr {
        let host = self.state().links[link].host;
        numbering::Net::Access(number(link)).address(self.network.outer, host)
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The number of a link in its addresses, counted from 1. A scenario has few links.
fn number(index: usize) -> u8 {
    u8::try_from(index + 1).unwrap_or(u8::MAX)
}
