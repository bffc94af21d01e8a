//! The engine's world: SCION sockets, what collects packets for TUN devices, and the threads around.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use hawser_core::packet::Coalescer;
use hawser_core::units::Time;
use hawser_net::link::LinkError;
use hawser_scion::conn::{
    Batch, ConnOpts, DeadPart, OpenError, PathTable, PushError, RouteError, ScionConn, ScionSocket, SendError,
    TcpPackets, WayBack,
};
use hawser_scion::{EndpointAddr, IsdAs, Path};
use rustix::io::Errno;

use super::finder::Finder;
use crate::compress::Datagrams;
use crate::engine::{ConnId, Control, Drop as Dropped, NotOpened, Notice, Outside, Sent, Snapshot, Via};
use crate::route::InterfaceIndex;
use crate::translate::OuterPort;

/// How often memory that was not used is given back.
const TRIM: Duration = Duration::from_secs(1);
/// How often a connection that cannot be opened is worth a warning: while descriptors lack, each new flow meets one.
const WARN: Duration = Duration::from_secs(10);

/// A connection, and whether something of it is left over.
#[derive(Debug)]
struct Open {
    conn: Arc<ScionConn>,
    is_full: bool,
}

/// The engine's world. Has no connections at first. The packet thread owns it.
#[derive(Debug)]
pub(super) struct World {
    socket: Arc<ScionSocket>,
    is_port_full: bool,
    opts: ConnOpts,
    conns: Vec<Option<Open>>,
    /// Where segments of TCP come to, beside the shim's port, by port.
    tcp: BTreeMap<u16, Arc<ScionSocket>>,
    homes: Vec<Coalescer>,
    finder: Finder,
    notices: SyncSender<Notice>,
    refused_by_tun: u64,
    lost_notices: u64,
    trimmed: Time,
    warned: Option<Instant>,
}

impl World {
    pub fn new(
        socket: Arc<ScionSocket>,
        opts: ConnOpts,
        tcp: Vec<ScionSocket>,
        homes: Vec<Coalescer>,
        finder: Finder,
        notices: SyncSender<Notice>,
    ) -> Self {
        Self {
            socket,
            is_port_full: false,
            opts,
            conns: Vec::new(),
            tcp: tcp.into_iter().map(|socket| (socket.local().host.port(), Arc::new(socket))).collect(),
            homes,
            finder,
            notices,
            refused_by_tun: 0,
            lost_notices: 0,
            trimmed: Time::ZERO,
            warned: None,
        }
    }

    pub fn conn(&self, id: ConnId) -> Option<Arc<ScionConn>> {
        self.conns.get(id.0)?.as_ref().map(|open| Arc::clone(&open.conn))
    }

    /// All connections, and whether something of them is left over.
    pub fn conns(&self) -> impl Iterator<Item = (ConnId, &ScionConn, bool)> {
        let open = self.conns.iter().enumerate();
        open.filter_map(|(place, open)| open.as_ref().map(|open| (ConnId(place), &*open.conn, open.is_full)))
    }

    pub fn tcp(&self, port: u16) -> Option<Arc<ScionSocket>> {
        self.tcp.get(&port).map(Arc::clone)
    }

    /// The sockets to which segments of TCP come, by port.
    pub fn tcps(&self) -> impl Iterator<Item = (u16, &ScionSocket)> {
        self.tcp.iter().map(|(port, socket)| (*port, &**socket))
    }

    pub const fn is_port_full(&self) -> bool {
        self.is_port_full
    }

    pub fn homes(&mut self) -> &mut [Coalescer] {
        &mut self.homes
    }

    pub fn refused_by_tun(&mut self, packets: u64) {
        self.refused_by_tun += packets;
    }

    /// Sends what is left over.
    pub fn flush(&mut self, id: ConnId) {
        if let Some(open) = self.conns.get_mut(id.0).and_then(Option::as_mut) {
            // What is refused for good is not left over.
            open.is_full = !open.conn.flush().unwrap_or(true);
        }
    }

    pub fn flush_port(&mut self) {
        self.is_port_full = !self.socket.flush().unwrap_or(true);
    }

    /// A router says that a part of paths is dead.
    pub fn report(&self, part: DeadPart) {
        self.finder.report(part);
    }

    /// Gives memory back that was not used of late.
    pub fn trim(&mut self, now: Time) {
        if now.since(self.trimmed) >= TRIM {
            self.trimmed = now;
            self.homes.iter_mut().for_each(Coalescer::trim);
        }
    }

    fn may_warn(&mut self) -> bool {
        let may = self.warned.is_none_or(|warned| warned.elapsed() >= WARN);
        if may {
            self.warned = Some(Instant::now());
        }
        may
    }

    /// Adds to a snapshot what the engine does not know.
    pub fn complete(&self, mut snapshot: Snapshot) -> Snapshot {
        let malformed: u64 = self.homes.iter().map(Coalescer::dropped).sum();
        snapshot.counters.add(Dropped::TunRefused, self.refused_by_tun + malformed);
        snapshot.counters.lost_notices = self.lost_notices;
        snapshot
    }
}

/// Bytes that a datagram may have.
pub(super) fn room_of(conn: &ScionConn) -> u16 {
    u16::try_from(conn.max_payload()).unwrap_or(u16::MAX)
}

/// What an engine is told where a connection was not opened.
fn not_opened(error: &OpenError) -> NotOpened {
    let lacks_room = match error {
        OpenError::NoFreePort { .. } => true,
        // No descriptor is left in the process or the system, no memory (socket(2)), or no port (bind(2)).
        OpenError::Link(LinkError::Bind { source, .. } | LinkError::Socket { source, .. }) => matches!(
            Errno::from_io_error(source),
            Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::ADDRINUSE)
        ),
        _ => false,
    };
    if lacks_room { NotOpened::NoRoom } else { NotOpened::Refused }
}

/// Sends what was written by `send`, in as many batches as it takes, each added by `add`; says whether all went.
fn send_all<'d>(
    written: impl Iterator<Item = &'d [u8]>,
    add: impl Fn(&mut Batch<'_>, &[u8]) -> Result<(), PushError>,
    mut send: impl FnMut(&mut dyn FnMut(&mut Batch<'_>)) -> Result<hawser_scion::conn::Sent, SendError>,
) -> (Sent, bool) {
    let mut left = written.peekable();
    let (mut is_full, mut too_long) = (false, false);
    while left.peek().is_some() {
        let mut fill = |batch: &mut Batch<'_>| {
            while let Some(one) = left.peek() {
                match add(batch, one) {
                    Err(PushError::Full) => return,
                    Err(PushError::TooLong { .. }) => too_long = true,
                    Ok(()) => {}
                }
                left.next();
            }
        };
        match send(&mut fill) {
            Ok(sent) => is_full |= sent.left_over,
            Err(SendError::Full { .. }) => return (Sent::Full, true),
            Err(SendError::Route(RouteError::Expired { .. })) => return (Sent::Expired, is_full),
            // Some were refused: the others may go.
            Err(_) => too_long = true,
        }
        if too_long && !is_full {
            return (Sent::Refused, is_full);
        }
    }
    (if too_long { Sent::Refused } else { Sent::All }, is_full)
}

fn datagram(batch: &mut Batch<'_>, bytes: &[u8]) -> Result<(), PushError> {
    batch.copy(bytes)
}

impl World {
    /// Sends what was written, each added to a batch by `add`.
    fn send_by(
        &mut self,
        via: Via,
        written: &Datagrams,
        add: impl Fn(&mut Batch<'_>, &[u8]) -> Result<(), PushError>,
    ) -> Sent {
        match via {
            Via::Conn(id) => {
                let Some(open) = self.conns.get_mut(id.0).and_then(Option::as_mut) else { return Sent::Refused };
                let conn = Arc::clone(&open.conn);
                let (sent, is_full) = send_all(written.iter(), add, |fill| conn.try_send_batch(fill));
                open.is_full = is_full;
                sent
            }
            Via::Back(way) => {
                let (sent, is_full) = send_all(written.iter(), add, |fill| self.socket.try_send_batch_back(way, fill));
                self.is_port_full = is_full;
                sent
            }
        }
    }
}

impl Outside for World {
    fn random(&mut self) -> u64 {
        let mut bytes = [0; 8];
        // It worked when the process started; without it no id would be hard to guess.
        getrandom::fill(&mut bytes).expect("the system gives random bytes");
        u64::from_ne_bytes(bytes)
    }

    fn open(&mut self, id: ConnId, to: EndpointAddr, path: &Path) -> Result<u16, NotOpened> {
        let mut opts = self.opts.clone();
        opts.local.host.set_port(0);
        let conn = if path.dataplane.is_empty() {
            ScionConn::open(opts, to, Arc::new(PathTable::default()))
        } else {
            ScionConn::along(opts, to, path)
        };
        let conn = match conn {
            Ok(conn) => conn,
            Err(error) => {
                let why = not_opened(&error);
                let (path, error) = (&path.interfaces, &error as &dyn std::error::Error);
                if self.may_warn() {
                    tracing::warn!(%to, %path, error, "no connection could be opened");
                } else {
                    tracing::debug!(%to, %path, error, "no connection could be opened");
                }
                return Err(why);
            }
        };
        let room = room_of(&conn);
        if self.conns.len() <= id.0 {
            self.conns.resize_with(id.0 + 1, || None);
        }
        self.conns[id.0] = Some(Open { conn: Arc::new(conn), is_full: false });
        Ok(room)
    }

    fn follow(&mut self, id: ConnId, path: &Path) -> Option<u16> {
        let conn = self.conn(id)?;
        conn.follow(path).ok()?;
        Some(room_of(&conn))
    }

    fn close(&mut self, id: ConnId) {
        self.conns.get_mut(id.0).into_iter().for_each(|open| *open = None);
    }

    fn room_back(&mut self, way: WayBack) -> Option<u16> {
        self.socket.max_payload_back(way).ok().map(|room| u16::try_from(room).unwrap_or(u16::MAX))
    }

    fn send(&mut self, via: Via, datagrams: &Datagrams) -> Sent {
        self.send_by(via, datagrams, datagram)
    }

    fn send_segments(&mut self, via: Via, segments: &Datagrams, class: u8) -> Sent {
        self.send_by(via, segments, |batch, segment| batch.copy_tcp(segment, class))
    }

    fn open_port(&mut self) -> Option<OuterPort> {
        let mut opts = ConnOpts { tcp: TcpPackets::Only, ..self.opts.clone() };
        opts.local.host.set_port(0);
        match ScionSocket::bind(opts, Arc::new(PathTable::default())) {
            Ok(socket) => {
                let port = socket.local().host.port();
                self.tcp.insert(port, Arc::new(socket));
                Some(OuterPort(port))
            }
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, "no port for segments");
                None
            }
        }
    }

    fn close_port(&mut self, port: OuterPort) {
        self.tcp.remove(&port.0);
    }

    fn send_control(&mut self, via: Via, control: &Control) -> Sent {
        let one = || std::iter::once(control.bytes());
        match via {
            Via::Conn(id) => self
                .conn(id)
                .map_or(Sent::Refused, |conn| send_all(one(), datagram, |fill| conn.try_send_batch(fill)).0),
            Via::Back(way) => send_all(one(), datagram, |fill| self.socket.try_send_batch_back(way, fill)).0,
        }
    }

    fn deliver(&mut self, interface: InterfaceIndex, packet: &[u8], partial: bool) {
        if let Some(home) = self.homes.get_mut(usize::from(interface.get())) {
            home.push(packet, partial);
        }
    }

    fn ask(&mut self, isd_as: IsdAs) {
        self.finder.ask(isd_as);
    }

    fn forget(&mut self, isd_as: IsdAs) {
        self.finder.forget(isd_as);
    }

    fn tell(&mut self, notice: Notice) {
        if self.notices.try_send(notice).is_err() {
            self.lost_notices += 1;
        }
    }
}

#[cfg(test)]
#[path = "world_tests.rs"]
mod tests;
