//! The kernel's Multipath TCP (RFC 8684). Applications' sockets are MPTCP's own; nothing else carries their packets.
//!
//! 1. Limits are raised at both ends, and the options' sysctls set: checksums, SYN retries, scheduler. A connection's
//!    first subflow, and what has no connection (a ping, a call), go by the named link, else by the fastest, whenever
//!    that is up.
//! 2. `fullmesh`: each link's address is an endpoint at the client; one that comes is added and one that goes removed,
//!    as NetworkManager does ([`follow`]). A server with an address for each link tells the client of all.
//! 3. `default`: neither end tells of an address or opens a subflow, as the out-of-tree implementation's path manager
//!    of this name.
//! 4. `ndiffports`: the userspace path manager opens more subflows between the addresses of the first ([`ndiffports`]).

use hawser_wire::Namespace;

use self::manager::{Limits, Manager};
use super::links::{Choice, has_lan};
use super::undo::Undo;
use super::{Contender, ContenderPlan, LabError, Offer, Options, Programs, Stage, Transport};
use crate::background::Background;

mod follow;
mod manager;
mod ndiffports;

/// The most that the kernel's path manager allows. Source: Linux, MPTCP_PM_ADDR_MAX.
const MOST: u32 = 8;
/// Subflows of `ndiffports` unless told: as the testbed had.
const SUBFLOWS: u32 = 3;
/// The most that tcp_syn_retries takes. Source: kernel documentation, networking/ip-sysctl.
const MOST_SYN_RETRIES: u32 = 127;
/// The path manager is a program, not the kernel. Source: kernel documentation, networking/mptcp-sysctl, pm_type.
const PM_TYPE: &str = "mptcp/pm_type";
const USERSPACE: &str = "1";
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

/// The kernel's MPTCP. Down at first; one owner.
struct Mptcp {
    choice: Choice,
    path_manager: PathManager,
    /// Sysctls of both ends, and their values.
    sysctls: Vec<(&'static str, String)>,
    /// The thread that acts while connections live: goes before what was set.
    helper: Option<Background<()>>,
    undo: Undo,
}

pub(super) fn make(plan: &ContenderPlan, _: &Programs) -> Result<Box<dyn Contender>, LabError> {
    let mut options = Options::of_contender(plan);
    let choice = Choice::parse(plan, &mut options)?;
    let subflows = options.up_to("subflows", MOST)?;
    let path_manager = match options.word("path-manager", &["fullmesh", "ndiffports", "default"])? {
        "ndiffports" => PathManager::NDiffPorts(subflows.unwrap_or(SUBFLOWS)),
        _ if subflows.is_some() => return Err(options.fault("subflows is for path-manager = \"ndiffports\"")),
        "default" => PathManager::Default,
        _ => PathManager::Fullmesh,
    };
    let mut sysctls = vec![("mptcp/enabled", "1".to_owned())];
    if let Some(on) = options.flag("checksums")? {
        sysctls.push(("mptcp/checksum_enabled", u8::from(on).to_string()));
    }
    if let Some(retries) = options.up_to("syn-retries", MOST_SYN_RETRIES)? {
        sysctls.push(("ipv4/tcp_syn_retries", retries.to_string()));
    }
    if let Some(scheduler) = options.string("scheduler")? {
        sysctls.push(("mptcp/scheduler", scheduler));
    }
    options.finish()?;
    Ok(Box::new(Mptcp { choice, path_manager, sysctls, helper: None, undo: Undo::default() }))
}

impl Contender for Mptcp {
    fn up(&mut self, stage: &Stage) -> Result<Offer, LabError> {
        if has_lan(stage) {
            let what = "an address for each link at client and server (hosts behind a portal have one)";
            return Err(LabError::missing(what, "compare mptcp in a network without `lan`"));
        }
        let link = self.choice.place(stage)?;
        let (undo, offered) = (&mut self.undo, stage.ends_of(link));
        for end in ends(stage) {
            for (key, value) in &self.sysctls {
                must_exist(end, key, value)?;
                undo.sysctl(end, key, value)?;
            }
        }
        if matches!(self.path_manager, PathManager::NDiffPorts(_)) {
            undo.sysctl(&stage.local, PM_TYPE, USERSPACE)?;
        }
        for end in ends(stage) {
            let manager = Manager::open(end)?;
            let before = manager.limits()?;
            manager.set_limits(Limits { subflows: MOST, accepted: MOST })?;
            undo.push(move || manager.flush().and_then(|()| manager.set_limits(before)));
        }
        self.helper = match self.path_manager {
            PathManager::Default => None,
            PathManager::Fullmesh => {
                announce(stage)?;
                Some(follow::start(stage)?)
            }
            PathManager::NDiffPorts(subflows) => Some(ndiffports::start(&stage.local, subflows)?),
        };
        // The last step: what fails before leaves nothing that `undo` does not know.
        stage.route_first(link, offered.server)?;
        Ok(Offer { ends: offered, socket: Transport::Mptcp, programs: Vec::new(), portals: None })
    }

    fn down(&mut self, stage: &Stage) -> Result<(), LabError> {
        drop(self.helper.take());
        stage.stop_first().and(self.undo.undo())
    }
}

/// Client and server.
const fn ends(stage: &Stage) -> [&Namespace; 2] {
    [&stage.local, &stage.remote]
}

/// Step 2, at the server.
fn announce(stage: &Stage) -> Result<(), LabError> {
    let server = Manager::open(&stage.remote)?;
    let own = |link: &usize| stage.links[*link].far_address != stage.endpoint;
    let mut links = (0..stage.links.len()).filter(own);
    links.try_for_each(|link| server.add(stage.ends_of(link).server, None, manager::SIGNAL))
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
