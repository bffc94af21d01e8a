//! The way back to TUN: packets of one flow that follow each other become one super-packet.
//!
//! 1. `push` copies a packet behind the open super-packet of its flow, when it continues it exactly.
//! 2. Otherwise it starts an entry of its own, and closes the flow's open one, so that a flow keeps its order.
//! 3. `flush` completes lengths and checksums and emits all entries in the order of their first packets.

mod entry;
#[cfg(test)]
mod tests;

use super::inner::{self, Inner};
use super::pool::Pool;
use super::train::Offload;
use entry::{Entry, Fit};

/// Super-packets that may be open at once: Linux's GRO keeps 8 flows a bucket; looking through
/// more costs more than it brings.
const MAX_OPEN: usize = 16;

/// Collects packets between two writes to TUN. Empty at first. One owner; reuses all its memory.
#[derive(Debug)]
pub struct Coalescer {
    /// In the order of their first packets.
    entries: Vec<Entry>,
    /// Which entries may still grow, oldest first.
    open: Vec<usize>,
    pool: Pool,
    /// UDP may be coalesced: the TUN has USO.
    udp: bool,
    bytes: usize,
    dropped: u64,
}

impl Coalescer {
    /// `udp`: the TUN takes UDP super-packets (TUN_F_USO4, TUN_F_USO6).
    pub fn new(udp: bool) -> Coalescer {
        Coalescer {
            entries: Vec::new(),
            open: Vec::with_capacity(MAX_OPEN + 1),
            pool: Pool::default(),
            udp,
            bytes: 0,
            dropped: 0,
        }
    }

    /// Takes a copy of an inner packet. `partial`: its TCP or UDP checksum covers the
    /// pseudo-header only. What is no packet, or cannot have a partial checksum, is dropped and counted.
    pub fn push(&mut self, packet: &[u8], partial: bool) {
        let Ok(inner) = inner::parse(packet) else {
            self.dropped += 1;
            return;
        };
        if partial && Offload::partial(&inner).is_none() {
            self.dropped += 1;
            return;
        }
        let same = |&at: &usize| self.entries[at].is_flow_of(&inner);
        if let Some(place) = self.open.iter().position(same) {
            let entry = &mut self.entries[self.open[place]];
            let before = entry.capacity();
            let fit = entry.append(packet, &inner, partial, &mut self.pool);
            self.bytes += entry.capacity() - before;
            if fit != Fit::Open {
                self.open.remove(place);
            }
            if fit != Fit::Refused {
                return;
            }
        }
        self.start(packet, inner, partial);
    }

    fn start(&mut self, packet: &[u8], inner: Inner, partial: bool) {
        let (entry, open) = Entry::start(packet, inner, partial, self.udp, &mut self.pool);
        self.bytes += entry.capacity();
        if open {
            self.open.push(self.entries.len());
            if self.open.len() > MAX_OPEN {
                self.open.remove(0);
            }
        }
        self.entries.push(entry);
    }

    /// Emits everything, in the order of each super-packet's first packet.
    pub fn flush(&mut self, sink: &mut dyn FnMut(&Offload, &[u8])) {
        self.flush_while(&mut |offload, packet| {
            sink(offload, packet);
            true
        });
    }

    /// The same until `sink` refuses one: that and all after it are dropped. How many packets those are.
    pub fn flush_while(&mut self, sink: &mut dyn FnMut(&Offload, &[u8]) -> bool) -> u64 {
        self.open.clear();
        self.bytes = 0;
        let (mut goes_on, mut dropped) = (true, 0);
        for mut entry in self.entries.drain(..) {
            let offload = entry.finish();
            goes_on = goes_on && sink(&offload, entry.bytes());
            dropped += if goes_on { 0 } else { u64::from(entry.count()) };
            self.pool.put(entry.buffer);
        }
        dropped
    }

    /// Nothing waits for `flush`.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of the buffers in use: flush when this grows beyond what a batch should hold.
    pub fn bytes_held(&self) -> usize {
        self.bytes
    }

    /// Packets that were none.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Frees buffers that were idle since the last call. Call it about once a second.
    pub fn trim(&mut self) {
        self.pool.trim();
    }
}
