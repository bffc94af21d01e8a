//! The packet thread: drives an engine with TUN devices and SCION sockets.
//!
//! 1. [`spawn`] starts the thread, in the network namespace of its caller, and a second one that asks for paths
//!    (`finder`).
//! 2. It waits until something is ready (`ready`).
//! 3. Orders and paths go to the engine.
//! 4. Packets are read from the TUN devices, a train at a time, and leave as trains of datagrams (`world`).
//! 5. Datagrams, and segments where TCP is SCION's layer 4, are received in batches; the packets that they become are
//!    collected, and written as super-packets (`tuns`).
//! 6. What time brings; then again from 2.
//!
//! No lock is held between threads for a packet, and nobody is waited for but the kernel.

mod finder;
mod handle;
mod ready;
mod tuns;
mod world;

use std::io;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use hawser_core::units::Time;
use hawser_net::link::RUNS_PER_BATCH;
use hawser_net::netcfg::{EventReceiver, event_channel};
use hawser_scion::conn::{Carried, Datagram, Event, ScionSocket};
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::engine::{By, ConnId, Control, Engine, Found, Outside, Via};
use crate::route::MAX_EGRESS;

use finder::Finder;
use handle::Told;
use ready::Ready;
use tuns::Tuns;
use world::World;

pub use handle::{Handle, Order, Orders, Parts};

/// Notices that wait for whoever hears them; more are lost, and counted: 500 connections a second have 2000.
const NOTICES: usize = 16_384;
/// Batches received from one socket before what they became is written: what the kernel has not merged comes in batches
/// of 8, and 64 segments make one super-packet.
const BATCHES: usize = 8;
/// Nanoseconds of a second.
const NANOS: u64 = 1_000_000_000;

/// Why the packet thread did not start, or ended. There is no default.
#[derive(Debug, thiserror::Error)]
pub enum PacketError {
    /// More egress interfaces than there are indexes.
    #[error("start the packet thread: {0} egress interfaces, at most {MAX_EGRESS} may be")]
    Egress(usize),
    /// No thread, or no descriptor.
    #[error("start the packet thread")]
    Start(#[source] io::Error),
    /// Waiting failed.
    #[error("wait for packets")]
    Wait(#[source] io::Error),
    /// A TUN device is gone.
    #[error("use {device}")]
    Tun {
        /// Its name.
        device: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A SCION socket is of no more use.
    #[error("receive from scion")]
    Socket(#[source] io::Error),
    /// It panicked.
    #[error("run the packet thread: it panicked")]
    Panicked,
}

/// Step 1.
///
/// # Errors
/// [`PacketError`] where the process has no thread or descriptor left.
pub fn spawn(parts: Parts) -> Result<Handle, PacketError> {
    if parts.egress.len() > usize::from(MAX_EGRESS) {
        return Err(PacketError::Egress(parts.egress.len()));
    }
    let (orders, told) = event_channel().map_err(PacketError::Start)?;
    let orders = Orders(Arc::new(orders));
    let (notices, heard) = mpsc::sync_channel(NOTICES);
    let Parts { ingress, egress, socket, tcp, service, conn, opts, own, routes } = parts;
    let finder = Finder::start(service, opts, orders.clone()).map_err(PacketError::Start)?;
    let socket = Arc::new(socket);
    let tuns = Tuns::new(ingress, egress);
    let world = World::new(Arc::clone(&socket), conn, tcp, tuns.homes(), finder, notices);
    let packets =
        Packets { engine: Engine::new(opts, own, routes), world, tuns, socket, told, ready: Ready::default() };
    let thread = thread::Builder::new().name("shim-packets".to_owned()).spawn(|| packets.run());
    Ok(Handle { orders, notices: heard, thread: Some(thread.map_err(PacketError::Start)?) })
}

/// Now, by the system's monotonic clock.
fn now() -> Time {
    let now = clock_gettime(ClockId::Monotonic);
    Time::from_nanos(now.tv_sec.unsigned_abs() * NANOS + now.tv_nsec.unsigned_abs())
}

/// All that the thread has. Starts without flows. The thread owns it.
struct Packets {
    engine: Engine,
    world: World,
    tuns: Tuns,
    socket: Arc<ScionSocket>,
    told: EventReceiver<Told>,
    ready: Ready,
}

impl Packets {
    /// Steps 2 to 6.
    fn run(mut self) -> Result<(), PacketError> {
        loop {
            let timeout = self.timeout();
            let waited = self.ready.wait(&self.tuns, &self.told, &self.socket, &self.world, timeout.as_ref());
            waited.map_err(|errno| PacketError::Wait(errno.into()))?;
            if self.ready.told && !self.heed() {
                return Ok(());
            }
            self.flush_left_over();
            let from_tuns = self.ready.tuns;
            self.tuns.read(from_tuns, now, &mut self.engine, &mut self.world)?;
            self.receive()?;
            self.tuns.write(&mut self.world)?;
            let now = now();
            if self.engine.next_deadline().is_some_and(|due| due <= now) {
                self.engine.handle_timeout(now, &mut self.world);
                self.tuns.write(&mut self.world)?;
                self.world.trim(now);
            }
        }
    }

    fn timeout(&self) -> Option<Timespec> {
        let left = self.engine.next_deadline()?.since(now());
        Timespec::try_from(left).ok()
    }

    /// Step 3. Says whether it goes on.
    fn heed(&mut self) -> bool {
        for told in self.told.drain() {
            match told {
                Told::Order(Order::Stop) => return false,
                Told::Order(Order::Routes(routes)) => self.engine.set_routes(routes),
                Told::Order(Order::Own(own)) => self.engine.set_own(own),
                Told::Order(Order::Snapshot(reply)) => {
                    let snapshot = self.world.complete(self.engine.snapshot(now()));
                    // Who asked may have given up.
                    let _ = reply.try_send(snapshot);
                }
                Told::Paths(isd_as, found) => self.paths(isd_as, found),
            }
        }
        true
    }

    fn paths(&mut self, isd_as: hawser_scion::IsdAs, found: Found) {
        self.engine.handle_paths(now(), isd_as, found, &mut self.world);
    }

    fn flush_left_over(&mut self) {
        for id in &self.ready.writable {
            self.world.flush(*id);
        }
        if self.ready.port_writable {
            self.world.flush_port();
        }
    }

    /// Step 5.
    fn receive(&mut self) -> Result<(), PacketError> {
        let Self { engine, world, socket, ready, tuns, .. } = self;
        if ready.port {
            let now = now();
            let mut each = |datagram: &Datagram<'_>| {
                if datagram.carried == Carried::Tcp {
                    take_segment(engine, world, socket, now, datagram);
                    return false;
                }
                let back = socket.way_back(datagram);
                let heard = engine.handle_datagram(now, By::Port(back), datagram.source, datagram.payload, world);
                // An answer that does not go is as good as one that does not arrive.
                heard.echo.iter().for_each(|echo| drop(socket.answer(datagram, echo.bytes())));
                if heard.keep {
                    socket.keep(back, datagram);
                }
                false
            };
            batches(|| socket.try_recv_batch_if(&mut each))?;
            while socket.next_event().is_some() {}
            tuns.write(world)?;
        }
        for port in &ready.tcp {
            let Some(at) = world.tcp(*port) else { continue };
            let now = now();
            let mut each = |datagram: &Datagram<'_>| {
                // Answers go from the shim's port.
                take_segment(engine, world, socket, now, datagram);
                false
            };
            batches(|| at.try_recv_batch_if(&mut each))?;
            while at.next_event().is_some() {}
            tuns.write(world)?;
        }
        for id in &ready.conns {
            receive_from(engine, world, *id)?;
            tuns.write(world)?;
        }
        Ok(())
    }
}

/// Receives until there is no full batch any more, or enough.
fn batches(mut receive: impl FnMut() -> io::Result<usize>) -> Result<(), PacketError> {
    for _ in 0..BATCHES {
        if receive().map_err(PacketError::Socket)? < RUNS_PER_BATCH {
            break;
        }
    }
    Ok(())
}

/// Step 5, where TCP is SCION's layer 4.
fn take_segment(engine: &mut Engine, world: &mut World, socket: &ScionSocket, now: Time, datagram: &Datagram<'_>) {
    let (class, back) = (datagram.packet.header().traffic_class(), socket.way_back(datagram));
    if engine.handle_segment(now, back, datagram.payload, class, world) {
        socket.keep(back, datagram);
    }
}

/// Step 5, of a connection along one path.
fn receive_from(engine: &mut Engine, world: &mut World, id: ConnId) -> Result<(), PacketError> {
    let Some(conn) = world.conn(id) else { return Ok(()) };
    let now = now();
    let mut echo: Option<Control> = None;
    let mut each = |datagram: Datagram<'_>| {
        let heard = engine.handle_datagram(now, By::Conn(id), datagram.source, datagram.payload, world);
        echo = heard.echo.or(echo);
    };
    batches(|| conn.try_recv_batch(&mut each))?;
    // One answer for a batch: a peer that probes has no more under way.
    if let Some(echo) = echo {
        world.send_control(Via::Conn(id), &echo);
    }
    while let Some(event) = conn.next_event() {
        if let Event::NoOther { because, .. } = event {
            world.report(because);
        }
        let room = world::room_of(&conn);
        engine.handle_event(now, id, &event, room, world);
    }
    Ok(())
}
