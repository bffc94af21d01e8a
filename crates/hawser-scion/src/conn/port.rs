//! What connections and sockets have in common: one UDP port, its two halves, and the ways from it.
//!
//! 1. [`Port::open`] binds it and says what works worse than it could.
//! 2. [`Port::flow_to`] finds the way to a destination.
//! 3. [`Port::send`] and [`Port::receive`] take a half for one batch.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hawser_net::link::udp::UdpLink;
use hawser_net::link::{Link, LinkError};
use rustix::event::PollFlags;

use super::counters::Counters;
use super::dead::DeadParts;
use super::error::{OpenError, RouteError, SendError};
use super::events::Events;
use super::flow::{Around, Flow};
use super::flows::{Flows, Key, WayBack};
use super::keeper::Keeper;
use super::opts::{ConnOpts, Finding, PortRange, TcpPackets};
use super::paths::Paths;
use super::receive::{Datagram, RxHalf, Take};
use super::renewal::Chance;
use super::scmp::Guesses;
use super::send::{Batch, Sent, TxHalf, Wait};
use super::way::{Local, Now};
use super::{END_HOST_PORT, Pace};
use crate::addr::EndpointAddr;
use crate::packet::FlowId;

/// A UDP port that speaks SCION. Begins without destinations. For several threads: each half has a lock,
/// which is held for one batch.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) local: Local,
    pub(super) verify: bool,
    pub(super) tcp: TcpPackets,
    pub(super) counters: Counters,
    pub(super) events: Events,
    pub(super) dead: Mutex<DeadParts>,
    pub(super) flows: Flows,
    pub(super) guesses: Guesses,
    pub(super) paths: Arc<dyn Paths>,
    pub(super) keeper: Arc<Keeper>,
    pub(super) opts: ConnOpts,
    findings: Vec<Finding>,
    /// The socket, to wait on and to be opened once more.
    link: UdpLink,
    sender: Mutex<TxHalf>,
    receiver: Mutex<RxHalf>,
}

impl Port {
    /// Step 1.
    pub(super) fn open(opts: ConnOpts, paths: Arc<dyn Paths>) -> Result<Arc<Port>, OpenError> {
        if opts.local.host.ip().is_unspecified() || opts.local.isd_as.is_wildcard() {
            return Err(OpenError::Unspecified { local: opts.local });
        }
        let link = bind(&opts)?;
        let port = link.local_addr().port();
        let mut findings: Vec<Finding> = link.findings().iter().cloned().map(Finding::Link).collect();
        if let Some(PortRange { first, last }) = opts.dispatched.filter(|range| !range.contains(port)) {
            findings.push(Finding::NotDispatched { port, first, last });
        }
        let host = SocketAddr::new(opts.local.host.ip(), port);
        let local = Local {
            endpoint: EndpointAddr::new(opts.local.isd_as, host),
            mtu: opts.mtu,
            dispatched: opts.dispatched,
            traffic_class: opts.traffic_class,
            flow: FlowId::from_hash(random() as u32),
        };
        Ok(Arc::new(Port {
            local,
            verify: opts.verify,
            tcp: opts.tcp,
            counters: Counters::default(),
            events: Events::default(),
            dead: Mutex::default(),
            flows: Flows::default(),
            guesses: Guesses::default(),
            paths,
            keeper: Arc::default(),
            findings,
            sender: Mutex::new(TxHalf::new(link.try_clone()?, opts.pace)),
            receiver: Mutex::new(RxHalf::new(link.try_clone()?)),
            link,
            opts,
        }))
    }

    /// What works worse than it could.
    pub(super) fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Step 2: the flow to a destination; `may_ask` and so wait for an answer if it is new.
    pub(super) fn flow_to(self: &Arc<Port>, destination: EndpointAddr, may_ask: bool) -> Result<Arc<Flow>, RouteError> {
        if let Some(flow) = self.flows.get(&Key::To(destination))
            && !(flow.is_learned() && flow.way(Now::read().wall).is_err())
        {
            return Ok(flow);
        }
        if destination.isd_as.is_wildcard() {
            return Err(RouteError::Wildcard { destination });
        }
        if destination.isd_as == self.local.endpoint.isd_as {
            return Ok(self.flows.put(Flow::inside(&self.local, destination)?));
        }
        if !may_ask {
            return Err(RouteError::NotLookedUp { destination });
        }
        let known = self.paths.paths(destination.isd_as)?;
        let flow = self.flows.put(Flow::looked_up(self.around(), destination, known, chance())?);
        // Without the thread the path holds until its expiry, which the sender is then told.
        if let Err(error) = self.keeper.start(Arc::downgrade(self)) {
            flow.failed(self.around(), format!("start the thread that renews paths: {error}"));
        }
        Ok(flow)
    }

    /// Learns the way back along which a packet came, unless a better one is known.
    pub(super) fn learn(&self, datagram: &Datagram<'_>) {
        let key = Key::To(datagram.source);
        let raw = datagram.packet.dataplane();
        let known = self.flows.get(&key);
        if known.is_some_and(|flow| !flow.learned_another(raw.as_bytes())) {
            return;
        }
        self.flow_back(key, datagram).into_iter().for_each(|flow| drop(self.flows.put(flow)));
    }

    /// Keeps a way back, beside all others to the same end.
    pub(super) fn keep(&self, way: WayBack, datagram: &Datagram<'_>) {
        let key = Key::Back(way);
        if self.flows.get(&key).is_none() {
            self.flow_back(key, datagram).into_iter().for_each(|flow| drop(self.flows.put(flow)));
        }
    }

    /// The way back that was kept, unless its hop fields expired: another one to the same end may be a forger's.
    pub(super) fn kept(&self, way: WayBack) -> Result<Arc<Flow>, RouteError> {
        let flow = self.flows.get(&Key::Back(way)).filter(|flow| flow.way(Now::read().wall).is_ok());
        flow.ok_or(RouteError::NotLookedUp { destination: way.end })
    }

    /// The way back to whoever sent a packet.
    pub(super) fn flow_back(&self, key: Key, datagram: &Datagram<'_>) -> Option<Flow> {
        let source = datagram.source;
        if datagram.packet.dataplane().as_bytes().is_empty() {
            // The shim may have handed it on: inside the AS the source is reached directly.
            let is_inside = source.isd_as == self.local.endpoint.isd_as;
            let way = is_inside.then(|| self.local.inside(source).ok()).flatten()?;
            return Some(Flow::back_inside(key, way));
        }
        self.way_back(key, datagram)
    }

    /// The way back along a packet's path, through the router that handed it on; none if the shim did.
    fn way_back(&self, key: Key, datagram: &Datagram<'_>) -> Option<Flow> {
        let remote = datagram.remote;
        let by_shim = remote.port() == END_HOST_PORT
            && (remote.ip() == self.local.endpoint.host.ip() || remote.ip().is_loopback());
        if by_shim {
            return None;
        }
        let raw = datagram.packet.dataplane();
        let back = raw.reversed().ok()?;
        let mut way = self.local.way(datagram.source, &back, remote, self.local.mtu).ok()?;
        way.expiry = raw.expiry();
        Some(Flow::learned(key, way, raw.as_bytes()))
    }

    /// Step 3: sends a batch, through the half that all share.
    pub(super) fn send(&self, flow: &Flow, wait: Wait, fill: impl FnOnce(&mut Batch<'_>)) -> Result<Sent, SendError> {
        self.sender().send(self, flow, wait, fill)
    }

    /// Step 3: sends one packet.
    pub(super) fn send_one(&self, flow: &Flow, wait: Wait, payload: &[u8]) -> Result<(), SendError> {
        let mut added = Ok(());
        let _ = self.send(flow, wait, |batch| added = batch.copy(payload))?;
        added.map_err(|error| error.for_destination(flow.destination))
    }

    /// Step 3: sends one packet now; what the kernel does not take is left over, as of a batch.
    pub(super) fn send_now(&self, flow: &Flow, payload: &[u8]) -> Result<(), SendError> {
        let mut added = Ok(());
        let _ = self.send(flow, Wait::Never, |batch| added = batch.copy(payload))?;
        added.map_err(|error| error.for_destination(flow.destination))
    }

    /// Step 3: receives a batch as soon as there is one; 0 when the time is over.
    pub(super) fn receive(&self, wait: Wait, mut accept: impl FnMut(Datagram<'_>) -> Take) -> io::Result<usize> {
        loop {
            let taken = self.receiver().each(self, &mut accept)?;
            if taken > 0 {
                return Ok(taken);
            }
            let ready = wait.wait(&self.link, PollFlags::IN)?;
            if ready.intersects(PollFlags::ERR) || wait == Wait::Never {
                self.receiver().tell_errors(self)?;
            }
            if ready.is_empty() {
                return Ok(0);
            }
        }
    }

    /// Another sending half, for a thread of its own.
    pub(super) fn another_sender(&self, pace: Option<Pace>) -> Result<TxHalf, LinkError> {
        Ok(TxHalf::new(self.link.try_clone()?, pace))
    }

    pub(super) fn sender(&self) -> MutexGuard<'_, TxHalf> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn receiver(&self) -> MutexGuard<'_, RxHalf> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What decisions about flows need.
    pub(super) fn around(&self) -> Around<'_> {
        Around { local: &self.local, dead: &self.dead, events: &self.events, now: Now::read() }
    }

    /// How long sending may wait, by the options.
    pub(super) fn patience(&self) -> Wait {
        Wait::for_time(self.opts.send_timeout)
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.keeper.end();
    }
}

/// Binds to the port asked for, or to a free one that packets come to directly.
fn bind(opts: &ConnOpts) -> Result<UdpLink, OpenError> {
    let asked = opts.local.host.port();
    let Some(range) = opts.dispatched.filter(|_| asked == 0) else {
        return Ok(UdpLink::bind(opts.udp(asked))?);
    };
    let count = u64::from(range.last.saturating_sub(range.first)) + 1;
    let start = random() % count;
    for step in 0..count {
        let port = range.first + ((start + step) % count) as u16;
        match UdpLink::bind(opts.udp(port)) {
            Err(LinkError::Bind { source, .. }) if source.kind() == io::ErrorKind::AddrInUse => {}
            bound => return Ok(bound?),
        }
    }
    Err(OpenError::NoFreePort { local: opts.local, range })
}

/// A number by chance: the standard library's own keys for hash tables are random.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

pub(super) fn chance() -> Chance {
    Chance(random() as f64 / u64::MAX as f64)
}
