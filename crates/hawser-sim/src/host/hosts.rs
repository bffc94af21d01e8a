//! The hosts of both sides, by where they were put.

use super::{Host, destination};
use hawser_core::units::Time;
use std::any::Any;
use std::net::{IpAddr, Ipv4Addr};

/// The name of a host. A plain value.
#[derive(Copy, Clone, Debug)]
pub struct HostId(usize, usize);

struct Placed {
    address: IpAddr,
    host: Box<dyn Host>,
}

/// All hosts, by their side. There is none at first; one owner.
#[derive(Default)]
pub struct Hosts([Vec<Placed>; 2]);

impl Hosts {
    /// Puts a host on a side.
    pub fn put(&mut self, side: usize, address: Ipv4Addr, host: impl Host) -> HostId {
        self.0[side].push(Placed { address: IpAddr::V4(address), host: Box::new(host) });
        HostId(side, self.0[side].len() - 1)
    }

    /// A host that was put there. Panics if it is another kind of host.
    pub fn get<H: Host>(&self, id: HostId) -> &H {
        let host: &dyn Any = &*self.0[id.0][id.1].host;
        host.downcast_ref().expect("a host of this kind")
    }

    /// Those of a side.
    pub fn on(&mut self, side: usize) -> impl Iterator<Item = &mut dyn Host> {
        self.0[side].iter_mut().map(|placed| &mut *placed.host)
    }

    /// When the next of them wants to be polled.
    pub fn deadline(&self) -> Option<Time> {
        self.0.iter().flatten().filter_map(|placed| placed.host.deadline()).min()
    }

    /// Whether any of a side wants to be polled by now.
    pub fn is_due(&self, side: usize, now: Time) -> bool {
        self.0[side].iter().any(|placed| placed.host.deadline().is_some_and(|at| at <= now))
    }

    /// Gives a packet to whoever it is for on a side. Tells whether anybody was.
    pub fn receive(&mut self, side: usize, now: Time, packet: &[u8], partial: bool) -> bool {
        let to = destination(packet);
        let mut claimed = false;
        for placed in self.0[side].iter_mut().filter(|placed| Some(placed.address) == to) {
            placed.host.receive(now, packet, partial);
            claimed = true;
        }
        claimed
    }
}
