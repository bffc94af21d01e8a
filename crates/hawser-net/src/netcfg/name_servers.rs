//! Name servers of a device, set with whoever keeps the system's: systemd-resolved, or resolvconf (Debian's or
//! openresolv).
//!
//! 1. [`Resolver::here`] says who that is. 2. [`NameServers::new`] refuses what that one cannot do.
//! 3. [`set`] gives it servers and domains of the device, in the place of those before.
//! 4. [`unset`] takes them away. systemd-resolved forgets a device that goes; an entry of resolvconf stays until then.

use std::{
    fmt, fs, io,
    net::IpAddr,
    os::unix::net::UnixStream,
    path::Path,
    time::{Duration, Instant},
};

use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};

use super::program::{self, Lent, PATIENCE, ProgramError, first_line};
use super::resolv_conf::RESOLV_CONF;
use super::types::IfIndex;

/// It answers there while it runs (systemd-resolved.service(8), io.systemd.Resolve).
const RESOLVED: &str = "/run/systemd/resolve/io.systemd.Resolve";
/// The programs.
const RESOLVECTL: &str = "resolvectl";
const RESOLVCONF: &str = "resolvconf";
/// Where the file is that libc reads.
const ETC: &str = "/etc";
/// Before the device's name in an entry of resolvconf: Debian's asks the servers of `tun*` first (interface-order(5)).
const ENTRY: &str = "tun.";
/// Every name there is, as a routing domain (resolvectl(1)).
pub const EVERY_NAME: &str = "~.";
/// systemd-resolved hears of a new device by netlink, in its own time: until then it does not know it.
const KNOWN_WITHIN: Duration = Duration::from_secs(3);
const KNOWN_GLANCE: Duration = Duration::from_millis(50);

/// Who keeps the system's name servers. There is no default. Plain value, freely shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolver {
    /// systemd-resolved, asked by `resolvectl`.
    Resolved,
    /// The program `resolvconf`.
    Resolvconf,
}

/// Name servers of a device, and the names that are asked for there.
/// There is no default; [`NameServers::new`] makes one. Plain data, journalled as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NameServers {
    /// The device.
    pub interface: IfIndex,
    /// Its name, by which resolvconf knows it also once it is gone.
    pub device: String,
    /// The servers, the preferred one first.
    pub servers: Vec<IpAddr>,
    /// Domains in the words of resolvectl(1): `~.` is every name, `~example.org` those below, `example.org` is
    /// searched, too.
    pub domains: Vec<String>,
    /// With whom they are set.
    pub by: Resolver,
}

impl Resolver {
    /// Step 1.
    ///
    /// # Errors
    /// [`NameServersError::Nobody`] where there is none.
    pub fn here() -> Result<Self, NameServersError> {
        if resolved_runs() && program::find(RESOLVECTL).is_some() {
            return Ok(Self::Resolved);
        }
        // It may be another name of resolvectl(1), which needs systemd-resolved.
        let other_name = |path: &Path| fs::canonicalize(path).is_ok_and(|real| real.ends_with(RESOLVECTL));
        match program::find(RESOLVCONF) {
            Some(path) if !other_name(&path) => Ok(Self::Resolvconf),
            _ => Err(NameServersError::Nobody),
        }
    }
}

impl fmt::Display for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resolved => "systemd-resolved",
            Self::Resolvconf => RESOLVCONF,
        })
    }
}

impl NameServers {
    /// Step 2: without domains every name is asked for there.
    ///
    /// # Errors
    /// [`NameServersError::SomeNames`] where resolvconf is to ask for some names alone.
    pub fn new(
        (interface, device): (IfIndex, &str),
        servers: Vec<IpAddr>,
        mut domains: Vec<String>,
        by: Resolver,
    ) -> Result<Self, NameServersError> {
        if domains.is_empty() {
            domains.push(EVERY_NAME.to_owned());
        }
        let new = Self { interface, device: device.to_owned(), servers, domains, by };
        match by {
            Resolver::Resolvconf if !new.are_for_every_name() => Err(NameServersError::SomeNames),
            _ => Ok(new),
        }
    }

    /// Whether every name is asked for there, rather than those of some domains.
    pub fn are_for_every_name(&self) -> bool {
        self.domains.iter().any(|domain| domain == EVERY_NAME)
    }

    fn entry(&self) -> String {
        format!("{ENTRY}{}", self.device)
    }

    /// What resolvconf reads: lines of resolv.conf(5).
    fn lines(&self) -> String {
        let servers = self.servers.iter().map(|server| format!("nameserver {server}\n"));
        let searched: Vec<&str> =
            self.domains.iter().map(String::as_str).filter(|domain| !domain.starts_with('~')).collect();
        let search = (!searched.is_empty()).then(|| format!("search {}\n", searched.join(" ")));
        servers.chain(search).collect()
    }
}

impl fmt::Display for NameServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers: Vec<String> = self.servers.iter().map(ToString::to_string).collect();
        write!(f, "name servers {} of {}, by {}", servers.join(", "), self.device, self.by)
    }
}

/// Step 3.
pub(super) async fn set(new: &NameServers) -> Result<(), NameServersError> {
    let done = match new.by {
        Resolver::Resolved => tell_resolved(new).await,
        Resolver::Resolvconf => {
            writable()?;
            // openresolv asks nobody else than an exclusive entry; Debian's takes no notice of words behind the name.
            run(RESOLVCONF, &["-a", &new.entry(), "-m", "0", "-x"], &new.lines()).await
        }
    };
    if done.is_err() {
        // Half of it may be set, and stand in no journal; that it could not be is the error to tell.
        let _ = unset(new).await;
    }
    done
}

/// Step 4. False where nobody is there any more who has them.
pub(super) async fn unset(old: &NameServers) -> Result<bool, NameServersError> {
    match old.by {
        Resolver::Resolved if !resolved_runs() => return Ok(false),
        Resolver::Resolved => run(RESOLVECTL, &["revert", &old.interface.to_string()], "").await?,
        // By `-f` an entry that is gone is no fault of openresolv's; it is none of Debian's.
        Resolver::Resolvconf => run(RESOLVCONF, &["-d", &old.entry(), "-f"], "").await?,
    }
    Ok(true)
}

fn resolved_runs() -> bool {
    UnixStream::connect(RESOLVED).is_ok()
}

async fn tell_resolved(new: &NameServers) -> Result<(), NameServersError> {
    let interface = new.interface.to_string();
    let servers: Vec<String> = new.servers.iter().map(ToString::to_string).collect();
    let words = |first: &str, rest: &[String]| {
        [first.to_owned(), interface.clone()].into_iter().chain(rest.iter().cloned()).collect::<Vec<String>>()
    };
    let every = if new.are_for_every_name() { "yes" } else { "no" };
    let calls = [words("dns", &servers), words("domain", &new.domains), words("default-route", &[every.to_owned()])];
    let end = Instant::now() + KNOWN_WITHIN;
    for call in calls {
        let call: Vec<&str> = call.iter().map(String::as_str).collect();
        while let Err(error) = run(RESOLVECTL, &call, "").await {
            if !error.is_not_known_yet() || Instant::now() > end {
                return Err(error);
            }
            tokio::time::sleep(KNOWN_GLANCE).await;
        }
    }
    Ok(())
}

/// openresolv writes over resolv.conf and keeps a copy beside it. Where it cannot, it says nothing of it, or leaves a
/// file without servers at the end. Debian's has a link there.
fn writable() -> Result<(), NameServersError> {
    let path = Path::new(RESOLV_CONF);
    let is_link = path.symlink_metadata().is_ok_and(|file| file.is_symlink());
    let may = |path: &Path| !path.exists() || access(path, Access::WRITE_OK).is_ok();
    if is_link || (may(path) && may(Path::new(ETC))) { Ok(()) } else { Err(NameServersError::ReadOnly) }
}

async fn run(name: &'static str, arguments: &[&str], input: &str) -> Result<(), NameServersError> {
    // systemd-resolved asks who is not root for CAP_NET_ADMIN; resolvconf runs scripts of others.
    let lent = if name == RESOLVECTL { Lent::NetAdmin } else { Lent::Nothing };
    let output = program::run(name, arguments, input, lent).await.map_err(|error| match error {
        ProgramError::Missing => NameServersError::Nobody,
        ProgramError::NotRun(source) => NameServersError::NotRun { program: name, source },
        ProgramError::Silent => NameServersError::Silent { program: name },
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = first_line(&String::from_utf8_lossy(&output.stderr)).to_owned();
    Err(NameServersError::Refused { program: name, said })
}

/// Why name servers could not be set or taken away.
/// There is no default. Owned data only, so it crosses threads.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NameServersError {
    /// Nobody keeps the system's name servers.
    #[error("set name servers: systemd-resolved does not run, and there is no program resolvconf")]
    Nobody,
    /// resolvconf asks for all names wherever it asks.
    #[error("set name servers: resolvconf cannot have some names alone asked for there, as `dns_domains` says")]
    SomeNames,
    /// The file is not for this process to change.
    #[error("set name servers: {RESOLV_CONF} cannot be written, or no file beside it")]
    ReadOnly,
    /// The program could not be run.
    #[error("run {program}: {source}")]
    NotRun {
        /// Which.
        program: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The program did not end.
    #[error("run {program}: no answer within {} s", PATIENCE.as_secs())]
    Silent {
        /// Which.
        program: &'static str,
    },
    /// The program refused.
    #[error("run {program}: {said}")]
    Refused {
        /// Which.
        program: &'static str,
        /// The first line that it said.
        said: String,
    },
}

impl NameServersError {
    /// True while systemd-resolved has not heard of a device that was made a moment ago.
    fn is_not_known_yet(&self) -> bool {
        matches!(self, Self::Refused { said, .. } if said.contains("not known"))
    }

    /// What a user can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Nobody => Some(
                "install one of them; on Debian: apt-get install systemd-resolved, or resolvconf; or leave `dns` out of [tun]",
            ),
            Self::SomeNames => Some("add \"~.\" to `dns_domains`, which is every name; or run systemd-resolved"),
            Self::ReadOnly => Some(
                "for openresolv under systemd: systemctl edit hawser, with [Service] ReadWritePaths=/etc; for Debian's resolvconf: \
                 ln -sf /run/resolvconf/resolv.conf /etc/resolv.conf",
            ),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_servers(domains: &[&str], by: Resolver) -> Result<NameServers, NameServersError> {
        let servers = ["10.77.0.1", "fd77::1"].map(|server| server.parse().expect("an address")).into();
        let domains = domains.iter().map(|domain| (*domain).to_owned()).collect();
        NameServers::new((IfIndex::new(5).expect("not zero"), "hawser0"), servers, domains, by)
    }

    #[test]
    fn resolvconf_reads_servers_in_order_and_what_is_searched() {
        for (domains, search) in
            [(&[][..], ""), (&["~."], ""), (&["a.test", "~.", "~b.test", "c.test"], "search a.test c.test\n")]
        {
            let lines = name_servers(domains, Resolver::Resolvconf).expect("it can be set").lines();
            assert_eq!(lines, format!("nameserver 10.77.0.1\nnameserver fd77::1\n{search}"), "{domains:?}");
        }
    }

    #[test]
    fn only_systemd_resolved_has_some_names_asked_for_elsewhere() {
        let some = ["a.test", "~b.test"];
        let error = name_servers(&some, Resolver::Resolvconf).unwrap_err();
        assert!(error.hint().is_some_and(|hint| hint.contains("~.")), "{error}");
        assert!(!name_servers(&some, Resolver::Resolved).expect("it can be set").are_for_every_name());
        assert!(name_servers(&[], Resolver::Resolved).expect("it can be set").are_for_every_name());
    }

    #[test]
    fn a_device_that_resolved_has_not_heard_of_is_asked_for_again() {
        let said = |said: &str| NameServersError::Refused { program: RESOLVECTL, said: said.into() };
        assert!(said("Failed to set DNS configuration: Link 5 not known").is_not_known_yet());
        assert!(!said("Failed to set DNS configuration: Access denied").is_not_known_yet());
        assert!(NameServersError::Nobody.hint().is_some_and(|hint| hint.contains("apt-get install systemd-resolved")));
    }
}
