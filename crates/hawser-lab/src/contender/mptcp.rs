//! The kernel's Multipath TCP (RFC 8684). Applications' sockets are MPTCP's own; nothing else carries their packets.
//!
//! 1. Limits are raised at both ends, and the options' sysctls set: checksums, SYN retries, scheduler. A connection's
//!    first subflow, and what has no connection (a ping, a call), go by the named link, else by the fastest, whenever
//!    that is up.
//! 2. `fullmesh`: each link's address is an endpoint at the client; one that comes is added, and connections that live
//!    open subflows from it; one that goes is removed, with its subflows. So does NetworkManager on a user's machine,
//!    and so did the first implementation in the kernel. A server with an address for each link tells the client of
//!    all.
//! 3. `default`: neither end tells of an address or opens a subflow, as the out-of-tree implementation's path manager
//!    of this name.
//! 4. `ndiffports`: for each connection that the client has established the userspace path manager opens this many
//!    subflows beside the first, from the same address to the same one and port.
//!
//! What acts while connections live is a thread, ended on drop; what it set is removed as the contender goes down.

use std::io;
use std::time::Duration;

use hawser_net::netcfg::{
    self, EndpointFlags, LinkWatch, MptcpEndpoint, MptcpLimits, NetConfigError, Rtnl, WatchOptions,
};
use hawser_shim::kernel::{Connected, Event, Events, Subflows};
use hawser_shim::mptcp::AddressId;
use hawser_wire::Namespace;

use super::links::{Choice, has_lan};
use super::undo::Undo;
use super::{Contender, ContenderPlan, Down, LabError, Offer, Options, Programs, Stage, Transport};
use crate::background::{Background, runtime};
use crate::scenario::Family;

/// The most that the kernel's path manager allows. Source: Linux, MPTCP_PM_ADDR_MAX.
const MOST: u32 = 8;
/// Subflows of `ndiffports` unless told: as the testbed had.
const SUBFLOWS: u32 = 3;
/// The most that tcp_syn_retries takes. Source: kernel documentation, networking/ip-sysctl.
const MOST_SYN_RETRIES: u32 = 127;
/// The path manager is a program, not the kernel. Source: kernel documentation, networking/mptcp-sysctl, pm_type.
const USERSPACE: (&str, &str) = ("mptcp/pm_type", "1");
/// What the peer calls our address in subflows beside the first, which is 0. Source: RFC 8684 section 3.2.
const ADDRESS: AddressId = AddressId(1);
/// How often a thread that hears of connections looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(100);
/// What has a path manager.
const KERNEL: &str = "Linux 5.19 or later with CONFIG_MPTCP";

/// How subflows come to be. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathManager {
    /// None but the first.
    Default,
    /// From every address of the client to every one of the server.
    Fullmesh,
    /// This many between two addresses.
    NDiffPorts(u32),
}

/// What the options say. Plain data.
struct Mptcp {
    choice: Choice,
    path_manager: PathManager,
    /// Sysctls of both ends, and their values.
    sysctls: Vec<(&'static str, String)>,
}

pub(super) fn make(plan: &ContenderPlan, _: &Programs) -> Result<Contender, LabError> {
    let mut options = Options::of_contender(plan);
    let choice = Choice::parse(plan, &mut options)?;
    let subflows = options.up_to("subflows", MOST)?;
    let path_manager = match options.word("path-manager", &["fullmesh", "ndiffports", "default"])? {
        "ndiffports" => PathManager::NDiffPorts(subflows.unwrap_or(SUBFLOWS)),
        _ if subflows.is_some() => return Err(options.fault("subflows is for path-manager = \"ndiffports\"")),
        "default" => PathManager::Default,
        _ => PathManager::Fullmesh,
    };
    let sysctls = [
        ("mptcp/enabled", Some("1".to_owned())),
        ("mptcp/checksum_enabled", options.flag("checksums")?.map(|on| u8::from(on).to_string())),
        ("ipv4/tcp_syn_retries", options.up_to("syn-retries", MOST_SYN_RETRIES)?.map(|retries| retries.to_string())),
        ("mptcp/scheduler", options.string("scheduler")?),
    ];
    let sysctls = sysctls.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
    options.finish()?;
    let mptcp = Mptcp { choice, path_manager, sysctls };
    Ok(Box::new(move |stage: &Stage| mptcp.up(stage)))
}

impl Mptcp {
    fn up(&self, stage: &Stage) -> Result<(Offer, Down), LabError> {
        if has_lan(stage) {
            let what = "an address for each link at client and server (hosts behind a portal have one)";
            return Err(LabError::missing(what, "compare mptcp in a network without `lan`"));
        }
        let link = self.choice.place(stage)?;
        let (mut undo, offered) = (Undo::default(), stage.ends_of(link));
        let ends = [&stage.local, &stage.remote];
        for end in ends {
            for (key, value) in &self.sysctls {
                must_exist(end, key, value)?;
                undo.sysctl(end, key, value)?;
            }
        }
        if matches!(self.path_manager, PathManager::NDiffPorts(_)) {
            undo.sysctl(&stage.local, USERSPACE.0, USERSPACE.1)?;
        }
        for end in ends {
            let manager = open(end, netcfg::PathManager::open)?;
            let before = manager.limits().map_err(failed(end))?;
            manager.set_limits(MptcpLimits { subflows: MOST, accepted: MOST }).map_err(failed(end))?;
            let end = end.clone();
            undo.push(move || manager.flush().and_then(|()| manager.set_limits(before)).map_err(failed(&end)));
        }
        // The thread that acts while connections live: goes before what was set.
        let helper = match self.path_manager {
            PathManager::Default => None,
            PathManager::Fullmesh => Some(announce(stage).and_then(|()| follow(stage))?),
            PathManager::NDiffPorts(count) => Some(multiply(&stage.local, count)?),
        };
        // The last step: what fails before leaves nothing that `undo` does not know.
        stage.route_first(link, offered.server)?;
        let down: Down = Box::new(move |stage: &Stage| {
            drop(helper);
            stage.stop_first().and(undo.undo())
        });
        Ok((Offer { ends: offered, socket: Transport::Mptcp, programs: Vec::new(), portals: None }, down))
    }
}

/// Step 2, at the server.
fn announce(stage: &Stage) -> Result<(), LabError> {
    let server = open(&stage.remote, netcfg::PathManager::open)?;
    let own = |link: &usize| stage.links[*link].far_address != stage.endpoint;
    let endpoint = |link| MptcpEndpoint::new(stage.ends_of(link).server, EndpointFlags::SIGNAL);
    let mut endpoints = (0..stage.links.len()).filter(own).map(endpoint);
    endpoints.try_for_each(|endpoint| server.add(&endpoint)).map_err(failed(&stage.remote))
}

/// Opens what the kernel's MPTCP has in a namespace.
fn open<T: Send>(namespace: &Namespace, open: fn() -> Result<T, NetConfigError>) -> Result<T, LabError> {
    namespace.run(open)?.map_err(|error| match error {
        NetConfigError::MissingFeature { .. } => LabError::missing("the kernel's path manager of MPTCP", KERNEL),
        error => failed(namespace)(error),
    })
}

fn failed<E: std::fmt::Display>(namespace: &Namespace) -> impl Fn(E) -> LabError {
    move |error| LabError::refused(format!("set up MPTCP in {}", namespace.name()), error.to_string())
}

/// What the kernel lacks is named; what it refuses for another reason is an error of the one who sets it.
fn must_exist(end: &Namespace, key: &str, value: &str) -> Result<(), LabError> {
    if end.sysctl(key).is_err() {
        return Err(LabError::missing(format!("the kernel's sysctl net/{key}"), KERNEL));
    }
    if key == "mptcp/scheduler" {
        let available = end.sysctl("mptcp/available_schedulers")?;
        if !available.split_whitespace().any(|one| one == value) {
            let what = format!("the kernel's MPTCP scheduler {value}");
            return Err(LabError::missing(what, format!("this kernel has: {available}")));
        }
    }
    Ok(())
}

/// What the thread of [`follow`] works with. One owner.
struct Work {
    manager: netcfg::PathManager,
    /// Interfaces of links.
    links: Vec<String>,
    is_ipv4: bool,
}

/// Step 2, at the client; the first endpoints stand when it returns.
fn follow(stage: &Stage) -> Result<Background<()>, LabError> {
    let work = Work {
        manager: open(&stage.local, netcfg::PathManager::open)?,
        links: stage.links.iter().map(|link| link.name.clone()).collect(),
        is_ipv4: stage.inner == Family::V4,
    };
    let first = || runtime()?.block_on(work.reconcile()).map_err(io::Error::other);
    stage.local.run(first)?.map_err(failed(&stage.local))?;
    Background::serve(&stage.local, "mptcp-follow", move || async move {
        let followed = work.run().await;
        followed.inspect_err(|error| tracing::warn!(%error, "endpoints of MPTCP follow the links no more"))
    })
}

impl Work {
    /// What is there now counts, and not what the watch says: it begins by telling of all that is there.
    async fn run(&self) -> io::Result<()> {
        let mut watch = LinkWatch::open(WatchOptions::default()).map_err(io::Error::other)?;
        loop {
            watch.next().await.map_err(io::Error::other)?;
            if let Err(error) = self.reconcile().await {
                tracing::warn!(%error, "endpoints of MPTCP do not follow the links");
            }
        }
    }

    async fn reconcile(&self) -> Result<(), NetConfigError> {
        let (wanted, had) = (self.wanted().await?, self.manager.endpoints()?);
        for (_, gone) in had.iter().filter(|(_, had)| wanted.iter().all(|wanted| wanted.address != had.address)) {
            self.manager.remove(gone)?;
        }
        let mut new = wanted.iter().filter(|wanted| had.iter().all(|(_, had)| had.address != wanted.address));
        new.try_for_each(|new| self.manager.add(new))
    }

    /// An endpoint for each link that is up, at its address.
    async fn wanted(&self) -> Result<Vec<MptcpEndpoint>, NetConfigError> {
        let (kernel, mut wanted) = (Rtnl::open()?, Vec::new());
        for name in &self.links {
            let Some(link) = kernel.link_named(name).await?.filter(|link| link.administratively_up) else { continue };
            let addresses = kernel.interface_addresses(name).await?.unwrap_or_default();
            let Some(own) = addresses.iter().find(|own| own.global && own.address.addr().is_ipv4() == self.is_ipv4)
            else {
                continue;
            };
            // Subflows are opened from it to every address that the server has.
            let flags = EndpointFlags::SUBFLOW | EndpointFlags::FULLMESH;
            let endpoint = MptcpEndpoint::new(own.address.addr(), flags);
            wanted.push(MptcpEndpoint { interface: Some(link.index), ..endpoint });
        }
        Ok(wanted)
    }
}

/// Step 4, for connections of this many subflows.
fn multiply(client: &Namespace, subflows: u32) -> Result<Background<()>, LabError> {
    let (events, manager) = (open(client, Events::open)?, open(client, Subflows::open)?);
    Background::start(client, "mptcp-ndiffports", move |mut stop| {
        while !stop.is_told() {
            let happened = events.next(GLANCE).unwrap_or_else(|error| {
                tracing::warn!(%error, "listen for connections of MPTCP");
                Vec::new()
            });
            for Connected { token, local, remote, .. } in happened.into_iter().filter_map(of_client) {
                let further = |_| manager.create(token, ADDRESS, local.ip(), None, remote).err();
                // A connection may have ended meanwhile: that is no fault.
                for error in (1..subflows).filter_map(further) {
                    tracing::warn!(%error, "a connection has fewer subflows than asked for");
                }
            }
        }
        Ok(())
    })
}

/// The connection that the client has established, if that is what happened.
fn of_client(event: Event) -> Option<Connected> {
    match event {
        Event::Established(connected) if !connected.is_server => Some(connected),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use hawser_shim::mptcp::Token;

    use super::*;

    #[test]
    fn only_a_connection_that_the_client_established_counts() {
        let (local, remote) = (([10, 0, 0, 1], 4000).into(), ([10, 0, 0, 2], 5001).into());
        let ours = Connected { token: Token(7), local, remote, is_server: false };
        assert_eq!(of_client(Event::Established(ours)), Some(ours));
        let peers = Event::Established(Connected { is_server: true, ..ours });
        assert_eq!(of_client(peers), None, "the peer made it");
        assert_eq!(of_client(Event::Created(ours)), None, "it is only begun");
    }
}
