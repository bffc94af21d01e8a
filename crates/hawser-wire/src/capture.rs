//! What passes a namespace's Ethernet interfaces, as a capture file.
//!
//! 1. A [`PacketSocket`] sees every frame, sent and received. 2. Frames of Ethernet interfaces are kept, others
//!    (loopback, TUN) not. 3. They are given as pcap with nanoseconds (pcap-savefile(5)).

use std::time::{SystemTime, UNIX_EPOCH};

use socket2::{SockAddr, Type};

use crate::error::WireError;
use crate::namespace::Namespace;
use crate::packet_socket::{PacketSocket, View};

/// The longest frame: what a host holds as one packet (64 KiB), and its Ethernet header with tags.
const FRAME_MAX: usize = 66 << 10;
/// A pcap file's header: nanoseconds, version 2.4, no time zone, frames of up to 256 KiB, of Ethernet.
const HEADER: [u32; 6] = [0xa1b2_3c4d, 0x0004_0002, 0, 0, 262_144, 1];

/// A capture under way. It begins with what passes next; dropped, it stops. One owner.
#[derive(Debug)]
pub struct Capture(PacketSocket<Vec<u8>>);

impl Capture {
    /// Starts capturing in `namespace`.
    ///
    /// # Errors
    /// Where the socket cannot be had (it needs root), or the namespace not entered.
    pub fn start(namespace: &Namespace) -> Result<Self, WireError> {
        let view = View { name: "capture", kind: Type::RAW, most: FRAME_MAX };
        let file = HEADER.iter().flat_map(|word| word.to_le_bytes()).collect();
        let keep = |file: &mut Vec<u8>, frame: &[u8], from: &SockAddr| {
            if is_ethernet(from) {
                append(file, frame);
            }
        };
        PacketSocket::start(namespace, view, file, keep).map(Self)
    }

    /// Ends it, and gives the file.
    ///
    /// # Errors
    /// Where the socket failed, or the kernel dropped frames.
    ///
    /// # Panics
    /// Where its thread did.
    pub fn finish(self) -> Result<Vec<u8>, WireError> {
        self.0.finish()
    }
}

fn append(file: &mut Vec<u8>, frame: &[u8]) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // A frame has far less than 4 GiB, and the seconds of this format end in 2106.
    let len = frame.len() as u32;
    for word in [now.as_secs() as u32, now.subsec_nanos(), len, len] {
        file.extend(word.to_le_bytes());
    }
    file.extend(frame);
}

/// Whether a packet socket's sender address names an Ethernet interface.
fn is_ethernet(from: &SockAddr) -> bool {
    if from.family() != libc::AF_PACKET as libc::sa_family_t || from.len() < size_of::<libc::sockaddr_ll>() as u32 {
        return false;
    }
    // SAFETY: the storage is larger than a sockaddr_ll and aligned for any address; family and length say that it is
    // one.
    let address = unsafe { from.as_ptr().cast::<libc::sockaddr_ll>().read() };
    address.sll_hatype == libc::ARPHRD_ETHER
}
