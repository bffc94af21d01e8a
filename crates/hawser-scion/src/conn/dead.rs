//! Which interfaces died lately, so that a path across one of them is not picked again at once.
//!
//! ```text
//!            down                      its time is over
//!  unknown ───────► dead for 10 s ─────────────────────► on trial ──► unknown
//!                      ▲                                  │    the same time again, and nothing said
//!                      └──────────────────────────────────┘
//!                        down: dead for twice the time, 5 min at most
//! ```

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::addr::IsdAs;
use crate::path::{Fingerprint, InterfaceId, PathInterface};

/// How long an interface counts as dead after the first report: routers notice a dead link within 0.6 s
/// (three lost BFD messages of 200 ms, the reference router's setting), control services in some seconds.
pub const FIRST_DEATH: Duration = Duration::from_secs(10);

/// How long at most: beacons, and so paths, are made anew about as often (reference control service).
pub const LONGEST_DEATH: Duration = Duration::from_secs(300);

/// Most interfaces remembered; reports beyond push out the one that is over first.
const MOST_DEATHS: usize = 1024;

/// What a router says does not work. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeadPart {
    /// A link to another AS (SCMP type 5).
    External(PathInterface),
    /// The way through an AS (SCMP type 6).
    Internal {
        /// The AS.
        isd_as: IsdAs,
        /// Where packets come in.
        ingress: InterfaceId,
        /// Where they were to leave.
        egress: InterfaceId,
    },
}

impl DeadPart {
    /// Whether a path crosses it. A dead way through an AS is dead both ways.
    pub fn is_on(&self, path: &Fingerprint) -> bool {
        let interfaces = path.interfaces();
        match *self {
            DeadPart::External(interface) => interfaces.contains(&interface),
            DeadPart::Internal { isd_as, ingress, egress } => interfaces.windows(2).any(|pair| {
                let inside = pair[0].isd_as == isd_as && pair[1].isd_as == isd_as;
                let ids = (pair[0].id, pair[1].id);
                inside && (ids == (ingress, egress) || ids == (egress, ingress))
            }),
        }
    }
}

/// How long a part is dead, as of its last report.
#[derive(Debug, Clone, Copy)]
struct Death {
    until: Instant,
    lasts: Duration,
}

/// The parts that died lately. Empty at first. For one thread: its owner keeps it behind a lock.
#[derive(Debug, Default)]
pub struct DeadParts(BTreeMap<DeadPart, Death>);

impl DeadParts {
    /// Notes that a part is dead; what is said again while it counts as dead changes nothing.
    pub fn mark(&mut self, part: DeadPart, now: Instant) {
        let lasts = match self.0.get(&part) {
            Some(death) if now < death.until => return,
            Some(death) if now < death.until + death.lasts => (death.lasts * 2).min(LONGEST_DEATH),
            _ => FIRST_DEATH,
        };
        if self.0.len() >= MOST_DEATHS && !self.0.contains_key(&part) {
            let first = self.0.iter().min_by_key(|(_, death)| death.until).map(|(part, _)| *part);
            first.and_then(|part| self.0.remove(&part));
        }
        self.0.insert(part, Death { until: now + lasts, lasts });
    }

    /// Until when a path counts as dead; `None` if it does not.
    pub fn until(&self, path: &Fingerprint, now: Instant) -> Option<Instant> {
        let deaths = self.0.iter().filter(|(part, death)| now < death.until && part.is_on(path));
        deaths.map(|(_, death)| death.until).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(isd_as: &str, id: u16) -> PathInterface {
        PathInterface { isd_as: isd_as.parse().expect("an AS"), id: InterfaceId(id) }
    }

    fn three_ases() -> Fingerprint {
        Fingerprint::new([interface("1-1", 1), interface("1-2", 2), interface("1-2", 3), interface("1-3", 4)])
    }

    fn through(isd_as: &str, ingress: u16, egress: u16) -> DeadPart {
        let isd_as = isd_as.parse().expect("an AS");
        DeadPart::Internal { isd_as, ingress: InterfaceId(ingress), egress: InterfaceId(egress) }
    }

    #[test]
    fn a_path_dies_with_what_it_crosses() {
        for (part, dies) in [
            (DeadPart::External(interface("1-2", 3)), true),
            (DeadPart::External(interface("1-3", 4)), true),
            (DeadPart::External(interface("1-3", 3)), false),
            (through("1-2", 2, 3), true),
            (through("1-2", 3, 2), true),
            (through("1-2", 1, 2), false),
            (through("1-1", 1, 2), false),
        ] {
            assert_eq!(part.is_on(&three_ases()), dies, "{part:?}");
        }
    }

    #[test]
    fn every_death_lasts_twice_as_long_as_the_one_before() {
        let (mut dead, path, part) = (DeadParts::default(), three_ases(), DeadPart::External(interface("1-2", 3)));
        let mut now = Instant::now();
        assert_eq!(dead.until(&path, now), None);
        for seconds in [10, 20, 40, 80, 160, 300, 300] {
            dead.mark(part, now);
            let until = now + Duration::from_secs(seconds);
            assert_eq!(dead.until(&path, now), Some(until));
            // Said again, while it is dead: the packets under way bring one report each.
            dead.mark(part, until - Duration::from_millis(1));
            assert_eq!(dead.until(&path, now), Some(until));
            assert_eq!(dead.until(&path, until), None);
            now = until;
        }
    }

    #[test]
    fn what_stayed_alive_on_trial_is_forgiven() {
        let (mut dead, path, part) = (DeadParts::default(), three_ases(), through("1-2", 2, 3));
        let now = Instant::now();
        dead.mark(part, now);
        let later = now + 2 * FIRST_DEATH;
        dead.mark(part, later);
        assert_eq!(dead.until(&path, later), Some(later + FIRST_DEATH));
    }

    #[test]
    fn the_table_is_bounded() {
        let (mut dead, now) = (DeadParts::default(), Instant::now());
        for id in 0..2 * MOST_DEATHS as u16 {
            dead.mark(DeadPart::External(interface("1-9", id)), now + Duration::from_millis(id.into()));
        }
        assert_eq!(dead.0.len(), MOST_DEATHS);
        let last = Fingerprint::new([interface("1-9", 2 * MOST_DEATHS as u16 - 1)]);
        assert!(dead.until(&last, now).is_some(), "the last is remembered");
    }
}
