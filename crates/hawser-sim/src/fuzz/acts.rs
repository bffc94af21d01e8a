//! What happens beside the network's own events: traffic, faults, attacks.

use super::Fuzz;
use super::ledger::LENGTHS;
use super::net::{Flight, Line};
use super::portal::{HOMES, HUB, LINKS, identity, offer};
use crate::hostile;
use crate::random::Seeded;
use hawser_core::handshake::Responder;
use hawser_core::path::health::DownReason;
use hawser_core::session::Moved;
use hawser_core::units::LinkId;
use std::net::SocketAddr;
use std::time::Duration;

/// Inner packets given at once.
const BURST: u64 = 12;
/// Acts that happen seldom, one in this many where they are drawn: each begins something that takes a while.
const SELDOM: u64 = 12;
/// How long a machine sleeps at most: past a key's life.
const SLEEP: Duration = Duration::from_secs(150);

impl Fuzz {
    /// One act of the draw.
    pub(super) fn act(&mut self) {
        match self.rng.below(20) {
            0..=7 => self.traffic(),
            8..=10 => self.replay(),
            11 | 12 => self.forge(),
            13..=15 => self.lie(),
            16 | 17 => self.change_line(),
            18 => self.change_link(),
            _ if self.rng.below(SELDOM) == 0 => self.disrupt(),
            _ => self.word(),
        }
        self.settle();
    }

    fn traffic(&mut self) {
        let home = 1 + self.rng.below(HOMES as u64) as usize;
        let (from, to) = if self.rng.chance(0.5) { (home, HUB) } else { (HUB, home) };
        let flow = self.rng.below(8) as u16;
        let len = LENGTHS.0 + self.rng.below(LENGTHS.1 - LENGTHS.0);
        for _ in 0..=self.rng.below(BURST) {
            let packet = self.ledger.packet(from, to, len as usize, flow);
            self.portals[from].give(self.now, &packet);
        }
    }

    /// Something recorded comes again: from where it came or from elsewhere, whole, cut or changed.
    fn replay(&mut self) {
        let recorded = self.network.recorded.len() as u64;
        if recorded == 0 {
            return;
        }
        let mut flight = self.network.recorded[self.rng.below(recorded) as usize].clone();
        if self.rng.chance(0.3) {
            flight.source = stranger(&mut self.rng);
        }
        match self.rng.below(4) {
            0 => {
                let at = self.rng.below(flight.bytes.len() as u64) as usize;
                flight.bytes[at] ^= 1 << self.rng.below(8);
            }
            1 => flight.bytes.truncate(self.rng.below(flight.bytes.len() as u64) as usize),
            _ => {}
        }
        self.hostile(flight);
    }

    /// Noise, initiations of nobody, cookie replies that need nothing but a public key.
    fn forge(&mut self) {
        let to = self.portals[self.rng.below(1 + HOMES as u64) as usize].links[0].0;
        let source = stranger(&mut self.rng);
        let bytes = match self.rng.below(3) {
            0 => Some(hostile::noise(&mut self.rng)),
            1 => hostile::initiation(&identity(77), &identity(HUB).public(), offer, &mut self.rng),
            _ => return self.forge_cookie(),
        };
        let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else { return };
        self.hostile(Flight { from: HUB, link: 0, source, to, bytes });
    }

    fn forge_cookie(&mut self) {
        let is_initiation = |flight: &&Flight| flight.bytes[0] >> 4 == 1;
        let Some(seen) = self.network.recorded.iter().rev().find(is_initiation).cloned() else { return };
        let mut forger = Responder::new(identity(HUB), offer(1));
        let reply = forger.cookie(self.now, &seen.bytes, seen.source, &mut self.rng);
        let Some(reply) = reply else { return };
        self.hostile(Flight { from: HUB, link: 0, source: seen.to, to: seen.source, bytes: reply.to_vec() });
    }

    /// The liar initiates, or says something.
    fn lie(&mut self) {
        let said =
            if self.rng.below(30) == 0 { self.liar.handshake(&mut self.rng) } else { self.liar.say(&mut self.rng) };
        let said = said.or_else(|| self.liar.handshake(&mut self.rng));
        let Some(bytes) = said else { return };
        let to = self.portals[HUB].links[self.rng.below(LINKS as u64) as usize].0;
        let source = if self.rng.chance(0.05) { stranger(&mut self.rng) } else { self.liar.address };
        self.hostile(Flight { from: HUB, link: 0, source, to, bytes });
    }

    fn hostile(&mut self, flight: Flight) {
        self.report.hostile += 1;
        self.network.put(self.now + Duration::from_micros(self.rng.below(2_000)), flight);
    }

    fn any_line(&mut self) -> (usize, usize) {
        (1 + self.rng.below(HOMES as u64) as usize, self.rng.below(LINKS as u64) as usize)
    }

    fn change_line(&mut self) {
        let (home, link) = self.any_line();
        self.network.lines[home - 1][link] = Line::drawn(&mut self.rng);
    }

    /// A link goes, comes, is removed, or its address changes.
    fn change_link(&mut self) {
        let ((home, link), now) = (self.any_line(), self.now);
        let draw = self.rng.below(6);
        let port = 1_000 + self.rng.below(50_000) as u16;
        let portal = &mut self.portals[home];
        let id = LinkId(link as u16);
        match draw {
            0 => portal.endpoint.handle_link_down(now, id, DownReason::LinkLost),
            1 => portal.endpoint.handle_link_up(now, id),
            // A NAT gives it another port, and nobody says so.
            2 => portal.links[link].0.set_port(port),
            3 => {
                portal.endpoint.handle_link_moved(now, id, Moved::Address);
                portal.links[link].0.set_port(port);
            }
            4 => {
                portal.endpoint.remove_link(now, id);
                portal.links[link].1 = false;
            }
            _ => portal.have(now, link),
        }
    }

    /// What a system says of sizes, true or not.
    fn word(&mut self) {
        let (home, link) = self.any_line();
        let size = (500 + self.rng.below(1_100)) as u16;
        let remote = self.portals[HUB].links[link].0;
        let endpoint = &mut self.portals[home].endpoint;
        if self.rng.chance(0.8) {
            endpoint.handle_hint(LinkId(link as u16), remote, size, None);
        } else {
            endpoint.handle_too_big(LinkId(link as u16), remote, size);
        }
    }

    /// A portal is killed and started again, closes its sessions, or all machines sleep.
    fn disrupt(&mut self) {
        let place = self.rng.below(1 + HOMES as u64) as usize;
        match self.rng.below(4) {
            0 | 1 => self.portals[place].start(self.now, &mut self.rng),
            2 => self.portals[place].endpoint.close(),
            _ => self.now = self.now + self.rng.up_to(SLEEP),
        }
    }
}

fn stranger(rng: &mut Seeded) -> SocketAddr {
    SocketAddr::from(([100, 64, 0, rng.below(256) as u8], 1_000 + rng.below(10) as u16))
}
