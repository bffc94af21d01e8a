//! Keeps the client's endpoints those addresses that links have: what NetworkManager does on a user's machine, and what
//! the first implementation of MPTCP did in the kernel.
//!
//! 1. A thread listens for changes of interfaces and addresses (rtnetlink).
//! 2. After each, endpoints whose address has gone are removed, with their subflows; new ones are added, and
//!    connections that live open subflows from them.
//!
//! Ended on drop: endpoints stay for their owner to remove.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use hawser_net::genetlink::readable;
use hawser_wire::Namespace;
use netlink_sys::{Socket, protocols::NETLINK_ROUTE};

use super::manager::{FULLMESH, Manager};
use super::{LabError, Stage};
use crate::background::{Background, Stop};
use crate::contender::undo::{Address, interfaces};
use crate::scenario::Family;

/// Groups of changes: links, IPv4 addresses, IPv6 addresses. Source: linux/rtnetlink.h, RTNLGRP_*.
const GROUPS: [u32; 3] = [1, 5, 9];
/// How often the thread looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(100);

/// What the thread works with. One owner.
struct Work {
    namespace: Namespace,
    manager: Manager,
    changes: Socket,
    /// Interfaces of links.
    links: Vec<String>,
    is_ipv4: bool,
}

/// Step 1; the first endpoints stand when it returns.
pub(super) fn start(stage: &Stage) -> Result<Background<()>, LabError> {
    let failed = |error| LabError::system("listen for changes of interfaces", error);
    let changes = stage.local.run(changes)?.map_err(failed)?;
    let work = Work {
        namespace: stage.local.clone(),
        manager: Manager::open(&stage.local)?,
        changes,
        links: stage.links.iter().map(|link| link.name.clone()).collect(),
        is_ipv4: stage.inner == Family::V4,
    };
    work.reconcile()?;
    Background::start(&stage.local, "mptcp-follow", move |stop| {
        work.run(stop);
        Ok(())
    })
}

fn changes() -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    GROUPS.iter().try_for_each(|group| socket.add_membership(*group))?;
    Ok(socket)
}

impl Work {
    fn run(&self, mut stop: Stop) {
        while !stop.is_told() {
            match readable(&self.changes, GLANCE) {
                Ok(false) => continue,
                Ok(true) => self.drain(),
                Err(error) => tracing::warn!(%error, "listen for changes of interfaces"),
            }
            if let Err(error) = self.reconcile() {
                tracing::warn!(%error, "endpoints of MPTCP do not follow the links");
            }
        }
    }

    /// What changed is not read from messages, of which some may have been lost: what is there now counts.
    fn drain(&self) {
        while readable(&self.changes, Duration::ZERO) == Ok(true) {
            drop(self.changes.recv_from_full());
        }
    }

    /// Step 2.
    fn reconcile(&self) -> Result<(), LabError> {
        let (wanted, had) = (self.addresses()?, self.manager.endpoints()?);
        for gone in had.iter().filter(|endpoint| wanted.iter().all(|(address, _)| *address != endpoint.address)) {
            self.manager.remove(*gone)?;
        }
        for (address, index) in wanted {
            if had.iter().all(|endpoint| endpoint.address != address) {
                self.manager.add(address, Some(index), FULLMESH)?;
            }
        }
        Ok(())
    }

    /// Addresses of links that are up, with the indexes of their interfaces.
    fn addresses(&self) -> Result<Vec<(IpAddr, u32)>, LabError> {
        let all = interfaces(&self.namespace, "address", "show up")?;
        let of_links = all.into_iter().filter(|one| self.links.contains(&one.ifname));
        let usable =
            |address: &Address| address.local.filter(|ip| address.scope == "global" && ip.is_ipv4() == self.is_ipv4);
        Ok(of_links.filter_map(|one| Some((one.addr_info.iter().find_map(usable)?, one.ifindex))).collect())
    }
}
