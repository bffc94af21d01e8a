//! Socket addresses as the kernel has them (`sockaddr_in`, `sockaddr_in6`), as plain bytes:
//!
//! ```text
//!  0          2        4                8              24         28
//!  | family   | port   | IPv4 address   |              |          |
//!  | family   | port   | flow           | IPv6 address | scope    |
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// Bytes of `sockaddr_in` and `sockaddr_in6` (linux/in.h, linux/in6.h).
const NAME4_BYTES: usize = 16;
pub(super) const NAME_BYTES: usize = 28;

const V4_ADDRESS: usize = 4;
const V6_ADDRESS: usize = 8;
const V6_SCOPE: usize = 24;

/// An address for or from the kernel; of no family at first. Plain data, aligned as the kernel's.
#[repr(C, align(8))]
#[derive(Debug, Clone, Copy)]
pub(super) struct Name(pub(super) [u8; NAME_BYTES]);

impl Name {
    pub(super) const EMPTY: Name = Name([0; NAME_BYTES]);

    /// Writes `address`, and returns how many bytes of the name it takes.
    pub(super) fn set(&mut self, address: &SocketAddr) -> usize {
        let bytes = &mut self.0;
        bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
        match address {
            SocketAddr::V4(address) => {
                bytes[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
                bytes[V4_ADDRESS..V4_ADDRESS + 4].copy_from_slice(&address.ip().octets());
                bytes[V4_ADDRESS + 4..NAME4_BYTES].fill(0);
                NAME4_BYTES
            }
            SocketAddr::V6(address) => {
                bytes[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
                bytes[4..V6_ADDRESS].fill(0);
                bytes[V6_ADDRESS..V6_SCOPE].copy_from_slice(&address.ip().octets());
                bytes[V6_SCOPE..].copy_from_slice(&address.scope_id().to_ne_bytes());
                NAME_BYTES
            }
        }
    }

    /// The address, `None` when it is of another family.
    pub(super) fn get(&self) -> Option<SocketAddr> {
        let port = u16::from_be_bytes(self.array(2));
        match i32::from(u16::from_ne_bytes(self.array(0))) {
            libc::AF_INET => {
                let ip = Ipv4Addr::from(self.array::<4>(V4_ADDRESS));
                Some(SocketAddr::new(IpAddr::V4(ip), port))
            }
            libc::AF_INET6 => {
                let ip = Ipv6Addr::from(self.array::<16>(V6_ADDRESS));
                let scope = u32::from_ne_bytes(self.array(V6_SCOPE));
                Some(SocketAddrV6::new(ip, port, 0, scope).into())
            }
            _ => None,
        }
    }

    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        std::array::from_fn(|n| self.0[at + n])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::SockAddr;

    #[test]
    fn addresses_are_laid_out_as_the_c_library_does() {
        for text in ["192.0.2.1:4920", "[2001:db8::7]:4920", "[fe80::1%3]:1", "0.0.0.0:0"] {
            let address: SocketAddr = text.parse().expect("an address");
            let mut name = Name([0xff; NAME_BYTES]);
            let len = name.set(&address);
            assert_eq!(name.get(), Some(address));
            let theirs = SockAddr::from(address);
            assert_eq!(theirs.len() as usize, len, "{text}");
            // SAFETY: a `SockAddr` holds `len` initialised bytes from its start.
            let bytes = unsafe { std::slice::from_raw_parts(theirs.as_ptr().cast::<u8>(), len) };
            assert_eq!(&name.0[..len], bytes, "{text}");
        }
    }

    #[test]
    fn another_family_is_no_address() {
        assert_eq!(Name::EMPTY.get(), None);
    }
}
