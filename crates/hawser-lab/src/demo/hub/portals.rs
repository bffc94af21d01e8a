//! The portals' processes.

use std::path::Path;

use hawser_portal::api::Status;

use super::{MEMBERS, SITE_NAME};
use crate::cleanup::{self, Folder};
use crate::error::LabError;
use crate::hub::{Configurations, Network, SITES, Site};
use crate::portals::Portal;

/// They run from the start; ended on drop, before the folder goes.
#[derive(Debug)]
pub struct Portals {
    site: Portal,
    members: Vec<Option<Portal>>,
    _folder: Folder,
}

impl Portals {
    /// All of them.
    pub fn start(program: &Path, network: &Network) -> Result<Self, LabError> {
        let _making = cleanup::making();
        let folder = Folder::new()?;
        let sites = [Site { name: SITE_NAME, own: SITES[0], moving: &SITES[..1] }];
        Configurations { sites: &sites, members: &MEMBERS, etcd: None }.write(folder.path())?;
        let members = MEMBERS.iter().zip(&network.members);
        let members = members.map(|(name, member)| Portal::start(program, name, member, &folder).map(Some));
        let members = members.collect::<Result<_, LabError>>()?;
        let site = Portal::start(program, SITE_NAME, &network.sites[0], &folder)?;
        Ok(Self { site, members, _folder: folder })
    }

    /// A member's process is killed, and says nothing to anybody.
    pub fn kill(&mut self, member: usize) {
        self.members[member].take().into_iter().for_each(|portal| portal.process.kill());
    }

    pub fn site_status(&self) -> Option<Status> {
        self.site.status()
    }

    pub fn member_status(&self, member: usize) -> Option<Status> {
        self.members[member].as_ref()?.status()
    }

    /// An error, with what the site's portal said.
    pub fn fault(&self, fault: String) -> LabError {
        self.site.process.fault(fault)
    }
}
