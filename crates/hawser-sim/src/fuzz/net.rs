//! The network of the fuzzer: it loses, delays, reorders and repeats, and remembers some of what passed.

use super::portal::{HOMES, HUB, LINKS};
use crate::random::Seeded;
use hawser_core::units::Time;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

/// Datagrams that whoever sits on the way remembers.
const RECORDED: usize = 64;
/// Datagrams under way at once; more are lost, as in any queue.
const UNDER_WAY: usize = 20_000;

/// A datagram under way.
#[derive(Clone, Debug)]
pub struct Flight {
    /// Who sent it, by which of its links.
    pub from: usize,
    pub link: usize,
    pub source: SocketAddr,
    pub to: SocketAddr,
    pub bytes: Vec<u8>,
}

/// A home's link, both ways alike but for what is lost.
#[derive(Copy, Clone)]
pub struct Line {
    /// Shares that are lost: of what the home sends, and of what it is sent.
    pub loss: [f64; 2],
    pub delay: Duration,
    pub jitter: Duration,
    pub twice: f64,
    /// Longer datagrams are lost without a word.
    pub longest: usize,
}

impl Line {
    const WHOLE: Line = Line {
        loss: [0.0; 2],
        delay: Duration::from_millis(15),
        jitter: Duration::ZERO,
        twice: 0.0,
        longest: usize::MAX,
    };

    /// One that is as the draw has it.
    pub fn drawn(rng: &mut Seeded) -> Self {
        let mut loss = || [0.0, 0.0, 0.01, 0.1, 0.4, 1.0][rng.below(6) as usize];
        let loss = [loss(), loss()];
        let delay = Duration::from_secs_f64(rng.log_between(1e-4, 0.6));
        let jitter = if rng.chance(0.5) { rng.up_to(delay) } else { Duration::ZERO };
        let twice = if rng.chance(0.2) { 0.2 } else { 0.0 };
        let longest = if rng.chance(0.2) { 600 + rng.below(900) as usize } else { usize::MAX };
        Line { loss, delay, jitter, twice, longest }
    }
}

/// All lines, and what is on them.
pub struct Network {
    pub lines: [[Line; LINKS]; HOMES],
    flights: BTreeMap<(Time, u64), Flight>,
    pub recorded: VecDeque<Flight>,
    order: u64,
}

impl Network {
    pub fn new(rng: &mut Seeded) -> Self {
        let lines = std::array::from_fn(|_| std::array::from_fn(|_| Line::drawn(rng)));
        Network { lines, flights: BTreeMap::new(), recorded: VecDeque::new(), order: 0 }
    }

    /// A link of a home is whole from now on, or is cut.
    pub fn heal(&mut self, home: usize, link: usize, whole: bool) {
        let cut = Line { loss: [1.0; 2], ..Line::WHOLE };
        self.lines[home - 1][link] = if whole { Line::WHOLE } else { cut };
    }

    /// A portal sends this.
    pub fn carry(&mut self, now: Time, flight: Flight, rng: &mut Seeded) {
        let line = match flight.from {
            HUB => line_of(flight.to).map(|(home, link)| (self.lines[home][link], 1)),
            home => Some((self.lines[home - 1][flight.link], 0)),
        };
        // What goes to nobody's line goes to the liar, or nowhere.
        let (line, way) = line.unwrap_or((Line::WHOLE, 1));
        if rng.below(8) == 0 {
            if self.recorded.len() == RECORDED {
                self.recorded.pop_front();
            }
            self.recorded.push_back(flight.clone());
        }
        if rng.chance(line.loss[way]) || flight.bytes.len() > line.longest {
            return;
        }
        if rng.chance(line.twice) {
            let later = rng.up_to(line.jitter);
            self.put(now + line.delay + later, flight.clone());
        }
        let later = rng.up_to(line.jitter);
        self.put(now + line.delay + later, flight);
    }

    /// It arrives then.
    pub fn put(&mut self, at: Time, flight: Flight) {
        if self.flights.len() < UNDER_WAY {
            self.order += 1;
            self.flights.insert((at, self.order), flight);
        }
    }

    pub fn due(&self) -> Option<Time> {
        self.flights.first_key_value().map(|((at, _), _)| *at)
    }

    pub fn arrived(&mut self, now: Time) -> Option<Flight> {
        self.due().filter(|at| *at <= now)?;
        self.flights.pop_first().map(|(_, flight)| flight)
    }
}

/// The home and link that an address is of, whatever its port.
fn line_of(address: SocketAddr) -> Option<(usize, usize)> {
    let SocketAddr::V4(address) = address else { return None };
    match address.ip().octets() {
        [192, 0, home, link] if (1..=HOMES).contains(&usize::from(home)) => {
            Some((usize::from(home) - 1, usize::from(link) - 1)).filter(|(_, link)| *link < LINKS)
        }
        _ => None,
    }
}
