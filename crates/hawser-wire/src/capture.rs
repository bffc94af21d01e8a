//! What passes a namespace's Ethernet interfaces, as a capture file.
//!
//! 1. A packet socket in the namespace sees every frame, sent and received (packet(7)). 2. A thread reads it until told to stop.
//! 3. Frames of Ethernet interfaces are kept, others (loopback, TUN) not. 4. They are given as pcap with nanoseconds
//!    (pcap-savefile(5)); that the kernel dropped none is seen to.

use std::io;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::error::WireError;
use crate::namespace::Namespace;

/// How often the thread looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(20);
/// Bytes the socket holds, so that a late thread loses nothing.
const SOCKET_BUFFER: usize = 64 << 20;
/// The longest frame: what a host holds as one packet (64 KiB), and its Ethernet header with tags.
const FRAME_MAX: usize = 66 << 10;
/// A pcap file's header: nanoseconds, version 2.4, no time zone, frames of up to 256 KiB, of Ethernet.
const HEADER: [u32; 6] = [0xa1b2_3c4d, 0x0004_0002, 0, 0, 262_144, 1];

/// A capture under way. It begins with what passes next; dropped, it stops. One owner.
#[derive(Debug)]
pub struct Capture {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Vec<u8>>>>,
}

impl Capture {
    /// Starts capturing in `namespace`.
    ///
    /// # Errors
    /// Where the socket cannot be had (it needs root), or the namespace not entered.
    pub fn start(namespace: &Namespace) -> Result<Self, WireError> {
        let failed = |error| WireError::system(format!("capture in {} (needs root)", namespace.name()), error);
        let socket = namespace.run(open)?.map_err(failed)?;
        let stop = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&stop);
        let thread = namespace.spawn_thread("capture", move || record(&socket, &end))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Ends it, and gives the file.
    ///
    /// # Errors
    /// Where the socket failed, or the kernel dropped frames.
    ///
    /// # Panics
    /// Where its thread did.
    pub fn finish(mut self) -> Result<Vec<u8>, WireError> {
        self.stop.store(true, Ordering::Release);
        let thread = self.thread.take().expect("it is there until the end");
        let recorded = thread.join().expect("the capture's thread runs to its end");
        recorded.map_err(|error| WireError::system("capture", error))
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

/// Step 1.
fn open() -> io::Result<Socket> {
    let all = i32::from((libc::ETH_P_ALL as u16).to_be());
    let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(all)))?;
    set_socket_recv_buffer_size_force(&socket, SOCKET_BUFFER)?;
    socket.set_read_timeout(Some(GLANCE))?;
    Ok(socket)
}

/// Steps 2 to 4.
fn record(socket: &Socket, stop: &AtomicBool) -> io::Result<Vec<u8>> {
    let mut file: Vec<u8> = HEADER.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut frame = vec![MaybeUninit::uninit(); FRAME_MAX];
    loop {
        match socket.recv_from(&mut frame) {
            Ok((len, from)) if is_ethernet(&from) => append(&mut file, &frame[..len]),
            Ok(_) => {}
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
        0 => Ok(file),
        dropped => Err(io::Error::other(format!("the kernel dropped {dropped} frames"))),
    }
}

fn append(file: &mut Vec<u8>, frame: &[MaybeUninit<u8>]) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // A frame has far less than 4 GiB, and the seconds of this format end in 2106.
    let len = frame.len() as u32;
    for word in [now.as_secs() as u32, now.subsec_nanos(), len, len] {
        file.extend(word.to_le_bytes());
    }
    // SAFETY: the kernel wrote these bytes: they are what the socket said it received.
    file.extend(frame.iter().map(|byte| unsafe { byte.assume_init() }));
}

/// Whether a packet socket's sender address names an Ethernet interface.
fn is_ethernet(from: &SockAddr) -> bool {
    if from.family() != libc::AF_PACKET as libc::sa_family_t || from.len() < size_of::<libc::sockaddr_ll>() as u32 {
        return false;
    }
    // SAFETY: the storage is larger than a sockaddr_ll and aligned for any address; family and length say that it is one.
    let address = unsafe { from.as_ptr().cast::<libc::sockaddr_ll>().read() };
    address.sll_hatype == libc::ARPHRD_ETHER
}

/// Frames that the kernel dropped for want of room.
pub(crate) fn dropped(socket: &Socket) -> io::Result<u32> {
    use std::os::fd::AsRawFd as _;
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
