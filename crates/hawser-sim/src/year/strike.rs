//! What a fault does when it begins, while it lasts, and when it ends.
//!
//! 1. [`Year::begin`]: portals, clocks, configurations and stores; then lines and sockets are as the faults of now make
//!    them.
//! 2. [`Year::tick`]: a link flaps, somebody hostile sends, a page is asked for.
//! 3. [`Year::end`]: what was taken is given back, unless another fault has it too.

use super::Year;
use super::fault::Fault;
use super::kind::Kind;
use super::lines::{DSL, DSL6, LINES, LTE, STARLINK, normal};
use super::talk::Burst;
use crate::hostile;
use crate::net::Datagram;
use crate::world::{Act, LOCAL, REMOTE, listening};
use hawser_core::endpoint::Link;
use hawser_core::handshake::Identity;
use hawser_core::session::Terms;
use hawser_core::transport::Transport;
use hawser_core::units::{Ecn, LinkGroup, LinkId, PeerId};
use hawser_core::wire::{CipherSet, InstanceId, Offer, Protection};
use std::net::SocketAddr;
use std::time::Duration;

/// Packets given at once where a store is to be full.
const FLOOD: u32 = 30_000;
/// Datagrams that whoever is hostile sends at once.
const VOLLEY: usize = 4;
/// Recorded datagrams that are kept for other days.
const KEPT: usize = 64;
/// The link of the remote portal.
const LISTENER: LinkId = LinkId(0);

impl Year {
    /// Step 1.
    pub(super) fn begin(&mut self, fault: &Fault) {
        let (kind, now) = (fault.row.kind, self.world.now);
        match kind {
            Kind::LocalKilled | Kind::RemoteKilled | Kind::LocalClosed | Kind::RemoteClosed => self.stop(fault),
            Kind::Freeze => self.world.portals[REMOTE].frozen = Some(Vec::new()),
            Kind::Rebind => self.world.links[fault.line.expect("a line")].rebind(),
            Kind::ClockJump => {
                let side = usize::from(fault.severity < 0.5);
                let seconds = self.dice.log_between(1.0, 3_600.0);
                self.world.portals[side].clock.offset += Duration::from_secs_f64(seconds);
            }
            Kind::Forged | Kind::Replayed | Kind::ForgedIcmp => {
                self.world.taps.iter_mut().filter(|tap| tap.is_none()).for_each(|tap| *tap = Some(Vec::new()));
            }
            Kind::HandshakesLost => self.world.handshakes_lost = self.world.handshakes_lost.or(Some(0)),
            Kind::FullStore => self.flood(fault),
            Kind::Reloaded => self.reload(),
            Kind::Removed => self.remove_peer(),
            Kind::Unplugged => {
                let id = LinkId(LTE as u16);
                self.world.portals[LOCAL].set_up(id, false);
                let shown = self.world.portals[LOCAL].clock.show(now);
                self.world.portals[LOCAL].endpoint.remove_link(shown, id);
            }
            Kind::Barred => self.offer_lte(Terms { barred: true, ..Terms::default() }),
            Kind::Metric => self.world.portals[LOCAL].endpoint.set_metric(LinkId(LTE as u16), 0),
            _ => {}
        }
        self.conform();
    }

    /// Step 2.
    pub(super) fn tick(&mut self, number: u64) {
        let Some(fault) = self.live.iter_mut().find(|fault| fault.number == number) else { return };
        fault.phase = !fault.phase;
        match fault.row.kind {
            Kind::Flapping => self.conform(),
            Kind::Bufferbloat => self.page(),
            Kind::Forged => (0..VOLLEY).for_each(|_| self.forge()),
            Kind::Replayed => (0..VOLLEY).for_each(|_| self.replay(false)),
            Kind::ForgedIcmp => (0..VOLLEY).for_each(|_| self.forge_icmp()),
            _ => {}
        }
    }

    /// Step 3. The fault is none of those that last any more.
    pub(super) fn end(&mut self, fault: &Fault) {
        let another = |year: &Year, kind| year.live.iter().any(|other| other.row.kind == kind);
        match fault.row.kind {
            Kind::LocalKilled | Kind::LocalClosed => self.start(LOCAL),
            Kind::RemoteKilled | Kind::RemoteClosed => self.start(REMOTE),
            Kind::Freeze => self.thaw(),
            Kind::Reconnect => [DSL, DSL6].into_iter().for_each(|link| self.world.act(Act::Move(link))),
            Kind::Forged | Kind::Replayed | Kind::ForgedIcmp => self.end_hostility(),
            Kind::HandshakesLost if !another(self, Kind::HandshakesLost) => {
                self.report.handshakes_lost += self.world.handshakes_lost.take().unwrap_or(0);
            }
            Kind::Removed => self.add_peer(),
            Kind::Unplugged => self.plug_in(),
            Kind::Barred if !another(self, Kind::Barred) => self.offer_lte(Terms::default()),
            Kind::Metric if !another(self, Kind::Metric) => {
                self.world.portals[LOCAL].endpoint.set_metric(LinkId(LTE as u16), 1);
            }
            _ => {}
        }
        self.conform();
    }

    /// Lines, sockets and portals are as the faults that last make them.
    fn conform(&mut self) {
        let specs = normal();
        for line in LINES {
            for (up, way) in [(true, &specs[line].up), (false, &specs[line].down)] {
                let mut way = way.clone();
                let faults = self.live.iter().filter(|fault| fault.is_on(line));
                faults.for_each(|fault| fault.shape(up, &mut way));
                self.world.change_way(line, up, |old| *old = way);
            }
        }
        for socket in [DSL, DSL6, LTE, STARLINK] {
            let up = !self.live.iter().any(|fault| fault.takes(socket));
            if up != self.world.portals[LOCAL].is_up(LinkId(socket as u16)) {
                self.world.set_up(socket, up);
            }
        }
        for side in [LOCAL, REMOTE] {
            self.world.portals[side].stopped = self.live.iter().any(|fault| fault.stops() == Some(side));
            self.world.settle(side);
        }
    }

    /// A portal ends, in order or not: all that it has is gone.
    fn stop(&mut self, fault: &Fault) {
        let side = fault.stops().expect("a portal that stops");
        if matches!(fault.row.kind, Kind::LocalClosed | Kind::RemoteClosed) && !self.world.portals[side].stopped {
            self.world.portals[side].endpoint.close();
            self.world.settle(side);
        }
        self.account.borrow_mut().excuse();
    }

    fn start(&mut self, side: usize) {
        self.keep_drops(side);
        self.world.act(Act::Start(side));
        self.peer_removed &= side != REMOTE;
    }

    /// The remote portal's process goes on, and finds what its sockets kept.
    fn thaw(&mut self) {
        let portal = &mut self.world.portals[REMOTE];
        let kept = portal.frozen.take().unwrap_or_default();
        portal.stopped = self.live.iter().any(|fault| fault.stops() == Some(REMOTE));
        kept.into_iter().for_each(|(link, datagram)| self.world.receive(REMOTE, link, datagram));
    }

    fn flood(&mut self, fault: &Fault) {
        let (side, len) = (usize::from(fault.severity < 0.5), 100 + self.dice.below(1_100) as usize);
        let burst = Burst { at: self.world.now, side, flow: 9, packets: FLOOD, len };
        self.orders.borrow_mut().burst(burst);
    }

    /// Both portals are told what they know already.
    fn reload(&mut self) {
        for portal in self.world.portals.iter_mut().filter(|portal| !portal.stopped) {
            let shown = portal.clock.show(self.world.now);
            portal.endpoint.change_peer(shown, PeerId(0), portal.recipe.peer_config());
            portal.endpoint.set_rules(shown, portal.recipe.rules.clone());
        }
    }

    fn remove_peer(&mut self) {
        if self.peer_removed || self.world.portals[REMOTE].stopped {
            return;
        }
        self.world.portals[REMOTE].endpoint.dismiss_peer(PeerId(0));
        self.world.settle(REMOTE);
        let portal = &mut self.world.portals[REMOTE];
        portal.endpoint.remove_peer(portal.clock.show(self.world.now), PeerId(0));
        self.account.borrow_mut().excuse();
        self.peer_removed = true;
    }

    fn add_peer(&mut self) {
        if std::mem::take(&mut self.peer_removed) {
            let portal = &mut self.world.portals[REMOTE];
            portal.endpoint.add_peer(portal.clock.show(self.world.now), portal.recipe.peer_config());
        }
    }

    fn offer_lte(&mut self, terms: Terms) {
        self.world.portals[LOCAL].endpoint.set_terms(LinkGroup(LTE as u16), terms);
    }

    /// The link is there again; whether it is up other faults may say.
    fn plug_in(&mut self) {
        let id = LinkId(LTE as u16);
        let up = !self.live.iter().any(|fault| fault.takes(LTE));
        let group = LinkGroup(id.0);
        let link = Link {
            id,
            group,
            preference: 0,
            metric: 1,
            transport: Transport::Udp,
            ipv4: true,
            ipv6: false,
            opens: true,
            up,
        };
        self.world.portals[LOCAL].add_link(self.world.now, link);
    }

    /// Noise, an initiation of nobody, or something of now with a bit changed, to either portal.
    fn forge(&mut self) {
        let side = usize::from(self.dice.chance(0.7));
        let bytes = match self.dice.below(3) {
            0 => Some(hostile::noise(&mut self.dice)),
            1 => {
                let to = self.world.portals[side].recipe.identity.public();
                hostile::initiation(&Identity::new([77; 32]), &to, offer, &mut self.dice)
            }
            _ => return self.replay(true),
        };
        let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else { return };
        let from = self.stranger();
        self.hostile(side, Datagram { from, to: listening(false), ecn: Ecn::NotEct, bytes });
    }

    /// Something recorded comes again, from where it came or from elsewhere; perhaps with a bit changed.
    fn replay(&mut self, changed: bool) {
        let side = usize::from(self.dice.chance(0.5));
        let fresh = self.world.taps[side].as_deref().unwrap_or_default();
        let known = if self.dice.chance(0.5) && !self.recorded[side].is_empty() { &self.recorded[side] } else { fresh };
        if known.is_empty() {
            return;
        }
        let mut datagram = known[self.dice.below(known.len() as u64) as usize].clone();
        if changed {
            let bit = self.dice.below(8 * datagram.bytes.len() as u64);
            datagram.bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
        if self.dice.chance(0.3) {
            datagram.from = self.stranger();
        }
        self.hostile(side, datagram);
    }

    /// A router that is none says that something does not pass, and quotes what nobody sent.
    fn forge_icmp(&mut self) {
        let side = usize::from(self.dice.chance(0.5));
        let tap = self.world.taps[1 - side].as_deref().unwrap_or_default();
        let Some(seen) = tap.last() else { return };
        let mut quoted = seen.bytes.clone();
        let at = self.dice.below(quoted.len().min(9) as u64) as usize;
        quoted[at] ^= 1 << self.dice.below(8);
        let (to, link) = (seen.to, if side == LOCAL { LTE as u16 } else { 0 });
        let size = 300 + self.dice.below(1_100) as u16;
        self.report.hostile += 1;
        self.world.portals[side].endpoint.handle_hint(LinkId(link), to, size, Some(&quoted));
        self.world.settle(side);
    }

    fn hostile(&mut self, side: usize, datagram: Datagram) {
        let link =
            if side == REMOTE { LISTENER } else { LinkId([DSL, LTE, STARLINK][self.dice.below(3) as usize] as u16) };
        self.report.hostile += 1;
        // What is hostile is not recorded: it would be repeated ever more often.
        let tap = self.world.taps[side].take();
        self.world.receive(side, link, datagram);
        self.world.taps[side] = tap;
    }

    fn stranger(&mut self) -> SocketAddr {
        SocketAddr::from(([100, 64, 0, self.dice.below(256) as u8], 1_000 + self.dice.below(10) as u16))
    }

    /// Some of what was recorded is kept for other days.
    fn end_hostility(&mut self) {
        if self.live.iter().any(|fault| matches!(fault.row.kind, Kind::Forged | Kind::Replayed | Kind::ForgedIcmp)) {
            return;
        }
        for side in [LOCAL, REMOTE] {
            for datagram in self.world.taps[side].take().unwrap_or_default().into_iter().take(KEPT / 2) {
                let place = self.dice.below(KEPT as u64) as usize;
                match self.recorded[side].get_mut(place) {
                    Some(old) => *old = datagram,
                    None => self.recorded[side].push(datagram),
                }
            }
        }
    }
}

fn offer(instance: u64) -> Offer {
    Offer { protection: Protection::Encrypt, ciphers: CipherSet::for_machine(true), instance: InstanceId(instance) }
}
