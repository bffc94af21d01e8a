//! Opening a UDP link's socket.
//!
//! 1. Bind to the interface first, so that the address is looked for there, and see that its
//!    index is still the one the name stands for.
//! 2. Options: what every datagram brings with it, no fragments, buffers.
//! 3. Bind to the address.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::super::{LinkError, LinkFinding, ip};
use super::UdpOpts;
use crate::tun::kernel_release;

/// How often an interface that changes while it is bound to is looked up again. One that comes
/// back more often than this is flapping, and the driver tries again when netlink says so.
const INTERFACE_TRIES: usize = 3;

/// Largest socket buffer that can be asked for, in bytes (the kernel doubles a 31-bit number).
const MAX_SOCKET_BUFFER: usize = (i32::MAX / 2) as usize;

/// An open socket, the index it is bound to, and what it has to do without.
pub(super) struct Opened {
    pub(super) socket: Socket,
    pub(super) index: Option<u32>,
    pub(super) findings: Vec<LinkFinding>,
}

pub(super) fn open(opts: &UdpOpts) -> Result<Opened, LinkError> {
    let domain = Domain::for_address(opts.local);
    let (kind, protocol) = match opts.protocol {
        None => (Type::DGRAM, Protocol::UDP),
        Some(protocol) => (Type::RAW, Protocol::from(i32::from(protocol.number()))),
    };
    let socket = Socket::new(domain, kind.nonblocking().cloexec(), Some(protocol)).map_err(failed("open socket"))?;
    if opts.protocol.is_some() {
        ip::attach(&socket, domain == Domain::IPV4).map_err(failed("filter what comes"))?;
    }
    let mut findings = Vec::new();
    let index = match &opts.interface {
        Some(name) => Some(bind_interface(&socket, name)?),
        None => None,
    };
    if let Some(mark) = opts.mark {
        socket.set_mark(mark).map_err(failed("set mark"))?;
    }
    if domain == Domain::IPV6 && opts.protocol.is_none() {
        // A raw socket of IPv6 has nothing of IPv4's to refuse.
        socket.set_only_v6(true).map_err(failed("set IPV6_V6ONLY"))?;
    }
    set_family_options(&socket, domain)?;
    if opts.protocol.is_none() && opts.merging {
        set_merging(&socket, &mut findings);
    }
    set_drop_counts(&socket, &mut findings);
    set_buffers(&socket, opts, &mut findings)?;
    socket.bind(&SockAddr::from(opts.local)).map_err(|source| LinkError::Bind { local: opts.local, source })?;
    Ok(Opened { socket, index, findings })
}

/// The index the name stands for now, `None` when there is no such interface.
pub(in crate::link) fn index_of(socket: impl AsFd, name: &str) -> Option<u32> {
    rustix::net::netdevice::name_to_index(socket, name).ok()
}

/// Binds to the interface of that name, and returns its index.
pub(in crate::link) fn bind_interface(socket: &Socket, name: &str) -> Result<u32, LinkError> {
    let interface = || name.to_owned();
    for _ in 0..INTERFACE_TRIES {
        let Some(index) = index_of(socket, name) else {
            return Err(LinkError::NoInterface { interface: interface() });
        };
        match socket.bind_device(Some(name.as_bytes())) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => continue,
            Err(error) => return Err(failed("bind to the interface")(error)),
        }
        let bound = get_int(socket, libc::SOL_SOCKET, libc::SO_BINDTOIFINDEX)
            .map_err(failed_since("read the bound interface", "5.1"))?;
        // The name was resolved twice; both have to mean the same interface, now too.
        if u32::try_from(bound) == Ok(index) && index_of(socket, name) == Some(index) {
            return Ok(index);
        }
    }
    Err(LinkError::InterfaceChanging { interface: interface() })
}

/// Marks, destination and errors (`hearing.rs`) with every datagram, and DF on each: PMTU probing is ours
/// (RFC 8899), the kernel's own idea of a path's MTU is ignored.
fn set_family_options(socket: &Socket, domain: Domain) -> Result<(), LinkError> {
    let options: &[(i32, i32, i32, &'static str)] = if domain == Domain::IPV6 {
        let level = libc::IPPROTO_IPV6;
        &[
            (level, libc::IPV6_RECVPKTINFO, 1, "set IPV6_RECVPKTINFO"),
            (level, libc::IPV6_RECVTCLASS, 1, "set IPV6_RECVTCLASS"),
            (level, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE, "set IPV6_MTU_DISCOVER"),
            (level, libc::IPV6_DONTFRAG, 1, "set IPV6_DONTFRAG"),
            (level, libc::IPV6_RECVERR, 1, "set IPV6_RECVERR"),
        ]
    } else {
        let level = libc::IPPROTO_IP;
        &[
            (level, libc::IP_PKTINFO, 1, "set IP_PKTINFO"),
            (level, libc::IP_RECVTOS, 1, "set IP_RECVTOS"),
            (level, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE, "set IP_MTU_DISCOVER"),
            (level, libc::IP_RECVERR, 1, "set IP_RECVERR"),
        ]
    };
    for &(level, name, value, step) in options {
        set_int(socket, level, name, value).map_err(failed(step))?;
    }
    Ok(())
}

/// What is only worse without: merging on receipt.
fn set_merging(socket: &Socket, findings: &mut Vec<LinkFinding>) {
    if set_int(socket, libc::SOL_UDP, libc::UDP_GRO, 1).is_err() {
        let kernel = kernel_release();
        findings.push(LinkFinding::NoReceiveMerging { kernel });
    }
}

/// What is only worse without: the count of what was lost.
fn set_drop_counts(socket: &Socket, findings: &mut Vec<LinkFinding>) {
    if set_int(socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1).is_err() {
        let kernel = kernel_release();
        findings.push(LinkFinding::NoDropCounts { kernel });
    }
}

/// Sets both buffers, beyond the system's limit where that is permitted.
fn set_buffers(socket: &Socket, opts: &UdpOpts, findings: &mut Vec<LinkFinding>) -> Result<(), LinkError> {
    type Buffer = (&'static str, usize, i32, i32, i32, &'static str);
    let buffers: [Buffer; 2] = [
        ("receive", opts.receive_buffer, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, libc::SO_RCVBUF, "net.core.rmem_max"),
        ("send", opts.send_buffer, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, libc::SO_SNDBUF, "net.core.wmem_max"),
    ];
    for (which, wanted, force, plain, read, sysctl) in buffers {
        let value = wanted.min(MAX_SOCKET_BUFFER) as i32;
        if set_int(socket, libc::SOL_SOCKET, force, value).is_err() {
            set_int(socket, libc::SOL_SOCKET, plain, value).map_err(failed("set buffer"))?;
        }
        let got = get_int(socket, libc::SOL_SOCKET, read).map_err(failed("read buffer"))?;
        // The kernel doubles what it is asked for, for its own bookkeeping (socket(7)).
        let got = usize::try_from(got / 2).unwrap_or(0);
        if got < wanted.min(MAX_SOCKET_BUFFER) {
            findings.push(LinkFinding::SmallBuffer { which, wanted, got, sysctl });
        }
    }
    Ok(())
}

pub(super) fn set_int(socket: &Socket, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: the socket is open, and the kernel reads one `int` that outlives the call.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn get_int(socket: &Socket, level: i32, name: i32) -> io::Result<i32> {
    let mut value = 0_i32;
    let mut len = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the socket is open, and the kernel writes at most `len` bytes into one `int`.
    let done = unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut len) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(value)
}

pub(in crate::link) fn failed(step: &'static str) -> impl Fn(io::Error) -> LinkError {
    move |source| match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => LinkError::NotPermitted { step, source },
        _ => LinkError::Socket { step, source },
    }
}

fn failed_since(step: &'static str, since: &'static str) -> impl Fn(io::Error) -> LinkError {
    move |source| match source.raw_os_error() {
        Some(libc::ENOPROTOOPT) => LinkError::TooOld { step, kernel: kernel_release(), since, source },
        _ => LinkError::Socket { step, source },
    }
}
