//! Speed tests that somebody asks for. They live as long as who asked says so: a command that is interrupted stops both
//! ends.

use std::time::{Duration, Instant};

use hawser_core::session::{Direction, SpeedRun};
use hawser_core::units::{ByteCount, LinkTag, PeerId};
use serde_json::Value;
use tokio::sync::oneshot;

use super::Serving;
use crate::api::{SpeedDirection, SpeedOrder};
use crate::run::messages::Command;

/// Who asked says that it is still there at least this often.
const LEASE: Duration = Duration::from_secs(2);

/// A test that is on. Owned by the control thread.
#[derive(Debug)]
pub(super) struct Lease {
    peer: PeerId,
    name: String,
    until: Instant,
}

impl Serving<'_> {
    /// Begins a run; what it brings, the status shows.
    pub(super) async fn begin_speed(&mut self, order: SpeedOrder) -> Result<Option<Value>, String> {
        let peer = self.places.named(&order.peer).ok_or_else(|| format!("there is no peer {}", order.peer))?;
        if self.speed.as_ref().is_some_and(|lease| lease.name != order.peer) {
            return Err("another speed test is on".to_owned());
        }
        let run = SpeedRun {
            direction: match order.direction {
                SpeedDirection::Up => Direction::Up,
                SpeedDirection::Down => Direction::Down,
            },
            link: order.link.as_deref().map(LinkTag::of),
            time: Duration::from_millis(order.milliseconds),
            bytes: ByteCount(order.bytes),
        };
        let (answer, answered) = oneshot::channel();
        self.command([Command::MeasureSpeed { peer, run, answer }]);
        let began = answered.await.map_err(|_| "it is ending".to_owned())?;
        began.map_err(|error| error.to_string())?;
        tracing::info!(peer = order.peer, direction = %order.direction, "speed test began");
        self.speed = Some(Lease { peer, name: order.peer, until: Instant::now() + LEASE });
        Ok(None)
    }

    /// Who asked is still there; an error where no test is on.
    pub(super) fn go_on_with_speed(&mut self) -> Result<Option<Value>, String> {
        let lease = self.speed.as_mut().ok_or("no speed test is on")?;
        lease.until = Instant::now() + LEASE;
        Ok(None)
    }

    /// Ends the test on both sides.
    pub(super) fn end_speed(&mut self) -> Option<Value> {
        if let Some(lease) = self.speed.take() {
            self.command([Command::EndSpeed(lease.peer)]);
            tracing::info!(peer = lease.name, "speed test ended");
        }
        None
    }

    /// Ends what nobody waits for any more.
    pub(super) fn expire_speed(&mut self) {
        if self.speed.as_ref().is_some_and(|lease| Instant::now() >= lease.until) {
            self.end_speed();
        }
    }
}
