//! A scenario's network, running.
//!
//! ```text
//!                    ┌── link "wifi" ── router ──┐
//!  (client ──) local ┤                           ├ remote (── server)
//!                    └── link "eth" ─── router ──┘
//! ```
//!
//! Without a LAN `client` and `local` are one host, and so are `remote` and `server`.

use std::net::IpAddr;

use hawser_wire::{EmulatedLink, Namespace};

/// The network, running; removed on drop. Starts with the case's absent links down. Links change from any thread.
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
    /// The remote end's address, reached by every link: where tunnels listen.
    pub endpoint: IpAddr,
    /// Where there is a LAN, the applications' own addresses, which a layer-3 tunnel is to join; else those of links.
    pub hosts: Ends,
}

/// A link of the network. Owned by its stage.
#[derive(Debug)]
pub struct StageLink {
    /// The scenario's name for it, and the local end's interface.
    pub name: String,
    /// Lower is preferred.
    pub metric: u16,
    /// The link itself.
    pub link: EmulatedLink,
    /// Its router.
    pub router: Namespace,
    /// The local end's address.
    pub address: IpAddr,
    /// The local end's gateway.
    pub gateway: IpAddr,
    /// The remote end's address for this link; [`Stage::endpoint`] where it has one for all.
    pub far_address: IpAddr,
    /// The remote end's interface towards this link.
    pub far_interface: String,
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
