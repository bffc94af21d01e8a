//! The kernel's Multipath TCP (RFC 8684). Applications' sockets are MPTCP's own; nothing else carries their packets.
//!
//! 1. Limits are raised at both ends, and the options' sysctls set: checksums, SYN retries, scheduler. A connection's
//!    first subflow, and what has no connection (a ping, a call), go by the named link, else by the fastest, whenever
//!    that is up.
//! 2. `fullmesh`: each link's address is an endpoint at the client; one that comes is added and one that goes removed,
//!    as NetworkManager does ([`subflows::follow`]). A server with an address for each link tells the client of all.
//! 3. `default`: neither end tells of an address or opens a subflow, as the out-of-tree implementation's path manager
//!    of this name.
//! 4. `ndiffports`: the userspace path manager opens more subflows between the addresses of the first
//!    ([`subflows::multiply`]).

use hawser_net::netcfg::{self, EndpointFlags, MptcpEndpoint, MptcpLimits, NetConfigError};
use hawser_wire::Namespace;

use super::links::{Choice, has_lan};
use super::undo::Undo;
use super::{Contender, ContenderPlan, Down, LabError, Offer, Options, Programs, Stage, Transport};

mod subflows;

/// The most that the kernel's path manager allows. Source: Linux, MPTCP_PM_ADDR_MAX.
const MOST: u32 = 8;
/// Subflows of `ndiffports` unless told: as the testbed had.
const SUBFLOWS: u32 = 3;
/// The most that tcp_syn_retries takes. Source: kernel documentation, networking/ip-sysctl.
const MOST_SYN_RETRIES: u32 = 127;
/// The path manager is a program, not the kernel. Source: kernel documentation, networking/mptcp-sysctl, pm_type.
const USERSPACE: (&str, &str) = ("mptcp/pm_type", "1");
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
            PathManager::Fullmesh => Some(announce(stage).and_then(|()| subflows::follow(stage))?),
            PathManager::NDiffPorts(count) => Some(subflows::multiply(&stage.local, count)?),
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

fn failed(namespace: &Namespace) -> impl Fn(NetConfigError) -> LabError {
    move |error| LabError::refused(action(namespace), error.to_string())
}

fn action(namespace: &Namespace) -> String {
    format!("set up MPTCP in {}", namespace.name())
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
