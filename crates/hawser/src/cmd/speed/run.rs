//! One direction: it is ordered, watched in the status, and ended.
//!
//! The portal's status is its own clock: rates are differences between two documents. The first part of a run finds the
//! rates out and is not counted.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use hawser_portal::api::{
    Client, ClientError, Deed, PathState, PathStatus, PeerStatus, SpeedDirection, SpeedOrder, Status,
};
use hawser_portal::limits;

use super::report::{DirectionReport, LinkReport};
use crate::cmd::output::unanswered;
use crate::failure::Failure;

/// From one look to the next: as often as the portal makes a status.
const LOOK: Duration = Duration::from_millis(200);
/// The part of a run that is not counted: a path's rate is found in some round trips.
const RAMP: f64 = 0.4;
/// A run whose bytes do not grow for this long is over: what was under way has come, and a satellite's round trip has
/// passed.
const STILL: Duration = Duration::from_millis(1_200);
/// What a run may take beyond its time to begin and to come to rest.
const GRACE: Duration = Duration::from_secs(2);
const BITS_PER_BYTE: f64 = 8.0;
const BITS_PER_MBIT: f64 = 1e6;

/// A run of one direction. Plain data.
pub struct Run<'a> {
    pub socket: &'a Path,
    pub peer: &'a str,
    pub link: Option<&'a str>,
    pub direction: SpeedDirection,
    pub seconds: u64,
    pub bytes: u64,
    /// Nothing is said meanwhile.
    pub quiet: bool,
}

impl Run<'_> {
    /// Loads, looks, and ends it.
    pub fn measure(&self) -> Result<DirectionReport, Failure> {
        let idle = self.status()?;
        self.order(Deed::Speed(SpeedOrder {
            peer: self.peer.to_owned(),
            link: self.link.map(str::to_owned),
            direction: self.direction,
            milliseconds: self.seconds * 1_000,
            bytes: self.bytes,
        }))?;
        let watched = self.watch(idle);
        // Where it ended by itself there is nothing to end; and what went wrong first is told.
        let _ = Client::order(self.socket, Deed::SpeedEnd);
        let looks = watched?;
        Ok(self.judge(&looks))
    }

    /// Every status from the one before the load to the last that shows some.
    fn watch(&self, idle: Status) -> Result<Vec<Status>, Failure> {
        let start = Instant::now();
        let most = Duration::from_secs(self.seconds) + GRACE;
        let (mut looks, mut grew) = (vec![idle], Instant::now());
        while start.elapsed() < most && grew.elapsed() < STILL {
            sleep(LOOK);
            self.order(Deed::SpeedOn)?;
            let status = self.status()?;
            if self.peer(&status).is_some_and(|peer| peer.speed_refused) && self.direction == SpeedDirection::Down {
                let error = format!("measure speed: {} does not send now", self.peer);
                return Err(Failure::failed(error).hint("another test is on there, or there were many: wait a minute"));
            }
            let last = looks.last().map_or(0, |last| self.total(last));
            if self.total(&status) > last {
                grew = Instant::now();
                self.show(start.elapsed(), &looks[0], &status);
                looks.push(status);
            }
        }
        self.clear();
        Ok(looks)
    }

    fn judge(&self, looks: &[Status]) -> DirectionReport {
        let (first, last) = (&looks[0], &looks[looks.len() - 1]);
        // What grew before the second document had begun at some moment after the first.
        let begun = looks.get(1).unwrap_or(first);
        let from = begun.uptime_s + (last.uptime_s - begun.uptime_s) * RAMP;
        let steady = looks.iter().find(|look| look.uptime_s >= from).unwrap_or(first);
        let elapsed = last.uptime_s - steady.uptime_s;
        let loaded = looks.iter().filter(|look| look.uptime_s >= from);
        let loaded: Vec<&PeerStatus> = loaded.filter_map(|look| self.peer(look)).collect();
        let paths = |status| self.peer(status).map_or(&[][..], |peer| &peer.paths[..]);
        let links: Vec<LinkReport> = paths(last)
            .iter()
            .filter(|path| self.link.is_none_or(|link| path.name == link))
            .map(|path| {
                let since = same(paths(steady), path).map_or(0, |was| self.count(was));
                let trips = loaded.iter().filter_map(|peer| same(&peer.paths, path)?.rtt_ms);
                LinkReport {
                    link: path.name.clone(),
                    rate_mbps: mbps(self.count(path).saturating_sub(since), elapsed),
                    rtt_idle_ms: same(paths(first), path).and_then(|path| path.live.rtt_min_ms.or(path.rtt_ms)),
                    rtt_loaded_ms: trips.max_by(f64::total_cmp),
                }
            })
            .collect();
        let limit = limits::judge(steady, last, self.peer).filter(|_| self.direction == SpeedDirection::Up);
        DirectionReport {
            direction: self.direction,
            rate_mbps: links.iter().map(|link| link.rate_mbps).sum(),
            bytes: self.total(last).saturating_sub(self.total(first)),
            limit: limit.map_or_else(|| self.down_limit(last, &links), |limit| limit.text),
            links,
        }
    }

    /// Of what comes only the peer knows what waits; here is known which link brought how much, and why one brought
    /// nothing.
    fn down_limit(&self, last: &Status, links: &[LinkReport]) -> String {
        let paths = self.peer(last).map_or(&[][..], |peer| &peer.paths[..]);
        let tier = paths.iter().filter(|path| path.state == PathState::Active).map(|path| path.metric).min();
        let clause = |report: &LinkReport| {
            let path = paths.iter().find(|path| path.name == report.link);
            let most = last.links.iter().find(|link| link.name == report.link).and_then(|link| link.max_rate_mbps);
            let why = match path {
                Some(path) if path.state != PathState::Active => format!("is {}", path.state),
                Some(path) if path.load.barred => "carries nothing: its data cap is reached".to_owned(),
                Some(path) if self.link.is_none() && Some(path.metric) > tier => {
                    format!("stands by: its metric is {}", path.metric)
                }
                _ if most.is_some_and(|most| report.rate_mbps >= most * limits::HELD) => {
                    format!("is held to its max_rate of {} Mbit/s", most.unwrap_or_default())
                }
                _ => format!("is full at {:.1} Mbit/s", report.rate_mbps),
            };
            format!("{} {why}", report.link)
        };
        let clauses: Vec<String> = links.iter().map(clause).collect();
        format!("the links: {}", clauses.join("; "))
    }

    fn count(&self, path: &PathStatus) -> u64 {
        match self.direction {
            SpeedDirection::Down => path.load.filler_received_bytes,
            SpeedDirection::Up => path.load.filler_delivered_bytes,
        }
    }

    fn total(&self, status: &Status) -> u64 {
        self.peer(status).map_or(0, |peer| peer.paths.iter().map(|path| self.count(path)).sum())
    }

    fn peer<'s>(&self, status: &'s Status) -> Option<&'s PeerStatus> {
        status.peers.iter().find(|peer| peer.name == self.peer)
    }

    fn status(&self) -> Result<Status, Failure> {
        Client::status(self.socket).map_err(|error| unanswered(error, "up", "speed"))
    }

    fn order(&self, deed: Deed) -> Result<(), Failure> {
        Client::order(self.socket, deed).map(drop).map_err(|error| {
            if matches!(&error, ClientError::Refused { reason, .. } if reason.contains("version cannot")) {
                let old = format!("measure speed: {} runs a version of hawser that has no speed test", self.peer);
                return Failure::failed(old).hint("install the same version of hawser on both sides");
            }
            unanswered(error, "up", "speed")
        })
    }

    /// On a terminal the rate of the moment, in one line.
    fn show(&self, elapsed: Duration, first: &Status, now: &Status) {
        if !self.quiet && io::stderr().is_terminal() {
            let rate = mbps(self.total(now).saturating_sub(self.total(first)), elapsed.as_secs_f64());
            let _ = write!(io::stderr(), "\r{}: {:.0} s, {rate:.1} Mbit/s  ", self.direction, elapsed.as_secs_f64());
        }
    }

    fn clear(&self) {
        if !self.quiet && io::stderr().is_terminal() {
            let _ = write!(io::stderr(), "\r{:40}\r", "");
        }
    }
}

/// The same path in another document.
fn same<'p>(paths: &'p [PathStatus], path: &PathStatus) -> Option<&'p PathStatus> {
    paths.iter().find(|was| was.live.id == path.live.id && was.name == path.name)
}

fn mbps(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * BITS_PER_BYTE / BITS_PER_MBIT / seconds } else { 0.0 }
}
