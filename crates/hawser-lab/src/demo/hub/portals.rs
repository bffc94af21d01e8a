//! The portals' processes.

use std::path::{Path, PathBuf};

use hawser_portal::api::Status;
use hawser_wire::Namespace;

use super::{MEMBERS, SITE_NAME, status};
use crate::cleanup::{self, Folder};
use crate::error::LabError;
use crate::hub::{Configurations, Network, SITE};
use crate::process::Process;

/// They run from the start; ended on drop, before the folder goes.
#[derive(Debug)]
pub struct Portals {
    site: Process,
    members: Vec<Option<Process>>,
    folder: Folder,
}

impl Portals {
    /// All of them.
    pub fn start(program: &Path, network: &Network) -> Result<Self, LabError> {
        let _making = cleanup::making();
        let folder = Folder::new()?;
        let names = Configurations { site: SITE_NAME, members: &MEMBERS, own: SITE, moving: &[SITE] };
        names.write(folder.path())?;
        let start = |name: &str, namespace: &Namespace| {
            let config = folder.path().join(format!("{name}.toml"));
            Process::start(name, namespace, program, &["up", "-c", &config.to_string_lossy()], &folder)
        };
        let members = MEMBERS.iter().zip(&network.members).map(|(name, member)| start(name, member).map(Some));
        let members = members.collect::<Result<_, LabError>>()?;
        let site = start(SITE_NAME, &network.site)?;
        Ok(Self { site, members, folder })
    }

    /// A member's process is killed, and says nothing to anybody.
    pub fn kill(&mut self, member: usize) {
        self.members[member].take().into_iter().for_each(Process::kill);
    }

    pub fn site_status(&self) -> Option<Status> {
        status(&self.socket(SITE_NAME))
    }

    pub fn member_status(&self, member: usize) -> Option<Status> {
        status(&self.socket(MEMBERS[member]))
    }

    /// An error, with what the site's portal said.
    pub fn fault(&self, fault: String) -> LabError {
        self.site.fault(fault)
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.sock"))
    }
}
