//! Waiting for what others do.

use std::time::{Duration, Instant};
use std::{fs, thread};

use hawser_wire::Namespace;

use crate::error::LabError;

/// States of sockets that take what comes from anybody, of TCP and of UDP. Source: linux/net/tcp_states.h.
const TAKING: [&str; 2] = ["0A", "07"];

/// Asks from time to time until there is an answer; none where there was none in time.
pub(crate) fn until<T>(
    patience: Duration,
    glance: Duration,
    mut ask: impl FnMut() -> Result<Option<T>, LabError>,
) -> Result<Option<T>, LabError> {
    let late = Instant::now() + patience;
    loop {
        let answer = ask()?;
        if answer.is_some() || Instant::now() > late {
            return Ok(answer);
        }
        thread::sleep(glance);
    }
}

/// Whether somebody listens at a port of a namespace, by `tcp` or `udp`. Source: proc_pid_net(5).
pub(crate) fn listens(at: &Namespace, protocol: &str, port: u16) -> Result<bool, LabError> {
    let read =
        |family: &str| fs::read_to_string(format!("/proc/thread-self/net/{protocol}{family}")).unwrap_or_default();
    let tables = at.run(|| ["", "6"].map(read).concat())?;
    let port = format!(":{port:04X}");
    Ok(tables.lines().any(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next().is_some_and(|local| local.ends_with(&port))
            && words.nth(1).is_some_and(|state| TAKING.contains(&state))
    }))
}
