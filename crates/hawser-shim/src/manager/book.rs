//! Which subflows there are and should be. Sans-IO: time is an argument, what is to be done an answer.
//!
//! 1. [`Book::hear`]: the kernel's events say which connections are the shim's to manage, and which subflows they have.
//! 2. [`Book::room`]: the packet thread says how many more subflows have a path. [`Book::lost`]: which one has none any
//!    more.
//! 3. [`Book::due`]: what is to be done now. [`Book::failed`] says what did not work.
//! 4. [`Book::wakes`]: when to ask again at the latest.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::slot::Slot;
use crate::flow::{FlowKey, Protocol};
use crate::kernel::{Connected, Event, Subflow};
use crate::mptcp::{AddressId, Token};
use crate::route::{Addresses, MAX_EGRESS, RouteTable, Side};

/// What a peer knows the ordinary address by, beside SCION: the first number that no egress has.
pub const ORDINARY: AddressId = AddressId(MAX_EGRESS + 1);
/// Connections whose room is known before the kernel tells of them, at most: more are the packet thread's to repeat.
const EARLY: usize = 1024;

/// What the manager is to know of the host. Empty by default. Plain data.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Those of egress 1 and so on.
    pub egress: Vec<Addresses>,
    /// The map.
    pub routes: Arc<RouteTable>,
    /// To where, and from which address of the host, the ordinary internet leads.
    pub ordinary: Vec<(IpAddr, IpAddr)>,
}

/// Something to be done. There is no default. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Open a subflow.
    Create {
        /// Of which connection.
        token: Token,
        /// What the peer will know the address by.
        id: AddressId,
        /// From where.
        local: IpAddr,
        /// To where.
        remote: SocketAddr,
    },
    /// End a subflow.
    Destroy {
        /// Of which connection.
        token: Token,
        /// Which.
        subflow: Subflow,
    },
}

/// The connections that the shim manages. None at first. One owner.
#[derive(Debug, Default)]
pub struct Book {
    places: Places,
    connections: BTreeMap<Token, Connection>,
    /// Room of connections that the kernel has not told of yet, the oldest first.
    early: VecDeque<(Token, usize)>,
    /// Subflows that are to end.
    doomed: Vec<Act>,
    /// Connections to which something happened since they were looked at.
    touched: BTreeSet<Token>,
    /// When all of them are looked at again.
    wakes: Option<Instant>,
}

/// A connection that this host's application asked for. Begins with its main flow. The book owns it.
#[derive(Debug)]
struct Connection {
    remote: SocketAddr,
    /// How many more subflows over SCION may be opened; none: one by each egress, because the packet thread does not
    /// know the connection, whose main flow goes elsewhere.
    room: Option<usize>,
    /// A place for each address that a subflow may come from.
    slots: BTreeMap<u8, Slot>,
}

impl Book {
    /// Another map, or other addresses: for connections that begin from now on.
    pub fn learn(&mut self, places: Places) {
        self.places = places;
    }

    /// Connections that are managed now.
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Whether no connection is managed now.
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Step 1.
    pub fn hear(&mut self, event: &Event, now: Instant) {
        match event {
            Event::Established(connected) => self.begin(connected),
            Event::Closed(token) => {
                self.connections.remove(token);
                self.early.retain(|(early, _)| early != token);
            }
            Event::SubflowEstablished(at) => self.slot(at.token, at.subflow, |slot| slot.there(at.subflow, now)),
            Event::SubflowClosed(at, _) => self.slot(at.token, at.subflow, |slot| slot.closed(at.subflow, now)),
            Event::Created(_) | Event::Announced { .. } | Event::Removed { .. } | Event::SubflowPriority(_) => {}
        }
    }

    /// Events were missed: what is known of connections may be wrong.
    pub fn forget(&mut self) {
        self.connections.clear();
    }

    /// Step 2.
    pub fn room(&mut self, token: Token, free: usize) {
        if let Some(connection) = self.connections.get_mut(&token) {
            if let Some(room) = &mut connection.room {
                *room = free;
            }
            self.touched.insert(token);
            return;
        }
        self.early.retain(|(early, _)| *early != token);
        self.early.push_back((token, free));
        if self.early.len() > EARLY {
            self.early.pop_front();
        }
    }

    /// Step 2. The packet thread may know of a subflow before the kernel has told that it is there.
    pub fn lost(&mut self, token: Token, key: FlowKey) {
        let Some(connection) = self.connections.get(&token) else { return };
        let there = connection.slots.values().filter_map(Slot::subflow).find(|subflow| is_the_same(subflow, &key));
        let asked = || {
            let id = self.places.egress_of(key.local.ip().to_canonical())?;
            let slot = connection.slots.get(&id).filter(|slot| slot.is_on_its_way());
            slot.map(|_| Subflow { local: key.local, remote: key.remote })
        };
        if let Some(subflow) = there.or_else(asked) {
            self.doomed.push(Act::Destroy { token, subflow });
        }
    }

    /// Step 3. What is answered once is taken for done, until [`Book::failed`] or an event says otherwise.
    pub fn due(&mut self, now: Instant) -> Vec<Act> {
        let mut acts = std::mem::take(&mut self.doomed);
        let mut touched = std::mem::take(&mut self.touched);
        if self.wakes.is_some_and(|due| due <= now) {
            self.wakes = None;
            touched = self.connections.keys().copied().collect();
        }
        for token in touched {
            let Some(connection) = self.connections.get_mut(&token) else { continue };
            acts.extend(connection.due(token, &self.places, now));
            let wakes = connection.slots.values().filter_map(Slot::wakes).filter(|due| *due > now);
            self.wakes = wakes.chain(self.wakes).min();
        }
        acts
    }

    /// Step 3: a subflow was not opened.
    pub fn failed(&mut self, token: Token, id: AddressId, now: Instant) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        if let Some(slot) = connection.slots.get_mut(&id.0) {
            slot.failed(now);
            if let Some(room) = connection.room.as_mut().filter(|_| id != ORDINARY) {
                *room += 1;
            }
            self.touched.insert(token);
        }
    }

    /// Step 4: none where nothing waits for its time.
    pub fn wakes(&self, now: Instant) -> Option<Duration> {
        self.wakes.map(|due| due.saturating_duration_since(now))
    }

    /// Step 1: of which connections the shim has to do, and what they may have.
    fn begin(&mut self, connected: &Connected) {
        let Connected { token, local, remote, is_server } = *connected;
        let (source, to) = (local.ip().to_canonical(), canonical(remote));
        let main = self.places.egress_of(source);
        let target = self.places.routes.to(Protocol::Tcp, to);
        let side = target.map(|target| target.side);
        let beside = side == Some(Side::Subflows);
        if is_server || (main.is_none() && !beside) {
            return;
        }
        let early = self.early.iter().position(|(early, _)| *early == token);
        let early = early.and_then(|at| self.early.remove(at)).map(|(_, free)| free);
        let room = main.map(|_| early.unwrap_or(0));
        let mut slots: BTreeMap<u8, Slot> =
            (1..).zip(&self.places.egress).map(|(id, _)| (id, Slot::default())).collect();
        if side == Some(Side::Main) && self.places.ordinary_to(to.ip()).is_some() {
            slots.insert(ORDINARY.0, Slot::default());
        }
        if let Some(slot) = main.and_then(|id| slots.get_mut(&id)) {
            *slot = Slot::main(Subflow { local, remote });
        }
        self.connections.insert(token, Connection { remote, room, slots });
        self.touched.insert(token);
    }

    /// The slot of a subflow by its address here.
    fn slot(&mut self, token: Token, subflow: Subflow, step: impl FnOnce(&mut Slot)) {
        let source = subflow.local.ip().to_canonical();
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let ordinary = self.places.ordinary_to(connection.remote.ip().to_canonical());
        let id = self.places.egress_of(source).or_else(|| (ordinary == Some(source)).then_some(ORDINARY.0));
        if let Some(slot) = id.and_then(|id| connection.slots.get_mut(&id)) {
            step(slot);
            self.touched.insert(token);
        }
    }
}

impl Connection {
    /// Subflows from addresses that have none, as many as there is room for; those on their way have taken theirs.
    fn due(&mut self, token: Token, places: &Places, now: Instant) -> Vec<Act> {
        let remote = self.remote;
        self.slots.values_mut().for_each(|slot| slot.look(now));
        let scion = |id: u8| id != ORDINARY.0;
        let on_their_way = self.slots.iter().filter(|(id, slot)| scion(**id) && slot.is_on_its_way()).count();
        let mut free = self.room.map_or(usize::MAX, |room| room.saturating_sub(on_their_way));
        let mut acts = Vec::new();
        for (&id, slot) in &mut self.slots {
            if !slot.is_due(now) || (scion(id) && free == 0) {
                continue;
            }
            let Some(local) = places.local(AddressId(id), remote.ip().to_canonical()) else { continue };
            slot.ask(now);
            if scion(id) {
                free -= 1;
                self.room = self.room.map(|room| room - 1);
            }
            acts.push(Act::Create { token, id: AddressId(id), local, remote });
        }
        acts
    }
}

impl Places {
    /// Whose address it is, among egress 1 and so on.
    fn egress_of(&self, address: IpAddr) -> Option<u8> {
        (1..).zip(&self.egress).find(|(_, own)| own.iter().any(|one| one == address)).map(|(id, _)| id)
    }

    fn ordinary_to(&self, destination: IpAddr) -> Option<IpAddr> {
        self.ordinary.iter().find(|(to, _)| *to == destination).map(|(_, from)| *from)
    }

    /// Where a subflow comes from, of the IP version of where it goes.
    fn local(&self, id: AddressId, remote: IpAddr) -> Option<IpAddr> {
        if id == ORDINARY {
            return self.ordinary_to(remote);
        }
        let own = self.egress.get(usize::from(id.0).checked_sub(1)?)?;
        own.iter().find(|address| address.is_ipv4() == remote.is_ipv4())
    }
}

/// IPv4 in IPv6's clothes, as sockets for both have it, is IPv4 on the wire.
fn is_the_same(subflow: &Subflow, key: &FlowKey) -> bool {
    canonical(subflow.local) == canonical(key.local) && canonical(subflow.remote) == canonical(key.remote)
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
