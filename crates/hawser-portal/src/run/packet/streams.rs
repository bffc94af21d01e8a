//! Streams: what the links know of theirs goes to the core, and their timers run.

use std::time::Duration;

use hawser_core::congestion::SocketState;
use hawser_core::units::{ByteCount, Rate, Time};
use hawser_net::link::tcp::{StreamNews, StreamRoom, TcpLink};

use super::Parts;
use super::any_link::AnyLink;
use super::socket::LinkSocket;

/// A link warns of TLS that is not agreed on no more often: strangers can cause it, and calls come again each second.
const TELL_AGAIN: Duration = Duration::from_secs(60);

/// Tells the core which streams came and went, and how much those take that something was sent on. Whether any takes
/// more now.
pub fn tell(parts: &mut Parts, now: Time) -> bool {
    let Parts { endpoint, sockets, .. } = parts;
    let mut more = false;
    for socket in sockets {
        let id = socket.plan.id;
        for remote in socket.lost_streams.drain(..) {
            endpoint.handle_stream_down(now, id, remote);
        }
        let LinkSocket { plan, link, tls_told, .. } = socket;
        let Some(link) = link.as_mut().and_then(AnyLink::streams) else { continue };
        while let Some(news) = link.news() {
            match news {
                StreamNews::Up(remote) => endpoint.handle_stream_up(now, id, remote),
                StreamNews::Down(remote) => endpoint.handle_stream_down(now, id, remote),
                StreamNews::Room(room) => {
                    more |= room.room > 0;
                    endpoint.handle_socket(id, room.remote, &state(&room));
                }
                StreamNews::TlsUnwanted(remote) if is_due(tls_told, now) => tracing::warn!(
                    link = plan.name,
                    %remote,
                    "stream inside TLS closed: if a peer called, set `tls = true` in [portal] here"
                ),
                StreamNews::TlsRefused(remote) if is_due(tls_told, now) => tracing::warn!(
                    link = plan.name,
                    %remote,
                    "stream closed before TLS was agreed on: the remote portal needs `tls = true` in its [portal]"
                ),
                StreamNews::TlsUnwanted(_) | StreamNews::TlsRefused(_) => {}
            }
        }
    }
    more
}

/// How long until a link of streams has something to do by itself.
pub fn timeout(parts: &mut Parts) -> Option<Duration> {
    parts.sockets.iter_mut().filter_map(streams).map(|link| link.timeout()).min()
}

/// What is due is done.
pub fn on_timer(parts: &mut Parts) {
    parts.sockets.iter_mut().filter_map(streams).for_each(TcpLink::on_timer);
}

fn streams(socket: &mut LinkSocket) -> Option<&mut TcpLink> {
    socket.link.as_mut().and_then(AnyLink::streams)
}

/// Whether to warn again; then it is noted.
fn is_due(told: &mut Option<Time>, now: Time) -> bool {
    let due = told.is_none_or(|told| now.since(told) >= TELL_AGAIN);
    if due {
        *told = Some(now);
    }
    due
}

fn state(room: &StreamRoom) -> SocketState {
    SocketState { room: ByteCount(room.room as u64), rate: (room.rate > 0).then_some(Rate(room.rate)) }
}
