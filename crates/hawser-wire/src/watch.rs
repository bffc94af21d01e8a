//! Looks at the beginning of each IP packet that passes a namespace's interfaces, whatever they are made of.
//!
//! 1. A [`PacketSocket`] gets every packet, sent and received, without its link's header. 2. Each one's beginning is
//!    looked at.
//! 3. What looked comes back with what it found.

use socket2::{SockAddr, Type};

use crate::error::WireError;
use crate::namespace::Namespace;
use crate::packet_socket::{PacketSocket, View};

/// What of a packet is seen: the longest IPv6 and TCP headers without extensions (40 and 60 bytes), and some room.
const SEEN: usize = 128;

/// What looks at packets: an IP header first, as much as there is up to 128 bytes.
pub trait Look: Send + 'static {
    /// Looks at a packet.
    fn look(&mut self, packet: &[u8]);
}

/// A watch under way. It begins with what passes next; dropped, it stops. One owner.
#[derive(Debug)]
pub struct Watch<L>(PacketSocket<L>);

impl<L: Look> Watch<L> {
    /// Starts watching in `namespace`.
    ///
    /// # Errors
    /// Where the socket cannot be had (it needs root), or the namespace not entered.
    pub fn start(namespace: &Namespace, look: L) -> Result<Self, WireError> {
        let view = View { name: "watch", kind: Type::DGRAM, most: SEEN };
        let each = |look: &mut L, packet: &[u8], _: &SockAddr| look.look(packet);
        PacketSocket::start(namespace, view, look, each).map(Self)
    }

    /// Ends it, and gives back what looked.
    ///
    /// # Errors
    /// Where the socket failed, or the kernel dropped packets.
    ///
    /// # Panics
    /// Where its thread did.
    pub fn finish(self) -> Result<L, WireError> {
        self.0.finish()
    }
}
