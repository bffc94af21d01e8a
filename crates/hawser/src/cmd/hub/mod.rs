//! `hawser hub`: what a member of a hub is to its peers, how they are asked to go to their other member, and whom all
//! members serve.
//!
//! 1. `status` prints a line for each peer. 2. `drain` asks peers to go, and waits until this member owns none of them.
//! 3. `members`, `peers`, `add` and `revoke` ask the member for what etcd has, and have it written there (`etcd`).

mod etcd;

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use hawser_config::DEFAULT_SOCKET;
use hawser_portal::api::{Client, Deed, HubStatus, PeerStatus, Status};

use self::etcd::{Add, Revoke};
use super::output::{print, unanswered};
use super::table::{Align, aligned, duration};
use crate::failure::Failure;

/// From one look at who is left to the next: the portal's own status is no newer.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A hub's member: whose peers are its own, and moving them to the other member
#[derive(Debug, Args)]
pub struct Hub {
    /// The portal's control socket
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET, global = true)]
    socket: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// What this member is to each of its peers
    Status,
    /// Ask peers to go to their other member, serve them meanwhile, and wait until they went: before an upgrade
    Drain(Drain),
    /// The members that etcd knows, and what each has to do
    Members {
        /// For scripts
        #[arg(long)]
        json: bool,
    },
    /// The peers that etcd has, where each belongs, and who owns it
    Peers {
        /// For scripts
        #[arg(long)]
        json: bool,
    },
    /// Have all members serve a peer: it is written to etcd
    Add(Add),
    /// Have no member serve a peer any more, whoever has its key
    Revoke(Revoke),
}

#[derive(Debug, Args)]
struct Drain {
    /// This peer alone; without, all of them, and those that come until --undo
    peer: Option<String>,
    /// Ask no longer: peers may come again
    #[arg(long)]
    undo: bool,
    /// How long to wait for them, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, conflicts_with = "undo")]
    wait: u64,
}

impl Hub {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Status => print(&render(&member(&self.socket)?)),
            Command::Drain(drain) => drain.run(&self.socket),
            Command::Members { json } => etcd::members(&self.socket, json),
            Command::Peers { json } => etcd::peers(&self.socket, json),
            Command::Add(add) => add.run(&self.socket),
            Command::Revoke(revoke) => revoke.run(&self.socket),
        }
    }
}

/// The status of a portal that is a member.
fn member(socket: &Path) -> Result<Status, Failure> {
    let status = Client::status(socket).map_err(|error| unanswered(error, "up", "hub status"))?;
    let is_member = status.draining || status.etcd.is_some() || status.peers.iter().any(|peer| served(peer).is_some());
    if is_member || status.peers.is_empty() {
        return Ok(status);
    }
    let error = "ask portal for its hub: it is no member of one, or none of its peers has come";
    Err(Failure::failed(error).hint("a member has [hub] in its configuration; what a hub's peer sees: hawser status"))
}

/// What this member is to a peer; none for a member of a hub that this portal is a peer of itself.
fn served(peer: &PeerStatus) -> Option<&HubStatus> {
    peer.hub.as_ref().filter(|hub| !matches!(hub.role.as_str(), "active" | "claiming" | "spare"))
}

/// Step 1.
fn render(status: &Status) -> String {
    let mut text = if status.draining { "draining: all peers are asked to go\n".to_owned() } else { String::new() };
    status.etcd.iter().for_each(|etcd| text.push_str(&etcd::told(etcd)));
    let mut rows = vec![["peer", "role", "epoch", "for", ""].map(str::to_owned)];
    for (peer, hub) in status.peers.iter().filter_map(|peer| Some((peer, served(peer)?))) {
        let asked = if hub.draining && !status.draining { "is asked to go" } else { "" };
        rows.push([
            peer.name.clone(),
            hub.role.clone(),
            hub.epoch.to_string(),
            duration(hub.since_s),
            asked.to_owned(),
        ]);
    }
    if rows.len() == 1 {
        text.push_str("no peers\n");
        return text;
    }
    aligned(&mut text, [Align::Left, Align::Left, Align::Right, Align::Right, Align::Left], &rows);
    text
}

impl Drain {
    /// Step 2.
    fn run(self, socket: &Path) -> Result<(), Failure> {
        let Self { peer, undo, wait } = self;
        Client::order(socket, Deed::Drain { peer: peer.clone(), undo })
            .map_err(|error| unanswered(error, "up", "hub drain"))?;
        if undo {
            return print("peers are asked to go no longer\n");
        }
        let end = Instant::now() + Duration::from_secs(wait);
        // What the portal said before it was asked may be told for so long.
        sleep(2 * LOOK_EVERY);
        loop {
            let status = Client::status(socket).map_err(|error| unanswered(error, "up", "hub drain"))?;
            let left = left(&status, peer.as_deref());
            if left.is_empty() {
                return print("drained: this member owns none of them\n");
            }
            if Instant::now() >= end {
                let error = format!("drain: after {wait} s this member still owns {}", left.join(", "));
                let hint = "a peer goes where its other member answers and does not drain (hawser status there); to \
                            ask no longer: hawser hub drain --undo";
                return Err(Failure::failed(error).hint(hint));
            }
            sleep(LOOK_EVERY);
        }
    }
}

/// Who is still to go.
fn left(status: &Status, only: Option<&str>) -> Vec<String> {
    let asked = status.peers.iter().filter(|peer| only.is_none_or(|only| only == peer.name));
    let owned = asked.filter(|peer| served(peer).is_some_and(|hub| hub.role == "owner"));
    owned.map(|peer| peer.name.clone()).collect()
}
