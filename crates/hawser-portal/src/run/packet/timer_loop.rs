//! The timer loop: the core's next deadline, and the driver's own few.

use std::time::Duration;

use hawser_core::units::Time;

use super::{Parts, load, netlink_loop, streams};

/// Idle buffers are given back this often.
const TRIM_EVERY: Duration = Duration::from_secs(1);

/// How long the thread may sleep, from now: until the next deadline, not at all if there is `more` to do.
pub fn timeout(parts: &mut Parts, now: Time, more: bool) -> Option<Duration> {
    if more {
        return Some(Duration::ZERO);
    }
    let core = parts.endpoint.poll_timeout(now).map(|(at, _)| at);
    let own = parts.sockets.iter().filter_map(|socket| socket.retry_at()).min();
    let streams = streams::timeout(parts);
    let hub = parts.hub.as_ref().map(|hub| hub.poll_timeout()).filter(|at| *at < Time::NEVER);
    core.into_iter().chain(own).chain(hub).min().map(|at| at.since(now)).into_iter().chain(streams).min()
}

/// Does what is due at `now`.
pub fn on_wake(parts: &mut Parts, now: Time) {
    if parts.endpoint.poll_timeout(now).is_some_and(|(at, _)| at <= now) {
        parts.endpoint.handle_timeout(now, &mut parts.home);
    }
    for index in 0..parts.sockets.len() {
        if parts.sockets[index].retry_at().is_some_and(|at| at <= now) {
            netlink_loop::follow(parts, index, now);
        }
    }
    streams::on_timer(parts);
    load::judge(parts, now);
    if now.since(parts.trimmed) >= TRIM_EVERY {
        parts.trimmed = now;
        parts.home.trim();
    }
}
