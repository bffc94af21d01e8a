//! Whoever calls a listening link: each way that they come by gets an alias, and is answered the way back.
//!
//! ```text
//!  place (1024)  key: endpoint and interfaces | name: place and how often it was given away | when a session last proved it
//!                  generation: hop fields, router | generation | …           three at most
//! ```
//!
//! Anybody may send a packet, so places are few. A new caller gets a free one, or that of somebody who proved nothing;
//! of those whose datagrams a session opened, only when there is no other, the one that was silent for longest. Hop
//! fields that changed are another generation of the same way: a stranger's do not drive away those that a session
//! proved.

use std::collections::HashMap;
use std::net::SocketAddr;

use hawser_core::alias::Alias;
use hawser_core::units::LinkId;

use super::came::Datagram;
use super::key::Key;
use crate::addr::{EndpointAddr, IsdAs};
use crate::packet::{FlowId, Template};

/// Ways known at once: some for each path of 100 peers, at about 1 KiB each.
pub(super) const PLACES: usize = 1024;
/// Generations of a way: the present one, its successor, and one more that may be a stranger's.
const GENERATIONS: usize = 3;

/// How one answers along a way.
#[derive(Debug)]
struct Generation {
    number: u16,
    /// As it came in packets.
    path: Box<[u8]>,
    hop: SocketAddr,
    to: EndpointAddr,
    proven: bool,
    template: Template,
}

/// A way that somebody came by.
#[derive(Debug)]
struct Place {
    key: Key,
    alias: Alias,
    generations: Vec<Generation>,
    last_number: u16,
    /// When a session last proved it, as a count of proofs; 0: never.
    proven: u64,
}

/// All ways that callers came by. None at first; one thread uses it.
#[derive(Debug)]
pub(super) struct Callers {
    link: LinkId,
    /// Where we are: packets for other ASes are nobody's.
    isd_as: IsdAs,
    places: Vec<Place>,
    by_key: HashMap<Key, usize>,
    /// Where the search for a place goes on.
    hand: usize,
    proofs: u64,
}

impl Callers {
    pub(super) fn new(link: LinkId, isd_as: IsdAs) -> Callers {
        Callers { link, isd_as, places: Vec::new(), by_key: HashMap::new(), hand: 0, proofs: 0 }
    }

    /// The address that stands for the way of a datagram that came by `hop`; `key` is set to it. The second says
    /// whether others' changed. None where no answer can be sent.
    pub(super) fn learn(
        &mut self,
        datagram: &Datagram<'_>,
        hop: SocketAddr,
        key: &mut Key,
    ) -> Option<(SocketAddr, bool)> {
        if datagram.to.isd_as != self.isd_as {
            return None;
        }
        key.set_came(&datagram.from, &datagram.path);
        if let Some(at) = self.by_key.get(key) {
            let place = &mut self.places[*at];
            let known = place.generations.iter().find(|known| known.is(datagram, hop));
            if let Some(known) = known {
                return Some((place.alias.renewed(known.number).address(), false));
            }
            place.make_room();
            let number = place.next_number();
            place.generations.push(Generation::new(datagram, hop, number, place.alias.name())?);
            return Some((place.alias.renewed(number).address(), true));
        }
        let at = if self.places.len() < PLACES { self.places.len() } else { self.least_worth() };
        let name = self.places.get(at).map_or(at as u32, |old| old.alias.name().wrapping_add(PLACES as u32));
        let generation = Generation::new(datagram, hop, 1, name)?;
        let header = u16::try_from(generation.template.headroom()).ok()?;
        // What the way carries its caller knows, and we do not.
        let alias = Alias::new(self.link, 0, hop.is_ipv6(), header, name, 1)?;
        let place = Place { key: key.clone(), alias, generations: vec![generation], last_number: 1, proven: 0 };
        self.by_key.insert(key.clone(), at);
        if at == self.places.len() {
            self.places.push(place);
        } else {
            let old = std::mem::replace(&mut self.places[at], place);
            self.by_key.remove(&old.key);
        }
        Some((alias.address(), true))
    }

    /// The next place of somebody who proved nothing, else that of whoever was silent for longest.
    fn least_worth(&mut self) -> usize {
        let (count, from) = (self.places.len(), self.hand);
        let next = (from..from + count).map(|at| at % count).find(|at| self.places[*at].proven == 0);
        let at = next.unwrap_or_else(|| (0..count).min_by_key(|at| self.places[*at].proven).unwrap_or(0));
        self.hand = (at + 1) % count;
        at
    }

    /// A session opened a datagram that came from this address.
    pub(super) fn prove(&mut self, alias: &Alias) {
        self.proofs += 1;
        let proofs = self.proofs;
        if let Some(place) = self.place_of(alias) {
            place.proven = proofs;
            place
                .generations
                .iter_mut()
                .filter(|one| one.number == alias.generation())
                .for_each(|one| one.proven = true);
        }
    }

    /// How to send to this address, and by which router.
    pub(super) fn way(&mut self, alias: &Alias) -> Option<(&Template, SocketAddr)> {
        let place = self.place_of(alias)?;
        let generation = place.generations.iter().find(|one| one.number == alias.generation())?;
        Some((&generation.template, generation.hop))
    }

    /// The address that stands for a way, as a session knows it.
    pub(super) fn named(&self, key: &Key) -> Option<Alias> {
        let place = &self.places[*self.by_key.get(key)?];
        let generation = place.generations.iter().rfind(|one| one.proven)?;
        Some(place.alias.renewed(generation.number))
    }

    fn place_of(&mut self, alias: &Alias) -> Option<&mut Place> {
        let place = self.places.get_mut(alias.name() as usize % PLACES)?;
        (place.alias.name() == alias.name()).then_some(place)
    }
}

impl Place {
    /// A number that no generation has. 0 is none.
    fn next_number(&mut self) -> u16 {
        let taken = |number: u16| number == 0 || self.generations.iter().any(|one| one.number == number);
        let from = self.last_number.wrapping_add(1);
        self.last_number =
            (0..=GENERATIONS as u16 + 1).map(|more| from.wrapping_add(more)).find(|n| !taken(*n)).unwrap_or(from);
        self.last_number
    }

    /// A way's generations that are not proven go first, then the oldest.
    fn make_room(&mut self) {
        if self.generations.len() >= GENERATIONS {
            let at = self.generations.iter().position(|one| !one.proven).unwrap_or(0);
            self.generations.remove(at);
        }
    }
}

impl Generation {
    /// None where there is no way back.
    fn new(datagram: &Datagram<'_>, hop: SocketAddr, number: u16, name: u32) -> Option<Generation> {
        let back = datagram.path.reversed().ok()?;
        let template = Template::new(datagram.to, datagram.from, &back, FlowId::from_hash(name)).ok()?;
        let path = Box::from(datagram.path.as_bytes());
        Some(Generation { number, path, hop, to: datagram.to, proven: false, template })
    }

    fn is(&self, datagram: &Datagram<'_>, hop: SocketAddr) -> bool {
        self.hop == hop && self.to == datagram.to && *self.path == *datagram.path.as_bytes()
    }
}
