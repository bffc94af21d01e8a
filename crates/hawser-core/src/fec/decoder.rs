//! The receiver's part: lost packets come back.
//!
//! 1. `on_source`: a protected packet arrived; it is kept, and taken out of the repairs that cover it.
//! 2. `on_repair`: what is known already is taken out of a repair; what is left is an equation for the
//!    symbols that are missing.
//! 3. Equations are kept solved as far as they can be: each has a symbol, its pivot, that no other one has.
//! 4. An equation of one symbol is that symbol: the packet is handed out, and kept as if it had arrived.
//! 5. What is too old is forgotten, so that a peer's lies cost a fixed amount of memory and time.

use super::gf256::{add_scaled, coefficient, inverse, scale};
use super::symbol::{self, MAX_PACKET, MAX_SYMBOL, SYMBOL_HEAD, SymbolHead};
use crate::units::Time;
use crate::wire::{ProtectedFrame, RepairFrame, SymbolNumber};
use std::time::Duration;

/// Symbols that are remembered: two windows, so that a repair that comes late by a slower path still finds its own.
const MEMORY: usize = 2 * RepairFrame::MAX_COUNT as usize;
/// Equations that are kept: more than symbols can be missing in a window would be of no use.
const MAX_EQUATIONS: usize = RepairFrame::MAX_COUNT as usize;
/// When nothing came for so long, all is forgotten: long before the numbers on the wire mean others again.
const STALE: Duration = Duration::from_secs(1);

/// Where numbers begin: one wrap up, so that there are numbers before the first (0 on the wire).
const BASE: u64 = 1 << u16::BITS;

/// A packet that came back, and what its frame would have said of it.
pub(crate) type Repaired<'a> = (SymbolHead, &'a [u8]);

/// The symbols of late and the equations for missing ones. Empty at first; one session owns it.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// Symbols by the low bits of their numbers; made with the first.
    known: Vec<Known>,
    equations: Vec<Equation>,
    /// The number behind the highest that was heard of; zero at first.
    end: u64,
    /// The lowest that is not forgotten.
    oldest: u64,
    heard: Time,
    /// Something came since the last `trim`.
    busy: bool,
    /// Buffers of equations that are done.
    spare: Vec<Vec<u8>>,
}

#[derive(Debug, Default)]
struct Known {
    /// Its number plus one; zero: none.
    tag: u64,
    bytes: Vec<u8>,
}

/// A sum of missing symbols. No zero value; its decoder owns it.
#[derive(Debug)]
struct Equation {
    factors: [u8; MEMORY],
    /// A symbol with the factor one, which no other equation has.
    pivot: u64,
    sum: Vec<u8>,
}

impl Decoder {
    /// Step 1. Every packet that comes back thereby goes to `out`.
    pub fn on_source(&mut self, now: Time, frame: &ProtectedFrame<'_>, mut out: impl FnMut(Repaired<'_>)) {
        let data = &frame.data;
        if data.packet.len() > MAX_PACKET {
            return;
        }
        let number = self.place_of(now, frame.symbol);
        self.reach(number + 1);
        if self.is_forgotten(number) || self.knows(number) {
            return;
        }
        let head = SymbolHead { bucket: data.bucket, sequence: data.sequence, flags: data.flags };
        let known = &mut self.known[place(number)];
        known.tag = number + 1;
        symbol::write(&mut known.bytes, &head, &[], data.packet);
        self.take_out(number);
        self.hand_out(&mut out);
    }

    /// Step 2. Every packet that comes back thereby goes to `out`.
    pub fn on_repair(&mut self, now: Time, frame: &RepairFrame<'_>, mut out: impl FnMut(Repaired<'_>)) {
        if frame.symbol.len() > MAX_SYMBOL {
            return;
        }
        let first = self.place_of(now, frame.first);
        let end = first + u64::from(frame.count);
        self.reach(end);
        if self.is_forgotten(first) {
            return;
        }
        self.make_room();
        let mut sum = self.spare.pop().unwrap_or_default();
        sum.clear();
        sum.extend_from_slice(frame.symbol);
        let mut factors = [0; MEMORY];
        for number in first..end {
            let factor = coefficient(frame.row, number);
            if !self.knows(number) {
                factors[place(number)] = factor;
            } else if self.known[place(number)].bytes.len() <= sum.len() {
                add_scaled(&mut sum, factor, &self.known[place(number)].bytes);
            } else {
                // No sum is shorter than what it is made of.
                self.spare.push(sum);
                return;
            }
        }
        self.admit(Equation { factors, pivot: 0, sum });
        self.hand_out(&mut out);
    }

    /// Step 3: solves a new equation against the others, and the others against it.
    fn admit(&mut self, mut new: Equation) {
        for old in &self.equations {
            new.subtract(old);
        }
        let Some(pivot) = self.numbers().find(|number| new.factors[place(*number)] != 0) else {
            self.spare.push(new.sum);
            return;
        };
        new.pivot = pivot;
        let factor = inverse(new.factors[place(pivot)]);
        scale(&mut new.factors, factor);
        scale(&mut new.sum, factor);
        for old in &mut self.equations {
            old.subtract(&new);
        }
        self.equations.push(new);
    }

    /// A symbol became known: no equation has it any more.
    fn take_out(&mut self, number: u64) {
        let known = &self.known[place(number)].bytes;
        let mut homeless = None;
        for index in (0..self.equations.len()).rev() {
            let equation = &mut self.equations[index];
            let factor = std::mem::take(&mut equation.factors[place(number)]);
            if factor == 0 {
                continue;
            }
            if equation.sum.len() < known.len() {
                // One of the two is a lie; the packet is here already.
                let done = self.equations.swap_remove(index);
                self.spare.push(done.sum);
                continue;
            }
            add_scaled(&mut equation.sum, factor, known);
            if equation.pivot == number {
                homeless = Some(self.equations.swap_remove(index));
            }
        }
        if let Some(equation) = homeless {
            self.admit(equation);
        }
    }

    /// Step 4: equations of one symbol are done.
    fn hand_out(&mut self, out: &mut impl FnMut(Repaired<'_>)) {
        while let Some(index) = self.equations.iter().position(Equation::is_solved) {
            let Equation { pivot, mut sum, .. } = self.equations.swap_remove(index);
            let Some((head, packet)) = symbol::read(&sum) else {
                self.spare.push(sum);
                continue;
            };
            out((head, packet));
            let len = SYMBOL_HEAD + packet.len();
            sum.truncate(len);
            let known = &mut self.known[place(pivot)];
            known.tag = pivot + 1;
            std::mem::swap(&mut known.bytes, &mut sum);
            self.spare.push(sum);
        }
    }

    /// The full number of one on the wire; step 5, if what is known is of another time.
    fn place_of(&mut self, now: Time, number: SymbolNumber) -> u64 {
        if self.known.is_empty() {
            self.known.resize_with(MEMORY, Known::default);
        }
        if self.end == 0 || now.since(self.heard) > STALE {
            self.forget_below(self.end);
            self.end = BASE + u64::from(number.0);
            self.oldest = self.end - MEMORY as u64;
        }
        (self.heard, self.busy) = (now, true);
        number.expand(self.end)
    }

    /// Step 5: numbers up to `end` were heard of.
    fn reach(&mut self, end: u64) {
        if end > self.end {
            self.end = end;
            self.forget_below(end - MEMORY as u64);
        }
    }

    /// Drops the symbols below `new`, and the equations that have one of them.
    fn forget_below(&mut self, new: u64) {
        let Decoder { known, equations, spare, oldest, .. } = self;
        known.iter_mut().filter(|known| known.tag <= new).for_each(|known| known.tag = 0);
        let gone = *oldest..new.min(*oldest + MEMORY as u64);
        let old = |equation: &Equation| gone.clone().any(|number| equation.factors[place(number)] != 0);
        while let Some(index) = equations.iter().position(old) {
            spare.push(equations.swap_remove(index).sum);
        }
        *oldest = new;
    }

    /// One more equation may come: the one of the oldest symbol goes, if there are too many.
    fn make_room(&mut self) {
        if self.equations.len() == MAX_EQUATIONS
            && let Some(index) = (0..MAX_EQUATIONS).min_by_key(|index| self.equations[*index].pivot)
        {
            self.spare.push(self.equations.swap_remove(index).sum);
        }
    }

    /// Gives back the buffers if nothing came since the last call.
    pub fn trim(&mut self) {
        if !std::mem::take(&mut self.busy) {
            (self.known, self.equations, self.spare, self.end) = (Vec::new(), Vec::new(), Vec::new(), 0);
        }
    }

    fn is_forgotten(&self, number: u64) -> bool {
        number < self.oldest
    }

    fn knows(&self, number: u64) -> bool {
        self.known[place(number)].tag == number + 1
    }

    /// What must hold after every call.
    #[cfg(any(test, feature = "fuzzing"))]
    pub fn check(&self) {
        assert!(self.equations.len() <= MAX_EQUATIONS && self.spare.len() <= MAX_EQUATIONS + 1);
        for equation in &self.equations {
            assert!(self.numbers().contains(&equation.pivot) && equation.factors[place(equation.pivot)] == 1);
            assert!(equation.sum.len() <= MAX_SYMBOL && !equation.is_solved());
            let owners = self.equations.iter().filter(|other| other.factors[place(equation.pivot)] != 0);
            assert_eq!(owners.count(), 1, "a pivot of two equations");
            let settled = |number: &u64| equation.factors[place(*number)] != 0 && self.knows(*number);
            assert!(!self.numbers().any(|number| settled(&number)), "what is known is in no equation");
        }
    }

    /// All numbers that equations may have, the oldest first.
    fn numbers(&self) -> std::ops::Range<u64> {
        self.oldest..self.end
    }
}

impl Equation {
    /// Takes `other` out of this one, as often as it has the other's pivot.
    fn subtract(&mut self, other: &Equation) {
        let factor = self.factors[place(other.pivot)];
        if factor == 0 {
            return;
        }
        if self.sum.len() < other.sum.len() {
            self.sum.resize(other.sum.len(), 0);
        }
        add_scaled(&mut self.factors, factor, &other.factors);
        add_scaled(&mut self.sum, factor, &other.sum);
    }

    /// Whether its pivot is all that it has.
    fn is_solved(&self) -> bool {
        self.factors.iter().filter(|factor| **factor != 0).count() == 1
    }
}

fn place(number: u64) -> usize {
    number as usize % MEMORY
}

#[cfg(test)]
mod tests;
