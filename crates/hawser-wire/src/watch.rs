//! Looks at the beginning of each IP packet that passes a namespace's interfaces, whatever they are made of.
//!
//! 1. A packet socket in the namespace gets every packet, sent and received, without its link's header (packet(7)).
//! 2. A thread hands each one's beginning to a function, until told to stop and nothing waits any more.
//! 3. That the kernel dropped none is seen to; the function comes back with what it found.

use std::io::{self, Read as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use socket2::{Domain, Protocol, Socket, Type};

use crate::capture::dropped;
use crate::error::WireError;
use crate::namespace::Namespace;

/// How often the thread looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(20);
/// Bytes the socket holds, so that a late thread loses nothing.
const SOCKET_BUFFER: usize = 64 << 20;
/// What of a packet is seen: the longest IPv6 and TCP headers without extensions (40 and 60 bytes), and some room.
const SEEN: usize = 128;

/// What looks at packets: an IP header first, as much as there is up to 128 bytes.
pub trait Look: Send + 'static {
    /// Looks at a packet.
    fn look(&mut self, packet: &[u8]);
}

/// A watch under way. It begins with what passes next; dropped, it stops. One owner.
#[derive(Debug)]
pub struct Watch<L> {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<L>>>,
}

impl<L: Look> Watch<L> {
    /// Starts watching in `namespace`.
    ///
    /// # Errors
    /// Where the socket cannot be had (it needs root), or the namespace not entered.
    pub fn start(namespace: &Namespace, mut look: L) -> Result<Self, WireError> {
        let failed = |error| WireError::system(format!("watch {} (needs root)", namespace.name()), error);
        let socket = namespace.run(open)?.map_err(failed)?;
        let stop = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&stop);
        let watch = move || watch(&socket, &end, &mut look).map(|()| look);
        let thread = namespace.spawn_thread("watch", watch)?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Ends it, and gives back what looked.
    ///
    /// # Errors
    /// Where the socket failed, or the kernel dropped packets.
    ///
    /// # Panics
    /// Where its thread did.
    pub fn finish(mut self) -> Result<L, WireError> {
        self.stop.store(true, Ordering::Release);
        let thread = self.thread.take().expect("it is there until the end");
        let watched = thread.join().expect("the watch's thread runs to its end");
        watched.map_err(|error| WireError::system("watch packets", error))
    }
}

impl<L> Drop for Watch<L> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

/// Step 1.
fn open() -> io::Result<Socket> {
    let all = i32::from((libc::ETH_P_ALL as u16).to_be());
    let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(Protocol::from(all)))?;
    set_socket_recv_buffer_size_force(&socket, SOCKET_BUFFER)?;
    socket.set_read_timeout(Some(GLANCE))?;
    Ok(socket)
}

/// Steps 2 and 3.
fn watch(socket: &Socket, stop: &AtomicBool, look: &mut impl Look) -> io::Result<()> {
    let (mut packet, mut socket_read) = ([0; SEEN], socket);
    loop {
        match socket_read.read(&mut packet) {
            Ok(len) => look.look(&packet[..len]),
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
