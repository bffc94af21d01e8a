//! What etcd has of a hub, asked from a member.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Args;
use hawser_portal::api::{Client, ClientError, Deed, EtcdStatus, HubList, HubMember, HubPeer, NAMESAKE_HINT};
use ipnet::IpNet;
use serde_json::Value;

use crate::cmd::output::{print, shown, unanswered};
use crate::cmd::table::{Align, aligned, duration};
use crate::failure::Failure;

/// Between two tries to write while etcd is away.
const TRY_EVERY: Duration = Duration::from_millis(500);
/// How a portal begins to say why nothing can be written now.
const AWAY: &str = "etcd is not reached";

#[derive(Debug, Args)]
pub(super) struct Add {
    /// What it is called
    name: String,
    /// Its public key
    #[arg(long, value_name = "KEY")]
    key: String,
    /// The networks behind it, separated by commas
    #[arg(long, value_name = "NETWORKS", required = true, value_delimiter = ',')]
    allowed_ips: Vec<IpNet>,
    /// How long to wait for etcd, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    wait: u64,
}

#[derive(Debug, Args)]
pub(super) struct Revoke {
    /// What it is called; with --undo, or its public key
    name: String,
    /// Its public key, where no peer has the name any more
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Take that back: members may serve the key again
    #[arg(long, conflicts_with = "key")]
    undo: bool,
}

/// A line of `hawser hub status`.
pub(super) fn told(etcd: &EtcdStatus) -> String {
    let EtcdStatus { reached, since_s, in_step_age_s, why, unwritten, namesake, serving, members, peers, revoked } =
        etcd;
    let since = duration(*since_s);
    let mut text = if *reached {
        format!("etcd reached for {since}: members {members}, peers {peers}, revoked {revoked}\n")
    } else {
        let known = in_step_age_s.map_or_else(String::new, |age| format!("; what is known is {} old", duration(age)));
        format!("etcd not reached for {since}: {}{known}\n", why.as_deref().unwrap_or_default())
    };
    if let Some(why) = unwritten {
        text += &format!("etcd takes nothing from this member: {why}\n");
    }
    if let Some(namesake) = namesake {
        text += &format!("not among the hub's members in etcd: {namesake}\n  hint: {NAMESAKE_HINT}\n");
    }
    if !serving {
        text += "peers from etcd are not served until it is reached (etcd_strict)\n";
    }
    text
}

pub(super) fn members(socket: &Path, json: bool) -> Result<(), Failure> {
    let list = list(socket, "hub members")?;
    print(&shown(&list.members, json, |members| {
        let mut rows = vec![
            ["member", "endpoints", "weight", "rack", "version", "active", "standby", "Mbit/s"].map(str::to_owned),
        ];
        rows.extend(members.iter().map(|member: &HubMember| {
            let HubMember { name, endpoints, weight, rack, version, active, standby, rate_mbps, .. } = member;
            let numbers = [active, standby].map(ToString::to_string);
            let [active, standby] = numbers;
            let (weight, rack) = (weight.to_string(), rack.to_string());
            let rate = format!("{rate_mbps:.1}");
            [name.clone(), endpoints.join(" "), weight, rack, version.clone(), active, standby, rate]
        }));
        let (left, right) = (Align::Left, Align::Right);
        let mut text = String::new();
        aligned(&mut text, [left, left, right, right, left, right, right, right], &rows);
        text
    })?)
}

pub(super) fn peers(socket: &Path, json: bool) -> Result<(), Failure> {
    let list = list(socket, "hub peers")?;
    print(&shown(&list, json, |list| {
        let mut rows = vec![["peer", "networks", "active", "standby", "owner", "epoch", ""].map(str::to_owned)];
        rows.extend(list.peers.iter().map(|peer| {
            let HubPeer { name, allowed_ips, active, standby, owner, epoch, refused, .. } = peer;
            let or_none = |name: &Option<String>| name.clone().unwrap_or_else(|| "-".to_owned());
            let why = refused.as_ref().map_or_else(String::new, |why| format!("not served: {why}"));
            let [active, standby, owner] = [active, standby, owner].map(or_none);
            [name.clone(), allowed_ips.join(" "), active, standby, owner, epoch.to_string(), why]
        }));
        let mut text = String::new();
        let left = Align::Left;
        aligned(&mut text, [left, left, left, left, left, Align::Right, left], &rows);
        list.revoked.iter().for_each(|gone| text += &format!("revoked: {} {}\n", gone.name, gone.public_key));
        list.faults.iter().for_each(|fault| text += &format!("cannot be read: {fault}\n"));
        text
    })?)
}

fn list(socket: &Path, command: &str) -> Result<HubList, Failure> {
    let told = Client::order(socket, Deed::HubList).map_err(|error| refused(error, "list", command))?;
    serde_json::from_value(told.unwrap_or(Value::Null)).map_err(|error| Failure::failed(format!("list: {error}")))
}

/// Why not, with what mends it.
fn refused(error: ClientError, what: &str, command: &str) -> Failure {
    let ClientError::Refused { reason, .. } = error else { return unanswered(error, "up", command) };
    let hint = if reason.starts_with(AWAY) {
        "members serve their peers meanwhile; what is asked of etcd waits until it answers: hawser hub status"
    } else if reason.contains("no `etcd`") {
        "add to [hub]: etcd = [\"https://…:2379\"] and name (docs/hub.md, \"etcd\"); peers of files: hawser peer list"
    } else if reason.starts_with("several keys") {
        "name the key: hawser hub revoke --undo KEY"
    } else if reason.contains("permission denied") {
        "the role of the member's user needs to read and write the prefix (docs/hub.md, \"etcd\")"
    } else {
        "what there is: hawser hub peers"
    };
    Failure::failed(format!("{what}: {reason}")).hint(hint)
}

impl Add {
    /// Waits for etcd, and says why.
    pub(super) fn run(self, socket: &Path) -> Result<(), Failure> {
        let Self { name, key, allowed_ips, wait } = self;
        let (end, mut waits) = (Instant::now() + Duration::from_secs(wait), false);
        loop {
            let (public_key, allowed_ips) = (key.clone(), allowed_ips.clone());
            let deed = Deed::HubAdd { name: name.clone(), public_key, allowed_ips };
            let error = match Client::order(socket, deed) {
                Ok(_) => return print(&format!("added: all members serve {name}\n")),
                Err(error) => error,
            };
            let away = match &error {
                ClientError::Refused { reason, .. } if reason.starts_with(AWAY) => Some(reason),
                _ => None,
            };
            let Some(reason) = away.filter(|_| Instant::now() < end) else {
                return Err(refused(error, &format!("add peer {name}"), "hub add"));
            };
            if !std::mem::replace(&mut waits, true) {
                eprintln!("waiting for up to {wait} s: {reason}");
            }
            sleep(TRY_EVERY);
        }
    }
}

impl Revoke {
    /// Done here at once, whatever etcd says.
    pub(super) fn run(self, socket: &Path) -> Result<(), Failure> {
        let Self { name, key: public_key, undo } = self;
        let what = if undo { format!("take back revocation of {name}") } else { format!("revoke peer {name}") };
        let told = Client::order(socket, Deed::HubRevoke { name: name.clone(), public_key, undo })
            .map_err(|error| refused(error, &what, "hub revoke"))?;
        let told = told.unwrap_or(Value::Null);
        if undo {
            return taken_back(&told);
        }
        if told["written"] == Value::Bool(true) {
            return print(&format!("revoked: no member serves {name} any more\n"));
        }
        let why = told["why"].as_str().unwrap_or_default();
        let error = format!("{what}: done at this member, and not in etcd yet: {why}");
        let Some(unkept) = told["unkept"].as_str() else {
            let hint = "this member tells etcd as soon as that answers; until then run it at each member";
            return Err(Failure::failed(error).hint(hint));
        };
        let hint = "a restart of this member forgets it: make room in state_dir, and run it again";
        Err(Failure::failed(format!("{error}; nor on its disk: {unkept}")).hint(hint))
    }
}

/// What it brings, and what it does not.
fn taken_back(told: &Value) -> Result<(), Failure> {
    let word = |name: &str| told[name].as_str().unwrap_or_default().to_owned();
    let (name, key) = (word("name"), word("public_key"));
    print(&format!("taken back: members may serve {name} again, by the key {key}\n"))?;
    eprintln!("hint: etcd has forgotten its networks: hawser hub add {name} --key {key} --allowed-ips NETWORKS");
    Ok(())
}
