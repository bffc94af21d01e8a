//! `hawser scion paths`: the paths to an AS, and which of them are best.
//!
//! 1. The daemon is asked. 2. Paths that the policy does not admit are left out. 3. With `--probe` each is tried.
//! 4. The best are marked. 5. The list is printed, in the order of `scion showpaths`.

use std::collections::BTreeMap;

use clap::Args;
use hawser_scion::daemon::{AsInfo, DaemonAddr, DaemonClient, Lookup, Refresh};
use hawser_scion::probe::{Outcome, Prober};
use hawser_scion::select::{AclEntry, Criterion, Health, HealthTable, Loss, Sequence, choose, listed};
use hawser_scion::{Fingerprint, IsdAs};

use super::super::output::print;
use super::ask::{no_address, policy, told};
use crate::failure::Failure;
use list::{List, Row};

mod json;
mod list;

/// List the paths to an AS, and which of them are best
#[derive(Debug, Args)]
pub struct Paths {
    /// The AS, such as 1-ff00:0:110
    #[arg(value_name = "DST", value_parser = one_as)]
    destination: IsdAs,
    /// The SCION daemon [default: $SCION_DAEMON, or 127.0.0.1:30255]
    #[arg(long, value_name = "ADDR")]
    daemon: Option<DaemonAddr>,
    /// What makes paths the best: mtu, length, latency, bandwidth, sharability, or health (with --probe)
    #[arg(long, value_name = "WHAT", default_value_t)]
    select: Criterion,
    /// Choose this many
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    count: u16,
    /// Only paths with these hops, such as "0* 1-ff00:0:110 0*"
    #[arg(long, value_name = "HOPS")]
    sequence: Option<Sequence>,
    /// Only paths that an access list allows: its entries in order, such as --acl "- 1-ff00:0:110#2" --acl +
    #[arg(long, value_name = "ENTRY", allow_hyphen_values = true)]
    acl: Vec<AclEntry>,
    /// Have the daemon ask its control service anew
    #[arg(long)]
    refresh: bool,
    /// Try each path: ask the last router on it, and wait 2 s for answers
    #[arg(long)]
    probe: bool,
    /// Print JSON, with the names that `scion showpaths --format json` has
    #[arg(long)]
    json: bool,
}

/// What the daemon said. Plain data.
struct Told {
    local: AsInfo,
    lookup: Lookup,
    prober: Option<Prober>,
}

impl Paths {
    /// Does what it was told.
    pub fn run(self) -> Result<(), Failure> {
        let policy = policy(&self.acl, self.sequence.as_ref())?;
        if self.select == Criterion::Health && !self.probe {
            return Err(Failure::wrong("choose by health: nothing is measured without --probe").hint("add --probe"));
        }
        let Told { local, lookup, prober } = self.ask()?;
        for left_out in &lookup.malformed {
            eprintln!("warning: {left_out} left out: {}", left_out.fault);
        }
        let found = lookup.paths.len();
        let mut paths = lookup.paths;
        if local.isd_as != self.destination {
            paths.retain(|path| policy.admits(path));
        }
        let outcomes = prober.map(|prober| prober.probe(&paths)).transpose().map_err(Failure::failed)?;
        let health = outcomes.as_ref().map(health).unwrap_or_default();
        let chosen = choose(&paths, self.select, self.count.into(), &health);
        let row = |index: usize| Row {
            path: &paths[index],
            chosen: chosen.contains(&index),
            outcome: outcomes.as_ref().and_then(|outcomes| outcomes.get(&paths[index].interfaces)),
        };
        let rows: Vec<Row<'_>> = listed(&paths).into_iter().map(row).collect();
        let list = List { local: local.isd_as, destination: self.destination, select: self.select, rows };
        if self.json {
            print(&json::of(&list)?)?;
        } else if !list.rows.is_empty() {
            print(&list.to_string())?;
        }
        if list.rows.is_empty() { Err(self.none_left(found)) } else { Ok(()) }
    }

    /// Step 1.
    fn ask(&self) -> Result<Told, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::failed(format!("start to ask the daemon: {error}")))?;
        let refresh = if self.refresh { Refresh::Yes } else { Refresh::No };
        runtime.block_on(async {
            let address = self.daemon.clone().map_or_else(DaemonAddr::from_environment, Ok).map_err(no_address)?;
            let client = DaemonClient::new(address).map_err(no_address)?;
            let local = client.local_as().await.map_err(told)?;
            let lookup = client.paths(self.destination, refresh).await.map_err(told)?;
            let prober = match self.probe {
                true => Some(Prober::new(local.isd_as, client.port_range().await.map_err(told)?)),
                false => None,
            };
            Ok(Told { local, lookup, prober })
        })
    }

    fn none_left(&self, found: usize) -> Failure {
        let failure = Failure::failed(format!("find a path to {}: there is none", self.destination));
        match found {
            0 => failure.hint("beacons may not have come this far yet; ask again with --refresh"),
            _ => failure.hint(format!("the daemon knows {found}: --sequence and --acl leave them all out")),
        }
    }
}

/// What probes tell of paths.
fn health(outcomes: &BTreeMap<Fingerprint, Outcome>) -> HealthTable {
    let health = |outcome: &Outcome| match outcome {
        Outcome::Alive { round_trip } => {
            Health { loss: Some(Loss(0)), round_trip: Some(*round_trip), ..Health::default() }
        }
        _ => Health { since_failure: Some(std::time::Duration::ZERO), ..Health::default() },
    };
    outcomes.iter().map(|(path, outcome)| (path.clone(), health(outcome))).collect()
}

fn one_as(text: &str) -> Result<IsdAs, String> {
    let isd_as: IsdAs = text.parse().map_err(|error: hawser_scion::addr::AddrError| error.to_string())?;
    if isd_as.is_wildcard() { Err(format!("{isd_as} is not one AS")) } else { Ok(isd_as) }
}
