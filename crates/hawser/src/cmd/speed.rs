//! `hawser speed`: what each link and the bond carry between two portals, and what limits them.
//!
//! 1. The portal is asked for its status: which peer, which links, what may be used of capped ones.
//! 2. Down, then up: a run is ordered, and the status shows what arrives (`run`). Who is interrupted orders nothing
//!    more, and the portals stop by themselves.
//! 3. Rates, round trips and the limit of each direction are printed (`report`).

mod report;
mod run;

use std::path::{Path, PathBuf};

use clap::Args;
use hawser_config::{DEFAULT_SOCKET, amount_arg};
use hawser_portal::api::{Client, LinkStatus, PathState, PeerStatus, SpeedDirection, Status};

use self::report::Report;
use super::output::{print, unanswered};
use super::table::bytes;
use crate::failure::Failure;

/// How long each direction is loaded where nobody says: a path's rate is found in a second or two.
const SECONDS: u64 = 5;
/// What a test of both directions uses at most where nobody says, bytes: ten seconds at 160 Mbit/s.
const BUDGET: u64 = 200_000_000;
/// The same where a link with a `data_cap` takes part.
const BUDGET_CAPPED: u64 = 50_000_000;

/// Load the links to a peer for some seconds, and show what each and the bond carry, and what limits them
#[derive(Debug, Args)]
pub struct Speed {
    /// Load this link alone, whatever its tier
    #[arg(long, value_name = "NAME")]
    link: Option<String>,
    /// The peer, where there are several
    #[arg(long, value_name = "NAME")]
    peer: Option<String>,
    /// How long to load each direction
    #[arg(long, value_name = "N", default_value_t = SECONDS, value_parser = clap::value_parser!(u64).range(2..=30))]
    seconds: u64,
    /// The most data to use, as in 500M; without it 200M, and 50M where a link has a data_cap
    #[arg(long, value_name = "SIZE", value_parser = amount_arg)]
    budget: Option<u64>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// The portal's control socket
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    socket: PathBuf,
}

impl Speed {
    /// The usual test with a peer, without a word meanwhile.
    pub fn with(socket: &Path, peer: &str) -> Self {
        let (link, peer) = (None, Some(peer.to_owned()));
        Self { link, peer, seconds: SECONDS, budget: None, json: true, socket: socket.to_owned() }
    }

    /// Measures, and prints what it found.
    pub fn run(self) -> Result<(), Failure> {
        let report = self.measure()?;
        if self.json {
            let text = serde_json::to_string_pretty(&report).map_err(Failure::failed)?;
            return print(&format!("{text}\n"));
        }
        print(&report::render(&report))
    }

    /// Both directions.
    pub fn measure(&self) -> Result<Report, Failure> {
        let status = Client::status(&self.socket).map_err(|error| unanswered(error, "up", "speed"))?;
        let peer = self.peer_of(&status)?.clone();
        let capped = self.capped(&status, &peer)?;
        let budget = self.budget.unwrap_or(if capped.is_empty() { BUDGET } else { BUDGET_CAPPED });
        if !self.json {
            eprintln!("{}", self.announcement(&peer, budget, &capped));
        }
        let mut report = Report::new(&peer.name, self.link.as_deref(), budget);
        for direction in [SpeedDirection::Down, SpeedDirection::Up] {
            let run = run::Run {
                socket: &self.socket,
                peer: &peer.name,
                link: self.link.as_deref(),
                direction,
                seconds: self.seconds,
                bytes: budget / 2,
                quiet: self.json,
            };
            report.directions.push(run.measure()?);
        }
        Ok(report)
    }

    fn peer_of<'s>(&self, status: &'s Status) -> Result<&'s PeerStatus, Failure> {
        let names: Vec<&str> = status.peers.iter().map(|peer| peer.name.as_str()).collect();
        let peer = match (&self.peer, &status.peers[..]) {
            (None, [only]) => only,
            (None, _) => {
                let hint = format!("name one of them: --peer NAME ({})", names.join(", "));
                return Err(Failure::wrong("measure speed: there are several peers").hint(hint));
            }
            (Some(name), peers) => peers.iter().find(|peer| peer.name == *name).ok_or_else(|| {
                let hint = format!("its peers are: {}", names.join(", "));
                Failure::wrong(format!("measure speed: there is no peer {name}")).hint(hint)
            })?,
        };
        if !peer.paths.iter().any(|path| path.state == PathState::Active) {
            let error = format!("measure speed: no path to {} works", peer.name);
            return Err(Failure::failed(error).hint("sudo hawser doctor names what is wrong"));
        }
        Ok(peer)
    }

    /// The links with a cap that take part; an error where the one that is named does not exist or carries nothing.
    fn capped<'s>(&self, status: &'s Status, peer: &PeerStatus) -> Result<Vec<&'s LinkStatus>, Failure> {
        if let Some(link) = &self.link {
            let known = peer.paths.iter().filter(|path| path.name == *link);
            let states: Vec<PathState> = known.map(|path| path.state).collect();
            if states.is_empty() {
                let names: Vec<&str> = peer.paths.iter().map(|path| path.name.as_str()).collect();
                let hint = format!("its links are: {}", names.join(", "));
                return Err(Failure::wrong(format!("measure speed: no link {link} to {}", peer.name)).hint(hint));
            }
            if !states.contains(&PathState::Active) {
                let error = format!("measure speed: link {link} is {}", states[0]);
                return Err(Failure::failed(error).hint("sudo hawser doctor names what is wrong"));
            }
        }
        let takes_part = |link: &&LinkStatus| self.link.as_ref().is_none_or(|name| *name == link.name);
        Ok(status.links.iter().filter(takes_part).filter(|link| link.data_cap.is_some()).collect())
    }

    /// What will happen, and what it costs.
    fn announcement(&self, peer: &PeerStatus, budget: u64, capped: &[&LinkStatus]) -> String {
        let seconds = 2 * self.seconds;
        let mut text = format!("{} for {seconds} s, {} at most", peer.name, bytes(budget));
        for link in capped {
            let cap = link.data_cap.as_ref().map_or(String::new(), |cap| {
                format!("{} of {} this month", bytes(cap.used_bytes), bytes(cap.cap_bytes))
            });
            text.push_str(&format!("; link {} has used {cap}", link.name));
        }
        text
    }
}
