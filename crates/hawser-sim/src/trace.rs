//! What goes on, a line at a time, for whoever looks for a cause.

use crate::world::{LOCAL, REMOTE, World};
use hawser_core::path::health::HealthState;
use hawser_core::session::{PathSnapshot, SessionSnapshot};
use std::fmt::Write;

/// Both portals' sessions now. `rate`: the bulk's Mbit/s since the last line.
pub fn line(world: &World, rate: f64) -> String {
    let mut out = format!("{:8.3} s {rate:7.2} Mbit/s", world.now.as_nanos() as f64 / 1e9);
    for (side, name) in [(LOCAL, "local"), (REMOTE, "remote")] {
        match world.portals[side].session(world.now) {
            Some(session) => describe(&mut out, name, &session),
            None => {
                let _ = write!(out, " | {name} has no session");
            }
        }
    }
    out
}

fn describe(out: &mut String, name: &str, session: &SessionSnapshot) {
    let kib = |bytes: hawser_core::units::ByteCount| bytes.0 / 1024;
    let _ = write!(
        out,
        " | {name} queued {} retransmit {} held {} KiB",
        kib(session.queued),
        kib(session.retransmit),
        kib(session.held)
    );
    for path in &session.paths {
        let _ = write!(out, " [{}]", path_line(path));
    }
}

fn path_line(path: &PathSnapshot) -> String {
    let state = match path.state {
        HealthState::Active if path.in_active_set => "in use".to_owned(),
        other => format!("{other:?}"),
    };
    format!(
        "{} link {} {state} {:.0}±{:.0} ms {:.1} Mbit/s window {} in flight {} KiB loss {:.1} % mtu {}",
        path.id,
        path.link.0,
        path.rtt.as_secs_f64() * 1e3,
        path.delay_us.1 as f64 / 1e3,
        path.rate.map_or(0.0, |rate| rate.as_bits() as f64 / 1e6),
        path.window.0 / 1024,
        path.in_flight.0 / 1024,
        path.loss * 100.0,
        path.mtu,
    )
}
