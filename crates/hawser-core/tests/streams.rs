//! Paths over streams: the kernel decides how fast they go, and tells when one broke.

use crate::support;
use hawser_core::congestion::SocketState;
use hawser_core::endpoint::{Endpoint, Event};
use hawser_core::packet::Offload;
use hawser_core::path::health::{DownReason, HealthState};
use hawser_core::transport::Transport;
use hawser_core::units::{ByteCount, Ecn, LinkId, PeerId, Rate, Time};
use std::net::SocketAddr;
use std::time::Duration;
use support::{Buffer, connected_by, packet, step};

/// Where the remote portal is.
const REMOTE: &str = "198.51.100.1:4920";
/// On the wire, for an inner packet of the test: what Hawser adds, and a record's length.
const RECORD: u64 = 100 + 31 + 2;

fn remote() -> SocketAddr {
    REMOTE.parse().expect("an address")
}

fn states(endpoint: &Endpoint, now: Time) -> Vec<HealthState> {
    let snapshot = endpoint.snapshot(now);
    snapshot.peers.iter().flatten().flat_map(|peer| &peer.paths).map(|path| path.state).collect()
}

fn offer(endpoint: &mut Endpoint, now: Time, count: u16) {
    for number in 0..count {
        let packet = packet(number);
        endpoint.read_buffer()[..packet.len()].copy_from_slice(&packet);
        endpoint.handle_inner(now, packet.len(), Offload::default());
    }
}

/// Bytes of data batches that go now, by link.
fn sent(endpoint: &mut Endpoint, now: Time) -> [u64; 2] {
    let (mut buffer, mut bytes) = (Buffer(vec![0; 65_536]), [0; 2]);
    while let Some(transmit) = endpoint.poll_transmit(now, &mut buffer) {
        assert_eq!(transmit.ecn, Ecn::NotEct, "nobody marks a stream's segments for us");
        let datagrams = transmit.len.div_ceil(transmit.segment_size) as u64;
        // Control datagrams go alone, and are not of this size.
        if transmit.segment_size as u64 + 2 == RECORD {
            bytes[usize::from(transmit.link.0)] += transmit.len as u64 + 2 * datagrams;
        }
    }
    bytes
}

#[test]
fn a_streams_datagram_has_one_size_that_needs_no_search() {
    let (mut local, _, now) = connected_by(Transport::Tcp);
    let snapshot = local.endpoint.snapshot(now);
    assert!(snapshot.peers.iter().flatten().flat_map(|peer| &peer.paths).all(|path| path.mtu == 1480));
    let told: Vec<Event> = std::iter::from_fn(|| local.endpoint.poll_event()).collect();
    assert!(told.contains(&Event::PeerMtu { peer: PeerId(0), mtu: 1449 }), "{told:?}");
}

#[test]
fn no_more_goes_than_the_sockets_take() {
    let (mut local, _, now) = connected_by(Transport::Tcp);
    let room = |bytes| SocketState { room: ByteCount(bytes), rate: Some(Rate(1_000_000)) };
    offer(&mut local.endpoint, now, 400);
    for (bytes, least, most) in
        [(0, 0, 0), (5_000, 5_000 - RECORD, 5_000 + RECORD), (0, 0, 0), (3_000, 3_000 - RECORD, 3_000 + RECORD)]
    {
        for link in [0, 1] {
            local.endpoint.handle_socket(LinkId(link), remote(), &room(bytes));
        }
        let sent = sent(&mut local.endpoint, now);
        // The second path takes what the first cannot bring home sooner, which may be nothing yet.
        let fullest = sent[0].max(sent[1]);
        assert!((least..=most).contains(&fullest) && sent[0].min(sent[1]) <= most, "{sent:?} for room of {bytes}");
    }
}

#[test]
fn a_stream_that_breaks_takes_its_path_down_at_once_and_the_next_brings_it_back() {
    let (mut local, mut remote_portal, mut now) = connected_by(Transport::Tcp);
    assert_eq!(states(&local.endpoint, now), [HealthState::Active; 2]);
    local.endpoint.handle_stream_down(now, LinkId(0), remote());
    assert_eq!(states(&local.endpoint, now), [HealthState::Down(DownReason::LinkLost), HealthState::Active]);
    local.endpoint.handle_stream_up(now, LinkId(0), remote());
    for _ in 0..20 {
        step(now, &mut local, &mut remote_portal);
        now = now + Duration::from_millis(1);
    }
    assert_eq!(states(&local.endpoint, now), [HealthState::Active; 2]);
    assert_eq!(states(&remote_portal.endpoint, now), [HealthState::Active; 2]);
}
