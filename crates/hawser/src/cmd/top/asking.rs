//! The thread that asks the portal, once an interval, and goes on while there is none.

use std::io;
use std::path::Path;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hawser_portal::api::{Client, ClientError, Status};

use super::model::Update;
use crate::failure::with_causes;

/// Starts the threads. They end with who hears them.
///
/// Flows have one of their own: their first answer takes a second, and nothing else is to wait for it.
pub fn start(socket: &Path, every: Duration, updates: Sender<Update>) -> io::Result<()> {
    let (status, flows) = (socket.to_owned(), socket.to_owned());
    let others = updates.clone();
    repeat("status", every, move || {
        let answer = ask_status(&status);
        let there = answer.is_ok();
        // What there is no answer to, as of an older portal, is not shown.
        let events = there.then(|| Client::events(&status, 0).ok()).flatten();
        let events = events.map(|events| Update::Events(events, unix_ms()));
        updates.send(Update::Status(Box::new(answer))).is_ok()
            && events.is_none_or(|events| updates.send(events).is_ok())
    })?;
    repeat("flows", every, move || {
        // That there is no portal the status tells.
        Client::flows(&flows).map_or(true, |flows| others.send(Update::Flows(flows)).is_ok())
    })
}

/// The present, in milliseconds since 1970.
fn unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

fn ask_status(socket: &Path) -> Result<Status, String> {
    Client::status(socket).map_err(|error| match &error {
        ClientError::NotRunning { .. } => format!("no portal is running at {}", socket.display()),
        _ => with_causes(&error),
    })
}

/// Looks at even intervals, however long a look takes, until nobody wants to know any more.
fn repeat(name: &str, every: Duration, look: impl Fn() -> bool + Send + 'static) -> io::Result<()> {
    let work = move || {
        let mut next = Instant::now();
        while look() {
            next = (next + every).max(Instant::now());
            thread::sleep(next.duration_since(Instant::now()));
        }
    };
    thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}
