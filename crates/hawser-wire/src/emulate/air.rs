//! Turns on a half-duplex medium, as arithmetic on given times.
//!
//! 1. Once the medium is free and somebody waits, all who wait by then contend.
//! 2. By chance each has a number of slots to wait: the least goes first, the others keep what they have left. In turns
//!    the one goes whose last turn is longest ago.
//! 3. A turn takes the medium's overhead and the time of its packets. Whoever has the same number of slots has taken
//!    the air too: nothing gets through, and both draw again from a window twice as large.
//!
//! ```text
//!            somebody waits                         it ends
//!   ┌──────┐ ───────────────► ┌──────┐ ─────────────────────────► ┌──────┐
//!   │ free │                  │ turn │  packets go, or collided   │ free │
//!   └──────┘                  └──────┘                            └──────┘
//! ```

use std::time::Duration;

use super::dice::Dice;
use super::medium::{Backoff, Medium};
use super::pipe::Pipe;
use crate::clock::Moment;

/// The medium as its thread sees it. Starts free. One owner: the thread.
#[derive(Debug)]
pub(crate) struct Air {
    medium: Medium,
    dice: Dice,
    /// When the turn under way ends, and whether it is in vain.
    turn: Option<(Moment, bool)>,
    /// When the last turn ended.
    free_since: Moment,
    turns: u64,
}

/// A way's part in the contention. Starts without a draw. One owner: the way.
#[derive(Debug, Default)]
pub(crate) struct Contender {
    /// Slots it has still to wait, once drawn.
    slots: Option<u32>,
    /// Collisions since its last success.
    collided: u32,
    /// Which turn of the medium was its last.
    last_turn: u64,
    /// It is its turn.
    sending: bool,
}

impl Contender {
    /// Slots it has to wait: those it has left, or new ones.
    fn slots(&mut self, backoff: &Backoff, dice: &mut Dice) -> u32 {
        let window = (0..self.collided).fold(backoff.window, |window, _| (2 * window + 1).min(backoff.window_most));
        *self
            .slots
            .get_or_insert_with(|| u32::try_from(dice.below(window as usize + 1)).expect("below a number of 32 bits"))
    }
}

impl Air {
    /// A free medium.
    pub(crate) fn new(medium: Medium) -> Self {
        let dice = Dice::new(medium.access().seed);
        Self { medium, dice, turn: None, free_since: Moment::default(), turns: 0 }
    }

    /// Gives and ends turns up to now. Pipes off the medium are left alone.
    pub(crate) fn advance(&mut self, pipes: &mut [Pipe], now: Moment) {
        loop {
            match self.turn {
                Some((ends, _)) if ends > now => return,
                Some((ends, in_vain)) => self.end(pipes, ends, in_vain),
                None => {
                    let waits = on_air(pipes).filter_map(|pipe| pipe.waits_since()).min();
                    match waits {
                        Some(first) if first <= now => self.begin(pipes, self.free_since.max(first)),
                        _ => return,
                    }
                }
            }
        }
    }

    /// When `advance` will next have something to do.
    pub(crate) fn next_event(&self) -> Option<Moment> {
        self.turn.map(|(ends, _)| ends)
    }

    /// Steps 1 and 2.
    fn begin(&mut self, pipes: &mut [Pipe], free: Moment) {
        let access = self.medium.access();
        self.turns += 1;
        let after = match access.backoff {
            Some(backoff) => self.draw(pipes, free, &backoff),
            None => self.in_turn(pipes, free),
        };
        let (mut longest, mut winners) = (Duration::ZERO, 0);
        for pipe in on_air(pipes).filter(|pipe| pipe.contender.sending) {
            longest = longest.max(pipe.take_turn(free + after, access.burst));
            winners += 1;
        }
        self.turn = Some((free + after + access.overhead + longest, winners > 1));
    }

    /// Step 2 by chance: marks whose turn it is, and says after what time.
    fn draw(&mut self, pipes: &mut [Pipe], free: Moment, backoff: &Backoff) -> Duration {
        let mut least = u32::MAX;
        for pipe in contending(pipes, free) {
            least = least.min(pipe.contender.slots(backoff, &mut self.dice));
        }
        for pipe in contending(pipes, free) {
            let left = pipe.contender.slots.map_or(0, |slots| slots - least);
            pipe.contender.slots = (left > 0).then_some(left);
            pipe.contender.sending = left == 0;
        }
        backoff.slot * least
    }

    /// Step 2 in turns.
    fn in_turn(&mut self, pipes: &mut [Pipe], free: Moment) -> Duration {
        if let Some(pipe) = contending(pipes, free).min_by_key(|pipe| pipe.contender.last_turn) {
            pipe.contender.sending = true;
            pipe.contender.last_turn = self.turns;
        }
        Duration::ZERO
    }

    /// Step 3.
    fn end(&mut self, pipes: &mut [Pipe], ends: Moment, in_vain: bool) {
        for pipe in on_air(pipes).filter(|pipe| pipe.contender.sending) {
            pipe.contender.sending = false;
            pipe.contender.collided = if in_vain { pipe.contender.collided.saturating_add(1) } else { 0 };
            pipe.end_turn(ends, in_vain);
        }
        (self.turn, self.free_since) = (None, ends);
    }
}

fn on_air(pipes: &mut [Pipe]) -> impl Iterator<Item = &mut Pipe> {
    pipes.iter_mut().filter(|pipe| pipe.is_on_air())
}

fn contending(pipes: &mut [Pipe], free: Moment) -> impl Iterator<Item = &mut Pipe> {
    on_air(pipes).filter(move |pipe| pipe.waits_since().is_some_and(|since| since <= free))
}

#[cfg(test)]
mod tests;
