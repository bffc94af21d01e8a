//! End hosts behind the portals, joined to them by an ideal wire, or to a link without a portal.

pub mod flow;
pub mod hosts;
pub mod packets;
pub mod ping;
pub mod stack;
pub mod tcp;
pub mod wire;

use crate::portal::Portal;
use hawser_core::packet::Offload;
use hawser_core::units::Time;
pub use hosts::{HostId, Hosts};
use std::any::Any;
use std::net::IpAddr;
pub use wire::Wire;

/// A host. It is polled whenever its portal did something, and when its deadline comes.
pub trait Host: Any {
    /// Takes a packet from its portal; `partial`: its transport checksum is not complete.
    fn receive(&mut self, now: Time, packet: &[u8], partial: bool);
    /// Sends what it has to send now.
    fn poll(&mut self, now: Time, ingress: &mut Ingress<'_>);
    /// When it wants to be polled again.
    fn deadline(&self) -> Option<Time>;
}

/// Where a host's packets go.
enum Way<'a> {
    Portal(&'a mut Portal),
    Wire(&'a mut Wire),
}

/// The way into a portal's queue, or onto a link without a portal. Made for one poll.
pub struct Ingress<'a> {
    way: Way<'a>,
    now: Time,
    queued: Option<u64>,
}

impl<'a> Ingress<'a> {
    /// Into the queue of `portal`.
    pub fn new(portal: &'a mut Portal, now: Time) -> Self {
        Ingress { way: Way::Portal(portal), now, queued: None }
    }

    /// Straight onto a link.
    pub fn onto(wire: &'a mut Wire, now: Time) -> Self {
        Ingress { way: Way::Wire(wire), now, queued: None }
    }

    /// The largest inner packet, bytes.
    pub fn mtu(&self) -> usize {
        match &self.way {
            Way::Portal(portal) => usize::from(portal.mtu),
            Way::Wire(wire) => wire.mtu,
        }
    }

    /// Whether the portal runs, and takes what it is given.
    pub fn is_running(&self) -> bool {
        match &self.way {
            Way::Portal(portal) => !portal.stopped,
            Way::Wire(_) => true,
        }
    }

    /// Whether the portal has a session to send by.
    pub fn is_open(&mut self) -> bool {
        self.queued();
        self.queued != Some(u64::MAX)
    }

    /// Bytes in the portal's ingress queue; more than any number while there is no session.
    pub fn queued(&mut self) -> u64 {
        let look = || match &self.way {
            Way::Portal(portal) => portal.session(self.now).map_or(u64::MAX, |session| session.queued.0),
            Way::Wire(_) => 0,
        };
        *self.queued.get_or_insert_with(look)
    }

    /// Sends the packet that `write` puts into the read buffer, of as many bytes as it says.
    pub fn send(&mut self, offload: Offload, write: impl FnOnce(&mut [u8]) -> usize) {
        let mut sent = 0;
        match &mut self.way {
            Way::Wire(wire) => wire.send(offload, write),
            Way::Portal(portal) => portal.send_inner(self.now, offload, |buffer| {
                sent = write(buffer);
                sent
            }),
        }
        if let Some(queued) = &mut self.queued {
            *queued = queued.saturating_add(sent as u64);
        }
    }
}

/// The destination of an inner packet; `None` where it is none.
pub fn destination(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Some(IpAddr::from(<[u8; 4]>::try_from(packet.get(16..20)?).ok()?)),
        6 => Some(IpAddr::from(<[u8; 16]>::try_from(packet.get(24..40)?).ok()?)),
        _ => None,
    }
}
