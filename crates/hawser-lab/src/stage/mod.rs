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

use crate::scenario::Family;

/// The network, running; removed on drop. Starts with the case's absent links down. Links change from any thread.
#[derive(Debug)]
pub struct Stage {
    // Links go before the namespaces they lie in.
    /// In the scenario's order.
    pub links: Vec<StageLink>,
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
    /// What applications use, and so what a tunnel carries.
    pub inner: Family,
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

/// Two addresses, of client and server. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Where transfers start.
    pub client: IpAddr,
    /// Where they end.
    pub server: IpAddr,
}
