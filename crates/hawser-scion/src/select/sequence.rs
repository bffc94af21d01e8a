//! Sequences of hops, SCION's path-policy language (doc/dev/design/PathPolicy.md of the reference implementation).
//!
//! 1. The text is read: `?`, `+` and `*` bind tighter than `|`, and that tighter than standing beside each other.
//! 2. What was read becomes a program of few instructions, as for a regular expression (Thompson, 1968).
//! 3. A path's hops run through it, all alternatives at once: work is hops times instructions, whatever was written.

use std::fmt;
use std::str::FromStr;

use super::error::{PolicyError, PolicyFault};
use super::hop::{Hop, HopPredicate, hops};
use super::tokens::{Token, Tokens};
use crate::path::Fingerprint;

/// Most parentheses in each other that are read.
const DEEPEST: usize = 64;

/// Which hops a path must have, in order. Anything goes by default. Plain data.
#[derive(Debug, Clone, Default)]
pub struct Sequence {
    text: String,
    /// Ends where it ends; empty: anything goes.
    program: Vec<Step>,
}

/// What a program does. Plain data.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Takes a hop that is such.
    Hop(HopPredicate),
    /// Goes on at both places.
    Split(usize, usize),
    /// Goes on there.
    Jump(usize),
}

impl Sequence {
    /// Whether a path has these hops. A path inside an AS has none.
    pub fn matches(&self, path: &Fingerprint) -> bool {
        self.program.is_empty() || self.run(hops(path))
    }

    /// Step 3: the places where the program may be, after each hop.
    fn run(&self, hops: impl Iterator<Item = Hop>) -> bool {
        let mut places = Places::new(self.program.len());
        places.reach(&self.program, 0);
        for hop in hops {
            let mut next = Places::new(self.program.len());
            for &place in &places.list {
                if let Some(Step::Hop(predicate)) = self.program.get(place)
                    && predicate.matches(&hop)
                {
                    next.reach(&self.program, place + 1);
                }
            }
            places = next;
        }
        places.reached[self.program.len()]
    }
}

/// Places of a program, the one behind its last step included. None at first.
struct Places {
    reached: Vec<bool>,
    list: Vec<usize>,
}

impl Places {
    fn new(steps: usize) -> Places {
        Places { reached: vec![false; steps + 1], list: Vec::new() }
    }

    /// Adds a place, and where it leads without a hop.
    fn reach(&mut self, program: &[Step], place: usize) {
        let mut open = vec![place];
        while let Some(place) = open.pop() {
            if std::mem::replace(&mut self.reached[place], true) {
                continue;
            }
            self.list.push(place);
            match program.get(place) {
                Some(&Step::Split(one, other)) => open.extend([one, other]),
                Some(&Step::Jump(to)) => open.push(to),
                Some(Step::Hop(_)) | None => {}
            }
        }
    }
}

impl FromStr for Sequence {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Sequence, PolicyError> {
        if text.is_empty() {
            return Ok(Sequence::default());
        }
        let mut tokens = Tokens::read(text)?;
        let program = beside(&mut tokens, 0)?;
        tokens.end()?;
        Ok(Sequence { text: text.to_owned(), program })
    }
}

/// Steps 1 and 2 for what stands beside each other. Programs of parts count places from their own start.
fn beside(tokens: &mut Tokens<'_>, depth: usize) -> Result<Vec<Step>, PolicyError> {
    let mut program = either(tokens, depth)?;
    while matches!(tokens.peek(), Some(Token::Number(_) | Token::Open)) {
        append(&mut program, &either(tokens, depth)?);
    }
    Ok(program)
}

/// `a|b`
fn either(tokens: &mut Tokens<'_>, depth: usize) -> Result<Vec<Step>, PolicyError> {
    let mut program = repeated(tokens, depth)?;
    while tokens.take(Token::Or) {
        let other = repeated(tokens, depth)?;
        let mut both = vec![Step::Split(1, program.len() + 2)];
        append(&mut both, &program);
        both.push(Step::Jump(both.len() + 1 + other.len()));
        append(&mut both, &other);
        program = both;
    }
    Ok(program)
}

/// `a?`, `a+`, `a*`
fn repeated(tokens: &mut Tokens<'_>, depth: usize) -> Result<Vec<Step>, PolicyError> {
    let mut program = single(tokens, depth)?;
    loop {
        let (may_be_none, may_be_more) = if tokens.take(Token::Optional) {
            (true, false)
        } else if tokens.take(Token::Plus) {
            (false, true)
        } else if tokens.take(Token::Star) {
            (true, true)
        } else {
            return Ok(program);
        };
        if may_be_more {
            program.push(Step::Split(0, program.len() + 1));
        }
        if may_be_none {
            let mut optional = vec![Step::Split(1, program.len() + 1)];
            append(&mut optional, &program);
            program = optional;
        }
    }
}

/// A hop, or parentheses.
fn single(tokens: &mut Tokens<'_>, depth: usize) -> Result<Vec<Step>, PolicyError> {
    if !tokens.take(Token::Open) {
        return Ok(vec![Step::Hop(tokens.hop()?)]);
    }
    if depth == DEEPEST {
        return Err(tokens.error(PolicyFault::TooDeep));
    }
    let program = beside(tokens, depth + 1)?;
    if tokens.take(Token::Close) { Ok(program) } else { Err(tokens.error(PolicyFault::Unclosed)) }
}

/// Adds a part, whose places move behind what is there.
fn append(program: &mut Vec<Step>, part: &[Step]) {
    let offset = program.len();
    program.extend(part.iter().map(|step| match *step {
        Step::Hop(predicate) => Step::Hop(predicate),
        Step::Split(one, other) => Step::Split(one + offset, other + offset),
        Step::Jump(to) => Step::Jump(to + offset),
    }));
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for Sequence {
    fn eq(&self, other: &Sequence) -> bool {
        self.text == other.text
    }
}

impl Eq for Sequence {}
