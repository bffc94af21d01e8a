//! Packets of one size.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hawser_scion::conn::{ConnOpts, Pace, ScionConn, ScionSocket};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::{Count, Order, cpu, failed, microseconds, ready};
use crate::error::LabError;

/// How often a receiver looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(50);
/// Bits of a byte.
const BITS: f64 = 8.0;

/// What one connection did. Owned by its thread until that ends.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    packets: u64,
    bytes: u64,
    first: Option<(Instant, Duration)>,
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
    let work = connections.iter().map(|connection| || send_on(connection, &payload, order.duration));
    together(work.collect())
}

/// Each connection's share of the rate, counted as connections count it: from the SCION header on.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate")]
fn pace(order: &Order) -> Option<Pace> {
    let header = super::HEADER + order.path.as_ref().map_or(0, Vec::len);
    let each = order.rate? / f64::from(order.connections);
    Some(Pace::bits_per_second((each * (order.payload + header) as f64 * BITS) as u64))
}

fn send_on(connection: &ScionConn, payload: &[u8], duration: Duration) -> Result<Done, LabError> {
    let mut sender = connection.sender().map_err(|error| failed("make a sender", error))?;
    let begun = Instant::now();
    let mut done = Done { first: Some((begun, cpu()?)), ..Done::default() };
    while begun.elapsed() < duration {
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
    let work = sockets.iter().map(|socket| || receive_on(socket, &stop));
    together(work.collect())
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
            let now = Instant::now();
            if done.first.is_none() {
                done.first = Some((now, cpu()?));
            }
            done.last = Some(now);
        }
    }
    Ok(done)
}

/// One thread a connection; from the first packet of all to the last.
fn together<W>(work: Vec<W>) -> Result<Count, LabError>
where
    W: FnOnce() -> Result<Done, LabError> + Send,
{
    let all: Vec<Done> = thread::scope(|scope| {
        let threads: Vec<_> = work.into_iter().map(|work| scope.spawn(work)).collect();
        let ended = |thread: thread::ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        threads.into_iter().map(ended).collect::<Result<_, LabError>>()
    })?;
    let first = all.iter().filter_map(|done| done.first).min();
    let last = all.iter().filter_map(|done| done.last).max();
    let (time, spent) = match (first, last) {
        (Some((first, before)), Some(last)) => (last - first, cpu()?.saturating_sub(before)),
        _ => Default::default(),
    };
    Ok(Count {
        packets: all.iter().map(|done| done.packets).sum(),
        bytes: all.iter().map(|done| done.bytes).sum(),
        seconds: time.as_secs_f64(),
        cpu_us: microseconds(spent),
    })
}
