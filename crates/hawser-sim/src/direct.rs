//! Hosts at both ends of one link, without portals: what a link is worth alone.
//!
//! 1. `run_until` takes the next thing that is due: a departure, an arrival, an act, a host's deadline.
//! 2. The hosts of the side that it moved are polled, and what they send enters the link's pipe.

use crate::events::EventQueue;
use crate::host::{Host, HostId, Hosts, Ingress, Wire};
use crate::net::{Due, LinkSpec, Pipe};
use crate::random::Seeded;
use crate::world::{Act, LOCAL, REMOTE};
use hawser_core::units::Time;
use std::net::Ipv4Addr;

/// The largest packet, bytes.
const MTU: usize = 1500;

enum Happening {
    Depart(usize, Due),
    Arrive(usize, Vec<u8>),
    Act(Act),
}

/// A link and hosts at its ends. Begins at time zero; one owner.
pub struct Direct {
    /// The present.
    pub now: Time,
    /// By the side that sends: up, then down.
    pub pipes: [Pipe<Vec<u8>>; 2],
    hosts: Hosts,
    wires: [Wire; 2],
    events: EventQueue<Happening>,
}

impl Direct {
    /// Hosts are joined by such a link.
    pub fn new(link: &LinkSpec, seed: u64) -> Self {
        let mut rng = Seeded::new(seed);
        Direct {
            now: Time::ZERO,
            pipes: [Pipe::new(link.up.clone(), rng.fork()), Pipe::new(link.down.clone(), rng.fork())],
            hosts: Hosts::default(),
            wires: [Wire::new(MTU), Wire::new(MTU)],
            events: EventQueue::default(),
        }
    }

    /// Puts a host at an end.
    pub fn add_host(&mut self, side: usize, address: Ipv4Addr, host: impl Host) -> HostId {
        self.hosts.put(side, address, host)
    }

    /// A host that was put there. Panics if it is another kind of host.
    pub fn host<H: Host>(&self, id: HostId) -> &H {
        self.hosts.get(id)
    }

    /// Something happens to the link's ways then, whichever link the act names.
    pub fn at(&mut self, at: Time, act: Act) {
        self.events.push(at, Happening::Act(act));
    }

    /// Step 1.
    pub fn run_until(&mut self, end: Time) {
        while let Some(at) = self.next_at().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            match self.events.pop_due(self.now) {
                Some(happening) => self.happen(happening),
                None => [LOCAL, REMOTE].into_iter().for_each(|side| self.settle(side)),
            }
        }
        self.now = end;
    }

    fn next_at(&self) -> Option<Time> {
        self.events.next_at().into_iter().chain(self.hosts.deadline()).min()
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Depart(side, due) => {
                let departure = self.pipes[side].depart(self.now, due);
                for (at, packet) in departure.arrivals.into_iter().flatten() {
                    self.events.push(at, Happening::Arrive(1 - side, packet));
                }
                self.departs(side, departure.next);
            }
            Happening::Arrive(side, packet) => {
                self.hosts.receive(side, self.now, &packet, false);
                self.settle(side);
            }
            Happening::Act(act) => {
                let ways = act.touches().map_or([false; 2], |(_, ways)| ways);
                for side in [LOCAL, REMOTE].into_iter().filter(|side| ways[*side]) {
                    let due = self.pipes[side].change(self.now, |way| act.change(way));
                    self.departs(side, due);
                }
            }
        }
    }

    /// Step 2.
    fn settle(&mut self, side: usize) {
        let now = self.now;
        for host in self.hosts.on(side) {
            host.poll(now, &mut Ingress::onto(&mut self.wires[side], now));
        }
        for packet in std::mem::take(&mut self.wires[side].packets) {
            let due = self.pipes[side].offer(now, packet);
            self.departs(side, due);
        }
    }

    fn departs(&mut self, side: usize, due: Option<Due>) {
        if let Some(due) = due {
            self.events.push(due.at, Happening::Depart(side, due));
        }
    }
}
