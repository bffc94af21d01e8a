//! What limits what a portal sends to a peer, and why: from two status documents, a second or more apart.
//!
//! 1. No path works: the links. 2. Hardly anything is sent: nothing. 3. The packet thread was always busy: this
//!    processor.
//! 4. The fastest path could have carried more: the sender. 5. The paths that are full share one queue: a line behind
//!    them.
//! 6. Else the links: of those that do not give what they could the worst ones, or all that are full.
//!
//! What comes from a peer its portal judges in the same way: only who sends knows what waits.

mod common_queue;
#[cfg(test)]
mod tests;
mod words;

use serde::{Deserialize, Serialize};

use crate::api::{LinkStatus, PathState, PathStatus, PeerStatus, Status};

pub use common_queue::shares_queue;

/// Two documents that are nearer say nothing, in seconds: a window of two round trips over a satellite.
const APART_S: f64 = 1.0;
/// Below this rate nothing is limited, in Mbit/s: keepalives, a ping, a call.
const IDLE_MBPS: f64 = 0.2;
/// The part of the time that the packet thread ran or waited for a processor, from which on it is the limit: what is
/// left goes by being woken.
const BUSY: f64 = 0.9;
/// A path that had nothing to send for less than this part of the time is full.
const FULL_IDLE: f64 = 0.35;
/// Loss that a flow notices, as a share of what is sent, in per cent: a good line has a hundredth of it.
pub const LOSS_PCT: f64 = 3.0;
/// A path that is full at less than this part of what it carried within a minute has faded.
const FADED: f64 = 0.5;
/// A path that carries this part of its `max_rate` is held to it: headers and pauses are the rest.
pub const HELD: f64 = 0.85;
const BITS_PER_BYTE: f64 = 8.0;
const BITS_PER_MBIT: f64 = 1e6;

/// What limits what is sent to a peer. Plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// Of what kind it is.
    pub cause: Cause,
    /// The links that limit; none where the cause lies elsewhere.
    pub links: Vec<String>,
    /// The same in a sentence.
    pub text: String,
    /// What was sent, in Mbit/s of inner packets.
    pub rate_mbps: f64,
    /// Each path, and why it carries no more.
    pub paths: Vec<PathLimit>,
}

/// What may limit a bond. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Hardly anything is sent.
    Nothing,
    /// Who sends: all of it went at once.
    Sender,
    /// This portal's processor.
    Processor,
    /// A line behind all links: the far side's, or one that they have in common.
    CommonLine,
    /// Links.
    Links,
}

/// A path, and why it carries no more. Plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathLimit {
    /// Its number, the same on both sides.
    pub id: u32,
    /// Its link; where several paths are called so, its far end.
    pub link: String,
    /// What it sent, in Mbit/s of datagrams.
    pub rate_mbps: f64,
    /// In a word.
    pub reason: Reason,
    /// In a clause that follows the link's name.
    pub text: String,
}

/// Why a path carries no more, the worst first. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It is down, or has no route.
    Down,
    /// Its data cap is reached.
    DataCap,
    /// It loses packets.
    Loss,
    /// It gives less than a moment ago.
    Faded,
    /// Its delay costs a flow more than its rate brings.
    LeftOut,
    /// `max_rate` holds it.
    MaxRate,
    /// It carries what it can.
    Full,
    /// A link of a lower metric works.
    Standby,
    /// It could carry more.
    Room,
}

/// What limits what is sent to this peer; none where the documents are of two portals, too near, or without the peer.
pub fn judge(before: &Status, now: &Status, peer: &str) -> Option<Limit> {
    let at = |status: &Status| status.peers.iter().position(|one| one.name == peer);
    judge_pair((before, &before.peers[at(before)?]), (now, &now.peers[at(now)?]))
}

/// The same of a peer that was found in both.
pub(crate) fn judge_pair((before, was): (&Status, &PeerStatus), (now, is): (&Status, &PeerStatus)) -> Option<Limit> {
    let elapsed = now.uptime_s - before.uptime_s;
    if elapsed < APART_S || is.tx_bytes < was.tx_bytes || is.paths.is_empty() {
        return None;
    }
    let look = Look { was, is, links: &now.links, elapsed };
    let paths: Vec<PathLimit> = is.paths.iter().map(|path| look.path(path)).collect();
    // What a speed test sends is load as any other.
    let filler = |peer: &PeerStatus| peer.paths.iter().map(|path| path.load.filler_delivered_bytes).sum::<u64>();
    let rate_mbps = mbps(is.tx_bytes - was.tx_bytes + filler(is).saturating_sub(filler(was)), elapsed);
    let busy = (now.packet_busy_s - before.packet_busy_s) / elapsed;
    let cause = look.cause(rate_mbps, busy);
    let worst = paths.iter().map(|path| path.reason).filter(|reason| *reason < Reason::Standby).min();
    let limits = |path: &&PathLimit| cause == Cause::Links && Some(path.reason) == worst;
    let links = paths.iter().filter(limits).map(|path| path.link.clone()).collect();
    let text = words::sentence(cause, busy, &paths);
    Some(Limit { cause, links, text, rate_mbps, paths })
}

/// A peer at two moments.
struct Look<'a> {
    was: &'a PeerStatus,
    is: &'a PeerStatus,
    links: &'a [LinkStatus],
    elapsed: f64,
}

impl Look<'_> {
    fn cause(&self, rate_mbps: f64, busy: f64) -> Cause {
        let used: Vec<&PathStatus> = self.is.paths.iter().filter(|path| self.carries(path)).collect();
        let Some(fastest) = used.iter().min_by(|one, other| one.load.delay_ms.total_cmp(&other.load.delay_ms)) else {
            return Cause::Links;
        };
        let mut full = used.iter().filter(|path| self.is_full(path)).peekable();
        if rate_mbps < IDLE_MBPS && self.is.queued_bytes == 0 {
            Cause::Nothing
        } else if busy >= BUSY {
            Cause::Processor
        } else if !self.is_full(fastest) {
            Cause::Sender
        } else if full.peek().is_some() && full.all(|path| path.load.shares_queue) {
            Cause::CommonLine
        } else {
            Cause::Links
        }
    }

    /// Whether a bulk flow's packets go by it.
    fn carries(&self, path: &PathStatus) -> bool {
        self.works(path) && !path.load.barred && path.live.active_set && path.metric == self.tier()
    }

    /// A path is suspected for moments while it works: only one that was so before does not.
    fn works(&self, path: &PathStatus) -> bool {
        let suspect = |path: &PathStatus| path.state == PathState::Suspect;
        path.state == PathState::Active || suspect(path) && !self.before(path).is_some_and(suspect)
    }

    /// The lowest metric of a path that works.
    fn tier(&self) -> u16 {
        let working = self.is.paths.iter().filter(|path| self.works(path) && !path.load.barred);
        working.map(|path| path.metric).min().unwrap_or(0)
    }

    /// The same path in the document before.
    fn before(&self, path: &PathStatus) -> Option<&PathStatus> {
        self.was.paths.iter().find(|was| was.live.id == path.live.id && was.name == path.name)
    }

    fn is_full(&self, path: &PathStatus) -> bool {
        let idle = self.before(path).map_or(self.elapsed, |was| path.load.idle_s - was.load.idle_s);
        idle / self.elapsed < FULL_IDLE
    }

    /// What it sent, in Mbit/s.
    fn rate(&self, path: &PathStatus) -> f64 {
        let sent = path.tx_bytes.saturating_sub(self.before(path).map_or(path.tx_bytes, |was| was.tx_bytes));
        mbps(sent, self.elapsed)
    }

    fn path(&self, path: &PathStatus) -> PathLimit {
        let (link, rate) = (self.label(path), self.rate(path));
        let configured = self.links.iter().find(|link| link.name == path.name);
        let most = configured.and_then(|link| link.max_rate_mbps);
        let full = self.is_full(path);
        let reason = match path {
            _ if path.metric > self.tier() => Reason::Standby,
            _ if !self.works(path) => Reason::Down,
            _ if path.load.barred => Reason::DataCap,
            _ if most.is_some_and(|most| rate >= most * HELD) => Reason::MaxRate,
            _ if path.loss_pct >= LOSS_PCT => Reason::Loss,
            _ if !path.live.active_set => Reason::LeftOut,
            _ if full && rate < path.load.peak_mbps * FADED => Reason::Faded,
            _ if full => Reason::Full,
            _ => Reason::Room,
        };
        PathLimit {
            id: path.live.id.unwrap_or_default(),
            link,
            rate_mbps: rate,
            reason,
            text: words::clause(reason, path, rate, most),
        }
    }

    /// A portal that is called has one name for all that call there.
    fn label(&self, path: &PathStatus) -> String {
        let namesakes = self.is.paths.iter().filter(|other| other.name == path.name).count();
        path.endpoint.clone().filter(|_| namesakes > 1).unwrap_or_else(|| path.name.clone())
    }
}

fn mbps(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 * BITS_PER_BYTE / BITS_PER_MBIT / seconds
}
