//! What the service manager is told (sd_notify(3)). Without one, nothing happens.

use sd_notify::NotifyState;

/// The portal forwards packets; `status` is one line for `systemctl status`.
pub fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The configuration is being read again; [`ready`] follows.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "clock for service manager not read"),
    }
}

/// The portal is undoing what it made.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "service manager not told");
    }
}
