//! What passes a namespace's interfaces, read by a thread until it is told to stop (packet(7)).
//!
//! 1. A socket in the namespace sees every frame, sent and received. 2. The thread hands each to a function.
//! 3. Told to stop, it ends once nothing waits any more. That the kernel dropped none is seen to.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::error::WireError;
use crate::namespace::Namespace;

/// How often the thread looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(20);
/// Bytes the socket holds, so that a late thread loses nothing.
const SOCKET_BUFFER: usize = 64 << 20;

/// A thread that reads. It begins with what passes next; dropped, it stops. One owner.
#[derive(Debug)]
pub(crate) struct PacketSocket<T> {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<T>>>,
}

/// How packets are seen: by a name for errors, whole frames (`Type::RAW`) or without their link's header
/// (`Type::DGRAM`), and no more than this many bytes of each. Plain data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub(crate) name: &'static str,
    pub(crate) kind: Type,
    pub(crate) most: usize,
}

impl<T: Send + 'static> PacketSocket<T> {
    /// Starts reading in `namespace`: `state` and each packet, with whence it came, are given to `each`.
    ///
    /// # Errors
    /// Where the socket cannot be had (it needs root), or the namespace not entered.
    pub(crate) fn start(
        namespace: &Namespace,
        view: View,
        mut state: T,
        mut each: impl FnMut(&mut T, &[u8], &SockAddr) + Send + 'static,
    ) -> Result<Self, WireError> {
        let failed = |error| WireError::system(format!("{} in {} (needs root)", view.name, namespace.name()), error);
        let socket = namespace.run(move || open(view.kind))?.map_err(failed)?;
        let stop = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&stop);
        let work = move || {
            read(&socket, &end, view.most, |packet, from| each(&mut state, packet, from))?;
            Ok(state)
        };
        let thread = namespace.spawn_thread(view.name, work)?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Ends it, and gives the state.
    ///
    /// # Errors
    /// Where the socket failed, or the kernel dropped packets.
    ///
    /// # Panics
    /// Where its thread did.
    pub(crate) fn finish(mut self) -> Result<T, WireError> {
        self.stop.store(true, Ordering::Release);
        let thread = self.thread.take().expect("it is there until the end");
        let read = thread.join().expect("the packet socket's thread runs to its end");
        read.map_err(|error| WireError::system("read packets", error))
    }
}

impl<T> Drop for PacketSocket<T> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

/// Step 1.
fn open(kind: Type) -> io::Result<Socket> {
    let all = i32::from((libc::ETH_P_ALL as u16).to_be());
    let socket = Socket::new(Domain::PACKET, kind, Some(Protocol::from(all)))?;
    set_socket_recv_buffer_size_force(&socket, SOCKET_BUFFER)?;
    socket.set_read_timeout(Some(GLANCE))?;
    Ok(socket)
}

/// Steps 2 and 3.
fn read(socket: &Socket, stop: &AtomicBool, most: usize, mut each: impl FnMut(&[u8], &SockAddr)) -> io::Result<()> {
    let mut room = vec![MaybeUninit::uninit(); most];
    loop {
        match socket.recv_from(&mut room) {
            // SAFETY: the kernel wrote these bytes: they are what the socket said it received.
            Ok((len, from)) => each(unsafe { room[..len].assume_init_ref() }, &from),
            // Only once nothing waits any more.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if stop.load(Ordering::Acquire) {
                    break;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    match dropped(socket)? {
        0 => Ok(()),
        dropped => Err(io::Error::other(format!("the kernel dropped {dropped} packets"))),
    }
}

/// Frames that the kernel dropped for want of room.
fn dropped(socket: &Socket) -> io::Result<u32> {
    // struct tpacket_stats: packets, drops (linux/if_packet.h).
    let mut stats = [0u32; 2];
    let mut len = size_of_val(&stats) as libc::socklen_t;
    // SAFETY: the descriptor is open, and the kernel writes at most `len` bytes to where `stats` lives.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut stats).cast(),
            &raw mut len,
        )
    };
    if result == 0 { Ok(stats[1]) } else { Err(io::Error::last_os_error()) }
}
