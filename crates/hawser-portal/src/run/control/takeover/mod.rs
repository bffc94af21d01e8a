//! A client behind the local portal has the remote portal's own address.
//!
//! 1. [`Plan::new`] is what the configuration says of it. 2. [`Plan::survey`] looks where on this machine that is.
//! 3. [`Plan::changes`] is what is to be set: at the remote portal what comes for the address goes into the tunnel
//!    (`remote`), at the local one it goes to the client, and what the client sends goes into the tunnel (`local`).

mod local;
mod remote;

use std::net::IpAddr;

use hawser_config::{Config, Takeover, TakeoverRole};
use hawser_net::netcfg::{
    Change, Family, IfIndex, LinkEvent, Metric, NetConfigError, NftError, RouteKind, RouteSpec, Rtnl, TableId,
};
use ipnet::IpNet;

use local::Local;
use remote::Remote;

/// The name of the loopback interface, whose routes live as long as the host's network.
const LOOPBACK: &str = "lo";
/// The least preferred route of all.
const LAST: Metric = Metric(u32::MAX);

/// What is taken over, and where that is. Made when the system is configured; the control thread owns it.
#[derive(Clone, Debug)]
pub struct Taken {
    plan: Plan,
    ground: Ground,
}

/// What is to be taken over. Made from the configuration; the control thread owns it.
#[derive(Clone, Debug)]
struct Plan {
    takeover: Takeover,
    role: Role,
}

#[derive(Clone, Debug)]
enum Role {
    Remote(Remote),
    Local(Local),
}

/// Where it is on this machine. Plain data, of the moment it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ground {
    /// The TUN device.
    tun: IfIndex,
    loopback: IfIndex,
    /// Remote portal: each address with the name of the interface that has it.
    holders: Vec<(IpAddr, String)>,
    /// Remote portal: interfaces of these that forwarded nothing of an IP version before.
    closed: Vec<(Family, String)>,
    /// Local portal: the client's interface with its networks, if it is up.
    lan: Option<(IfIndex, Vec<IpNet>)>,
}

/// Why an address is not taken over. Owned data only.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TakeoverError {
    /// The remote portal has not the address.
    #[error("take over {address}: no interface of this machine has it")]
    NotHere {
        /// Which one.
        address: IpAddr,
    },
    /// The remote portal has it elsewhere.
    #[error("take over {address}: {found} has it, and not {wanted}")]
    Elsewhere {
        /// Which one.
        address: IpAddr,
        /// What the configuration says.
        wanted: String,
        /// Where it is.
        found: String,
    },
    /// The local portal has it itself.
    #[error("take over {address}: {interface} of this machine has it, and no client")]
    OwnAddress {
        /// Which one.
        address: IpAddr,
        /// Where it is.
        interface: String,
    },
    /// The kernel did not say.
    #[error(transparent)]
    NetConfig(#[from] NetConfigError),
    /// An interface's name cannot stand in a rule.
    #[error(transparent)]
    Nft(#[from] NftError),
}

impl TakeoverError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotHere { .. } => Some(
                "`ip addr` lists what it has; where the provider translates addresses, write the one that is there"
                    .to_owned(),
            ),
            Self::Elsewhere { found, .. } => Some(format!("write in [takeover]: interface = \"{found}\"")),
            Self::OwnAddress { address, .. } => Some(format!(
                "is this the remote portal? then add \"{}\" to allowed_ips of the peer who gets it",
                IpNet::from(*address)
            )),
            Self::NetConfig(error) => error.hint().map(str::to_owned),
            Self::Nft(error) => error.hint().map(str::to_owned),
        }
    }
}

impl Taken {
    /// Steps 1 and 2; none where nothing is to be taken over.
    ///
    /// # Errors
    /// Where an address is not where it has to be.
    pub async fn new(config: &Config, rtnl: &Rtnl, tun: IfIndex) -> Result<Option<Self>, TakeoverError> {
        let Some(plan) = Plan::new(config) else { return Ok(None) };
        let ground = plan.survey(rtnl, tun).await?;
        for (address, interface) in &ground.holders {
            tracing::info!(%address, interface, "the address is a peer's from now on, but for what stays here");
        }
        Ok(Some(Self { plan, ground }))
    }

    /// Whether addresses of this machine are a peer's: the reverse path of what it sends is not the TUN device.
    pub fn is_given(&self) -> bool {
        matches!(self.plan.role, Role::Remote(_))
    }

    /// The interfaces by which the world comes for the address.
    pub fn worlds(&self) -> impl Iterator<Item = String> {
        self.ground.holders.iter().map(|(_, interface)| interface.clone())
    }

    /// Step 3.
    ///
    /// # Errors
    /// Where an interface's name cannot stand in a rule.
    pub fn changes(&self) -> Result<Vec<Change>, TakeoverError> {
        self.plan.changes(&self.ground)
    }

    /// Follows the peers of a configuration that was read again; the rest of it waits for a restart.
    pub fn follow(&mut self, config: &Config) {
        self.plan = Plan::new(config).unwrap_or_else(|| self.plan.clone());
    }

    /// Whether the event is of the client's interface.
    pub fn is_moved_by(&self, event: &LinkEvent) -> bool {
        self.plan.is_moved_by(event)
    }

    /// What is wanted now, in the place of what was.
    ///
    /// # Errors
    /// Where an address is not any more where it has to be.
    pub async fn move_on(&mut self, rtnl: &Rtnl, wanted: &[Change]) -> Result<Vec<Change>, TakeoverError> {
        let old = self.changes()?;
        self.ground = self.plan.survey(rtnl, self.ground.tun).await?;
        let others = wanted.iter().filter(|change| !old.contains(change)).cloned();
        Ok(others.chain(self.changes()?).collect())
    }
}

impl Plan {
    /// Step 1; none where nothing is taken over.
    fn new(config: &Config) -> Option<Self> {
        let takeover = config.takeover.clone()?;
        let role = match &takeover.role {
            TakeoverRole::Remote { keep, .. } => Role::Remote(Remote::new(config, keep)),
            TakeoverRole::Local { .. } => Role::Local(Local::new(config)),
        };
        Some(Self { takeover, role })
    }

    /// Step 2.
    ///
    /// # Errors
    /// Where the address is not where it has to be.
    async fn survey(&self, rtnl: &Rtnl, tun: IfIndex) -> Result<Ground, TakeoverError> {
        let loopback = rtnl.link_named(LOOPBACK).await?.map_or(tun, |link| link.index);
        let mut ground = Ground { tun, loopback, holders: Vec::new(), closed: Vec::new(), lan: None };
        for address in &self.takeover.addresses {
            let holder = rtnl.interface_with(*address).await?.map(|link| link.name);
            let address = *address;
            match (&self.takeover.role, holder) {
                (TakeoverRole::Remote { .. }, None) => return Err(TakeoverError::NotHere { address }),
                (TakeoverRole::Remote { interface: Some(wanted), .. }, Some(found)) if found != wanted.as_str() => {
                    return Err(TakeoverError::Elsewhere { address, wanted: wanted.to_string(), found });
                }
                (TakeoverRole::Remote { .. }, Some(found)) => ground.holders.push((address, found)),
                (TakeoverRole::Local { .. }, Some(interface)) => {
                    return Err(TakeoverError::OwnAddress { address, interface });
                }
                (TakeoverRole::Local { .. }, None) => {}
            }
        }
        if let Role::Remote(remote) = &self.role {
            ground.closed = remote.closed(&ground)?;
        }
        if let TakeoverRole::Local { interface } = &self.takeover.role {
            match rtnl.link_named(interface.as_str()).await? {
                Some(link) if link.administratively_up => {
                    ground.lan = Some((link.index, rtnl.networks_of(link.index).await?));
                }
                _ => tracing::warn!(%interface, "the client's interface is not up yet"),
            }
        }
        Ok(ground)
    }

    /// Step 3, in the order in which it is set.
    ///
    /// # Errors
    /// Where an interface's name cannot stand in a rule.
    fn changes(&self, ground: &Ground) -> Result<Vec<Change>, TakeoverError> {
        match &self.role {
            Role::Remote(remote) => remote.changes(ground),
            Role::Local(local) => Ok(local.changes(&self.takeover.addresses, ground)),
        }
    }

    /// Whether the event is of the client's interface: where it is, and its networks, are to be asked for again.
    fn is_moved_by(&self, event: &LinkEvent) -> bool {
        let TakeoverRole::Local { interface: wanted } = &self.takeover.role else { return false };
        match event {
            LinkEvent::Appeared(interface)
            | LinkEvent::Up(interface)
            | LinkEvent::Down(interface)
            | LinkEvent::Gone(interface)
            | LinkEvent::AddressAdded(interface, _)
            | LinkEvent::AddressRemoved(interface, _) => &*interface.name == wanted.as_str(),
            LinkEvent::AddressDeprecated(..) | LinkEvent::AddressPreferred(..) | LinkEvent::RoutesChanged => false,
        }
    }
}

/// What has no other route in a table is refused: nothing of the client's goes where it should not while the TUN device
/// is not there, after a kill too.
fn refuse(destination: IpNet, table: TableId, ground: &Ground) -> Change {
    Change::Route(RouteSpec {
        table: Some(table),
        metric: Some(LAST),
        kind: RouteKind::Unreachable,
        ..RouteSpec::to(destination, ground.loopback)
    })
}

/// The IP versions of the addresses.
fn families<'a>(addresses: impl Iterator<Item = &'a IpAddr> + Clone) -> impl Iterator<Item = Family> {
    let has = move |family| addresses.clone().any(|address| Family::of(*address) == family);
    [Family::V4, Family::V6].into_iter().filter(move |family| has(*family))
}
