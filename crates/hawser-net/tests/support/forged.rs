//! ICMP as somebody forges it who knows a socket's address.

use std::net::SocketAddrV4;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// ICMP type and code (RFC 792): destination unreachable, fragmentation needed; port unreachable.
pub const FRAGMENTATION_NEEDED: [u8; 2] = [3, 4];
pub const PORT_UNREACHABLE: [u8; 2] = [3, 3];
/// How often the forger sends what is due.
const GRAIN: Duration = Duration::from_millis(1);

/// A message about a UDP datagram from `ours` to `theirs` that began with `payload`.
pub fn message(kind: [u8; 2], ours: SocketAddrV4, theirs: SocketAddrV4, mtu: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind[0], kind[1], 0, 0, 0, 0];
    bytes.extend(mtu.to_be_bytes());
    // The quoted datagram: an IPv4 header with DF, UDP's, and how it began (RFC 791, RFC 768).
    bytes.extend([0x45, 0, 0x05, 0xdc, 0, 1, 0x40, 0, 64, 17, 0, 0]);
    bytes.extend(ours.ip().octets());
    bytes.extend(theirs.ip().octets());
    bytes.extend(ours.port().to_be_bytes());
    bytes.extend(theirs.port().to_be_bytes());
    bytes.extend([0x05, 0xc8, 0, 0]);
    bytes.extend(payload);
    let sum = checksum(&bytes);
    bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// Sends the messages in turn at `rate` a second from the calling thread's namespace. Returns how many were sent.
pub fn flood(to: SocketAddrV4, messages: &[Vec<u8>], rate: u64, time: Duration) -> u64 {
    let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4)).expect("a raw socket (needs root)");
    let to = SockAddr::from(SocketAddrV4::new(*to.ip(), 0));
    let (start, mut sent) = (Instant::now(), 0);
    while start.elapsed() < time {
        let due = start.elapsed().as_micros() as u64 * rate / 1_000_000;
        while sent < due {
            // A full queue loses some: the next one is as good.
            let _ = socket.send_to(&messages[sent as usize % messages.len()], &to);
            sent += 1;
        }
        std::thread::sleep(GRAIN);
    }
    sent
}

/// RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two.get(1).copied().unwrap_or(0)));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}
