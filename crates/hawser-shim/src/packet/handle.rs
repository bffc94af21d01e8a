//! The seam: what the packet thread is made of, what it is told, and what it tells.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;

use hawser_net::netcfg::{Closed, EventSender};
use hawser_net::tun::Tun;
use hawser_scion::IsdAs;
use hawser_scion::conn::{ConnOpts, ScionSocket};
use hawser_scion::service::PathService;

use super::PacketError;
use crate::engine::{EngineOpts, Found, Notice, OwnAddresses, Snapshot};
use crate::route::RouteTable;

/// What a packet thread needs. There is no default. Moves into the thread.
#[derive(Debug)]
pub struct Parts {
    /// What comes to servers here goes in by this.
    pub ingress: Tun,
    /// Egress 1 and so on, by which clients go out.
    pub egress: Vec<Tun>,
    /// At the shim's own port: what peers begin.
    pub socket: ScionSocket,
    /// At the ports to which routers deliver TCP beside that; none where TCP is not SCION's layer 4.
    pub tcp: Vec<ScionSocket>,
    /// Knows paths.
    pub service: Arc<PathService>,
    /// How connections along one path are opened; the port counts for nothing.
    pub conn: ConnOpts,
    /// How paths are chosen.
    pub opts: EngineOpts,
    /// This host's addresses: those of its shim's interfaces, and others that are to be reached by the ingress.
    pub own: OwnAddresses,
    /// Where TCP addresses are.
    pub routes: Arc<RouteTable>,
}

/// What the packet thread is told. There is no default.
#[derive(Debug)]
pub enum Order {
    /// Other routes from now on.
    Routes(Arc<RouteTable>),
    /// Other addresses of this host.
    Own(OwnAddresses),
    /// Say what there is.
    Snapshot(mpsc::SyncSender<Snapshot>),
    /// End.
    Stop,
}

/// The packet thread, from outside. Runs until it is told to stop, or dropped. One owner; orders may come from several
/// threads.
#[derive(Debug)]
pub struct Handle {
    pub(super) orders: Orders,
    /// What happened.
    pub notices: Receiver<Notice>,
    pub(super) thread: Option<JoinHandle<Result<(), PacketError>>>,
}

/// Gives orders to the packet thread; may outlive it. Cheap to clone, for several threads.
#[derive(Clone, Debug)]
pub struct Orders(pub(super) Arc<EventSender<Told>>);

/// What comes to the packet thread from other threads.
#[derive(Debug)]
pub(super) enum Told {
    /// From outside.
    Order(Order),
    /// From the thread that asks for paths.
    Paths(IsdAs, Found),
}

impl Orders {
    /// Gives an order.
    ///
    /// # Errors
    /// [`Closed`] where the thread has ended.
    pub fn give(&self, order: Order) -> Result<(), Closed> {
        self.0.send([Told::Order(order)])
    }
}

impl Handle {
    /// Gives an order.
    ///
    /// # Errors
    /// [`Closed`] where the thread has ended.
    pub fn order(&self, order: Order) -> Result<(), Closed> {
        self.orders.give(order)
    }

    /// For other threads.
    pub fn orders(&self) -> Orders {
        self.orders.clone()
    }

    /// Whether the thread still runs.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Tells the thread to stop, and waits for its end.
    ///
    /// # Errors
    /// Why it ended, if not for this.
    pub fn stop(mut self) -> Result<(), PacketError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), PacketError> {
        // One that has ended needs no order.
        let _ = self.order(Order::Stop);
        self.thread.take().map_or(Ok(()), |thread| thread.join().unwrap_or(Err(PacketError::Panicked)))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
