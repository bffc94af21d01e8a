//! `hawser peer`: who may call this portal. Files in `peers.d` and `tokens.d`, written and read by the running portal
//! at once.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use hawser_config::{DEFAULT_FILE, PeerName, PublicKey};
use hawser_portal::api::{Client, ClientError, Status};
use hawser_portal::keys;
use hawser_portal::pairing::{self, add_peer, peer_file, remove_file, write_private};
use ipnet::IpNet;

use super::output::print;
use super::pairing::home::{Home, now};
use super::pairing::invite::{TokenOptions, invite, withdraw};
use super::table::{Align, aligned, duration};
use crate::failure::Failure;

/// Peers of this portal, and tokens for new ones
#[derive(Debug, Args)]
pub struct Peer {
    /// The configuration
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_FILE, global = true)]
    config: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List peers, and the tokens that may still be used
    List,
    /// Print a token for a new peer; or add one whose key is known
    Add(Add),
    /// Remove a peer, or take its token back
    Remove {
        /// Its name
        name: String,
    },
    /// Give a peer another name
    Rename {
        /// Its name
        old: String,
        /// Its name from now on
        new: String,
    },
}

#[derive(Debug, Args)]
struct Add {
    /// What it is called here
    name: String,
    /// Its public key, where it is to have no token
    #[arg(long, value_name = "KEY", requires = "allowed_ips")]
    key: Option<String>,
    /// With --key: a network that is its own; may be repeated
    #[arg(long = "allowed-ip", value_name = "NETWORK", requires = "key")]
    allowed_ips: Vec<IpNet>,
    #[command(flatten)]
    token: TokenOptions,
}

impl Peer {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let home = Home::of(&self.config);
        match self.command {
            Command::List => list(&home),
            Command::Add(Add { name, key: Some(key), allowed_ips, .. }) => add(&home, &name, &key, &allowed_ips),
            Command::Add(Add { name, token, .. }) => invite(&home, &name, &token),
            Command::Remove { name } => remove(&home, &name),
            Command::Rename { old, new } => rename(&home, &old, &new),
        }
    }
}

fn parse_name(name: &str) -> Result<PeerName, Failure> {
    PeerName::parse(name).map_err(|error| Failure::wrong(format!("name the peer {name:?}: {error}")))
}

fn list(home: &Home) -> Result<(), Failure> {
    let (config, keys) = keys::load(&home.config)?;
    let status = Client::status(&config.portal.socket).ok();
    let networks = |nets: &[IpNet]| nets.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let mut rows = vec![["NAME", "KEY", "NETWORKS", "STATE"].map(str::to_owned)];
    for peer in &config.peers {
        let state = state(status.as_ref(), peer.name.as_str());
        rows.push([peer.name.to_string(), peer.public_key.to_string(), networks(&peer.networks()), state]);
    }
    for token in &keys.invitations.list {
        let left = duration(f64::from(token.expires.saturating_sub(now())));
        rows.push([
            token.name.to_string(),
            "-".to_owned(),
            networks(&token.allowed_ips),
            format!("token, {left} left"),
        ]);
    }
    let mut text = String::new();
    aligned(&mut text, [Align::Left; 4], &rows);
    print(&text)
}

/// As the running portal says.
fn state(status: Option<&Status>, name: &str) -> String {
    let Some(status) = status else { return "portal does not run".to_owned() };
    match status.peers.iter().find(|peer| peer.name == name) {
        None => "not read yet".to_owned(),
        Some(peer) => match peer.handshake_age_s {
            None => "no session".to_owned(),
            Some(age) => format!("session, keys {} old", duration(Duration::from_secs_f64(age.max(0.0)).as_secs_f64())),
        },
    }
}

fn add(home: &Home, name: &str, key: &str, allowed_ips: &[IpNet]) -> Result<(), Failure> {
    let name = parse_name(name)?;
    let key = PublicKey::parse(key).map_err(|error| Failure::wrong(format!("read key: {error}")))?;
    let (config, keys) = keys::load(&home.config)?;
    if config.peers.iter().any(|peer| peer.name == name || peer.public_key == key) {
        return Err(Failure::wrong(format!("add peer \"{name}\": the name or the key is a peer's already")));
    }
    let promised = keys.invitations.list.iter().find(|token| shares(&token.allowed_ips, allowed_ips));
    if let Some(token) = promised {
        let failure = Failure::wrong(format!("add peer \"{name}\": a network is promised to \"{}\"", token.name));
        return Err(
            failure.hint(format!("take its token back: {}", home.command(&format!("peer remove {}", token.name))))
        );
    }
    let wrote = add_peer(&home.folder, &name, &key, allowed_ips).map_err(Failure::failed)?;
    check_or(home, || if wrote { remove_file(&peer_file(&home.folder, &name)).map(drop) } else { Ok(()) })?;
    reload(home)
}

fn shares(some: &[IpNet], others: &[IpNet]) -> bool {
    some.iter().any(|net| others.contains(net))
}

/// What was written is taken back where the configuration is not right with it.
fn check_or(home: &Home, undo: impl FnOnce() -> Result<(), pairing::FileError>) -> Result<(), Failure> {
    match hawser_config::read(&home.config) {
        Ok(_) => Ok(()),
        Err(error) => {
            undo().map_err(Failure::failed)?;
            Err(error.into())
        }
    }
}

fn remove(home: &Home, name: &str) -> Result<(), Failure> {
    let name = parse_name(name)?;
    // First: nobody is to enrol by it, whatever else is wrong.
    let had_token = withdraw(home, &name)?;
    let file = peer_file(&home.folder, &name);
    let text = std::fs::read_to_string(&file).ok();
    if let Some(text) = &text {
        name_line(text, &name).ok_or_else(|| {
            let failure = Failure::wrong(format!("remove peer \"{name}\": {} was edited", file.display()));
            failure.hint("take its [[peer]] out there, then: systemctl reload hawser")
        })?;
        remove_file(&file).map_err(Failure::failed)?;
    }
    // Others may need it: what is to be forwarded to it, who takes its place.
    check_or(home, || text.iter().try_for_each(|text| write_private(&file, text))).map_err(|failure| {
        let hint = "the token is taken back all the same; correct the configuration, then: systemctl reload hawser";
        if had_token { failure.hint(hint) } else { failure }
    })?;
    if !had_token && text.is_none() {
        let (config, _) = hawser_config::read(&home.config)?;
        let elsewhere = config.peers.iter().any(|peer| peer.name == name);
        let why =
            if elsewhere { "it stands in a file that no command wrote" } else { "there is no such peer or token" };
        let failure = Failure::wrong(format!("remove peer \"{name}\": {why}"));
        let in_etcd = config.hub.is_some_and(|hub| hub.etcd.is_some());
        return Err(match (elsewhere, in_etcd) {
            (true, _) => failure.hint("take its [[peer]] out, then: systemctl reload hawser"),
            (false, true) => failure.hint(format!("if it is in etcd: hawser hub revoke {name}")),
            (false, false) => failure,
        });
    }
    reload(home)
}

fn rename(home: &Home, old: &str, new: &str) -> Result<(), Failure> {
    let (old, new) = (parse_name(old)?, parse_name(new)?);
    let (from, to) = (peer_file(&home.folder, &old), peer_file(&home.folder, &new));
    let failed = |why: &str| Failure::wrong(format!("rename peer \"{old}\" to \"{new}\": {why}"));
    let text = std::fs::read_to_string(&from).map_err(|_| failed("no command wrote a file of the first name"))?;
    let line = name_line(&text, &old).ok_or_else(|| failed("its file was edited: rename it there"))?;
    let (config, keys) = keys::load(&home.config)?;
    let taken = config.peers.iter().map(|peer| &peer.name).chain(keys.invitations.list.iter().map(|one| &one.name));
    if taken.into_iter().any(|name| *name == new) {
        return Err(failed("the second name is taken"));
    }
    // Its file may have been edited, and be of a peer with a third name.
    if to.exists() {
        let failure = failed(&format!("another peer is in {}", to.display()));
        return Err(failure.hint("take another name, or give that file its peer's"));
    }
    write_private(&to, &text.replace(&line, &format!("name = \"{new}\"\n"))).map_err(Failure::failed)?;
    remove_file(&from).map_err(Failure::failed)?;
    check_or(home, || remove_file(&to).and_then(|_| write_private(&from, &text)))?;
    reload(home)
}

/// The line that names a peer, where it is the only one of its file, as commands write it.
fn name_line(text: &str, name: &PeerName) -> Option<String> {
    let line = format!("name = \"{name}\"\n");
    (text.matches("[[peer]]").count() == 1 && text.matches(&line).count() == 1).then_some(line)
}

/// A running portal takes over what changed; without one nothing is to be done.
fn reload(home: &Home) -> Result<(), Failure> {
    let (config, _) = hawser_config::read(&home.config)?;
    match Client::reload(&config.portal.socket) {
        Ok(()) | Err(ClientError::NotRunning { .. }) => Ok(()),
        Err(error) => Err(Failure::failed(error)),
    }
}
