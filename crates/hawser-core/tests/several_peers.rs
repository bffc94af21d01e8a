//! Several peers of one portal: kept apart unless told otherwise.

use crate::support;
use hawser_core::drops::DropReason;
use hawser_core::endpoint::{Endpoint, Event, Standing};
use hawser_core::packet::Offload;
use hawser_core::transport::Transport;
use hawser_core::units::{Ecn, LinkId, PeerId, Time};
use std::net::SocketAddr;
use std::time::Duration;
use support::{Buffer, Delivered, endpoint, link, packet, peer};

const HUB: u8 = 1;
/// The peers' private keys are these bytes repeated; their inner addresses end in them.
const PEERS: [u8; 3] = [2, 3, 4];

/// A hub and three peers that call it, over wires without delay.
struct Star {
    hub: Endpoint,
    peers: Vec<Endpoint>,
    delivered: Vec<Delivered>,
    now: Time,
    /// Peers that nothing comes from or to.
    away: Vec<usize>,
}

impl Star {
    fn new(isolated: bool) -> Star {
        let of = |key: u8| peer(key, &[], &format!("10.0.0.{key}/32"));
        let mut hub = endpoint(HUB, PEERS.map(of).into());
        if isolated {
            hub.isolate_peers(vec!["10.0.0.1".parse().expect("an address")]);
        }
        let now = Time::from_nanos(1_000_000_000);
        hub.add_link(now, link(0, Transport::Udp, false));
        let caller = |key| endpoint(key, vec![peer(HUB, &["198.51.100.1:4920"], "10.0.0.0/24")]);
        let mut peers: Vec<Endpoint> = PEERS.into_iter().map(caller).collect();
        peers.iter_mut().for_each(|endpoint| endpoint.add_link(now, link(0, Transport::Udp, true)));
        let delivered = (0..=PEERS.len()).map(|_| Delivered::default()).collect();
        let mut star = Star { hub, peers, delivered, now, away: Vec::new() };
        star.run(300);
        star
    }

    fn address(peer: usize) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, PEERS[peer]], 1000))
    }

    /// This many milliseconds.
    fn run(&mut self, millis: u64) {
        let mut buffer = Buffer(vec![0; 65_536]);
        for _ in 0..millis {
            self.now = self.now + Duration::from_millis(1);
            let (hub_sink, sinks) = self.delivered.split_first_mut().expect("the hub's is the first");
            self.hub.handle_timeout(self.now, hub_sink);
            while let Some(transmit) = self.hub.poll_transmit(self.now, &mut buffer) {
                let to = (0..PEERS.len()).find(|peer| Self::address(*peer) == transmit.remote).expect("a peer");
                let hub = "198.51.100.1:4920".parse().expect("an address");
                if self.away.contains(&to) {
                    continue;
                }
                for bytes in buffer.0[..transmit.len].chunks_mut(transmit.segment_size) {
                    self.peers[to].handle_datagram(self.now, LinkId(0), hub, None, Ecn::NotEct, bytes, &mut sinks[to]);
                }
            }
            let away = &self.away;
            for (from, endpoint) in self.peers.iter_mut().enumerate().filter(|(from, _)| !away.contains(from)) {
                endpoint.handle_timeout(self.now, &mut sinks[from]);
                while let Some(transmit) = endpoint.poll_transmit(self.now, &mut buffer) {
                    for bytes in buffer.0[..transmit.len].chunks_mut(transmit.segment_size) {
                        let source = Self::address(from);
                        self.hub.handle_datagram(self.now, LinkId(0), source, None, Ecn::NotEct, bytes, hub_sink);
                    }
                }
            }
        }
    }

    fn hub_dropped(&self) -> u64 {
        self.hub.snapshot(self.now).drops.of(DropReason::BetweenPeers)
    }
}

fn inner(source: u8, destination: u8) -> Vec<u8> {
    let mut packet = packet(0);
    (packet[15], packet[19]) = (source, destination);
    packet
}

fn send(endpoint: &mut Endpoint, now: Time, packet: &[u8]) {
    endpoint.read_buffer()[..packet.len()].copy_from_slice(packet);
    endpoint.handle_inner(now, packet.len(), Offload::default());
}

#[test]
fn peers_reach_the_portal_but_not_each_other() {
    let mut star = Star::new(true);
    let now = star.now;
    send(&mut star.peers[0], now, &inner(2, 1));
    send(&mut star.peers[0], now, &inner(2, 3));
    star.run(50);
    assert_eq!(star.delivered[0].0, [inner(2, 1)], "what is for the other peer does not even reach TUN");
    assert_eq!(star.hub_dropped(), 1);
    // As the system would forward it, had it come by another way.
    let now = star.now;
    send(&mut star.hub, now, &inner(2, 3));
    send(&mut star.hub, now, &inner(1, 3));
    star.run(50);
    assert_eq!(star.delivered[2].0, [inner(1, 3)]);
    assert_eq!(star.hub_dropped(), 2);
}

#[test]
fn peers_that_may_talk_reach_each_other_by_the_portal() {
    let mut star = Star::new(false);
    let now = star.now;
    send(&mut star.peers[0], now, &inner(2, 3));
    star.run(50);
    let back = std::mem::take(&mut star.delivered[0].0);
    assert_eq!(back, [inner(2, 3)]);
    let now = star.now;
    send(&mut star.hub, now, &back[0]);
    star.run(50);
    assert_eq!((star.delivered[2].0.as_slice(), star.hub_dropped()), ([inner(2, 3)].as_slice(), 0));
}

/// Of a hub's member: the other peer is another member's.
#[test]
fn what_one_peer_sends_another_does_not_say_that_routers_bring_its_packets_here() {
    for isolated in [true, false] {
        let mut star = Star::new(isolated);
        let (now, other) = (star.now, PeerId(1));
        star.hub.set_standing(now, other, Standing::Held, &mut star.delivered[0]);
        let holds = |hub: &mut Endpoint| {
            let events: Vec<Event> = std::iter::from_fn(|| hub.poll_event()).collect();
            events.contains(&Event::Holds { peer: other })
        };
        holds(&mut star.hub);
        send(&mut star.hub, now, &inner(2, 3));
        assert_eq!(star.hub.brought(now, other), None, "isolated: {isolated}");
        assert_eq!(holds(&mut star.hub), !isolated, "where peers may talk it waits for who owns it");
        assert_eq!(star.hub_dropped(), u64::from(isolated));
        send(&mut star.hub, now, &inner(200, 3));
        assert_eq!(star.hub.brought(now, other), Some((now, now)), "isolated: {isolated}");
        assert!(holds(&mut star.hub));
    }
}

/// Of a hub's member: something on its host asks the peer, or answers it.
#[test]
fn what_the_host_itself_sends_does_not_say_that_routers_bring_a_peers_packets_here() {
    let mut star = Star::new(true);
    let (now, other) = (star.now, PeerId(1));
    star.hub.set_standing(now, other, Standing::Held, &mut star.delivered[0]);
    send(&mut star.hub, now, &inner(1, 3));
    assert_eq!(star.hub.brought(now, other), None, "from its inner address");
    star.hub.set_host_addresses(vec!["10.0.0.9".parse().expect("an address")]);
    send(&mut star.hub, now, &inner(9, 3));
    assert_eq!(star.hub.brought(now, other), None, "from another address of the host");
    star.hub.set_host_addresses(Vec::new());
    send(&mut star.hub, now, &inner(9, 3));
    assert_eq!(star.hub.brought(now, other), Some((now, now)), "the host has that address no more");
    star.hub.set_standing(now, other, Standing::Served, &mut star.delivered[0]);
    star.run(50);
    assert_eq!(star.delivered[2].0.len(), 3, "all of them waited");
}

/// A packet of `len` bytes from the hub's network to a peer, of one of many flows.
fn to_peer(destination: u8, flow: u16, len: u16) -> Vec<u8> {
    let mut packet = inner(1, destination);
    packet.resize(usize::from(len), 0);
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    packet[20..22].copy_from_slice(&flow.to_be_bytes());
    packet[24..26].copy_from_slice(&(len - 20).to_be_bytes());
    packet
}

#[test]
fn two_peers_that_vanished_leave_a_third_untouched_however_much_is_sent_to_them() {
    let mut star = Star::new(true);
    star.away = vec![0, 1];
    // 10,000 packets a second of 300 bytes to each, more than a queue holds, and a ping every 10 ms to the third.
    let (mut pings, mut most) = (0, 0);
    for milli in 0..12_000u32 {
        let now = star.now;
        for number in 0..10 {
            let flow = (milli * 10 + number) as u16;
            (0..2).for_each(|peer| send(&mut star.hub, now, &to_peer(PEERS[peer], flow, 300)));
        }
        if milli % 10 == 0 {
            pings += 1;
            send(&mut star.hub, now, &to_peer(PEERS[2], 7, 100));
        }
        star.run(1);
        most = most.max(star.hub.snapshot(star.now).trains.0);
    }
    star.run(50);
    assert_eq!(star.delivered[3].0.len(), pings);
    let drops = star.hub.snapshot(star.now).drops;
    assert_eq!((drops.of(DropReason::BadInner), drops.of(DropReason::StoreFull)), (0, 0));
    assert!(drops.of(DropReason::QueueFull) > 100_000, "{drops:?}");
    // Two queues of 8 MiB, in buffers of 512 bytes.
    assert!(most < 30_000_000, "{most} bytes");
    // Nobody sends any more: what waits goes with its age.
    star.run(11_000);
    let left = star.hub.snapshot(star.now).trains;
    assert!(left.0 < 100_000, "{left:?}");
    assert!(star.hub.snapshot(star.now).drops.of(DropReason::TooOld) > 40_000);
}
