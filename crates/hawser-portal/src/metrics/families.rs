//! Every metric: its name, what it means, and what of the status it is.
//!
//! Names and units are those of the ecosystem (Prometheus' naming guide): seconds, bytes, ratios from 0 to 1. Labels
//! are names of the configuration, words of this program, and a small number for each path by one link.

use std::collections::HashMap;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::Unit;

use super::process;
use crate::api::{EtcdStatus, FecStatus, LinkStatus, PathState, PathStatus, PeerStatus, Status};

/// Milliseconds in a second.
const MILLIS: f64 = 1_000.0;
/// Parts of a whole in per cent.
const PER_CENT: f64 = 100.0;
/// Bytes per second in a Mbit/s.
const BYTES_PER_MBIT: f64 = 125_000.0;
/// What the status counts among drops, and is none: bytes, not packets.
const REFUSED_BYTES: &str = "send_refused_bytes";
/// Why a peer that answers has no session, in the status' words.
const REFUSALS: [&str; 2] = ["unknown_key", "preshared_key"];
/// What a peer of a hub is, in the status' words.
const HUB_ROLES: [&str; 7] = ["active", "claiming", "standby", "spare", "owner", "fenced", "none"];
const STATES: [PathState; 6] =
    [PathState::New, PathState::Validating, PathState::Active, PathState::Suspect, PathState::Down, PathState::NoRoute];

/// The metrics of one status. Plain data.
#[derive(Debug)]
pub struct Families(pub Status);

/// Names and values.
type Labels = Vec<(&'static str, String)>;

/// A path with its labels.
type LabelledPath<'a> = (Labels, &'a PathStatus);

impl Collector for Families {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let (status, mut out) = (&self.0, Writer(encoder));
        portal(status, &mut out)?;
        peers(&status.peers, &mut out)?;
        hubs(&status.peers, &mut out)?;
        etcd(status.etcd.as_ref(), &mut out)?;
        repairs(&status.peers, &mut out)?;
        let paths: Vec<LabelledPath<'_>> = status.peers.iter().flat_map(labelled).collect();
        path_states(&paths, &mut out)?;
        path_figures(&paths, &mut out)?;
        links(&status.links, &status.peers, &mut out)?;
        drops(status, &mut out)
    }
}

fn portal(status: &Status, out: &mut Writer<'_>) -> Result<(), fmt::Error> {
    let build = vec![("version", status.version.clone()), ("protocol", status.protocol.clone())];
    out.info("hawser_build", "The running program, and the protocol that it speaks", &build)?;
    let seconds = Some(Unit::Seconds);
    out.gauge("hawser_uptime", seconds.clone(), "Since the portal started", [(vec![], status.uptime_s)])?;
    let spent = process::cpu_seconds();
    out.counter_of("process_cpu", seconds, "Processor time of the portal, all threads", [(vec![], spent)])?;
    let resident = process::resident_bytes().map(|bytes| (vec![], bytes as f64));
    out.gauge("process_resident_memory", Some(Unit::Bytes), "Memory of the portal that is resident", resident)
}

fn peers(peers: &[PeerStatus], out: &mut Writer<'_>) -> Result<(), fmt::Error> {
    let each = |of: fn(&PeerStatus) -> f64| peers.iter().map(move |peer| (of_peer(peer), of(peer)));
    let count = |of: fn(&PeerStatus) -> u64| peers.iter().map(move |peer| (of_peer(peer), of(peer)));
    let up = |peer: &PeerStatus| flag(peer.paths.iter().any(|path| path.state == PathState::Active));
    out.gauge("hawser_peer_up", None, "Whether any path to the peer carries data", each(up))?;
    let age = peers.iter().filter_map(|peer| Some((of_peer(peer), peer.handshake_age_s?)));
    let help = "Since the last completed handshake with the peer; absent before the first";
    out.gauge("hawser_peer_handshake_age", Some(Unit::Seconds), help, age)?;
    let refused = peers.iter().flat_map(|peer| {
        REFUSALS.map(|reason| (with(of_peer(peer), "reason", reason), flag(peer.refused.as_deref() == Some(reason))))
    });
    let help = "Whether the peer answers and has no session with this portal, for this reason";
    out.gauge("hawser_peer_refused", None, help, refused)?;
    let help = "Bytes of inner packets received from the peer";
    out.counter("hawser_peer_receive", Some(Unit::Bytes), help, count(|peer| peer.rx_bytes))?;
    let help = "Bytes of inner packets sent to the peer";
    out.counter("hawser_peer_transmit", Some(Unit::Bytes), help, count(|peer| peer.tx_bytes))
}

/// Of a portal in a hub alone.
fn hubs(peers: &[PeerStatus], out: &mut Writer<'_>) -> Result<(), fmt::Error> {
    let known = || peers.iter().filter_map(|peer| Some((peer, peer.hub.as_ref()?)));
    if known().next().is_none() {
        return Ok(());
    }
    let roles = known()
        .flat_map(|(peer, hub)| HUB_ROLES.map(|role| (with(of_peer(peer), "role", role), flag(hub.role == role))));
    let help = "Whether this is what the peer is in its hub, or what this portal is to it as a member of one";
    out.gauge("hawser_peer_hub_role", None, help, roles)?;
    let epochs = known().map(|(peer, hub)| (of_peer(peer), hub.epoch as f64));
    out.gauge("hawser_peer_hub_epoch", None, "The highest epoch that is known of who owns the peer", epochs)
}

/// Of a member whose peers are in etcd alone.
fn etcd(etcd: Option<&EtcdStatus>, out: &mut Writer<'_>) -> Result<(), fmt::Error> {
    let Some(etcd) = etcd else { return Ok(()) };
    out.gauge("hawser_etcd_up", None, "Whether etcd answers this member", [(vec![], flag(etcd.reached))])?;
    let age = etcd.in_step_age_s.map(|age| (vec![], age));
    let help = "Since this member last knew all that was in etcd; absent before it reached it";
    out.gauge("hawser_etcd_in_step_age", Some(Unit::Seconds), help, age)
}

fn repairs(peers: &[PeerStatus], out: &mut Writer<'_>) -> Result<(), fmt::Error> {
    let count = |of: fn(&FecStatus) -> u64| peers.iter().map(move |peer| (of_peer(peer), of(&peer.fec)));
    let help = "Packets sent to the peer that repairs cover";
    out.counter("hawser_fec_protected_packets", None, help, count(|fec| fec.protected_packets))?;
    out.counter("hawser_fec_repairs", None, "Repairs sent to the peer", count(|fec| fec.repairs))?;
    let help = "Bytes of the datagrams that repairs went in";
    out.counter("hawser_fec_repair", Some(Unit::Bytes), help, count(|fec| fec.repair_bytes))?;
    let help = "Packets from the peer that were lost and came back by repairs";
    out.counter("hawser_fec_repaired_packets", None, help, count(|fec| fec.repaired_packets))
}

fn path_states(paths: &[LabelledPath<'_>], out: &mut Writer<'_>) -> Result<(), fmt::Error> {
    let up = paths.iter().map(|(labels, path)| (labels.clone(), flag(path.state == PathState::Active)));
    out.gauge("hawser_path_up", None, "Whether the path carries data", up)?;
    let states = paths.iter().flat_map(|(labels, path)| {
        STATES.map(|state| (with(labels.clone(), "state", &state.to_string()), flag(path.state == state)))
    });
    out.gauge("hawser_path_state", None, "Whether the path is in this state", states)?;
    let metric = paths.iter().map(|(labels, path)| (labels.clone(), f64::from(path.metric)));
    let help = "The path's tier: a higher one carries data only while no lower one works";
    out.gauge("hawser_path_metric", None, help, metric)
}

fn path_figures(paths: &[LabelledPath<'_>], out: &mut Writer<'_>) -> Result<(), fmt::Error> {
    let each = |of: fn(&PathStatus) -> f64| paths.iter().map(move |(labels, path)| (labels.clone(), of(path)));
    let count = |of: fn(&PathStatus) -> u64| paths.iter().map(move |(labels, path)| (labels.clone(), of(path)));
    let bytes = Some(Unit::Bytes);
    let rtt = paths.iter().filter_map(|(labels, path)| Some((labels.clone(), path.rtt_ms? / MILLIS)));
    let help = "Smoothed round-trip time; absent before the first sample";
    out.gauge("hawser_path_rtt", Some(Unit::Seconds), help, rtt)?;
    let help = "Datagrams lost lately, of those sent: from 0 to 1";
    out.gauge("hawser_path_loss", Some(Unit::Other("ratio".to_owned())), help, each(|path| path.loss_pct / PER_CENT))?;
    let help = "Rate of what was acknowledged lately";
    out.gauge("hawser_path_delivery_rate", per_second(), help, each(|path| path.rate_mbps * BYTES_PER_MBIT))?;
    let help = "Congestion window";
    out.gauge("hawser_path_congestion_window", bytes.clone(), help, each(|path| path.cwnd_bytes as f64))?;
    let help = "Largest datagram that the path carries";
    out.gauge("hawser_path_mtu", bytes.clone(), help, each(|path| f64::from(path.mtu)))?;
    let help = "Bytes of datagrams received by the path";
    out.counter("hawser_path_receive", bytes.clone(), help, count(|path| path.rx_bytes))?;
    let help = "Bytes of datagrams sent by the path";
    out.counter("hawser_path_transmit", bytes, help, count(|path| path.tx_bytes))
}

fn links(links: &[LinkStatus], peers: &[PeerStatus], out: &mut Writer<'_>) -> Result<(), fmt::Error> {
    let label = |link: &LinkStatus| vec![("link", link.name.clone())];
    let up = |link: &LinkStatus| {
        let mut paths = peers.iter().flat_map(|peer| &peer.paths).filter(|path| path.name == link.name);
        flag(paths.any(|path| path.state == PathState::Active))
    };
    let help = "Whether any path by the link carries data";
    out.gauge("hawser_link_up", None, help, links.iter().map(|link| (label(link), up(link))))?;
    let rate = links.iter().filter_map(|link| Some((label(link), link.max_rate_mbps? * BYTES_PER_MBIT)));
    let help = "The most that the link may carry in each direction; absent without a bound";
    out.gauge("hawser_link_max_rate", per_second(), help, rate)?;
    let caps = || links.iter().filter_map(|link| Some((label(link), link.data_cap?)));
    let used = caps().map(|(label, cap)| (label, cap.used_bytes as f64));
    let help = "Bytes of IP packets that the link carried this month, both directions; absent without a cap";
    out.gauge("hawser_link_data_used", Some(Unit::Bytes), help, used)?;
    let cap = caps().map(|(label, cap)| (label, cap.cap_bytes as f64));
    let help = "The most that the link may carry in a month; absent without a cap";
    out.gauge("hawser_link_data_cap", Some(Unit::Bytes), help, cap)
}

fn drops(status: &Status, out: &mut Writer<'_>) -> Result<(), fmt::Error> {
    let packets = status.drops.iter().filter(|(reason, _)| *reason != REFUSED_BYTES);
    let packets = packets.map(|(reason, count)| (vec![("reason", reason.clone())], *count));
    let help = "Packets and datagrams dropped, by reason (docs/metrics.md)";
    out.counter("hawser_drops", None, help, packets)?;
    let refused = status.drops.get(REFUSED_BYTES).map(|bytes| (vec![], *bytes));
    let help = "Bytes of datagrams that the kernel refused to send";
    out.counter("hawser_send_refused", Some(Unit::Bytes), help, refused)
}

fn of_peer(peer: &PeerStatus) -> Labels {
    vec![("peer", peer.name.clone())]
}

/// Where several paths go by one link, as over SCION or by a socket that listens, they are numbered in their order.
fn labelled(peer: &PeerStatus) -> Vec<LabelledPath<'_>> {
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let label = |path: &'_ PathStatus, number: usize| {
        vec![("peer", peer.name.clone()), ("link", path.name.clone()), ("path", number.to_string())]
    };
    let paths = peer.paths.iter().map(|path| {
        let number = numbers.entry(&path.name).or_default();
        *number += 1;
        (label(path, *number - 1), path)
    });
    paths.collect()
}

fn with(mut labels: Labels, name: &'static str, value: &str) -> Labels {
    labels.push((name, value.to_owned()));
    labels
}

fn flag(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

fn per_second() -> Option<Unit> {
    Some(Unit::Other("bytes_per_second".to_owned()))
}

/// Writes families: the name without unit and suffix, which the library adds.
struct Writer<'a>(DescriptorEncoder<'a>);

impl Writer<'_> {
    fn family<V>(
        &mut self,
        name: &str,
        unit: Option<Unit>,
        help: &str,
        kind: MetricType,
        samples: impl IntoIterator<Item = (Labels, V)>,
        write: impl Fn(&mut MetricEncoder<'_>, &V) -> Result<(), fmt::Error>,
    ) -> Result<(), fmt::Error> {
        let mut family = self.0.encode_descriptor(name, help, unit.as_ref(), kind)?;
        for (labels, value) in samples {
            if labels.is_empty() {
                write(&mut family, &value)?;
            } else {
                write(&mut family.encode_family(&labels)?, &value)?;
            }
        }
        Ok(())
    }

    fn gauge(
        &mut self,
        name: &str,
        unit: Option<Unit>,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, f64)>,
    ) -> Result<(), fmt::Error> {
        self.family(name, unit, help, MetricType::Gauge, samples, |sample, value| sample.encode_gauge(value))
    }

    fn counter(
        &mut self,
        name: &str,
        unit: Option<Unit>,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, u64)>,
    ) -> Result<(), fmt::Error> {
        self.counter_of(name, unit, help, samples)
    }

    fn counter_of<V: prometheus_client::encoding::EncodeCounterValue>(
        &mut self,
        name: &str,
        unit: Option<Unit>,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, V)>,
    ) -> Result<(), fmt::Error> {
        let none: Option<&Exemplar<NoLabelSet, f64>> = None;
        self.family(name, unit, help, MetricType::Counter, samples, |sample, value| sample.encode_counter(value, none))
    }

    fn info(&mut self, name: &str, help: &str, labels: &Labels) -> Result<(), fmt::Error> {
        self.0.encode_descriptor(name, help, None, MetricType::Info)?.encode_info(labels)
    }
}
