//! Many changes at once: routes that stand side by side are written into the journal with one write, and set or removed
//! with one call of the kernel for [`AT_ONCE`] of them. All else goes one by one.
//!
//! The kernel carries out the requests of a datagram in their order, and has answered all of them when the call that
//! sends it returns (netlink_rcv_skb, linux net/netlink/af_netlink.c): nothing is waited for.

use std::{
    collections::{HashMap, HashSet, hash_map},
    io,
};

use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use rtnetlink::packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};

use super::{
    apply::{Applied, NetConfig},
    change::{Change, RouteSpec},
    error::NetConfigError,
    journal::{Before, Entry},
    perform::{is_gone, new_route, route_feature, route_message},
    types::IfIndex,
};

/// Requests of one datagram: their answers, below 1 KiB of memory each, wait in the socket's receive buffer, of 208 KiB
/// by default (net.core.rmem_default), and nobody else runs meanwhile.
const AT_ONCE: usize = 64;
/// Space for an answer, in bytes: it repeats the request where that is refused.
const ANSWER: usize = 4096;
/// Netlink messages begin at multiples of this many bytes (NLMSG_ALIGNTO, linux/netlink.h).
const ALIGN: usize = 4;

type Request = NetlinkMessage<RouteNetlinkMessage>;

/// A socket for routes, in the network namespace of the thread that opened it. One owner.
#[derive(Debug)]
pub(super) struct RouteSocket {
    socket: Socket,
    /// The number of the next request.
    next: u32,
}

impl RouteSocket {
    pub fn open() -> Result<Self, NetConfigError> {
        let open = || {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind_auto().map(|_| socket)
        };
        let socket =
            open().map_err(|source| NetConfigError::kernel("open", "netlink socket".to_owned(), None, source))?;
        Ok(Self { socket, next: 1 })
    }

    /// What the kernel says to each, in their order. An error where that is not known.
    fn ask(&mut self, requests: impl Iterator<Item = Request>) -> io::Result<Vec<io::Result<()>>> {
        let (first, mut datagram, mut answers) = (self.next, Vec::<u8>::new(), Vec::new());
        for mut request in requests {
            request.header.flags |= NLM_F_REQUEST | NLM_F_ACK;
            request.header.sequence_number = self.next;
            self.next = self.next.wrapping_add(1);
            request.finalize();
            let (begin, length) = (datagram.len(), request.buffer_len());
            datagram.resize(begin + length.next_multiple_of(ALIGN), 0);
            request.serialize(&mut datagram[begin..][..length]);
            answers.push(None);
        }
        if !answers.is_empty() {
            self.socket.send_to(&datagram, &SocketAddr::new(0, 0), 0)?;
        }
        while answers.iter().any(Option::is_none) {
            let (number, answer) = self.receive()?;
            // One that is older was given up.
            if let Some(place) = answers.get_mut(number.wrapping_sub(first) as usize) {
                *place = Some(answer);
            }
        }
        Ok(answers.into_iter().flatten().collect())
    }

    /// The next answer, which is there already, and to which request.
    fn receive(&self) -> io::Result<(u32, io::Result<()>)> {
        let mut buffer = [0_u8; ANSWER];
        let (length, _) = self.socket.recv_from(&mut &mut buffer[..], libc::MSG_DONTWAIT)?;
        let message = Request::deserialize(&buffer[..length.min(ANSWER)]).map_err(io::Error::other)?;
        let answer = match &message.payload {
            NetlinkPayload::Error(error) if error.code.is_none() => Ok(()),
            NetlinkPayload::Error(error) => Err(error.to_io()),
            _ => Err(io::ErrorKind::InvalidData.into()),
        };
        Ok((message.header.sequence_number, answer))
    }
}

/// How a route was journalled. Owned data.
struct Step {
    /// Under this number; none where it was already.
    id: Option<u64>,
    /// In the place of this one.
    earlier: Option<Entry>,
}

impl NetConfig {
    /// [`NetConfig::apply`] for each, in their order; what became of each.
    pub async fn apply_all(&mut self, changes: &[Change]) -> Vec<Result<Applied, NetConfigError>> {
        let mut outcomes = Vec::with_capacity(changes.len());
        while let Some(next) = changes.get(outcomes.len()) {
            let routes = together(&changes[outcomes.len()..]);
            match self.apply_routes(&routes).await {
                Some(of_routes) => outcomes.extend(of_routes),
                None => outcomes.push(self.apply(next.clone()).await),
            }
        }
        outcomes
    }

    /// [`NetConfig::undo`] for each, in their order; how that went.
    pub async fn undo_each(&mut self, changes: &[Change]) -> Vec<Result<(), NetConfigError>> {
        let mut outcomes = Vec::with_capacity(changes.len());
        while let Some(next) = changes.get(outcomes.len()) {
            let routes = together(&changes[outcomes.len()..]);
            match self.undo_routes(&routes).await {
                Some(of_routes) => outcomes.extend(of_routes),
                None => outcomes.push(self.undo(next).await),
            }
        }
        outcomes
    }

    /// None where they are to be set one by one: there are none, or each will say what is wrong.
    async fn apply_routes(&mut self, routes: &[&RouteSpec]) -> Option<Vec<Result<Applied, NetConfigError>>> {
        if routes.is_empty() || self.leftovers {
            return None;
        }
        let names = self.names(routes).await.ok()?;
        let steps = self.journal_routes(routes, &names).ok()?;
        let request = |(route, step): (&&RouteSpec, &Step)| {
            let mut request = Request::from(RouteNetlinkMessage::NewRoute(new_route(route)));
            request.header.flags = NLM_F_CREATE | if step.earlier.is_some() { NLM_F_REPLACE } else { NLM_F_EXCL };
            request
        };
        let answers = self.routes.ask(routes.iter().zip(&steps).map(request));
        let answers = answers.unwrap_or_else(|error| {
            let unknown = || Err(io::Error::new(error.kind(), error.to_string()));
            routes.iter().map(|_| unknown()).collect()
        });
        let all = routes.iter().zip(steps).zip(answers);
        Some(all.map(|((route, step), answer)| self.settle(route, step, answer)).collect())
    }

    /// Each that is no entry yet becomes one.
    fn journal_routes(&mut self, routes: &[&RouteSpec], names: &Names) -> Result<Vec<Step>, NetConfigError> {
        let (mut steps, mut entries) = (Vec::new(), Vec::new());
        for route in routes {
            let change = Change::Route((*route).clone());
            let earlier = self.journal.held(&change).cloned();
            if earlier.as_ref().is_some_and(|entry| entry.change == change) {
                steps.push(Step { id: None, earlier: None });
                continue;
            }
            // The kernel itself refuses what is there already, and undoing minds the protocol number.
            let before = earlier.as_ref().map_or(Before::Absent, |entry| entry.before.clone());
            let name = names.get(&route.interface).cloned().flatten();
            let entry = self.journal.entry(change, name, before, earlier.as_ref());
            steps.push(Step { id: Some(entry.id), earlier });
            entries.push(entry);
        }
        self.journal.set(entries)?;
        Ok(steps)
    }

    /// What became of a route by what the kernel said.
    fn settle(&mut self, route: &RouteSpec, step: Step, answer: io::Result<()>) -> Result<Applied, NetConfigError> {
        let Err(source) = answer else {
            tracing::debug!(change = %route, "set");
            return Ok(Applied::Set);
        };
        // Without the kernel's word it may be set: it stays in the journal, and is undone with all else.
        let is_refused = source.raw_os_error().is_some();
        let error = NetConfigError::kernel("set", route.to_string(), route_feature(route), source);
        match step.id {
            None if error.errno() == Some(libc::EEXIST) => return Ok(Applied::AlreadySo),
            Some(id) if is_refused || step.earlier.is_some() => self.retract(id, step.earlier),
            _ => {}
        }
        Err(error)
    }

    /// None where they are to be removed one by one.
    async fn undo_routes(&mut self, routes: &[&RouteSpec]) -> Option<Vec<Result<(), NetConfigError>>> {
        if routes.is_empty() {
            return None;
        }
        let names = self.names(routes).await.ok()?;
        let held = routes.iter().map(|route| {
            let change = Change::Route((*route).clone());
            self.journal.held(&change).filter(|entry| entry.change == change).cloned()
        });
        let held: Vec<Option<Entry>> = held.collect();
        // An index may be given again.
        let is_ours = |(route, entry): &(&&RouteSpec, &Option<Entry>)| {
            entry.as_ref().is_some_and(|entry| names.get(&route.interface) == Some(&entry.interface))
        };
        let ours = routes.iter().zip(&held).filter(is_ours);
        let requests = ours.map(|(route, _)| Request::from(RouteNetlinkMessage::DelRoute(route_message(route))));
        let mut answers = self.routes.ask(requests).ok()?.into_iter();
        let mut undone = Vec::new();
        let settle = |(route, entry): (&&RouteSpec, &Option<Entry>)| {
            let answer = if is_ours(&(route, entry)) { answers.next() } else { None };
            let error = answer.and_then(Result::err);
            let error = error.map(|source| NetConfigError::kernel("undo", route.to_string(), None, source));
            if let Some(error) = error.filter(|error| !is_gone(error)) {
                return Err(error);
            }
            undone.extend(entry.as_ref().map(|entry| entry.id));
            Ok(())
        };
        let outcomes = routes.iter().zip(&held).map(settle).collect();
        if let Err(error) = self.journal.undone(&undone) {
            // Undoing is idempotent: the next start tries once more and finds them gone.
            tracing::warn!(%error, "undone, but still in the journal");
        }
        Some(outcomes)
    }

    /// What the interfaces of routes are called now; none for one that is gone.
    async fn names(&self, routes: &[&RouteSpec]) -> Result<Names, NetConfigError> {
        let mut names = Names::new();
        for route in routes {
            if let hash_map::Entry::Vacant(unknown) = names.entry(route.interface) {
                let link = self.rtnl.link(route.interface).await?;
                unknown.insert(link.map(|link| link.name));
            }
        }
        Ok(names)
    }
}

type Names = HashMap<IfIndex, Option<String>>;

/// The routes that a list begins with, as many as go together: no two of one place.
fn together(changes: &[Change]) -> Vec<&RouteSpec> {
    let mut places = HashSet::new();
    let routes = changes.iter().take(AT_ONCE).map_while(|change| match change {
        Change::Route(route) if places.insert(change.place()) => Some(route),
        _ => None,
    });
    routes.collect()
}
