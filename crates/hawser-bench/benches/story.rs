//! What a packet's whole story costs both portals, without the system: a train from the read buffer
//! of one to the deliveries of the other, acknowledged. Per segment of 1400 bytes.
#![allow(missing_docs, reason = "criterion's macros make public items")]

#[path = "../../hawser-core/tests/support/mod.rs"]
mod support;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hawser_core::packet::{Coalescer, Gso, Offload};
use hawser_core::session::Sink;
use hawser_core::units::{Ecn, Time};
use std::time::Duration;
use support::{Buffer, Portal, connected};

/// Segments of a train, and bytes of TCP payload in each.
const SEGMENTS: usize = 44;
const SEGMENT: usize = 1_401;
/// IPv4 and TCP headers without options.
const HEADERS: usize = 40;

/// A train of TCP segments as Linux hands it over.
fn train(sequence: u32) -> Vec<u8> {
    let mut packet = vec![0u8; HEADERS + SEGMENTS * SEGMENT];
    let len = packet.len() as u16;
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    packet[8] = 64;
    packet[9] = 6;
    packet[12..16].copy_from_slice(&[10, 0, 0, 2]);
    packet[16..20].copy_from_slice(&[10, 0, 0, 1]);
    packet[20..24].copy_from_slice(&[0x10, 0, 0x20, 0]);
    packet[24..28].copy_from_slice(&sequence.to_be_bytes());
    packet[32] = 0x50;
    packet[33] = 0x10;
    packet
}

fn offload() -> Offload {
    Offload { needs_csum: true, csum_start: 20, csum_offset: 16, gso: Gso::TcpV4, gso_size: SEGMENT as u16 }
}

/// Moves all that one has to say to the other, in batches.
fn speak(now: Time, from: &mut Portal, to: &mut Portal, buffer: &mut Buffer, sink: &mut dyn Sink) {
    while let Some(transmit) = from.endpoint.poll_transmit(now, buffer) {
        let (source, link) = (from.address(transmit.link), to.link_at(transmit.remote));
        for datagram in buffer.0[..transmit.len].chunks_mut(transmit.segment_size) {
            to.endpoint.handle_datagram(now, link, source, None, Ecn::NotEct, datagram, sink);
        }
    }
}

fn story(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("story");
    group.measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_secs(1)).sample_size(20);
    group.throughput(Throughput::Elements(SEGMENTS as u64));
    let (mut local, mut remote, mut now) = connected();
    let mut buffer = Buffer(vec![0; 65_536]);
    let mut coalescer = Coalescer::new(true);
    let mut bytes = 0usize;
    let packet = train(1);
    group.bench_function("train of 44", |bencher| {
        bencher.iter(|| {
            local.endpoint.read_buffer()[..packet.len()].copy_from_slice(&packet);
            local.endpoint.handle_inner(now, packet.len(), offload());
            for _ in 0..4 {
                now = now + Duration::from_micros(100);
                speak(now, &mut local, &mut remote, &mut buffer, &mut coalescer);
                speak(now, &mut remote, &mut local, &mut buffer, &mut coalescer);
                local.endpoint.handle_timeout(now, &mut coalescer);
                remote.endpoint.handle_timeout(now, &mut coalescer);
            }
            coalescer.flush(&mut |_, packet| bytes += packet.len());
        });
    });
    group.finish();
    assert!(bytes > 0, "nothing arrived");
}

criterion_group!(benches, story);
criterion_main!(benches);
