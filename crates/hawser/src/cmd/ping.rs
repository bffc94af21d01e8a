//! One echo request (RFC 792, RFC 4443 section 4.1), and whether it is answered.

use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

/// Types of requests and answers, in either IP version.
const ECHO: (u8, u8) = (8, 0);
const ECHO_V6: (u8, u8) = (128, 129);
/// Longest answer that is read, in bytes: an IP header with options, and ours.
const ANSWER_MAX: usize = 256;
/// Bytes of a header with identifier and sequence, which is all that we send.
const LENGTH: usize = 8;

/// Whether `address` answers within `patience`, asked by `interface` where one is named.
pub fn answers(address: IpAddr, interface: Option<&str>, patience: Duration) -> bool {
    ask(address, interface, patience).unwrap_or(false)
}

fn ask(address: IpAddr, interface: Option<&str>, patience: Duration) -> io::Result<bool> {
    let to = SocketAddr::new(address, 0);
    let (protocol, (request, reply)) =
        if address.is_ipv4() { (Protocol::ICMPV4, ECHO) } else { (Protocol::ICMPV6, ECHO_V6) };
    let mut socket = Socket::new(Domain::for_address(to), Type::RAW, Some(protocol))?;
    socket.bind_device(interface.map(str::as_bytes))?;
    socket.connect(&to.into())?;
    let id = (std::process::id() as u16).to_be_bytes();
    let mut message = [request, 0, 0, 0, id[0], id[1], 0, 1];
    // In IPv6 the kernel does it (RFC 3542 section 3.1).
    let checksum = checksum(&message);
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    socket.send(&message)?;
    let start = Instant::now();
    while let Some(left) = patience.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
        socket.set_read_timeout(Some(left))?;
        let mut bytes = [0; ANSWER_MAX];
        let length = socket.read(&mut bytes)?;
        // In IPv4 the header comes along (raw(7)).
        let skipped = if address.is_ipv4() { usize::from(bytes[0] & 0x0f) * 4 } else { 0 };
        let Some(answer) = bytes[..length].get(skipped..skipped + LENGTH) else { continue };
        if answer[0] == reply && answer[4..6] == id {
            return Ok(true);
        }
    }
    Ok(false)
}

/// RFC 1071, of an even number of bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !(folded as u16)
}
