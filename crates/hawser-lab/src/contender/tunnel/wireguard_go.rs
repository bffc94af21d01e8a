//! wireguard-go on one link.
//!
//! 1. Go builds it from its module into the cache, once.
//! 2. What goes to its port is steered over the link, whatever the other links' metrics.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::super::Programs;
use super::super::links::{choose, steer};
use super::pair::Pair;
use super::{Adapter, Ground, LOCAL, REMOTE};
use crate::error::LabError;
use crate::options::Options;
use crate::portals::new_key;
use crate::scenario::ContenderPlan;
use crate::stage::Stage;
use crate::wireguard::{self, PORT, configuration, device, launch};

/// Its settings. Plain data.
pub(super) struct WireGuardGo {
    label: String,
    link: Option<String>,
    cache: PathBuf,
}

impl Adapter for WireGuardGo {
    const KIND: &'static str = "wireguard-go";

    fn parse(plan: &ContenderPlan, options: &mut Options, programs: &Programs) -> Result<Self, LabError> {
        let link = options.string("link")?;
        Ok(Self { label: plan.label.clone(), link, cache: programs.cache.clone() })
    }

    fn links(&self, stage: &Stage) -> Result<Vec<usize>, LabError> {
        Ok(vec![choose(stage, self.link.as_deref(), &self.label)?])
    }

    fn start(&self, ground: &Ground<'_>, pair: &mut Pair) -> Result<(), LabError> {
        let program = wireguard::build(&self.cache)?;
        let link = choose(ground.stage, self.link.as_deref(), &self.label)?;
        steer(ground.stage, link, PORT, &mut pair.undo)?;
        wire(ground, pair, &program, SocketAddr::new(ground.links[link].far_address, PORT))
    }
}

/// WireGuard between both ends; the local one calls this address.
pub(super) fn wire(
    ground: &Ground<'_>,
    pair: &mut Pair,
    program: &std::path::Path,
    call: SocketAddr,
) -> Result<(), LabError> {
    let (local_key, remote_key) = (new_key()?, new_key()?);
    let remote = configuration(&remote_key, Some(PORT), &local_key, None, &ground.behind(|ends| ends.client));
    let local = configuration(&local_key, None, &remote_key, Some(call), &ground.behind(|ends| ends.server));
    for (role, text) in [(REMOTE, remote), (LOCAL, local)] {
        let making = crate::cleanup::making();
        let process = launch(role, program, ground.namespace(role), pair.folder(), &text)?;
        drop(making);
        pair.adopt(role, process);
        ground.configure(role, &device(role), pair)?;
    }
    Ok(())
}
