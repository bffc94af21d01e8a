//! The status document, from what the packet thread reports and the kernel answers.

use std::collections::BTreeSet;
use std::time::Duration;

use hawser_config::{Config, Keyword, Link, Peer, Transport};
use hawser_core::endpoint::Refusal;
use hawser_core::fec::FecSnapshot;
use hawser_core::path::health::{DownReason, HealthState};
use hawser_core::session::{PathSnapshot, SessionSnapshot};
use hawser_core::units::PeerId;
use hawser_core::wire::Version;
use hawser_net::netcfg::NoRoute;

mod rules;

use super::names::Names;
use super::reload::Places;
use super::routes::Routes;
use super::scion::Pathfinder;
use super::usage::Usage;
use crate::api::{
    DataCapStatus, FecStatus, LinkStatus, Live, NOTHING_COMES_BACK, PEER_SAYS_DOWN, PathLoad, PathState, PathStatus,
    PeerStatus, SCHEMA, Status,
};
use crate::run::messages::State;
use crate::run::plan::SocketPlan;

/// Bytes per second in a Mbit/s.
const BYTES_PER_MBIT: f64 = 125_000.0;
/// Bits per second in a Mbit/s.
const BITS_PER_MBIT: f64 = 1e6;
/// Milliseconds in a second.
const MILLIS: f64 = 1_000.0;
/// Parts of a whole in per cent.
const PER_CENT: f64 = 100.0;

/// The status of the moment. `links` are those of the configuration, with one for each interface in the place of that
/// for all, and `peers` its peers with the addresses of their names.
#[expect(clippy::too_many_arguments, reason = "what the control thread knows")]
pub fn compose(
    config: &Config,
    links: &[Link],
    peers: &[Peer],
    names: &Names,
    places: &Places,
    plans: &[SocketPlan],
    routes: &Routes,
    usage: &Usage,
    paused: &BTreeSet<String>,
    pathfinder: &Pathfinder,
    state: &State,
    uptime: Duration,
) -> Status {
    // A state from before a reload does not know the newest peers yet.
    let session = |peer: &Peer| places.of(peer).and_then(|PeerId(id)| state.core.peers.get(id as usize)?.as_ref());
    let refused = |peer: &Peer| places.of(peer).and_then(|PeerId(id)| *state.core.refusals.get(id as usize)?);
    let one = |peer: &Peer| PeerStatus {
        refused: refused(peer).map(|why| refusal(why).to_owned()),
        names: names.status(peer),
        ..peer_status(peer, session(peer), plans, routes, pathfinder, state)
    };
    let lost = state.lost.iter().map(|(name, count)| (name.to_owned(), count));
    Status {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime_s: uptime.as_secs_f64(),
        protocol: Version::OURS.to_string(),
        peers: peers.iter().map(one).collect(),
        scheduler: config.traffic.scheduler.word().to_owned(),
        links: links.iter().map(|link| link_status(link, usage, paused)).collect(),
        rules: rules::status(config, plans, state),
        packet_busy_s: state.busy.as_secs_f64(),
        worker_busy_s: state.workers.iter().map(Duration::as_secs_f64).collect(),
        drops: state.core.drops.iter().map(|(name, count)| (name.to_owned(), count)).chain(lost).collect(),
        // Whoever remembers events, serves the page, and sets name servers, says so.
        events_latest: 0,
        web: None,
        dns: None,
        draining: false,
        etcd: None,
    }
}

fn peer_status(
    peer: &Peer,
    session: Option<&SessionSnapshot>,
    plans: &[SocketPlan],
    routes: &Routes,
    pathfinder: &Pathfinder,
    state: &State,
) -> PeerStatus {
    let all = session.map_or(&[][..], |session| &session.paths);
    let mut paths = Vec::new();
    // The sockets of a link stand side by side.
    for sockets in plans.chunk_by(|one, next| one.group == next.group) {
        let before = paths.len();
        // Those that stand back for one that works are not shown: it is that of the link.
        let carries = |plan: &SocketPlan| all.iter().any(|path| path.link == plan.id && works(path.state));
        let one_carries = sockets.iter().any(carries);
        for plan in sockets {
            let of_socket = all.iter().filter(|path| path.link == plan.id && is_shown(path.state, one_carries, plan));
            paths.extend(of_socket.map(|path| {
                let scion = pathfinder.describe(&path.remote);
                let best =
                    sockets.iter().min_by_key(|plan| plan.preference).filter(|best| best.preference < plan.preference);
                let instead_of = best.map(|best| best.carriage.transport().to_string());
                PathStatus { scion, instead_of, ..path_status(plan, path, routes.lacking(plan)) }
            }));
        }
        // A link without any path is a state too, where this peer could be reached by it.
        let reaches = |plan: &&SocketPlan| plan.reaches(peer);
        if paths.len() == before {
            paths.extend(
                sockets
                    .iter()
                    .filter(reaches)
                    .map(|plan| no_path(plan, routes, state))
                    .min_by_key(|path| rank(path.state)),
            );
        }
    }
    PeerStatus {
        name: peer.name.to_string(),
        handshake_age_s: session.map(|session| session.key_age.as_secs_f64()),
        protection: session.map(|session| session.protection.name().to_owned()),
        cipher: session.map(|session| session.cipher.name().to_owned()),
        refused: None,
        protocol: session.map(|session| session.version.to_string()),
        rx_bytes: session.map_or(0, |session| session.rx_bytes.0),
        tx_bytes: session.map_or(0, |session| session.tx_bytes.0),
        paths,
        names: Vec::new(),
        fec: session.map_or_else(FecStatus::default, |session| fec_status(&session.fec)),
        queued_bytes: session.map_or(0, |session| session.queued.0),
        limit: None,
        speed_refused: session.is_some_and(|session| session.speed.refused),
        hub: None,
    }
}

/// Why a peer that answers has no session with this portal, in the status' and the log's word.
pub fn refusal(why: Refusal) -> &'static str {
    match why {
        Refusal::UnknownKey => "unknown_key",
        Refusal::PresharedKey => "preshared_key",
    }
}

fn fec_status(fec: &FecSnapshot) -> FecStatus {
    FecStatus {
        protected_packets: fec.protected,
        repairs: fec.repairs,
        repair_bytes: fec.repair_bytes.0,
        overhead_pct: fec.overhead * PER_CENT,
        repaired_packets: fec.repaired,
    }
}

fn link_status(link: &Link, usage: &Usage, paused: &BTreeSet<String>) -> LinkStatus {
    LinkStatus {
        name: link.name.to_string(),
        weight: link.weight,
        max_rate_mbps: link.max_rate.map(|rate| rate.as_bits() as f64 / BITS_PER_MBIT),
        data_cap: link.data_cap.map(|cap| DataCapStatus {
            used_bytes: usage.used(&link.name),
            cap_bytes: cap.volume,
            reached: usage.is_spent(link),
        }),
        metric: link.metric,
        paused: paused.contains(link.name.as_str()),
    }
}

/// Whether inner packets go by a path, or may again in a moment.
fn works(state: HealthState) -> bool {
    matches!(state, HealthState::Active | HealthState::Suspect)
}

/// Whether a path is one of its link: one along each way over SCION, else the one that works, or all that are tried.
fn is_shown(state: HealthState, one_carries: bool, plan: &SocketPlan) -> bool {
    let stands_back = one_carries && !works(state) && plan.carriage.transport() != Transport::Scion;
    state != HealthState::Down(DownReason::Closed) && !stands_back
}

fn path_status(plan: &SocketPlan, path: &PathSnapshot, lacking: Option<NoRoute>) -> PathStatus {
    let measured = !matches!(path.state, HealthState::New | HealthState::Validating);
    let state = path_state(path.state, lacking.is_some());
    PathStatus {
        name: plan.name.clone(),
        transport: plan.carriage.transport().to_string(),
        state,
        reason: reason(state, path.state, lacking),
        interface: plan.interface.clone(),
        endpoint: (plan.carriage.transport() != Transport::Scion).then(|| path.remote.to_string()),
        metric: path.metric,
        rtt_ms: measured.then_some(path.rtt.as_secs_f64() * MILLIS),
        rate_mbps: path.rate.map_or(0.0, |rate| rate.0 as f64 / BYTES_PER_MBIT),
        loss_pct: path.loss * PER_CENT,
        cwnd_bytes: path.window.0,
        mtu: path.mtu,
        rx_bytes: path.rx_bytes.0,
        tx_bytes: path.tx_bytes.0,
        without_gso: path.apart,
        instead_of: None,
        scion: None,
        live: live(path, measured),
        load: path_load(path),
    }
}

/// What the core counts of a path; the rest comes from looking at it again and again (`monitor`).
fn live(path: &PathSnapshot, measured: bool) -> Live {
    let (acked_packets, lost_packets) = path.outcomes;
    Live {
        id: Some(path.id.0),
        rtt_min_ms: measured.then_some(path.least_rtt.as_secs_f64() * MILLIS),
        queue_ms: measured.then_some(path.queue_delay.as_secs_f64() * MILLIS),
        active_set: path.in_active_set,
        acked_packets,
        lost_packets,
        retransmitted_bytes: path.retransmitted.0,
        reinjected_bytes: path.reinjected.0,
        ..Live::default()
    }
}

/// What is known at this moment; `trend` adds what only time tells.
fn path_load(path: &PathSnapshot) -> PathLoad {
    let (delay_us, _) = path.delay_us;
    PathLoad {
        in_flight_bytes: path.in_flight.0,
        idle_s: path.idle.as_secs_f64(),
        barred: !path.offered,
        delay_ms: delay_us as f64 / MILLIS,
        queue_ms: path.queue.as_secs_f64() * MILLIS,
        peak_mbps: 0.0,
        shares_queue: false,
        filler_delivered_bytes: path.filler.delivered.0,
        filler_received_bytes: path.filler.received.0,
    }
}

/// A path that carries packets has a route, whatever the kernel said a moment ago.
fn path_state(state: HealthState, lacking: bool) -> PathState {
    match state {
        HealthState::Active => PathState::Active,
        HealthState::Down(DownReason::NoRoute) => PathState::NoRoute,
        _ if lacking => PathState::NoRoute,
        HealthState::New => PathState::New,
        HealthState::Validating => PathState::Validating,
        HealthState::Suspect => PathState::Suspect,
        HealthState::Down(_) => PathState::Down,
    }
}

/// Why a path carries nothing.
fn reason(shown: PathState, state: HealthState, lacking: Option<NoRoute>) -> Option<String> {
    let said = match (shown, state) {
        (PathState::Active, _) => return None,
        (PathState::NoRoute, _) => return Some(lacking.unwrap_or(NoRoute::Unreachable).to_string()),
        (_, HealthState::Down(DownReason::LinkLost)) => "its interface or address is gone",
        (_, HealthState::Down(DownReason::PeerSaidDown)) => PEER_SAYS_DOWN,
        (_, HealthState::Down(_)) => NOTHING_COMES_BACK,
        (_, HealthState::Suspect) => "an acknowledgement is overdue",
        _ => "nothing came back yet",
    };
    Some(said.to_owned())
}

/// Of a link's sockets without a path the one that comes nearest to one speaks for the link.
fn rank(state: PathState) -> u8 {
    match state {
        PathState::New => 0,
        PathState::NoRoute => 1,
        _ => 2,
    }
}

fn no_path(plan: &SocketPlan, routes: &Routes, state: &State) -> PathStatus {
    let usable = state.usable.get(usize::from(plan.id.0)).copied().unwrap_or(false);
    let (state, reason) = match (usable, routes.lacking(plan)) {
        (false, lacking) => (PathState::Down, lacking.map(|why| why.to_string())),
        (true, Some(why)) => (PathState::NoRoute, Some(why.to_string())),
        (true, None) => (PathState::New, None),
    };
    PathStatus {
        name: plan.name.clone(),
        transport: plan.carriage.transport().to_string(),
        state,
        reason,
        interface: plan.interface.clone(),
        endpoint: None,
        metric: plan.metric,
        ..PathStatus::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_told_as_users_know_it() {
        use HealthState::{Active, Down, New, Suspect, Validating};
        for (state, lacking, shown) in [
            (New, false, PathState::New),
            (New, true, PathState::NoRoute),
            (Validating, false, PathState::Validating),
            (Active, true, PathState::Active),
            (Suspect, false, PathState::Suspect),
            (Down(DownReason::LinkLost), false, PathState::Down),
            (Down(DownReason::Timeout), true, PathState::NoRoute),
            (Down(DownReason::NoRoute), false, PathState::NoRoute),
        ] {
            assert_eq!(path_state(state, lacking), shown, "{state:?} {lacking}");
        }
    }
}
