//! End hosts behind the portals, joined to them by an ideal wire.

pub mod flow;
pub mod packets;
pub mod ping;
pub mod stack;
pub mod tcp;

use crate::portal::Portal;
use hawser_core::packet::Offload;
use hawser_core::units::Time;
use std::any::Any;
use std::net::IpAddr;

/// A host. It is polled whenever its portal did something, and when its deadline comes.
pub trait Host: Any {
    /// Takes a packet from its portal; `partial`: its transport checksum is not complete.
    fn receive(&mut self, now: Time, packet: &[u8], partial: bool);
    /// Sends what it has to send now.
    fn poll(&mut self, now: Time, entrance: &mut Entrance<'_>);
    /// When it wants to be polled again.
    fn deadline(&self) -> Option<Time>;
}

/// The way into a portal's queue. Made for one poll.
pub struct Entrance<'a> {
    portal: &'a mut Portal,
    now: Time,
    queued: Option<u64>,
}

impl<'a> Entrance<'a> {
    /// The entrance of `portal`.
    pub fn new(portal: &'a mut Portal, now: Time) -> Self {
        Entrance { portal, now, queued: None }
    }

    /// The largest inner packet, bytes.
    pub fn mtu(&self) -> usize {
        usize::from(self.portal.mtu)
    }

    /// Whether the portal has a session to send by.
    pub fn is_open(&mut self) -> bool {
        self.queued();
        self.queued != Some(u64::MAX)
    }

    /// Bytes in the portal's entrance queue; more than any number while there is no session.
    pub fn queued(&mut self) -> u64 {
        let look = || self.portal.session(self.now).map_or(u64::MAX, |session| session.queued.0);
        *self.queued.get_or_insert_with(look)
    }

    /// Sends the packet that `write` puts into the read buffer, of as many bytes as it says.
    pub fn send(&mut self, offload: Offload, write: impl FnOnce(&mut [u8]) -> usize) {
        let mut sent = 0;
        self.portal.send_inner(self.now, offload, |buffer| {
            sent = write(buffer);
            sent
        });
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
