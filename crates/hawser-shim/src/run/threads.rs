//! The threads beside the control thread, and what connects them.
//!
//! ```text
//!   map -----------------+                     +--> log
//!                        v                     |
//!   control thread --> packets --> notices ----+--> manager of subflows --> kernel
//!        ^                                     |
//!        +---------------- `ended` ------------+
//! ```
//! The control socket asks the packet thread by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::Instant;

use hawser_scion::conn::ScionSocket;
use hawser_scion::service::{PathService, ServiceOpts};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use super::place::Place;
use super::{RunError, powers};
use crate::config::{self, Config, Mode};
use crate::engine::{EngineOpts, Notice, OwnAddresses};
use crate::host::{Devices, Spaces};
use crate::manager::{Input, Inputs, Manager, Places};
use crate::packet::{self, Handle, Orders, Parts};
use crate::route::{Addresses, InterfaceIndex, Keeper, RouteTable, Source};
use crate::status::{self, About, Log, Server};

/// The threads of a shim. They run from the start; the control thread owns them.
#[derive(Debug)]
pub struct Threads {
    packets: Handle,
    notices: Option<JoinHandle<()>>,
    manager: Option<Manager>,
    keeper: Keeper,
    server: Server,
    /// The addresses of the egresses.
    pub egress: Vec<Addresses>,
    /// Those of all interfaces.
    pub own: OwnAddresses,
    /// The map as it was at the start.
    pub first: Arc<RouteTable>,
    /// Other maps, as they come.
    pub maps: UnboundedReceiver<Arc<RouteTable>>,
    /// Entries of the map in force, for the status.
    pub entries: Arc<AtomicUsize>,
    /// Says that the packet thread has ended.
    pub ended: oneshot::Receiver<()>,
}

impl Threads {
    /// Starts them.
    pub fn start(
        config: &Config,
        place: &Place,
        egress: Vec<Addresses>,
        wanted: Option<config::PathManager>,
        devices: Devices,
        (socket, tcp): (ScionSocket, Vec<ScionSocket>),
    ) -> Result<Self, RunError> {
        let manager = match wanted {
            Some(config::PathManager::Userspace) => {
                Some(manager(config, Places { egress: egress.clone(), ..Places::default() })?)
            }
            Some(config::PathManager::Kernel) | None => None,
        };
        let (manager, inputs) = manager.unzip();
        powers::working(move || {
            let (tables, maps) = unbounded_channel();
            let (keeper, first) = keep(config, place, &tables)?;
            let opts = ServiceOpts { policy: config.policy.clone(), select: config.select };
            let service = Arc::new(PathService::start(place.daemon.clone(), opts)?);
            let Config { select, layer4, .. } = *config;
            let opts = EngineOpts { local: place.end, select, egress: config.egress.get(), layer4 };
            let own = own(config, place)?;
            let Devices { ingress, egress: tuns } = devices;
            let (conn, routes) = (place.conn.clone(), Arc::clone(&first));
            let parts = Parts { ingress, egress: tuns, socket, tcp, service, conn, opts, own: own.clone(), routes };
            let mut packets = packet::spawn(parts)?;
            // The handle keeps an end that nothing comes to.
            let notices = std::mem::replace(&mut packets.notices, mpsc::channel().1);
            let (end, ended) = oneshot::channel();
            let notices = hear(notices, inputs, end)?;
            let entries = Arc::new(AtomicUsize::new(first.len()));
            let server = serve(config, place, &packets.orders(), &entries)?;
            let notices = Some(notices);
            Ok(Self { packets, notices, manager, keeper, server, egress, own, first, maps, entries, ended })
        })
    }

    /// For orders.
    pub fn orders(&self) -> Orders {
        self.packets.orders()
    }

    /// Tells the manager of subflows.
    pub fn learn(&self, places: Places) {
        if let Some(manager) = &self.manager {
            manager.learn(places);
        }
    }

    /// Keeps the map of another configuration from now on; the old one stays where that fails, which is told.
    pub fn keep_anew(&self, config: &Config, place: &Place) {
        // Names that are known stay known.
        if let Err(error) = self.keeper.read_again(Source::of(config, place.end)) {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::error!(%error, cause, "map not read again, the old one stays in force");
        }
    }

    /// Stops all of them, and says how the packet thread ended.
    pub fn stop(mut self) -> Result<(), RunError> {
        drop(self.server);
        drop(self.manager.take());
        let ended = self.packets.stop();
        // The notices end with the packet thread; a panic was told by its thread.
        let _ = self.notices.take().map(JoinHandle::join);
        Ok(ended?)
    }
}

/// The manager lives where clients are.
fn manager(config: &Config, places: Places) -> Result<(Manager, Inputs), RunError> {
    let start = || powers::working(|| Ok(Manager::start(places)?));
    match config.mode {
        Mode::Direct => start(),
        Mode::Namespaces => {
            let name = Spaces::of(config).egress;
            name.run(start).map_err(|source| RunError::Enter { name: name.to_string(), source })?
        }
    }
}

fn keep(
    config: &Config,
    place: &Place,
    tables: &UnboundedSender<Arc<RouteTable>>,
) -> Result<(Keeper, Arc<RouteTable>), RunError> {
    let tables = tables.clone();
    // The control thread may have ended before this one.
    let tell = move |table| drop(tables.send(table));
    Ok(Keeper::start(Source::of(config, place.end), tell)?)
}

fn own(config: &Config, place: &Place) -> Result<OwnAddresses, RunError> {
    let mut own = OwnAddresses::default();
    for index in std::iter::once(InterfaceIndex::INGRESS).chain(config.egress.interfaces()) {
        own = own.with_interface(index, place.addresses(index)?);
    }
    Ok(own)
}

/// Passes notices on to the log and the manager until the packet thread ends.
fn hear(
    notices: Receiver<Notice>,
    inputs: Option<Inputs>,
    end: oneshot::Sender<()>,
) -> Result<JoinHandle<()>, RunError> {
    let work = move || {
        let mut log = Log::default();
        for notice in notices {
            log.tell(&notice, Instant::now());
            let input = match notice {
                Notice::Room { token, free } => Some(Input::Room(token, free)),
                Notice::Lost { token, key } => Some(Input::Lost(token, key)),
                _ => None,
            };
            if let (Some(inputs), Some(input)) = (&inputs, input) {
                inputs.tell(input);
            }
        }
        // Nobody waits where the end was ordered.
        let _ = end.send(());
    };
    let name = "shim-notices";
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    thread.map_err(|source| RunError::Thread { name, source })
}

fn serve(config: &Config, place: &Place, orders: &Orders, entries: &Arc<AtomicUsize>) -> Result<Server, RunError> {
    let (orders, entries) = (orders.clone(), Arc::clone(entries));
    let routes = move || entries.load(Ordering::Relaxed);
    let about = About::of(config, place.end);
    Ok(Server::start(&config.control, about, routes, move || status::snapshot(&orders))?)
}
