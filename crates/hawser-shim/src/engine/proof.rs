//! To whom nobody knows no more goes than came from there: a datagram whose sender is forged must not make this host
//! send a third one more than it cost (RFC 9000 section 8.1 asks for as much, and allows three times).
//!
//! 1. A peer is known when it acknowledged a context, or answered a probe: it receives what goes there
//!    ([`Engine::is_known`]).
//! 2. Until then answers to it are counted against what came ([`Engine::got`], [`Engine::may_answer`]).
//! 3. An answer beyond that waits, and a probe goes ([`Engine::hold`]); it leaves when that is answered
//!    ([`Engine::release_proven`]), a round trip later, and once for each peer. What waits too long is dropped
//!    ([`Engine::tend_held`]).
//! 4. What this host begins by itself costs a token each, as long as the peer is not known ([`Engine::may_begin`]): an
//!    answer whose flow was pushed out meanwhile looks like that.

use std::time::Duration;

use hawser_core::units::Time;
use hawser_scion::EndpointAddr;

use super::control::{Control, Said};
use super::form::Form;
use super::health::Nonce;
use super::lanes::Way;
use super::{Drop, Engine, Outside, PeerId, Via};
use crate::compress::Datagrams;
use crate::flow::FlowId;

/// Answers that wait, and their bytes, all together.
const MOST_HELD: usize = 64;
const MOST_HELD_BYTES: usize = 128 * 1024;
/// How long one waits, and after what time a probe is repeated: three round trips of most paths.
const LONGEST: Duration = Duration::from_secs(1);
const BETWEEN_PROBES: Duration = Duration::from_millis(200);
/// Bytes that answers leave for probes: three of them.
const FOR_PROBES: usize = 27;
/// Flows that this host may begin to hosts that are not known, a second, and at once.
const BEGINNINGS: u32 = 1024;

/// What is known of who a peer is. Nothing at first. Its peer owns it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trust {
    answered: bool,
    got: u64,
    sent: u64,
    probe: Option<(Nonce, Time)>,
}

/// An answer that waits. Lives a second at most.
#[derive(Debug)]
pub(super) struct Held {
    peer: PeerId,
    id: FlowId,
    since: Time,
    datagrams: Datagrams,
}

/// Tokens of [`Engine::may_begin`]. Full at first.
#[derive(Debug, Default)]
pub(super) struct Beginnings {
    spent: u32,
    since: Time,
}

impl Engine {
    /// Step 1.
    pub(super) fn is_known(&self, id: PeerId) -> bool {
        self.peers.get(id.0).is_some_and(|peer| peer.trust.answered || peer.compression.is_proven())
    }

    /// Step 1: a probe was answered, of this host's paths.
    pub(super) fn has_answered(&mut self, id: PeerId) {
        self.peers.get_mut(id.0).into_iter().for_each(|peer| peer.trust.answered = true);
    }

    /// Step 1: somebody answers a probe along the way back.
    pub(super) fn answers_back(
        &mut self,
        now: Time,
        id: PeerId,
        from: EndpointAddr,
        nonce: Nonce,
        outside: &mut impl Outside,
    ) -> Result<(), Drop> {
        let trust = self.peers.get_mut(id.0).map(|peer| &mut peer.trust).ok_or(Drop::UnknownEcho)?;
        let is_awaited = trust.probe.is_some_and(|(awaited, _)| awaited == nonce);
        if !is_awaited {
            return Err(Drop::UnknownEcho);
        }
        *trust = Trust { answered: true, ..Trust::default() };
        self.is_still_there(id, from);
        self.release_proven(now, id, outside);
        Ok(())
    }

    /// Step 2.
    pub(super) fn got(&mut self, id: PeerId, bytes: usize) {
        self.peers.get_mut(id.0).into_iter().for_each(|peer| peer.trust.got += bytes as u64);
    }

    /// Step 2, of what was written for a flow; and not before what waits.
    pub(super) fn may_answer(&mut self, id: FlowId) -> bool {
        let Some(peer) = self.lane(id).map(|lane| lane.peer) else { return false };
        self.is_known(peer)
            || (!self.held.iter().any(|held| held.id == id)
                && self.spend(peer, self.scratch.datagrams.total(), FOR_PROBES))
    }

    /// Step 2: counts what goes, where it fits and so much is left.
    pub(super) fn spend(&mut self, id: PeerId, bytes: usize, left: usize) -> bool {
        let Some(trust) = self.peers.get_mut(id.0).map(|peer| &mut peer.trust) else { return false };
        let fits = trust.sent + (bytes + left) as u64 <= trust.got;
        trust.sent += if fits { bytes as u64 } else { 0 };
        fits
    }

    /// Step 3.
    pub(super) fn hold(&mut self, now: Time, id: FlowId, outside: &mut impl Outside) -> Result<(), Drop> {
        let lane = self.lane(id).ok_or(Drop::Stray)?;
        let (peer, way) = (lane.peer, lane.way);
        self.ask_who(now, peer, way, outside);
        let bytes: usize = self.held.iter().map(|held| held.datagrams.total()).sum();
        if self.held.len() >= MOST_HELD || bytes + self.scratch.datagrams.total() > MOST_HELD_BYTES {
            return Err(Drop::Unproven);
        }
        let datagrams = std::mem::take(&mut self.scratch.datagrams);
        self.held.push(Held { peer, id, since: now, datagrams });
        Ok(())
    }

    pub(super) fn ask_who(&mut self, now: Time, id: PeerId, way: Way, outside: &mut impl Outside) {
        let last = self.peers.get(id.0).and_then(|peer| peer.trust.probe);
        let nonce = last.map_or_else(|| Nonce(outside.random()), |(nonce, _)| nonce);
        let probe = Control::of(Said::Probe(nonce));
        let is_time = last.is_none_or(|(_, sent)| now.since(sent) >= BETWEEN_PROBES);
        if !is_time || !(self.is_known(id) || self.spend(id, probe.bytes().len(), 0)) {
            return;
        }
        self.peers.get_mut(id.0).into_iter().for_each(|peer| peer.trust.probe = Some((nonce, now)));
        self.counters.probes += 1;
        let via = match way {
            Way::Conn(conn) => Via::Conn(conn),
            Way::Back(to) => Via::Back(to),
        };
        // One that does not go is as good as one that does not arrive.
        outside.send_control(via, &probe);
    }

    /// Step 3.
    pub(super) fn release_proven(&mut self, now: Time, id: PeerId, outside: &mut impl Outside) {
        if self.held.is_empty() || !self.is_known(id) {
            return;
        }
        let (free, held) = std::mem::take(&mut self.held).into_iter().partition(|held| held.peer == id);
        self.held = held;
        for held in Vec::<Held>::into_iter(free) {
            let Some(way) = self.lane(held.id).map(|lane| lane.way) else { continue };
            self.scratch.datagrams = held.datagrams;
            if let Err(why) = self.depart(now, way, Form::Datagrams, outside) {
                self.counters.drop(why);
            }
        }
    }

    /// Step 3, as time passes.
    pub(super) fn tend_held(&mut self, now: Time, outside: &mut impl Outside) {
        if self.held.is_empty() {
            return;
        }
        let before = self.held.len();
        self.held.retain(|held| now.since(held.since) < LONGEST);
        self.counters.add(Drop::Unproven, (before - self.held.len()) as u64);
        for at in 0..self.held.len() {
            let (peer, id) = (self.held[at].peer, self.held[at].id);
            if let Some(way) = self.lane(id).map(|lane| lane.way) {
                self.ask_who(now, peer, way, outside);
            }
        }
    }

    /// Step 4.
    pub(super) fn may_begin(&mut self, now: Time, id: PeerId) -> bool {
        if self.is_known(id) {
            return true;
        }
        let tokens = &mut self.beginnings;
        let back = now.since(tokens.since).as_millis() * u128::from(BEGINNINGS) / 1000;
        if back > 0 {
            *tokens =
                Beginnings { spent: tokens.spent.saturating_sub(u32::try_from(back).unwrap_or(u32::MAX)), since: now };
        }
        let may = tokens.spent < BEGINNINGS;
        tokens.spent += u32::from(may);
        may
    }
}
