//! The netlink loop: sockets follow the interfaces, and the core follows the sockets.
//!
//! 1. [`on_commands`] takes what the control thread heard from the kernel. 2. [`follow`] opens, moves or closes each
//!    socket whose place changed. 3. [`settle`] tells the core which links it may use.

use std::time::Duration;

use hawser_core::endpoint::Link as CoreLink;
use hawser_core::path::health::DownReason;
use hawser_core::units::Time;
use hawser_net::link::LinkError;
use hawser_net::netcfg::{EventReceiver, Family};
use hawser_net::powers::raised;
use hawser_net::workers::Workers;

use super::socket::{LinkSocket, Standing};
use super::{Next, Parts, RunError, load};
use crate::run::control::FLOWS_TOLD;
use crate::run::messages::{Command, Report, State};

/// Opens the sockets that listen, at the start: an address that is taken is an error then, one that is missing is not.
pub fn open_listening(parts: &mut Parts) -> Result<(), RunError> {
    let Parts { sockets, interfaces, .. } = parts;
    for socket in sockets.iter_mut().filter(|socket| !socket.plan.opens()) {
        if let Some(place) = interfaces.place(&socket.plan, None) {
            socket.open(place).map_err(RunError::Listen)?;
        }
    }
    let now = parts.clock.now();
    settle(parts, now);
    Ok(())
}

/// Step 1.
pub fn on_commands(parts: &mut Parts, commands: &EventReceiver<Command>, now: Time) -> Next {
    let mut news = false;
    for command in commands.drain() {
        match command {
            Command::Link(event) => {
                parts.interfaces.learn(&event);
                news = true;
            }
            Command::Reload(reload) => super::reload::carry_out(parts, reload, now),
            #[cfg(feature = "scion")]
            Command::Ways(ways) => super::ways::take(parts, ways, now),
            Command::Invitations(invitations) => parts.endpoint.set_invitations(invitations),
            Command::Snapshot => report_state(parts, now),
            Command::WatchFlows(on) => parts.endpoint.watch_flows(now, on),
            Command::Flows => report_flows(parts, now),
            Command::MeasureSpeed { peer, run, answer } => {
                // Who asked may be gone: the lease ends it then.
                let _ = answer.send(parts.endpoint.measure_speed(now, peer, run));
            }
            Command::EndSpeed(peer) => parts.endpoint.end_speed(now, peer),
            Command::Drain(drain) => {
                let Parts { hub, endpoint, home, .. } = parts;
                hub.iter_mut().for_each(|hub| hub.drain(now, drain, endpoint, home));
            }
            #[cfg(feature = "etcd")]
            Command::Hearsay(claims) => {
                let Parts { hub, endpoint, home, .. } = parts;
                hub.iter_mut().for_each(|hub| hub.hear_of(now, &claims, endpoint, home));
            }
            #[cfg(feature = "etcd")]
            Command::Missed(member) => {
                let Parts { hub, endpoint, home, .. } = parts;
                hub.iter_mut().for_each(|hub| hub.miss(now, member, endpoint, home));
            }
            Command::Stop => return Next::Stop,
        }
    }
    if news {
        parts.endpoint.set_host_addresses(parts.interfaces.all_addresses().collect());
        for index in 0..parts.sockets.len() {
            follow(parts, index, now);
        }
    }
    Next::GoOn
}

/// Step 2, for one socket.
pub fn follow(parts: &mut Parts, index: usize, now: Time) {
    let Parts { sockets, interfaces, .. } = parts;
    let socket = &mut sockets[index];
    let is = socket.place.filter(|_| socket.link.is_some());
    match (is, interfaces.place(&socket.plan, socket.place.as_ref())) {
        (None, None) => socket.standing = Standing::Closed(None),
        (Some(_), None) => {
            tracing::info!(link = socket.plan.name, "link lost: its interface or address is gone or down");
            socket.close(None);
        }
        (Some(is), Some(place)) if (is.interface, is.local.ip()) == (place.interface, place.local.ip()) => {
            socket.standing = Standing::Open;
        }
        (_, Some(place)) => {
            if let Err(error) = raised(|| socket.open(place)) {
                tell_failure(socket, &error);
                socket.retry_later(now);
            }
        }
    }
}

/// An interface that goes again while it is opened is told by the watch soon.
fn tell_failure(socket: &LinkSocket, error: &LinkError) {
    match error {
        LinkError::NoInterface { .. } | LinkError::InterfaceChanging { .. } => {
            tracing::debug!(link = socket.plan.name, %error, "link not open");
        }
        _ => {
            let cause = std::error::Error::source(error).map(ToString::to_string);
            tracing::warn!(link = socket.plan.name, %error, cause, "link not open, it is tried again");
        }
    }
}

/// Step 3: whatever happened to sockets, the core hears of it here.
pub fn settle(parts: &mut Parts, now: Time) {
    let Parts { endpoint, sockets, .. } = parts;
    for socket in sockets {
        let (id, usable) = (socket.plan.id, socket.is_usable());
        match socket.told {
            None if usable => endpoint.add_link(now, core_link(socket)),
            Some(false) if usable => endpoint.handle_link_up(now, id),
            Some(true) if !usable => endpoint.handle_link_down(now, id, reason(socket.standing)),
            _ => {}
        }
        if usable
            && let Some(moved) = socket.moved.take()
            && socket.told.is_some()
        {
            endpoint.handle_link_moved(now, id, moved);
        }
        if usable || socket.told.is_some() {
            socket.told = Some(usable);
        }
    }
}

fn core_link(socket: &LinkSocket) -> CoreLink {
    CoreLink {
        id: socket.plan.id,
        group: socket.plan.group,
        preference: socket.plan.preference,
        metric: socket.plan.metric,
        transport: socket.plan.carriage.core(),
        ipv4: socket.plan.family == Family::V4,
        ipv6: socket.plan.family == Family::V6,
        opens: socket.plan.opens(),
        up: true,
    }
}

fn reason(standing: Standing) -> DownReason {
    match standing {
        Standing::Parked(_) => DownReason::NoRoute,
        Standing::Closed(_) | Standing::Open => DownReason::LinkLost,
    }
}

fn report_flows(parts: &mut Parts, now: Time) {
    if let Some(flows) = parts.endpoint.largest_flows(now, FLOWS_TOLD) {
        // As below.
        let _ = parts.reports.send(Report::Flows(flows, now));
    }
}

fn report_state(parts: &mut Parts, now: Time) {
    let mut lost = parts.lost;
    for socket in &parts.sockets {
        socket.add_lost(&mut lost);
    }
    let usable = parts.sockets.iter().map(LinkSocket::is_usable).collect();
    let core = parts.endpoint.snapshot(now);
    let hub = parts.hub.as_ref();
    let standings = hub.map_or_else(Vec::new, |hub| hub.standings(now, core.peers.len()));
    let drained = hub.is_none_or(|hub| hub.is_drained());
    let busy = parts.account.busy(parts.clock);
    let workers = parts.workers.as_ref().map_or(&[][..], Workers::accounts);
    let workers = workers.iter().map(|file| file.as_ref().map_or(Duration::ZERO, load::busy)).collect();
    let state = State { core, usable, lost, busy, workers, standings, drained };
    // The control thread may be gone: then this one ends soon.
    let _ = parts.reports.send(Report::State(Box::new(state)));
}
