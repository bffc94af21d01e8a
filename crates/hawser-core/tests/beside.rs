//! Whoever seals and opens, and in whatever order: the wire, deliveries and drops are the same.

use crate::support;
use hawser_core::beside::{Opening, Unsealed};
use hawser_core::packet::Offload;
use hawser_core::units::{Ecn, LinkId, Time};
use proptest::prelude::*;
use std::net::SocketAddr;
use std::time::Duration;
use support::{Buffer, Portal, connected, packet};

/// Packets of a story, and its rounds of a millisecond.
const PACKETS: u16 = 300;
const ROUNDS: u16 = 40;

/// Datagrams on the wire, batch by batch.
type Wire = Vec<Vec<Vec<u8>>>;

/// What is done to a datagram on its way.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives,
    Twice,
    Flipped(usize),
    Cut(usize),
}

/// Who does the AEAD.
#[derive(Clone, Copy, PartialEq, Debug)]
enum By {
    Core,
    /// Others: batches are sealed last first, and opened before the core sees any.
    Others,
}

/// All that `from` has to say, sealed.
fn said(now: Time, from: &mut Portal, by: By) -> (Vec<(LinkId, SocketAddr)>, Wire) {
    let mut buffer = Buffer(vec![0; 65_536]);
    let mut batches: Vec<(Vec<u8>, usize, Option<Unsealed>)> = Vec::new();
    let mut ways = Vec::new();
    loop {
        let polled = match by {
            By::Core => from.endpoint.poll_transmit(now, &mut buffer).map(|transmit| (transmit, None)),
            By::Others => from.endpoint.poll_unsealed(now, &mut buffer),
        };
        let Some((transmit, unsealed)) = polled else { break };
        batches.push((buffer.0[..transmit.len].to_vec(), transmit.segment_size, unsealed));
        ways.push((transmit.link, transmit.remote));
    }
    for (bytes, size, unsealed) in batches.iter_mut().rev() {
        let Some(how) = unsealed else { continue };
        assert_eq!(how.stride(), *size);
        // In two parts, the later one first.
        let first = bytes.len() / *size / 2;
        let (one, other) = bytes.split_at_mut(first * *size);
        how.after(first).seal(other);
        how.seal(one);
    }
    (ways, batches.iter().map(|(bytes, size, _)| bytes.chunks(*size).map(<[u8]>::to_vec).collect()).collect())
}

/// A batch arrives at `to`.
fn heard(now: Time, to: &mut Portal, link: LinkId, from: SocketAddr, mut batch: Vec<Vec<u8>>, by: By) {
    let opener = batch.first().filter(|_| by == By::Others).and_then(|first| to.endpoint.opener(now, first));
    let open = |datagram: &mut Vec<u8>| opener.as_ref().map(|how| how.opening(how.open(datagram))).unwrap_or_default();
    let openings: Vec<Opening> = batch.iter_mut().map(open).collect();
    for (datagram, opening) in batch.iter_mut().zip(openings) {
        let Portal { endpoint, delivered, .. } = to;
        endpoint.handle_opened(now, link, from, None, Ecn::NotEct, (datagram, opening), delivered);
    }
}

/// What was on the wire, what was delivered, and what was dropped.
type Story = (Wire, Vec<Vec<u8>>, Vec<(&'static str, u64)>);

/// The wire as the receiver sees it, what it delivers, and what it drops.
fn story(fates: &[Fate], by: By) -> Story {
    let (mut local, mut remote, mut now) = connected();
    let mut wire = Wire::new();
    let mut fates = fates.iter().copied().cycle();
    for round in 0..ROUNDS {
        // What windows and pacing held back goes in the rounds without new packets.
        now = now + Duration::from_millis(1);
        local.endpoint.handle_timeout(now, &mut local.delivered);
        remote.endpoint.handle_timeout(now, &mut remote.delivered);
        for number in (round * 60..(round + 1) * 60).filter(|number| *number < PACKETS) {
            let packet = packet(number);
            local.endpoint.read_buffer()[..packet.len()].copy_from_slice(&packet);
            local.endpoint.handle_inner(now, packet.len(), Offload::default());
        }
        let (ways, batches) = said(now, &mut local, by);
        for ((link, to), batch) in ways.into_iter().zip(batches) {
            let came = batch.into_iter().flat_map(|datagram| met(fates.next().expect("endless"), datagram));
            let came: Vec<_> = came.collect();
            wire.push(came.clone());
            let came_by = remote.link_at(to);
            heard(now, &mut remote, came_by, local.address(link), came, by);
        }
        let (ways, batches) = said(now, &mut remote, by);
        for ((link, to), batch) in ways.into_iter().zip(batches) {
            let came_by = local.link_at(to);
            heard(now, &mut local, came_by, remote.address(link), batch, by);
        }
    }
    let drops = remote.endpoint.snapshot(now).drops;
    (wire, remote.delivered.0, drops.iter().filter(|(_, count)| *count > 0).collect())
}

/// What of a datagram comes.
fn met(fate: Fate, datagram: Vec<u8>) -> Vec<Vec<u8>> {
    let mut changed = datagram.clone();
    match fate {
        Fate::Arrives => vec![datagram],
        Fate::Twice => vec![datagram.clone(), datagram],
        Fate::Flipped(at) => {
            let at = at % changed.len();
            changed[at] ^= 1;
            vec![changed, datagram]
        }
        Fate::Cut(len) => {
            changed.truncate(len % datagram.len());
            vec![changed, datagram]
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn who_seals_and_opens_changes_nothing(
        fates in prop::collection::vec(
            prop_oneof![
                6 => Just(Fate::Arrives),
                1 => Just(Fate::Twice),
                1 => any::<usize>().prop_map(Fate::Flipped),
                1 => any::<usize>().prop_map(Fate::Cut),
            ],
            1..40,
        ),
    ) {
        let (wire, delivered, drops) = story(&fates, By::Core);
        prop_assert_eq!(delivered.len(), usize::from(PACKETS));
        let others = story(&fates, By::Others);
        prop_assert_eq!(wire, others.0);
        prop_assert_eq!(delivered, others.1);
        prop_assert_eq!(drops, others.2);
    }
}
