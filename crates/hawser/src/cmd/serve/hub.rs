//! `hawser serve --hub`: a member of a hub. It translates nothing, as that would give peers its own address, and prints
//! no token: that names all members, and they may not run yet.
//!
//! 1. [`HubOptions::section`] is what the configuration says of it. 2. Where it names etcd, that has to answer.
//! 3. What is to be done next is said: at the other members, for peers, and for routers.

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Args;
use hawser_config::{Config, PeerName, PublicKey, Transport};
use hawser_portal::api::{Client, EtcdStatus, NAMESAKE_HINT};
use hawser_portal::pairing::Endpoint;

use super::{ANSWERS_WITHIN, GLANCE, Home};
use crate::cmd::output::print;
use crate::cmd::pairing::invite::{TokenOptions, endpoints};
use crate::cmd::pairing::members;
use crate::failure::Failure;

/// etcd looks for leases that are over twice a second (its lessor), and a round of a member's is a few round trips.
const LEASE_ENDS_WITHIN: Duration = Duration::from_secs(2);

/// What may be said of a member of a hub
#[derive(Debug, Args)]
pub struct HubOptions {
    /// Make this host the member of this name of a hub: with others, it serves the same peers
    #[arg(long, value_name = "NAME")]
    hub: Option<String>,
    /// A server of etcd that holds the hub's members and peers; may be repeated
    #[arg(long, value_name = "URL", requires = "hub")]
    etcd: Vec<String>,
    /// Who vouches for etcd (PEM)
    #[arg(long, value_name = "FILE", requires = "etcd")]
    etcd_ca: Option<PathBuf>,
    /// The member's certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "etcd")]
    etcd_certificate: Option<PathBuf>,
    /// Its private key
    #[arg(long, value_name = "FILE", requires = "etcd")]
    etcd_key: Option<PathBuf>,
}

impl HubOptions {
    /// Whether this is to be a member.
    pub fn is_member(&self) -> bool {
        self.hub.is_some()
    }

    /// Step 1; `reached` is where peers reach the member.
    pub fn section(&self, reached: &[Endpoint]) -> Result<String, Failure> {
        let Some(name) = &self.hub else { return Ok(String::new()) };
        let name = PeerName::parse(name)
            .map_err(|error| Failure::wrong(format!("name the member of a hub {name:?}: {error}")))?;
        let mut text = format!("\n[hub]\nname = \"{name}\"\n");
        if self.etcd.is_empty() {
            return Ok(text);
        }
        let list = |items: Vec<String>| items.iter().map(|item| quoted(item)).collect::<Vec<_>>().join(", ");
        text += &format!("endpoints = [{}]\n", list(reached.iter().map(ToString::to_string).collect()));
        text += &format!("etcd = [{}]\n", list(self.etcd.clone()));
        let files = [("ca", &self.etcd_ca), ("certificate", &self.etcd_certificate), ("key", &self.etcd_key)];
        for (key, file) in files {
            let Some(file) = file else { continue };
            text += &format!("etcd_{key} = {}\n", quoted(&absolute(file)?));
        }
        Ok(text)
    }

    /// Step 2.
    pub fn wait_for_etcd(&self, home: &Home, config: &Config) -> Result<(), Failure> {
        if self.hub.is_some() && config.hub.is_none() {
            let failure = Failure::wrong(format!("serve: {} is there, and has no [hub]", home.config.display()));
            return Err(failure.hint("add [hub] with a name (docs/hub.md), or name another one: -c FILE"));
        }
        if self.etcd.is_empty() {
            return Ok(());
        }
        let lease = config.hub.as_ref().and_then(|hub| hub.etcd.as_ref()).map_or(Duration::ZERO, |etcd| etcd.lease);
        let EtcdStatus { members, peers, .. } = registered(home, name_free_within(lease))?;
        eprintln!("etcd reached: members {members}, peers {peers}");
        Ok(())
    }
}

/// Step 2: what etcd has, once it answers and nobody else has the member's name.
fn registered(home: &Home, free_within: Duration) -> Result<EtcdStatus, Failure> {
    let (began, mut told) = (Instant::now(), false);
    loop {
        let etcd = Client::status(&home.socket).ok().and_then(|status| status.etcd).unwrap_or_default();
        if etcd.reached && etcd.namesake.is_none() {
            return Ok(etcd);
        }
        if let Some(namesake) = etcd.namesake {
            if began.elapsed() > free_within {
                return Err(Failure::failed(format!("serve: {namesake}")).hint(NAMESAKE_HINT));
            }
            if !std::mem::replace(&mut told, true) {
                eprintln!("{namesake}: waiting {} s at most for its lease to end", free_within.as_secs());
            }
        } else if began.elapsed() > ANSWERS_WITHIN {
            let why = etcd.why.unwrap_or_default();
            let failure = Failure::failed(format!("serve: etcd is not reached: {why}"));
            return Err(failure.hint("its servers, users and role are set up first (docs/hub.md, \"etcd\")"));
        }
        sleep(GLANCE);
    }
}

/// A portal that is no more, as one that was installed anew, has its name until its lease ends; a member asks for it
/// again each third of a lease.
fn name_free_within(lease: Duration) -> Duration {
    lease + lease / 3 + LEASE_ENDS_WITHIN
}

/// Step 3.
pub fn tell(home: &Home, config: &Config, own: &PublicKey, options: &TokenOptions) -> Result<(), Failure> {
    let Some(hub) = &config.hub else { return Ok(()) };
    let token = "peer add NAME";
    if hub.etcd.is_some() {
        eprintln!("hint: for each peer, once all members run, at one of them: {}", home.command(token));
    } else if let Some(name) = &hub.name {
        let tcp = config.portal.transports.contains(&Transport::Tcp);
        let reached = endpoints(&config.portal.listen, true, tcp, options)?;
        eprintln!("what a token names this member by at the others:");
        print(&format!("--member {}\n", members::shown(name, own, &reached)))?;
        let words = format!("{token} --member …");
        eprintln!("hint: for each peer, at one member, with a --member for each other one: {}", home.command(&words));
    }
    eprintln!("hint: this host has to forward packets, and to tell routers of its peers' routes (docs/hub.md)");
    Ok(())
}

fn absolute(file: &Path) -> Result<String, Failure> {
    let path =
        std::path::absolute(file).map_err(|error| Failure::failed(format!("find {}: {error}", file.display())))?;
    if !path.exists() {
        return Err(Failure::wrong(format!("serve: there is no {}", path.display())));
    }
    Ok(path.display().to_string())
}

/// As TOML writes text: its escapes are JSON's.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
