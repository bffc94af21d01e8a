//! What a portal sets in the system, through the journal of `hawser_net::netcfg`.
//!
//! 1. [`System::open`] undoes what a killed predecessor left. 2. [`System::configure`] gives the TUN device its MTU,
//!    addresses and routes, the default route (`default_route`) and the table of nftables (`gateway`) among them, and
//!    at last the system the name servers behind it (`name_servers`).
//! 3. [`System::on_event`] follows the interfaces of links and of the networks beyond, and puts back what the kernel
//!    drops when the device goes down; [`System::set_again`] what other programs delete (`restore`).
//! 4. [`System::announce`] tells routers of a hub's peers (`announce`). 5. [`System::undo`] leaves nothing behind.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use hawser_config::{Config, PublicKey};
use hawser_net::netcfg::{
    Applied, Change, IfIndex, InstanceName, Interface, LinkEvent, Mtu, NetConfig, NetConfigError, Place, RouteSpec,
    Rtnl, SysctlKey,
};
use ipnet::IpNet;

use super::default_route::{self, Places};
use super::gateway::{self, Beyond};
use super::hub::{self, Announcements};
use super::mtu::{Fit, Mtus};
use super::name_servers;
use super::rule_table;
use super::takeover::Taken;
use crate::api::DnsStatus;
use crate::run::RunError;
use crate::run::interfaces::Interfaces;
use crate::run::own;
use crate::run::plan::SocketPlan;

mod announce;
mod restore;

/// Values of `rp_filter` (RFC 3704, ip-sysctl): a strict one drops what comes back by another link than the best.
const RP_FILTER_STRICT: &str = "1";
const RP_FILTER_LOOSE: &str = "2";
/// What could not be set is tried again this often.
const RETRY_EVERY: Duration = Duration::from_secs(2);
/// The interface that stands for all of them in sysctls.
const ALL_INTERFACES: &str = "all";

/// The routes that tell routers of peers, by their peers' keys.
type Announced = BTreeMap<PublicKey, Vec<Change>>;

/// What this portal has set. At first nothing; the control thread owns it.
pub struct System {
    net: NetConfig,
    tun: Option<IfIndex>,
    /// What the TUN device is to have, in the order in which it is set.
    wanted: Vec<Change>,
    /// What it is to have after that.
    announced: Announced,
    /// The MTU that it has by that.
    device: Mtu,
    /// Where the rules of the default route are, once they are set.
    places: Places,
    mtus: Mtus,
    beyond: Beyond,
    takeover: Option<Taken>,
    announcements: Announcements,
    /// What of that could not be set, and when it was tried last.
    missing: Vec<Change>,
    tried: Instant,
    /// Routes or rules have changed since ours were looked at. So at first: nobody watched yet.
    dirty: bool,
    /// When the kill switch's rules could not be looked at, if so.
    unrestored: Option<Instant>,
    /// There was something of a killed portal to be undone.
    cleaned_up: bool,
}

impl System {
    /// Takes the journal of the portal whose TUN device has this name, and cleans up after a killed one.
    pub async fn open(tun: &str) -> Result<Self, NetConfigError> {
        let instance = InstanceName::new(tun).or_else(|_| InstanceName::new(&own::plain(tun)))?;
        let mut net = NetConfig::new(Path::new(own::JOURNALS), &instance)?;
        let report = net.recover().await;
        let cleaned_up = !report.undone.is_empty() || !report.is_clean();
        if cleaned_up {
            let (undone, failed) = (report.undone.len(), report.failed.len());
            tracing::info!(
                undone,
                failed,
                unreadable = report.unreadable_lines.len(),
                "cleaned up after a killed portal"
            );
        }
        Ok(Self::new(net, cleaned_up))
    }

    pub(super) fn new(net: NetConfig, cleaned_up: bool) -> Self {
        let (places, mtus, beyond) = (Places::default(), Mtus::default(), Beyond::default());
        let (wanted, announced, missing) = (Vec::new(), Announced::new(), Vec::new());
        let (device, tried) = (Mtu(0), Instant::now());
        let (tun, takeover, announcements) = (None, None, Announcements::default());
        let (dirty, unrestored) = (true, None);
        Self {
            net,
            tun,
            wanted,
            announced,
            device,
            places,
            mtus,
            beyond,
            takeover,
            announcements,
            missing,
            tried,
            dirty,
            unrestored,
            cleaned_up,
        }
    }

    /// Whether a killed portal had left something.
    pub fn cleaned_up(&self) -> bool {
        self.cleaned_up
    }

    /// The connection to the kernel, for questions.
    pub fn rtnl(&self) -> Rtnl {
        self.net.rtnl().clone()
    }

    /// Gives the TUN device what the configuration says.
    pub async fn configure(&mut self, config: &Config, tun: IfIndex) -> Result<(), RunError> {
        self.tun = Some(tun);
        self.places = Places::ask(self.net.rtnl(), config).await?;
        self.places.let_past(config);
        self.beyond = Beyond::new(config);
        self.device = self.mtus.of_device(config);
        self.wanted = changes(config, tun, &self.places, &self.mtus.beside(self.device, config))?;
        self.takeover = Taken::new(config, self.net.rtnl(), tun).await?;
        if let Some(taken) = &self.takeover {
            self.beyond.open_to(taken.worlds());
            self.wanted.extend(taken.changes()?);
        }
        self.wanted.extend(name_servers::change(config, tun, None).map_err(NetConfigError::from)?);
        for change in &self.wanted {
            self.net.apply(change.clone()).await?;
        }
        if self.takeover.as_ref().is_some_and(Taken::is_given) {
            self.loosen(config.tun.name.as_str()).await?;
        }
        self.beyond.let_answers_in(&mut self.net, config).await;
        self.beyond.warn_of_drops(self.net.rtnl()).await;
        if let Some(set) = name_servers::among(&self.wanted) {
            name_servers::warn_unless_asked(set);
        }
        Ok(())
    }

    /// Follows a configuration that changed while the portal runs; failures are told.
    pub async fn reconfigure(&mut self, config: &Config) {
        let Some(tun) = self.tun else { return };
        let (wanted, announced) = match self.wanted_by(config, tun) {
            Ok(wanted) => wanted,
            Err(error) => return tracing::warn!(%error, "system not configured anew"),
        };
        self.turn_to(wanted, announced).await;
        self.beyond.let_answers_in(&mut self.net, config).await;
    }

    /// What is wanted, and what of that tells routers of peers.
    fn wanted_by(&mut self, config: &Config, tun: IfIndex) -> Result<(Vec<Change>, Announced), RunError> {
        self.places.let_past(config);
        self.device = self.mtus.of_device(config);
        let fit = self.mtus.beside(self.device, config);
        let mut wanted = changes(config, tun, &self.places, &fit)?;
        let announced = config.peers.iter().map(|peer| {
            let routes = hub::announced(config, peer, tun, &self.announcements, &fit);
            (peer.public_key, routes)
        });
        let announced = announced.filter(|(_, routes)| !routes.is_empty()).collect();
        if let Some(taken) = &mut self.takeover {
            taken.follow(config);
            wanted.extend(taken.changes()?);
        }
        match name_servers::change(config, tun, name_servers::among(&self.wanted)) {
            Ok(change) => wanted.extend(change),
            Err(error) => tracing::warn!(%error, hint = error.hint(), "name servers not set, a reload tries again"),
        }
        Ok((wanted, announced))
    }

    /// The name servers that are set.
    pub fn name_servers(&self) -> Option<DnsStatus> {
        let set = name_servers::among(&self.wanted)?;
        name_servers::among(&self.missing).is_none().then(|| name_servers::status(set))
    }

    /// From what is set to what is to be; failures are told.
    async fn turn_to(&mut self, wanted: Vec<Change>, announced: Announced) {
        let old = (std::mem::replace(&mut self.wanted, wanted), std::mem::replace(&mut self.announced, announced));
        let old: Vec<&Change> = old.0.iter().chain(old.1.values().flatten()).collect();
        let new: Vec<&Change> = self.wanted.iter().chain(self.announced.values().flatten()).collect();
        // What is replaced is never gone in between.
        let places: HashSet<Place> = new.iter().map(|change| change.place()).collect();
        let goes: Vec<Change> =
            old.iter().filter(|change| !places.contains(&change.place())).map(|change| (*change).clone()).collect();
        tell_left(&goes, self.net.undo_each(&goes).await);
        let had: HashSet<&Change> = old.into_iter().collect();
        let has: HashSet<&Change> = new.iter().copied().collect();
        // Others flush nftables or delete rules when their own are read anew: ours come back with a reload.
        let is_flushed = |change: &Change| matches!(change, Change::Nft(_)) || restore::others_delete(change);
        let comes = |change: &Change| is_flushed(change) || !had.contains(change);
        let failed = std::mem::take(&mut self.missing);
        self.missing.extend(failed.iter().filter(|change| has.contains(*change) && !comes(change)).cloned());
        let failed: HashSet<&Change> = failed.iter().collect();
        let coming: Vec<Change> = new.into_iter().filter(|change| comes(change)).cloned().collect();
        let mut restored = 0;
        for (change, outcome) in coming.iter().zip(self.net.apply_all(&coming).await) {
            match outcome {
                Ok(Applied::Set) if had.contains(change) && !failed.contains(change) => restored += 1,
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%change, %error, "not set, it is tried again");
                    self.missing.push(change.clone());
                }
            }
        }
        restore::tell(restored);
        self.tried = Instant::now();
    }

    /// What could not be set, and what other programs deleted. Call it often.
    pub async fn set_again(&mut self, config: &Config) {
        self.retry().await;
        self.restore(config).await;
    }

    /// Tries again what could not be set: what stood in the way may be gone, of which nobody tells.
    async fn retry(&mut self) {
        if self.missing.is_empty() || self.tried.elapsed() < RETRY_EVERY {
            return;
        }
        self.tried = Instant::now();
        let missing = std::mem::take(&mut self.missing);
        let outcomes = self.net.apply_all(&missing).await;
        for (change, outcome) in missing.into_iter().zip(outcomes) {
            match outcome {
                Ok(_) => tracing::info!(%change, "applied after retry"),
                Err(error) => {
                    tracing::debug!(%change, %error, "still not set");
                    self.missing.push(change);
                }
            }
        }
    }

    /// What comes in for these addresses is answered past the tunnel, where the configuration wants that.
    pub async fn answer_by(&mut self, config: &Config, addresses: impl Iterator<Item = IpAddr>) {
        let mut addresses: Vec<IpNet> = addresses.map(IpNet::from).filter(|_| config.tun.answer_by_link).collect();
        addresses.sort();
        addresses.dedup();
        if self.places.answer(addresses) {
            self.reconfigure(config).await;
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

    /// How long packets to these peers may be: the TUN device or routes to them follow; a failure is told.
    pub async fn set_peer_mtus<'p>(&mut self, config: &Config, fits: impl Iterator<Item = (&'p str, u16)>) {
        fits.for_each(|(peer, mtu)| self.mtus.note(peer, mtu));
        let before = self.device;
        self.reconfigure(config).await;
        if self.device != before {
            tracing::info!(mtu = self.device.0, "tun mtu");
        }
    }

    /// The kernel said so.
    pub async fn on_event(&mut self, event: &LinkEvent, plans: &[SocketPlan]) {
        self.dirty |= *event == LinkEvent::RoutesChanged;
        if let LinkEvent::Up(interface) = event
            && Some(interface.index) == self.tun
        {
            self.put_back().await;
        }
        if let Some(taken) = self.takeover.as_mut().filter(|taken| taken.is_moved_by(event)) {
            match taken.move_on(self.net.rtnl(), &self.wanted).await {
                Ok(wanted) => {
                    self.turn_to(wanted, self.announced.clone()).await;
                    if matches!(event, LinkEvent::Up(_)) {
                        self.put_back().await;
                    }
                }
                Err(error) => tracing::warn!(%error, "the client of the takeover not followed"),
            }
        }
        if let Some(interface) = link_interface(event, plans)
            && let Err(error) = self.loosen(&interface.name).await
        {
            tracing::warn!(interface = %interface.name, %error, "rp_filter not loosened");
        }
        if let LinkEvent::Appeared(interface) = event
            && let Err(error) = self.beyond.follow(&mut self.net, &interface.name).await
        {
            tracing::warn!(interface = %interface.name, %error, "forwarding not set");
        }
    }

    /// Sets again what the kernel drops when an interface goes down.
    async fn put_back(&mut self) {
        let stays = |change: &Change| matches!(change, Change::Mtu { .. } | Change::NameServers(_));
        let all = self.wanted.iter().chain(self.announced.values().flatten());
        let dropped: Vec<Change> = all.filter(|change| !stays(change)).cloned().collect();
        for (change, outcome) in dropped.iter().zip(self.net.apply_all(&dropped).await) {
            if let Err(error) = outcome {
                tracing::warn!(%change, %error, "not set again");
            }
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

/// What could not be undone is told.
fn tell_left(changes: &[Change], outcomes: Vec<Result<(), NetConfigError>>) {
    for (change, outcome) in changes.iter().zip(outcomes) {
        if let Err(error) = outcome {
            tracing::warn!(%change, %error, "not undone, the end tries again");
        }
    }
}

/// What the TUN device is to have, whoever owns peers.
fn changes(config: &Config, interface: IfIndex, places: &Places, fit: &Fit<'_>) -> Result<Vec<Change>, NetConfigError> {
    let mut changes = vec![Change::Mtu { interface, mtu: fit.of_device() }];
    changes.extend(config.tun.addresses.iter().map(|address| Change::Address { interface, address: *address }));
    changes.push(Change::LinkUp { interface });
    let route = |(net, mtu)| Change::Route(RouteSpec { mtu, ..RouteSpec::to(net, interface) });
    // A member's route to a peer is the announcement, where both are in the main table.
    changes.extend(fit.routes(config).filter(|_| !hub::is_own_route(config)).map(route));
    changes.extend(default_route::changes(config, interface, places));
    changes.extend(gateway::table(config)?.map(Change::Nft));
    if places.lets_past() {
        changes.push(Change::Nft(rule_table::table(config)?));
    }
    Ok(changes)
}

/// The device's own network is routed by the kernel, and an address that is taken over by a table of its own. A default
/// route is `default_route`'s to set: in the main table it would take the host's other traffic too.
pub(super) fn needs_route(config: &Config, net: &IpNet) -> bool {
    let taken_over = config.takeover.iter().flat_map(|takeover| &takeover.addresses);
    net.prefix_len() > 0
        && !taken_over.into_iter().any(|address| IpNet::from(*address) == *net)
        && !config.tun.addresses.iter().any(|address| address.trunc() == *net)
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
mod many_tests;
#[cfg(test)]
mod tests;
