//! What a shim sets in the host's network configuration, through the journal of `hawser_net::netcfg`.
//!
//! 1. [`System::open`] undoes what a killed predecessor left.
//! 2. [`System::configure`] gives the devices their addresses, routes and rules, or makes the namespaces that they are
//!    in.
//! 3. [`System::follow`] turns to another map. 4. [`System::undo`] leaves nothing behind.

use std::net::IpAddr;
use std::path::Path;

use hawser_net::netcfg::{Change, InstanceName, NetConfig, NetConfigError, RouteQuery, Rtnl};

use super::devices::{Devices, DevicesError, interface};
use super::numbers::Numbers;
use super::plan::Layout;
use super::spaces::{Spaces, loopback};
use crate::config::{Config, Mode};
use crate::route::{Addresses, InterfaceIndex, NoAddress, RouteTable, Side};

/// Where journals are.
pub const JOURNALS: &str = "/run/hawser";
/// Loopback's name, in every namespace (network_namespaces(7)).
pub(super) const LOOPBACK: &str = "lo";

/// What a shim has set. At first nothing; the control thread owns it.
#[derive(Debug)]
pub struct System {
    net: NetConfig,
    numbers: Numbers,
    /// The interfaces, where they are among the host's own.
    layout: Option<Layout>,
    /// What the map asks for, as it is set.
    map: Vec<Change>,
}

impl System {
    /// Takes the journal of the shim of this name, and cleans up after a killed one.
    ///
    /// # Errors
    /// [`NetConfigError`]; a shim of this name that runs here is one.
    pub async fn open(config: &Config) -> Result<Self, NetConfigError> {
        // A portal's journal is called after its interface: no other has this one.
        let instance = InstanceName::new(&config.interface(InterfaceIndex::INGRESS))?;
        let mut net = NetConfig::new(Path::new(JOURNALS), &instance)?;
        let report = net.recover().await;
        if !report.undone.is_empty() || !report.is_clean() {
            let (undone, failed) = (report.undone.len(), report.failed.len());
            let unreadable = report.unreadable_lines.len();
            tracing::info!(undone, failed, unreadable, "cleaned up after a killed shim");
        }
        Ok(Self { net, numbers: Numbers::of(config.name.as_str()), layout: None, map: Vec::new() })
    }

    /// The connection to the kernel, for questions.
    pub fn rtnl(&self) -> Rtnl {
        self.net.rtnl().clone()
    }

    /// Makes the devices, and sets what they need. `in_egress` and `in_ingress` are set beside that where clients and
    /// servers are.
    ///
    /// # Errors
    /// [`DevicesError`]; what was set until then is undone by [`System::undo`].
    pub async fn configure(
        &mut self,
        config: &Config,
        addresses: impl Fn(InterfaceIndex) -> Result<Addresses, NoAddress>,
        in_egress: Vec<Change>,
        in_ingress: Vec<Change>,
    ) -> Result<Devices, DevicesError> {
        if config.mode == Mode::Namespaces {
            let spaces = Spaces::of(config);
            for change in spaces.changes() {
                self.net.apply(change).await?;
            }
            return spaces.furnish(config, addresses, in_egress, in_ingress);
        }
        let devices = Devices::make(config)?;
        let tuns = [&devices.ingress].into_iter().chain(&devices.egress);
        let indices = [InterfaceIndex::INGRESS].into_iter().chain(config.egress.interfaces());
        let interfaces = tuns.zip(indices).map(|(tun, index)| Ok(interface(tun, index, addresses(index)?)));
        let interfaces = interfaces.collect::<Result<_, NoAddress>>()?;
        let loopback = loopback(&self.net).await?;
        let layout = Layout { numbers: self.numbers, loopback, interfaces, ipv4: config.ipv4 };
        for change in layout.changes()?.into_iter().chain(in_egress).chain(in_ingress) {
            self.net.apply(change).await?;
        }
        self.layout = Some(layout);
        Ok(devices)
    }

    /// From the rules of one map to those of another; failures are told. In namespaces everything goes by the shim,
    /// whatever the map says.
    pub async fn follow(&mut self, routes: &RouteTable) {
        let Some(layout) = &self.layout else { return };
        let wanted = layout.for_map(routes.destinations());
        let old = std::mem::replace(&mut self.map, wanted);
        for change in self.map.iter().filter(|change| !old.contains(change)) {
            if let Err(error) = self.net.apply(change.clone()).await {
                tracing::warn!(%change, %error, "not set");
            }
        }
        for change in old.iter().filter(|change| !self.map.contains(change)) {
            if let Err(error) = self.net.undo(change).await {
                tracing::warn!(%change, %error, "not undone, the end tries again");
            }
        }
    }

    /// This host's addresses by which the ordinary internet leads to [`Side::Main`] destinations, each with its
    /// destination; what has no route is left out. They are to be asked again now and then: nobody tells of a change.
    pub async fn ordinary(&self, routes: &RouteTable) -> Vec<(IpAddr, IpAddr)> {
        let (rtnl, mut found) = (self.rtnl(), Vec::new());
        for to in routes.destinations().filter(|to| to.side == Side::Main) {
            let destination = to.network.addr();
            let query = RouteQuery { destination, source: None, interface: None, mark: Some(self.numbers.mark()) };
            match rtnl.route_get(query).await {
                Ok(answer) => found.extend(answer.source.map(|source| (destination, source))),
                Err(error) => tracing::debug!(%destination, %error, "no ordinary route"),
            }
        }
        found
    }

    /// Undoes everything; what fails stays in the journal for the next start.
    pub async fn undo(&mut self) {
        let report = self.net.undo_all().await;
        for (change, error) in &report.failed {
            tracing::warn!(%change, %error, "not undone, the next start tries again");
        }
    }
}
