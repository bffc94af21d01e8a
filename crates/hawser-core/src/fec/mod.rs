//! Forward error correction: what a path loses comes back without being retransmitted.
//!
//! 1. A packet of a rule with `fec = "auto"` leaves as a PROTECTED frame: a source symbol ([`encoder`]).
//! 2. The measured loss says how many repairs there are ([`demand`]); none while nothing is lost.
//! 3. Each REPAIR frame is a sum over the last packets, by another path than theirs where there is one.
//! 4. The far side solves for what is missing ([`decoder`]), and the packet takes its place as if it had come.
//!
//! The code is a sliding window over GF(2^8) (as RFC 8681 describes) with Cauchy coefficients; docs/fec.md says why.

pub(crate) mod decoder;
pub(crate) mod demand;
pub(crate) mod encoder;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod gf256;
#[cfg(test)]
mod strength;
pub(crate) mod symbol;

use crate::treatment::RuleId;
use crate::units::{ByteCount, Time};
use crate::wire::{DATA_HEADER_LEN, DATA_OVERHEAD, ProtectedFrame, RepairFrame, SymbolNumber, TAG_LEN};
use decoder::{Decoder, Repaired};
use demand::Demand;
use encoder::Encoder;
use symbol::{MAX_PACKET, SYMBOL_HEAD, SymbolHead};

/// What was done so far, and what is done now. Zero at first; a plain value.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct FecSnapshot {
    /// Packets sent that repairs cover.
    pub protected: u64,
    /// Repairs sent.
    pub repairs: u64,
    /// Their bytes, as datagrams.
    pub repair_bytes: ByteCount,
    /// Packets of the peer that came back.
    pub repaired: u64,
    /// Repairs for each protected packet now, as a share: 0.25 is one for four.
    pub overhead: f64,
}

/// Both directions of a session. Idle at first, without buffers; its session owns it.
#[derive(Debug, Default)]
pub(crate) struct Fec {
    demand: Demand,
    encoder: Encoder,
    decoder: Decoder,
    /// The peer does not know repairs.
    mute: bool,
    counts: FecSnapshot,
    /// The path that the last protected packet took.
    last_path: usize,
}

impl Fec {
    /// A path that loses this share is to carry what waits.
    pub fn on_loss(&mut self, now: Time, share: f64) {
        self.demand.on_loss(now, share);
        if self.demand.interval().is_none() {
            self.encoder.rest();
        }
    }

    /// Sends no repairs from now on, or may again: as the peer knows them.
    pub fn mute(&mut self, mute: bool) {
        self.mute = mute;
    }

    /// Whether a packet of this many bytes is protected on a path with datagrams of `mtu` bytes: if it asks for it,
    /// loss does, and a repair of that size has room.
    pub fn protects(&self, asked: bool, len: usize, mtu: usize) -> bool {
        let fits = len <= MAX_PACKET && RepairFrame::OVERHEAD + SYMBOL_HEAD + len <= mtu;
        asked && !self.mute && self.demand.interval().is_some() && fits
    }

    /// Bytes that a datagram costs beside a packet of this many bytes.
    pub fn overhead(&self, asked: bool, len: usize, mtu: usize) -> usize {
        if self.protects(asked, len, mtu) { ProtectedFrame::OVERHEAD } else { DATA_OVERHEAD }
    }

    /// A packet of that rule, in two parts, leaves now by this path of the session, under this number.
    pub fn protect(
        &mut self,
        now: Time,
        path: usize,
        rule: RuleId,
        head: &SymbolHead,
        packet: (&[u8], &[u8]),
    ) -> SymbolNumber {
        self.counts.protected += 1;
        self.last_path = path;
        self.encoder.protect(now, rule, head, packet, self.demand.interval().unwrap_or(1))
    }

    /// The rules of the packets that a repair would be of now.
    pub fn rules(&self, now: Time) -> impl Iterator<Item = RuleId> + '_ {
        self.encoder.rules(now, self.demand.interval().unwrap_or(1))
    }

    /// The path that the last protected packet took.
    pub fn last_path(&self) -> usize {
        self.last_path
    }

    /// Bytes of the datagram of a repair that is due; none while none is.
    pub fn repair_due(&mut self, now: Time) -> Option<usize> {
        let interval = self.demand.interval()?;
        while self.encoder.is_due(now, interval) {
            match self.encoder.repair_len(now, interval) {
                0 => self.encoder.settle(interval),
                len => return Some(RepairFrame::OVERHEAD + len),
            }
        }
        None
    }

    /// Writes the frame of the repair that is due into its datagram.
    pub fn write_repair(&mut self, now: Time, datagram: &mut [u8]) {
        if let Some(interval) = self.demand.interval() {
            self.counts.repairs += 1;
            self.counts.repair_bytes += ByteCount(datagram.len() as u64);
            let frame = DATA_HEADER_LEN..datagram.len() - TAG_LEN;
            self.encoder.repair(now, interval, &mut datagram[frame]);
        }
    }

    /// No path carries the repair that is due: it is not worth waiting for one.
    pub fn skip_repair(&mut self) {
        if let Some(interval) = self.demand.interval() {
            self.encoder.settle(interval);
        }
    }

    /// When silence calls for a repair.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.demand.interval().and_then(|_| self.encoder.silence_ends())
    }

    /// A protected packet arrived; what comes back thereby goes to `out`.
    pub fn on_source(&mut self, now: Time, frame: &ProtectedFrame<'_>, mut out: impl FnMut(Repaired<'_>)) {
        let repaired = &mut self.counts.repaired;
        self.decoder.on_source(now, frame, |packet| {
            *repaired += 1;
            out(packet);
        });
    }

    /// A repair arrived; what comes back thereby goes to `out`.
    pub fn on_repair(&mut self, now: Time, frame: &RepairFrame<'_>, mut out: impl FnMut(Repaired<'_>)) {
        let repaired = &mut self.counts.repaired;
        self.decoder.on_repair(now, frame, |packet| {
            *repaired += 1;
            out(packet);
        });
    }

    /// What a user sees.
    pub fn snapshot(&self) -> FecSnapshot {
        let interval = self.demand.interval().filter(|_| self.encoder.is_used());
        let overhead = interval.map_or(0.0, |interval| 1.0 / interval as f64);
        FecSnapshot { overhead, ..self.counts }
    }

    /// Gives back the buffers of a direction that was idle since the last call.
    pub fn trim(&mut self) {
        self.encoder.trim();
        self.decoder.trim();
    }
}
