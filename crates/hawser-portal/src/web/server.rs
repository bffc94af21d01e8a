//! Connections: how many, how long, how much of each request.
//!
//! A connection is a stranger's until one of its requests has a session. Strangers are a bounded number: where one more
//! comes, the oldest of them is closed, so that those who only hold connections open keep nobody out.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::refusals::Refused;
use super::site::Site;

/// Connections without a session.
const STRANGERS_MAX: usize = 48;
/// Connections with one: a page has six at most (HTTP/1.1 in browsers).
const KNOWN_MAX: usize = 64;
/// The head of a request takes no longer, nor does the next request of a connection that stays open.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// A stranger's connection lasts no longer.
const STRANGER_FOR: Duration = Duration::from_secs(20);
/// What is sent and not taken for so long closes the connection (TCP_USER_TIMEOUT, tcp(7)).
const STALLED_FOR: Duration = Duration::from_secs(20);
/// Bytes of a request's head, and of what waits to be sent.
const BUFFER_MAX: usize = 16 << 10;
/// Headers of a request.
const HEADERS_MAX: usize = 64;
/// Pause after a failed accept (out of file descriptors), so that it does not become a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A connection, and whether it has shown a session.
struct Seat {
    task: AbortHandle,
    known: Arc<AtomicBool>,
}

/// Accepts connections without end.
pub async fn serve(listener: TcpListener, site: Arc<Site>) {
    let mut seats = VecDeque::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let known = Arc::new(AtomicBool::new(false));
                let task = tokio::spawn(converse(stream, Arc::clone(&site), Arc::clone(&known)));
                make_room(&mut seats, &site);
                seats.push_back(Seat { task: task.abort_handle(), known });
            }
            Err(error) => {
                tracing::warn!(%error, "accept for web page failed");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Closes the oldest of whom there are too many.
fn make_room(seats: &mut VecDeque<Seat>, site: &Site) {
    seats.retain(|seat| !seat.task.is_finished());
    for (are_known, most) in [(false, STRANGERS_MAX), (true, KNOWN_MAX)] {
        let such = |seat: &&Seat| seat.known.load(Ordering::Relaxed) == are_known;
        if seats.iter().filter(such).count() >= most
            && let Some(oldest) = seats.iter().find(such)
        {
            oldest.task.abort();
            site.refuse(Refused::Connections);
        }
    }
}

/// Answers one connection until it ends.
async fn converse(stream: TcpStream, site: Arc<Site>, known: Arc<AtomicBool>) {
    let bounded =
        SockRef::from(&stream).set_tcp_user_timeout(Some(STALLED_FOR)).and_then(|()| stream.set_nodelay(true));
    if let Err(error) = bounded {
        return tracing::debug!(%error, "web connection closed");
    }
    // Browsers connect before they need it: that is nobody's slow request.
    let first = timeout(HEAD_TIMEOUT, stream.peek(&mut [0])).await;
    if !matches!(first, Ok(Ok(1..))) {
        return;
    }
    let served = AtomicBool::new(false);
    let service = service_fn(|request| {
        served.store(true, Ordering::Relaxed);
        let (site, known) = (Arc::clone(&site), Arc::clone(&known));
        async move { Ok::<_, Infallible>(site.answer(request, &known).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(BUFFER_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = sleep(STRANGER_FOR) => match known.load(Ordering::Relaxed) {
            true => connection.await,
            false => return,
        },
    };
    match ended {
        // Between requests that is how a connection ends.
        Err(error) if error.is_timeout() && !served.load(Ordering::Relaxed) => site.refuse(Refused::Slow),
        Err(error) => tracing::debug!(%error, "web connection ended"),
        Ok(()) => {}
    }
}
