//! The old owner of a planned move, until it is let go.

use super::Member;
use super::silence::is_away;
use hawser_core::endpoint::Endpoint;
use hawser_core::units::Time;
use std::time::Duration;

/// After a planned move the old owner forwards for so long: an announcement's way to the routers, and one that was
/// lost.
const LINGER: Duration = Duration::from_secs(1);
/// Once it brought nothing for so long, what waited there has come: of a stream nothing pauses for longer.
const EBB: Duration = Duration::from_millis(20);
/// But it is told by then, whatever it did not acknowledge: half a lease.
const LINGER_MOST: Duration = Duration::from_secs(2);

/// An old owner that is not let go yet. Begins as packets leave it; the pair owns it.
#[derive(Clone, Debug)]
pub(super) struct Leaving {
    old: Member,
    since: Time,
    /// When it may be over.
    look_at: Time,
    /// When what it had to bring may have come; never once it has.
    ebb_at: Time,
}

impl Leaving {
    pub fn begin(now: Time, old: Member) -> Self {
        Leaving { old, since: now, look_at: now + LINGER, ebb_at: now + EBB }
    }

    /// When to ask whether it ebbs, or is over.
    pub fn poll_timeout(&self) -> Time {
        self.look_at.min(self.ebb_at)
    }

    /// Whether what it had has come. It does so once.
    pub fn ebbs(&mut self, now: Time, endpoint: &Endpoint) -> bool {
        if now < self.ebb_at {
            return false;
        }
        let busy_at = endpoint.presence(self.old.peer).busy_at.unwrap_or(Time::ZERO);
        self.ebb_at = busy_at.max(self.since) + EBB;
        let ebbs = self.ebb_at <= now;
        if ebbs {
            self.ebb_at = Time::NEVER;
        }
        ebbs
    }

    /// Whether it has done what it had. What it then did not acknowledge goes to the other member.
    pub fn is_over(&mut self, now: Time, endpoint: &mut Endpoint) -> bool {
        let (old, waited) = (self.old.peer, now.since(self.since));
        let over = waited >= LINGER_MOST || waited >= LINGER && !endpoint.has_in_flight(old);
        // Or it died, and its routers were first to know: what it had is waited for no longer.
        if endpoint.has_in_flight(old) && (over || is_away(now, &endpoint.presence(old), true)) {
            endpoint.hand_over_rest(now, old);
        }
        // What is acknowledged meanwhile is noticed by itself.
        let (short, most) = (self.since + LINGER, self.since + LINGER_MOST);
        self.look_at = if now < short { short } else { most };
        over
    }
}
