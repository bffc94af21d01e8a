//! Any destination, by one port.
//!
//! 1. [`ScionSocket::send_to`] looks a new destination's paths up, and keeps them.
//! 2. What comes is handed out with who sent it; its sender can be answered along the path it came by, without a
//!    look-up. Who must not let one packet turn the answers to others keeps each way back by itself ([`WayBack`]).

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::connection::receive_one;
use super::counters::Stats;
use super::error::{OpenError, RecvError, RouteError, SendError};
use super::events::Event;
use super::flows::{Key, WayBack};
use super::opts::{ConnOpts, Finding};
use super::paths::Paths;
use super::port::Port;
use super::receive::{Datagram, Take};
use super::send::{Batch, Sent, Wait};
use crate::addr::EndpointAddr;

/// A port for all destinations: up to 4096 are known at a time, those not used for longest are forgotten.
/// Begins without any. For several threads; its descriptor polls as a UDP socket's.
#[derive(Debug)]
pub struct ScionSocket {
    pub(super) port: Arc<Port>,
    /// The path the last packet came by, so that packets in a row are looked up once.
    last: Mutex<Option<Last>>,
    /// Numbers paths: who does not know its keys cannot make two that have one number.
    numbers: RandomState,
}

/// Who a packet came from, and how. What was noted of it is no longer true when flows were forgotten.
#[derive(Debug)]
struct Last {
    source: EndpointAddr,
    path: Vec<u8>,
    number: Option<u64>,
    /// How often flows were forgotten when it was learned, and when it was kept.
    learned: Option<u64>,
    kept: Option<u64>,
}

impl Last {
    /// Of a packet: the same, where it is the last one's.
    fn of<'l>(last: &'l mut Option<Last>, datagram: &Datagram<'_>) -> &'l mut Last {
        let (source, raw) = (datagram.source, datagram.packet.dataplane().as_bytes());
        let is_same = last.as_ref().is_some_and(|last| last.source == source && last.path == raw);
        if !is_same {
            let mut path = last.take().map(|last| last.path).unwrap_or_default();
            path.clear();
            path.extend_from_slice(raw);
            *last = Some(Last { source, path, number: None, learned: None, kept: None });
        }
        last.as_mut().expect("it is there now")
    }
}

impl ScionSocket {
    /// Opens a socket in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn bind(opts: ConnOpts, paths: Arc<dyn Paths>) -> Result<ScionSocket, OpenError> {
        Ok(ScionSocket { port: Port::open(opts, paths)?, last: Mutex::new(None), numbers: RandomState::new() })
    }

    /// This end.
    pub fn local(&self) -> EndpointAddr {
        self.port.local.endpoint
    }

    /// What works worse than it could.
    pub fn findings(&self) -> &[Finding] {
        self.port.findings()
    }

    /// What was counted so far.
    pub fn stats(&self) -> Stats {
        self.port.counters.read()
    }

    /// The oldest event not yet told.
    pub fn next_event(&self) -> Option<Event> {
        self.port.events.take()
    }

    /// Finds a way to a destination ahead of the first packet; waits for the look-up.
    ///
    /// # Errors
    /// [`RouteError`].
    pub fn look_up(&self, destination: EndpointAddr) -> Result<(), RouteError> {
        self.port.flow_to(destination, true).map(drop)
    }

    /// Bytes that a payload to a known destination may have now.
    ///
    /// # Errors
    /// [`RouteError`].
    pub fn max_payload(&self, destination: EndpointAddr) -> Result<usize, RouteError> {
        Ok(self.port.flow_to(destination, false)?.current().max_payload)
    }

    /// Sends a batch that `fill` writes to one destination, and waits until the kernel has all of it.
    ///
    /// # Errors
    /// [`SendError`]; with [`SendError::Full`], when the time to wait is over, `fill` was not called.
    pub fn send_batch_to(
        &self,
        destination: EndpointAddr,
        fill: impl FnOnce(&mut Batch<'_>),
    ) -> Result<Sent, SendError> {
        let flow = self.port.flow_to(destination, true)?;
        self.port.send(&flow, self.port.patience(), fill)
    }

    /// The same without waiting, to a known destination: what the kernel does not take now is left over, and goes first
    /// next time.
    ///
    /// # Errors
    /// [`SendError`]; with [`SendError::Full`], when something is left over still, `fill` was not called.
    pub fn try_send_batch_to(
        &self,
        destination: EndpointAddr,
        fill: impl FnOnce(&mut Batch<'_>),
    ) -> Result<Sent, SendError> {
        let flow = self.port.flow_to(destination, false)?;
        self.port.send(&flow, Wait::Never, fill)
    }

    /// Sends what is left over, without waiting; says whether all of it went.
    ///
    /// # Errors
    /// [`SendError`], which names this end as its destination: what is left over may be for several.
    pub fn flush(&self) -> Result<bool, SendError> {
        self.port.sender().flush(&self.port, self.local(), Wait::Never)
    }

    /// Sends one packet.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn send_to(&self, payload: &[u8], destination: EndpointAddr) -> Result<(), SendError> {
        let flow = self.port.flow_to(destination, true)?;
        self.port.send_one(&flow, self.port.patience(), payload)
    }

    /// Hands each packet of a batch to `each`, as soon as there is one, and returns how many; 0 when the time is over
    /// (`None` waits for ever). `each` may send, but not receive.
    ///
    /// # Errors
    /// Only what makes the socket useless.
    pub fn recv_batch(&self, timeout: Option<Duration>, each: impl FnMut(Datagram<'_>)) -> io::Result<usize> {
        self.port.receive(Wait::for_time(timeout), self.learning(each))
    }

    /// The same without waiting: 0 when there is nothing now.
    ///
    /// # Errors
    /// Only what makes the socket useless.
    pub fn try_recv_batch(&self, each: impl FnMut(Datagram<'_>)) -> io::Result<usize> {
        self.port.receive(Wait::Never, self.learning(each))
    }

    /// The same, but the way back is learned only of packets that `each` says yes to: so nobody who forges a source
    /// turns the answers of others elsewhere.
    ///
    /// # Errors
    /// Only what makes the socket useless.
    pub fn try_recv_batch_if(&self, mut each: impl FnMut(&Datagram<'_>) -> bool) -> io::Result<usize> {
        self.port.receive(Wait::Never, |datagram| {
            if each(&datagram) {
                self.learn(&datagram);
            }
            Take::More
        })
    }

    /// Sends one packet back along the path that another came by, and learns nothing.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn answer(&self, datagram: &Datagram<'_>, payload: &[u8]) -> Result<(), SendError> {
        let flow = self
            .port
            .flow_back(Key::To(datagram.source), datagram)
            .ok_or(RouteError::NotLookedUp { destination: datagram.source })?;
        self.port.send_now(&flow, payload)
    }

    /// Receives one packet's payload; its length and who sent it.
    ///
    /// # Errors
    /// [`RecvError`].
    pub fn recv_from(&self, payload: &mut [u8], timeout: Option<Duration>) -> Result<(usize, EndpointAddr), RecvError> {
        receive_one(&self.port, payload, Wait::for_time(timeout), |datagram| {
            self.learn(datagram);
            true
        })
    }

    /// Step 2.
    fn learning(&self, mut each: impl FnMut(Datagram<'_>)) -> impl FnMut(Datagram<'_>) -> Take {
        move |datagram| {
            self.learn(&datagram);
            each(datagram);
            Take::More
        }
    }

    /// Remembers the way back to whoever sent a packet that came to this socket, or to another one of this host.
    pub fn learn(&self, datagram: &Datagram<'_>) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, forgotten) = (Last::of(&mut last, datagram), Some(self.port.flows.forgotten()));
        if last.learned != forgotten {
            last.learned = forgotten;
            self.port.learn(datagram);
        }
    }

    /// The way back that a packet came by, to this socket or to another one of this host. Nothing is kept.
    pub fn way_back(&self, datagram: &Datagram<'_>) -> WayBack {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let Last { path, number, .. } = Last::of(&mut last, datagram);
        WayBack::new(datagram.source, *number.get_or_insert_with(|| self.numbers.hash_one(&*path)))
    }

    /// Keeps a packet's way back, beside all others, for [`ScionSocket::try_send_batch_back`].
    pub fn keep(&self, way: WayBack, datagram: &Datagram<'_>) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, forgotten) = (Last::of(&mut last, datagram), Some(self.port.flows.forgotten()));
        if last.kept != forgotten {
            last.kept = forgotten;
            self.port.keep(way, datagram);
        }
    }

    /// Bytes that a payload may have along a way back that was kept.
    ///
    /// # Errors
    /// [`RouteError`].
    pub fn max_payload_back(&self, way: WayBack) -> Result<usize, RouteError> {
        Ok(self.port.kept(way)?.current().max_payload)
    }

    /// [`ScionSocket::try_send_batch_to`] along a way back that was kept.
    ///
    /// # Errors
    /// As there; [`RouteError::NotLookedUp`] where it was not, is forgotten, or its hop fields expired.
    pub fn try_send_batch_back(&self, way: WayBack, fill: impl FnOnce(&mut Batch<'_>)) -> Result<Sent, SendError> {
        let flow = self.port.kept(way)?;
        self.port.send(&flow, Wait::Never, fill)
    }
}

impl AsFd for ScionSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.port.as_fd()
    }
}
