//! The TUN devices: trains from this host, and super-packets to it.

use std::io::{self, IoSlice};

use hawser_core::packet::Coalescer;
use hawser_core::units::Time;
use hawser_net::tun::{GsoKind, READ_BUFFER_BYTES, Tun, VnetHdr, WriteOutcome, header, is_device_gone};

use super::PacketError;
use super::world::World;
use crate::compress::Offload;
use crate::engine::Engine;
use crate::route::InterfaceIndex;

/// Trains read from one device in a round, so that what comes in waits no longer than 1 ms for what goes out.
const TRAINS_PER_ROUND: usize = 32;

/// The devices, the ingress first. One owner.
#[derive(Debug)]
pub(super) struct Tuns {
    all: Vec<Tun>,
    buffer: Box<[u8]>,
}

impl Tuns {
    pub fn new(ingress: Tun, egress: Vec<Tun>) -> Self {
        let all = std::iter::once(ingress).chain(egress).collect();
        Self { all, buffer: vec![0; READ_BUFFER_BYTES].into() }
    }

    pub fn all(&self) -> impl ExactSizeIterator<Item = &Tun> {
        self.all.iter()
    }

    /// What collects packets for each.
    pub fn homes(&self) -> Vec<Coalescer> {
        self.all.iter().map(|tun| Coalescer::new(tun.features().udp_segmentation)).collect()
    }

    /// Reads from those that are ready, one bit each.
    pub fn read(
        &mut self,
        ready: u16,
        now: impl Fn() -> Time,
        engine: &mut Engine,
        world: &mut World,
    ) -> Result<(), PacketError> {
        for (place, tun) in self.all.iter_mut().enumerate().filter(|(place, _)| ready & (1 << place) != 0) {
            let Some(interface) = u8::try_from(place).ok().and_then(InterfaceIndex::new) else { continue };
            let now = now();
            for _ in 0..TRAINS_PER_ROUND {
                match tun.read(&mut self.buffer) {
                    Ok(Some(received)) => {
                        let packet = &mut self.buffer[..received.len];
                        engine.handle_packet(now, interface, packet, offload(&received.header), world);
                    }
                    Ok(None) => break,
                    Err(error) => return Err(failed(tun, error)),
                }
            }
        }
        Ok(())
    }

    /// Writes what was collected.
    pub fn write(&mut self, world: &mut World) -> Result<(), PacketError> {
        let mut failure = None;
        let mut refused = 0;
        for (tun, home) in self.all.iter_mut().zip(world.homes()).filter(|(_, home)| !home.is_empty()) {
            home.flush(&mut |offload, packet| {
                match tun.write(&header(offload, packet), &[IoSlice::new(packet)]) {
                    Ok(WriteOutcome::Written) => {}
                    // TCP sends it again, and UDP may be lost; to wait would delay all others.
                    Ok(_) => refused += 1,
                    Err(error) => failure = Some(error),
                }
            });
            if let Some(error) = failure.take() {
                return Err(failed(tun, error));
            }
        }
        world.refused_by_tun(refused);
        Ok(())
    }
}

fn failed(tun: &Tun, source: io::Error) -> PacketError {
    tracing::debug!(device = tun.name(), gone = is_device_gone(&source), "a tun device fails");
    PacketError::Tun { device: tun.name().to_owned(), source }
}

/// What the kernel left undone.
fn offload(header: &VnetHdr) -> Offload {
    let is_train = header.gso != GsoKind::None;
    Offload { partial: header.needs_csum, segment: is_train.then_some(header.gso_size) }
}
