//! Two portals, two links, no system: a packet goes in here and comes out there.

use crate::support;
use hawser_core::endpoint::Event;
use hawser_core::packet::Offload;
use hawser_core::units::PeerId;
use std::time::Duration;
use support::{connected, packet, step};

#[test]
fn a_packet_goes_in_here_and_comes_out_there() {
    let (mut local, mut remote, mut now) = connected();
    let begun = Event::Session { peer: PeerId(0), new: true };
    assert_eq!(local.endpoint.poll_event(), Some(begun), "{:#?}", remote.endpoint.snapshot(now));
    for number in 0..500u16 {
        let packet = packet(number);
        local.endpoint.read_buffer()[..packet.len()].copy_from_slice(&packet);
        local.endpoint.handle_inner(now, packet.len(), Offload::default());
        step(now, &mut local, &mut remote);
        now = now + Duration::from_millis(1);
    }
    let state = (local.endpoint.snapshot(now), remote.endpoint.snapshot(now));
    let got: Vec<u16> = remote.delivered.0.iter().map(|p| u16::from_be_bytes([p[28], p[29]])).collect();
    assert_eq!(got, (0..500).collect::<Vec<_>>(), "{state:#?}");
}
