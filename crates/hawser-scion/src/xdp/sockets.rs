//! The UDP sockets of this network namespace (proc_net_udp), to tell which ports on the whitelist are still somebody's.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::XdpError;
use super::layout::Key;

/// The kernel's tables for the calling thread's network namespace (proc(5)).
const TABLES: [&str; 2] = ["/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"];
/// The column `local_address`.
const LOCAL: usize = 1;
/// Digits of a word in it.
const WORD_DIGITS: usize = 8;

/// Addresses and ports that UDP sockets are bound to. Empty where there are none. Plain data, as of the moment it was
/// read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OpenSockets(Vec<(IpAddr, u16)>);

impl OpenSockets {
    /// Those of the calling thread's network namespace.
    pub(super) fn read() -> Result<OpenSockets, XdpError> {
        let mut sockets = Vec::new();
        for path in TABLES {
            match fs::read_to_string(path) {
                Ok(table) => sockets.extend(table.lines().filter_map(socket)),
                // A kernel without IPv6.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(source) => return Err(XdpError::File { operation: "read", path: path.into(), source }),
            }
        }
        Ok(OpenSockets(sockets))
    }

    /// Whether one could get packets for this address and port.
    pub(super) fn has(&self, key: &Key) -> bool {
        let wanted = key.address();
        self.0.iter().any(|&(bound, port)| {
            let same = bound == wanted || bound.is_unspecified() || wanted.is_unspecified();
            port == key.port() && same
        })
    }
}

/// What a line says, unless it is the heading.
fn socket(line: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = line.split_ascii_whitespace().nth(LOCAL)?.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    // Words as this machine orders their bytes.
    let word = |at: usize| u32::from_str_radix(address.get(at..at + WORD_DIGITS)?, 16).ok().map(u32::to_ne_bytes);
    let address = if address.len() == WORD_DIGITS {
        Ipv4Addr::from(word(0)?).into()
    } else {
        let mut octets = [0; 16];
        for (index, octets) in octets.chunks_exact_mut(4).enumerate() {
            octets.copy_from_slice(&word(index * WORD_DIGITS)?);
        }
        IpAddr::from(Ipv6Addr::from(octets)).to_canonical()
    };
    Some((address, port))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn sockets_are_found_by_their_address_or_every_address() {
        let table = [
            ("127.0.0.1:0", "127.0.0.1", true),
            ("127.0.0.1:0", "127.0.0.2", false),
            ("127.0.0.1:0", "0.0.0.0", true),
            ("0.0.0.0:0", "10.1.2.3", true),
            ("[::1]:0", "::1", true),
            ("[::]:0", "fd00::1", true),
            ("[::]:0", "127.0.0.1", true),
        ];
        for (bound, wanted, open) in table {
            let socket = UdpSocket::bind(bound).expect("a socket");
            let port = socket.local_addr().expect("its address").port();
            let key = Key::new(wanted.parse().expect("an address"), port);
            assert_eq!(OpenSockets::read().expect("the tables").has(&key), open, "{bound} for {wanted}");
        }
    }

    #[test]
    fn a_heading_is_no_socket() {
        assert_eq!(socket("  sl  local_address rem_address   st tx_queue rx_queue tr"), None);
        assert_eq!(socket(""), None);
    }
}
