//! Fragments: which flow those belong to that have no ports, by the first of their datagram.

use std::net::IpAddr;
use std::time::Duration;

use hawser_core::units::Time;

use crate::flow::FlowId;
use crate::udp::Fragment;

/// Datagrams that come in fragments at a time. What is pushed out loses the rest of its fragments.
const MOST: usize = 256;
/// How long the others may come after the first one: the kernel gives up after 30 s (`ipfrag_time`), a path's queue
/// holds less.
const LONGEST: Duration = Duration::from_secs(2);

/// Of datagrams that pass one way. Nothing at first; the engine owns it.
#[derive(Debug, Default)]
pub(super) struct Parts {
    recent: Vec<Part>,
    next: usize,
}

/// A datagram of which a fragment passed.
#[derive(Clone, Copy, Debug)]
struct Part {
    name: (IpAddr, IpAddr, u32),
    id: FlowId,
    since: Time,
}

impl Parts {
    /// Whose datagram a fragment is of.
    pub fn find(&self, now: Time, part: &Fragment) -> Option<FlowId> {
        let is_it = |one: &&Part| one.name == name(part) && now.since(one.since) < LONGEST;
        self.recent.iter().find(is_it).map(|one| one.id)
    }

    /// A first fragment passed.
    pub fn keep(&mut self, now: Time, part: &Fragment, id: FlowId) {
        if part.ports.is_none() {
            return;
        }
        let new = Part { name: name(part), id, since: now };
        if let Some(there) = self.recent.iter_mut().find(|one| one.name == new.name) {
            *there = new;
        } else if self.recent.len() < MOST {
            self.recent.push(new);
        } else {
            self.recent[self.next] = new;
            self.next = (self.next + 1) % MOST;
        }
    }
}

fn name(part: &Fragment) -> (IpAddr, IpAddr, u32) {
    (part.source, part.destination, part.identification)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{Direction, FlowKey, FlowTable, Limits, Protocol};

    #[test]
    fn fragments_follow_the_first_of_their_datagram_for_two_seconds() {
        let mut table = FlowTable::new(Limits { flows: 1, half_open: 1 }, Limits { flows: 4, half_open: 4 });
        let [a, b] = ["10.0.0.1:1", "10.0.0.2:2"].map(|end| end.parse().unwrap());
        let key = FlowKey { protocol: Protocol::Udp, local: a, remote: b };
        let id = table.begin_datagrams(Time::ZERO, Direction::Out, key, 0).unwrap().flow;
        let part = |identification, ports| Fragment {
            source: a.ip(),
            destination: b.ip(),
            identification,
            ports,
            data_at: 20,
        };
        let mut parts = Parts::default();
        for number in 0..u32::try_from(MOST).unwrap() + 1 {
            parts.keep(Time::ZERO, &part(number, Some((1, 2))), id);
            parts.keep(Time::ZERO, &part(number, Some((1, 2))), id);
        }
        let found = |parts: &Parts, number, ms| parts.find(Time::ZERO + Duration::from_millis(ms), &part(number, None));
        assert_eq!(parts.recent.len(), MOST);
        assert_eq!([0, 1, 256, 257].map(|number| found(&parts, number, 0)), [None, Some(id), Some(id), None]);
        assert_eq!([1999, 2000].map(|ms| found(&parts, 1, ms)), [Some(id), None]);
    }
}
