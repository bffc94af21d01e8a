//! One socket of a link: opened when its place exists, closed when that goes.

use std::fmt::Display;
use std::net::SocketAddr;
use std::time::Duration;

use hawser_config::TlsName;
use hawser_core::session::{Moved, Transmit};
use hawser_core::transport::Transport;
use hawser_core::units::{Ecn, Time};
use hawser_core::wire::{DATA_HEADER_LEN, TAG_LEN};
use hawser_net::link::ip::IpLink;
use hawser_net::link::tcp::{TcpLink, TcpOpts};
use hawser_net::link::udp::{UdpLink, UdpOpts};
use hawser_net::link::{Ecn as NetEcn, Filling, Link, LinkError, MAX_DATAGRAM_BYTES, Refusal, Route, SendBatch};
use rustix::event::{PollFd, PollFlags};

use super::any_link::AnyLink;
use crate::run::interfaces::Place;
use crate::run::messages::Lost;
#[cfg(not(feature = "scion"))]
use crate::run::plan::ScionRole;
use crate::run::plan::{Carriage, SocketPlan};

/// A socket that refuses everything for this long is parked: shorter is a route being replaced.
const REFUSAL_MAX: Duration = Duration::from_millis(100);
/// A parked socket, or one that could not be opened, is tried again after this long: what stood in the way (a
/// firewall, say) may go without any word of the kernel.
const RETRY: Duration = Duration::from_secs(1);
/// The smallest datagram: one frame of one byte, sealed (docs/wire.md), in bytes.
const DATAGRAM_MIN: usize = DATA_HEADER_LEN + 1 + TAG_LEN;
/// Refusals as too long that are kept for the core in one round; one for each path would do.
const TOO_BIG_MAX: usize = 16;

/// How a socket stands.
///
/// ```text
///            open                 everything is refused for 100 ms
///  Closed ---------> Open -----------------------------> Parked
///    ^ |              | ^                                  | |
///    +-+ again, 1 s   | +----------------------------------+ |
///    ^                |       after 1 s, or news of its place|
///    +----------------+--------------------------------------+
///          its place goes, or an error of the socket
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There is no socket. It is tried again at this time; without one, when its place appears.
    Closed(Option<Time>),
    /// It can be used.
    Open,
    /// It is there and left alone until this time.
    Parked(Time),
}

/// A planned socket. At first closed; the packet thread owns it.
pub struct LinkSocket {
    pub plan: SocketPlan,
    pub standing: Standing,
    /// Where it is, or was last.
    pub place: Option<Place>,
    pub link: Option<AnyLink>,
    /// Datagrams of `size` bytes to `remote` were refused as too long.
    pub too_big: Vec<(SocketAddr, u16)>,
    /// What the core was told: none, or whether it is usable.
    pub told: Option<bool>,
    /// How its address changed since the core was told.
    pub moved: Option<Moved>,
    /// Streams that went with the link, of which the core was not told.
    pub lost_streams: Vec<SocketAddr>,
    /// When the log was last told of TLS that was not agreed on.
    pub tls_told: Option<Time>,
    /// Its SCION paths.
    #[cfg(feature = "scion")]
    pub ways: super::ways::Ways,
    findings_told: bool,
    batch: SendBatch,
    /// It takes no more now; it is watched until it does.
    blocked: bool,
    refused_since: Option<Time>,
    refused_bytes: u64,
    /// Datagrams lost by sockets that are closed now.
    drops_before: u64,
    /// Connections refused by them.
    refused_before: u64,
}

impl LinkSocket {
    pub fn new(plan: SocketPlan) -> Self {
        Self {
            plan,
            standing: Standing::Closed(None),
            place: None,
            link: None,
            too_big: Vec::with_capacity(TOO_BIG_MAX),
            told: None,
            moved: None,
            lost_streams: Vec::new(),
            tls_told: None,
            #[cfg(feature = "scion")]
            ways: super::ways::Ways::default(),
            findings_told: false,
            batch: SendBatch::new(),
            blocked: false,
            refused_since: None,
            refused_bytes: 0,
            drops_before: 0,
            refused_before: 0,
        }
    }

    /// Opens a socket at `place`, on the port of the last one if it can have it. The old one is closed.
    pub fn open(&mut self, place: Place) -> Result<(), LinkError> {
        self.close(None);
        let last = self.place.map_or(place.local.port(), |last| last.local.port());
        let link = match bind(&self.plan, SocketAddr::new(place.local.ip(), last)) {
            Err(LinkError::Bind { .. }) if last != self.plan.port => bind(&self.plan, place.local)?,
            other => other?,
        };
        if !std::mem::replace(&mut self.findings_told, true) {
            for finding in link.findings() {
                tracing::warn!(link = self.plan.name, %finding, "link works, and worse");
            }
        }
        let now = Place { interface: place.interface, local: link.local_addr() };
        tracing::info!(link = self.plan.name, local = %now.local, "link open");
        self.moved = self.place.and_then(|last| Moved::between(last.local, now.local));
        self.place = Some(now);
        self.link = Some(link);
        self.standing = Standing::Open;
        #[cfg(feature = "scion")]
        super::ways::lay(self);
        Ok(())
    }

    /// Closes the socket.
    pub fn close(&mut self, retry: Option<Time>) {
        if let Some(mut link) = self.link.take() {
            self.drops_before += link.kernel_drops();
            self.refused_before += link.connections_refused();
            self.lost_streams.extend(link.streams().iter().flat_map(|streams| streams.remotes()));
        }
        self.batch.clear();
        (self.blocked, self.refused_since) = (false, None);
        self.standing = Standing::Closed(retry);
    }

    /// Closes a socket that failed, to be tried again.
    pub fn fail(&mut self, now: Time, error: &dyn Display) {
        tracing::warn!(link = self.plan.name, %error, "link failed, it is opened anew");
        self.close(Some(now + RETRY));
    }

    /// When a socket that could not be opened is tried again.
    pub fn retry_later(&mut self, now: Time) {
        self.standing = Standing::Closed(Some(now + RETRY));
    }

    /// Whether the core may use it.
    pub fn is_usable(&self) -> bool {
        self.standing == Standing::Open
    }

    /// When something is to be tried again.
    pub fn retry_at(&self) -> Option<Time> {
        match self.standing {
            Standing::Open => None,
            Standing::Closed(retry) => retry,
            Standing::Parked(until) => Some(until),
        }
    }

    /// Sends what is there if there is no room for a batch.
    pub fn make_room(&mut self, now: Time) {
        if self.batch.room() < hawser_net::link::SPARE_BYTES {
            self.flush(now);
        }
    }

    /// Room for a batch to `remote`; sends what is there first if it fills the room.
    pub fn spare(&mut self, now: Time, remote: SocketAddr) -> Option<&mut [u8]> {
        self.make_room(now);
        self.lane().into_spare(remote)
    }

    /// Adds what was written to the spare room, with what the link needs before it.
    pub fn commit(&mut self, transmit: &Transmit) {
        let added = self.lane().commit(transmit).is_some();
        debug_assert!(added, "spare room is room for a run");
    }

    /// The batch, to be added to.
    pub fn lane(&mut self) -> Lane<'_> {
        let usable = self.is_usable() && !self.blocked;
        let Self { batch, link, plan, .. } = self;
        Lane { batch: batch.filling(), usable, link: link.as_mut(), transport: plan.carriage.core() }
    }

    /// Bytes that the link writes before each datagram.
    fn room_before(&self, remote: &SocketAddr) -> usize {
        self.plan.carriage.core().room_before(remote)
    }

    /// Sends the batch, as far as the socket takes it.
    pub fn flush(&mut self, now: Time) {
        if self.batch.is_empty() {
            return;
        }
        let Some(link) = &mut self.link else { return self.batch.clear() };
        match link.send(&mut self.batch) {
            Err(error) => self.fail(now, &error),
            Ok(outcome) => {
                if outcome.segmentation_lost {
                    tracing::warn!(
                        link = self.plan.name,
                        "link sends without udp gso from now on: the way out refuses it"
                    );
                }
                self.mind_failures(now, outcome.sent_bytes);
                self.blocked = outcome.blocked;
            }
        }
    }

    /// The socket may take more again.
    pub fn on_writable(&mut self, now: Time) {
        self.flush(now);
        self.blocked &= !self.batch.is_empty();
    }

    /// Whether it has received what it did not hand out yet.
    pub fn has_more(&mut self) -> bool {
        self.link.as_mut().and_then(AnyLink::streams).is_some_and(|streams| streams.has_more())
    }

    /// Datagrams that the kernel dropped before this portal saw them.
    pub fn kernel_drops(&self) -> u64 {
        self.drops_before + self.link.as_ref().map_or(0, Link::kernel_drops)
    }

    /// What is waited for, where there is a socket.
    pub fn watched(&self) -> Option<PollFd<'_>> {
        let flags = if self.blocked { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        self.link.as_ref().map(|link| PollFd::new(link, flags))
    }

    fn mind_failures(&mut self, now: Time, sent_bytes: usize) {
        let mut refused = false;
        for failure in self.batch.failures() {
            self.refused_bytes += failure.bytes as u64;
            match failure.reason {
                Refusal::TooBig if self.too_big.len() < TOO_BIG_MAX => {
                    let size = failure.segment_size.saturating_sub(self.room_before(&failure.route.remote));
                    let size = u16::try_from(size).unwrap_or(u16::MAX);
                    self.too_big.push((failure.route.remote, size));
                }
                Refusal::Unreachable | Refusal::NoDevice | Refusal::NotPermitted => refused = true,
                _ => {}
            }
        }
        if sent_bytes > 0 {
            self.refused_since = None;
        } else if refused && self.plan.opens() {
            let since = *self.refused_since.get_or_insert(now);
            if now.since(since) >= REFUSAL_MAX && self.is_usable() {
                tracing::debug!(link = self.plan.name, "everything is refused, link is left alone for a moment");
                self.standing = Standing::Parked(now + RETRY);
                self.refused_since = None;
            }
        }
    }

    /// Adds what was lost here.
    pub fn add_lost(&self, lost: &mut Lost) {
        lost.kernel_dropped += self.kernel_drops();
        lost.connections_refused += self.refused_before + self.link.as_ref().map_or(0, AnyLink::connections_refused);
        lost.send_refused_bytes += self.refused_bytes;
    }
}

/// A socket's batch while it is added to. Made by [`LinkSocket::lane`], which it borrows.
pub struct Lane<'a> {
    batch: Filling<'a>,
    usable: bool,
    link: Option<&'a mut AnyLink>,
    transport: Transport,
}

impl<'a> Lane<'a> {
    /// Whether there is room for a batch, or none is asked for.
    pub fn has_room(&self) -> bool {
        !self.usable || self.batch.has_room()
    }

    /// Room for a batch to `remote`.
    pub fn spare(&mut self, remote: SocketAddr) -> Option<&mut [u8]> {
        let room_before = self.takes(remote)?;
        self.batch.spare()?.get_mut(room_before..)
    }

    fn into_spare(mut self, remote: SocketAddr) -> Option<&'a mut [u8]> {
        let room_before = self.takes(remote)?;
        self.batch.into_spare()?.get_mut(room_before..)
    }

    /// Adds what was written to the spare room, with what the link needs before it; gives what was written.
    pub fn commit(&mut self, transmit: &Transmit) -> Option<&'a mut [u8]> {
        let Transmit { remote, source, segment_size, len, apart, .. } = *transmit;
        let route = Route { remote, source, ecn: net_ecn(transmit.ecn) };
        let room_before = self.transport.room_before(&remote);
        let added = self.batch.add(route, room_before + segment_size, room_before + len, apart);
        added.ok()?.get_mut(room_before..)
    }

    /// Bytes that the link writes before each datagram, if it takes any for there.
    fn takes(&mut self, remote: SocketAddr) -> Option<usize> {
        let streams = self.link.as_mut().and_then(|link| link.streams());
        let takes = self.usable && streams.is_none_or(|streams| streams.has_room(remote));
        takes.then(|| self.transport.room_before(&remote))
    }
}

/// Opens the link of a plan at an address.
fn bind(plan: &SocketPlan, local: SocketAddr) -> Result<AnyLink, LinkError> {
    let mut opts = UdpOpts::new(local);
    opts.interface.clone_from(&plan.interface);
    opts.mark = Some(plan.mark.0);
    match &plan.carriage {
        Carriage::Udp => UdpLink::bind(opts).map(AnyLink::Udp),
        Carriage::Ip(protocol) => IpLink::bind(opts, *protocol).map(AnyLink::Ip),
        Carriage::Tcp { congestion, tls } => TcpLink::bind(TcpOpts {
            local,
            interface: plan.interface.clone(),
            mark: Some(plan.mark.0),
            listens: !plan.opens(),
            congestion: congestion.as_ref().map(|name| name.as_str().to_owned()),
            tls: tls.is_some(),
            tls_name: tls.as_ref().and_then(TlsName::as_str).map(str::to_owned),
            sizes: DATAGRAM_MIN..=plan.carriage.core().fixed_size().map_or(MAX_DATAGRAM_BYTES, usize::from),
        })
        .map(AnyLink::Tcp),
        #[cfg(feature = "scion")]
        Carriage::Scion(role) => super::ways::bind(opts, plan.id, role),
        #[cfg(not(feature = "scion"))]
        Carriage::Scion(ScionRole::Calls { paths, .. }) => match *paths {},
        #[cfg(not(feature = "scion"))]
        Carriage::Scion(ScionRole::Listens(endpoint)) => match *endpoint {},
    }
}

fn net_ecn(ecn: Ecn) -> NetEcn {
    NetEcn::from_tos(ecn.bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_kinds_of_marks_mean_the_same() {
        for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            assert_eq!(Ecn::from_bits(net_ecn(ecn) as u8), ecn);
        }
    }
}
