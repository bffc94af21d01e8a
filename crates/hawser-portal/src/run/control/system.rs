//! What a portal sets in the system, through the journal of `hawser_net::netcfg`.
//!
//! 1. [`System::open`] undoes what a killed predecessor left. 2. [`System::configure`] gives the TUN device its MTU,
//!    addresses and routes. 3. [`System::on_event`] follows the links' interfaces, and puts back what the kernel drops
//!    when the device goes down. 4. [`System::undo`] leaves nothing behind.

use std::path::Path;
use std::time::{Duration, Instant};

use hawser_net::netcfg::{
    Change, IfIndex, InstanceName, Interface, LinkEvent, Mtu, NetConfig, NetConfigError, RouteSpec, Rtnl, SysctlKey,
};
use ipnet::IpNet;

use crate::config::{Config, MTU_MIN};
use crate::run::interfaces::Interfaces;
use crate::run::plan::SocketPlan;

/// Where journals are.
const JOURNALS: &str = "/run/hawser";
/// Values of `rp_filter` (RFC 3704, ip-sysctl): a strict one drops what comes back by another link than the best.
const RP_FILTER_STRICT: &str = "1";
const RP_FILTER_LOOSE: &str = "2";
/// What could not be set is tried again this often.
const RETRY_EVERY: Duration = Duration::from_secs(2);
/// The interface that stands for all of them in sysctls.
const ALL_INTERFACES: &str = "all";

/// What this portal has set. At first nothing; the control thread owns it.
pub struct System {
    net: NetConfig,
    tun: Option<IfIndex>,
    /// What the TUN device is to have, in the order in which it is set.
    wanted: Vec<Change>,
    /// What of that could not be set, and when it was tried last.
    missing: Vec<Change>,
    tried: Instant,
}

impl System {
    /// Takes the journal of the portal whose TUN device has this name, and cleans up after a killed one.
    pub async fn open(tun: &str) -> Result<Self, NetConfigError> {
        let instance = InstanceName::new(tun).or_else(|_| InstanceName::new(&plain(tun)))?;
        let mut net = NetConfig::new(Path::new(JOURNALS), &instance)?;
        let report = net.recover().await;
        if !report.undone.is_empty() || !report.is_clean() {
            let (undone, failed) = (report.undone.len(), report.failed.len());
            tracing::info!(
                undone,
                failed,
                unreadable = report.unreadable_lines.len(),
                "cleaned up after a killed portal"
            );
        }
        Ok(Self { net, tun: None, wanted: Vec::new(), missing: Vec::new(), tried: Instant::now() })
    }

    /// The connection to the kernel, for questions.
    pub fn rtnl(&self) -> Rtnl {
        self.net.rtnl().clone()
    }

    /// Gives the TUN device what the configuration says.
    pub async fn configure(&mut self, config: &Config, tun: IfIndex) -> Result<(), NetConfigError> {
        self.tun = Some(tun);
        self.wanted = changes(config, tun);
        for change in &self.wanted {
            self.net.apply(change.clone()).await?;
        }
        Ok(())
    }

    /// Follows a configuration that changed while the portal runs; failures are told.
    pub async fn reconfigure(&mut self, config: &Config) {
        let Some(tun) = self.tun else { return };
        let wanted = changes(config, tun);
        let old = std::mem::replace(&mut self.wanted, wanted);
        for change in old.iter().filter(|change| !self.wanted.contains(change)) {
            if let Err(error) = self.net.undo(change).await {
                tracing::warn!(%change, %error, "not undone, the end tries again");
            }
        }
        self.missing.retain(|change| self.wanted.contains(change));
        for change in self.wanted.iter().filter(|change| !old.contains(change)) {
            if let Err(error) = self.net.apply(change.clone()).await {
                tracing::warn!(%change, %error, "not set, it is tried again");
                self.missing.push(change.clone());
            }
        }
        self.tried = Instant::now();
    }

    /// Tries again what could not be set: what stood in the way may be gone, of which nobody tells. Call it often.
    pub async fn retry(&mut self) {
        if self.missing.is_empty() || self.tried.elapsed() < RETRY_EVERY {
            return;
        }
        self.tried = Instant::now();
        for change in std::mem::take(&mut self.missing) {
            match self.net.apply(change.clone()).await {
                Ok(_) => tracing::info!(%change, "set at last"),
                Err(error) => {
                    tracing::debug!(%change, %error, "still not set");
                    self.missing.push(change);
                }
            }
        }
    }

    /// Sockets that came after their interfaces: what [`System::on_event`] does for others.
    pub async fn welcome(&mut self, plans: &[SocketPlan], interfaces: &Interfaces) {
        for interface in plans.iter().filter(|plan| plan.opens()).filter_map(|plan| interfaces.of(plan)) {
            if let Err(error) = self.loosen(interface).await {
                tracing::warn!(interface, %error, "rp_filter not loosened");
            }
        }
    }

    /// Sets the TUN device's MTU; a failure is told, and the old one kept.
    pub async fn set_tun_mtu(&mut self, mtu: u16) {
        let Some(interface) = self.tun else { return };
        match self.net.apply(Change::Mtu { interface, mtu: Mtu(mtu.into()) }).await {
            Ok(_) => tracing::info!(mtu, "tun mtu"),
            Err(error) => tracing::warn!(mtu, %error, "tun mtu not set"),
        }
    }

    /// The kernel said so.
    pub async fn on_event(&mut self, event: &LinkEvent, plans: &[SocketPlan]) {
        if let LinkEvent::Up(interface) = event
            && Some(interface.index) == self.tun
        {
            for change in self.wanted.iter().filter(|change| !matches!(change, Change::Mtu { .. })) {
                if let Err(error) = self.net.apply(change.clone()).await {
                    tracing::warn!(%change, %error, "not set again");
                }
            }
        }
        if let Some(interface) = link_interface(event, plans)
            && let Err(error) = self.loosen(&interface.name).await
        {
            tracing::warn!(interface = %interface.name, %error, "rp_filter not loosened");
        }
    }

    /// Lets answers in that come by another link than the kernel would send by, where it would drop them.
    async fn loosen(&mut self, interface: &str) -> Result<(), NetConfigError> {
        let key = SysctlKey::rp_filter(interface)?;
        // The greater of the two holds.
        let effective = key.read()?.max(SysctlKey::rp_filter(ALL_INTERFACES)?.read()?);
        if effective == RP_FILTER_STRICT {
            self.net.apply(Change::Sysctl { key, value: RP_FILTER_LOOSE.to_owned() }).await?;
            tracing::info!(interface, "rp_filter set from strict to loose");
        }
        Ok(())
    }

    /// Undoes everything; what fails stays in the journal for the next start.
    pub async fn undo(&mut self) {
        let report = self.net.undo_all().await;
        for (change, error) in &report.failed {
            tracing::warn!(%change, %error, "not undone, the next start tries again");
        }
    }
}

/// A name that a directory can have, for interface names with other characters.
fn plain(tun: &str) -> String {
    tun.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// What the TUN device is to have.
fn changes(config: &Config, interface: IfIndex) -> Vec<Change> {
    let mtu = config.tun.mtu.map_or(MTU_MIN, |mtu| mtu.bytes());
    let mut changes = vec![Change::Mtu { interface, mtu: Mtu(mtu.into()) }];
    changes.extend(config.tun.addresses.iter().map(|address| Change::Address { interface, address: *address }));
    changes.push(Change::LinkUp { interface });
    let allowed = config.peers.iter().flat_map(|peer| &peer.allowed_ips);
    let routed = allowed.filter(|net| needs_route(config, net));
    changes.extend(routed.map(|destination| Change::Route(RouteSpec::to(*destination, interface))));
    changes
}

/// The device's own network is routed by the kernel. A default route is `default_route`'s to set: in the main table
/// it would take the host's other traffic too.
fn needs_route(config: &Config, net: &IpNet) -> bool {
    net.prefix_len() > 0 && !config.tun.addresses.iter().any(|address| address.trunc() == *net)
}

/// The interface that a link uses, where the event brings it.
fn link_interface<'e>(event: &'e LinkEvent, plans: &[SocketPlan]) -> Option<&'e Interface> {
    let links = || plans.iter().filter(|plan| plan.opens());
    match event {
        LinkEvent::Appeared(interface) => {
            links().any(|plan| plan.interface.as_deref() == Some(&*interface.name)).then_some(interface)
        }
        LinkEvent::AddressAdded(interface, net) => {
            links().any(|plan| plan.interface.is_none() && plan.address == Some(net.addr())).then_some(interface)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(tun: &str, allowed: &str) -> Config {
        let key = "RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=";
        let text = format!(
            "[portal]\nprivate_key_file = \"key\"\nlisten = [\"0.0.0.0:4920\"]\n[tun]\n{tun}\n[[peer]]\nname = \"home\"\n\
             public_key = \"{key}\"\nallowed_ips = [{allowed}]\n"
        );
        Config::parse(&text, "test.toml").expect("a right configuration")
    }

    #[test]
    fn the_device_gets_mtu_addresses_and_the_routes_that_nobody_else_sets() {
        let config = config(
            "addresses = [\"10.77.0.1/24\"]",
            "\"10.77.0.0/24\", \"192.168.8.0/24\", \"0.0.0.0/0\", \"fd77::2/128\"",
        );
        let changes = changes(&config, IfIndex::new(5).expect("not zero"));
        let said: Vec<String> = changes.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "mtu 1280 on interface 5",
                "address 10.77.0.1/24 on interface 5",
                "interface 5 up",
                "route 192.168.8.0/24 out of interface 5",
                "route fd77::2/128 out of interface 5",
            ]
        );
    }

    #[test]
    fn an_mtu_of_the_configuration_is_set_as_it_is() {
        let config = config("addresses = [\"10.77.0.1/24\"]\nmtu = 1400", "\"192.168.8.0/24\"");
        let changes = changes(&config, IfIndex::new(5).expect("not zero"));
        assert_eq!(changes[0].to_string(), "mtu 1400 on interface 5");
    }
}
