//! The control thread's loop, once everything is set up.
//!
//! 1. A map comes: the system's rules, the packet thread and the manager of subflows follow it.
//! 2. The host's addresses or routes change: what servers are reached by, and the way beside SCION, are asked again.
//! 3. Orders are obeyed. 4. The packet thread's end is this one's.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hawser_net::netcfg::{LinkWatch, WatchOptions};

use super::place::Place;
use super::threads::Threads;
use super::{Host, Order, RunError, orders_of};
use crate::config::{Config, Mode};
use crate::engine::OwnAddresses;
use crate::host::{System, own_addresses};
use crate::manager::Places;
use crate::packet;
use crate::route::RouteTable;

/// What the loop works on. Lives as long as the packet thread; the control thread owns it.
pub struct Serving<'a> {
    config: Config,
    place: &'a Place,
    system: &'a mut System,
    routes: Arc<RouteTable>,
    /// What the packet thread was told last.
    own: OwnAddresses,
    /// What the manager was told last: to where, and from where, the ordinary internet leads.
    ordinary: Vec<(std::net::IpAddr, std::net::IpAddr)>,
}

/// Whether the loop goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    GoOn,
    Stop,
}

impl<'a> Serving<'a> {
    pub fn new(config: Config, place: &'a Place, system: &'a mut System, threads: &Threads) -> Self {
        let (routes, own) = (Arc::clone(&threads.first), threads.own.clone());
        Self { config, place, system, routes, own, ordinary: Vec::new() }
    }

    /// Serves until the host orders the end, or the packet thread ends.
    ///
    /// # Errors
    /// Where the kernel tells of addresses no more, or the host's descriptor cannot be waited for.
    pub async fn run(mut self, threads: &mut Threads, host: &mut impl Host<Config>) -> Result<(), RunError> {
        let orders = orders_of(host).map_err(RunError::Runtime)?;
        let mut watch = LinkWatch::open(WatchOptions::default())?;
        watch.next().await?;
        self.follow(Arc::clone(&self.routes), threads).await;
        self.look(threads).await;
        host.ready(&self.summary());
        loop {
            tokio::select! {
                Some(routes) = threads.maps.recv() => self.follow(routes, threads).await,
                events = watch.next() => {
                    events?;
                    self.look(threads).await;
                }
                _ = &mut threads.ended => return Ok(()),
                ready = orders.readable() => {
                    // Cleared before the orders are taken: one that comes in between wakes anew.
                    if let Ok(mut ready) = ready {
                        ready.clear_ready();
                    }
                    if self.obey(threads, host) == Next::Stop {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Step 1. Rules come before packets: a destination that the packet thread does not know is refused, one that it
    /// knows and nobody sends there is not.
    async fn follow(&mut self, routes: Arc<RouteTable>, threads: &Threads) {
        threads.entries.store(routes.len(), Ordering::Relaxed);
        // Fails only where the packet thread has ended, which tells by itself.
        let _ = threads.orders().give(packet::Order::Routes(Arc::clone(&routes)));
        self.system.follow(&routes).await;
        self.routes = routes;
        self.ordinary = self.system.ordinary(&self.routes).await;
        self.tell_manager(threads);
    }

    /// Step 2. In namespaces there are no addresses but the shim's own.
    async fn look(&mut self, threads: &Threads) {
        if self.config.mode == Mode::Namespaces {
            return;
        }
        match own_addresses(&self.system.rtnl()).await {
            Ok(all) => {
                let own = all.into_iter().fold(threads.own.clone(), OwnAddresses::with);
                if own != self.own {
                    self.own = own.clone();
                    let _ = threads.orders().give(packet::Order::Own(own));
                }
            }
            Err(error) => tracing::warn!(%error, "addresses of this host not read"),
        }
        let ordinary = self.system.ordinary(&self.routes).await;
        if ordinary != self.ordinary {
            self.ordinary = ordinary;
            self.tell_manager(threads);
        }
    }

    fn tell_manager(&self, threads: &Threads) {
        let (egress, routes) = (threads.egress.clone(), Arc::clone(&self.routes));
        threads.learn(Places { egress, routes, ordinary: self.ordinary.clone() });
    }

    /// Step 3.
    fn obey(&mut self, threads: &mut Threads, host: &mut impl Host<Config>) -> Next {
        for order in host.orders() {
            match order {
                Order::Shutdown => return Next::Stop,
                Order::Reload => {
                    if let Some(config) = host.reload() {
                        self.reload(config, threads);
                    }
                    host.ready(&self.summary());
                }
            }
        }
        Next::GoOn
    }

    /// Routes change while the shim runs; all else waits for a restart, and the log says so.
    fn reload(&mut self, new: Config, threads: &mut Threads) {
        let Config { routes, map, dns, .. } = new.clone();
        let effective = Config { routes, map, dns, ..self.config.clone() };
        if effective != new {
            tracing::warn!("configuration read again: what is changed in [shim] or [policy] needs a restart");
        }
        // A map that is the same as before is read again as well: that is what was asked for.
        self.config = effective;
        threads.keep_anew(&self.config, self.place);
    }

    /// A line for `systemctl status`.
    fn summary(&self) -> String {
        let Config { name, egress, .. } = &self.config;
        format!("{name} at {} with {} paths at most and {} routes", self.place.end, egress.get(), self.routes.len())
    }
}
