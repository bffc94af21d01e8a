//! What becomes of a packet whose last bit was sent: steps 3 to 5 of a way.

use std::cmp::Reverse;

use super::{Flying, Pipe};
use crate::clock::Moment;
use crate::emulate::slab::Packet;

/// Bits in a byte.
const BYTE_BITS: usize = 8;
/// The first byte of a packet has its version, which is never corrupted: a line would tell by other means.
const VERSION_BYTES: usize = 1;

impl Pipe {
    /// Steps 3 and 4: what becomes of a packet whose last bit was sent.
    pub(super) fn launch(&mut self, packet: Packet, sent: Moment) {
        if self.settings.longest.is_some_and(|longest| packet.length > longest) {
            self.counters.too_long += 1;
            self.slab.take_back(packet);
            return;
        }
        if self.loss.loses(self.settings.loss, &mut self.dice) {
            self.counters.lost += 1;
            self.slab.take_back(packet);
            return;
        }
        if self.dice.happens(self.settings.corrupt) {
            self.counters.corrupted += 1;
            self.flip_a_bit(packet);
        }
        let copy = self.dice.happens(self.settings.duplicate);
        let copy = copy.then(|| self.slab.copy(packet)).flatten();
        self.fly(packet, sent);
        if let Some(copy) = copy {
            self.counters.duplicated += 1;
            self.fly(copy, sent);
        }
    }

    /// Flips one bit behind the version, so that no checksum fits.
    fn flip_a_bit(&mut self, packet: Packet) {
        let bytes = (packet.length as usize).saturating_sub(VERSION_BYTES);
        let bit = self.dice.below(bytes * BYTE_BITS);
        self.slab.buffer(packet)[VERSION_BYTES + bit / BYTE_BITS] ^= 1 << (bit % BYTE_BITS);
    }

    fn fly(&mut self, packet: Packet, sent: Moment) {
        let mut lands = sent + self.settings.delay;
        let mut ordered = true;
        if let Some(jitter) = &self.settings.jitter {
            let extra = self.wander.extra(jitter, sent, &mut self.dice);
            lands = lands.moved(extra).max(sent);
            ordered = !jitter.reorder;
        }
        if ordered {
            lands = lands.max(self.last_landing);
        }
        self.last_landing = self.last_landing.max(lands);
        if let Some(reorder) = self.settings.reorder
            && self.dice.happens(reorder.share)
        {
            // Those behind it keep their time, and overtake.
            self.counters.held_back += 1;
            lands = lands + reorder.by;
        }
        self.number += 1;
        let number = self.number;
        self.flight.push(Reverse(Flying { lands, number, packet }));
    }

    /// Step 5: the next packet that has arrived by now; the caller gives its buffer back.
    pub(crate) fn due(&mut self, now: Moment) -> Option<Packet> {
        while self.flight.peek().is_some_and(|next| next.0.lands <= now) {
            let Reverse(Flying { packet, .. }) = self.flight.pop()?;
            if !self.black_hole {
                return Some(packet);
            }
            self.counters.vanished += 1;
            self.slab.take_back(packet);
        }
        None
    }

    /// Counts a packet that `due` returned.
    pub(crate) fn delivered(&mut self, packet: Packet, taken: bool) {
        if taken {
            self.counters.packets_out += 1;
            self.counters.bytes_out += u64::from(packet.length);
        } else {
            self.counters.cut += 1;
        }
        self.slab.take_back(packet);
    }
}
