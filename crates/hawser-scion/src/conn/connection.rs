//! One destination, by one path at a time.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::counters::Stats;
use super::error::{OpenError, RecvError, RouteError, SendError};
use super::events::Event;
use super::flow::Flow;
use super::opts::{ConnOpts, Finding};
use super::paths::{PathTable, Paths};
use super::port::Port;
use super::receive::{Datagram, Take};
use super::send::{Batch, Sent, TxHalf, Wait};
use crate::addr::EndpointAddr;
use crate::path::{Fingerprint, Path};

/// A port of its own to one destination; what others send to it is counted and passed over.
/// Begins with the first living path. For several threads; its descriptor polls as a UDP socket's.
#[derive(Debug)]
pub struct ScionConn {
    pub(super) port: Arc<Port>,
    pub(super) flow: Arc<Flow>,
}

impl ScionConn {
    /// Opens a connection in the calling thread's network namespace; looks paths up unless the destination lies in the
    /// own AS.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(opts: ConnOpts, destination: EndpointAddr, paths: Arc<dyn Paths>) -> Result<ScionConn, OpenError> {
        let port = Port::open(opts, paths)?;
        let flow = port.flow_to(destination, true)?;
        Ok(ScionConn { port, flow })
    }

    /// Opens a connection along one path, which is never looked up nor left: [`ScionConn::follow`] renews it. When a
    /// part of it dies, [`Event::NoOther`] tells, and packets go on along it. Waits for nothing.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn along(opts: ConnOpts, destination: EndpointAddr, path: &Path) -> Result<ScionConn, OpenError> {
        let port = Port::open(opts, Arc::new(PathTable::default()))?;
        let flow = port.flows.put(Flow::given(&port.local, destination, path)?);
        Ok(ScionConn { port, flow })
    }

    /// Has a connection that was opened along one path follow this one: mostly the same with other hop fields.
    ///
    /// # Errors
    /// [`RouteError`]; it keeps the path that it has.
    pub fn follow(&self, path: &Path) -> Result<(), RouteError> {
        self.flow.give(&self.port.local, path)
    }

    /// This end.
    pub fn local(&self) -> EndpointAddr {
        self.port.local.endpoint
    }

    /// The other end.
    pub fn destination(&self) -> EndpointAddr {
        self.flow.destination
    }

    /// The path in use; empty inside the AS.
    pub fn path(&self) -> Fingerprint {
        self.flow.current().path.clone()
    }

    /// When the path in use expires; `None` inside the AS.
    pub fn expiry(&self) -> Option<SystemTime> {
        self.flow.current().expiry
    }

    /// Bytes that a packet may have now, from its SCION header on.
    pub fn mtu(&self) -> u16 {
        self.flow.current().mtu
    }

    /// Bytes that a payload may have now.
    pub fn max_payload(&self) -> usize {
        self.flow.current().max_payload
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

    /// Sends a batch that `fill` writes, and waits until the kernel has all of it.
    ///
    /// # Errors
    /// [`SendError`]; with [`SendError::Full`], when the time to wait is over, `fill` was not called.
    pub fn send_batch(&self, fill: impl FnOnce(&mut Batch<'_>)) -> Result<Sent, SendError> {
        self.port.send(&self.flow, self.port.patience(), fill)
    }

    /// The same without waiting: what the kernel does not take now is left over, and goes first next time.
    ///
    /// # Errors
    /// [`SendError`]; with [`SendError::Full`], when something is left over still, `fill` was not called.
    pub fn try_send_batch(&self, fill: impl FnOnce(&mut Batch<'_>)) -> Result<Sent, SendError> {
        self.port.send(&self.flow, Wait::Never, fill)
    }

    /// Sends what is left over, without waiting; says whether all of it went.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn flush(&self) -> Result<bool, SendError> {
        self.port.sender().flush(&self.port, self.flow.destination, Wait::Never)
    }

    /// Sends one packet.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn send(&self, payload: &[u8]) -> Result<(), SendError> {
        self.port.send_one(&self.flow, self.port.patience(), payload)
    }

    /// Hands each packet of a batch to `each`, as soon as there is one, and returns how many; 0 when the time is over
    /// (`None` waits for ever). `each` must not receive from this connection.
    ///
    /// # Errors
    /// Only what makes the socket useless.
    pub fn recv_batch(&self, timeout: Option<Duration>, each: impl FnMut(Datagram<'_>)) -> io::Result<usize> {
        self.port.receive(Wait::for_time(timeout), self.known(each))
    }

    /// The same without waiting: 0 when there is nothing now.
    ///
    /// # Errors
    /// Only what makes the socket useless.
    pub fn try_recv_batch(&self, each: impl FnMut(Datagram<'_>)) -> io::Result<usize> {
        self.port.receive(Wait::Never, self.known(each))
    }

    /// Receives one packet's payload, and returns its length.
    ///
    /// # Errors
    /// [`RecvError`].
    pub fn recv(&self, payload: &mut [u8], timeout: Option<Duration>) -> Result<usize, RecvError> {
        receive_one(&self.port, payload, Wait::for_time(timeout), |datagram| self.is_known(datagram))
            .map(|(len, _)| len)
    }

    /// A sender with memory and pace of its own, for one thread: senders wait for each other only in the kernel.
    ///
    /// # Errors
    /// [`OpenError`] when the process may open no more descriptors.
    pub fn sender(&self) -> Result<Sender, OpenError> {
        let half = self.port.another_sender(self.port.opts.pace)?;
        Ok(Sender { port: Arc::clone(&self.port), flow: Arc::clone(&self.flow), half })
    }

    /// Hands on what comes from the destination.
    fn known(&self, mut each: impl FnMut(Datagram<'_>)) -> impl FnMut(Datagram<'_>) -> Take {
        move |datagram| {
            if self.is_known(&datagram) {
                each(datagram);
                Take::More
            } else {
                Take::Not
            }
        }
    }

    pub(super) fn is_known(&self, datagram: &Datagram<'_>) -> bool {
        let known = datagram.source == self.flow.destination;
        if !known {
            self.port.counters.strangers.add(1);
        }
        known
    }
}

impl AsFd for ScionConn {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.port.as_fd()
    }
}

/// One thread's way to send on a connection. Begins with nothing to send. For one thread.
#[derive(Debug)]
pub struct Sender {
    pub(super) port: Arc<Port>,
    pub(super) flow: Arc<Flow>,
    pub(super) half: TxHalf,
}

impl Sender {
    /// As [`ScionConn::send_batch`].
    ///
    /// # Errors
    /// [`SendError`].
    pub fn send_batch(&mut self, fill: impl FnOnce(&mut Batch<'_>)) -> Result<Sent, SendError> {
        self.half.send(&self.port, &self.flow, self.port.patience(), fill)
    }

    /// As [`ScionConn::try_send_batch`].
    ///
    /// # Errors
    /// [`SendError`].
    pub fn try_send_batch(&mut self, fill: impl FnOnce(&mut Batch<'_>)) -> Result<Sent, SendError> {
        self.half.send(&self.port, &self.flow, Wait::Never, fill)
    }

    /// As [`ScionConn::flush`].
    ///
    /// # Errors
    /// [`SendError`].
    pub fn flush(&mut self) -> Result<bool, SendError> {
        self.half.flush(&self.port, self.flow.destination, Wait::Never)
    }
}

/// Receives one payload of those that are `wanted`; its length and who sent it.
pub(super) fn receive_one(
    port: &Port,
    payload: &mut [u8],
    wait: Wait,
    mut wanted: impl FnMut(&Datagram<'_>) -> bool,
) -> Result<(usize, EndpointAddr), RecvError> {
    let mut got = Err(RecvError::TimedOut);
    port.receive(wait, |datagram| {
        if !wanted(&datagram) {
            return Take::Not;
        }
        let (bytes, room) = (datagram.payload.len(), payload.len());
        let Some(into) = payload.get_mut(..bytes) else {
            got = Err(RecvError::TooShort { bytes, room });
            return Take::Later;
        };
        into.copy_from_slice(datagram.payload);
        got = Ok((bytes, datagram.source));
        Take::Last
    })?;
    got
}
