//! An address translator before a portal: one inside address behind one outside, by port.

use hawser_core::units::Time;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The first port that a NAT gives out.
const FIRST_PORT: u16 = 20_000;

/// A NAT with one binding at most. Unbound at first; its link owns it.
#[derive(Clone, Debug)]
pub struct Nat {
    outside: IpAddr,
    /// A binding that nothing used for so long is forgotten.
    idle: Duration,
    binding: Option<(SocketAddr, Time)>,
    next_port: u16,
}

impl Nat {
    /// A NAT with this outside address, which forgets a binding that was idle for so long.
    pub fn new(outside: IpAddr, idle: Duration) -> Self {
        Nat { outside, idle, binding: None, next_port: FIRST_PORT }
    }

    /// A datagram goes out: the address that the outside sees.
    pub fn outward(&mut self, now: Time) -> SocketAddr {
        let live = self.binding.filter(|(_, used)| now.since(*used) <= self.idle);
        let address = live.map_or_else(|| self.fresh(), |(address, _)| address);
        self.binding = Some((address, now));
        address
    }

    fn fresh(&mut self) -> SocketAddr {
        self.next_port += 1;
        SocketAddr::new(self.outside, self.next_port - 1)
    }

    /// Whether a datagram to `address` finds the inside now.
    pub fn inward(&mut self, now: Time, address: SocketAddr) -> bool {
        match &mut self.binding {
            Some((bound, used)) if *bound == address && now.since(*used) <= self.idle => {
                *used = now;
                true
            }
            _ => false,
        }
    }

    /// Forgets the binding: the next datagram out gets another port.
    pub fn rebind(&mut self) {
        self.binding = None;
    }

    /// The address it is bound to now.
    pub fn bound(&self) -> Option<SocketAddr> {
        self.binding.map(|(address, _)| address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binding_lives_while_it_is_used() {
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let mut nat = Nat::new(IpAddr::from([203, 0, 113, 1]), Duration::from_secs(30));
        let first = nat.outward(at(0));
        assert_eq!(nat.outward(at(29)), first);
        assert!(nat.inward(at(50), first), "used within 30 s");
        assert!(!nat.inward(at(81), first), "idle for 31 s");
        let second = nat.outward(at(82));
        assert_ne!(second, first);
        assert!(!nat.inward(at(82), first));
        nat.rebind();
        assert_ne!(nat.outward(at(83)), second);
    }
}
