//! What other programs delete of what a portal has set, while it runs: systemd-networkd deletes rules and routes out of
//! no device that it did not set, whenever it starts or configures a link anew (networkd.conf(5),
//! `ManageForeignRoutingPolicyRules=` and `ManageForeignRoutes=`).
//!
//! 1. [`System::on_event`] notes that routes or rules have changed.
//! 2. `restore` sets again what is gone, with the next tick: thousands of changes, as of a router with BGP,
//!    are one round. The kernel refuses what is there: the round after one that set something sets nothing.

use std::error::Error as _;
use std::time::Instant;

use hawser_config::{Config, Fail};
use hawser_net::netcfg::{Applied, Change, RouteKind, RouteSpec};

use super::{RETRY_EVERY, System};
use crate::run::kill_switch;

impl System {
    /// Step 2.
    pub(super) async fn restore(&mut self, config: &Config) {
        let retries = self.unrestored.is_some_and(|at| at.elapsed() >= RETRY_EVERY);
        if !std::mem::take(&mut self.dirty) && !retries {
            return;
        }
        let is_known = self.unrestored.take().is_some();
        let mut restored = self.restore_own().await;
        if config.tun.fail == Fail::Closed {
            match kill_switch::restore(config.tun.name.as_str()).await {
                Ok(more) => restored += more,
                Err(error) => {
                    let cause = error.source().map(ToString::to_string).unwrap_or_default();
                    match is_known {
                        true => tracing::debug!(%error, cause, "kill switch still not restored"),
                        false => tracing::warn!(%error, cause, "kill switch not restored, it is tried again"),
                    }
                    self.unrestored = Some(Instant::now());
                }
            }
        }
        tell(restored);
    }

    /// What the kill switch has not set. How many changes were gone.
    async fn restore_own(&mut self) -> usize {
        let is_set = |change: &&Change| others_delete(change) && !self.missing.contains(change);
        let changes: Vec<Change> = self.wanted.iter().filter(is_set).cloned().collect();
        let mut restored = 0;
        for change in changes {
            match self.net.apply(change.clone()).await {
                Ok(Applied::Set) => restored += 1,
                Ok(Applied::AlreadySo) => {}
                Err(error) => {
                    tracing::warn!(%change, %error, "not set, it is tried again");
                    self.missing.push(change);
                }
            }
        }
        restored
    }
}

/// Whether others delete it, though all devices stay as they are.
pub(super) fn others_delete(change: &Change) -> bool {
    match change {
        Change::Rule(_) => true,
        Change::Route(RouteSpec { kind, .. }) => matches!(kind, RouteKind::Unreachable | RouteKind::Blackhole),
        _ => false,
    }
}

/// Once a round.
pub(super) fn tell(changes: usize) {
    if changes > 0 {
        tracing::warn!(changes, "deleted rules restored");
    }
}
