//! `hawser doctor`: asks everything once, and names what is wrong with what mends it.
//!
//! 1. The configuration and its keys are read, and the portal is asked for its status (`portal`).
//! 2. Each link: its interface, addresses, route and gateway (`links`); where it has no path, what passes by it
//!    (`reach`). Beside all that: whether a NAT forgets a quiet flow (`nat`).
//! 3. What the portal says of peers and paths (`paths`), and what vanishes on narrow ones (`mtu`).
//! 4. Where packets go: routes of others, IPv6, DNS, forwarding and firewalls (`routes`, `dns`, `forwarding`).
//!
//! A fault explains others: of a link with one only the first is named, as its interface is down before it has no
//! route. Nothing is changed. Exit status 1 where there is a fault.

pub mod by_link;
pub mod captive;
mod dns;
mod finding;
mod forwarding;
mod links;
mod mtu;
mod nat;
mod paths;
mod portal;
mod reach;
mod routes;
mod speed;
mod system;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::Args;
use hawser_config::{Config, DEFAULT_FILE};
use hawser_net::netcfg::{NetConfigError, Rtnl};
use hawser_portal::api::Status;

use self::finding::Severity;
pub use self::finding::{Finding, render};
pub use self::forwarding::NO_FORWARDING;
use self::links::OneLink;
use super::output::print;
use crate::failure::Failure;

/// Find what is wrong with this portal, its links and its peers, and what mends it
#[derive(Debug, Args)]
pub struct Doctor {
    /// The configuration
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_FILE)]
    config: PathBuf,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
    /// Measure what each link and the bond carry, too, as `hawser speed` does: it uses data
    #[arg(long)]
    speed: bool,
}

impl Doctor {
    /// Looks, and prints what it found.
    pub fn run(self) -> Result<(), Failure> {
        // An echo request, and the rules of a firewall, are not for others: what they do not see would look like a
        // fault.
        if !rustix::process::geteuid().is_root() {
            return Err(Failure::failed("look for faults: this needs root").hint("sudo hawser doctor"));
        }
        let mut findings = examine(&self.config)?;
        if self.speed {
            findings.extend(speed::measure(&self.config));
        }
        if self.json {
            let text = serde_json::to_string_pretty(&findings).map_err(Failure::failed)?;
            print(&format!("{text}\n"))?;
        } else {
            let sound = findings.iter().all(|found| found.severity == Severity::Info);
            print(&format!("{}{}", if sound { "no fault found\n" } else { "" }, render(&findings)))?;
        }
        match findings.iter().filter(|found| found.severity == Severity::Fault).count() {
            0 => Ok(()),
            faults => {
                Err(Failure::failed(format!("doctor: {faults} {}", if faults == 1 { "fault" } else { "faults" })))
            }
        }
    }
}

/// All that is wrong, faults first.
pub fn examine(file: &Path) -> Result<Vec<Finding>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::failed)?;
    runtime.block_on(async {
        let rtnl = Rtnl::open().map_err(Failure::failed)?;
        let mut findings = Vec::new();
        let Some(config) = portal::configuration(file, &mut findings) else { return Ok(findings) };
        let status = portal::status(&config, &mut findings);
        findings.extend(system::clock(SystemTime::now()));
        let links = links::all(&config, status.as_ref());
        match &status {
            Some(status) => running(&rtnl, &config, status, &links, &mut findings).await,
            // Only a portal that runs has tried; and it sets what lets a host have several uplinks.
            None => links::look(&rtnl, &links, &mut findings).await.map(drop),
        }
        .map_err(Failure::failed)?;
        findings.sort_by_key(|found| found.severity);
        Ok(findings)
    })
}

/// What keeps this host from forwarding for its peers.
pub fn examine_forwarding(config: &Config) -> Result<Vec<Finding>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::failed)?;
    runtime.block_on(async {
        let mut findings = Vec::new();
        let rtnl = Rtnl::open().map_err(Failure::failed)?;
        forwarding::look(&rtnl, config, &mut findings).await.map_err(Failure::failed)?;
        Ok(findings)
    })
}

/// All but the first step, of a portal that runs.
async fn running(
    rtnl: &Rtnl,
    config: &Config,
    status: &Status,
    links: &[OneLink],
    findings: &mut Vec<Finding>,
) -> Result<(), NetConfigError> {
    let quiet = nat::begin(rtnl, links, status).await?;
    let mut silent = links::look(rtnl, links, findings).await?;
    silent.retain(|link| system::takes_answers(link, findings) && !paths::carries(status, link.name.as_str()));
    findings.extend(reach::look(&silent, status));
    let narrow = mtu::look(rtnl, links, status).await?;
    paths::look(status, findings);
    findings.retain(|found| found.id != "small-mtu" || narrow.iter().all(|narrow| narrow.about != found.about));
    findings.extend(narrow);
    if routes::look(rtnl, config, findings).await? {
        dns::look(rtnl, config, status, findings).await?;
    }
    forwarding::look(rtnl, config, findings).await?;
    findings.extend(nat::of_this_host());
    findings.extend(quiet.wait());
    Ok(())
}
