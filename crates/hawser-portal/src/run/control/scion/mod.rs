//! Finds SCION paths for the links that go by them.
//!
//! 1. [`Pathfinder::follow`]: for each link and each endpoint somebody asks a daemon (`asker.rs`).
//! 2. [`Pathfinder::next`]: what they heard. 3. [`Pathfinder::take`]: paths are chosen (`choice.rs`), and the packet
//!    thread is told.
//! 4. [`Pathfinder::on_broken`], [`Pathfinder::look_at`]: a path that fails is exchanged, if there is another.

mod asker;
mod choice;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Instant;

use hawser_config::{Config, ScionPaths};
use hawser_core::alias::Alias;
use hawser_core::endpoint::Snapshot;
use hawser_core::path::health::{DownReason, HealthState};
use hawser_core::units::{LinkId, PeerId};
use hawser_net::netcfg::Family;
use hawser_scion::EndpointAddr;
use hawser_scion::daemon::{DaemonAddr, DaemonClient, Lookup, PortRange};
use hawser_scion::link::Way;
use hawser_scion::select::Loss;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::reload::Places;
use crate::api::ScionStatus;
use crate::run::messages::{Command, Ways};
use crate::run::plan::{Carriage, ScionRole, SocketPlan};
use asker::{Asker, Heard};
use choice::Choice;

/// Loss is measured in these parts of a whole.
const PER_MILLE: f64 = 1000.0;

/// The search for the paths of one link to one endpoint.
#[derive(Debug)]
struct Search {
    plan: SocketPlan,
    asker: Asker,
    choice: Choice,
    /// Who is reached there.
    peers: Vec<PeerId>,
    /// What the log was told of.
    told: Option<String>,
}

/// All searches. None at first; the control thread owns it.
#[derive(Debug)]
pub struct Pathfinder {
    searches: BTreeMap<(LinkId, EndpointAddr), Search>,
    ports: BTreeMap<LinkId, PortRange>,
    heard: UnboundedReceiver<Heard>,
    ear: UnboundedSender<Heard>,
    names: u32,
    /// Paths that are known to be down: each is exchanged once.
    down: BTreeSet<SocketAddr>,
    /// The peers whose paths the packet thread was told.
    told: BTreeMap<LinkId, BTreeSet<PeerId>>,
}

impl Pathfinder {
    pub fn new() -> Self {
        let (ear, heard) = unbounded_channel();
        let (searches, ports, told) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { searches, ports, heard, ear, names: 0, down: BTreeSet::new(), told }
    }

    /// Step 1: searches for these sockets, and no others. Gives what the packet thread must know at once.
    pub fn follow(&mut self, config: &Config, plans: &[SocketPlan], places: &Places) -> Vec<Command> {
        let mut old = std::mem::take(&mut self.searches);
        let mut changed = BTreeSet::new();
        for plan in plans {
            let Carriage::Scion(ScionRole::Calls { endpoints, paths }) = &plan.carriage else { continue };
            for endpoint in endpoints {
                let has = |peer: &&hawser_config::Peer| peer.scion_endpoints.contains(endpoint);
                let peers: Vec<PeerId> = config.peers.iter().filter(has).filter_map(|peer| places.of(peer)).collect();
                let key = (plan.id, *endpoint);
                let search = match old.remove(&key).filter(|search| search.plan.is_same(plan)) {
                    Some(search) => search,
                    None => match self.search(plan, *endpoint, paths) {
                        Some(search) => search,
                        None => continue,
                    },
                };
                if search.peers != peers {
                    changed.insert(plan.id);
                }
                self.searches.insert(key, Search { peers, ..search });
            }
        }
        changed.extend(old.into_keys().map(|(link, _)| link));
        changed.into_iter().map(|link| self.ways(link)).collect()
    }

    fn search(&self, plan: &SocketPlan, endpoint: EndpointAddr, paths: &ScionPaths) -> Option<Search> {
        let daemon = match &paths.daemon {
            Some(daemon) => Ok(daemon.clone()),
            None => DaemonAddr::from_environment(),
        };
        let client = match daemon.and_then(DaemonClient::new) {
            Ok(client) => client,
            Err(error) => {
                tracing::error!(link = plan.name, %error, "no paths are looked for");
                return None;
            }
        };
        let asker = Asker::start(client, plan.id, endpoint, self.ear.clone());
        let choice = Choice::new(plan.id, plan.family == Family::V6, endpoint, paths.clone());
        Some(Search { plan: plan.clone(), asker, choice, peers: Vec::new(), told: None })
    }

    /// Step 2.
    pub async fn next(&mut self) -> Heard {
        match self.heard.recv().await {
            Some(heard) => heard,
            // Not while this has an ear itself.
            None => std::future::pending().await,
        }
    }

    /// Step 3: what the packet thread is to be told, if anything.
    pub fn take(&mut self, heard: Heard) -> Vec<Command> {
        let Heard { link, endpoint, ports, lookup } = heard;
        let Some(search) = self.searches.get_mut(&(link, endpoint)) else { return Vec::new() };
        search.tell(&lookup);
        let first_ports = ports.is_some_and(|ports| self.ports.insert(link, ports).is_none());
        let Ok(lookup) = lookup else { return Vec::new() };
        let changed = search.choice.on_paths(Instant::now(), lookup.paths, &mut names(&mut self.names));
        search.asker.set_missing(search.choice.missing() > 0);
        if changed || first_ports { vec![self.ways(link)] } else { Vec::new() }
    }

    /// Step 4: somebody says that a path is broken.
    pub fn on_broken(&mut self, remote: SocketAddr) -> Vec<Command> {
        let Some(alias) = Alias::of(&remote).filter(|_| self.down.insert(remote)) else { return Vec::new() };
        let mut changed = false;
        for ((link, _), search) in &mut self.searches {
            if *link == alias.link() && search.choice.ways().iter().any(|way| way.alias() == alias) {
                tracing::info!(link = search.plan.name, path = %path_of(&search.choice, &alias), "path broken");
                changed |= search.choice.on_failure(Instant::now(), alias.name(), &mut names(&mut self.names));
                search.asker.ask_anew();
            }
        }
        if changed { vec![self.ways(alias.link())] } else { Vec::new() }
    }

    /// Step 4: how the paths of sessions do.
    pub fn look_at(&mut self, core: &Snapshot) -> Vec<Command> {
        let mut commands = Vec::new();
        let searches = &self.searches;
        let known = || searches.values().flat_map(|search| search.choice.ways()).map(|way| way.alias().address());
        self.down.retain(|remote| known().any(|address| address == *remote));
        for path in core.peers.iter().flatten().flat_map(|session| &session.paths) {
            let Some(alias) = Alias::of(&path.remote) else { continue };
            match path.state {
                HealthState::Down(DownReason::Timeout) => commands.extend(self.on_broken(path.remote)),
                HealthState::Active => {
                    self.down.remove(&path.remote);
                    let loss = Loss((path.loss * PER_MILLE) as u16);
                    let of_link = self.searches.iter_mut().filter(|((link, _), _)| *link == alias.link());
                    of_link.for_each(|(_, search)| search.choice.on_measured(alias.name(), loss, path.rtt));
                }
                _ => {}
            }
        }
        commands
    }

    /// What status shows of the path with this alias.
    pub fn describe(&self, remote: &SocketAddr) -> Option<ScionStatus> {
        let alias = Alias::of(remote)?;
        let of_link = self.searches.iter().filter(|((link, _), _)| *link == alias.link());
        let way = of_link.flat_map(|(_, search)| search.choice.ways()).find(|way| way.alias() == alias)?;
        let path = way.path();
        Some(ScionStatus {
            endpoint: way.endpoint().to_string(),
            path: path.interfaces.to_string(),
            hops: path.hops(),
            mtu: path.mtu,
        })
    }

    /// All paths of a link, as the packet thread is told of them.
    fn ways(&mut self, link: LinkId) -> Command {
        let searches = || self.searches.iter().filter(|((of, _), _)| *of == link).map(|(_, search)| search);
        let reached: BTreeSet<PeerId> = searches().flat_map(|search| &search.peers).copied().collect();
        let before = self.told.insert(link, reached.clone()).unwrap_or_default();
        let peers: BTreeSet<PeerId> = reached.union(&before).copied().collect();
        let to = |peer: &PeerId| -> Vec<Alias> {
            let theirs = searches().filter(|search| search.peers.contains(peer));
            theirs.flat_map(|search| search.choice.ways()).map(Way::alias).collect()
        };
        Command::Ways(Ways {
            link,
            ways: searches().flat_map(|search| search.choice.ways()).cloned().collect(),
            peers: peers.iter().map(|peer| (*peer, to(peer))).collect(),
            ports: self.ports.get(&link).copied(),
        })
    }
}

/// Names that no path had.
fn names(next: &mut u32) -> impl Iterator<Item = u32> + '_ {
    std::iter::from_fn(move || {
        *next = next.wrapping_add(1);
        Some(*next)
    })
}

fn path_of(choice: &Choice, alias: &Alias) -> String {
    let way = choice.ways().iter().find(|way| way.alias() == *alias);
    way.map_or_else(String::new, |way| way.path().interfaces.to_string())
}

impl Search {
    /// Tells the log when something else is heard than before.
    fn tell(&mut self, lookup: &Result<Lookup, std::sync::Arc<hawser_scion::daemon::DaemonError>>) {
        let (link, endpoint) = (&self.plan.name, self.choice.endpoint().to_string());
        let told = match lookup {
            Err(error) => error.to_string(),
            Ok(lookup) if lookup.paths.is_empty() => "no path".to_owned(),
            Ok(_) => String::new(),
        };
        if self.told.as_ref() == Some(&told) {
            return;
        }
        match lookup {
            Err(error) => {
                let cause = std::error::Error::source(error).map(ToString::to_string);
                let hint = error.hint();
                tracing::warn!(link, endpoint, %error, cause, hint, "paths not found, they are asked for again");
            }
            Ok(lookup) if lookup.paths.is_empty() => tracing::warn!(link, endpoint, "there is no path"),
            Ok(lookup) => {
                tracing::info!(link, endpoint, paths = lookup.paths.len(), "paths found");
                for malformed in &lookup.malformed {
                    tracing::warn!(link, endpoint, ?malformed, "path of the daemon left out");
                }
            }
        }
        self.told = Some(told);
    }
}
