//! Of the paths that we opened on one configured link one carries: the most preferred that works.
//!
//! A link has a socket for each IP version and transport, a peer several endpoints, and each pair is a path, with a
//! rank. Only those of preferred sockets are opened at once.
//!
//! ```text
//!                   the first is validated: those of its rank close
//!   PREFERRED ---------------------------------------------------------> ON THE BEST <---------------+
//!   ARE TRIED                                                               |   ^                    |
//!       | all are down, or in doubt for 0.3 s:         down, or in doubt    |   | the best is        | a better one is validated,
//!       | paths on all sockets are opened              for 0.3 s            v   | validated          | or out of doubt:
//!       +----------------------------------------------------------------> PROBED                    | those worse close
//!                                                                           |   ^                    |
//!                                    another is validated: those worse close|   | its path is down   |
//!                                                                           v   |                    |
//!                                                                        FALLEN BACK ----------------+
//!              the better ones are probed as any path that is down, and opened where they come to be known meanwhile
//! ```

use super::Session;
use super::path::Path;
use super::terms::Offer;
use crate::path::constants::SUSPECT_FOR;
use crate::path::health::HealthState;
use crate::units::{LinkGroup, LinkId, PathId, Time};

/// How little a path is preferred among those of its link: its socket counts before its endpoint. The best by default;
/// a plain value.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Rank(u8, u8);

impl Rank {
    /// Of a socket and an endpoint; 0 is the best of either.
    pub const fn new(socket: u8, endpoint: u8) -> Rank {
        Rank(socket, endpoint)
    }
}

impl Session {
    /// Whether a path that we opened on this configured link works, or may soon. A link with something to fall back to
    /// is given up sooner than its path: that may be late and nothing worse, and carries on if it is.
    pub fn hopes_for(&self, group: LinkGroup, falls_back: bool) -> bool {
        let doubted = |since: Time| falls_back && self.liveness.called_at().since(since) >= SUSPECT_FOR;
        let hopes = |path: &Path| match path.health.state() {
            HealthState::Down(_) => false,
            HealthState::Suspect => !path.health.suspect_since().is_some_and(doubted),
            _ => true,
        };
        self.paths.iter().filter(|path| path.offer.group == Some(group)).any(hopes)
    }

    /// How little the path that works on this configured link is preferred; none where none works.
    pub fn best_rank(&self, group: LinkGroup) -> Option<Rank> {
        let works = |path: &&Path| path.offer.group == Some(group) && path.health.is_active();
        self.paths.iter().filter(works).map(|path| path.offer.rank).min()
    }

    /// Whether a path works on this socket.
    pub fn works_by(&self, link: LinkId) -> bool {
        self.paths.iter().any(|path| path.route.link == link && path.works())
    }

    /// A path was validated: it stays, unless one that is as good works already, and those that are no better close.
    /// Tells whether it stays.
    pub(super) fn close_rivals(&mut self, now: Time, id: PathId) -> bool {
        let Some(index) = self.paths.index_of(id) else { return false };
        self.close_twin(now, index);
        let Offer { group, rank, .. } = self.paths[index].offer;
        let Some(group) = group else { return true };
        if self.paths[index].is_closed() {
            return false;
        }
        let alias = self.paths[index].transport.has_aliases();
        let rival = |path: &Path| path.offer.group == Some(group) && path.id != id && !alias;
        if self.paths.iter().any(|path| rival(path) && path.offer.rank <= rank && path.health.is_active()) {
            self.close_path(now, index);
            return false;
        }
        for other in 0..self.paths.len() {
            if rival(&self.paths[other]) && self.paths[other].offer.rank >= rank {
                self.close_path(now, other);
            }
        }
        true
    }

    /// Where both portals opened a path between the same two addresses, side 1 closes its own.
    fn close_twin(&mut self, now: Time, index: usize) {
        if self.paths.ids.side() == 0 {
            return;
        }
        let (route, theirs) = (self.paths[index].route, |path: &Path| path.id.0 & 1 == 0);
        let same =
            |path: &Path| path.route.link == route.link && path.route.remote == route.remote && path.health.is_active();
        if !self.paths.iter().any(|path| theirs(path) && same(path)) {
            return;
        }
        for other in 0..self.paths.len() {
            if !theirs(&self.paths[other]) && same(&self.paths[other]) {
                self.close_path(now, other);
            }
        }
    }
}
