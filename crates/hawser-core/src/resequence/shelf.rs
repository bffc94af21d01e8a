//! Copies of the packets that wait for others, all buckets' together.

use super::Sink;
use super::recent::Recent;
use crate::packet::pool::Pool;
use crate::units::Time;
use std::time::Duration;

/// One packet that waits.
#[derive(Debug)]
struct Held {
    buffer: Vec<u8>,
    len: usize,
    partial: bool,
    arrived: Time,
}

/// Holds packets in pooled buffers. Empty at first. One owner; its memory is used again.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    held: Vec<Held>,
    free: Vec<u32>,
    pool: Pool,
    /// Bytes of packets, and of the buffers they lie in.
    pub(super) bytes: usize,
    pub(super) capacity: usize,
    /// How long delivered packets had waited.
    pub(super) waits: Recent<Duration>,
}

impl Shelf {
    /// Packets that wait.
    pub(super) fn packets(&self) -> usize {
        self.held.len() - self.free.len()
    }

    /// Keeps a copy.
    pub(super) fn keep(&mut self, now: Time, packet: &[u8], partial: bool) -> u32 {
        let mut buffer = self.pool.take(packet.len());
        buffer[..packet.len()].copy_from_slice(packet);
        self.bytes += packet.len();
        self.capacity += buffer.len();
        let held = Held { buffer, len: packet.len(), partial, arrived: now };
        match self.free.pop() {
            Some(index) => {
                self.held[index as usize] = held;
                index
            }
            None => {
                self.held.push(held);
                (self.held.len() - 1) as u32
            }
        }
    }

    /// Delivers a packet and forgets it.
    pub(super) fn deliver(&mut self, now: Time, index: u32, sink: &mut dyn Sink) {
        let held = &mut self.held[index as usize];
        sink.deliver(&held.buffer[..held.len], held.partial);
        self.waits.see(now, now.since(held.arrived));
        self.bytes -= held.len;
        self.capacity -= held.buffer.len();
        self.pool.put(std::mem::take(&mut held.buffer));
        self.free.push(index);
    }

    /// Bytes of buffers, in use or not.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.capacity + self.pool.bytes()
    }

    /// Frees what was idle since the last call.
    pub(super) fn trim(&mut self) {
        self.pool.trim();
        if self.packets() == 0 {
            self.held = Vec::new();
            self.free = Vec::new();
        }
    }
}
