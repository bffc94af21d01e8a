//! `fail = "closed"`, the kill switch: while the tunnel is away nothing leaves past it.
//!
//! ```text
//!                  up, kill-switch on; or recorded, and the configuration cannot be read
//!      open -----------------------------------------------------------------------------> closed
//!        ^                  up or kill-switch on with fail = "open"; kill-switch off; leave     |
//!        +--------------------------------------------------------------------------------------+
//! ```
//! 1. [`follow`] closes before a portal does anything else. What it sets is in a journal of its own and outlives the
//!    portal: its end, a kill, and a start that fails. While one runs, [`restore`] sets again what others delete of it.
//! 2. The [`Record`] says what to close by; [`as_recorded`] does where the configuration cannot be read, and at boot.
//! 3. [`lift`] is the way out.
//!
//! Two things hold it, each of which is enough for most packets:
//!
//! ```text
//!   P    from all lookup main suppress_prefixlength 0    what has a route of its own keeps it: the LAN
//!   P+1  not from all fwmark MARK lookup CLOSED          unreachable, but for the links' own traffic
//!   table inet hawser_hawser0_closed                     drops what leaves by other interfaces, but for that, DHCP, neighbour
//!                                                        discovery and addresses that are no world's (RFC 1918, RFC 4193 …)
//! ```
//! The portal's own rules of the default route stand before P, and go with the portal.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use hawser_config::{Config, DEFAULT_STATE_DIR, Fail, read_text};
use hawser_net::netcfg::{
    Applied, Change, Family, IfIndex, InstanceName, JournalError, MarkMatch, NetConfig, NetConfigError, NftChain,
    NftError, NftName, NftTable, RouteKind, RouteSpec, RulePriority, RuleSpec, TableId, has_ipv6, quoted,
};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use toml::de::DeTable;

use super::own;

/// What the journal's name ends with: longer than any interface's, so that no device's own is called so.
const OUTLIVES: &str = ".outlives-the-portal";
/// What a record's file name ends with.
const RECORD: &str = ".closed.json";
/// The loopback interface has the first number (`LOOPBACK_IFINDEX`, linux/net/flow.h).
const LOOPBACK: u32 = 1;
/// Behind translation of sources nothing would bear its own address; marks are there before.
const HOOK: &str = "type filter hook postrouting priority mangle";
/// What keeps a link alive: DHCP (RFC 2131, RFC 8415), neighbours, routers and listeners (RFC 4861, RFC 3810).
const KEEPS_LINKS: [&str; 3] = [
    "udp sport 68 udp dport 67 accept",
    "udp sport 546 udp dport 547 accept",
    "icmpv6 type { 130-136, 143 } ip6 hoplimit { 1, 255 } accept",
];
/// Addresses that nobody routes in the world: private and shared ones (RFC 1918, 6598, 4193), those of one link (RFC
/// 3927, 4291), and multicast that stays (RFC 5771, 2365). Where they have no route of their own, the first thing
/// holds.
const LAN: [&str; 2] = [
    "ip daddr { 10.0.0.0/8, 100.64.0.0/10, 169.254.0.0/16, 172.16.0.0/12, 192.168.0.0/16, 224.0.0.0/24, 239.255.0.0/16, 255.255.255.255 } accept",
    "ip6 daddr { fc00::/7, fe80::/10, ff01::/16, ff02::/16, ff05::/16 } accept",
];
/// Only root has business with records.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// What there is to close by. Plain data, kept in the state's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The TUN device.
    pub tun: String,
    /// The interfaces of networks behind this host.
    pub served: Vec<String>,
}

/// Why it could not be closed or opened. Owned data only, so it crosses threads.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KillSwitchError {
    /// The system refused.
    #[error("close or open the way past the tunnel")]
    System(#[from] NetConfigError),
    /// What closed it could not all be undone; it is tried again with the next call.
    #[error("open the way past the tunnel: {left} of its changes could not be undone")]
    Left {
        /// How many.
        left: usize,
    },
    /// The record cannot be kept.
    #[error("keep {}", path.display())]
    Record {
        /// Its file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl KillSwitchError {
    /// What to do about it, where something is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::System(NetConfigError::Journal(JournalError::InUse { .. })) => {
                Some("the portal runs, and holds it: end it first (systemctl stop hawser)".to_owned())
            }
            Self::System(error) => error.hint().map(str::to_owned),
            Self::Left { .. } => Some("`nft list ruleset`, `ip rule` and `ip -6 rule` show what is left".to_owned()),
            Self::Record { .. } => Some(
                "[portal] state_dir names a folder that root can write to; units of systemd need ReadWritePaths= for it"
                    .to_owned(),
            ),
        }
    }
}

/// Step 1: as the configuration says, closed or open. Whether it is closed.
///
/// # Errors
/// [`KillSwitchError`] of the first that failed, with all done that could be; what was closed stays so.
pub async fn follow(config: &Config) -> Result<bool, KillSwitchError> {
    let (tun, folder) = (config.tun.name.as_str(), &config.portal.state_dir);
    if config.tun.fail == Fail::Open {
        if is_closed(folder, tun) {
            lift(folder, tun).await?;
        }
        return Ok(false);
    }
    let served = config.gateway.serve.iter().map(ToString::to_string).collect();
    let record = Record { tun: tun.to_owned(), served };
    // The record first: by it what is closed is found to be opened, and closed at the next boot, though the file is
    // faulty then. Where it cannot be written, it is closed all the same.
    let kept = keep(folder, &record);
    let closed = close(&record).await;
    kept.and(closed).map(|()| true)
}

/// Step 1, while a portal runs: the routing that others have deleted is set again. How many changes were gone.
///
/// # Errors
/// [`KillSwitchError`] of the first that could not be.
pub async fn restore(tun: &str) -> Result<usize, KillSwitchError> {
    let mut net = journal(tun)?;
    net.adopt();
    let routing: Vec<Change> = net.applied().filter(|change| !matches!(change, Change::Nft(_))).cloned().collect();
    Ok(set_all(&mut net, routing).await?)
}

/// Step 2: closed by every record in the folder, which are given back.
///
/// # Errors
/// [`KillSwitchError`] of the first that could not be; all are tried.
pub async fn as_recorded(folder: &Path) -> Result<Vec<Record>, KillSwitchError> {
    let records = records(folder);
    let mut closed = Ok(());
    for record in &records {
        closed = closed.and(close(record).await);
    }
    closed.map(|()| records)
}

/// Step 3: what was closed for this TUN device is open, and the record gone. Whether it was closed.
///
/// # Errors
/// [`KillSwitchError`], with everything undone that could be.
pub async fn lift(folder: &Path, tun: &str) -> Result<bool, KillSwitchError> {
    let mut net = journal(tun)?;
    let report = net.recover().await;
    if !report.failed.is_empty() {
        return Err(KillSwitchError::Left { left: report.failed.len() });
    }
    let path = path_of(folder, tun);
    let recorded = match fs::remove_file(&path) {
        Ok(()) => true,
        // A read-only disk refuses to remove also what it has not.
        Err(_) if !path.exists() => false,
        Err(source) => return Err(KillSwitchError::Record { path, source }),
    };
    Ok(recorded || !report.undone.is_empty())
}

/// The state's folder of a configuration that may be faulty: as far as it says so, else the usual one.
pub fn state_dir(file: &Path) -> PathBuf {
    let text = read_text(file).unwrap_or_default();
    let (tree, _) = DeTable::parse_recoverable(&text);
    let portal = tree.get_ref().get("portal").and_then(|portal| portal.get_ref().as_table()?.get("state_dir"));
    let folder = portal.and_then(|folder| folder.get_ref().as_str().map(PathBuf::from));
    let beside = file.parent().unwrap_or(Path::new(""));
    folder.map_or_else(|| DEFAULT_STATE_DIR.into(), |folder| beside.join(folder))
}

/// The records that can be read.
pub fn records(folder: &Path) -> Vec<Record> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_record = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(RECORD));
    let mut records: Vec<Record> = entries.filter(is_record).filter_map(|path| read(&path)).collect();
    records.sort_by(|one, other| one.tun.cmp(&other.tun));
    records
}

fn read(path: &Path) -> Option<Record> {
    serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
}

/// Whether anything says or shows that it is closed.
fn is_closed(folder: &Path, tun: &str) -> bool {
    let journal = instance(tun).map(|name| Path::new(own::JOURNALS).join(name.as_str()));
    path_of(folder, tun).exists() || journal.is_ok_and(|folder| folder.exists())
}

fn path_of(folder: &Path, tun: &str) -> PathBuf {
    folder.join(format!("{}{RECORD}", InstanceName::new(tun).map_or_else(|_| own::plain(tun), |_| tun.to_owned())))
}

/// Written beside, and put in its place at once. What is there already needs no disk that can be written to.
fn keep(folder: &Path, record: &Record) -> Result<(), KillSwitchError> {
    let path = path_of(folder, &record.tun);
    if read(&path).as_ref() == Some(record) {
        return Ok(());
    }
    let write = || {
        fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)?;
        let beside = path.with_extension("new");
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(&beside)?;
        file.write_all(serde_json::to_string(record)?.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, &path)
    };
    write().map_err(|source| KillSwitchError::Record { path: path.clone(), source })
}

fn instance(tun: &str) -> Result<InstanceName, NetConfigError> {
    let name = InstanceName::new(&format!("{tun}{OUTLIVES}"));
    Ok(name.or_else(|_| InstanceName::new(&format!("{}{OUTLIVES}", own::plain(tun))))?)
}

fn journal(tun: &str) -> Result<NetConfig, NetConfigError> {
    NetConfig::new(Path::new(own::JOURNALS), &instance(tun)?)
}

/// nftables first: from then on nothing leaves. What stands already stays as it is; where one half fails the other is
/// set all the same.
async fn close(record: &Record) -> Result<(), KillSwitchError> {
    let mut net = journal(&record.tun)?;
    net.adopt();
    let dropped = match table(record) {
        Ok(table) => net.apply(Change::Nft(table)).await.map(drop),
        Err(error) => Err(error.into()),
    };
    let has_ipv6 = has_ipv6();
    let mut refused = Ok(());
    for family in [Family::V4, Family::V6].into_iter().filter(|family| *family == Family::V4 || has_ipv6) {
        refused = refused.and(refuse(&mut net, &record.tun, family).await);
    }
    Ok(dropped.and(refused)?)
}

/// The routing of an IP version.
async fn refuse(net: &mut NetConfig, tun: &str, family: Family) -> Result<(), NetConfigError> {
    let closed = own::table(&format!("{tun}/closed"));
    let priorities = match place(net, family, closed) {
        Some(priorities) => priorities,
        None => net.rtnl().place_for_rules(family).await?,
    };
    set_all(net, routing(tun, family, closed, priorities)).await.map(drop)
}

/// All are tried; how many were not so already, or the first error.
async fn set_all(net: &mut NetConfig, changes: Vec<Change>) -> Result<usize, NetConfigError> {
    let (mut set, mut done) = (0, Ok(()));
    for change in changes {
        match net.apply(change).await {
            Ok(applied) => set += usize::from(applied == Applied::Set),
            Err(error) => done = done.and(Err(error)),
        }
    }
    done.map(|()| set)
}

/// Where its rules stand already.
fn place(net: &NetConfig, family: Family, closed: TableId) -> Option<[RulePriority; 2]> {
    let rules = || {
        net.applied().filter_map(|change| match change {
            Change::Rule(rule) if rule.family == family => Some(rule),
            _ => None,
        })
    };
    let second = rules().find(|rule| rule.table == closed)?.priority;
    let first = rules().find(|rule| rule.table != closed).map_or(second, |rule| rule.priority);
    Some([first, second])
}

/// The route before the rule that leads to it.
fn routing(tun: &str, family: Family, closed: TableId, [first, second]: [RulePriority; 2]) -> Vec<Change> {
    let everything = match family {
        Family::V4 => IpNet::V4(ipnet::Ipv4Net::default()),
        Family::V6 => IpNet::V6(ipnet::Ipv6Net::default()),
    };
    let loopback = IfIndex::new(LOOPBACK).expect("the constant is not zero");
    let kind = RouteKind::Unreachable;
    let mark = Some(MarkMatch { mark: own::mark(tun), mask: u32::MAX });
    vec![
        Change::Route(RouteSpec { table: Some(closed), kind, ..RouteSpec::to(everything, loopback) }),
        Change::Rule(RuleSpec { suppress_prefix_length: Some(0), ..RuleSpec::at(family, first, TableId::MAIN) }),
        Change::Rule(RuleSpec { mark, invert: true, ..RuleSpec::at(family, second, closed) }),
    ]
}

fn table(record: &Record) -> Result<NftTable, NftError> {
    let tun = quoted(&record.tun)?;
    let served: Result<Vec<String>, NftError> = record.served.iter().map(|name| quoted(name)).collect();
    let inside = ["\"lo\"".to_owned(), tun].into_iter().chain(served?).collect::<Vec<_>>().join(", ");
    let mut rules =
        vec![format!("oifname {{ {inside} }} accept"), format!("meta mark {:#x} accept", own::mark(&record.tun).0)];
    // A rule of the configuration leads these past the tunnel, while a portal carries it out.
    rules.push(format!("meta mark {:#x} accept", own::direct_mark(&record.tun).0));
    rules.extend(KEEPS_LINKS.into_iter().chain(LAN).map(str::to_owned));
    rules.push("counter drop".to_owned());
    let chain = NftChain { name: "past_the_tunnel".to_owned(), hook: Some(HOOK.to_owned()), rules };
    Ok(NftTable { name: NftName::of_kill_switch(&record.tun), sets: Vec::new(), chains: vec![chain] })
}

#[cfg(test)]
mod tests;
