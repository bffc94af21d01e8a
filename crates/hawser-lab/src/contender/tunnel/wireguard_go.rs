//! wireguard-go on one link.
//!
//! 1. Go builds it from its module into the cache, once.
//! 2. What goes to its port is steered over the link, whatever the other links' metrics.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::{Adapter, Choice, ContenderPlan, Ground, LOCAL, LabError, Options, Pair, Programs, REMOTE};
use crate::cleanup::making;
use crate::contender::links::steer;
use crate::portals::new_key;
use crate::wireguard::{self, PORT, configuration, device, launch};

/// Its settings. Plain data.
pub(super) struct WireGuardGo {
    choice: Choice,
    cache: PathBuf,
}

impl Adapter for WireGuardGo {
    const KIND: &'static str = "wireguard-go";

    fn parse(plan: &ContenderPlan, options: &mut Options, programs: &Programs) -> Result<Self, LabError> {
        Ok(Self { choice: Choice::parse(plan, options)?, cache: programs.cache.clone() })
    }

    fn choice(&self) -> Option<&Choice> {
        Some(&self.choice)
    }

    fn start(&self, ground: &Ground<'_>, pair: &mut Pair) -> Result<(), LabError> {
        let program = wireguard::build(&self.cache)?;
        let link = ground.used[0];
        steer(ground.stage, link, PORT, &mut pair.undo)?;
        wire(ground, pair, &program, SocketAddr::new(ground.links[link].far_address, PORT))
    }
}

/// WireGuard between both ends; the local one calls this address.
pub(super) fn wire(ground: &Ground<'_>, pair: &mut Pair, program: &Path, call: SocketAddr) -> Result<(), LabError> {
    let (local_key, remote_key) = (new_key()?, new_key()?);
    let remote = configuration(&remote_key, Some(PORT), &local_key, None, &ground.behind(|ends| ends.client));
    let local = configuration(&local_key, None, &remote_key, Some(call), &ground.behind(|ends| ends.server));
    for (role, text) in [(REMOTE, remote), (LOCAL, local)] {
        let making = making();
        let process = launch(role, program, ground.namespace(role), &pair.folder, &text)?;
        drop(making);
        pair.programs.push((role, process));
        ground.configure(role, &device(role), pair)?;
    }
    Ok(())
}
