//! Keeps the route table good: the map's file is read again when it changes, names are resolved again every minute.
//!
//! 1. [`Keeper::start`] reads the map and gives a table of all that needs no name server: it waits for nobody.
//! 2. Its thread looks at the file every second (`file`), reads one that changed and then rested until the next look,
//!    and asks for names (`names`), new ones at once.
//! 3. What is known makes a table (`assemble`); one that differs from the last one is told.
//! 4. [`Keeper::read_again`] takes other routes, as a configuration that was read again has them.
//! 5. A file with a fault is told, and the last good one stays. So does what a name had when it is not found any more.
//!
//! Nobody waits for the thread: a name server that does not answer holds up its own name alone.

mod assemble;
mod file;
mod names;
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use hawser_config::LoadError;
use hawser_scion::EndpointAddr;
use ipnet::Ipv4Net;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{MissedTickBehavior, interval};

use self::assemble::assemble;
use self::file::MapFile;
use self::names::{Names, Resolver};
use super::RouteTable;
use crate::config::{Config, Route};

/// How often the map's file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often names are resolved again.
const RESOLVE_EVERY: Duration = Duration::from_secs(60);
/// Names that the system's resolver is asked for at a time: each takes a thread.
const RESOLVERS: usize = 8;

/// What routes are made of. Plain data.
#[derive(Clone, Debug)]
pub struct Source {
    /// The shim's own end: routes to its own host are left out, so that hosts can share a map.
    pub own: EndpointAddr,
    /// Where IPv4 addresses are derived.
    pub ipv4: Option<Ipv4Net>,
    /// The routes of the configuration; they go before those of the map.
    pub routes: Vec<Route>,
    /// The map's file.
    pub map: Option<PathBuf>,
    /// Whether names without an end are asked for TXT records.
    pub dns: bool,
}

/// Why routes are not kept.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// The map cannot be read, or is faulty.
    #[error("read the map")]
    Map(#[from] LoadError),
    /// No thread, or nothing to run in it.
    #[error("start the thread that keeps routes")]
    Thread(#[from] io::Error),
}

/// Keeps routes until it is dropped; its thread then ends by itself, without being waited for. For one owner.
#[derive(Debug)]
pub struct Keeper {
    /// Its thread ends when this is dropped.
    orders: UnboundedSender<Replacement>,
}

/// Other routes, and their map. Plain data.
#[derive(Debug)]
struct Replacement {
    source: Source,
    map: Vec<Route>,
    file: Option<MapFile>,
}

impl Source {
    /// What a configuration says, for a shim at `own`.
    pub fn of(config: &Config, own: EndpointAddr) -> Source {
        let Config { ipv4, ref routes, ref map, dns, .. } = *config;
        Source { own, ipv4, routes: routes.clone(), map: map.clone(), dns }
    }
}

impl Keeper {
    /// Gives the table of the moment, and tells each one that takes its place: from a thread, one after the other.
    ///
    /// # Errors
    /// If the map cannot be read or has a fault, or there is no thread.
    pub fn start(
        source: Source,
        tell: impl FnMut(Arc<RouteTable>) + Send + 'static,
    ) -> Result<(Keeper, Arc<RouteTable>), KeeperError> {
        let dns = source.dns;
        Keeper::start_with(source, move || Resolver::system(dns), RESOLVE_EVERY, tell)
    }

    /// The same, with a resolver that is made inside the runtime.
    fn start_with(
        source: Source,
        resolver: impl FnOnce() -> Resolver + Send + 'static,
        resolve_every: Duration,
        tell: impl FnMut(Arc<RouteTable>) + Send + 'static,
    ) -> Result<(Keeper, Arc<RouteTable>), KeeperError> {
        let Replacement { source, map, file } = Replacement::of(source)?;
        let table = Arc::new(assemble(&source, &map, &Names::default()));
        tell_of_clashes(&table);
        let (orders, ordered) = unbounded_channel();
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().max_blocking_threads(RESOLVERS).build()?;
        let kept = Kept { source, map, file, names: Names::default(), table: Arc::clone(&table), tell };
        let run = move || {
            runtime.block_on(async { kept.keep(resolver(), resolve_every, ordered).await });
            // A resolver may wait for long for what nobody wants any more.
            runtime.shutdown_background();
        };
        thread::Builder::new().name("shim-routes".to_owned()).spawn(run)?;
        Ok((Keeper { orders }, table))
    }

    /// Other routes from now on; the table of them is told. The choice of name servers (`dns`) stays as it was at the
    /// start.
    ///
    /// # Errors
    /// If the map cannot be read or has a fault: then the old routes stay.
    pub fn read_again(&self, source: Source) -> Result<(), LoadError> {
        let replacement = Replacement::of(source)?;
        // A thread that panicked has told so.
        let _ = self.orders.send(replacement);
        Ok(())
    }
}

impl Replacement {
    /// Reads the map.
    fn of(source: Source) -> Result<Replacement, LoadError> {
        let Some(path) = source.map.clone() else { return Ok(Replacement { source, map: Vec::new(), file: None }) };
        let (file, map) = MapFile::open(path, source.dns)?;
        Ok(Replacement { source, map, file: Some(file) })
    }
}

/// What the thread has. Its table is the one last told; its thread owns it.
struct Kept<F> {
    source: Source,
    map: Vec<Route>,
    file: Option<MapFile>,
    names: Names,
    table: Arc<RouteTable>,
    tell: F,
}

impl<F: FnMut(Arc<RouteTable>)> Kept<F> {
    /// Steps 2 to 5, until nobody orders any more.
    async fn keep(mut self, resolver: Resolver, resolve_every: Duration, mut ordered: UnboundedReceiver<Replacement>) {
        let mut look = interval(LOOK_EVERY);
        let mut resolve = interval(resolve_every);
        for clock in [&mut look, &mut resolve] {
            clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        loop {
            tokio::select! {
                _ = look.tick() => {
                    let Some(map) = self.file.as_mut().and_then(MapFile::changed) else { continue };
                    tracing::info!(routes = map.len(), "map read again");
                    self.map = map;
                    self.want(&resolver);
                }
                _ = resolve.tick() => {
                    self.want(&resolver);
                    self.names.ask_again(&resolver);
                    continue;
                }
                () = self.names.answered() => {}
                order = ordered.recv() => {
                    let Some(Replacement { source, map, file }) = order else { return };
                    (self.source, self.map, self.file) = (source, map, file);
                    self.want(&resolver);
                }
            }
            self.renew();
        }
    }

    fn want(&mut self, resolver: &Resolver) {
        self.names.want(self.source.routes.iter().chain(&self.map), resolver);
    }

    /// Step 3.
    fn renew(&mut self) {
        let table = assemble(&self.source, &self.map, &self.names);
        if table != *self.table {
            tell_of_clashes(&table);
            self.table = Arc::new(table);
            (self.tell)(Arc::clone(&self.table));
        }
    }
}

fn tell_of_clashes(table: &RouteTable) {
    for clash in table.clashes() {
        tracing::warn!("{clash}");
    }
}
