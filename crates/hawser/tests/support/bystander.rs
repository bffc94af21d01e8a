//! What a peer notices of an attack: flows both ways and a ping, in peace first.
//!
//! 1. [`Bystander::watch`] sends for a spell, once in peace and once under attack.
//! 2. [`Bystander::harm`] says what the attack cost beyond what docs/security.md allows.
//! 3. An [`Attack`] is what a test makes of it: figures, and what was missed.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use hawser_wire::traffic::{Ping, PingReport, UdpFlow, UdpReport};
use hawser_wire::{Namespace, Rate};
use serde_json::{Value, json};

use crate::lab::{LOCAL, Lab, REMOTE, ms, parse};

/// Of what is sent, this share must arrive (docs/security.md).
const GOODPUT: f64 = 0.9;
/// A ping may take this much longer than in peace, in ms, half of the pings at least. Promised are 5
/// (docs/security.md), which `make endure` asks for with nothing beside; in CI compilers take what is left of two
/// processors, and whoever waits for one may do so for 10 ms.
const LATER_MS: f64 = if cfg!(feature = "endure") { 5.0 } else { 15.0 };

/// Of the next flow: a program that another test starts at this moment holds a copy of the last one's socket until it
/// runs.
static PORT: AtomicU16 = AtomicU16::new(5_001);

/// Two hosts that talk through a tunnel, and their addresses there. Plain data.
#[derive(Clone, Copy)]
pub struct Talk<'a> {
    pub hosts: [&'a Namespace; 2],
    pub addresses: [&'a str; 2],
}

/// Flows both ways, and a ping beside them.
pub struct Bystander {
    flows: [UdpReport; 2],
    ping: PingReport,
}

impl Bystander {
    /// Sends for a spell between the lab's hosts.
    pub fn watch(lab: &Lab, spell: Duration) -> Bystander {
        Self::between(Talk { hosts: [&lab.local, &lab.remote], addresses: [LOCAL, REMOTE] }, spell)
    }

    /// Sends for a spell.
    pub fn between(talk: Talk, spell: Duration) -> Bystander {
        let flows = [(0, 1), (1, 0)].map(|(from, to)| {
            let flow = UdpFlow {
                from: talk.hosts[from].clone(),
                to: talk.hosts[to].clone(),
                destination: SocketAddr::new(parse(talk.addresses[to]), PORT.fetch_add(1, Ordering::Relaxed)),
                payload: 1_380,
                rate: Rate::mbit(10.0),
                duration: spell,
                linger: ms(300),
            };
            flow.start().expect("a flow")
        });
        let (from, destination) = (talk.hosts[0].clone(), parse(talk.addresses[1]));
        let ping = Ping { from, destination, interval: ms(20), duration: spell }.run().expect("a ping");
        Bystander { flows: flows.map(|flow| flow.finish().expect("a flow")), ping }
    }

    fn median_ms(&self) -> f64 {
        self.ping.round_trips().percentile(50.0).unwrap_or(f64::INFINITY)
    }

    fn shares(&self) -> [f64; 2] {
        [0, 1].map(|way: usize| self.flows[way].arrivals.len() as f64 / self.flows[way].sent as f64)
    }

    /// What an attack cost more than docs/security.md says.
    pub fn harm(&self, peace: &Bystander) -> Vec<String> {
        let mut misses: Vec<String> = self
            .shares()
            .iter()
            .filter(|share| **share < GOODPUT)
            .map(|share| format!("{share} of the datagrams"))
            .collect();
        let (now, usual) = (self.median_ms(), peace.median_ms());
        if now > usual + LATER_MS {
            misses.push(format!("a ping takes {now} ms, {usual} in peace"));
        }
        misses
    }

    pub fn figures(&self) -> Value {
        json!({ "arrived_up_and_down": self.shares(), "ping_median_ms": self.median_ms(), "pings": self.ping.sent.len(), "pings_lost": self.ping.lost() })
    }
}

/// What came of an attack.
#[must_use]
pub struct Attack {
    pub figures: Value,
    pub misses: Vec<String>,
}

impl Attack {
    /// Peace beside attack, and what is to be said of it.
    pub fn of(peace: &Bystander, attacked: &Bystander, figures: Value) -> Self {
        let figures = json!({ "peace": peace.figures(), "attacked": attacked.figures(), "attack": figures });
        Self { figures, misses: attacked.harm(peace) }
    }

    /// Notes a miss where something does not hold.
    pub fn must(&mut self, holds: bool, said: &str) {
        if !holds {
            self.misses.push(said.to_owned());
        }
    }

    /// Fails where anything was missed.
    #[allow(dead_code, reason = "each test program takes what it needs of it")]
    pub fn assert(&self) {
        eprintln!("{:#}", self.figures);
        assert!(self.misses.is_empty(), "{:#?}\n{:#}", self.misses, self.figures);
    }
}
