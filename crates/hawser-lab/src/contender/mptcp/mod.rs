//! The kernel's Multipath TCP (RFC 8684). Applications' sockets are MPTCP's own; nothing else carries their packets.
//!
//! 1. Limits are raised at both ends, and the options' sysctls set: checksums, SYN retries, scheduler. A connection's
//!    first subflow, and what has no connection (a ping, a call), go by the named link, else by the fastest.
//! 2. `fullmesh`: each link's address is an endpoint at the client; one that comes is added and one that goes removed,
//!    as NetworkManager does ([`follow`]). A server with an address for each link tells the client of all.
//! 3. `default`: neither end tells of an address or opens a subflow, as the out-of-tree implementation's path manager
//!    of this name.
//! 4. `ndiffports`: the userspace path manager opens more subflows between the addresses of the first ([`ndiffports`]).

use hawser_wire::Namespace;
use rustix::io::Errno;

use self::manager::{Limits, Manager};
use super::links::{choose, has_lan};
use super::undo::Undo;
use super::{Contender, Offer, Programs, Transport};
use crate::background::Background;
use crate::error::LabError;
use crate::options::Options;
use crate::scenario::ContenderPlan;
use crate::stage::Stage;

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
#[derive(Debug)]
struct Mptcp {
    label: String,
    link: Option<String>,
    path_manager: PathManager,
    /// Sysctls of both ends, and their values.
    sysctls: Vec<(&'static str, String)>,
    running: Option<Running>,
}

/// What `up` left, in the order in which it goes.
#[derive(Debug)]
struct Running {
    /// The thread that acts while connections live.
    _helper: Option<Background<()>>,
    managers: Vec<(Manager, Limits)>,
    undo: Undo,
}

pub(super) fn make(plan: &ContenderPlan, _: &Programs) -> Result<Box<dyn Contender>, LabError> {
    let mut options = Options::of_contender(plan);
    let link = options.string("link")?;
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
    Ok(Box::new(Mptcp { label: plan.label.clone(), link, path_manager, sysctls, running: None }))
}

impl Contender for Mptcp {
    fn up(&mut self, stage: &Stage) -> Result<Offer, LabError> {
        if has_lan(stage) {
            let what = "an address for each link at client and server (hosts behind a portal have one)".to_owned();
            return Err(LabError::Missing { what, hint: "compare mptcp in a network without `lan`".to_owned() });
        }
        let link = choose(stage, self.link.as_deref(), &self.label)?;
        let (mut undo, offered) = (Undo::default(), stage.ends_of(link));
        undo.ip_add(&stage.local, &stage.first_route(link, offered.server))?;
        for (end, (key, value)) in
            ends(stage).into_iter().flat_map(|end| self.sysctls.iter().map(move |set| (end, set)))
        {
            must_exist(end, key, value)?;
            undo.sysctl(end, key, value)?;
        }
        if matches!(self.path_manager, PathManager::NDiffPorts(_)) {
            undo.sysctl(&stage.local, PM_TYPE, USERSPACE)?;
        }
        let mut managers = Vec::new();
        for end in ends(stage) {
            let manager = Manager::open(end)?;
            let before = manager.limits()?;
            manager.set_limits(Limits { subflows: MOST, accepted: MOST })?;
            managers.push((manager, before));
        }
        let helper = match self.path_manager {
            PathManager::Default => None,
            PathManager::Fullmesh => {
                announce(stage, &managers[1].0)?;
                Some(follow::start(stage)?)
            }
            PathManager::NDiffPorts(subflows) => Some(ndiffports::start(&stage.local, subflows)?),
        };
        self.running = Some(Running { _helper: helper, managers, undo });
        Ok(Offer { ends: offered, socket: Transport::Mptcp, programs: Vec::new(), portals: None })
    }

    fn down(&mut self, _: &Stage) -> Result<(), LabError> {
        let Some(Running { _helper: helper, managers, mut undo }) = self.running.take() else { return Ok(()) };
        drop(helper);
        for (manager, before) in managers {
            manager.flush()?;
            manager.set_limits(before)?;
        }
        undo.undo()
    }
}

/// Client and server.
const fn ends(stage: &Stage) -> [&Namespace; 2] {
    [&stage.local, &stage.remote]
}

/// Step 2, at the server.
fn announce(stage: &Stage, server: &Manager) -> Result<(), LabError> {
    let own = |link: &usize| stage.links[*link].far_address != stage.endpoint;
    let mut links = (0..stage.links.len()).filter(own);
    links.try_for_each(|link| server.add(stage.ends_of(link).server, None, manager::SIGNAL))
}

/// What the kernel lacks is named; what it refuses for another reason is an error of the one who sets it.
fn must_exist(end: &Namespace, key: &str, value: &str) -> Result<(), LabError> {
    if end.sysctl(key).is_err() {
        let hint = "Linux 5.19 or later with CONFIG_MPTCP".to_owned();
        return Err(LabError::Missing { what: format!("the kernel's sysctl net/{key}"), hint });
    }
    if key == "mptcp/scheduler" {
        let available = end.sysctl("mptcp/available_schedulers")?;
        if !available.split_whitespace().any(|one| one == value) {
            let hint = format!("this kernel has: {available}");
            return Err(LabError::Missing { what: format!("the kernel's MPTCP scheduler {value}"), hint });
        }
    }
    Ok(())
}

/// A failed request to the kernel's path manager.
fn refused(action: impl Into<String>, error: Errno) -> LabError {
    LabError::system(action, error)
}
