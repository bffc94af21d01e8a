//! Links of streams: what the driver tells of each, and is told of who is behind one.

use super::Endpoint;
use crate::congestion::SocketState;
use crate::units::{LinkId, PeerId, Time};
use std::net::SocketAddr;

/// What a datagram showed of its sender. A plain value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds a session's keys, and this was sent by it for the first time.
    OfSession,
    /// Nothing: anybody could have sent it, or sent it again.
    Unproven,
}

impl Endpoint {
    /// A link has a stream to `remote` (again): paths along it are probed, and handshakes with peers that have no
    /// session initiated, at once.
    pub fn handle_stream_up(&mut self, now: Time, link: LinkId, remote: SocketAddr) {
        for index in 0..self.peers.len() {
            if let Some(session) = &mut self.peers[index].session {
                session.on_stream_up(now, link, remote);
            }
            self.initiate_at(now, PeerId(index as u32));
        }
    }

    /// The stream of a link to `remote` broke: what was under way goes by other paths at once.
    pub fn handle_stream_down(&mut self, now: Time, link: LinkId, remote: SocketAddr) {
        for session in self.peers.iter_mut().filter_map(|peer| peer.session.as_mut()) {
            session.on_stream_down(now, link, remote);
        }
    }

    /// How much the socket of a link's stream to `remote` takes now, and how fast it delivers.
    pub fn handle_socket(&mut self, link: LinkId, remote: SocketAddr, state: &SocketState) {
        for session in self.peers.iter_mut().filter_map(|peer| peer.session.as_mut()) {
            session.on_socket(link, remote, state);
        }
    }
}
