//! What the fuzz targets `inner` and `coalesce`, and the test `fuzz_smoke`, run on any bytes.

use super::coalesce::Coalescer;
use super::inner::{self, Inner};
use super::store::{SegmentRef, TrainStore};
use super::train::{Gso, Offload};
use super::{FlowKey, Transport};

/// The longest inner packet that TUN gives.
const LONGEST: usize = 65_535;

/// Any bytes as a packet from TUN: what is read of it lies within it, and its one segment is the packet.
pub fn packet(bytes: &[u8]) {
    let Ok(inner) = inner::parse(bytes) else { return };
    let header = inner.header_len().unwrap_or(usize::from(inner.transport_at));
    assert!(header <= bytes.len(), "{inner:?}");
    assert_eq!(inner.reversed().reversed(), inner);
    let mut store = TrainStore::new(FlowKey::new(1, 2));
    if bytes.len() > LONGEST {
        return;
    }
    store.read_buffer()[..bytes.len()].copy_from_slice(bytes);
    let Ok(id) = store.admit(bytes.len(), Offload::default()) else { return };
    assert_eq!(store.train(id).segments(), 1);
    let mut head = vec![0; bytes.len()];
    let len = store.train(id).head(0, &mut head);
    assert_eq!([&head[..len], store.train(id).body(0)].concat(), bytes);
    store.release(SegmentRef { train: id, segment: 0 });
    assert_eq!(store.bytes_held(), 0);
}

/// Any packets on their way to TUN, each behind a byte of flags and two of its length: nothing is lost or added, and
/// each super-packet is a packet.
pub fn coalesce(input: &[u8]) {
    let (mut coalescer, mut pushed, mut rest) = (Coalescer::new(true), 0, input);
    while let [flags, high, low, behind @ ..] = rest {
        let len = usize::from(u16::from_be_bytes([*high, *low])).min(behind.len());
        let (packet, behind) = behind.split_at(len);
        rest = behind;
        coalescer.push(packet, flags & 1 != 0);
        pushed += 1;
        if flags & 2 != 0 {
            pushed -= flush(&mut coalescer);
        }
    }
    let flushed = flush(&mut coalescer);
    assert_eq!(pushed, flushed + coalescer.dropped(), "packets in and out");
}

/// How many packets came out.
fn flush(coalescer: &mut Coalescer) -> u64 {
    let mut packets = 0;
    coalescer.flush(&mut |offload, bytes| {
        let inner = inner::parse(bytes).expect("a super-packet is a packet");
        packets += segments(offload, &inner, bytes.len());
    });
    assert!(coalescer.is_empty() && coalescer.bytes_held() == 0);
    packets
}

fn segments(offload: &Offload, inner: &Inner, len: usize) -> u64 {
    if offload.gso == Gso::None {
        return 1;
    }
    assert!(matches!(inner.transport, Transport::Tcp { .. } | Transport::Udp) && offload.needs_csum);
    let payload = len - inner.header_len().expect("headers of a flow");
    let segments = payload.div_ceil(usize::from(offload.gso_size));
    assert!(segments > 1, "a super-packet of one");
    segments as u64
}
