//! A hub's two sides in the packet thread (`hawser-hub`): a portal with neither has none of this.
//!
//! 1. [`note_rest`] before the thread waits, which it does no longer than that says; [`begin`] after it: leases that
//!    are over end before anything that came is used. A batch that a link or TUN brings asks again
//!    ([`Hub::before_batch`]), and so does each packet that the host is to get ([`Hub::runs`]): a process that was
//!    stopped with it in hand does not forward it.
//! 2. [`hear`] gives the core's events to both sides, and to the control thread.
//! 3. [`round`], before and after sending: who is silent, what is to be said, where packets go.

use hawser_core::endpoint::{Endpoint, Event};
use hawser_core::packet::Coalescer;
use hawser_core::session::Sink;
use hawser_core::units::{PeerId, Time};
#[cfg(feature = "etcd")]
use hawser_hub::claim::Claim;
use hawser_hub::claim::Timing;
use hawser_hub::gate::Gate;
use hawser_hub::pair::{Member, Pair};
use hawser_hub::units::Epoch;
#[cfg(feature = "etcd")]
use hawser_hub::units::MemberId;

use super::Parts;
use crate::run::messages::{Drain, Hubs, News, Report, Standing};

/// What this portal is in hubs. It forwards for nobody at first; the packet thread owns it.
pub struct Hub {
    pairs: Vec<Told>,
    gate: Option<Gate>,
}

/// A pair, and the epoch that the control thread knows of.
struct Told {
    pair: Pair,
    epoch: Option<Epoch>,
}

impl Hub {
    /// None for a portal that is in no hub. `endpoint` has its first peers.
    pub fn new(now: Time, hubs: Hubs, endpoint: &mut Endpoint, sink: &mut dyn Sink) -> Option<Box<Self>> {
        let Hubs { first, joined, member, random } = hubs;
        let pair = |members: Vec<Member>| Pair::new(endpoint, first, &members, random);
        let pairs: Vec<Told> = joined.into_iter().filter_map(pair).map(|pair| Told { pair, epoch: None }).collect();
        let mut gate = member.map(|me| Gate::new(me, Timing::DEFAULT));
        if let Some(gate) = &mut gate {
            let peers = endpoint.snapshot(now).peers.len() as u32;
            (0..peers).for_each(|peer| gate.add_peer(now, PeerId(peer), endpoint, sink));
        }
        (gate.is_some() || !pairs.is_empty()).then(|| Box::new(Self { pairs, gate }))
    }

    /// Whether what comes in is to be looked at before it is used.
    pub fn is_member(&self) -> bool {
        self.gate.is_some()
    }

    /// Step 1: a batch was read at `now`, and is not used yet. Of what came home before, nothing is forwarded where
    /// this process did not run meanwhile.
    pub fn before_batch(&mut self, now: Time, endpoint: &mut Endpoint, home: &mut Coalescer) {
        if let Some(gate) = &mut self.gate
            && !gate.handle_batch(now, endpoint, home)
        {
            endpoint.note_fenced(home.flush_while(&mut |_, _| false));
        }
    }

    /// Step 1: whether what is in hand may be forwarded at `now`.
    pub fn runs(&mut self, now: Time) -> bool {
        self.gate.as_mut().is_none_or(|gate| gate.runs(now))
    }

    /// A peer that came while the portal runs.
    pub fn add_peer(&mut self, now: Time, peer: PeerId, endpoint: &mut Endpoint, sink: &mut dyn Sink) {
        if let Some(gate) = &mut self.gate {
            gate.add_peer(now, peer, endpoint, sink);
        }
    }

    /// One that went.
    pub fn remove_peer(&mut self, peer: PeerId) {
        self.gate.iter_mut().for_each(|gate| gate.remove_peer(peer));
    }

    /// The operator takes a peer off this member, or all of them; or no longer does.
    pub fn drain(&mut self, now: Time, drain: Drain, endpoint: &mut Endpoint, sink: &mut dyn Sink) {
        if let Some(gate) = &mut self.gate {
            gate.handle_drain(now, drain.peer, drain.begins, endpoint, sink);
        }
    }

    /// What was heard of whom peers claimed, and not from them.
    #[cfg(feature = "etcd")]
    pub fn hear_of(&mut self, now: Time, claims: &[(PeerId, Claim)], endpoint: &mut Endpoint, sink: &mut dyn Sink) {
        if let Some(gate) = &mut self.gate {
            claims.iter().for_each(|(peer, claim)| gate.handle_hearsay(now, *peer, *claim, endpoint, sink));
        }
    }

    /// Other members no longer hear from this one.
    #[cfg(feature = "etcd")]
    pub fn miss(&mut self, now: Time, member: MemberId, endpoint: &mut Endpoint, sink: &mut dyn Sink) {
        if let Some(gate) = &mut self.gate {
            gate.handle_missed(now, member, endpoint, sink);
        }
    }

    /// When [`round`] is due.
    pub fn poll_timeout(&self) -> Time {
        let pairs = self.pairs.iter().map(|told| told.pair.poll_timeout());
        pairs.chain(self.gate.as_ref().map(Gate::poll_timeout)).min().unwrap_or(Time::NEVER)
    }

    /// How it stands with each peer that is in a hub, or is served by one.
    pub fn standings(&self, now: Time, peers: usize) -> Vec<(PeerId, Standing)> {
        let pairs = self.pairs.iter().flat_map(|Told { pair, .. }| {
            let status = pair.status();
            let epoch = Some(status.claim.epoch);
            let named = move |Member { peer, .. }: Member| match peer {
                peer if peer == status.active.peer => (peer, Standing::Active { epoch, settled: status.settled }),
                peer if peer == status.standby.peer => (peer, Standing::Backup { epoch }),
                peer => (peer, Standing::Spare { epoch }),
            };
            pair.members().map(named)
        });
        let wards = self.gate.iter().flat_map(|gate| {
            let known = (0..peers as u32).map(PeerId).filter(move |peer| !gate.is_plain(*peer));
            known.map(move |peer| {
                let epoch = gate.known(peer).map(|claim| claim.epoch);
                (peer, Standing::Member { role: gate.role(now, peer), epoch })
            })
        });
        let mut all: Vec<_> = wards.collect();
        // A member of a hub may have another hub as its peer.
        all.retain(|(peer, _)| !self.pairs.iter().any(|told| told.has(*peer)));
        all.extend(pairs);
        all
    }

    /// Whether it owns no peer that could be another member's.
    pub fn is_drained(&self) -> bool {
        self.gate.as_ref().is_none_or(Gate::is_drained)
    }

    fn handle_event(&mut self, now: Time, event: &Event, endpoint: &mut Endpoint, sink: &mut dyn Sink) {
        self.pairs.iter_mut().for_each(|told| told.pair.handle_event(now, event));
        if let Some(gate) = &mut self.gate {
            gate.handle_event(now, event, endpoint, sink);
        }
    }

    fn handle_round(&mut self, now: Time, endpoint: &mut Endpoint, sink: &mut dyn Sink, tell: impl Fn(News)) -> bool {
        let mut more = false;
        for told in &mut self.pairs {
            more |= told.pair.handle_round(now, endpoint);
            let epoch = Some(told.pair.status().claim.epoch);
            if std::mem::replace(&mut told.epoch, epoch) != epoch {
                epoch.into_iter().for_each(|epoch| tell(News::Claimed(epoch)));
            }
            std::iter::from_fn(|| told.pair.poll_event()).for_each(|moved| tell(News::Moved(moved)));
        }
        if let Some(gate) = &mut self.gate {
            gate.handle_timeout(now, endpoint, sink);
            std::iter::from_fn(|| gate.poll_event()).for_each(|announced| tell(News::Announced(announced)));
        }
        more
    }
}

impl Told {
    fn has(&self, peer: PeerId) -> bool {
        self.pair.members().any(|member| member.peer == peer)
    }
}

/// Step 1: the thread would wait until then, if nothing wakes it. Gives until when it is to.
#[must_use]
pub fn note_rest(parts: &mut Parts, now: Time, until: Time) -> Time {
    let gate = parts.hub.as_mut().and_then(|hub| hub.gate.as_mut());
    gate.map_or(until, |gate| gate.note_rest(now, until))
}

/// Step 1: it woke.
pub fn begin(parts: &mut Parts, now: Time) {
    let Parts { hub, endpoint, home, .. } = parts;
    if let Some(hub) = hub {
        hub.before_batch(now, endpoint, home);
    }
}

/// Step 2: what the core wants done or told outside. The control thread may be gone: then this one ends soon. Whether
/// a hub heard of anything.
pub fn hear(parts: &mut Parts) -> bool {
    let Parts { hub, endpoint, home, clock, reports, .. } = parts;
    let mut heard = false;
    while let Some(event) = endpoint.poll_event() {
        if let Some(hub) = hub {
            hub.handle_event(clock.now(), &event, endpoint, home);
            heard = true;
        }
        if !matches!(event, Event::HubSaid { .. } | Event::Holds { .. }) {
            let _ = reports.send(Report::Event(event));
        }
    }
    heard
}

/// Step 3. Whether there is something to send.
pub fn round(parts: &mut Parts) -> bool {
    let Parts { hub, endpoint, home, clock, reports, .. } = parts;
    let Some(hub) = hub else { return false };
    hub.handle_round(clock.now(), endpoint, home, |news| drop(reports.send(Report::Hub(news))))
}
