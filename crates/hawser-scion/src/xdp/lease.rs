//! An application's port on the bypass's whitelist, and the application's choice.
//!
//! Why the lease needs no keeper: the program itself asks the kernel's socket table before it forwards. The packets of
//! an application that died go to the dispatcher from the moment its socket is closed, which the kernel does at once
//! and for any death; no clock, no thread and no process number, which may come again, is needed. What stays is an
//! entry that does nothing. It is removed by whoever looks next: another lease, `attach`, `detach` or `status`.

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::net::sockopt::{ipv6_v6only, socket_type};
use rustix::net::{SocketType, getsockname};

use super::XdpError;
use super::layout::{Entry, Key};
use super::pins::Pins;
use super::sockets::OpenSockets;
use super::whitelist::Whitelist;

/// Numbers this process's leases.
static NEXT: AtomicU32 = AtomicU32::new(1);

/// A UDP socket's port on the whitelist: SCION packets for it go straight there. It begins with a bound socket, and
/// leaves the whitelist when dropped. Freely sent; of two leases for one port the later has it.
#[derive(Debug)]
pub struct Lease {
    whitelist: Whitelist,
    keys: Vec<Key>,
    entry: Entry,
}

/// How an application wants the packets that come to its host's dispatcher port. `Both` by default. Plain data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Delivery {
    /// By the bypass; without one the application does not start.
    Direct,
    /// By the dispatcher, whatever bypass there is.
    Dispatched,
    /// By the bypass where there is one, by the dispatcher where there is none.
    #[default]
    Both,
}

/// How packets come, once it was tried. There is no default. One owner: the lease ends with it.
#[derive(Debug)]
pub enum Arrangement {
    /// By the bypass.
    Direct(Lease),
    /// By the dispatcher: because it was chosen, or for a reason to be told.
    Dispatched(Option<XdpError>),
}

/// Text names no delivery.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read \"{text}\": a delivery is \"direct\", \"dispatched\" or \"both\"")]
pub struct DeliveryError {
    /// What was read.
    text: String,
}

impl Lease {
    /// Puts the port of a bound socket on the whitelist of the calling thread's network namespace.
    ///
    /// # Errors
    /// Where no bypass is attached, the whitelist may not be changed, or the socket has no port.
    pub fn take(socket: &impl AsFd) -> Result<Lease, XdpError> {
        let keys = keys_of(socket)?;
        let pins = Pins::find()?.ok_or(XdpError::NotAttached)?;
        let mut whitelist = Whitelist::open(&pins.whitelist())?.ok_or(XdpError::NotAttached)?;
        whitelist.sweep(&OpenSockets::read()?)?;
        let entry = Entry { process: std::process::id(), lease: NEXT.fetch_add(1, Ordering::Relaxed) };
        for &key in &keys {
            // What `attach --port` put there stays, and serves as well.
            if whitelist.owner(key)? != Some(Entry::default()) {
                whitelist.put(key, entry)?;
            }
        }
        Ok(Lease { whitelist, keys, entry })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        for &key in &self.keys {
            // An entry that stays does no harm, and is swept.
            if self.whitelist.owner(key).is_ok_and(|owner| owner == Some(self.entry)) {
                let _ = self.whitelist.remove(key);
            }
        }
    }
}

impl Delivery {
    /// Arranges it for a bound socket.
    ///
    /// # Errors
    /// Where the bypass is asked for and is not to be had.
    pub fn arrange(self, socket: &impl AsFd) -> Result<Arrangement, XdpError> {
        match self {
            Delivery::Dispatched => Ok(Arrangement::Dispatched(None)),
            Delivery::Direct => Lease::take(socket).map(Arrangement::Direct),
            Delivery::Both => Ok(match Lease::take(socket) {
                Ok(lease) => Arrangement::Direct(lease),
                Err(reason) => Arrangement::Dispatched(Some(reason)),
            }),
        }
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Delivery::Direct => "direct",
            Delivery::Dispatched => "dispatched",
            Delivery::Both => "both",
        })
    }
}

impl FromStr for Delivery {
    type Err = DeliveryError;

    fn from_str(text: &str) -> Result<Delivery, DeliveryError> {
        match text {
            "direct" => Ok(Delivery::Direct),
            "dispatched" => Ok(Delivery::Dispatched),
            "both" => Ok(Delivery::Both),
            _ => Err(DeliveryError { text: text.to_owned() }),
        }
    }
}

/// The ports that a socket gets packets for.
fn keys_of(socket: &impl AsFd) -> Result<Vec<Key>, XdpError> {
    let is_datagram = socket_type(socket).is_ok_and(|kind| kind == SocketType::DGRAM);
    let name = getsockname(socket).ok().and_then(|name| SocketAddr::try_from(name).ok());
    let name = name.filter(|name| is_datagram && name.port() != 0).ok_or(XdpError::NotBound)?;
    let only_ipv6 = name.is_ipv6() && ipv6_v6only(socket).unwrap_or(false);
    Ok(Key::of_socket(name.ip(), name.port(), only_ipv6))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use super::*;

    #[test]
    fn a_delivery_is_read_as_it_is_written() {
        for delivery in [Delivery::Direct, Delivery::Dispatched, Delivery::Both] {
            assert_eq!(delivery.to_string().parse(), Ok(delivery));
        }
        let error = "fast".parse::<Delivery>().expect_err("no such delivery").to_string();
        assert!(error.contains("\"direct\", \"dispatched\" or \"both\""), "{error}");
    }

    #[test]
    fn only_a_bound_udp_socket_has_a_port_to_lease() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        assert!(matches!(Lease::take(&listener), Err(XdpError::NotBound)));
        let unbound = rustix::net::socket(rustix::net::AddressFamily::INET, SocketType::DGRAM, None).expect("a socket");
        assert!(matches!(Lease::take(&unbound), Err(XdpError::NotBound)));
        let bound = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let port = bound.local_addr().expect("its address").port();
        let keys = keys_of(&bound).expect("it has a port");
        assert_eq!(keys, [Key::new("127.0.0.1".parse().expect("an address"), port)]);
    }
}
