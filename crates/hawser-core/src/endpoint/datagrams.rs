//! Steps 1 and 2 in: from a datagram to the session that it is for; and what other threads take of both directions
//! (`beside`).

use super::Endpoint;
use super::streams::Verdict;
use crate::beside::{Opener, Opening, Unsealed};
use crate::drops::DropReason;
use crate::session::{Buffers, Datagram, Route, Sealing, Sink, Transmit};
use crate::units::{Ecn, LinkId, Owner, Time};
use crate::wire::{DataHeader, DatagramKind, Reader};
use std::net::{IpAddr, SocketAddr};

impl Endpoint {
    /// Steps 1 and 2 in: a datagram came by `link` from `remote` to our address `local`.
    #[expect(clippy::too_many_arguments, reason = "what a socket tells of a datagram")]
    pub fn handle_datagram(
        &mut self,
        now: Time,
        link: LinkId,
        remote: SocketAddr,
        local: Option<IpAddr>,
        ecn: Ecn,
        bytes: &mut [u8],
        sink: &mut dyn Sink,
    ) -> Verdict {
        self.handle_opened(now, link, remote, local, ecn, (bytes, Opening::default()), sink)
    }

    /// How the datagrams of this one's label are opened, if it is one of a session and nothing but the key is needed
    /// for that.
    pub fn opener(&self, now: Time, datagram: &[u8]) -> Option<Opener> {
        let label = DataHeader::decode(&mut Reader::new(datagram)).ok()?.label;
        // Of several, that one is the owner which opens it: no thread but the core's knows them all.
        let [owner] = *self.labels.owners(label) else { return None };
        let session =
            self.peers[owner.peer.0 as usize].session.as_ref().filter(|_| self.shares.would_admit(owner.peer));
        session?.opener(now, label, owner)
    }

    /// As [`Endpoint::handle_datagram`], of a datagram with what came of opening it in place by [`Endpoint::opener`].
    #[expect(clippy::too_many_arguments, reason = "what a socket tells of a datagram")]
    pub fn handle_opened(
        &mut self,
        now: Time,
        link: LinkId,
        remote: SocketAddr,
        local: Option<IpAddr>,
        ecn: Ecn,
        (bytes, opening): (&mut [u8], Opening),
        sink: &mut dyn Sink,
    ) -> Verdict {
        let route = Route { link, remote, source: local };
        let kind = bytes.first().ok_or(DropReason::Malformed);
        let kind = kind.and_then(|first| DatagramKind::of(*first).map_err(|_| DropReason::Malformed));
        let verdict = match kind {
            Ok(DatagramKind::Data) => self.on_data(now, route, ecn, bytes, opening, sink),
            Ok(DatagramKind::Initiation) => self.on_initiation(now, route, bytes),
            Ok(DatagramKind::Response) => self.on_handshake_response(now, bytes),
            Ok(DatagramKind::CookieReply) => self.on_cookie(bytes),
            Err(reason) => Err(reason),
        };
        match (verdict, kind) {
            (Ok(()), Ok(DatagramKind::Data)) => Verdict::OfSession,
            (Ok(()), _) => Verdict::Unproven,
            (Err(reason), _) => {
                self.drops.count(reason);
                Verdict::Unproven
            }
        }
    }

    fn on_data(
        &mut self,
        now: Time,
        route: Route,
        ecn: Ecn,
        bytes: &mut [u8],
        opening: Opening,
        sink: &mut dyn Sink,
    ) -> Result<(), DropReason> {
        let header = DataHeader::decode(&mut Reader::new(bytes)).map_err(|_| DropReason::Malformed)?;
        let owner = match (self.labels.owners(header.label), opening.owner) {
            // Whose keys it was tried with has it, or nobody: its bytes are in clear, or spoilt.
            (owners, Some(owner)) if owners.contains(&owner) => owner,
            ([], _) | (_, Some(_)) => return Err(DropReason::UnknownLabel),
            ([owner], None) => *owner,
            (several, None) => {
                let several = several.to_vec();
                let opens =
                    |owner: &Owner| self.peers[owner.peer.0 as usize].opens(owner, &header, bytes, &mut self.scratch);
                several.into_iter().find(opens).ok_or(DropReason::Forged)?
            }
        };
        if !self.shares.admits(owner.peer) {
            return Err(DropReason::TimeShare);
        }
        let index = owner.peer.0 as usize;
        if !self.peers[index].has_live_key(owner.key) {
            self.promote(now, &owner, &header, bytes)?;
        }
        self.flows.arrive_by(route.into());
        let (peer, mut cx) = self.parts(owner.peer);
        let session = peer.session.as_mut().ok_or(DropReason::UnknownLabel)?;
        let datagram = Datagram { route, ecn, header, bytes, opening };
        let verdict = session.on_datagram(now, owner.key, owner.path, datagram, sink, &mut cx);
        self.settle(now, owner.peer);
        verdict
    }

    /// As [`Endpoint::poll_transmit`], but a batch of data may be left in clear: then it is to be sealed so before it
    /// is sent.
    pub fn poll_unsealed(&mut self, now: Time, buffers: &mut dyn Buffers) -> Option<(Transmit, Option<Unsealed>)> {
        self.sealing = Sealing::Later(None);
        let transmit = self.poll_transmit(now, buffers);
        let sealing = std::mem::take(&mut self.sealing);
        let unsealed = if let Sealing::Later(unsealed) = sealing { unsealed } else { None };
        transmit.map(|transmit| (transmit, unsealed))
    }
}
