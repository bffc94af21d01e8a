//! The sender of a stream.
//!
//! 1. `receive` takes what comes from the receiver: the handshake's answers (here), acknowledgements ([`ack`]).
//! 2. An acknowledgement is judged ([`recovery`]): nothing new, a loss, a repair, or all of it in vain.
//! 3. `poll` does what is due: handshakes, timers ([`timers`]), then sends what may be sent ([`transmit`]).
//! 4. `deadline` says when it has something to do by itself.

mod ack;
mod recovery;
mod timers;
mod transmit;

use super::bbr::Bbr;
use super::cubic::Cubic;
use super::hosts::Line;
use super::rack::Rack;
use super::rate::Sampler;
use super::rtt::Rtt;
use super::scoreboard::{Delivered, Scoreboard};
use super::segment::{ACK, DATA_HEADERS, Header, SYN, TIMESTAMPS_LEN};
use super::window::{Control, State, View, Window};
use super::{Congestion, SCALE, SYN_TIMEOUT, Transfer, stamp};
use crate::random::Seeded;
use hawser_core::units::Time;
use std::time::Duration;
use timers::Timer;

/// The window on a SYN, bytes: what Linux offers before it scales.
const SYN_WINDOW: u16 = 64_240;

/// Where the connection stands.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Phase {
    /// It waits for its time, or to be asked.
    Idle,
    /// Its SYN, or the answer to one, is out: since when, and how many were sent.
    Opening(Time, u32),
    /// It is open.
    Open,
}

/// What happened to a sender. Nothing at first. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Story {
    /// Segments retransmitted.
    pub resent: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Times that fast recovery began.
    pub recoveries: u64,
    /// Reductions that were undone, because nothing had been lost.
    pub undone: u64,
    /// Tail loss probes.
    pub probes: u64,
}

/// How a reduction may be undone (RFC 3522, RFC 3708). A plain value.
#[derive(Copy, Clone, Debug, Default)]
struct Undo {
    /// Acknowledged when it began; `None`: there is nothing to undo.
    marker: Option<u64>,
    /// Segments retransmitted since that were not received twice; `None`: none was retransmitted.
    open: Option<u32>,
    /// The clock of timestamps when the first was retransmitted; zero: none.
    first_resent: u32,
}

/// A sender. Its host owns it.
pub struct Sender {
    plan: Transfer,
    ports: (u16, u16),
    phase: Phase,
    /// Sequence numbers of the first bytes of both directions.
    first: u32,
    peer_first: u32,
    una: u64,
    nxt: u64,
    peer_window: u64,
    echo: u32,
    board: Scoreboard,
    rtt: Rtt,
    rack: Rack,
    /// The window.
    pub window: Window,
    sampler: Sampler,
    control: Box<dyn Control>,
    paced: bool,
    state: State,
    high: u64,
    undo: Undo,
    frto: bool,
    /// Sent when the tail loss probe went; whether that was something sent before.
    probe: Option<(u64, bool)>,
    timeouts: u32,
    timer: Option<(Timer, Time)>,
    next_send: Time,
    /// Pacing holds something back until then.
    held: bool,
    last_sent: Time,
    /// Something new goes before what is lost (F-RTO).
    new_first: bool,
    dirty: bool,
    delivered: Vec<Delivered>,
    /// What happened.
    pub story: Story,
}

impl Sender {
    /// A sender with these ports (its own and the receiver's); `seed` decides what is random.
    pub fn new(plan: Transfer, ports: (u16, u16), seed: u64) -> Self {
        let mut rng = Seeded::new(seed);
        let first = rng.below(1 << 32) as u32;
        let control: Box<dyn Control> = match plan.congestion {
            Congestion::Cubic => Box::<Cubic>::default(),
            Congestion::Bbr => Box::new(Bbr::new(rng)),
        };
        Sender {
            plan,
            ports,
            phase: Phase::Idle,
            first,
            peer_first: 0,
            una: 0,
            nxt: 0,
            peer_window: 0,
            echo: 0,
            board: Scoreboard::default(),
            rtt: Rtt::default(),
            rack: Rack::default(),
            window: Window::new(0),
            sampler: Sampler::default(),
            control,
            paced: plan.congestion == Congestion::Bbr,
            state: State::Open,
            high: 0,
            undo: Undo::default(),
            frto: false,
            probe: None,
            timeouts: 0,
            timer: None,
            next_send: Time::ZERO,
            held: false,
            last_sent: Time::ZERO,
            new_first: false,
            dirty: false,
            delivered: Vec::new(),
            story: Story::default(),
        }
    }

    /// Step 1.
    pub fn receive(&mut self, now: Time, header: &Header) {
        if header.timestamps.0 != 0 {
            self.echo = header.timestamps.0;
        }
        if header.has(SYN) {
            self.on_syn(now, header);
        } else if let Phase::Opening(since, times) = self.phase {
            self.open(now, since, times);
        }
        if self.phase == Phase::Open {
            self.on_ack(now, header);
            self.dirty = true;
        }
    }

    /// Somebody asks, or answers.
    fn on_syn(&mut self, now: Time, header: &Header) {
        self.peer_first = header.sequence.wrapping_add(1);
        if let Some((mss, _)) = header.opening {
            let mss = u32::from(mss) - TIMESTAMPS_LEN as u32;
            self.window.mss = if self.window.mss == 0 { mss } else { self.window.mss.min(mss) };
        }
        match self.phase {
            Phase::Idle => self.dirty = true,
            Phase::Opening(since, times) if header.has(ACK) => self.open(now, since, times),
            _ => {}
        }
    }

    fn open(&mut self, now: Time, since: Time, times: u32) {
        if times == 1 {
            self.rtt.on_sample(now.since(since), 0, 0);
            self.rtt.on_newest(now.since(since));
        }
        (self.phase, self.dirty) = (Phase::Open, true);
        self.set_pacing();
    }

    /// Step 3.
    pub fn poll(&mut self, now: Time, line: &mut Line<'_, '_>) {
        if self.phase != Phase::Open {
            return self.open_if_due(now, line);
        }
        if let Some((timer, _)) = self.timer.filter(|(_, at)| *at <= now) {
            self.on_timer(now, timer, line);
        }
        if std::mem::take(&mut self.dirty) || self.held && self.next_send <= now {
            self.transmit(now, line);
        }
    }

    /// A SYN or its answer, when it is time for it.
    fn open_if_due(&mut self, now: Time, line: &mut Line<'_, '_>) {
        let times = match self.phase {
            Phase::Idle if self.plan.asked && self.dirty => 1,
            Phase::Idle if !self.plan.asked && self.plan.from <= now => 1,
            Phase::Opening(since, times) if since + SYN_TIMEOUT * (1 << (times - 1)) <= now => times + 1,
            _ => return,
        };
        // An answer's mss is the lesser of both ends'.
        let mss = line.mtu() as u32 - DATA_HEADERS as u32;
        self.window = Window::new(if self.window.mss == 0 { mss } else { self.window.mss.min(mss) });
        (self.phase, self.dirty) = (Phase::Opening(now, times), false);
        let header = Header {
            flags: if self.plan.asked { SYN | ACK } else { SYN },
            sequence: self.first.wrapping_sub(1),
            window: SYN_WINDOW,
            opening: Some((mss as u16 + TIMESTAMPS_LEN as u16, SCALE)),
            ..self.header(now)
        };
        line.send(&header, 0, 0, 0);
    }

    fn header(&self, now: Time) -> Header {
        Header {
            ports: self.ports,
            sequence: self.first.wrapping_add(self.nxt as u32),
            ack: self.peer_first,
            flags: ACK,
            window: SYN_WINDOW >> SCALE,
            timestamps: (stamp(now), self.echo),
            ..Header::default()
        }
    }

    /// Step 4.
    pub fn deadline(&self) -> Option<Time> {
        match self.phase {
            Phase::Idle => (!self.plan.asked).then_some(self.plan.from),
            Phase::Opening(since, times) => Some(since + SYN_TIMEOUT * (1 << (times - 1))),
            Phase::Open => {
                let pacing = self.held.then_some(self.next_send);
                self.timer.map(|(_, at)| at).into_iter().chain(pacing).min()
            }
        }
    }

    /// What its congestion control is shown.
    fn with_control<R>(&mut self, now: Time, ask: impl FnOnce(&mut dyn Control, &mut View<'_>) -> R) -> R {
        let mut view = View {
            now,
            in_flight: self.board.in_flight(),
            window: &mut self.window,
            rtt: &self.rtt,
            sampler: &mut self.sampler,
            una: self.una,
            nxt: self.nxt,
            state: self.state,
        };
        ask(self.control.as_mut(), &mut view)
    }

    /// The rate that Linux reckons with where the congestion control does not: twice the window a round trip in slow
    /// start, else a fifth more.
    fn set_pacing(&mut self) {
        if self.paced && self.window.pacing > 0.0 {
            return;
        }
        let factor = if self.window.cwnd < self.window.ssthresh / 2 { 2.0 } else { 1.2 };
        let rtt = self.rtt.smoothed.unwrap_or(Duration::from_millis(1)).as_secs_f64().max(1e-6);
        let in_flight = self.window.cwnd.max(self.board.out());
        self.window.pacing = factor * f64::from(self.window.mss) * f64::from(in_flight) / rtt;
    }

    /// Bytes that its application has, from the start; more than any while it has no end.
    fn available(&self, now: Time) -> u64 {
        match self.plan.bytes {
            Some(bytes) => bytes,
            None if now < self.plan.until => u64::MAX,
            None => self.nxt,
        }
    }
}
