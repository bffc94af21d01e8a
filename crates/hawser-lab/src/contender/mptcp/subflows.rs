//! What acts while connections live, by a thread each. Ended on drop; what it set stays for its owner to remove.
//!
//! 1. [`follow`] keeps the client's endpoints those addresses that links have: what NetworkManager does on a user's
//!    machine, and what the first implementation of MPTCP did in the kernel. After each change of interfaces or
//!    addresses, endpoints whose address has gone are removed, with their subflows; new ones are added, and connections
//!    that live open subflows from them.
//! 2. [`multiply`] hears of each connection that the client has established, and opens this many subflows beside the
//!    first, from the same address to the same one and port, as the userspace path manager.

use std::io;
use std::pin::pin;
use std::time::Duration;

use hawser_net::netcfg::{EndpointFlags, LinkWatch, MptcpEndpoint, NetConfigError, PathManager, Rtnl, WatchOptions};
use hawser_shim::kernel::{Connected, Event, Events, Subflows};
use hawser_shim::mptcp::AddressId;
use hawser_wire::Namespace;

use super::{LabError, Stage, action, open};
use crate::background::{Background, Stop, runtime};
use crate::scenario::Family;

/// What the peer calls our address in subflows beside the first, which is 0. Source: RFC 8684 section 3.2.
const ADDRESS: AddressId = AddressId(1);
/// How often a thread that hears of connections looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(100);

/// What the thread of [`follow`] works with. One owner.
struct Work {
    manager: PathManager,
    /// Interfaces of links.
    links: Vec<String>,
    is_ipv4: bool,
}

/// Step 1; the first endpoints stand when it returns.
pub(super) fn follow(stage: &Stage) -> Result<Background<()>, LabError> {
    let work = Work {
        manager: open(&stage.local, PathManager::open)?,
        links: stage.links.iter().map(|link| link.name.clone()).collect(),
        is_ipv4: stage.inner == Family::V4,
    };
    let first = || runtime()?.block_on(work.reconcile()).map_err(io::Error::other);
    stage.local.run(first)?.map_err(|error| LabError::refused(action(&stage.local), error.to_string()))?;
    Background::start(&stage.local, "mptcp-follow", move |stop| {
        let followed = runtime()?.block_on(work.run(stop));
        followed.inspect_err(|error| tracing::warn!(%error, "endpoints of MPTCP follow the links no more"))
    })
}

impl Work {
    /// What is there now counts, and not what the watch says: it begins by telling of all that is there.
    async fn run(&self, stop: Stop) -> io::Result<()> {
        let mut watch = LinkWatch::open(WatchOptions::default()).map_err(io::Error::other)?;
        let mut told = pin!(stop.told());
        loop {
            tokio::select! {
                () = &mut told => return Ok(()),
                changed = watch.next() => drop(changed.map_err(io::Error::other)?),
            }
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

/// Step 2, for connections of this many subflows.
pub(super) fn multiply(client: &Namespace, subflows: u32) -> Result<Background<()>, LabError> {
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
