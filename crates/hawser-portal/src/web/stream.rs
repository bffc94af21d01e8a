//! What there is to see, as server-sent events (HTML, section 9.2): one text for all who look, made only while somebody
//! does.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{Stream, unfold};
use http_body_util::StreamBody;
use hyper::body::Frame;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::site::Site;
use crate::api::Document;

/// From one event to the next: the control thread has something new each 200 ms.
const EVERY: Duration = Duration::from_millis(400);

/// Makes a new event again and again, while there is anybody to see it.
pub async fn publish(site: &Site) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if site.frames().receiver_count() > 0 {
            site.frames().send_replace(frame(site));
        }
    }
}

/// The event of the moment: a status, in one line of JSON.
pub fn frame(site: &Site) -> Bytes {
    let status = site.document(&Document::Status).unwrap_or_default();
    [b"data: ", &status[..], b"\n\n"].concat().into()
}

/// A body of events. Whoever takes them slowly misses some, and nothing waits for him.
pub fn body(
    mut frames: watch::Receiver<Bytes>,
    permit: OwnedSemaphorePermit,
) -> StreamBody<impl Stream<Item = Result<Frame<Bytes>, Infallible>> + Send> {
    frames.mark_changed();
    StreamBody::new(unfold((frames, permit), |(mut frames, permit)| async move {
        frames.changed().await.ok()?;
        let frame = frames.borrow_and_update().clone();
        Some((Ok(Frame::data(frame)), (frames, permit)))
    }))
}
