//! Rates from counters, one after the other, as sparklines show them.
//!
//! A counter that goes back, or a portal younger than before, began anew: that interval has no rate.

use std::collections::{HashMap, VecDeque};

use hawser_portal::api::{PathStatus, Status};

/// Rates kept of each counter: what the widest terminal shows.
const KEPT: usize = 240;

/// What is counted. Plain value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// A peer's inner packets.
    Peer(String),
    /// A path's datagrams: of which peer, by which link, and at which place, as a link may have several paths.
    Path(String, String, usize),
    /// The datagrams of all paths of a link.
    Link(String),
}

impl Key {
    /// That of a path.
    pub fn of_path(peer: &str, path: &PathStatus) -> Self {
        Self::Path(peer.to_owned(), path.name.clone(), path.live.place)
    }
}

/// Rates of one thing, in bytes per second, the newest last. Empty at first; plain data.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    /// What came.
    pub received: VecDeque<u64>,
    /// What went.
    pub sent: VecDeque<u64>,
    counters: (u64, u64),
    /// Whether it is there still.
    seen: bool,
}

impl Rates {
    /// The newest, received and sent; zero where there is none.
    pub fn newest(&self) -> (u64, u64) {
        let last = |rates: &VecDeque<u64>| rates.back().copied().unwrap_or(0);
        (last(&self.received), last(&self.sent))
    }

    /// Both directions together.
    pub fn both(&self) -> impl DoubleEndedIterator<Item = u64> + '_ {
        self.received.iter().zip(&self.sent).map(|(received, sent)| received + sent)
    }

    fn see(&mut self, counters: (u64, u64), seconds: Option<f64>) {
        let grown = |now: u64, before: u64| now.checked_sub(before);
        let (before, seconds) = (self.counters, seconds.filter(|seconds| *seconds > 0.0));
        if let (Some(received), Some(sent), Some(seconds)) =
            (grown(counters.0, before.0), grown(counters.1, before.1), seconds)
        {
            for (rates, bytes) in [(&mut self.received, received), (&mut self.sent, sent)] {
                if rates.len() == KEPT {
                    rates.pop_front();
                }
                rates.push_back((bytes as f64 / seconds) as u64);
            }
        }
        (self.counters, self.seen) = (counters, true);
    }
}

/// The rates of everything that a status counts. Empty at first; the model owns it.
#[derive(Clone, Debug, Default)]
pub struct Series {
    rates: HashMap<Key, Rates>,
    uptime_s: f64,
}

impl Series {
    /// Takes a status in: one more rate of each counter that was there before.
    pub fn see(&mut self, status: &Status) {
        let since = status.uptime_s - self.uptime_s;
        self.uptime_s = status.uptime_s;
        self.rates.values_mut().for_each(|rates| rates.seen = false);
        let mut links: HashMap<&str, (u64, u64)> = HashMap::new();
        for peer in &status.peers {
            self.count(Key::Peer(peer.name.clone()), (peer.rx_bytes, peer.tx_bytes), since);
            for path in &peer.paths {
                self.count(Key::of_path(&peer.name, path), (path.rx_bytes, path.tx_bytes), since);
                let link = links.entry(&path.name).or_default();
                *link = (link.0 + path.rx_bytes, link.1 + path.tx_bytes);
            }
        }
        for (link, counters) in links {
            self.count(Key::Link(link.to_owned()), counters, since);
        }
        self.rates.retain(|_, rates| rates.seen);
    }

    fn count(&mut self, key: Key, counters: (u64, u64), since: f64) {
        let known = self.rates.contains_key(&key);
        self.rates.entry(key).or_default().see(counters, known.then_some(since));
    }

    /// The rates of one thing, if it is there.
    pub fn of(&self, key: &Key) -> Option<&Rates> {
        self.rates.get(key)
    }
}
