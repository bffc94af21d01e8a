//! A session's state as a user sees it.

use super::{FillerCount, KeyEnd, Session, SpeedSnapshot};
use crate::congestion::RttSnapshot;
use crate::fec::FecSnapshot;
use crate::path::health::HealthState;
use crate::rules::RuleId;
use crate::units::{ByteCount, LinkId, LinkTag, PathId, Rate, Time};
use crate::wire::{Cipher, Protection, Version};
use std::net::SocketAddr;
use std::time::Duration;

/// A path at one moment. A plain value.
#[derive(Clone, Debug)]
pub struct PathSnapshot {
    /// Its name in the session.
    pub id: PathId,
    /// The link that it leaves by.
    pub link: LinkId,
    /// Where it leads.
    pub remote: SocketAddr,
    /// Its health.
    pub state: HealthState,
    /// Its tier.
    pub metric: u16,
    /// Smoothed round trip.
    pub rtt: Duration,
    /// The least round trip of the last ten seconds.
    pub least_rtt: Duration,
    /// What of the round trip is spent waiting, by its smoothed value and by the latest sample.
    pub queue_delay: Duration,
    /// What its controller believes that it carries.
    pub rate: Option<Rate>,
    /// The share of packets lost.
    pub loss: f64,
    /// Packets that arrived, and packets declared lost, since the path began or began again.
    pub outcomes: (u64, u64),
    /// Bytes of inner packets that it retransmitted, lost on whatever path.
    pub retransmitted: ByteCount,
    /// Bytes on the wire of copies of what was in doubt on another path.
    pub reinjected: ByteCount,
    /// Congestion window.
    pub window: ByteCount,
    /// Bytes in flight.
    pub in_flight: ByteCount,
    /// The largest datagram, bytes of UDP payload.
    pub mtu: u16,
    /// Its datagrams leave one by one, as trains do not arrive.
    pub apart: bool,
    /// Bytes of datagrams received.
    pub rx_bytes: ByteCount,
    /// Bytes of datagrams sent.
    pub tx_bytes: ByteCount,
    /// Bytes of IP packets that it has carried, both ways.
    pub carried: ByteCount,
    /// Bytes of IP packets that it was sent with inner packets, by rule; of no rule first.
    pub by_rule: Vec<(RuleId, ByteCount)>,
    /// What its link is called; zero where nobody said.
    pub link_tag: LinkTag,
    /// Bulk flows use it.
    pub in_active_set: bool,
    /// One-way delay on the session's scale, µs, and its jitter.
    pub delay_us: (i64, i64),
    /// How much of that delay is a queue: beyond the least of the last ten seconds.
    pub queue: Duration,
    /// For how long altogether it could have sent and had nothing to send.
    pub idle: Duration,
    /// Neither side says that it carries no inner packets.
    pub offered: bool,
    /// What it carried of speed tests.
    pub filler: FillerCount,
}

/// A session at one moment. A plain value.
#[derive(Clone, Debug)]
pub struct SessionSnapshot {
    /// Age of the present keys.
    pub key_age: Duration,
    /// Why nothing is sealed under them any more, if so.
    pub keys_over: Option<KeyEnd>,
    /// What they do to inner packets.
    pub protection: Protection,
    /// Their cipher.
    pub cipher: Cipher,
    /// What the peer speaks.
    pub version: Version,
    /// Age of the session.
    pub age: Duration,
    /// Inner bytes received.
    pub rx_bytes: ByteCount,
    /// Inner bytes sent.
    pub tx_bytes: ByteCount,
    /// Bytes in the ingress queue.
    pub queued: ByteCount,
    /// Bytes that wait to be retransmitted.
    pub retransmit: ByteCount,
    /// Bytes that the resequencer holds.
    pub held: ByteCount,
    /// Forward error correction.
    pub fec: FecSnapshot,
    /// Speed tests.
    pub speed: SpeedSnapshot,
    /// Every path.
    pub paths: Vec<PathSnapshot>,
}

impl Session {
    /// The present state.
    pub fn snapshot(&self, now: Time) -> SessionSnapshot {
        let path = |(index, path): (usize, &super::path::Path)| PathSnapshot {
            id: path.id,
            link: path.route.link,
            remote: path.route.remote,
            state: path.health.state(),
            metric: path.offer.tier(),
            rtt: path.way.rtt.snapshot().smoothed,
            least_rtt: path.way.rtt.snapshot().min,
            queue_delay: queue_delay(path.way.rtt.snapshot()),
            rate: path.rate(),
            loss: path.capacity.loss.share(),
            outcomes: path.capacity.loss.counts(),
            retransmitted: path.counts.retransmitted,
            reinjected: path.counts.reinjected_copies,
            window: path.capacity.controller.window(),
            in_flight: path.flight.sent.bytes_in_flight(),
            mtu: path.way.pmtu.current(),
            apart: path.way.trains.is_settled(),
            rx_bytes: path.counts.rx_bytes,
            tx_bytes: path.counts.tx_bytes,
            carried: path.counts.carried,
            by_rule: path.counts.by_rule().to_vec(),
            link_tag: path.offer.terms.name,
            in_active_set: self.scheduling.policy.decisions().active_set.contains(index),
            delay_us: (path.way.oneway.smoothed_us().unwrap_or(0), path.way.oneway.jitter_us()),
            queue: path.way.oneway.queue(now),
            idle: path.pauses.total(now),
            offered: path.offer.is_open(),
            filler: path.counts.filler,
        };
        let (protection, cipher) = self.keyring.kind();
        SessionSnapshot {
            protection,
            cipher,
            version: self.peer.version,
            key_age: now.since(self.keyring.made_at()),
            keys_over: self.keyring.permit(now).err(),
            age: now.since(self.liveness.started()),
            rx_bytes: self.inbound.rx_inner,
            tx_bytes: self.outbound.tx_inner,
            queued: self.outbound.queue.bytes(),
            retransmit: self.recovery.retransmit.bytes(),
            held: self.inbound.resequencer.stats(now).held_bytes,
            fec: self.fec.snapshot(),
            speed: self.speed_snapshot(),
            paths: self.paths.iter().enumerate().map(path).collect(),
        }
    }

    /// The least datagram size over all paths that work and whose size was found; `None` while there is none.
    pub fn least_mtu(&self) -> Option<u16> {
        self.paths
            .iter()
            .filter(|path| path.works() && path.way.pmtu.is_found())
            .map(|path| path.way.pmtu.current())
            .min()
    }
}

/// After a flow's end the smoothed round trip stays as long as nothing is measured; the latest one alone is noise.
fn queue_delay(rtt: RttSnapshot) -> Duration {
    rtt.smoothed.min(rtt.latest).saturating_sub(rtt.min)
}
