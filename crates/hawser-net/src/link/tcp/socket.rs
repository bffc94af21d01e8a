//! The sockets of a TCP link: one that listens, or one for each call.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::super::LinkError;
use super::super::udp::socket::{bind_interface, failed};
use super::info::{Info, prepare};
use super::{LISTENER, PENDING_MAX, TcpOpts};
use crate::powers::raised;
use crate::tun::kernel_release;

/// The kernel that first tells all that is asked for of a stream (TCP_INFO with the delivery rate).
const INFO_SINCE: &str = "4.9";

/// What a link begins with.
pub(super) struct Opened {
    pub(super) listener: Option<Socket>,
    pub(super) local: SocketAddr,
    pub(super) index: Option<u32>,
    pub(super) epoll: OwnedFd,
    pub(super) readable: OwnedFd,
}

/// Opens what a link needs before there is any stream. A link that calls tries its options out, so that what is wrong
/// with them is told now.
pub(super) fn open(opts: &TcpOpts) -> Result<Opened, LinkError> {
    let (socket, index) = bound(opts, opts.local)?;
    let epoll = epoll::create(CreateFlags::CLOEXEC)
        .map_err(|errno| LinkError::Socket { step: "open epoll", source: errno.into() })?;
    let readable = eventfd(1, EventfdFlags::CLOEXEC)
        .map_err(|errno| LinkError::Socket { step: "open eventfd", source: errno.into() })?;
    Info::of(&socket).map_err(|source| match source.raw_os_error() {
        Some(libc::ENOPROTOOPT) => {
            LinkError::TooOld { step: "read TCP_INFO", kernel: kernel_release(), since: INFO_SINCE, source }
        }
        _ => LinkError::Socket { step: "read TCP_INFO", source },
    })?;
    if !opts.listens {
        return Ok(Opened { listener: None, local: opts.local, index, epoll, readable });
    }
    let backlog = i32::try_from(PENDING_MAX).unwrap_or(i32::MAX);
    socket.listen(backlog).map_err(|source| LinkError::Bind { local: opts.local, source })?;
    epoll::add(&epoll, &socket, EventData::new_u64(LISTENER), EventFlags::IN)
        .map_err(|errno| LinkError::Socket { step: "wait for connections", source: errno.into() })?;
    let local = local_of(&socket)?;
    Ok(Opened { listener: Some(socket), local, index, epoll, readable })
}

/// Begins a call of `remote`.
pub(super) fn call(opts: &TcpOpts, local: SocketAddr, remote: SocketAddr) -> Result<Socket, LinkError> {
    let (socket, _) = bound(opts, local)?;
    match socket.connect(&SockAddr::from(remote)) {
        Ok(()) => Ok(socket),
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(socket),
        Err(source) => Err(LinkError::Socket { step: "connect", source }),
    }
}

/// A socket bound to the link's address and interface, with its options set.
fn bound(opts: &TcpOpts, local: SocketAddr) -> Result<(Socket, Option<u32>), LinkError> {
    let domain = Domain::for_address(local);
    let socket = Socket::new(domain, Type::STREAM.nonblocking().cloexec(), Some(Protocol::TCP));
    let socket = socket.map_err(failed("open socket"))?;
    let index = match &opts.interface {
        Some(name) => Some(bind_interface(&socket, name)?),
        None => None,
    };
    if let Some(mark) = opts.mark {
        // A call is made at any time, by a thread that has its powers only at hand.
        raised(|| socket.set_mark(mark)).map_err(failed("set mark"))?;
    }
    if domain == Domain::IPV6 {
        socket.set_only_v6(true).map_err(failed("set IPV6_V6ONLY"))?;
    }
    if opts.listens {
        // Connections of a portal that was killed may still wait for their end.
        socket.set_reuse_address(true).map_err(failed("set SO_REUSEADDR"))?;
    }
    prepare(&socket, opts.congestion.as_deref())?;
    socket.bind(&SockAddr::from(local)).map_err(|source| LinkError::Bind { local, source })?;
    Ok((socket, index))
}

/// The index that the name stands for now.
pub(super) fn index_of(name: &str) -> Option<u32> {
    // Any socket does to ask.
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None).ok()?;
    super::super::udp::socket::index_of(socket, name)
}

fn local_of(socket: &Socket) -> Result<SocketAddr, LinkError> {
    let step = "read the local address";
    let address = socket.local_addr().map_err(|source| LinkError::Socket { step, source })?;
    address.as_socket().ok_or_else(|| LinkError::Socket { step, source: io::ErrorKind::InvalidData.into() })
}
