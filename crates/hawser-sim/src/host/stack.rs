//! A host's network stack: smoltcp on an ideal wire. By itself it answers pings.

use super::Ingress;
use hawser_core::packet::Offload;
use hawser_core::units::Time;
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr, Ipv4Address};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// All inner hosts share this prefix length, so that none needs a route.
const PREFIX: u8 = 8;
/// Bytes of a packet: what every tunnel takes (RFC 8200 section 5).
const MTU: usize = 1280;

/// Packets on their way in and out of a stack.
#[derive(Default)]
struct Wire {
    inward: VecDeque<Vec<u8>>,
    outward: VecDeque<Vec<u8>>,
}

struct Taken(Vec<u8>);
struct Given<'a>(&'a mut VecDeque<Vec<u8>>);

impl RxToken for Taken {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        take(&self.0)
    }
}

impl TxToken for Given<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, give: F) -> R {
        let mut packet = vec![0; len];
        let result = give(&mut packet);
        self.0.push_back(packet);
        result
    }
}

impl Device for Wire {
    type RxToken<'a> = Taken;
    type TxToken<'a> = Given<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Taken, Given<'_>)> {
        let packet = self.inward.pop_front()?;
        Some((Taken(packet), Given(&mut self.outward)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Given<'_>> {
        Some(Given(&mut self.outward))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = MTU;
        capabilities
    }
}

/// A stack with sockets. Its host owns it.
pub struct Stack {
    wire: Wire,
    /// The interface, for connecting.
    pub interface: Interface,
    /// Its sockets.
    pub sockets: SocketSet<'static>,
    deadline: Option<Time>,
}

/// smoltcp counts microseconds.
fn instant(now: Time) -> Instant {
    Instant::from_micros(i64::try_from(now.as_micros()).unwrap_or(i64::MAX))
}

impl Stack {
    /// A stack with this address; `seed` decides its sequence numbers.
    pub fn new(address: Ipv4Addr, seed: u64) -> Self {
        let mut wire = Wire::default();
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut wire, Instant::ZERO);
        let address = IpAddress::Ipv4(Ipv4Address::from_octets(address.octets()));
        interface.update_ip_addrs(|list| {
            list.push(IpCidr::new(address, PREFIX)).expect("room for one address");
        });
        Stack { wire, interface, sockets: SocketSet::new(Vec::new()), deadline: None }
    }

    /// A packet from the portal.
    pub fn receive(&mut self, packet: &[u8]) {
        self.wire.inward.push_back(packet.to_vec());
    }

    /// Works on what came and sends what is due.
    pub fn poll(&mut self, now: Time, ingress: &mut Ingress<'_>) {
        self.interface.poll(instant(now), &mut self.wire, &mut self.sockets);
        for packet in self.wire.outward.drain(..) {
            ingress.send(Offload::default(), |out| {
                out[..packet.len()].copy_from_slice(&packet);
                packet.len()
            });
        }
        // A microsecond at least: smoltcp may ask for now when a socket waits for its owner.
        let delay = self.interface.poll_delay(instant(now), &self.sockets);
        self.deadline = delay.map(|delay| now + std::time::Duration::from_micros(delay.total_micros().max(1) + 1));
    }

    /// When it wants to be polled.
    pub fn deadline(&self) -> Option<Time> {
        self.deadline
    }
}
