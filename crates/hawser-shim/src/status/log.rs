//! Log lines of what the engine notices, as the original Shila had them: when a flow is established, what it is,
//! between whom, by which path, and how much of that path the connection's other flows use too.
//!
//! 1. [`Log::tell`] makes a line of a notice. 2. What is routine is told only this often a second; the rest is counted.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use hawser_scion::Fingerprint;

use super::build::shared;
use crate::engine::{Notice, Opened, Reason};
use crate::flow::{Direction, End, FlowKey, Protocol, Role};
use crate::mptcp::Token;

/// Lines of flows that come and go, at most, each [`PERIOD`]: a server with hundreds of connections a second shall not
/// fill the disk.
const LINES: u32 = 50;
/// See [`LINES`].
const PERIOD: Duration = Duration::from_secs(1);

/// Makes lines of notices. Knows no flow at first; for one thread.
#[derive(Debug, Default)]
pub struct Log {
    /// Which path each flow of MPTCP has, by its connection.
    paths: BTreeMap<Token, BTreeMap<FlowKey, Fingerprint>>,
    tokens: BTreeMap<FlowKey, Token>,
    budget: Budget,
}

/// How many lines there were in this period. Full at first. Plain data.
#[derive(Debug, Default)]
struct Budget {
    began: Option<Instant>,
    lines: u32,
}

/// What a line says of an established flow. Plain data.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Established {
    /// `main flow`, `subflow`, `flow` (plain TCP) or `udp flow`.
    pub(super) what: &'static str,
    /// Its number among its connection's flows that are there, from 1.
    pub(super) number: usize,
    /// The path as `scion showpaths` writes it, or what stands in its place.
    pub(super) path: String,
    /// ASes on it.
    pub(super) length: Option<usize>,
    /// Its interfaces that other flows of the connection cross too.
    pub(super) sharability: Option<usize>,
}

impl Log {
    /// Makes a line of a notice. Takes `Room` and `Lost` too, which are for the manager of subflows: below `info`.
    pub fn tell(&mut self, notice: &Notice, now: Instant) {
        match notice {
            Notice::Opened(opened) => {
                let established = self.opened(opened);
                self.budget.line(now, || established.tell(opened));
            }
            Notice::Closed { key, end, sent, received } => {
                self.closed(key);
                self.budget.line(now, || tell_closed(key, *end, *sent, *received));
            }
            Notice::Moved { key, from, to, because } => {
                self.moved(key, to);
                let (from, to, because) = (Shown(from), Shown(to), because.name());
                tracing::info!(local = %key.local, remote = %key.remote, %from, %to, because, "flow moved to another path");
            }
            Notice::Died { peer, path, because } => {
                let path = Shown(path);
                match because {
                    Reason::Gone => tracing::info!(%peer, %path, because = because.name(), "path is no more"),
                    _ => tracing::warn!(%peer, %path, because = because.name(), "path is dead"),
                }
            }
            Notice::Back { peer, path } => tracing::info!(%peer, path = %Shown(path), "path works again"),
            Notice::Room { token, free } => tracing::debug!(%token, free, "room for subflows"),
            Notice::Lost { token, key } => {
                tracing::info!(%token, local = %key.local, remote = %key.remote, "subflow without a path is given up");
            }
        }
    }

    /// Flows that it remembers.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.tokens.len() + self.paths.len()
    }

    pub(super) fn opened(&mut self, opened: &Opened) -> Established {
        let Opened { key, role, token, path, .. } = opened;
        let mut established = Established {
            what: match role {
                Role::Plain if key.protocol == Protocol::Udp => "udp flow",
                Role::Plain => "flow",
                Role::Main => "main flow",
                Role::Subflow => "subflow",
            },
            number: 1,
            path: path.as_ref().map_or_else(|| "chosen by the peer".to_owned(), |path| Shown(path).to_string()),
            length: path.as_ref().map(|path| path.interfaces().len() / 2 + 1),
            sharability: None,
        };
        if let Some(token) = token {
            let flows = self.paths.entry(*token).or_default();
            flows.insert(*key, path.clone().unwrap_or_default());
            self.tokens.insert(*key, *token);
            let others = flows.iter().filter(|(other, _)| *other != key).map(|(_, path)| path);
            established.sharability = path.as_ref().map(|path| shared(path, others));
            established.number = flows.len();
        }
        established
    }

    fn closed(&mut self, key: &FlowKey) {
        let Some(token) = self.tokens.remove(key) else { return };
        if let Some(flows) = self.paths.get_mut(&token) {
            flows.remove(key);
            if flows.is_empty() {
                self.paths.remove(&token);
            }
        }
    }

    fn moved(&mut self, key: &FlowKey, to: &Fingerprint) {
        let flows = self.tokens.get(key).and_then(|token| self.paths.get_mut(token));
        if let Some(path) = flows.and_then(|flows| flows.get_mut(key)) {
            *path = to.clone();
        }
    }
}

impl Established {
    fn tell(&self, opened: &Opened) {
        let Opened { key, asked, token, peer, .. } = opened;
        let Established { what, number, path, length, sharability } = self;
        let token = token.map(|token| token.to_string());
        let role = match asked {
            Direction::Out => "client",
            Direction::In => "server",
        };
        tracing::info!(
            role,
            token,
            flow = number,
            local = %key.local,
            remote = %key.remote,
            %peer,
            %path,
            length,
            sharability,
            "{what} established"
        );
    }
}

fn tell_closed(key: &FlowKey, end: Option<End>, sent: u64, received: u64) {
    let how = match end {
        Some(End::Closed) => "closed",
        Some(End::Reset(Direction::Out)) => "reset",
        Some(End::Reset(Direction::In)) => "reset by the peer",
        None => "silent for too long",
    };
    tracing::info!(local = %key.local, remote = %key.remote, how, sent, received, "flow ended");
}

impl Budget {
    /// Lets a line through, or counts it.
    fn line(&mut self, now: Instant, tell: impl FnOnce()) {
        if self.began.is_none_or(|began| now.saturating_duration_since(began) >= PERIOD) {
            if self.lines > LINES {
                tracing::info!(lines = self.lines - LINES, "flows came and went too fast for the log: lines left out");
            }
            *self = Budget { began: Some(now), lines: 0 };
        }
        self.lines += 1;
        if self.lines <= LINES {
            tell();
        }
    }
}

/// A path as people read it.
struct Shown<'p>(&'p Fingerprint);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.interfaces() {
            [] => f.write_str("within the AS"),
            _ => self.0.fmt(f),
        }
    }
}
