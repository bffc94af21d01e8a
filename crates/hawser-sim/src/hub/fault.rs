//! What happens to the active member, and when.

use super::Act;
use super::case::{ACTIVE, BULK_FOR, END, FAULT, HEALS, STANDBY};

/// In an upgrade a member that was drained ends this long after, its program starts this long after that, and then the
/// other one is drained, seconds: its session and its announcements are there by then.
const UPGRADE: [f64; 3] = [2.0, 0.5, 1.5];

/// What happens. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fault {
    /// The active member's machine dies.
    Killed,
    /// Its portal is stopped, and goes on after three seconds; the machine's routes stay.
    Stopped,
    /// One link's way to it is cut, for three seconds.
    LinkCut,
    /// What the peer sends to it is lost, by all links, for three seconds; it still sends.
    DeafOwner,
    /// What it sends is lost; it still hears.
    MuteOwner,
    /// The routing daemons' session with it is cut for three seconds: packets for the peer come to the standby.
    Unrouted,
    /// The operator drains it.
    Drained,
    /// The same, and the one that owns from then on is stopped 0.3 s later, for three seconds.
    Forsaken,
    /// Its portal ends in order.
    Closed,
    /// The peer's links are away, for half a second: nobody moves.
    LinksAway,
    /// It is drained, ends and starts anew, and then the other one is drained.
    Upgraded,
}

/// All but the upgrade, which is two drains.
pub const FAULTS: [Fault; 10] = [
    Fault::Killed,
    Fault::Stopped,
    Fault::LinkCut,
    Fault::DeafOwner,
    Fault::MuteOwner,
    Fault::Unrouted,
    Fault::Drained,
    Fault::Forsaken,
    Fault::Closed,
    Fault::LinksAway,
];

impl Fault {
    /// How often the peer is to move.
    pub fn moves(self) -> usize {
        match self {
            Fault::LinkCut | Fault::LinksAway => 0,
            // There, and back.
            Fault::Upgraded => 2,
            // There, back, and there again once that one goes on.
            Fault::Forsaken => 3,
            _ => 1,
        }
    }

    /// Until when bulk is looked at for what this does to it, seconds from the start.
    pub(super) fn over(self) -> f64 {
        if self == Fault::Upgraded { END - 1.0 } else { FAULT + BULK_FOR }
    }

    /// What it does, seconds from the start.
    pub(super) fn acts(self) -> Vec<(f64, Act)> {
        let all = |holes| (0..2).flat_map(move |link| [(FAULT, holes, link), (HEALS, [false; 2], link)]);
        let to_owner = |holes| all(holes).map(|(at, holes, link)| (at, Act::Holes(link, ACTIVE, holes))).collect();
        match self {
            Fault::Killed => vec![(FAULT, Act::Kill(ACTIVE)), (HEALS, Act::Start(ACTIVE))],
            Fault::Stopped => vec![(FAULT, Act::Freeze(ACTIVE)), (HEALS, Act::Thaw(ACTIVE))],
            Fault::LinkCut => {
                vec![(FAULT, Act::Holes(0, ACTIVE, [true; 2])), (HEALS, Act::Holes(0, ACTIVE, [false; 2]))]
            }
            Fault::DeafOwner => to_owner([true, false]),
            Fault::MuteOwner => to_owner([false, true]),
            Fault::Unrouted => vec![(FAULT, Act::Unroute(ACTIVE, true)), (HEALS, Act::Unroute(ACTIVE, false))],
            Fault::Drained => vec![(FAULT, Act::Drain(ACTIVE))],
            Fault::Forsaken => {
                let stopped = FAULT + 0.3;
                vec![(FAULT, Act::Drain(ACTIVE)), (stopped, Act::Freeze(STANDBY)), (stopped + 3.0, Act::Thaw(STANDBY))]
            }
            Fault::Closed => vec![(FAULT, Act::Close(ACTIVE)), (HEALS, Act::Start(ACTIVE))],
            Fault::LinksAway => links_away(),
            Fault::Upgraded => upgraded(),
        }
    }
}

fn links_away() -> Vec<(f64, Act)> {
    let away = |at, holes| (0..2).flat_map(move |link| [ACTIVE, STANDBY].map(|of| (at, Act::Holes(link, of, holes))));
    away(FAULT, [true; 2]).chain(away(FAULT + 0.5, [false; 2])).collect()
}

fn upgraded() -> Vec<(f64, Act)> {
    let [ends, starts, next] = UPGRADE;
    let (ends, starts) = (FAULT + ends, FAULT + ends + starts);
    let acts = [(FAULT, Act::Drain(ACTIVE)), (ends, Act::Close(ACTIVE)), (starts, Act::Start(ACTIVE))];
    acts.into_iter().chain([(starts + next, Act::Drain(STANDBY))]).collect()
}
