//! The link watch: what the kernel says of interfaces, addresses, routes and rules as it happens.
//!
//! 1. [`LinkWatch::open`] subscribes first and asks later, so that nothing falls in between.
//! 2. Everything is dumped, and what differs from what is known becomes events: at first, all of it.
//! 3. Messages are read as they come. Interfaces and addresses are told at once, routes gathered for a few
//!    milliseconds.
//! 4. If the socket overran or a message made no sense, the rest is thrown away and all begins again at 2.
//!
//! A dump may show a state that queued messages lead to once more; they end in that same state, or a later one.

use std::{io, time::Duration};

use futures_util::{StreamExt, pin_mut};
use netlink_packet_route::{RouteNetlinkMessage, address::AddressMessage, link::LinkMessage};
use netlink_sys::{AsyncSocket, AsyncSocketExt, SocketAddr, TokioSocket, protocols::NETLINK_ROUTE};
use rtnetlink::{
    Handle, MulticastGroup,
    packet_core::{NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkBuffer, NetlinkMessage, NetlinkPayload},
};
use tokio::time::Instant;

use super::{
    error::NetConfigError,
    events::EventSender,
    rtnl::{interface_address, link_info},
    snapshot::{Fact, LinkEvent, Snapshot},
    types::IfIndex,
};

/// What is listened to (linux/rtnetlink.h).
const GROUPS: [MulticastGroup; 7] = [
    MulticastGroup::Link,
    MulticastGroup::Ipv4Ifaddr,
    MulticastGroup::Ipv6Ifaddr,
    MulticastGroup::Ipv4Route,
    MulticastGroup::Ipv6Route,
    MulticastGroup::Ipv4Rule,
    MulticastGroup::Ipv6Rule,
];
/// Route and rule messages, of which only the fact counts (linux/rtnetlink.h): RTM_NEWROUTE, RTM_DELROUTE, RTM_NEWRULE,
/// RTM_DELRULE.
const ROUTE_MESSAGES: [u16; 4] = [24, 25, 32, 33];
/// Link and address messages (linux/rtnetlink.h): RTM_NEWLINK, RTM_DELLINK, RTM_NEWADDR, RTM_DELADDR.
const LINK_MESSAGES: [u16; 4] = [16, 17, 20, 21];
/// Route changes within this time of the first are told as one: an interface that comes up brings half a dozen at once.
const ROUTE_GATHERING: Duration = Duration::from_millis(3);
/// Receive buffer of the socket, in bytes: some hundred link messages of 1.5 KiB, before an overrun costs a dump.
const RECEIVE_BUFFER: usize = 1 << 20;
/// Space for one datagram, in bytes: twice the 32 KiB that the kernel fills at most (netlink(7), NLMSG_GOODSIZE).
const DATAGRAM: usize = 1 << 16;
/// Datagrams read before events are handed out, so that a flood cannot hold them back.
const DATAGRAMS_AT_ONCE: usize = 64;
/// Dumps tried until one is not interrupted by a change; the last one is taken as it is, for messages tell the rest.
const DUMP_TRIES: usize = 8;
/// Netlink messages begin at multiples of this many bytes (NLMSG_ALIGNTO, linux/netlink.h).
const ALIGN: usize = 4;

/// How to watch. The default suits a portal; tests make the buffer tiny. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchOptions {
    /// Receive buffer of the socket, in bytes.
    pub receive_buffer: usize,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self { receive_buffer: RECEIVE_BUFFER }
    }
}

/// A watch over interfaces, addresses and routes of the network namespace it was opened in.
/// A new one knows nothing: its first events tell all there is. Belongs to one task of the runtime that opened it.
pub struct LinkWatch {
    socket: TokioSocket,
    dumps: Handle,
    buffer: Box<[u8]>,
    known: Snapshot,
    events: Vec<LinkEvent>,
    /// What is known must be asked anew.
    stale: bool,
    overruns: u64,
    routes_due: Option<Instant>,
}

impl LinkWatch {
    /// Subscribes, in the network namespace of the calling thread.
    pub fn open(options: WatchOptions) -> Result<Self, NetConfigError> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| NetConfigError::NoRuntime)?;
        let open = || {
            let socket = subscribe(options)?;
            let (mut connection, dumps, _) = rtnetlink::new_connection()?;
            // The end of a dump says whether it was interrupted.
            connection.set_forward_done(true);
            runtime.spawn(connection);
            Ok((socket, dumps))
        };
        let (socket, dumps) = open().map_err(|source| failed("open", source))?;
        Ok(Self {
            socket,
            dumps,
            buffer: vec![0; DATAGRAM].into(),
            known: Snapshot::default(),
            events: Vec::new(),
            stale: true,
            overruns: 0,
            routes_due: None,
        })
    }

    /// Waits for something to happen. Never returns an empty list; may be dropped at any await without loss.
    pub async fn next(&mut self) -> Result<Vec<LinkEvent>, NetConfigError> {
        loop {
            if self.stale {
                self.ask_anew().await?;
            }
            let empty = self.read_some().map_err(|source| failed("read", source))?;
            if self.routes_due.is_some_and(|due| due <= Instant::now()) {
                self.routes_due = None;
                self.events.push(LinkEvent::RoutesChanged);
            }
            if !self.events.is_empty() {
                return Ok(std::mem::take(&mut self.events));
            }
            if empty && !self.stale {
                self.wait().await.map_err(|source| failed("wait on", source))?;
            }
        }
    }

    /// Sends all events until nobody receives them any more.
    pub async fn run(mut self, sender: EventSender) -> Result<(), NetConfigError> {
        loop {
            let events = self.next().await?;
            if sender.send(events).is_err() {
                return Ok(());
            }
        }
    }

    /// How many times messages were lost and everything was asked anew.
    pub fn overruns(&self) -> u64 {
        self.overruns
    }

    /// Throws away what is queued, dumps, and finds the differences.
    async fn ask_anew(&mut self) -> Result<(), NetConfigError> {
        // After an overrun the kernel drops silently until the queue was empty once (netlink_overrun,
        // netlink_rcv_wake): only then would it report the next loss, so empty it before the dump.
        while self.receive().map_err(|source| failed("read", source))?.is_some() {}
        let first = self.known == Snapshot::default();
        let now = self.dump().await?;
        self.known.replace(now, &mut self.events);
        self.stale = false;
        if !first {
            self.routes_due = None;
            self.events.push(LinkEvent::RoutesChanged);
        }
        Ok(())
    }

    async fn dump(&mut self) -> Result<Snapshot, NetConfigError> {
        let mut snapshot = Snapshot::default();
        for question in [
            RouteNetlinkMessage::GetLink(LinkMessage::default()),
            RouteNetlinkMessage::GetAddress(AddressMessage::default()),
        ] {
            let mut answers = Vec::new();
            for _ in 0..DUMP_TRIES {
                let whole;
                (answers, whole) = dump_once(&mut self.dumps, question.clone()).await?;
                if whole {
                    break;
                }
            }
            for fact in answers.iter().filter_map(fact) {
                // What leads here from nothing is no news; the difference to what is known is.
                snapshot.learn(fact, &mut Vec::new());
            }
        }
        Ok(snapshot)
    }

    /// Reads what is queued, to a limit; true if there is no more.
    fn read_some(&mut self) -> io::Result<bool> {
        for _ in 0..DATAGRAMS_AT_ONCE {
            match self.receive()? {
                None => return Ok(true),
                Some(0) => {}
                Some(length) => self.digest(length),
            }
        }
        Ok(false)
    }

    /// The length of the next datagram in the buffer: none if there is none, zero if it counts for nothing.
    fn receive(&mut self) -> io::Result<Option<usize>> {
        let received = self.socket.socket_ref().recv_from(&mut &mut self.buffer[..], 0);
        self.heard(received)
    }

    /// What a read from the socket means.
    fn heard(&mut self, received: io::Result<(usize, SocketAddr)>) -> io::Result<Option<usize>> {
        match received {
            // Only the kernel, port 0, is to be believed.
            Ok((length, from)) if from.port_number() == 0 => Ok(Some(length)),
            Ok(_) => Ok(Some(0)),
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                tracing::info!("netlink socket overran, asking anew");
                self.overruns += 1;
                self.stale = true;
                Ok(Some(0))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Some(0)),
            Err(error) => Err(error),
        }
    }

    fn digest(&mut self, length: usize) {
        let mut rest = &self.buffer[..length.min(DATAGRAM)];
        while !rest.is_empty() {
            let Ok(message) = NetlinkBuffer::new_checked(rest) else {
                tracing::warn!("netlink message cut short, asking anew");
                self.stale = true;
                return;
            };
            let (kind, length) = (message.message_type(), message.length() as usize);
            if ROUTE_MESSAGES.contains(&kind) {
                self.routes_due.get_or_insert_with(|| Instant::now() + ROUTE_GATHERING);
            } else if LINK_MESSAGES.contains(&kind) {
                match NetlinkMessage::<RouteNetlinkMessage>::deserialize(&rest[..length]) {
                    Ok(message) => {
                        if let Some(fact) = fact(&message.payload) {
                            self.known.learn(fact, &mut self.events);
                        }
                    }
                    Err(error) => {
                        tracing::warn!(%error, "netlink message makes no sense, asking anew");
                        self.stale = true;
                    }
                }
            }
            rest = rest.get(length.next_multiple_of(ALIGN)..).unwrap_or_default();
        }
    }

    /// Waits for a datagram and takes it in, or until routes are due.
    async fn wait(&mut self) -> io::Result<()> {
        let due = self.routes_due.unwrap_or_else(Instant::now);
        let mut space = &mut self.buffer[..];
        let received = tokio::select! {
            received = self.socket.recv_from(&mut space) => received,
            () = tokio::time::sleep_until(due), if self.routes_due.is_some() => return Ok(()),
        };
        let left = space.len();
        let received = received.map(|from| (DATAGRAM - left, from));
        if let Some(length) = self.heard(received)? {
            self.digest(length);
        }
        Ok(())
    }
}

fn subscribe(options: WatchOptions) -> io::Result<TokioSocket> {
    let mut asynchronous = TokioSocket::new(NETLINK_ROUTE)?;
    let socket = asynchronous.socket_mut();
    let size = options.receive_buffer;
    // CAP_NET_ADMIN may exceed net.core.rmem_max; without it the plain option does what is allowed.
    if rustix::net::sockopt::set_socket_recv_buffer_size_force(&*socket, size).is_err() {
        rustix::net::sockopt::set_socket_recv_buffer_size(&*socket, size)?;
    }
    socket.bind_auto()?;
    for group in GROUPS {
        socket.add_membership(group as u32)?;
    }
    Ok(asynchronous)
}

type Payload = NetlinkPayload<RouteNetlinkMessage>;

/// One dump, and whether no change came in between.
async fn dump_once(dumps: &mut Handle, question: RouteNetlinkMessage) -> Result<(Vec<Payload>, bool), NetConfigError> {
    let wrap = |error| NetConfigError::netlink("dump", "interfaces and addresses", None, error);
    let mut request = NetlinkMessage::from(question);
    request.header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let answers = dumps.request(request).map_err(wrap)?;
    pin_mut!(answers);
    let (mut payloads, mut whole, mut ended) = (Vec::new(), true, false);
    while let Some(message) = answers.next().await {
        whole &= message.header.flags & NLM_F_DUMP_INTR == 0;
        match message.payload {
            NetlinkPayload::Done(_) => ended = true,
            NetlinkPayload::Error(error) => {
                return Err(wrap(rtnetlink::Error::NetlinkError(error)));
            }
            payload => payloads.push(payload),
        }
    }
    if ended { Ok((payloads, whole)) } else { Err(wrap(rtnetlink::Error::RequestFailed)) }
}

/// What a message says of an interface or address, if anything.
fn fact(payload: &Payload) -> Option<Fact> {
    let NetlinkPayload::InnerMessage(message) = payload else {
        return None;
    };
    match message {
        RouteNetlinkMessage::NewLink(link) if is_whole(link) => {
            let link = link_info(link)?;
            Some(Fact::Link { index: link.index, name: link.name, up: link.up })
        }
        RouteNetlinkMessage::DelLink(link) if is_whole(link) => {
            Some(Fact::LinkGone { index: IfIndex::new(link.header.index)? })
        }
        RouteNetlinkMessage::NewAddress(message) => {
            let one = interface_address(message)?;
            let (index, address, deprecated) = (one.interface, one.address, one.deprecated);
            Some(if one.usable {
                Fact::Address { index, address, deprecated }
            } else {
                Fact::AddressGone { index, address }
            })
        }
        RouteNetlinkMessage::DelAddress(message) => {
            let one = interface_address(message)?;
            Some(Fact::AddressGone { index: one.interface, address: one.address })
        }
        _ => None,
    }
}

/// False for messages about one protocol's side of an interface: a port that leaves a bridge is not gone.
fn is_whole(link: &LinkMessage) -> bool {
    link.header.interface_family == netlink_packet_route::AddressFamily::Unspec
}

fn failed(operation: &'static str, source: io::Error) -> NetConfigError {
    NetConfigError::Kernel { operation, subject: "link watch".into(), source }
}
