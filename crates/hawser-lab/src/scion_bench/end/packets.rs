//! Packets of one size.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hawser_scion::conn::{ConnOpts, Pace, ScionConn, ScionSocket};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::{Begin, Count, LabError, Order, failed, ready};
use crate::localnet::at_once;

/// How often a receiver looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(50);
/// Bits of a byte.
const BITS: f64 = 8.0;

/// What one connection did. Owned by its thread until that ends.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    packets: u64,
    bytes: u64,
    first: Option<Begin>,
    last: Option<Instant>,
}

pub(super) fn send(order: &Order) -> Result<Count, LabError> {
    let paths = order.paths()?;
    let open = |connection| {
        let opts = ConnOpts { pace: pace(order), ..order.opts(connection) };
        let paths = Arc::clone(&paths);
        ScionConn::open(opts, order.remote(connection)?, paths).map_err(|error| failed("open a connection", error))
    };
    let connections: Vec<ScionConn> = (0..order.connections).map(open).collect::<Result<_, LabError>>()?;
    ready();
    let payload = vec![0; order.payload];
    let done: Result<Vec<_>, LabError> = at_once(&connections, |one| send_on(one, &payload, order.duration));
    count(&done?)
}

/// Each connection's share of the rate, counted as connections count it: from the SCION header on.
fn pace(order: &Order) -> Option<Pace> {
    let header = super::HEADER + order.path.as_ref().map_or(0, Vec::len);
    let each = order.rate? / f64::from(order.connections);
    Some(Pace::bits_per_second((each * (order.payload + header) as f64 * BITS) as u64))
}

fn send_on(connection: &ScionConn, payload: &[u8], duration: Duration) -> Result<Done, LabError> {
    let mut sender = connection.sender().map_err(|error| failed("make a sender", error))?;
    let begun = Begin::now()?;
    let mut done = Done { first: Some(begun), ..Done::default() };
    while begun.at.elapsed() < duration {
        let fill = |batch: &mut hawser_scion::conn::Batch<'_>| while batch.copy(payload).is_ok() {};
        let sent = sender.send_batch(fill).map_err(|error| failed("send", error))?;
        if sent.packets == 0 {
            return Err(failed("send", format!("a payload of {} bytes does not fit", payload.len())));
        }
        done.packets += sent.packets as u64;
        done.bytes += sent.bytes as u64;
    }
    done.last = Some(Instant::now());
    Ok(done)
}

pub(super) fn receive(order: &Order) -> Result<Count, LabError> {
    let paths = order.paths()?;
    let open = |connection| {
        let paths = Arc::clone(&paths);
        ScionSocket::bind(order.opts(connection), paths).map_err(|error| failed("open a socket", error))
    };
    let sockets: Vec<ScionSocket> = (0..order.connections).map(open).collect::<Result<_, LabError>>()?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(|error| failed("catch signals", error))?;
    }
    ready();
    let done: Result<Vec<_>, LabError> = at_once(&sockets, |socket| receive_on(socket, &stop));
    count(&done?)
}

fn receive_on(socket: &ScionSocket, stop: &AtomicBool) -> Result<Done, LabError> {
    let mut done = Done::default();
    while !stop.load(Ordering::Relaxed) {
        let before = done.packets;
        socket
            .recv_batch(Some(GLANCE), |datagram| {
                done.packets += 1;
                done.bytes += datagram.payload.len() as u64;
            })
            .map_err(|error| failed("receive", error))?;
        if done.packets > before {
            if done.first.is_none() {
                done.first = Some(Begin::now()?);
            }
            done.last = Some(Instant::now());
        }
    }
    Ok(done)
}

/// Of all connections, from the first packet to the last.
fn count(all: &[Done]) -> Result<Count, LabError> {
    let packets = all.iter().map(|done| done.packets).sum();
    let bytes = all.iter().map(|done| done.bytes).sum();
    let first = all.iter().filter_map(|done| done.first).min();
    match (first, all.iter().filter_map(|done| done.last).max()) {
        (Some(first), Some(last)) => first.count(last, packets, bytes),
        _ => Ok(Count { packets, bytes, ..Count::default() }),
    }
}
