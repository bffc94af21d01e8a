//! Links whose far ends are no socket addresses: the driver gives each way an [`Alias`], and says when it is broken.

use super::Endpoint;
use crate::alias::Alias;
use crate::units::{LinkId, PeerId, Time};
use std::net::SocketAddr;

impl Endpoint {
    /// These are the ways of a link to a peer from now on: a path is opened along each new one, and closed where one
    /// went.
    pub fn set_aliases(&mut self, now: Time, PeerId(id): PeerId, link: LinkId, aliases: &[Alias]) {
        let Some(peer) = self.peers.get_mut(id as usize) else { return };
        let of_link = |endpoint: &SocketAddr| Alias::of(endpoint).is_some_and(|alias| alias.link() == link);
        let endpoints = &mut peer.config.endpoints;
        endpoints.retain(|endpoint| !of_link(endpoint));
        endpoints.extend(aliases.iter().map(Alias::address));
        if let Some(session) = &mut peer.session {
            session.keep_aliases(now, link, aliases);
        }
        self.count_active();
        self.initiate_at(now, PeerId(id));
        self.reopen_paths(now);
    }

    /// Somebody on the way says that it is broken, and quotes the first bytes of a datagram. Whether that one is under
    /// way: then the paths along it are suspected, not given up, for whoever saw it could say so.
    pub fn handle_broken(&mut self, now: Time, link: LinkId, remote: SocketAddr, quoted: &[u8]) -> bool {
        let mut sent = false;
        for peer in &mut self.peers {
            sent |= peer.handshake.as_ref().is_some_and(|handshake| handshake.sent_quoted(quoted));
            sent |= peer.session.as_mut().is_some_and(|session| session.on_broken(now, link, remote, quoted));
        }
        sent
    }
}
