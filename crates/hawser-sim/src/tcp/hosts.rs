//! Hosts whose connections are those of the model: all senders of one address, or all receivers.

use super::Transfer;
use super::receiver::Receiver;
use super::segment::Header;
use super::sender::Sender;
use crate::host::packets::Pattern;
use crate::host::{Host, Ingress};
use hawser_core::packet::{Gso, Offload};
use hawser_core::units::Time;
use std::net::Ipv4Addr;

/// The first sender's port and the first receiver's; others follow.
const PORTS: (u16, u16) = (40_001, 5_201);

/// Where segments go out. Made for one poll.
pub struct Line<'a, 'e> {
    ingress: &'a mut Ingress<'e>,
    from: Ipv4Addr,
    to: Ipv4Addr,
    pattern: &'a Pattern,
    flow: u16,
}

impl Line<'_, '_> {
    /// The largest packet, bytes.
    pub fn mtu(&self) -> usize {
        self.ingress.mtu()
    }

    /// Sends `len` bytes of the stream from a position, in segments of `mss`; none: the header alone.
    pub fn send(&mut self, header: &Header, position: u64, len: usize, mss: usize) {
        let gso = if len > mss { Gso::TcpV4 } else { Gso::None };
        let offload = Offload { needs_csum: true, csum_start: 20, csum_offset: 16, gso, gso_size: mss as u16 };
        let data = self.pattern.bytes(self.flow, position, len);
        let (from, to) = (self.from, self.to);
        self.ingress.send(offload, |out| {
            let headers = header.write(out, from, to, len);
            out[headers..headers + len].copy_from_slice(data);
            headers + len
        });
    }
}

/// An address and its peer's.
#[derive(Copy, Clone, Debug)]
struct Ends {
    own: Ipv4Addr,
    peer: Ipv4Addr,
}

/// Sends. Its world owns it.
pub struct SenderHost {
    ends: Ends,
    pattern: Pattern,
    /// One for each transfer.
    pub senders: Vec<Sender>,
    deadline: Option<Time>,
}

impl SenderHost {
    /// One sender at `own` for each transfer to `peer`; `seed` decides what is random.
    pub fn new(own: Ipv4Addr, peer: Ipv4Addr, transfers: &[Transfer], seed: u64) -> Self {
        let sender = |(index, plan): (usize, &Transfer)| {
            let index = index as u16;
            Sender::new(*plan, (PORTS.0 + index, PORTS.1 + index), seed ^ u64::from(index) << 32)
        };
        let senders: Vec<Sender> = transfers.iter().enumerate().map(sender).collect();
        let deadline = senders.iter().filter_map(Sender::deadline).min();
        SenderHost { ends: Ends { own, peer }, pattern: Pattern::default(), senders, deadline }
    }
}

impl Host for SenderHost {
    fn receive(&mut self, now: Time, packet: &[u8], _: bool) {
        let Some((header, _)) = Header::read(packet) else { return };
        if let Some(sender) = self.senders.get_mut(usize::from(header.ports.1.wrapping_sub(PORTS.0))) {
            sender.receive(now, &header);
        }
    }

    fn poll(&mut self, now: Time, ingress: &mut Ingress<'_>) {
        let Ends { own: from, peer: to } = self.ends;
        for (flow, sender) in self.senders.iter_mut().enumerate() {
            let flow = flow as u16;
            sender.poll(now, &mut Line { ingress, from, to, pattern: &self.pattern, flow });
        }
        self.deadline = self.senders.iter().filter_map(Sender::deadline).min();
    }

    fn deadline(&self) -> Option<Time> {
        self.deadline
    }
}

/// Receives. Its world owns it.
pub struct ReceiverHost {
    ends: Ends,
    pattern: Pattern,
    /// One for each transfer.
    pub receivers: Vec<Receiver>,
    deadline: Option<Time>,
}

impl ReceiverHost {
    /// One receiver at `own` for each transfer from `peer`; `seed` decides what is random.
    pub fn new(own: Ipv4Addr, peer: Ipv4Addr, transfers: &[Transfer], seed: u64) -> Self {
        let receiver = |(index, plan): (usize, &Transfer)| {
            let index = index as u16;
            Receiver::new(*plan, (PORTS.1 + index, PORTS.0 + index), !seed ^ u64::from(index) << 32)
        };
        let receivers: Vec<Receiver> = transfers.iter().enumerate().map(receiver).collect();
        let deadline = receivers.iter().filter_map(Receiver::deadline).min();
        ReceiverHost { ends: Ends { own, peer }, pattern: Pattern::default(), receivers, deadline }
    }
}

impl Host for ReceiverHost {
    fn receive(&mut self, now: Time, packet: &[u8], _: bool) {
        let Some((header, data)) = Header::read(packet) else { return };
        let flow = header.ports.1.wrapping_sub(PORTS.1);
        let Some(receiver) = self.receivers.get_mut(usize::from(flow)) else { return };
        let pattern = &self.pattern;
        receiver.receive(now, &header, data, |at, bytes| pattern.bytes(flow, at, bytes.len()) == bytes);
    }

    fn poll(&mut self, now: Time, ingress: &mut Ingress<'_>) {
        let Ends { own: from, peer: to } = self.ends;
        for (flow, receiver) in self.receivers.iter_mut().enumerate() {
            let flow = flow as u16;
            receiver.poll(now, &mut Line { ingress, from, to, pattern: &self.pattern, flow });
        }
        self.deadline = self.receivers.iter().filter_map(Receiver::deadline).min();
    }

    fn deadline(&self) -> Option<Time> {
        self.deadline
    }
}
