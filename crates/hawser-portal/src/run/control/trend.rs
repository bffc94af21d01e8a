//! What only time tells of paths: their best rate, which of them share a queue, and what limits them.
//!
//! Each report adds a moment. A document each second is kept, and the present one is judged against one two seconds
//! old.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::api::{PathState, PathStatus, PeerStatus, Status};
use crate::limits;

/// Documents are kept this far apart, in seconds, and this many of them: what is judged is two to three seconds long.
const KEPT_EVERY_S: f64 = 1.0;
const KEPT: usize = 3;
/// Moments of which a path's delays are remembered: at five a second those of five seconds.
const MOMENTS: usize = 25;
/// A rate counts as a path's best for this long, in seconds.
const PEAK_S: f64 = 60.0;
/// Best rates are kept for spells of this length, in seconds: a dozen of them.
const SPELL_S: f64 = 5.0;

/// One path over time. Nothing at first; [`Trend`] owns it.
#[derive(Debug, Default)]
struct Past {
    delays: VecDeque<f64>,
    /// The best rates of spells, with when they began.
    peaks: VecDeque<(f64, f64)>,
}

/// What was seen of all paths. Nothing at first; the control thread owns it.
#[derive(Debug, Default)]
pub struct Trend {
    kept: VecDeque<Status>,
    paths: BTreeMap<(String, Option<u32>), Past>,
}

impl Trend {
    /// Adds a moment, and to the document what the past tells.
    pub fn complete(&mut self, status: &mut Status) {
        let paths =
            status.peers.iter().flat_map(|peer| peer.paths.iter().map(|path| (peer.name.as_str(), path.live.id)));
        let present: BTreeSet<(&str, Option<u32>)> = paths.collect();
        self.paths.retain(|(peer, id), _| present.contains(&(peer.as_str(), *id)));
        let now = status.uptime_s;
        for peer in &mut status.peers {
            for path in peer.paths.iter_mut().filter(|path| path.state == PathState::Active) {
                let past = self.paths.entry((peer.name.clone(), path.live.id)).or_default();
                past.add(now, path);
                path.load.peak_mbps = past.peaks.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
            }
            let delays = |path: &PathStatus| {
                let past = self.paths.get(&(peer.name.clone(), path.live.id))?;
                Some(past.delays.iter().copied().collect::<Vec<f64>>())
            };
            let delays: Vec<Vec<f64>> = peer.paths.iter().map(|path| delays(path).unwrap_or_default()).collect();
            for (at, path) in peer.paths.iter_mut().enumerate() {
                let others = delays.iter().enumerate().filter(|(other, _)| *other != at);
                path.load.shares_queue = others.map(|(_, other)| other).any(|o| limits::shares_queue(&delays[at], o));
            }
        }
        self.judge(status);
    }

    fn judge(&mut self, status: &mut Status) {
        if let Some(before) = self.kept.front() {
            let known: BTreeMap<&str, &PeerStatus> =
                before.peers.iter().map(|peer| (peer.name.as_str(), peer)).collect();
            let one = |is: &PeerStatus| {
                let was = known.get(is.name.as_str())?;
                limits::judge_pair((before, was), (status, is))
            };
            let verdicts: Vec<_> = status.peers.iter().map(one).collect();
            status.peers.iter_mut().zip(verdicts).for_each(|(peer, limit)| peer.limit = limit);
        }
        if self.kept.back().is_none_or(|last| status.uptime_s - last.uptime_s >= KEPT_EVERY_S) {
            if self.kept.len() == KEPT {
                self.kept.pop_front();
            }
            self.kept.push_back(status.clone());
        }
    }
}

impl Past {
    fn add(&mut self, now: f64, path: &PathStatus) {
        if self.delays.len() == MOMENTS {
            self.delays.pop_front();
        }
        self.delays.push_back(path.load.delay_ms);
        match self.peaks.back_mut() {
            Some((since, rate)) if now - *since < SPELL_S => *rate = rate.max(path.rate_mbps),
            _ => self.peaks.push_back((now, path.rate_mbps)),
        }
        while self.peaks.front().is_some_and(|(since, _)| now - since > PEAK_S) {
            self.peaks.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A document with one peer: each path's rate and delay.
    fn status(uptime_s: f64, paths: &[(f64, f64)]) -> Status {
        let path = |(id, (rate_mbps, delay_ms)): (usize, &(f64, f64))| {
            let mut load = serde_json::to_value(crate::api::PathLoad::default()).expect("plain data");
            let live = crate::api::Live { id: Some(id as u32), ..Default::default() };
            load["delay_ms"] = (*delay_ms).into();
            json!({"name": format!("link{id}"), "transport": "udp", "state": "active", "metric": 0, "rtt_ms": 20.0,
                   "rate_mbps": rate_mbps, "loss_pct": 0.0, "cwnd_bytes": 0, "mtu": 0, "rx_bytes": 0, "tx_bytes": 0,
                   "live": live, "load": load})
        };
        let paths: Vec<_> = paths.iter().enumerate().map(path).collect();
        let peer = json!({"name": "hub", "handshake_age_s": 1.0, "rx_bytes": 0, "tx_bytes": 0, "paths": paths});
        let whole = json!({"version": "", "uptime_s": uptime_s, "peers": [peer], "drops": {}});
        serde_json::from_value(whole).expect("a status")
    }

    fn completed(trend: &mut Trend, uptime_s: f64, paths: &[(f64, f64)]) -> PeerStatus {
        let mut status = status(uptime_s, paths);
        trend.complete(&mut status);
        status.peers.remove(0)
    }

    #[test]
    fn the_best_rate_of_a_minute_is_kept_and_no_longer() {
        let mut trend = Trend::default();
        let peak = |trend: &mut Trend, at, rate| completed(trend, at, &[(rate, 0.0)]).paths[0].load.peak_mbps;
        assert_eq!(peak(&mut trend, 0.0, 20.0), 20.0);
        assert_eq!(peak(&mut trend, 10.0, 5.0), 20.0);
        assert_eq!(peak(&mut trend, 59.0, 5.0), 20.0);
        assert_eq!(peak(&mut trend, 70.0, 5.0), 5.0);
    }

    #[test]
    fn paths_whose_delays_move_as_one_share_a_queue_and_a_verdict_needs_a_second() {
        let mut trend = Trend::default();
        let mut last = None;
        for moment in 0..30 {
            let queue = 5.0 * f64::from(moment).sin();
            let other = 5.0 * f64::from(moment + 2).sin();
            let peer =
                completed(&mut trend, 0.2 * f64::from(moment), &[(1.0, queue), (1.0, 30.0 + queue), (1.0, other)]);
            assert_eq!(peer.limit.is_some(), moment >= 5, "{moment}");
            last = Some(peer);
        }
        let shares: Vec<bool> = last.expect("a peer").paths.iter().map(|path| path.load.shares_queue).collect();
        assert_eq!(shares, [true, true, false]);
    }
}
