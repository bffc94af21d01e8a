//! A link between the portals: two pipes, an address, perhaps a NAT.

use crate::net::{Datagram, LinkSpec, Nat, Parcel, Pipe};
use crate::random::Seeded;
use hawser_core::units::Time;
use std::net::{IpAddr, SocketAddr};

/// After this many addresses the first comes again.
const MOVES: u8 = 200;
/// The port of the local portal's sockets.
const PORT: u16 = 5_000;

/// The address of a link behind its NAT: `move_number` counts how often it changed.
pub fn inside(link: usize, ipv6: bool, move_number: u8) -> SocketAddr {
    let last = link as u8 + 1;
    let ip = if ipv6 {
        IpAddr::from([0x2001, 0xdb8, 1, u16::from(move_number), 0, 0, 0, u16::from(last)])
    } else {
        IpAddr::from([192, 0, 2 + move_number, last])
    };
    SocketAddr::new(ip, PORT)
}

/// A link. Idle at first; the world owns it.
pub struct VirtualLink {
    /// From the local portal to the remote one.
    pub up: Pipe,
    /// And back.
    pub down: Pipe,
    /// The link whose pipes carry its datagrams: mostly itself.
    pub through: usize,
    number: usize,
    ipv6: bool,
    nat: Option<Nat>,
    moves: u8,
    /// Datagrams on their way up that fell into a hole, while somebody collects them.
    pub hole: Option<Vec<Datagram>>,
}

impl VirtualLink {
    /// Link `number`, as `spec` says.
    pub fn new(number: usize, spec: &LinkSpec, rng: &mut Seeded) -> Self {
        let outside = IpAddr::from([203, 0, 113, number as u8 + 1]);
        VirtualLink {
            up: Pipe::new(spec.up.clone(), rng.fork()),
            down: Pipe::new(spec.down.clone(), rng.fork()),
            through: spec.through.unwrap_or(number),
            number,
            ipv6: spec.ipv6,
            nat: spec.nat.map(|idle| Nat::new(outside, idle)),
            moves: 0,
            hole: None,
        }
    }

    /// One of its pipes.
    pub fn pipe(&mut self, up: bool) -> &mut Pipe {
        if up { &mut self.up } else { &mut self.down }
    }

    /// Whether the sender's socket refuses this datagram.
    pub fn refuses(&mut self, up: bool, datagram: &Datagram) -> bool {
        let way = &self.pipe(up).way;
        way.refuses && datagram.wire_len() > way.mtu
    }

    /// A datagram goes out: whom the remote portal takes for its sender.
    pub fn outward(&mut self, now: Time) -> SocketAddr {
        let inside = inside(self.number, self.ipv6, self.moves);
        self.nat.as_mut().map_or(inside, |nat| nat.outward(now))
    }

    /// The address at which the remote portal reaches it; none behind a NAT without a binding.
    pub fn public(&self) -> Option<SocketAddr> {
        match &self.nat {
            Some(nat) => nat.bound(),
            None => Some(inside(self.number, self.ipv6, self.moves)),
        }
    }

    /// Whether a datagram to `address` finds the local portal.
    pub fn takes_in(&mut self, now: Time, address: SocketAddr) -> bool {
        match &mut self.nat {
            Some(nat) => nat.inward(now, address),
            None => inside(self.number, self.ipv6, self.moves) == address,
        }
    }

    /// The NAT gives it another port.
    pub fn rebind(&mut self) {
        if let Some(nat) = &mut self.nat {
            nat.rebind();
        }
    }

    /// Its own address changes.
    pub fn change_address(&mut self) {
        self.moves = (self.moves + 1) % MOVES;
    }
}
